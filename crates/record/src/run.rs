//! The record of one run.

use std::time::UNIX_EPOCH;

use dnslab_settings::Metric;
use serde::{Deserialize, Serialize};

use crate::bottleneck::Bottleneck;
use crate::caveat::Caveat;
use crate::imported::Imported;
use crate::indicator::Indicator;
use crate::invalid::InvalidReason;
use crate::load::LoadFacts;
use crate::measured::Measured;
use crate::observation::Observation;
use crate::quantiles::{LatencyQuantiles, RunFigure};
use crate::server::ServerFacts;
use crate::testbed::TestbedFacts;
use crate::watched::Watched;

/// Version of the record's form on disk. It rises with every change that an older reader would misunderstand. After the
/// first release readers go on reading all older ones.
pub const RECORD_FORMAT: u32 = 1;

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
    /// Hosts and links; `None` where all is on one host.
    #[serde(default)]
    pub testbed: Option<TestbedFacts>,
    /// What the load measured; `None` if the run failed before the load began.
    pub measured: Option<Measured>,
    /// What was seen of the servers meanwhile.
    #[serde(default)]
    pub watched: Watched,
    /// What was measured at a rate that all variants were asked alike; `None` without such a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_load: Option<CommonLoad>,
    /// The experiment has a common load, and this run has none that counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_common_load: bool,
    /// What was measured at shares of the rate that the variant answered in this run's main load, the smallest first;
    /// those that count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub share_loads: Vec<ShareLoad>,
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
    /// What the load measured.
    pub measured: Measured,
    /// What was seen of the servers meanwhile.
    #[serde(default)]
    pub watched: Watched,
    /// Reasons to doubt.
    pub caveats: Vec<Caveat>,
    /// What bounded the answered rate.
    pub bottleneck: Bottleneck,
}

/// A load at a share of the variant's own rate: an open loop after the closed one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareLoad {
    /// Offered load as a share of what the variant answered in the main load of this run, in (0, 1).
    pub share: f64,
    /// The load as it was applied, and what was seen of it.
    pub load: CommonLoad,
}

impl CommonLoad {
    /// What was seen of it, on this server.
    #[must_use]
    pub fn observation<'a>(&'a self, server: &'a ServerFacts) -> Observation<'a> {
        let Self { load, measured, watched, .. } = self;
        Observation { load, server, measured, watched }
    }

    /// A figure of this load alone, on this server, in the unit of [`Metric::column`]: a quantile of the latency, its
    /// mean, CPU time or a share of the queries. `None` if it was not measured.
    #[must_use]
    pub fn figure(&self, metric: Metric, server: &ServerFacts) -> Option<RunFigure> {
        if let Some(quantile) = metric.quantile() {
            let max_wait_ns = self.load.max_wait_ns();
            let latency = &self.measured.latency;
            return LatencyQuantiles::of_all(latency, max_wait_ns).at(quantile);
        }
        let run = self.observation(server);
        let value = match metric {
            Metric::ServerCpuPerQuery => run.servers_cpu_per_query_ns(),
            _ => run.indicator(Indicator::Metric(metric)),
        };
        value.filter(|value| value.is_finite()).map(RunFigure::Measured)
    }
}

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

    /// The open loops after the main load.
    pub fn open_loads(&self) -> impl Iterator<Item = &CommonLoad> {
        self.common_load.iter().chain(self.share_loads.iter().map(|share| &share.load))
    }

    /// The reasons to doubt of all loads; none twice.
    #[must_use]
    pub fn all_caveats(&self) -> Vec<Caveat> {
        let mut all = self.caveats.clone();
        for caveat in self.open_loads().flat_map(|open| &open.caveats) {
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

    /// The main load and what was seen of it; `None` if nothing was measured.
    #[must_use]
    pub fn observation(&self) -> Option<Observation<'_>> {
        let Self { load, server, watched, .. } = self;
        Some(Observation { load, server, measured: self.measured.as_ref()?, watched })
    }

    /// The load of [`RunRecord::compared_times`] and what was seen of it.
    #[must_use]
    pub fn compared_observation(&self) -> Option<Observation<'_>> {
        match &self.common_load {
            _ if self.lacks_common_load => None,
            None => self.observation(),
            Some(common) => Some(common.observation(&self.server)),
        }
    }

    /// The largest memory of the servers, octets: the sum over the server under test and those behind it, each at its
    /// largest ([`Watched::behind`]). `None` if one of them was not watched. Of a server that ran before, it may have
    /// been needed before the run.
    #[must_use]
    pub fn peak_memory_octets(&self) -> Option<u64> {
        self.measured.as_ref()?;
        if self.watched.lacks_servers_behind(&self.server) {
            return None;
        }
        let own = self.watched.resources.peak_memory_octets()?;
        self.watched
            .behind()
            .map(|part| part.resources.peak_memory_octets())
            .try_fold(own, |sum, octets| Some(sum + octets?))
    }

    /// Share of the time of the CPUs of servers and load that the hypervisor kept in the measured window of the
    /// load, or of the common load where it kept more, in [0, 1], if all that it kept was theirs; `None` where the
    /// server was not watched, or somebody was not pinned.
    #[must_use]
    pub fn stolen_share(&self) -> Option<f64> {
        let loads = [self.observation(), self.compared_observation()];
        loads.iter().flatten().filter_map(|load| Some(load.stolen_share(None)?.0)).reduce(f64::max)
    }

    /// CPU time for each answered query over the measured window, nanoseconds: the sum over the
    /// server under test and the servers behind it ([`Watched::behind`]). `None` if one of them was not watched.
    #[must_use]
    pub fn servers_cpu_per_query_ns(&self) -> Option<f64> {
        self.observation()?.servers_cpu_per_query_ns()
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
