//! The load engine: sends queries to a server over any transport, in a closed or an open loop, and
//! counts what comes back.
//!
//! The principal function is [`run`]: a [`LoadSpec`] goes in, a [`LoadResult`] comes out. One
//! worker loop on one OS thread each serves every transport and every schedule; workers share
//! nothing. Every query that becomes due ends in exactly one outcome, and the sums are asserted.
//! Latency is counted from the instant at which a query was due, not from when it was sent, so
//! that neither the server's stalls nor the generator's own lag are free (Tene, "How NOT to
//! measure latency"; wrk2).
//!
//! This crate never starts a process and never decides what a difference means.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod aggregator;
mod ask;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
mod clock;
mod connection;
mod connection_slot;
mod engine;
mod error;
mod in_flight;
mod kernel;
mod network;
mod query_source;
mod recorder;
mod response_matcher;
mod result;
mod runtime;
mod sample;
#[cfg(test)]
mod simulation;
mod spec;
mod tls;
mod worker;

pub use ask::{AskError, ask};
pub use dnslab_settings::{HttpSettings, Mode, Quickack, ReceiveTime, Records, TlsVersions};
pub use dnslab_wire::{Method, TlsGroup};
pub use engine::{Member, Progress, check_sockets, run, run_together};
pub use error::LoadError;
pub use response_matcher::Expected;
pub use result::LoadResult;
pub use spec::LoadSpec;
pub use tls::{CertificateFault, TlsSettings, TlsSettingsError, Verification};
