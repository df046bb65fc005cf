//! The load engine: threads, the clock and epoll around the workers of `dnslab-client`.
//!
//! The principal function is [`run`]: a [`Job`] goes in, a [`LoadResult`] comes out. Each worker has an OS
//! thread of its own; workers share nothing. The sums of outcomes are asserted at the end.
//!
//! **What it never does**: start a process, or decide what a difference means.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod aggregator;
mod ask;
mod clock;
mod engine;
mod error;
mod facts;
mod kernel;
mod network;
mod read_ahead;
mod result;
mod told;

pub use ask::{AskError, Asker, Refusal, ask};
pub use dnslab_client::connection::{ConnectionEnd, TlsRefusal};
pub use dnslab_client::{
    CertificateFault, ClientTraffic, Endpoint, Expected, Fed, Feed, Job, TlsSettings,
    TlsSettingsError, Verification, sockets,
};
pub use engine::{Member, Progress, check_sockets, run, run_together};
pub use error::LoadError;
pub use facts::facts;
pub use read_ahead::read_ahead;
pub use result::LoadResult;
