//! The figures that a bound can be set on, with one table of their names: objectives and limits use
//! the same.

use std::fmt;
use std::str::FromStr;

use dnslab_wire::units::{duration, number, octets, share};

use crate::metric::Metric;
use crate::observation::Observation;
use crate::quantiles::RunFigure;
use crate::run::RunRecord;

/// A figure of a load that a bound can be set on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Share of the due queries that were not answered.
    Lost,
    /// Share of the due queries that were answered.
    Answered,
    /// A percentile of the latency, above 0 and below 100. Lost queries are part of it.
    Percentile(f64),
    /// The mean latency.
    Mean,
    /// The largest latency.
    Max,
    /// Answered queries per second.
    Qps,
    /// The server's CPU time per answered query.
    CpuPerQuery,
    /// Octets that the server wrote to its logs of queries, per answered query.
    LogPerQuery,
    /// Largest memory of the server.
    Memory,
    /// TLS handshakes per answered query.
    Handshakes,
}

/// How the values of a quantity are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A share in [0, 1]: `0.1%`.
    Share,
    /// Nanoseconds: `10ms`.
    Duration,
    /// Octets: `2GiB`.
    Octets,
    /// A number: `30000`.
    Number,
}

/// The names of all quantities but the percentiles, which are `p` and a number.
const NAMES: [(&str, Quantity); 9] = [
    ("lost", Quantity::Lost),
    ("answered", Quantity::Answered),
    ("mean", Quantity::Mean),
    ("max", Quantity::Max),
    ("qps", Quantity::Qps),
    ("cpu_per_query", Quantity::CpuPerQuery),
    ("log_per_query", Quantity::LogPerQuery),
    ("memory", Quantity::Memory),
    ("handshakes", Quantity::Handshakes),
];

/// Why a text names no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There is none of this name.
    #[error(
        "unknown figure `{0}`: it is one of {names}, or a percentile of the latency such as p50, p99 \
         or p99.9", names = NAMES.map(|(name, _)| name).join(", ")
    )]
    Name(String),
    /// The percentile is not between 0 and 100.
    #[error("`{0}` is no percentile: it lies between p0 and p100; the largest latency is max")]
    Percentile(String),
}

impl Quantity {
    /// The one that a metric of comparisons is.
    #[must_use]
    pub fn of_metric(metric: Metric) -> Self {
        match metric {
            Metric::AnsweredQps => Self::Qps,
            Metric::LatencyMean => Self::Mean,
            Metric::LatencyP50 => Self::Percentile(50.0),
            Metric::LatencyP95 => Self::Percentile(95.0),
            Metric::LatencyP99 => Self::Percentile(99.0),
            Metric::ServerCpuPerQuery => Self::CpuPerQuery,
            Metric::LogOctetsPerQuery => Self::LogPerQuery,
            Metric::PeakMemory => Self::Memory,
            Metric::HandshakesPerQuery => Self::Handshakes,
            // Of time windows, which have no limits: losses are the nearest.
            Metric::AnsweredShare | Metric::SoundShare => Self::Answered,
        }
    }

