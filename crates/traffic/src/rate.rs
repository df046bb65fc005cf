//! How many queries per second, over the time of a load.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use dnslab_wire::units::{duration, number};

/// The rate of an open loop over all clients, in queries per second, as it changes with time since the load
/// began. Rates are taken to the millionth of a query per second, so that schedules can be exact.
///
/// ```
/// use dnslab_traffic::Rate;
/// use std::time::Duration;
///
/// let rate: Rate = "steps:10_000,20_000/5s".parse()?;
/// assert_eq!(rate.at(Duration::from_secs(7)), 20_000.0);
/// assert_eq!(rate.mean(Duration::from_secs(10)), 15_000.0);
/// assert_eq!(rate.to_string(), "steps:10000,20000/5s");
/// # Ok::<(), dnslab_traffic::RateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Always the same, above 0.
    Constant(f64),
    /// One after another, each for the same time; the last one goes on. A rate of 0 is a pause.
    Steps {
        /// The rates.
        rates: Vec<f64>,
        /// How long each lasts.
        every: Duration,
    },
    /// From one rate to another in a straight line; the last one goes on. One of them may be 0.
    Ramp {
        /// The rate at the start.
        from: f64,
        /// The rate at the end.
        to: f64,
        /// How long the way takes.
        over: Duration,
    },
}

/// The text is no rate, or no load can have it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// Not one of the forms.
    #[error(
        "`{0}` is no rate: write queries per second such as 50000, \
         steps:10000,20000,40000/5s, or ramp:1000..100000/30s"
    )]
    NoRate(String),
    /// Not a number of queries per second in bounds.
    #[error("a rate of `{0}` queries per second is not possible: it is from 0 to 1000000000")]
    OutOfBounds(String),
    /// Nothing is ever sent.
    #[error("the rate `{0}` sends nothing: one of its numbers must be above 0")]
    Nothing(String),
    /// Not a duration, or of no length or over a week.
    #[error(
        "`{0}` is no duration for a rate: write one such as 500ms or 30s, above 0 and at most a week"
    )]
    Duration(String),
}

/// The highest rate: gaps are in nanoseconds.
const HIGHEST: f64 = 1e9;

/// The lowest rate above 0, and the precision of all: one query in 10^6 seconds.
const LOWEST: f64 = 1e-6;

/// The longest step or ramp: a week. Over a longer one, due times would be off by a nanosecond.
const MAX_LENGTH: Duration = Duration::from_secs(7 * 86_400);

impl Rate {
    /// Says what makes this rate impossible, if anything. A rate read from text is possible.
    ///
    /// # Errors
    /// When a number is not from 0 to 10^9, all are 0, or a duration is 0 or over a week.
    pub fn check(&self) -> Result<(), RateError> {
        let (rates, duration) = match self {
            Self::Constant(rate) => (std::slice::from_ref(rate), None),
            Self::Steps { rates, every } => (rates.as_slice(), Some(*every)),
            Self::Ramp { from, to, over } => (&[*from, *to][..], Some(*over)),
        };
        if let Some(wrong) = rates.iter().find(|rate| !(0.0..=HIGHEST).contains(*rate)) {
            return Err(RateError::OutOfBounds(wrong.to_string()));
        }
        if !rates.iter().any(|rate| *rate >= LOWEST) {
            return Err(RateError::Nothing(self.to_string()));
        }
        match duration {
            Some(wrong) if wrong.is_zero() || wrong > MAX_LENGTH => {
                Err(RateError::Duration(duration::write(wrong)))
            }
            _ => Ok(()),
        }
    }

    /// The rate at this time since the load began, queries per second. At the edge of two steps it is the
    /// later one.
    #[must_use]
    pub fn at(&self, time: Duration) -> f64 {
        match self {
            Self::Constant(rate) => *rate,
            Self::Steps { rates, every } => {
                let step = time.as_nanos() / every.as_nanos().max(1);
                let step = usize::try_from(step).unwrap_or(usize::MAX);
                rates.get(step).or(rates.last()).copied().unwrap_or(0.0)
            }
            Self::Ramp { to, over, .. } if time >= *over => *to,
            Self::Ramp { from, to, over } => {
                from + (to - from) * (time.as_secs_f64() / over.as_secs_f64())
            }
        }
    }

    /// The highest rate at any time, queries per second.
    #[must_use]
    pub fn highest(&self) -> f64 {
        match self {
            Self::Constant(rate) => *rate,
            Self::Steps { rates, .. } => rates.iter().copied().fold(0.0, f64::max),
            Self::Ramp { from, to, .. } => from.max(*to),
        }
    }

    /// The mean rate from the start to this time, queries per second; at time 0, the rate at the start.
    #[must_use]
    pub fn mean(&self, over: Duration) -> f64 {
        if over.is_zero() { self.at(over) } else { self.cumulated(over) / over.as_secs_f64() }
    }

    /// The mean rate over a span of this length that begins after a while, queries per second.
    #[must_use]
    pub fn mean_within(&self, after: Duration, length: Duration) -> f64 {
        match self {
            Self::Constant(rate) => *rate,
            _ => (self.cumulated(after + length) - self.cumulated(after)) / length.as_secs_f64(),
        }
    }

