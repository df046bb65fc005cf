//! What was found on the measuring side.

use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::evidence::Evidence;
use crate::objective::Threshold;

/// One thing that was found, with what its remedy depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "finding", rename_all = "kebab-case")]
pub enum Finding {
    /// A caveat about the measuring side.
    Caveat {
        /// Which.
        caveat: Caveat,
        /// Load workers.
        workers: u32,
    },
    /// The load generator was the bottleneck, and no caveat says so.
    Generator {
        /// The figures that name it.
        evidence: Vec<Evidence>,
        /// Load workers.
        workers: u32,
    },
    /// The window was too small to fill the server.
    SmallWindow {
        /// The figures that name it.
        evidence: Vec<Evidence>,
        /// Queries outstanding for each client.
        outstanding: u32,
    },
    /// A CPU that servers and load share was full.
    SharedCpu {
        /// The figures that name it.
        evidence: Vec<Evidence>,
    },
    /// One thread of a server was full while the server had CPUs left.
    ServerThread {
        /// The figures that name it.
        evidence: Vec<Evidence>,
    },
    /// Datagrams were lost on the way while neither side was busy.
    Network {
        /// The figures that name it.
        evidence: Vec<Evidence>,
    },
    /// The server's socket buffer was full although the server had CPU time left: bursts were longer than
    /// what the buffer holds.
    ServerSocket {
        /// The figures that name it.
        evidence: Vec<Evidence>,
        /// The program of the server, as in [`crate::server::ServerFacts::program`].
        program: String,
    },
    /// The server had next to no CPU time left, so the generator need not do more: a note, no doubt.
    ServerFull {
        /// CPU use of the server in [0, 1].
        busy_share: f64,
    },
    /// In a search for the capacity: queries left late, and counted from when they were sent the objective
    /// is met.
    LeftLate {
        /// What is not met.
        #[schemars(with = "String")]
        demand: Threshold,
        /// The figure counted from when queries were sent, nanoseconds.
        from_sending_ns: f64,
        /// 0.99 quantile of the send lag, nanoseconds.
        lag_p99_ns: u64,
    },
}

impl Finding {
    /// True if the two say the same, with other figures.
    #[must_use]
    pub fn is_same_kind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Caveat { caveat, .. }, Self::Caveat { caveat: other, .. }) => {
                caveat.is_same_kind(other)
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}
