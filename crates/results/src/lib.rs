//! The results directory: one folder per experiment, one folder per run, every file written whole.
//!
//! The principal type is [`ResultsDirectory`]. It writes and reads the session, the records, and what stands beside
//! them. A record is written beside its place, synced and renamed, so a run exists completely or not at all. A
//! [`SessionLock`] keeps other sessions out.
//!
//! What is read is read as if a stranger had written it: regular files inside the directory, by a path without a link,
//! with bounds on what they hold.
//!
//! Modules, in the order of reading:
//!
//! - `directory`: the files by name. `folder`: a folder by its descriptor, in which no link is followed.
//! - `bounds`: how large each file may be, and how much it may hold. They are checked before memory is taken.
//! - `lock`: one session in a directory. `replaced`: an old run waits until the new record is on disk.
//! - `error`: what can go wrong, with the path.
//!
//! What always holds:
//!
//! - Invariant: sessions and records are read and written here alone. It is the one crate of records that opens files.
//! - Invariant: dnslab writes through no link, and reads none, below the directory.
//! - Invariant: no clock, no process, no socket.

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
