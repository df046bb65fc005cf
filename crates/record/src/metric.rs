//! The figures of a run that variants are compared by.

use dnslab_figures::WindowCounts;
use dnslab_settings::Figure;
use serde::{Deserialize, Serialize};

use crate::quantiles::{LatencyQuantiles, RunFigure};
use crate::run::RunRecord;

/// A figure of a run that variants are compared by.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Answered queries per second; more is better.
    AnsweredQps,
    /// Mean latency, nanoseconds; less is better.
    LatencyMean,
    /// Median latency, nanoseconds; less is better.
    LatencyP50,
    /// 0.95 quantile of the latency, nanoseconds; less is better.
    LatencyP95,
    /// 0.99 quantile of the latency, nanoseconds; less is better.
    LatencyP99,
    /// The server's CPU time per answered query, nanoseconds; less is better.
    ServerCpuPerQuery,
    /// Octets that the server wrote to its logs of queries, per answered query; less is better.
    LogOctetsPerQuery,
    /// Largest memory of the servers, octets ([`RunRecord::peak_memory_octets`]); less is better. Those of servers that
    /// ran before are never compared: what a process had needed for earlier loads it keeps.
    PeakMemory,
    /// TLS handshakes for each answered query, full and resumed; less is better.
    HandshakesPerQuery,
    /// Answered queries as a share of the due ones, in [0, 1]; more is better. Of time windows only.
    AnsweredShare,
    /// Queries answered without an error likewise ([`dnslab_figures::Outcomes::share_without_error`]).
    SoundShare,
}

impl From<Figure> for Metric {
    fn from(figure: Figure) -> Self {
        match figure {
            Figure::Qps => Self::AnsweredQps,
            Figure::Mean => Self::LatencyMean,
            Figure::P50 => Self::LatencyP50,
            Figure::P95 => Self::LatencyP95,
            Figure::P99 => Self::LatencyP99,
            Figure::CpuPerQuery => Self::ServerCpuPerQuery,
            Figure::LogPerQuery => Self::LogOctetsPerQuery,
            Figure::Memory => Self::PeakMemory,
            Figure::Handshakes => Self::HandshakesPerQuery,
        }
    }
}

impl Metric {
    /// All metrics of a whole run, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::AnsweredQps,
        Self::LatencyMean,
        Self::LatencyP50,
        Self::LatencyP95,
        Self::LatencyP99,
        Self::ServerCpuPerQuery,
        Self::LogOctetsPerQuery,
        Self::PeakMemory,
        Self::HandshakesPerQuery,
    ];

    /// The metrics of a time window, in the order in which they are shown.
    pub const OF_WINDOWS: [Self; 4] =
        [Self::AnsweredShare, Self::SoundShare, Self::LatencyP50, Self::LatencyP99];

    /// Name in tables that machines read, with the unit last.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AnsweredQps => "answered_qps",
            Self::LatencyMean => "latency_mean_ns",
            Self::LatencyP50 => "latency_p50_ns",
            Self::LatencyP95 => "latency_p95_ns",
            Self::LatencyP99 => "latency_p99_ns",
            Self::ServerCpuPerQuery => "server_cpu_per_query_ns",
            Self::LogOctetsPerQuery => "log_octets_per_query",
            Self::PeakMemory => "peak_memory_octets",
            Self::HandshakesPerQuery => "handshakes_per_query",
            Self::AnsweredShare => "answered_share",
            Self::SoundShare => "answered_without_error_share",
        }
    }

    /// Name for people, as it stands inside a sentence.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::AnsweredQps => "answered queries per second",
            Self::LatencyMean => "mean latency",
            Self::LatencyP50 => "median latency",
            Self::LatencyP95 => "95th percentile of the latency",
            Self::LatencyP99 => "99th percentile of the latency",
            Self::ServerCpuPerQuery => "server CPU time per answered query",
            Self::LogOctetsPerQuery => "octets of log per answered query",
            Self::PeakMemory => "server memory",
            Self::HandshakesPerQuery => "TLS handshakes per answered query",
            Self::AnsweredShare => "answered share",
            Self::SoundShare => "share answered without an error",
        }
    }

    /// Its share of the error rate of a report, next to those of the other metrics. What a decision
    /// is made by weighs more than quantiles far out, which hardly any number of rounds makes
    /// certain. The metric that answers the question of the experiment, if it names one, weighs as much
    /// as all others together.
    #[must_use]
    pub fn weight(self, answered_by: Option<Self>) -> f64 {
        if answered_by == Some(self) {
            return Self::ALL
                .into_iter()
                .filter(|other| *other != self)
                .map(|it| it.weight(None))
                .sum();
        }
        match self {
            Self::AnsweredQps | Self::ServerCpuPerQuery => 4.0,
            Self::LatencyP50 => 2.0,
            _ => 1.0,
        }
    }

    /// True if it is a time that a client waits.
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::LatencyMean | Self::LatencyP50 | Self::LatencyP95 | Self::LatencyP99)
    }

    /// Which quantile of the latency it is.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::LatencyP50 => Some(0.5),
            Self::LatencyP95 => Some(0.95),
            Self::LatencyP99 => Some(0.99),
            _ => None,
        }
    }

    /// True if a larger value is the better one.
    #[must_use]
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::AnsweredQps | Self::AnsweredShare | Self::SoundShare)
    }

    /// The value in one run, in the unit of [`Metric::name`]; `None` if it was not measured.
    /// Whether the run is valid is not asked. Latencies are those of the common load, where there
    /// was one: at different rates they compare nothing.
    #[must_use]
    pub fn of(self, record: &RunRecord) -> Option<RunFigure> {
        if let Some(quantile) = self.quantile() {
            return record.latency_quantiles()?.at(quantile);
        }
        let run = record.observation()?;
        let measured = run.measured;
        match self {
            Self::AnsweredQps => Some(measured.answered_qps()),
            Self::LatencyMean => record.latency_mean_ns(),
            Self::ServerCpuPerQuery => record.servers_cpu_per_query_ns(),
            Self::LogOctetsPerQuery => run.log_octets_per_query(),
            // What a process had needed before it keeps: it says nothing of one run.
            Self::PeakMemory if record.server.is_external() => None,
            Self::PeakMemory => record.peak_memory_octets().map(|octets| octets as f64),
            Self::HandshakesPerQuery => measured.handshakes_per_query(),
            Self::LatencyP50 | Self::LatencyP95 | Self::LatencyP99 => None,
            Self::AnsweredShare | Self::SoundShare => None,
        }
        .filter(|value| value.is_finite())
        .map(RunFigure::Measured)
    }

    /// The value in one time window of a run, in the unit of [`Metric::name`]; `None` if no query became due in
    /// it, and for what is of a whole run only. A lost query waited for `max_wait_ns` at least, nanoseconds.
    #[must_use]
    pub fn in_window(self, window: &WindowCounts, max_wait_ns: u64) -> Option<RunFigure> {
        if let Some(quantile) = self.quantile() {
            return LatencyQuantiles::of_window(window, max_wait_ns).at(quantile);
        }
        match self {
            Self::AnsweredShare if window.outcomes.due > 0 => {
                Some(1.0 - window.outcomes.lost_share())
            }
            Self::SoundShare => window.outcomes.share_without_error(&window.rcodes),
            _ => None,
        }
        .map(RunFigure::Measured)
    }
}
