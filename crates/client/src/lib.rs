//! The clients of a load, as a state machine: arrivals in, messages out, answers in, counts out.
//!
//! The principal type is [`Worker`]. One worker serves its clients over any transport, in a closed or an open
//! loop, from a [`Job`]: settings, target, queries, seed. Every query that becomes due ends in exactly one
//! outcome. Latency counts from the instant at which a query was due, not from when it was sent, so that
//! neither the server's stalls nor the generator's own lag are free (Tene, "How NOT to measure latency";
//! wrk2).
//!
//! It asks a [`Runtime`] for the time, for sockets and for rest. In a load that is the kernel
//! (`dnslab-load`); in its tests it is a seeded network with a clock of its own (`simulation`).
//!
//! **What it never does**: open a socket, read a clock, start a thread, or decide what a difference means.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod attempts;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
pub mod connection;
mod connection_slot;
mod in_flight;
mod job;
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
mod told;
mod worker;

pub use job::{Endpoint, Job, sockets};
pub use recorder::{
    Events, IntervalRecord, Millisecond, PhaseCounts, Phases, RcodeCounts, Recorder,
};
pub use replay::{ClientTraffic, Fed, Feed};
pub use response_matcher::Expected;
pub use runtime::Runtime;
pub use shard::{Clients, Shard};
pub use time::{Nanos, ThreadTime, Timeline, nanos};
pub use tls::{
    CertificateFault, ClientTls, FaultWatch, TlsSettings, TlsSettingsError, Verification,
    offered_names,
};
pub use told::records_of;
pub use worker::{Pauses, Worker, WorkerEnd};
