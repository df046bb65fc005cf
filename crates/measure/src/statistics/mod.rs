//! Statistics over rounds; the unit is the round, and between sessions the run.

mod bootstrap;
mod comparison;
mod paired;
mod welch;

pub(crate) use bootstrap::mean_of;
pub use bootstrap::{Estimate, mean};
pub use comparison::{Comparison, Metric, Pair, Verdict, WORD_ERROR};
pub use paired::{Paired, drift, rejected};
pub use welch::Welch;
