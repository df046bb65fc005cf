//! Statistics over rounds; the unit is the round, and between sessions the run.

mod bootstrap;
mod comparison;
mod law;
mod paired;
mod scalability;
mod welch;

pub use bootstrap::{Estimate, mean, mean_of};
pub use comparison::{Comparison, Pair, Verdict, WORD_ERROR};
pub use paired::{Hypothesis, Paired, ValuePair, drift, rejected};
pub(crate) use scalability::ThreadRate;
pub use scalability::{HeldOut, LEAST_COUNTS, ScalabilityLaw};
pub use welch::Welch;
