//! Bootstrap intervals for few runs.

use serde::{Deserialize, Serialize};

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The point estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The mean of `runs` with its 95 % interval; `None` if there is no run. With one run the interval
/// is unbounded.
#[must_use]
pub fn mean(_runs: &[f64], _seed: u64) -> Option<Estimate> {
    todo!()
}

/// The relative difference of the means, `mean(variant) / mean(baseline) - 1`, with its 95 %
/// interval; `None` if either has no run.
#[must_use]
pub fn difference(_baseline: &[f64], _variant: &[f64], _seed: u64) -> Option<Estimate> {
    todo!()
}
