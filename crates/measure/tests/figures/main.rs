//! What is computed from whole records: caveats, limits, and the summary of an experiment.

mod caveats;
mod example;
mod summary;
