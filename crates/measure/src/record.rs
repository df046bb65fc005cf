//! The record of one run.

use std::time::{Duration, UNIX_EPOCH};

use dnslab_settings::{Mode, ServerKind};
use serde::{Deserialize, Serialize};

use crate::caveat::pinned_cpus;
use crate::statistics::Metric;
use crate::{
    Bottleneck, Caveat, ChainPart, Imported, InvalidReason, LatencyQuantiles, Measured,
    TestbedFacts, latency_floor_ns,
};

/// Version of the record's form on disk. It rises with every change that an older reader would misunderstand. After the
/// first release readers go on reading all older ones; what states before it wrote is read by none.
pub const RECORD_FORMAT: u32 = 5;

/// Everything that one run of one variant left behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`RECORD_FORMAT`] at the time of writing.
    pub format: u32,
    /// Name of the variant.
    pub variant: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Place in the order of execution, from 0.
    pub position: u32,
    /// When the run began, RFC 3339 in UTC. Of an imported run perhaps in the local time of its machine, without
    /// a zone, or empty.
    pub started: String,
    /// Whether the run counts.
    pub status: RunStatus,
    /// The load as it was applied.
    pub load: LoadFacts,
    /// The server as it ran.
    pub server: ServerFacts,
    /// The servers behind it, in the order of the chain; none in most runs.
    #[serde(default)]
    pub chain: Vec<ChainPart>,
    /// Hosts and links; `None` where all is on one host, and in records that do not have it.
    #[serde(default)]
    pub testbed: Option<TestbedFacts>,
    /// What was measured; `None` if the run failed before the load began.
    pub measured: Option<Measured>,
    /// What was measured at a rate that all variants were asked alike; `None` without such a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_load: Option<CommonLoad>,
    /// The experiment has a common load, and this run has none that counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_common_load: bool,
    /// Reasons to doubt.
    pub caveats: Vec<Caveat>,
    /// What bounded the answered rate.
    pub bottleneck: Bottleneck,
    /// Where the figures come from, if dnslab did not measure them; `None` if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// The second load of a run: an open loop at one rate that all variants are asked alike, after the
/// closed loop that asks for as much as there is. Latencies are compared here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommonLoad {
    /// The load as it was applied.
    pub load: LoadFacts,
    /// What was measured.
    pub measured: Measured,
    /// Reasons to doubt.
    pub caveats: Vec<Caveat>,
    /// What bounded the answered rate.
    pub bottleneck: Bottleneck,
}

/// dnsperf measures in whole microseconds.
const IMPORTED_STEP_NS: f64 = 1_000.0;

/// Width of a bucket of dnsperf's histograms, relative to its place.
const IMPORTED_RESOLUTION: f64 = 1.0 / 32.0;

