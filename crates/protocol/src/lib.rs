//! What is said between the coordinator, which decides, and the agents, which act, one on each host.
//!
//! Both ends speak over a stream of octets in each direction: the standard input and output of the agent, however that
//! was started. The agent first says [`GREETING`], then both send frames, each with one message.
//!
//! JSON was weighed against postcard and CBOR. Records are JSON on disk, and their types leave out fields and name
//! variants inside of objects, which a format that does not describe itself (postcard) cannot read back. CBOR could, but
//! would be a second form of each record. A result has some 100 kB, a watch tells some 300 octets ten times a second, and
//! a job is sent once, with 100 octets for each query of its list.
//!
//! Modules, in the order of reading: `frame` (messages on a stream), `message` (what there is), `clock` (how the clocks
//! of two hosts lie to each other), `job` (a load as it is sent), `fill` (what its clients send next),
//! `counted` (what another host has counted).
//!
//! - Invariant: it opens nothing, starts nothing and reads no clock.
//! - Invariant: what was read back equals what was sent, or is refused. Figures are numbers.
//! - Invariant: memory is bounded, whatever the other end sends.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod clock;
mod counted;
mod fill;
mod frame;
mod job;
mod message;

pub use counted::Counted;
pub use fill::{PackedQueries, SentFill};
pub use frame::{BrokenStream, FrameReader, FrameWriter, GREETING, GreetingReader, MAX_BODY};
pub use job::{SentJob, SentQueries, UnusableJob};
pub use message::{
    Answer, Failure, FoundServer, FromAgent, Order, PortChoice, Role, SAMPLES, SentFile,
    SentPolicy, SentRootHints, SentShare, SentSignatures, SentSource, SentUpstream, SentZone,
    ServerOrder, Serving, Sought, ToAgent, Unreadable, body_of, message_of,
};
