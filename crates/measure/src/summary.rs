//! The figures of an experiment, computed from its records alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::statistics::{Comparison, Estimate, Metric};
use crate::{Caveat, Histogram, Limit, Outcomes, RunRecord, Session};

/// The figures of one variant over its valid runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantSummary {
    /// Its name.
    pub name: String,
    /// Runs that count.
    pub valid_runs: u32,
    /// Runs that were invalid or failed.
    pub other_runs: u32,
    /// Mean over the runs, with an interval, of each metric that could be measured.
    pub metrics: BTreeMap<Metric, Estimate>,
    /// Mean over the runs of the 0.999 quantile of the latency, nanoseconds.
    pub p999_ns: Option<f64>,
    /// Sum of the outcomes over the runs.
    pub outcomes: Outcomes,
    /// Sum of the answers by response code.
    pub rcodes: BTreeMap<String, u64>,
    /// Latencies of all runs merged, for the percentile chart.
    pub latency: Histogram,
    /// Mean busy share of the server, in [0, 1] of its CPUs.
    pub server_busy_share: Option<f64>,
    /// Largest memory of the server in any run, octets.
    pub peak_memory_octets: Option<u64>,
    /// Mean CPU time of the generator per answered query, nanoseconds.
    pub generator_cpu_per_query_ns: Option<f64>,
    /// TLS handshakes in all runs, full and resumed.
    pub handshakes: u64,
    /// The distinct limits that the runs named, most frequent first.
    pub limits: Vec<Limit>,
    /// The distinct caveats of the runs: one per kind, the first seen.
    pub caveats: Vec<Caveat>,
}

/// The figures of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the experiment.
    pub name: String,
    /// Name of the baseline.
    pub baseline: String,
    /// The variants in the order of the file; those without a run too.
    pub variants: Vec<VariantSummary>,
    /// Every variant but the baseline, metric by metric.
    pub comparisons: Vec<Comparison>,
}

impl Summary {
    /// Computes the figures.
    #[must_use]
    pub fn of(_session: &Session, _records: &[RunRecord]) -> Self {
        todo!()
    }
}
