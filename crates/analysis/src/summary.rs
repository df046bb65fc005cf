//! The figures of an experiment, computed from its records alone.

use std::collections::BTreeMap;

use dnslab_figures::{AttemptCounts, Histogram, NetworkDrops, Outcomes, Pacing};
use dnslab_record::{AnswerComparison, Bottleneck, LoadMode, Metric, TimeOuts};
use serde::{Deserialize, Serialize};

use crate::agreement::Agreement;
use crate::cache_counts::CacheCounts;
use crate::chain::ServerFigures;
use crate::connections::ConnectionFigures;
use crate::cost::CostSummary;
use crate::event::EventFigures;
use crate::not_compared::NotCompared;
use crate::pods::ServicePods;
use crate::published::BesidePublished;
use crate::ruling::{LimitRuling, Ruling};
use crate::scaling::ScalingLine;
use crate::self_check::VariantSelfCheck;
use crate::shares::ShareSummary;
use crate::statistics::{Comparison, Estimate};
use crate::sweep::SweepLine;
use crate::variant_caveat::VariantCaveat;
use crate::windows::WindowSummary;

/// The figures of one variant over its valid runs; none of them by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VariantSummary {
    /// Its name.
    pub name: String,
    /// Why it could not run here; `None` if it could.
    pub skipped: Option<String>,
    /// Runs that count.
    pub valid_runs: u32,
    /// Runs that were invalid or failed.
    pub other_runs: u32,
    /// Closed or open loop, as in the first of all its runs; `None` if none has ended.
    pub mode: Option<LoadMode>,
    /// Rate of the common load, queries per second; `None` if there was none. Latencies and outcomes
    /// are then those of that load, rates and CPU time those of the closed loop before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_rate_qps: Option<f64>,
    /// How the answered rate changed from the first run to the last, relative to their mean; `None` if
    /// it may well have stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
    /// Mean over the runs, with an interval, of each metric that could be measured and is the time-out in no run.
    /// An answered rate that is a lower bound has no interval.
    pub metrics: BTreeMap<Metric, Estimate>,
    /// Why some of these figures are compared with none; `None` if all are the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<NotCompared>,
    /// Mean over the runs of the 0.9 quantile of the latency, nanoseconds; `None` if it is the time-out in one.
    #[serde(default)]
    pub p90_ns: Option<f64>,
    /// Mean over the runs of the 0.999 quantile of the latency, nanoseconds; `None` if it is the time-out in one.
    pub p999_ns: Option<f64>,
    /// Quantiles of the latency (`p50`, `p90`, `p95`, `p99`, `p99.9`) that are the time-out in some run. Such a
    /// quantile has no mean and is not compared: the runs that are left would be those that went well.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub time_outs: BTreeMap<String, TimeOuts>,
    /// What dnslab itself may add to each latency, nanoseconds: a difference below it is never certain
    /// ([`crate::latency_floor::latency_floor_of_runs_ns`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latency_floors_ns: BTreeMap<Metric, f64>,
    /// Sum of the outcomes over the runs, of the common load where there was one.
    pub outcomes: Outcomes,
    /// Sum of the answers by response code.
    pub rcodes: BTreeMap<String, u64>,
    /// Answers with SERVFAIL, REFUSED, NOTIMP or FORMERR as a share of the answers, in [0, 1]: the larger one of
    /// the two loads, where there was a common load.
    #[serde(default)]
    pub error_share: f64,
    /// Latencies of all runs merged. Its quantiles are those of all queries together; the figures above are means
    /// over the runs.
    pub latency: Histogram,
    /// Mean busy share of the server, in [0, 1] of its CPUs.
    pub server_busy_share: Option<f64>,
    /// Of the time for which threads of the server could run, the share for which they had no CPU, in [0, 1]: the
    /// largest of all runs; `None` where the kernel does not say, or older records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_waited_share: Option<f64>,
    /// Others held up half of the runs, or more ([`crate::is_disturbed`]): no difference from this variant is
    /// certain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_disturbed: bool,
    /// Largest memory of the servers in any run, octets ([`crate::memory::RunMemory::peak_octets`]); `None` if it was not watched,
    /// or is not known.
    pub peak_memory_octets: Option<u64>,
    /// By how much the server's memory grew for each connection that was open at once, octets: the largest of
    /// all runs ([`crate::memory::RunMemory::per_connection_octets`]); `None` without connections, or if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_per_connection_octets: Option<f64>,
    /// Mean CPU time of the generator per answered query, nanoseconds.
    pub generator_cpu_per_query_ns: Option<f64>,
    /// TLS handshakes in all runs, full and resumed.
    pub handshakes: u64,
    /// Queries sent a second time in the measured windows of all runs.
    #[serde(default)]
    pub asked_again: u64,
    /// Those of them that were for the next name of a search list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub searched: u64,
    /// Those of them that were further attempts of clients.
    #[serde(default, skip_serializing_if = "AttemptCounts::is_empty")]
    pub attempts: AttemptCounts,
    /// Answers of all runs that were parsed in full.
    #[serde(default)]
    pub checked_answers: u64,
    /// Those of them that do not hold what their header says, or what was asked for.
    #[serde(default)]
    pub malformed_answers: u64,
    /// Answers of all runs whose signature was absent or did not verify.
    #[serde(default)]
    pub bad_signature: u64,
    /// The connections of all runs and their times.
    #[serde(default)]
    pub connections: ConnectionFigures,
    /// What the network stack of the generator's host dropped and sent again in all runs; `None` if that is not known
    /// of one of them.
    #[serde(default)]
    pub network: Option<NetworkDrops>,
    /// Send lags of all runs merged; empty for a closed loop, which has no schedule to lag behind.
    #[serde(default)]
    pub send_lag: Histogram,
    /// [`dnslab_record::Measured::start_lag`] of all runs merged.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub start_lag: Histogram,
    /// The pacing of all runs; see [`Pacing::of_runs`].
    #[serde(default)]
    pub pacing: Option<Pacing>,
    /// Whether the server counted what the load sent, over the runs in which it tells; `None` if it
    /// does in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// What the server found in its cache, over the runs in which it tells; `None` if it does in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheCounts>,
    /// The servers of the chain, the server under test first; none without a chain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ServerFigures>,
    /// The pods behind the Service that was asked; `None` of other servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<ServicePods>,
    /// What was done during its loads; `None` if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventFigures>,
    /// The first bottleneck of each kind that the runs had, the most frequent kind first.
    pub bottlenecks: Vec<Bottleneck>,
    /// The doubts of the valid runs: one per kind, in the order seen.
    pub caveats: Vec<VariantCaveat>,
    /// What the measuring side says of itself.
    #[serde(default)]
    pub self_check: VariantSelfCheck,
    /// Where no run counts: the figures of the invalid ones, to be shown as such. They are in nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_invalid: Option<Box<VariantSummary>>,
    /// The load generator that measured it, with its version, if that was not dnslab. What it does not tell is 0
    /// here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
}

