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
    /// Longest time for which sends and receives are gathered, where that gathers anything: see
    /// [`LoadSpec::effective_horizon`]. Zero acts on each wake-up.
    pub horizon: Duration,
}

impl LoadSpec {
    /// The horizon as it is applied: all of it, or zero where next to nothing would be gathered and
    /// the wait would only add to the latency. That is a window of at most four queries for each
    /// worker, or a schedule with less than one arrival in a horizon. It follows from what was
    /// asked, not from how the server fares, so that it is the same for all variants that are
    /// asked the same.
    #[must_use]
    pub fn effective_horizon(&self) -> Duration {
        let workers = f64::from(self.workers.max(1));
        let gathers = match self.mode {
            Mode::Closed { outstanding } => {
                f64::from(self.clients) * f64::from(outstanding) / workers > 4.0
            }
            Mode::Open { rate_qps, .. } => rate_qps / workers * self.horizon.as_secs_f64() >= 1.0,
        };
        if gathers { self.horizon } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_is_applied_where_it_gathers() {
        let target = "127.0.0.1:53".parse().unwrap();
        let queries = QueryList::from_text(&b"a.example A\n"[..], "test", &Default::default());
        let queries = Arc::new(queries.unwrap());
        let horizon_us = |clients, workers, mode| {
            let spec = LoadSpec {
                target,
                transport: Transport::Udp,
                clients,
                mode,
                duration: Duration::from_secs(1),
                warm_up: Duration::ZERO,
                timeout: Duration::from_secs(1),
                workers,
                cpus: Vec::new(),
                queries: Arc::clone(&queries),
                selection: Selection::InOrder,
                seed: 1,
                expected: None,
                tls: None,
                horizon: Duration::from_micros(50),
            };
            spec.effective_horizon().as_micros()
        };
        let closed = |outstanding| Mode::Closed { outstanding };
        let open = |rate_qps| Mode::Open { rate_qps, pace: Pace::Constant };
        assert_eq!(horizon_us(4, 1, closed(1)), 0);
        assert_eq!(horizon_us(5, 1, closed(1)), 50);
        assert_eq!(horizon_us(8, 2, closed(1)), 0);
        assert_eq!(horizon_us(1, 1, open(19_999.0)), 0);
        assert_eq!(horizon_us(1, 1, open(20_000.0)), 50);
        assert_eq!(horizon_us(2, 2, open(39_999.0)), 0);
    }
}
