//! What all workers of a server have in common, and how they are stopped.

use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::published::CountersHandle;
use super::quic::QuicSettings;
use super::tls::TlsConfigs;
use crate::content::Content;

/// Stops a running server, from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    pub(super) state: Arc<StopState>,
}

#[derive(Debug)]
pub(super) struct StopState {
    pub(super) is_set: AtomicBool,
    /// An eventfd that every worker watches and nobody reads: one write wakes all.
    pub(super) wake: OwnedFd,
}

impl StopState {
    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

impl StopHandle {
    /// Makes [`super::Server::run`] return soon. It stores a flag and writes eight octets, so a signal handler may
    /// call it (signal-safety(7)).
    pub fn stop(&self) {
        self.state.is_set.store(true, Ordering::Relaxed);
        // Fails only when the counter is full, and then everybody is awake already.
        let _ = rustix::io::write(&self.state.wake, &1_u64.to_ne_bytes());
    }
}

/// What all workers have in common.
pub(super) struct Shared {
    pub(super) content: Content,
    /// With the ticket keys, so that a client can resume at another worker.
    pub(super) tls: TlsConfigs,
    pub(super) http_path: String,
    pub(super) pack_answers: bool,
    pub(super) quic: QuicSettings,
    pub(super) idle_timeout: Duration,
    /// Each worker's part of [`super::Config::max_connections`].
    pub(super) connections_per_worker: usize,
    pub(super) memory_per_worker: usize,
    pub(super) queries_per_connection: Option<NonZeroU64>,
    /// Where workers leave copies of their counters.
    pub(super) published: CountersHandle,
    pub(super) stop: Arc<StopState>,
    /// When the first query came, in nanoseconds of the monotonic clock; only if a stall is programmed.
    pub(super) first_query_ns: OnceLock<u64>,
}
