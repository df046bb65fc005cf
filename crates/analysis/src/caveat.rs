//! The doubts that follow from the figures of a run.

mod dnstap;
mod find;
mod waiting;

pub use find::caveats;