impl RunRecord {
    /// True if it counts.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.status == RunStatus::Valid
    }

    /// What latencies and losses are compared of: the common load, if there was one. `None` if there
    /// should have been one: other runs have their latencies from it.
    #[must_use]
    pub fn compared_times(&self) -> Option<&Measured> {
        if self.lacks_common_load {
            return None;
        }
        let common = self.common_load.as_ref().map(|common| &common.measured);
        common.or(self.measured.as_ref())
    }

    /// The quantiles of the latencies that are compared ([`RunRecord::compared_times`]).
    #[must_use]
    pub fn latency_quantiles(&self) -> Option<LatencyQuantiles<'_>> {
        self.quantiles_of(self.compared_times()?)
    }

    /// The quantiles of the main load's latencies, whatever the common load was.
    #[must_use]
    pub fn main_latency_quantiles(&self) -> Option<LatencyQuantiles<'_>> {
        self.quantiles_of(self.measured.as_ref()?)
    }

    fn quantiles_of<'a>(&self, measured: &'a Measured) -> Option<LatencyQuantiles<'a>> {
        let max_wait_ns = self.load.max_wait_ns();
        // What another tool counted are the answered queries alone.
        let lost_share = match &self.imported {
            Some(_) => measured.counters.outcomes.lost_share(),
            None => 0.0,
        };
        Some(LatencyQuantiles::of_answered(&measured.latency, max_wait_ns, lost_share))
    }

    /// The reasons to doubt of both loads; none twice.
    #[must_use]
    pub fn all_caveats(&self) -> Vec<Caveat> {
        let mut all = self.caveats.clone();
        for caveat in self.common_load.iter().flat_map(|common| &common.caveats) {
            if !all.contains(caveat) {
                all.push(caveat.clone());
            }
        }
        all
    }

    /// When the run began, nanoseconds since 1970 in UTC; `None` of an imported run whose zone is not known.
    #[must_use]
    pub fn started_ns(&self) -> Option<u64> {
        let at = humantime::parse_rfc3339(&self.started).ok()?;
        u64::try_from(at.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
    }

    /// The mean of the latencies that are compared, nanoseconds; of an imported run as its tool computed it.
    #[must_use]
    pub fn latency_mean_ns(&self) -> Option<f64> {
        match &self.imported {
            Some(imported) => Some(imported.latency?.mean_ns),
            None => self.compared_times()?.latency.mean_ns(),
        }
    }

    /// By how much the engine itself may have moved a latency that is compared by this metric, nanoseconds
    /// ([`latency_floor_ns`]); of an imported run, what its output cannot tell apart. `None` for what is no
    /// latency, and if none was measured.
    #[must_use]
    pub fn latency_floor_ns(&self, metric: Metric) -> Option<f64> {
        let compared = self.compared_times().filter(|_| metric.is_latency())?;
        if self.imported.is_some() {
            // The tool computes the mean from each latency, and quantiles from its buckets.
            let of_bucket = metric.quantile().and_then(|quantile| {
                Some(IMPORTED_RESOLUTION * self.latency_quantiles()?.at(quantile)?.at_least())
            });
            return Some(IMPORTED_STEP_NS + of_bucket.unwrap_or(0.0));
        }
        let load = self.common_load.as_ref().map_or(&self.load, |common| &common.load);
        Some(latency_floor_ns(load, compared, metric))
    }

    /// Memory is charged to a control group 64 pages at once for each CPU (`MEMCG_CHARGE_BATCH`, mm/memcontrol.c of
    /// Linux), so two equal servers may differ by so many octets.
    pub(crate) fn memory_step_octets(&self) -> f64 {
        const AT_ONCE: usize = 64 * 4_096;
        let behind = self.watched_behind().map(|part| part.server.cpus.len());
        let cpus: usize = behind.chain([self.server.cpus.len()]).map(|cpus| cpus.max(1)).sum();
        (AT_ONCE * cpus) as f64
    }

    /// The largest memory of the servers, octets: the sum over the server under test and those behind it, each at its
    /// largest. An embedded upstream stands for servers of others and is left out. `None` if one of them was not
    /// watched. Of a server that ran before, [`crate::MemoryLog`] says whether that is the run's own.
    #[must_use]
    pub fn peak_memory_octets(&self) -> Option<u64> {
        let own = self.measured.as_ref()?.resources.peak_memory_octets()?;
        self.watched_behind()
            .map(|part| part.resources.peak_memory_octets())
            .try_fold(own, |sum, octets| Some(sum + octets?))
    }

    /// The servers behind the one under test whose use counts as that of the service.
    fn watched_behind(&self) -> impl Iterator<Item = &ChainPart> {
        self.chain.iter().filter(|part| part.server.kind != "embedded")
    }

    /// Share of the time of the CPUs of servers and load that the hypervisor kept in the measured window of the
    /// load, or of the common load where it kept more, in [0, 1], if all that it kept was theirs; `None` where the
    /// server was not watched, or somebody was not pinned.
    #[must_use]
    pub fn stolen_share(&self) -> Option<f64> {
        let cpus = pinned_cpus(&self.load, &self.server, &self.chain)?.len();
        let common = self.common_load.as_ref().map(|common| &common.measured);
        let loads = self.measured.iter().chain(common);
        loads.filter_map(|measured| measured.stolen_share(cpus)).reduce(f64::max)
    }

    /// CPU time for each answered query over the measured window, nanoseconds: the sum over the
    /// server under test and the servers behind it. An embedded upstream stands for servers of
    /// others and is left out. `None` if one of them was not watched.
    #[must_use]
    pub fn servers_cpu_per_query_ns(&self) -> Option<f64> {
        let measured = self.measured.as_ref()?;
        let (from, to) = measured.window();
        let answered = measured.answered();
        let own = measured.server_cpu_per_query_ns()?;
        self.watched_behind()
            .map(|part| part.resources.cpu_between_ns(from, to))
            .try_fold(own, |sum, cpu_ns| Some(sum + cpu_ns? as f64 / answered as f64))
    }
}