    /// How many queries are due before this time, as a number that grows without steps.
    #[must_use]
    pub fn cumulated(&self, until: Duration) -> f64 {
        let seconds = until.as_secs_f64();
        match self {
            Self::Constant(rate) => rate * seconds,
            Self::Steps { rates, every } => {
                let every = every.as_secs_f64();
                let last = rates.len().saturating_sub(1);
                let in_step = |(step, rate): (usize, &f64)| {
                    let rest = (seconds - step as f64 * every).max(0.0);
                    rate * if step == last { rest } else { rest.min(every) }
                };
                rates.iter().enumerate().map(in_step).sum()
            }
            Self::Ramp { from, to, over } => {
                let over = over.as_secs_f64();
                let on_ramp = seconds.min(over);
                from * on_ramp
                    + (to - from) * on_ramp * (on_ramp / over) / 2.0
                    + to * (seconds - on_ramp)
            }
        }
    }

    /// True if the rate is always the same.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }
}

impl fmt::Display for Rate {
    /// As it is read.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(rate) => write!(formatter, "{rate}"),
            Self::Steps { rates, every } => {
                let rates: Vec<String> = rates.iter().map(f64::to_string).collect();
                write!(formatter, "steps:{}/{}", rates.join(","), duration::write(*every))
            }
            Self::Ramp { from, to, over } => {
                write!(formatter, "ramp:{from}..{to}/{}", duration::write(*over))
            }
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    /// Reads `50000`, `steps:10000,20000,40000/5s` and `ramp:1000..100000/30s`.
    fn from_str(text: &str) -> Result<Self, RateError> {
        let no_rate = || RateError::NoRate(text.to_owned());
        let rate = |text: &str| {
            let is_possible = |rate: &f64| rate.is_finite() && rate.is_sign_positive();
            number::read(text).filter(is_possible).ok_or_else(no_rate)
        };
        let duration = |text: &str| {
            duration::read(text).map_err(|_| RateError::Duration(text.trim().to_owned()))
        };
        let rate = if let Some(steps) = text.trim().strip_prefix("steps:") {
            let (rates, every) = steps.rsplit_once('/').ok_or_else(no_rate)?;
            let rates = rates.split(',').map(rate).collect::<Result<_, _>>()?;
            Self::Steps { rates, every: duration(every)? }
        } else if let Some(ramp) = text.trim().strip_prefix("ramp:") {
            let (rates, over) = ramp.rsplit_once('/').ok_or_else(no_rate)?;
            let (from, to) = rates.split_once("..").ok_or_else(no_rate)?;
            Self::Ramp { from: rate(from)?, to: rate(to)?, over: duration(over)? }
        } else {
            Self::Constant(rate(text)?)
        };
        rate.check()?;
        Ok(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_a_window_leaves_out_what_is_before_it() {
        let rate: Rate = "steps:20000,10000/1s".parse().unwrap();
        let qps = rate.mean_within(Duration::from_secs(1), Duration::from_secs(4));
        assert!((qps - 10_000.0).abs() < 1e-6, "{qps}");
    }

    #[test]
    fn texts_are_read_and_written() {
        for (text, written) in [
            ("50000", "50000"),
            (" 50_000.5 ", "50000.5"),
            ("5e4", "50000"),
            ("steps:10000,20000,0,40000/5s", "steps:10000,20000,0,40000/5s"),
            ("steps:1/1.5s", "steps:1/1500ms"),
            ("ramp:1000..100_000/30s", "ramp:1000..100000/30s"),
            ("ramp:0.5..0/250ms", "ramp:0.5..0/250ms"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.to_string(), written);
            assert_eq!(written.parse(), Ok(rate));
        }
    }

    #[test]
    fn errors_name_the_culprit_and_the_remedy() {
        for (text, part) in [
            ("fast", "`fast` is no rate: write queries per second such as 50000"),
            ("", "`` is no rate"),
            ("-1", "`-1` is no rate"),
            ("-0", "`-0` is no rate"),
            ("inf", "`inf` is no rate"),
            ("1.2.3", "is no rate"),
            ("0", "`0` sends nothing"),
            ("steps:0,0/1s", "`steps:0,0/1s` sends nothing"),
            ("steps:10", "`steps:10` is no rate"),
            ("steps:10,/5s", "is no rate"),
            ("steps:10,20/5", "`5` is no duration for a rate"),
            ("ramp:1..2/0s", "`0s` is no duration for a rate"),
            ("ramp:1..2/9000h", "at most a week"),
            ("ramp:1-2/5s", "is no rate"),
            ("2000000000", "`2000000000` queries per second is not possible"),
        ] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    fn check_rate(text: &str, time_ms: u64, at: f64, cumulated: f64) {
        let rate: Rate = text.parse().unwrap();
        let time = Duration::from_millis(time_ms);
        assert_eq!(rate.at(time), at, "{text} at {time_ms} ms");
        assert!((rate.cumulated(time) - cumulated).abs() < 1e-9, "{text} at {time_ms} ms");
    }

    #[test]
    fn rates_are_those_of_their_time() {
        check_rate("100", 1_500, 100.0, 150.0);
        check_rate("steps:10,20/1s", 0, 10.0, 0.0);
        check_rate("steps:10,20/1s", 999, 10.0, 9.99);
        check_rate("steps:10,20/1s", 1_000, 20.0, 10.0);
        check_rate("steps:10,20/1s", 5_000, 20.0, 90.0);
        check_rate("ramp:10..30/2s", 0, 10.0, 0.0);
        check_rate("ramp:10..30/2s", 1_000, 20.0, 15.0);
        check_rate("ramp:10..30/2s", 2_000, 30.0, 40.0);
        check_rate("ramp:10..30/2s", 3_000, 30.0, 70.0);
        check_rate("ramp:30..10/2s", 1_000, 20.0, 25.0);
    }
}
