//! What a record holds that was made from the output of another load generator.

use serde::{Deserialize, Serialize};

/// Where the figures of a run come from that dnslab did not measure, and what only the other tool tells. What
/// it does not tell is 0 or empty in the rest of the record, and not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// Name of the tool: `dnsperf`.
    pub generator: String,
    /// Its version; empty when unknown.
    #[serde(default)]
    pub version: String,
    /// The file that was read, as it was named.
    pub file: String,
    /// The command line of the tool, without secrets; empty when unknown.
    #[serde(default)]
    pub command: Vec<String>,
    /// Why its load ended, in the words of the tool: `time limit`, `end of file`; empty when unknown.
    #[serde(default)]
    pub ended: String,
    /// Queries outstanding over all clients, at most; `None` when unknown.
    #[serde(default)]
    pub window: Option<u64>,
    /// Bound on the rate of a closed loop, queries per second; `None` without one, and when unknown.
    #[serde(default)]
    pub max_qps: Option<f64>,
    /// Queries that were sent and have no outcome, because the tool was interrupted.
    #[serde(default)]
    pub interrupted: u64,
    /// Latencies of the answered queries, as the tool computed them; `None` without an answer.
    #[serde(default)]
    pub latency: Option<ImportedLatency>,
    /// Whether the intervals have what was sent and lost, and response codes; else they have answers alone.
    #[serde(default)]
    pub has_whole_intervals: bool,
    /// The connections, as the tool counts them; `None` over UDP and when unknown.
    #[serde(default)]
    pub connections: Option<ImportedConnections>,
}

/// Latencies as another tool computed them, nanoseconds. Queries without an answer are in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedLatency {
    /// Mean.
    pub mean_ns: f64,
    /// Smallest; `None` if the tool does not say.
    #[serde(default)]
    pub min_ns: Option<u64>,
    /// Largest; `None` if the tool does not say.
    #[serde(default)]
    pub max_ns: Option<u64>,
    /// Standard deviation; `None` with one answer, and if the tool does not say.
    #[serde(default)]
    pub stddev_ns: Option<f64>,
}

/// Connections as another tool counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedConnections {
    /// Attempts; `None` if the tool counts reconnections alone.
    #[serde(default)]
    pub attempted: Option<u64>,
    /// Attempts that succeeded.
    #[serde(default)]
    pub opened: Option<u64>,
    /// Connections made after the first of each client; `None` if the tool counts attempts.
    #[serde(default)]
    pub reconnected: Option<u64>,
    /// How long a connection took; `None` if the tool does not say.
    #[serde(default)]
    pub latency: Option<ImportedLatency>,
}

impl Imported {
    /// Name and version of the tool: `dnsperf 2.10.0`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.generator, self.version).trim().to_owned()
    }
}