/// The figures of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// Name of the experiment.
    pub name: String,
    /// Name of the baseline.
    pub baseline: String,
    /// The metric that answers the question; `None` if the load decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Metric>,
    /// The variants in the order of the file; those without a run too.
    pub variants: Vec<VariantSummary>,
    /// Every pair of variants that is compared, metric by metric.
    pub comparisons: Vec<Comparison>,
    /// The time windows of the loads, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowSummary>,
    /// Each variant at shares of its own rate, the smallest share first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ShareSummary>,
    /// Servers under loads of several sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweep: Vec<SweepLine>,
    /// Servers with several numbers of threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<ScalingLine>,
    /// What the limits of the session say of the variants, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rulings: Vec<LimitRuling>,
    /// The answers of variants, compared with those of others; none unless that was asked for. They are no
    /// figures of the records: the results directory has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerComparison>,
    /// Where the CPU time goes, if the servers were sampled: the results directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CostSummary>,
    /// What others published of such an experiment, beside what was measured here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<BesidePublished>,
    /// Runs of the plan that were not made.
    #[serde(default)]
    pub missing_runs: u32,
}

impl VariantSummary {
    /// In how many runs a figure of it is the time-out; `None` if in none.
    #[must_use]
    pub fn time_outs(&self, metric: Metric) -> Option<TimeOuts> {
        self.time_outs.get(&metric.to_string()).copied()
    }
}

impl Summary {
    /// The variant of this name.
    #[must_use]
    pub fn variant(&self, name: &str) -> Option<&VariantSummary> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Whether others held up this variant's runs, so that nothing is certain of it.
    #[must_use]
    pub fn is_disturbed(&self, name: &str) -> bool {
        self.variant(name).is_some_and(|variant| variant.is_disturbed)
    }

    /// The ruling over all limits, the worst of all; `None` without a limit. What fails, fails; else it
    /// is unclear if a run does not count, or was not made.
    #[must_use]
    pub fn ruling(&self) -> Option<Ruling> {
        let worst = self.rulings.iter().map(|limit| limit.ruling).max()?;
        let all_count = self.variants.iter().all(|variant| variant.other_runs == 0);
        let all_count = all_count && self.missing_runs == 0;
        Some(if all_count { worst } else { worst.max(Ruling::Unclear) })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
