//! What objectives and limits set bounds on.

use std::fmt;
use std::str::FromStr;

use dnslab_settings::{Metric, Unit};

/// A service level indicator: what a bound can be set on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Indicator {
    /// A metric that has a word ([`Metric::word`]).
    Metric(Metric),
    /// A percentile of the latency that is no metric, above 0 and below 100. Lost queries are part of it.
    Percentile(f64),
}

/// Why a text names no indicator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndicatorError {
    /// There is none of this name.
    #[error(
        "unknown figure `{0}`: it is one of {names}, or a percentile of the latency such as p50, p99 \
         or p99.9", names = names().join(", ")
    )]
    Name(String),
    /// The percentile is not between 0 and 100.
    #[error("`{0}` is no percentile: it lies between p0 and p100; the largest latency is max")]
    Percentile(String),
}

/// The words of all metrics but the percentiles: shares, latencies, then what is of the server.
fn names() -> Vec<&'static str> {
    let mut metrics = Metric::ALL.to_vec();
    metrics.retain(|metric| metric.quantile().is_none());
    metrics.sort_by_key(|metric| (metric.unit() != Unit::Share, !metric.is_latency()));
    metrics.into_iter().filter_map(Metric::word).collect()
}

impl Indicator {
    /// The metric, if variants are compared by it.
    #[must_use]
    pub fn compared(self) -> Option<Metric> {
        match self {
            Self::Metric(metric) => Some(metric).filter(|own| Metric::COMPARED.contains(own)),
            Self::Percentile(_) => None,
        }
    }

    /// How its values are written.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Metric(metric) => metric.unit(),
            Self::Percentile(_) => Unit::Duration,
        }
    }

    /// True for a time that a client waits.
    #[must_use]
    pub fn is_latency(self) -> bool {
        match self {
            Self::Metric(metric) => metric.is_latency(),
            Self::Percentile(_) => true,
        }
    }

    /// True if a larger value is the better one.
    #[must_use]
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::Metric(metric) if metric.higher_is_better())
    }

    /// Which quantile of the latency it is, in [0, 1].
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Metric(metric) => metric.quantile(),
            Self::Percentile(percentile) => Some(percentile / 100.0),
        }
    }

    /// True if one load alone tells it, whoever watches the server: what an objective may be about.
    #[must_use]
    pub fn is_of_answers(self) -> bool {
        self.is_latency() || self.unit() == Unit::Share
    }
}

impl FromStr for Indicator {
    type Err = IndicatorError;

    fn from_str(text: &str) -> Result<Self, IndicatorError> {
        // Limits were once written with the names of tables for machines.
        let by_column = Metric::COMPARED.into_iter().find(|metric| metric.column() == text);
        let by_word = Metric::ALL.into_iter().find(|metric| metric.word() == Some(text));
        if let Some(metric) = by_word.or(by_column) {
            return Ok(Self::Metric(metric));
        }
        let number = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
        match number {
            Some(percentile) if percentile > 0.0 && percentile < 100.0 => {
                let found = Self::Percentile(percentile);
                // `p99.0` is p99.
                let is_found = |metric: &Metric| metric.quantile() == found.quantile();
                let metric = Metric::ALL.into_iter().find(is_found);
                Ok(metric.map_or(found, Self::Metric))
            }
            Some(_) => Err(IndicatorError::Percentile(text.to_owned())),
            None => Err(IndicatorError::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Indicator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metric(metric) => metric.fmt(formatter),
            Self::Percentile(percentile) => write!(formatter, "p{percentile}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (text, expected) in [
            ("p99", "p99"),
            ("p99.9", "p99.9"),
            ("answered_qps", "qps"),
            ("latency_p99_ns", "p99"),
            ("latency_mean_ns", "mean"),
            ("server_cpu_per_query_ns", "cpu_per_query"),
            ("peak_memory_octets", "memory"),
            ("handshakes_per_query", "handshakes"),
        ] {
            assert_eq!(text.parse::<Indicator>().unwrap().to_string(), expected, "{text}");
        }
        for metric in Metric::ALL {
            let read = metric.word().map(str::parse);
            assert_eq!(read.is_none(), metric == Metric::SoundShare);
            assert!(read.is_none_or(|read| read == Ok(Indicator::Metric(metric))));
        }
        for metric in Metric::COMPARED {
            assert_eq!(metric.column().parse(), Ok(Indicator::Metric(metric)));
        }
        assert!("lost_share".parse::<Indicator>().is_err());
    }

    /// One indicator has one value, however it is written.
    #[test]
    fn a_percentile_that_is_a_metric_is_that_metric() {
        for text in ["p99", "p99.0", "p99.000", "p9.9e1"] {
            assert_eq!(text.parse(), Ok(Indicator::Metric(Metric::LatencyP99)), "{text}");
        }
        assert_eq!("p99.9".parse(), Ok(Indicator::Percentile(99.9)));
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_names() {
        let error = "latency".parse::<Indicator>().unwrap_err().to_string();
        let start = "unknown figure `latency`: it is one of lost, answered, mean, max, qps, ";
        assert!(error.starts_with(start), "{error}");
        for metric in Metric::COMPARED.into_iter().filter(|metric| metric.quantile().is_none()) {
            assert!(error.contains(metric.word().unwrap()), "{metric}: {error}");
        }
    }
}
