//! The distributions of a population: draws, chances and means.

use rand::Rng;
use rand_distr::{Distribution as _, Exp1, Gamma, StandardNormal};
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::gamma;

/// The chance that a standard normal value is below this one.
pub(crate) fn normal_below(value: f64) -> f64 {
    erfc(-value / std::f64::consts::SQRT_2) / 2.0
}

/// The standard normal value that is higher than this share of all. The share is above 0 and below 1.
pub(crate) fn normal_quantile(share: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * share)
}

/// A distribution whose logarithm is normally distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogNormal {
    /// Mean of the natural logarithm.
    pub(crate) mean: f64,
    /// Standard deviation of it, from 0.
    pub(crate) deviation: f64,
}

impl LogNormal {
    #[inline]
    pub(crate) fn draw(&self, random: &mut impl Rng) -> f64 {
        let normal: f64 = StandardNormal.sample(random);
        (self.mean + self.deviation * normal).exp()
    }

    /// The chance of a value of at most this much.
    pub(crate) fn up_to(&self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        let distance = value.ln() - self.mean;
        if self.deviation > 0.0 {
            normal_below(distance / self.deviation)
        } else {
            // The logarithm of a power is not exact.
            f64::from(u8::from(distance >= -1e-9))
        }
    }

    pub(crate) fn above(&self, value: f64) -> f64 {
        1.0 - self.up_to(value)
    }

    /// The mean of the values that are at most this much.
    pub(crate) fn mean_below(&self, most: f64) -> f64 {
        let mean = (self.mean + self.deviation * self.deviation / 2.0).exp();
        if self.deviation == 0.0 {
            return mean.min(most);
        }
        let distance = (most.ln() - self.mean) / self.deviation;
        mean * normal_below(distance - self.deviation) / normal_below(distance)
    }
}

/// A Weibull distribution with this shape and a mean of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Weibull {
    exponent: f64,
    scale: f64,
    /// Of the values as a passer-by finds them: long ones more often.
    biased: Gamma<f64>,
}

impl Weibull {
    /// The shape is above 0.
    pub(crate) fn new(shape: f64) -> Self {
        let exponent = shape.recip();
        let biased = Gamma::new(1.0 + exponent, 1.0).expect("the shape of a silence is above 0");
        Self { exponent, scale: gamma(1.0 + exponent).recip(), biased }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut impl Rng) -> f64 {
        let exponential: f64 = Exp1.sample(random);
        self.scale * exponential.powf(self.exponent)
    }

    /// What remains at an instant that is chosen without regard to it: a uniform part of a value that is drawn
    /// in proportion to its length (Cox, "Renewal Theory", 1962, section 5.4).
    pub(crate) fn draw_remainder(&self, random: &mut impl Rng) -> f64 {
        let length = self.scale * self.biased.sample(random).powf(self.exponent);
        length * random.random::<f64>()
    }

    /// Standard deviation of the natural logarithm of a value, for a shape. It does not depend on the mean.
    pub(crate) fn log_deviation(shape: f64) -> f64 {
        std::f64::consts::PI / (6.0_f64.sqrt() * shape)
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::SeedableRng as _;

    use super::*;

    fn mean(count: u32, mut draw: impl FnMut(&mut SplitMix64) -> f64) -> f64 {
        let mut random = SplitMix64::seed_from_u64(7);
        (0..count).map(|_| draw(&mut random)).sum::<f64>() / f64::from(count)
    }

    #[test]
    fn chances_and_quantiles_are_inverse() {
        for share in [1e-9, 0.01, 0.3, 0.5, 0.9, 0.999_999] {
            let back = normal_below(normal_quantile(share));
            assert!((back / share - 1.0).abs() < 1e-6, "{share}: {back}");
        }
        // A table of the normal distribution.
        assert!((normal_below(1.0) - 0.841_344_746).abs() < 1e-8);
    }

    #[test]
    fn means_agree_with_draws() {
        for (median, deviation, most) in [(0.06, 1.5, 2.0), (0.5, 1.0, 1.0), (0.2, 0.0, 1.0)] {
            let gap = LogNormal { mean: f64::ln(median), deviation };
            let drawn = mean(100_000, |random| {
                loop {
                    let value = gap.draw(random);
                    if value <= most {
                        return value;
                    }
                }
            });
            assert!((drawn / gap.mean_below(most) - 1.0).abs() < 0.02, "{median} {deviation}");
        }
        for shape in [0.4, 0.6, 1.0, 2.0] {
            let weibull = Weibull::new(shape);
            // The deviation of a draw is at most 5.3 at these shapes.
            let drawn = mean(200_000, |random| weibull.draw(random));
            assert!((drawn - 1.0).abs() < 0.05, "{shape}: {drawn}");
            // Half of the mean of the square, which is 1 plus the variance.
            let remainder = mean(200_000, |random| weibull.draw_remainder(random));
            let square = gamma(1.0 + 2.0 / shape) / gamma(1.0 + 1.0 / shape).powi(2);
            assert!((remainder / (square / 2.0) - 1.0).abs() < 0.05, "{shape}: {remainder}");
            let logarithms: Vec<f64> = {
                let mut random = SplitMix64::seed_from_u64(3);
                (0..50_000).map(|_| weibull.draw(&mut random).ln()).collect()
            };
            let middle = logarithms.iter().sum::<f64>() / 50_000.0;
            let variance =
                logarithms.iter().map(|logarithm| (logarithm - middle).powi(2)).sum::<f64>()
                    / 50_000.0;
            assert!((variance.sqrt() / Weibull::log_deviation(shape) - 1.0).abs() < 0.03);
        }
    }
}
