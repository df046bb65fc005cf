//! The metrics of a load: what each is called, its unit, and which way is better.

use std::fmt;

use dnslab_wire::units::{duration, number, octets, share};
use serde::{Deserialize, Serialize};

/// Makes [`Metric`] of its rows: the word of a user, the column, the unit, whether more or less is better, and the
/// weight. The docstrings are the descriptions in `docs/summary.schema.json`.
macro_rules! metrics {
    (
        $(#[$of_enum:meta])*
        compared {$(
            $(#[$of_metric:meta])*
            $metric:ident: $word:literal, $column:literal, $unit:ident, $better:ident, weight $weight:literal;
        )+}
        others {$(
            $(#[$of_other:meta])*
            $other:ident: $other_word:expr, $other_column:literal, $other_unit:ident, $other_better:ident;
        )+}
    ) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[derive(schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Metric {
            $($(#[$of_metric])* $metric,)+
            $($(#[$of_other])* $other,)+
        }

        impl Metric {
            /// All that variants are compared by over whole runs, in the order in which they are shown.
            pub const COMPARED: [Self; [$($word),+].len()] = [$(Self::$metric),+];

            /// The words of [`Metric::COMPARED`], in the same order.
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            /// All of them.
            pub const ALL: [Self; [$($word,)+ $($other_column),+].len()] =
                [$(Self::$metric,)+ $(Self::$other),+];

            fn row(self) -> Row {
                match self {
                    $(Self::$metric => Row {
                        word: Some($word),
                        column: $column,
                        unit: Unit::$unit,
                        better: Better::$better,
                        weight: $weight,
                    },)+
                    $(Self::$other => Row {
                        word: $other_word,
                        column: $other_column,
                        unit: Unit::$other_unit,
                        better: Better::$other_better,
                        weight: 1.0,
                    },)+
                }
            }
        }
    };
}

struct Row {
    word: Option<&'static str>,
    column: &'static str,
    unit: Unit,
    better: Better,
    weight: f64,
}

#[derive(PartialEq)]
enum Better {
    More,
    Less,
}

metrics! {
    /// A figure of a run that variants are compared by.
    compared {
        /// Answered queries per second; more is better.
        AnsweredQps: "qps", "answered_qps", Number, More, weight 4.0;
        /// Mean latency, nanoseconds; less is better.
        LatencyMean: "mean", "latency_mean_ns", Duration, Less, weight 1.0;
        /// Median latency, nanoseconds; less is better.
        LatencyP50: "p50", "latency_p50_ns", Duration, Less, weight 2.0;
        /// 0.95 quantile of the latency, nanoseconds; less is better.
        LatencyP95: "p95", "latency_p95_ns", Duration, Less, weight 1.0;
        /// 0.99 quantile of the latency, nanoseconds; less is better.
        LatencyP99: "p99", "latency_p99_ns", Duration, Less, weight 1.0;
        /// The server's CPU time per answered query, nanoseconds; less is better.
        ServerCpuPerQuery: "cpu_per_query", "server_cpu_per_query_ns", Duration, Less, weight 4.0;
        /// Octets that the server wrote to its logs of queries, per answered query; less is better.
        LogOctetsPerQuery: "log_per_query", "log_octets_per_query", Octets, Less, weight 1.0;
        /// Largest memory of the servers, octets; less is better. Variants whose servers ran before are not compared by
        /// it: such a process keeps the memory that earlier loads needed.
        #[schemars(description = "Largest memory of the servers, octets ([`RunRecord::peak_memory_octets`]); less is \
            better. Those of servers that\nran before are never compared: what a process had needed for earlier loads \
            it keeps.")]
        PeakMemory: "memory", "peak_memory_octets", Octets, Less, weight 1.0;
        /// TLS handshakes for each answered query, full and resumed; less is better.
        HandshakesPerQuery: "handshakes", "handshakes_per_query", Number, Less, weight 1.0;
    }
    others {
        /// Due queries that were not answered, as a share in [0, 1]; less is better. Only bounds are set on it.
        #[serde(skip)]
        LostShare: Some("lost"), "lost_share", Share, Less;
        /// Answered queries as a share of the due ones, in [0, 1]; more is better. Of time windows only.
        AnsweredShare: Some("answered"), "answered_share", Share, More;
        /// Queries answered without an error as a share of the due ones, in [0, 1]; more is better. Of time windows
        /// only.
        #[schemars(description = "Queries answered without an error likewise \
            ([`dnslab_figures::Outcomes::share_without_error`]).")]
        SoundShare: None, "answered_without_error_share", Share, More;
        /// The largest latency, nanoseconds; less is better. Only bounds are set on it.
        #[serde(skip)]
        LatencyMax: Some("max"), "latency_max_ns", Duration, Less;
    }
}

impl Metric {
    /// The metrics of a time window, in the order in which they are shown.
    pub const OF_WINDOWS: [Self; 4] =
        [Self::AnsweredShare, Self::SoundShare, Self::LatencyP50, Self::LatencyP99];

    /// The word of experiment files and command lines; `None` if a user cannot name it.
    #[must_use]
    pub fn word(self) -> Option<&'static str> {
        self.row().word
    }

    /// Name in tables that machines read, with the unit last.
    #[must_use]
    pub fn column(self) -> &'static str {
        self.row().column
    }

    /// In what it is measured.
    #[must_use]
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// True if a larger value is the better one.
    #[must_use]
    pub fn higher_is_better(self) -> bool {
        self.row().better == Better::More
    }

    /// Its share of the error rate of a report, next to those of the other metrics. What a decision
    /// is made by weighs more than quantiles far out, which hardly any number of rounds makes
    /// certain. The metric that answers the question of the experiment, if it names one, weighs as much
    /// as all others together.
    #[must_use]
    pub fn weight(self, answered_by: Option<Self>) -> f64 {
        if answered_by != Some(self) {
            return self.row().weight;
        }
        let others = Self::COMPARED.into_iter().filter(|other| *other != self);
        others.map(|other| other.row().weight).sum()
    }

    /// True if it is a time that a client waits.
    #[must_use]
    pub fn is_latency(self) -> bool {
        self.quantile().is_some() || matches!(self, Self::LatencyMean | Self::LatencyMax)
    }

    /// Which quantile of the latency it is, in [0, 1].
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::LatencyP50 => Some(0.5),
            Self::LatencyP95 => Some(0.95),
            Self::LatencyP99 => Some(0.99),
            _ => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word().unwrap_or(self.column()))
    }
}

/// The unit of a metric, in which its bounds are written.
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

impl Unit {
    /// A value in this unit; `None` if the text is none.
    #[must_use]
    pub fn read(self, text: &str) -> Option<f64> {
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

    /// The text that [`Unit::read`] reads as this value.
    #[must_use]
    pub fn write(self, value: f64) -> String {
        match self {
            Self::Share => share::write(value),
            Self::Duration => duration::write_ns(value),
            Self::Octets => octets::write(value),
            Self::Number => number::write(value),
        }
    }

    /// What a value is called.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Duration => "duration",
            Self::Octets => "number of octets",
            Self::Number => "number",
        }
    }

    /// How a value is written, for a user who wrote it otherwise.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Share => "write it as 0.1% or 0.001",
            Self::Duration => "write it with its unit, as 500us, 10ms or 2s",
            Self::Octets => "write it as 500MiB or 2GiB",
            Self::Number => "write it as 30000 or 0.5",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_names_of_its_own() {
        for (place, metric) in Metric::ALL.into_iter().enumerate() {
            for other in &Metric::ALL[..place] {
                assert_ne!(metric.column(), other.column());
                assert_ne!(metric.to_string(), other.to_string());
            }
        }
        assert_eq!(Metric::COMPARED.map(|metric| metric.word().unwrap()), Metric::WORDS);
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
