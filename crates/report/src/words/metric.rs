//! What a report calls each metric.

use dnslab_record::Metric;

/// The words for a metric.
pub(crate) struct MetricWords {
    /// Inside a sentence: `the median latency`.
    pub(crate) noun: &'static str,
    /// At charts and rows of differences: `p50 latency`.
    pub(crate) label: &'static str,
    /// Above a column of the table: `p50`.
    pub(crate) heading: &'static str,
    /// Above the first chart of a page; `None` if that never shows it.
    pub(crate) first_chart: Option<&'static str>,
    /// What a variant does with more of it; `None` if a sentence says that it is faster or slower.
    pub(crate) action: Option<Action>,
}

/// What a variant does: `takes CPU time per query`.
#[derive(Clone, Copy)]
pub(crate) struct Action {
    pub(crate) verb: &'static str,
    pub(crate) object: &'static str,
    /// There are fewer of it, not less.
    pub(crate) is_countable: bool,
}

/// The row of a metric.
pub(crate) fn words(metric: Metric) -> MetricWords {
    match metric {
        Metric::AnsweredQps => named("the answered rate", "answered qps", "queries/s")
            .counts("answers", "queries per second")
            .drawn("Answered queries per second"),
        Metric::LatencyMean => {
            named("the mean latency", "mean latency", "mean").drawn("Mean latency")
        }
        Metric::LatencyP50 => {
            named("the median latency", "p50 latency", "p50").drawn("Median latency")
        }
        Metric::LatencyP95 => {
            named("the p95 latency", "p95 latency", "p95").drawn("95th percentile of the latency")
        }
        Metric::LatencyP99 => {
            named("the p99 latency", "p99 latency", "p99").drawn("99th percentile of the latency")
        }
        Metric::LatencyMax => named("the largest latency", "largest latency", "max"),
        Metric::ServerCpuPerQuery => named("CPU time per query", "server CPU/query", "CPU/query")
            .does("takes", "CPU time per query")
            .drawn("CPU time of the server per query"),
        Metric::LogOctetsPerQuery => named("the size of the log", "log/query", "log octets/query")
            .does("writes", "log per query"),
        Metric::PeakMemory => named("memory", "memory", "memory").does("takes", "memory"),
        Metric::HandshakesPerQuery => {
            named("handshakes per query", "handshakes/query", "handshakes/query")
                .counts("makes", "handshakes per query")
        }
        Metric::LostShare => named("the lost share", "lost share", "lost"),
        Metric::AnsweredShare => named("the answered share", "answered share", "answered"),
        Metric::SoundShare => {
            named("the share answered without an error", "without error", "without error")
        }
    }
}

fn named(noun: &'static str, label: &'static str, heading: &'static str) -> MetricWords {
    MetricWords { noun, label, heading, first_chart: None, action: None }
}

impl MetricWords {
    fn drawn(self, title: &'static str) -> Self {
        Self { first_chart: Some(title), ..self }
    }

    fn does(self, verb: &'static str, object: &'static str) -> Self {
        Self { action: Some(Action { verb, object, is_countable: false }), ..self }
    }

    fn counts(self, verb: &'static str, object: &'static str) -> Self {
        Self { action: Some(Action { verb, object, is_countable: true }), ..self }
    }
}

/// Inside a sentence: `the median latency`.
pub(crate) fn noun(metric: Metric) -> &'static str {
    words(metric).noun
}

/// At charts and rows of differences: `p50 latency`.
pub(crate) fn label(metric: Metric) -> &'static str {
    words(metric).label
}
