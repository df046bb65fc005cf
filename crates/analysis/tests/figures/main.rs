//! What is computed from whole records: caveats, limits, self-checks, and the summary of an experiment.

mod capacity;
mod causes;
mod caveats;
mod chain;
mod event;
mod example;
mod memory;
mod self_check;
mod serving;
mod session_comparison;
mod summary;
mod time_outs;
