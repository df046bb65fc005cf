//! How each metric is read from what a run left behind.

use dnslab_figures::WindowCounts;
use dnslab_settings::Metric;

use crate::indicator::Indicator;
use crate::observation::Observation;
use crate::quantiles::{LatencyQuantiles, RunFigure};
use crate::run::RunRecord;

impl RunRecord {
    /// The value of a metric as it is compared, in the unit of [`Metric::column`]; `None` if it was not measured.
    /// Whether the run is valid is not asked. Latencies and losses are those of the common load, where there
    /// was one: at different rates they compare nothing.
    #[must_use]
    pub fn figure(&self, metric: Metric) -> Option<RunFigure> {
        if let Some(quantile) = metric.quantile() {
            return self.latency_quantiles()?.at(quantile);
        }
        let run = self.observation()?;
        match metric {
            Metric::AnsweredQps => Some(run.measured.answered_qps()),
            Metric::LatencyMean => self.latency_mean_ns(),
            Metric::LatencyMax => return self.latency_quantiles()?.at(1.0),
            Metric::ServerCpuPerQuery => self.servers_cpu_per_query_ns(),
            Metric::LogOctetsPerQuery => run.log_octets_per_query(),
            // What a process had needed before it keeps: it says nothing of one run.
            Metric::PeakMemory if self.server.is_external() => None,
            Metric::PeakMemory => self.peak_memory_octets().map(|octets| octets as f64),
            Metric::HandshakesPerQuery => run.measured.handshakes_per_query(),
            Metric::LostShare | Metric::AnsweredShare => self.compared_observation()?.share(metric),
            Metric::LatencyP50 | Metric::LatencyP95 | Metric::LatencyP99 => None,
            Metric::SoundShare => None,
        }
        .filter(|value| value.is_finite())
        .map(RunFigure::Measured)
    }

    /// The value that a bound is held against, in the unit of the indicator; `None` if it was not measured.
    #[must_use]
    pub fn indicator(&self, indicator: Indicator) -> Option<RunFigure> {
        match indicator {
            Indicator::Percentile(percentile) => self.latency_quantiles()?.at(percentile / 100.0),
            // A bound holds for a process that ran before, too.
            Indicator::Metric(Metric::PeakMemory) => {
                self.peak_memory_octets().map(|octets| RunFigure::Measured(octets as f64))
            }
            Indicator::Metric(metric) => self.figure(metric),
        }
    }
}

impl Observation<'_> {
    /// What one load alone tells of an indicator, whoever watches the server: a share in [0, 1], or nanoseconds.
    /// `None` if no query became due, and for what is of the server.
    pub(crate) fn indicator(&self, indicator: Indicator) -> Option<f64> {
        let latency = &self.measured.latency;
        match (indicator.quantile(), indicator) {
            (Some(quantile), _) => latency.quantile_ns(quantile).map(|ns| ns as f64),
            (None, Indicator::Metric(Metric::LatencyMean)) => latency.mean_ns(),
            (None, Indicator::Metric(Metric::LatencyMax)) => latency.max_ns().map(|ns| ns as f64),
            (None, Indicator::Metric(metric)) => self.share(metric),
            (None, Indicator::Percentile(_)) => None,
        }
    }

    fn share(&self, metric: Metric) -> Option<f64> {
        let outcomes = &self.measured.counters.outcomes;
        let count = match metric {
            Metric::LostShare => outcomes.lost(),
            Metric::AnsweredShare => outcomes.answered,
            _ => return None,
        };
        (outcomes.due > 0).then(|| count as f64 / outcomes.due as f64)
    }
}

/// The value of a metric in one time window of a run, in the unit of [`Metric::column`]; `None` if no query became due
/// in it, and for what is of a whole run only. A lost query waited for `max_wait_ns` at least, nanoseconds.
#[must_use]
pub fn figure_in_window(
    metric: Metric,
    window: &WindowCounts,
    max_wait_ns: u64,
) -> Option<RunFigure> {
    if let Some(quantile) = metric.quantile() {
        return LatencyQuantiles::of_window(window, max_wait_ns).at(quantile);
    }
    match metric {
        Metric::AnsweredShare if window.outcomes.due > 0 => {
            Some(1.0 - window.outcomes.lost_share())
        }
        Metric::SoundShare => window.outcomes.share_without_error(&window.rcodes),
        _ => None,
    }
    .map(RunFigure::Measured)
}