/// Whether a run counts. Only valid runs enter the statistics; the others are kept and shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum RunStatus {
    /// It counts.
    Valid,
    /// It was measured, but not as it was asked for, or the answers were wrong.
    Invalid {
        /// Why.
        reason: InvalidReason,
    },
    /// It could not be measured to its end.
    Failed {
        /// Why.
        reason: String,
        /// Last lines of the server's log.
        log_tail: Vec<String>,
    },
}

/// How queries were paced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum LoadMode {
    /// A window of outstanding queries per client; the next is sent when one ends.
    Closed {
        /// Outstanding queries per client.
        outstanding: u32,
    },
    /// A schedule that does not wait for the server.
    Open {
        /// Intended queries per second over all clients.
        rate_qps: f64,
        /// `constant` or `poisson`, or [`LoadMode::CLIENTS`].
        pace: String,
    },
}

impl LoadMode {
    /// The pace of clients with queries of their own.
    pub const CLIENTS: &str = "each client's own";

    /// How a load with this warm-up and this measured window was paced: the intended rate is that of the
    /// window.
    #[must_use]
    pub fn of(mode: &Mode, warm_up: Duration, duration: Duration) -> Self {
        match mode {
            Mode::Closed { outstanding } => Self::Closed { outstanding: *outstanding },
            Mode::Open { rate, pace } => Self::Open {
                rate_qps: rate.mean_within(warm_up, duration),
                pace: match rate.is_constant() {
                    true => pace.to_string(),
                    false => format!("{pace}, {rate}"),
                },
            },
            // The rate is known when the clients are.
            Mode::Clients => Self::Open { rate_qps: 0.0, pace: Self::CLIENTS.to_owned() },
        }
    }
}

/// The load as it was applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// `udp`, `tcp`, `dot`, `doh2`, `doq` or `doh3`.
    pub transport: String,
    /// The shares of the clients that used other transports, as `load.mix` has them; empty if all used one.
    #[serde(default)]
    pub mix: String,
    /// `capture` or `population` if clients of one were played; empty if not, and in records that do not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub played: String,
    /// Address and port that the queries went to.
    pub target: String,
    /// Addresses of the further servers that the clients know; empty in records that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<String>,
    /// Simulated clients, each with its own socket.
    pub clients: u32,
    /// Closed or open loop.
    pub mode: LoadMode,
    /// Length of the measured window, nanoseconds.
    pub duration_ns: u64,
    /// Length of the warm-up before it, nanoseconds.
    pub warm_up_ns: u64,
    /// A query without an answer for this long has timed out, nanoseconds.
    pub timeout_ns: u64,
    /// How long a client waits in all that asks more than once, nanoseconds; `None` for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ns: Option<u64>,
    /// Worker threads.
    pub workers: u32,
    /// CPUs that the workers were pinned to, one per worker; empty if not pinned.
    pub cpus: Vec<usize>,
    /// Where the queries came from, as a sentence.
    pub queries: String,
    /// Seed of everything drawn at random.
    pub seed: u64,
    /// Which system calls carried the datagrams or octets.
    pub send_path: String,
    /// Longest time for which sends and receives wait for others, to share a system call; nanoseconds.
    pub batch_delay_ns: u64,
    /// How the clients behave (connections, queries for each, idle time, truncated answers), as a
    /// sentence; empty in records that do not have it.
    #[serde(default)]
    pub behaviour: String,
    /// What TLS was to do; `None` without encryption and in records that do not have it.
    #[serde(default)]
    pub tls: Option<TlsFacts>,
    /// `GET` or `POST` (RFC 8484, section 4.1); `None` without HTTP.
    #[serde(default)]
    pub http_method: Option<String>,
    /// What the clients add to the queries (cookies, client subnets, signatures), as a sentence; empty
    /// without any. What all queries have alike stands in `queries`.
    #[serde(default)]
    pub edns: String,
    /// Where the receive time of an answer comes from: `kernel` (a time stamp of the packet) or
    /// `user` (a clock read after the system call); empty in records that do not have it.
    #[serde(default)]
    pub receive_time: String,
    /// Queries after which the load ended before its time was over; `None` without a bound and in records
    /// that do not have it.
    #[serde(default)]
    pub max_queries: Option<u64>,
    /// Source addresses of the clients as they were asked for; `None` if the kernel chose.
    #[serde(default)]
    pub sources: Option<String>,
    /// Whether the clients' kernel acknowledged what came over TCP as soon as it was read
    /// (`TCP_QUICKACK`, tcp(7)); false in records that do not have it.
    #[serde(default)]
    pub quickack: bool,
}

