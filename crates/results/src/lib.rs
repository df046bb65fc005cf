//! The results directory: one folder per experiment, one folder per run, every file written whole.
//!
//! The principal type is [`ResultsDirectory`]. Records are written one file each, atomically. What is read is read as if
//! a stranger had written it: regular files inside the directory by a path without a link, with bounds on what they
//! hold. It is the one crate of records that opens files.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod bounds;
mod directory;
mod error;
mod folder;
mod lock;
mod replaced;

pub use bounds::{FolderName, FolderNameError};
pub use directory::ResultsDirectory;
pub use error::ResultsError;
pub use lock::{Holder, SessionLock};
