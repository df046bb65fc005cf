//! How long answers are held back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dnslab_wire::units::duration::write_to_seconds as written;
use rand::Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

use super::error::{ProgramError, duration};

/// A fixed delay, or a distribution from which each answer draws its own.
///
/// ```
/// use dnslab_traffic::Delay;
/// use std::time::Duration;
///
/// assert_eq!("5ms".parse(), Ok(Delay::Fixed(Duration::from_millis(5))));
/// assert_eq!("lognormal:median=5ms,sigma=0.5".parse::<Delay>().unwrap().to_string(),
///     "lognormal:median=5ms,sigma=0.5");
/// let error = "gamma:5ms".parse::<Delay>().unwrap_err();
/// assert!(error.to_string().starts_with("delay `gamma:5ms`: "));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Delay {
    /// Answers leave at once, past the delay queue.
    #[default]
    None,
    /// Always the same.
    Fixed(Duration),
    /// Equally likely between two bounds.
    Uniform {
        /// Shortest.
        from: Duration,
        /// Longest, not below `from`.
        to: Duration,
    },
    /// Normal, cut at zero: a negative draw becomes no delay.
    Normal {
        /// Mean before the cut.
        mean: Duration,
        /// Standard deviation before the cut.
        deviation: Duration,
    },
    /// Exponential.
    Exponential {
        /// Mean; the median is 0.693 of it.
        mean: Duration,
    },
    /// The logarithm is normal: what networks and loaded servers resemble.
    LogNormal {
        /// Median.
        median: Duration,
        /// Standard deviation of the natural logarithm, above 0 and at most 10.
        sigma: f64,
    },
}

const FORMS: &str = "one of `5ms`, `uniform:1ms..9ms`, `normal:5ms,1ms`, `exponential:5ms`, \
                     `lognormal:median=5ms,sigma=0.5` is expected";

/// No draw is longer: a lognormal distribution has no end.
const MAX_S: f64 = 3600.0;

impl Delay {
    /// Draws the delay of one answer, at most an hour.
    pub fn draw(self, random: &mut impl Rng) -> Duration {
        let seconds = match self {
            Self::None => return Duration::ZERO,
            Self::Fixed(delay) => return delay,
            Self::Uniform { from, to } => {
                from.as_secs_f64() + (to - from).as_secs_f64() * random.random::<f64>()
            }
            Self::Normal { mean, deviation } => {
                let deviations: f64 = StandardNormal.sample(random);
                mean.as_secs_f64() + deviation.as_secs_f64() * deviations
            }
            Self::Exponential { mean } => {
                let means: f64 = Exp1.sample(random);
                mean.as_secs_f64() * means
            }
            Self::LogNormal { median, sigma } => {
                let deviations: f64 = StandardNormal.sample(random);
                median.as_secs_f64() * (sigma * deviations).exp()
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.0, MAX_S))
    }
}

impl FromStr for Delay {
    type Err = ProgramError;

    fn from_str(text: &str) -> Result<Self, ProgramError> {
        let form = || ProgramError::new("delay", text, FORMS);
        let Some((kind, rest)) = text.split_once(':') else {
            return match text {
                "none" => Ok(Self::None),
                _ if text.starts_with(|first: char| first.is_ascii_digit()) => {
                    duration(text).map(Self::Fixed)
                }
                _ => Err(form()),
            };
        };
        match kind {
            "uniform" => {
                let (from, to) = rest.split_once("..").ok_or_else(form)?;
                let (from, to) = (duration(from)?, duration(to)?);
                if from > to {
                    let reason = "the bounds are the wrong way round";
                    return Err(ProgramError::new("delay", text, reason));
                }
                Ok(Self::Uniform { from, to })
            }
            "normal" => {
                let (mean, deviation) = rest.split_once(',').ok_or_else(form)?;
                let mean = duration(mean.trim())?;
                Ok(Self::Normal { mean, deviation: duration(deviation.trim())? })
            }
            "exponential" => Ok(Self::Exponential { mean: duration(rest)? }),
            "lognormal" => {
                let (median, sigma) = rest.split_once(',').ok_or_else(form)?;
                let median = median.trim().strip_prefix("median=").ok_or_else(form)?;
                let sigma = sigma.trim().strip_prefix("sigma=").ok_or_else(form)?;
                let value: f64 = sigma.parse().map_err(|_| form())?;
                if !(value > 0.0 && value <= 10.0) {
                    let reason = "it must be above 0 and at most 10";
                    return Err(ProgramError::new("sigma", sigma, reason));
                }
                Ok(Self::LogNormal { median: duration(median)?, sigma: value })
            }
            _ => Err(form()),
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => formatter.write_str("none"),
            Self::Fixed(delay) => write!(formatter, "{}", written(delay)),
            Self::Uniform { from, to } => {
                write!(formatter, "uniform:{}..{}", written(from), written(to))
            }
            Self::Normal { mean, deviation } => {
                write!(formatter, "normal:{},{}", written(mean), written(deviation))
            }
            Self::Exponential { mean } => write!(formatter, "exponential:{}", written(mean)),
            Self::LogNormal { median, sigma } => {
                write!(formatter, "lognormal:median={},sigma={sigma}", written(median))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn forms_are_read_and_written() {
        for text in [
            "none",
            "5ms",
            "uniform:1ms..9ms",
            "normal:5ms,1ms",
            "exponential:500us",
            "lognormal:median=5ms,sigma=0.5",
        ] {
            assert_eq!(text.parse::<Delay>().unwrap().to_string(), text);
        }
        let check = |text: &str, culprit: &str| {
            let error = text.parse::<Delay>().unwrap_err().to_string();
            assert!(error.starts_with(culprit), "{error}");
        };
        check("", "delay ``");
        check("5", "duration `5`");
        check("uniform:9ms..1ms", "delay `uniform:9ms..1ms`: the bounds");
        check("uniform:1ms..9", "duration `9`");
        check("normal:5ms", "delay `normal:5ms`: one of");
        check("lognormal:5ms,0.5", "delay `lognormal:5ms,0.5`: one of");
        check("lognormal:median=5ms,sigma=-1", "sigma `-1`");
        check("lognormal:median=5ms,sigma=NaN", "sigma `NaN`");
    }

    fn check_draws(text: &str, median_us: f64, p90_us: f64) {
        let delay: Delay = text.parse().unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut draws: Vec<_> = (0..100_000).map(|_| delay.draw(&mut random)).collect();
        draws.sort();
        for (quantile, expected) in [(0.5, median_us), (0.9, p90_us)] {
            let seen = draws[(100_000.0 * quantile) as usize].as_secs_f64() * 1e6;
            assert!((seen / expected - 1.0).abs() < 0.02, "{text}: {seen}, not {expected}");
        }
    }

    /// The seed is fixed, so the bounds hold on every machine or on none.
    #[test]
    fn draws_follow_the_distribution() {
        check_draws("5ms", 5000.0, 5000.0);
        check_draws("uniform:1ms..9ms", 5000.0, 8200.0);
        // 1.2816 is the 0.9 quantile of the standard normal distribution.
        check_draws("normal:5ms,1ms", 5000.0, 6281.6);
        check_draws("exponential:5ms", 3465.7, 11_512.9);
        check_draws("lognormal:median=5ms,sigma=0.5", 5000.0, 9489.9);
        let cut: Delay = "normal:1ms,10ms".parse().unwrap();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        assert!((0..100).any(|_| cut.draw(&mut random) == Duration::ZERO));
    }
}
