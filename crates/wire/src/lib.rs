//! DNS octets and vocabulary: the transports, queries that are encoded once and patched in place,
//! summaries of responses made without allocation, and the length prefix of stream transports.
//!
//! This crate does no input or output, reads no clock, and holds no `unsafe`.

mod framing;
mod query;
mod response;
mod transport;

pub use framing::{FrameReader, Frames, push_frame};
pub use query::{Edns, Query, QueryError, QueryOptions};
pub use response::{Malformed, Response, rcode_name};
pub use transport::{Transport, UnknownTransport};
