//! Statistics over runs; the unit is the run.

mod bootstrap;
mod comparison;

pub use bootstrap::{Estimate, difference, mean};
pub use comparison::{Comparison, Metric, Verdict};