/// What TLS was to do; what it agreed on with the server is in [`crate::Tls`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFacts {
    /// Versions that were offered, e.g. `TLSv1.2`, `TLSv1.3`.
    pub versions: Vec<String>,
    /// Whether a client came back with the ticket of its last session (RFC 8446, section 2.2).
    pub resumption: bool,
    /// Whether a client that came back sent its first queries as early data (RFC 8446, section 2.3).
    pub early_data: bool,
    /// Key exchange groups that were offered, the preferred one first, in the words of IANA; empty in
    /// records that do not have it.
    #[serde(default)]
    pub groups: Vec<String>,
    /// DNS over TLS: `per-query` for one query in each TLS record, `shared` for as many as were sent
    /// together; empty for other transports and in records that do not have it.
    #[serde(default)]
    pub records: String,
}

impl LoadFacts {
    /// What the latency of a query reaches that is lost, nanoseconds; 0 if it is not known.
    #[must_use]
    pub fn max_wait_ns(&self) -> u64 {
        self.patience_ns.unwrap_or(self.timeout_ns)
    }

    /// Queries that a closed loop keeps outstanding over all clients; `None` for an open loop.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        match self.mode {
            LoadMode::Closed { outstanding } => {
                Some(u64::from(self.clients) * u64::from(outstanding))
            }
            LoadMode::Open { .. } => None,
        }
    }
}

/// The server as it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `embedded`, `bind`, `knot`, `nsd` or `external`.
    pub kind: String,
    /// What the server says of its version; empty when unknown.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Path of the configuration inside the run's folder, if one was written.
    pub configuration: Option<String>,
    /// Threads that it was configured for, of an external server all that it has; 0 when unknown.
    pub threads: u32,
    /// CPUs that it was pinned to, of an external server those that it may use; empty if not pinned, or
    /// not known.
    pub cpus: Vec<usize>,
    /// CPUs that are threads of the same cores as those, and are not among them; empty in records that
    /// do not have it.
    #[serde(default)]
    pub core_siblings: Vec<usize>,
    /// What the adapter changed from the server's defaults and why, one sentence each.
    pub notes: Vec<String>,
    /// Decides every draw of the programs of the embedded server: the same for all variants of a
    /// repetition. `None` for other servers, which draw for themselves, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Library that it has TLS from, with the version: `OpenSSL 3.0.17`; empty without encryption, when
    /// unknown, and in records that do not have it.
    #[serde(default)]
    pub tls_library: String,
    /// Name of the user that it ran as; empty when unknown, and in records that do not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Of a server that ran before, which process it was: its number and when it started. Empty for others, when
    /// unknown, and in records that do not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
}

impl ServerFacts {
    /// Kind and version as one text: `bind 9.18.33`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.kind, self.version).trim().to_owned()
    }

    /// Whether somebody else started it.
    #[must_use]
    pub fn is_external(&self) -> bool {
        self.kind == "external"
    }

    /// Its kind; of one that dnslab did not start the kind of its program, where that is known.
    #[must_use]
    pub fn program(&self) -> &str {
        if !self.is_external() {
            return &self.kind;
        }
        let path = self.command.first().map_or("", String::as_str);
        let program = path.rsplit('/').next().unwrap_or(path);
        let is_it = |kind: &ServerKind| kind.profile().program == program;
        let others = ServerKind::ALL.into_iter().filter(|kind| *kind != ServerKind::Embedded);
        others.into_iter().find(is_it).map_or("external", ServerKind::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_server_is_known_by_its_program() {
        let of = |kind: &str, program: &str| ServerFacts {
            kind: kind.to_owned(),
            command: vec![program.to_owned()],
            ..ServerFacts::default()
        };
        assert_eq!(of("external", "/usr/sbin/named").program(), "bind");
        assert_eq!(of("external", "unbound").program(), "unbound");
        assert_eq!(of("external", "python3").program(), "external");
        assert_eq!(of("nsd", "/usr/sbin/named").program(), "nsd");
        assert_eq!(ServerFacts { command: Vec::new(), ..of("external", "") }.program(), "external");
    }
}
