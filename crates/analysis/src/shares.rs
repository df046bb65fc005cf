//! The curve of latency over load: each variant at shares of the rate that it answers itself.

use std::collections::BTreeMap;

use dnslab_figures::Outcomes;
use dnslab_record::{CommonLoad, LoadMode, Metric, RunFigure, RunRecord, TimeOuts};
use serde::{Deserialize, Serialize};

use crate::quantiles::RunFigures;
use crate::statistics::{Comparison, Estimate, mean_of};

/// All variants at one share of their own rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShareSummary {
    /// Offered load as a share of what a variant answered in the main load of the same run, in (0, 1).
    pub share: f64,
    /// In the order of the file.
    pub variants: Vec<ShareOfVariant>,
    /// Every pair of variants that is compared, by each of [`ShareSummary::COMPARED`] that is the time-out in no run
    /// of either. Their words share the error rate of the report with [`crate::summary::Summary::comparisons`].
    pub comparisons: Vec<Comparison>,
}

/// One variant at a share of its own rate, over its valid runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShareOfVariant {
    /// Name of the variant.
    pub variant: String,
    /// Valid runs that have the load.
    pub runs: u32,
    /// Mean over the runs of the rate that was asked for, queries per second.
    pub offered_qps: f64,
    /// Mean over the runs, with an interval, of each of [`ShareSummary::METRICS`] that could be measured and is the
    /// time-out in none.
    pub metrics: BTreeMap<Metric, Estimate>,
    /// Quantiles (`p50`, `p95`, `p99`) that are the time-out in some run, which have no mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub time_outs: BTreeMap<String, TimeOuts>,
    /// Sum of the outcomes over the runs.
    pub outcomes: Outcomes,
}

impl ShareSummary {
    /// What is told of each load.
    pub const METRICS: [Metric; 4] =
        [Metric::ServerCpuPerQuery, Metric::LatencyP50, Metric::LatencyP95, Metric::LatencyP99];

    /// What variants are compared by.
    pub const COMPARED: [Metric; 3] =
        [Metric::ServerCpuPerQuery, Metric::LatencyP50, Metric::LatencyP99];

    /// The shares that any of the runs has, the smallest first, without figures yet.
    pub(crate) fn all<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> Vec<Self> {
        let mut shares: Vec<f64> =
            runs.flat_map(|record| &record.share_loads).map(|load| load.share).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        let share = |share| Self { share, variants: Vec::new(), comparisons: Vec::new() };
        shares.into_iter().map(share).collect()
    }

    fn of<'a>(&self, record: &'a RunRecord) -> Option<&'a CommonLoad> {
        let found = record.share_loads.iter().find(|load| load.share == self.share)?;
        Some(&found.load)
    }

    /// A figure of it in one run; `None` if it was not measured.
    pub(crate) fn figure(&self, metric: Metric, record: &RunRecord) -> Option<RunFigure> {
        self.of(record)?.figure(metric, &record.server)
    }

    /// Its figures over the runs of a variant; `None` if none has it.
    pub(crate) fn over<'a>(
        &self,
        variant: &str,
        runs: impl Iterator<Item = &'a RunRecord> + Clone,
        seed: u64,
    ) -> Option<ShareOfVariant> {
        let offered = runs.clone().filter_map(|record| match self.of(record)?.load.mode {
            LoadMode::Open { rate_qps, .. } => Some(rate_qps),
            LoadMode::Closed { .. } => None,
        });
        let offered: Vec<f64> = offered.collect();
        let mut all = ShareOfVariant {
            variant: variant.to_owned(),
            runs: u32::try_from(offered.len()).unwrap_or(u32::MAX),
            offered_qps: mean_of(&offered)?,
            metrics: BTreeMap::new(),
            time_outs: BTreeMap::new(),
            outcomes: Outcomes::default(),
        };
        for load in runs.clone().filter_map(|record| self.of(record)) {
            all.outcomes.merge(&load.measured.counters.outcomes);
        }
        for metric in Self::METRICS {
            let figures: RunFigures =
                runs.clone().filter_map(|record| self.figure(metric, record)).collect();
            figures.add_to(metric, seed, &mut all.metrics, &mut all.time_outs);
        }
        Some(all)
    }
}

impl ShareOfVariant {
    /// In how many runs a figure of it is the time-out; `None` if in none.
    #[must_use]
    pub fn time_outs(&self, metric: Metric) -> Option<TimeOuts> {
        self.time_outs.get(&metric.to_string()).copied()
    }
}