    /// The metric of comparisons that it is; `None` if variants are not compared by it.
    #[must_use]
    pub fn metric(self) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| Self::of_metric(*metric) == self)
    }

    /// How its values are written.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Lost | Self::Answered => Unit::Share,
            Self::Percentile(_) | Self::Mean | Self::Max | Self::CpuPerQuery => Unit::Duration,
            Self::Memory | Self::LogPerQuery => Unit::Octets,
            Self::Qps | Self::Handshakes => Unit::Number,
        }
    }

    /// True for a time that a client waits.
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::Percentile(_) | Self::Mean | Self::Max)
    }

    /// True if a larger value is the better one.
    #[must_use]
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::Answered | Self::Qps)
    }

    /// True if one load alone tells it, whoever watches the server: what an objective may be about.
    #[must_use]
    pub fn is_of_answers(self) -> bool {
        self.is_latency() || matches!(self, Self::Lost | Self::Answered)
    }

    /// The value in what was measured: a share in [0, 1], nanoseconds, octets, or a number. `None` if
    /// it was not measured.
    #[must_use]
    pub fn of(self, run: &Observation<'_>) -> Option<f64> {
        let measured = run.measured;
        let outcomes = &measured.counters.outcomes;
        let latency = &measured.latency;
        let of_due = |count: u64| (outcomes.due > 0).then(|| count as f64 / outcomes.due as f64);
        match self {
            Self::Lost => of_due(outcomes.lost()),
            Self::Answered => of_due(outcomes.answered),
            Self::Percentile(percentile) => {
                latency.quantile_ns(percentile / 100.0).map(|ns| ns as f64)
            }
            Self::Mean => latency.mean_ns(),
            Self::Max => latency.max_ns().map(|ns| ns as f64),
            Self::Qps => Some(measured.answered_qps()),
            Self::CpuPerQuery => run.server_cpu_per_query_ns(),
            Self::LogPerQuery => run.log_octets_per_query(),
            Self::Memory => run.watched.resources.peak_memory_octets().map(|octets| octets as f64),
            Self::Handshakes => measured.handshakes_per_query(),
        }
    }

    /// The value in a run, as it is compared: latencies and losses of the common load, where there was
    /// one.
    #[must_use]
    pub fn of_run(self, record: &RunRecord) -> Option<RunFigure> {
        match (self, self.metric()) {
            (Self::Percentile(percentile), _) => record.latency_quantiles()?.at(percentile / 100.0),
            (Self::Max, _) => record.latency_quantiles()?.at(1.0),
            // A bound holds for a process that ran before, too.
            (_, Some(Metric::PeakMemory)) => {
                record.peak_memory_octets().map(|octets| RunFigure::Measured(octets as f64))
            }
            (_, Some(metric)) => metric.of(record),
            _ => {
                let value =
                    self.of(&record.compared_observation()?).filter(|value| value.is_finite());
                value.map(RunFigure::Measured)
            }
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if let Some((_, quantity)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(*quantity);
        }
        // The names of tables for machines, which were the names of limits.
        if let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.name() == text) {
            return Ok(Self::of_metric(metric));
        }
        let number = text.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
        match number {
            Some(percentile) if percentile > 0.0 && percentile < 100.0 => {
                Ok(Self::Percentile(percentile))
            }
            Some(_) => Err(QuantityError::Percentile(text.to_owned())),
            None => Err(QuantityError::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Percentile(percentile) = self {
            return write!(formatter, "p{percentile}");
        }
        let name = NAMES.iter().find(|(_, quantity)| quantity == self).map(|(name, _)| *name);
        formatter.write_str(name.expect("all but the percentiles have a name"))
    }
}

impl Unit {
    /// A value in this unit; `None` if the text is none.
    pub(crate) fn read(self, text: &str) -> Option<f64> {
        match self {
            Self::Share => share::read(text),
            // An hour at most. Bounds are of latencies and CPU times: `p99<10m` is a slip for 10ms, and as ten
            // minutes any server would meet it.
            Self::Duration if text.ends_with(['m', 'h']) => None,
            Self::Duration => duration::read_ns(text).ok().filter(|ns| (0.0..=3.6e12).contains(ns)),
            Self::Octets => octets::read(text).filter(|octets| (0.0..=1e18).contains(octets)),
            Self::Number => number::read(text).filter(|number| (0.0..=1e12).contains(number)),
        }
    }

    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::Share => share::write(value),
            Self::Duration => duration::write_ns(value),
            Self::Octets => octets::write(value),
            Self::Number => number::write(value),
        }
    }

    pub(crate) fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::Share => ("share", "write it as 0.1% or 0.001"),
            Self::Duration => ("duration", "write it with its unit, as 500us, 10ms or 2s"),
            Self::Octets => ("number of octets", "write it as 500MiB or 2GiB"),
            Self::Number => ("number", "write it as 30000 or 0.5"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (name, quantity) in NAMES {
            assert_eq!(name.parse(), Ok(quantity));
            assert_eq!(quantity.to_string(), name);
        }
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
            assert_eq!(text.parse::<Quantity>().unwrap().to_string(), expected, "{text}");
        }
        for metric in Metric::ALL {
            let quantity = Quantity::of_metric(metric);
            assert_eq!(quantity.metric(), Some(metric));
            assert_eq!(metric.name().parse(), Ok(quantity));
            assert_eq!(quantity.higher_is_better(), metric.higher_is_better());
        }
    }

    #[test]
    fn values_are_read_and_written_in_their_unit() {
        for (unit, text, value, written) in [
            (Unit::Octets, "2GiB", 2_147_483_648.0, "2GiB"),
            (Unit::Octets, "500 MiB", 524_288_000.0, "500MiB"),
            (Unit::Octets, "1MB", 1e6, "976.5625KiB"),
            (Unit::Octets, "300", 300.0, "300"),
            (Unit::Number, "30000", 30_000.0, "30000"),
            (Unit::Number, "0.01", 0.01, "0.01"),
            (Unit::Duration, "10us", 10_000.0, "10us"),
            (Unit::Share, "0.1%", 0.001, "0.1%"),
        ] {
            assert_eq!(unit.read(text), Some(value), "{text}");
            assert_eq!(unit.write(value), written);
        }
        assert_eq!(Unit::Number.read("-1"), None);
        assert_eq!(Unit::Octets.read("1.2.3MiB"), None);
        assert_eq!(Unit::Duration.read("10"), None);
        assert_eq!(Unit::Duration.read("1h"), None);
    }
}
