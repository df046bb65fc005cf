//! The load engine: threads, the clock and epoll around the workers of `dnslab_client`.
//!
//! [`run_shares`] applies what this host has of several loads on one timeline, and [`run_elsewhere`] puts together what
//! hosts tell of theirs: a [`LoadResult`] for each load. [`run_together`] is both for whoever has all workers, and [`run`] that
//! for one load. [`ask()`] is one query as a client of a load sends it, for whoever asks before the load.
//!
//! Modules, in the order of reading:
//!
//! - `engine`: checks a [`Job`], starts one thread for each worker, waits until all are ready, and adds up.
//! - `kernel`: the `Runtime` of the workers: sockets by `dnslab_socket` and the standard library. `clock`: the
//!   timeline.
//! - `aggregator`: combines the intervals of the workers while they run, and tells the observer. `progress`: what it
//!   tells. `pin`: the CPUs of a thread.
//! - `result`, `facts`: the sums at the end, and the load as a record has it.
//! - `read_ahead`: brings the queries of a capture or a population to the workers, from a thread of its own.
//! - `told`: writes what each query was told, in a thread of its own. `network`: what the host dropped.
//! - `ask`, `error`: one query before a load, and why a load cannot be applied.
//!
//! What always holds:
//!
//! - Invariant: workers share nothing but the read-only job and the flag to stop. No observer and no writer can hold a
//!   worker up.
//! - Invariant: only `clock` reads a clock.
//! - Invariant: no process is started here, and nothing is decided about what a difference means.
//! - Invariant: it knows no hosts. Sockets are opened in the network namespace of the thread that calls.

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod aggregator;
mod ask;
mod clock;
mod engine;
mod error;
mod facts;
mod kernel;
mod network;
mod pin;
mod progress;
mod read_ahead;
mod result;
mod told;

pub use aggregator::{Relay, Reports};
pub use ask::{AskError, Asker, Refusal, ask};
pub use dnslab_client::connection::{ConnectionEnd, TlsRefusal};
pub use dnslab_client::{
    CertificateFault, ClientTraffic, Endpoint, Expected, Fed, Feed, IntervalRecord, Job, Phases,
    PlayedClients, Share, TlsSettings, TlsSettingsError, Verification, sockets,
};
pub use engine::{Member, check_sockets, run, run_elsewhere, run_shares, run_together};
pub use error::LoadError;
pub use facts::facts;
pub use progress::Progress;
pub use read_ahead::read_ahead;
pub use result::LoadResult;
