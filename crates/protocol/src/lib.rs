//! What is sent between the host that decides and the hosts that act: jobs one way, progress, results and errors the
//! other way. Each message is one line of JSON with a version.
//!
//! JSON was weighed against postcard and CBOR. Records are JSON on disk, and their types leave out fields and name
//! variants inside of objects, which a format that does not describe itself (postcard) cannot read back. CBOR could, but
//! would be a second form of each record. A result has some 100 kB, progress is told ten times a second, and a job is
//! sent once, with 100 octets for each query of its list.
//!
//! Modules, in the order of reading: `message` (what there is, and its version), `job` (a load as it is sent).
//!
//! - Invariant: it opens nothing, starts nothing and reads no clock.
//! - Invariant: what was read back equals what was sent, or is refused. Figures are numbers.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod job;
mod message;

pub use job::UnusableJob;
pub use message::{Failure, Message, Unreadable, VERSION};
