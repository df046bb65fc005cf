//! When a load has settled, and how long it has to be: read from a longer one that was measured from its first query.

use std::fmt;

use dnslab_record::Measured;

use crate::statistics::mean_of;

/// Values of the rate that one of the truncation rule is the mean of.
const BATCH: usize = 5;
/// Fewer batches than this say nothing.
const LEAST_BATCHES: usize = 15;
/// The variance of the mean is that of the means of so many parts of the load.
const PARTS: usize = 10;

/// What a pilot load says of those after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// From the first query until the rate is that of the rest, nanoseconds.
    pub warm_up_ns: u64,
    /// Standard error of the rate of the rest, relative to it.
    pub error_share: f64,
    /// What that error is of, nanoseconds.
    pub length_ns: u64,
}

/// Why a pilot load says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsteady {
    /// Its rate still changes in its second half.
    Changes,
    /// It has too few intervals, or answered nothing.
    TooShort,
}

impl fmt::Display for Unsteady {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Changes => "its rate still changes in the second half",
            Self::TooShort => "it has too few intervals with answers",
        })
    }
}

impl Steady {
    /// What a load without a warm-up says: the truncation of MSER-5 (White, Cobb and Spratt, "A comparison of five
    /// steady-state truncation heuristics for simulation", Winter Simulation Conference 2000), which makes the rest the
    /// most precise, on the answered rate of its intervals. The error of the rest is that of batch means.
    ///
    /// # Errors
    /// When the load is too short, or settles in its second half only: then the truncation is no finding.
    pub fn of(pilot: &Measured) -> Result<Self, Unsteady> {
        let intervals = pilot.whole_intervals();
        let rates: Vec<f64> = intervals.iter().map(|interval| interval.answered_qps()).collect();
        let length_ns = intervals.first().map_or(0, |interval| interval.length_ns);
        let batches = batches(&rates, BATCH);
        if batches.len() < LEAST_BATCHES || batches.iter().all(|rate| *rate == 0.0) {
            return Err(Unsteady::TooShort);
        }
        let cut = truncation(&batches).ok_or(Unsteady::Changes)? * BATCH;
        let rest = &rates[cut..];
        Ok(Self {
            warm_up_ns: cut as u64 * length_ns,
            error_share: error_share(rest),
            length_ns: rest.len() as u64 * length_ns,
        })
    }

    /// How long a load is whose rate has this standard error, relative to it, nanoseconds: the error falls with the root
    /// of the length.
    #[must_use]
    pub fn needed_ns(&self, error_share: f64) -> u64 {
        (self.length_ns as f64 * (self.error_share / error_share).powi(2)).ceil() as u64
    }
}

/// Means of so many values each; what is left at the end is in none.
fn batches(values: &[f64], size: usize) -> Vec<f64> {
    values.chunks_exact(size).filter_map(mean_of).collect()
}

/// The number of values at the beginning without which the mean of the rest is the most precise, of at most half of
/// them. `None` if it is near half: then the rest may change as well.
fn truncation(values: &[f64]) -> Option<usize> {
    let half = values.len() / 2;
    let errors = (0..=half).map(|cut| squared_error(&values[cut..]));
    let (best, _) = errors.enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (best < half - half / 10).then_some(best)
}

/// The squared standard error of the mean, as if the values were independent.
fn squared_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count * count)
}

/// The standard error of the mean, relative to it, from the means of [`PARTS`] parts.
fn error_share(values: &[f64]) -> f64 {
    let parts = batches(values, (values.len() / PARTS).max(1));
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    (squares / (count * (count - 1.0).max(1.0))).sqrt() / mean
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Rates with a tenth of noise, after a beginning that is slower by `less` and nears the rest with this time
    /// constant.
    fn rates(less: f64, constant: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let rate = |at: usize| 1_000.0 * (1.0 - less * (-(at as f64) / constant).exp());
        (0..count).map(|at| rate(at) * random.random_range(0.9..1.1)).collect()
    }

    #[test]
    fn the_beginning_is_cut_off_where_it_is_slower() {
        for seed in 0..50 {
            let cut = truncation(&batches(&rates(0.5, 20.0, 600, seed), BATCH));
            // After four time constants it lacks a hundredth.
            assert!(cut.is_some_and(|cut| (6..60).contains(&cut)), "{cut:?} of 120");
        }
    }

    #[test]
    fn one_that_always_rises_has_not_settled() {
        for seed in 0..50 {
            let rising: Vec<f64> = rates(0.0, 1.0, 600, seed)
                .iter()
                .enumerate()
                .map(|(at, rate)| rate * (1.0 + at as f64 / 300.0))
                .collect();
            assert_eq!(truncation(&batches(&rising, BATCH)), None);
        }
    }

    #[test]
    fn the_error_is_that_of_independent_values() {
        // A uniform distribution of a tenth to either side has a deviation of 0.1 / sqrt(3).
        let errors: Vec<f64> =
            (0..200).map(|seed| error_share(&rates(0.0, 1.0, 1_000, seed)).powi(2)).collect();
        let expected = 0.1_f64.powi(2) / 3.0 / 1_000.0;
        let found = mean_of(&errors).unwrap();
        assert!((found / expected - 1.0).abs() < 0.2, "{found} {expected}");
    }

    #[test]
    fn four_times_the_length_halves_the_error() {
        let steady = Steady { warm_up_ns: 0, error_share: 0.01, length_ns: 1_000 };
        assert_eq!(steady.needed_ns(0.005), 4_000);
    }
}
