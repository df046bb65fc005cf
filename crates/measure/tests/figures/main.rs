//! What is computed from whole records: caveats, limits, self-checks, and the summary of an experiment.

mod capacity;
mod caveats;
mod chain;
mod example;
mod self_check;
mod serving;
mod session_comparison;
mod summary;
