//! The time windows of an experiment over its runs.

use std::collections::BTreeMap;

use dnslab_figures::{Histogram, Outcomes, WindowCounts};
use dnslab_record::{LatencyQuantiles, Metric, RunFigure, RunRecord, TimeOuts, figure_in_window};
use serde::{Deserialize, Serialize};

use crate::quantiles::RunFigures;
use crate::statistics::{Comparison, Estimate};

/// One time window (`load.windows`) of all variants that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WindowSummary {
    /// Its name.
    pub name: String,
    /// Its beginning, nanoseconds of the load's own time since the measured window began.
    pub from_ns: u64,
    /// Its end likewise.
    pub to_ns: u64,
    /// In the order of the file.
    pub variants: Vec<WindowOfVariant>,
    /// Every pair of variants that is compared, by each of [`Metric::OF_WINDOWS`] that is the time-out in no run
    /// of either. Their words share the error rate of the report with [`crate::summary::Summary::comparisons`].
    pub comparisons: Vec<Comparison>,
}

/// One time window of one variant over its valid runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WindowOfVariant {
    /// Name of the variant.
    pub variant: String,
    /// Valid runs that have the time window.
    pub runs: u32,
    /// Mean over the runs, with an interval, of each of [`Metric::OF_WINDOWS`] that could be measured and is the
    /// time-out in none.
    pub metrics: BTreeMap<Metric, Estimate>,
    /// Quantiles (`p50`, `p99`) that are the time-out in some run, which have no mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub time_outs: BTreeMap<String, TimeOuts>,
    /// Sum of the outcomes over the runs.
    pub outcomes: Outcomes,
    /// Sum of the answers by response code.
    pub rcodes: BTreeMap<String, u64>,
    /// Latencies of all runs merged, for the percentile chart.
    pub latency: Histogram,
}

impl WindowSummary {
    /// A time window in which nothing was counted yet, with the name and ends of this one.
    pub(crate) fn like(window: &WindowCounts) -> Self {
        let WindowCounts { name, from_ns, to_ns, .. } = window;
        let (name, variants, comparisons) = (name.clone(), Vec::new(), Vec::new());
        Self { name, from_ns: *from_ns, to_ns: *to_ns, variants, comparisons }
    }

    /// What a run counted in it. Variants may call different spans by one name: those are others.
    #[must_use]
    pub fn of<'a>(&self, record: &'a RunRecord) -> Option<&'a WindowCounts> {
        record.measured.as_ref()?.windows.iter().find(|window| self.is(window))
    }

    pub(crate) fn is(&self, window: &WindowCounts) -> bool {
        (&window.name, window.from_ns, window.to_ns) == (&self.name, self.from_ns, self.to_ns)
    }

    /// A figure of it in one run; `None` if it was not measured.
    pub(crate) fn figure(&self, metric: Metric, record: &RunRecord) -> Option<RunFigure> {
        figure_in_window(metric, self.of(record)?, record.load.max_wait_ns())
    }

    /// The quantiles of its latencies in one run; `None` if the run does not have it.
    #[must_use]
    pub fn latency_quantiles<'a>(&self, record: &'a RunRecord) -> Option<LatencyQuantiles<'a>> {
        Some(LatencyQuantiles::of_window(self.of(record)?, record.load.max_wait_ns()))
    }

    /// Its figures over the runs of a variant.
    pub(crate) fn over<'a>(
        &self,
        variant: &str,
        runs: impl Iterator<Item = &'a RunRecord> + Clone,
        seed: u64,
    ) -> Option<WindowOfVariant> {
        let mut all = WindowOfVariant {
            variant: variant.to_owned(),
            runs: 0,
            metrics: BTreeMap::new(),
            time_outs: BTreeMap::new(),
            outcomes: Outcomes::default(),
            rcodes: BTreeMap::new(),
            latency: Histogram::new(),
        };
        for window in runs.clone().filter_map(|record| self.of(record)) {
            all.runs += 1;
            all.outcomes.merge(&window.outcomes);
            for (rcode, count) in &window.rcodes {
                *all.rcodes.entry(rcode.clone()).or_default() += count;
            }
            all.latency.merge(&window.latency);
        }
        for metric in Metric::OF_WINDOWS {
            let figures: RunFigures =
                runs.clone().filter_map(|record| self.figure(metric, record)).collect();
            figures.add_to(metric, seed, &mut all.metrics, &mut all.time_outs);
        }
        (all.runs > 0).then_some(all)
    }
}

impl WindowOfVariant {
    /// In how many runs a figure of it is the time-out; `None` if in none.
    #[must_use]
    pub fn time_outs(&self, metric: Metric) -> Option<TimeOuts> {
        self.time_outs.get(&metric.to_string()).copied()
    }
}
