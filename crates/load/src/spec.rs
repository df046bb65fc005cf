//! A load, as it is asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dnslab_measure::LoadMode;
use dnslab_traffic::{Pace, QueryList, Selection};
use dnslab_wire::Transport;

use crate::{Expected, TlsSettings};

/// How queries are paced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// A window of outstanding queries per client; the next is sent when one ends.
    Closed {
        /// Outstanding queries per client, at least 1.
        outstanding: u32,
    },
    /// A schedule that does not wait for the server.
    Open {
        /// Queries per second over all clients, above 0.
        rate_qps: f64,
        /// How the due instants are spread.
        pace: Pace,
    },
}

impl Mode {
    /// The mode in the form of the record.
    #[must_use]
    pub fn facts(&self) -> LoadMode {
        match self {
            Self::Closed { outstanding } => LoadMode::Closed { outstanding: *outstanding },
            Self::Open { rate_qps, pace } => {
                LoadMode::Open { rate_qps: *rate_qps, pace: pace.to_string() }
            }
        }
    }
}

/// One load on one server.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// Where the queries go.
    pub target: SocketAddr,
    /// How they travel.
    pub transport: Transport,
    /// Simulated clients, each with its own socket; at least 1.
    pub clients: u32,
    /// Closed or open loop.
    pub mode: Mode,
    /// Length of the measured window.
    pub duration: Duration,
    /// Length of the warm-up before it, measured but kept apart.
    pub warm_up: Duration,
    /// A query without an answer for this long has timed out.
    pub timeout: Duration,
    /// Worker threads; at least 1, and no more than clients.
    pub workers: u32,
    /// CPUs to pin the workers to, in turn; empty leaves them to the scheduler.
    pub cpus: Vec<usize>,
    /// What is asked.
    pub queries: Arc<QueryList>,
    /// In which order.
    pub selection: Selection,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// What every answer must be, if the experiment states it.
    pub expected: Option<Expected>,
    /// TLS, for the encrypted transports.
    pub tls: Option<TlsSettings>,
    /// Longest time for which sends and receives are gathered; zero acts on each wake-up.
    pub horizon: Duration,
}
