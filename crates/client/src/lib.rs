//! The clients of a load, as a state machine: arrivals in, messages out, answers in, counts out.
//!
//! The principal type is [`Worker`]. It serves its clients over any transport, in a closed or an open loop, from a
//! [`Job`]: settings, target, queries, seed. A [`Shard`] is the part of one worker. Every query that becomes due ends
//! in exactly one outcome. Latency counts from the instant at which a query was due, so neither the server's stalls nor
//! the generator's own lag are free (Tene, "How NOT to measure latency"; wrk2).
//!
//! A worker asks a [`Runtime`] for the time, for sockets and for sleep. In a load that is the kernel (`dnslab_load`).
//! In the tests it is a seeded network with a clock of its own (`simulation`), over all six transports, with loss,
//! repetition, partial writes, refusals, resets, stalls, and a thread that does not get its CPU. Each failure names its
//! seed.
//!
//! Modules, in the order of reading:
//!
//! - `job`, `shard`, [`runtime`]: what a worker is given, and what it asks.
//! - `worker`: the one loop, and its parts: opening, turns, batching, detours. `slots` opens, reads and closes,
//!   `routing` finds the slot of a query, `sending` sends, `alarms` handles time, `drains` waits for the last answers
//!   of used-up connections, `shared` has one socket for many clients.
//! - `query_source`, `replay`: when queries become due. `attempts`: how often a client asks, and whom.
//! - `connection_slot`, `in_flight`: a connection of a client, with its queries and their message ids.
//! - [`connection`]: a file for each transport. `tls`: the TLS of the clients, with the tickets of each.
//! - `response_matcher`, `sample`: whose answer it is, and which answers are parsed in full.
//! - `recorder`, `transcript`: what is counted, and what each query was told.
//!
//! What always holds:
//!
//! - Invariant: no thread, no socket and no clock of its own.
//! - Invariant: it has two effects beside its [`Runtime`]. Making [`TlsSettings`] reads the authority's file. TLS takes
//!   random octets from the system, and compares the dates of certificates with the system's clock.
//! - Invariant: transport, schedule, selection and the behaviour of clients are values for one loop. No connection
//!   knows the schedule, a time-out of a query or an outcome.
//! - Invariant: a client that is not connected holds no buffer, no table and no settings of its own.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod attempts;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
pub mod connection;
mod connection_slot;
mod in_flight;
mod job;
mod played;
mod query_source;
mod recorder;
mod replay;
mod response_matcher;
pub mod runtime;
mod sample;
mod shard;
#[cfg(test)]
mod simulation;
mod time;
mod tls;
mod transcript;
mod worker;

pub use job::{Endpoint, Job, Share, sockets};
pub use played::PlayedClients;
pub use recorder::{
    Events, IntervalRecord, Millisecond, PhaseCounts, Phases, RcodeCounts, Recorder,
};
pub use replay::{ClientTraffic, Fed, Feed};
pub use response_matcher::Expected;
pub use runtime::Runtime;
pub use shard::{Clients, Outbox, Shard};
pub use time::{Nanos, ThreadTime, Timeline, nanos};
pub use tls::{
    CertificateFault, ClientTls, FaultWatch, TlsSettings, TlsSettingsError, Verification,
    offered_names,
};
pub use transcript::records_of;
pub use worker::{Pauses, Worker, WorkerEnd};
