//! Statistics over rounds; the unit is the round.

mod bootstrap;
mod comparison;
mod paired;

pub use bootstrap::{Estimate, mean};
pub use comparison::{Comparison, Metric, Pair, Verdict, WORD_ERROR};
pub use paired::{Paired, drift, rejected};
