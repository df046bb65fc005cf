//! The figures that name a bottleneck.

use serde::{Deserialize, Serialize};

use crate::resources::ThreadShare;

/// A figure that names a bottleneck, or a few that belong together. Rates are in queries per second, shares
/// in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "figure", rename_all = "kebab-case")]
pub enum Evidence {
    /// An open loop sent what was intended, and got its answers.
    RateMet {
        /// Intended rate.
        intended_qps: f64,
        /// Rate of the queries that were sent.
        offered_qps: f64,
        /// Rate of the answers.
        answered_qps: f64,
    },
    /// An open loop sent less than was intended.
    RateMissed {
        /// Intended rate.
        intended_qps: f64,
        /// Rate of the queries that were sent.
        offered_qps: f64,
        /// Median send lag, nanoseconds; 0 if nothing was sent.
        send_lag_p50_ns: u64,
    },
    /// An open loop sent less than was intended, because its connections or their buffers were full.
    NotTaken {
        /// Intended rate.
        intended_qps: f64,
        /// Rate of the queries that were sent.
        offered_qps: f64,
    },
    /// How much of the intended rate was answered.
    Answered {
        /// Intended rate.
        intended_qps: f64,
        /// Rate of the answers.
        answered_qps: f64,
    },
    /// CPU use of the servers, the one that matters most first.
    Servers {
        /// Each of them.
        servers: Vec<CpuUse>,
    },
    /// CPU use of servers that are pinned to CPUs in common.
    ServersTogether {
        /// Share of those CPUs.
        share: f64,
    },
    /// CPU use of servers and load workers that are pinned to CPUs in common.
    ServersAndLoad {
        /// Share of those CPUs.
        share: f64,
    },
    /// One thread of a server, and the next busiest of that server.
    ServerThread {
        /// Role of the server in the chain.
        role: String,
        /// The busiest thread.
        thread: ThreadShare,
        /// The one after it, if there is one.
        next: Option<ThreadShare>,
    },
    /// CPU use of the busiest load worker.
    BusiestWorker {
        /// Share of one CPU.
        share: f64,
    },
    /// Other programs used the CPUs of a server, and the server waited for them.
    ServerHeldUp {
        /// Role of the server in the chain.
        role: String,
        /// Of the time for which its threads could run, the share for which they had no CPU; `None` where that
        /// is not known.
        waited_share: Option<f64>,
        /// Share of its CPUs that others used.
        others_share: f64,
    },
    /// A control group of a side used up its CPU quota.
    CpuLimit {
        /// Role of the server in the chain, `load generator`, or `servers and load generator`.
        role: String,
        /// The quota in CPUs.
        cpus: f64,
        /// Share of the periods in which the quota was used up.
        throttled_share: f64,
    },
    /// A load worker was on its CPU or waited for it.
    WorkerWaited {
        /// Share of the time.
        share: f64,
    },
    /// The generator's own sockets dropped answers.
    GeneratorDrops {
        /// How many.
        answers: u64,
    },
    /// Connections waited for their turn in the generator.
    ConnectionsHeld {
        /// Share of the time.
        share: f64,
    },
    /// The server turned connections away.
    TurnedAway {
        /// Attempts to connect.
        attempted: u64,
        /// Those that were refused, reset or not taken in time, or whose connection ended before any answer.
        refused: u64,
        /// Others that waited for a second or longer, while the queue of a listening socket was full.
        waited: u64,
    },
    /// Queries by UDP that were never answered.
    Lost {
        /// Share of the due queries.
        share: f64,
        /// Datagrams that the server's full sockets dropped.
        server_drops: u64,
    },
    /// Queries were lost on the loopback interface, which loses none: the server did not answer them.
    LostOnLoopback,
    /// Queries that were answered after their time-out.
    Late {
        /// Share of the due queries.
        share: f64,
    },
    /// Both sides of Little's law.
    InFlight {
        /// Rate of the answers.
        answered_qps: f64,
        /// Mean latency, nanoseconds; 0 if no query ended.
        mean_latency_ns: f64,
        /// Queries that a closed loop keeps outstanding over all clients.
        window: f64,
    },
}

/// What a server used of its CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuUse {
    /// [`crate::testbed::UNDER_TEST`], or the role of the [`crate::testbed::ChainPart`].
    pub role: String,
    /// Share in [0, 1] of the CPUs that it was given; `None` if it was not watched.
    pub busy_share: Option<f64>,
    /// How many CPUs it was given.
    pub cpus: usize,
}
