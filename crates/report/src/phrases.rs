//! The words in which a difference of a metric is told.

use dnslab_measure::statistics::{Estimate, Metric};

use crate::number;

/// The words for one metric.
pub(crate) struct Phrases {
    /// What the variant does: `answers`.
    pub(crate) verb: &'static str,
    /// What is compared, as the object of a sentence.
    pub(crate) noun: &'static str,
    /// After "X % " when the variant has less.
    less: &'static str,
    /// After "X % " when the variant has more.
    more: &'static str,
    /// What follows the comparative, before "than".
    object: &'static str,
    /// After "N times ", for large differences.
    times: &'static str,
    /// Both directions at once, before "than", after "whether X".
    pub(crate) either: &'static str,
}

impl Phrases {
    /// The words for `metric`.
    pub(crate) fn of(metric: Metric) -> Self {
        let latency = |noun, times, either| Self {
            verb: "has",
            noun,
            less: "less",
            more: "more",
            object: noun,
            times,
            either,
        };
        match metric {
            Metric::AnsweredQps => Self {
                verb: "answers",
                noun: "answered queries per second",
                less: "fewer",
                more: "more",
                object: "queries per second",
                times: "as many queries per second",
                either: "answers fewer or more queries per second",
            },
            Metric::LatencyMean => {
                latency("mean latency", "the mean latency", "has less or more mean latency")
            }
            Metric::LatencyP50 => {
                latency("median latency", "the median latency", "has less or more median latency")
            }
            Metric::LatencyP95 => {
                latency("p95 latency", "the p95 latency", "has less or more p95 latency")
            }
            Metric::LatencyP99 => {
                latency("p99 latency", "the p99 latency", "has less or more p99 latency")
            }
            Metric::ServerCpuPerQuery => Self {
                verb: "takes",
                noun: "server CPU time per answered query",
                less: "less",
                more: "more",
                object: "server CPU time per answered query",
                times: "the server CPU time per answered query",
                either: "takes less or more server CPU time per answered query",
            },
            Metric::LogOctetsPerQuery => Self {
                verb: "writes",
                noun: "octets of log per answered query",
                less: "fewer",
                more: "more",
                object: "octets of log per answered query",
                times: "the octets of log per answered query",
                either: "writes fewer or more octets of log per answered query",
            },
            Metric::PeakMemory => Self {
                verb: "takes",
                noun: "server memory",
                less: "less",
                more: "more",
                object: "server memory",
                times: "the server memory",
                either: "takes less or more server memory",
            },
            Metric::HandshakesPerQuery => Self {
                verb: "makes",
                noun: "TLS handshakes per answered query",
                less: "fewer",
                more: "more",
                object: "TLS handshakes per answered query",
                times: "the TLS handshakes per answered query",
                either: "makes fewer or more TLS handshakes per answered query",
            },
        }
    }

    /// True if this difference is told as a multiple.
    fn is_multiple(difference: f64) -> bool {
        difference >= number::TIMES_FROM
    }

    /// The size of the difference: `37 % fewer`, `4.8 times`.
    pub(crate) fn amount(&self, difference: f64) -> String {
        if Self::is_multiple(difference) {
            format!("{} times", times(difference))
        } else {
            let direction = if difference < 0.0 { self.less } else { self.more };
            format!("{} {direction}", number::size(difference))
        }
    }

    /// What there is less or more of.
    pub(crate) fn unit_of(&self, difference: f64) -> &'static str {
        if Self::is_multiple(difference) { self.times } else { self.object }
    }

    /// [`Phrases::unit_of`] and the word before the baseline.
    pub(crate) fn than(&self, difference: f64) -> String {
        let conjunction = match self.verb {
            "answers" if Self::is_multiple(difference) => "as",
            _ if Self::is_multiple(difference) => "of",
            _ => "than",
        };
        format!("{} {conjunction}", self.unit_of(difference))
    }
}

/// A relative difference of 3.8 as the multiple 4.8.
fn times(difference: f64) -> String {
    number::three_digits(1.0 + difference)
}

/// Both ends of the interval in the form of the difference: sizes when both are on its side of
/// zero, multiples when the difference is told as one, else signed percentages.
pub(crate) fn interval(difference: &Estimate) -> String {
    let Estimate { value, low, high } = *difference;
    if !difference.is_bounded() {
        "unbounded".to_owned()
    } else if Phrases::is_multiple(value) {
        format!("{} to {} times", times(low), times(high))
    } else if low >= 0.0 && value >= 0.0 {
        format!("{} to {}", number::size(low), number::size(high))
    } else if high <= 0.0 && value < 0.0 {
        format!("{} to {}", number::size(high), number::size(low))
    } else {
        signed_interval(difference)
    }
}

/// A difference of times in their own unit, with its interval: `0.31 ms, 0.28 ms to 0.34 ms`; `None`
/// for what is no time, and where nothing is known of the spread.
pub(crate) fn in_time(metric: Metric, absolute: Option<&Estimate>) -> Option<String> {
    let Estimate { value, low, high } =
        *absolute.filter(|of| metric.is_latency() && of.is_bounded())?;
    let signed = |ns: f64| {
        let sign = if ns < 0.0 { "-" } else { "" };
        format!("{sign}{}", number::duration(ns.abs()))
    };
    Some(format!("{}, {} to {}", signed(value), signed(low), signed(high)))
}

/// Both ends of the interval as signed percentages.
pub(crate) fn signed_interval(difference: &Estimate) -> String {
    format!("{} to {}", number::change(difference.low), number::change(difference.high))
}
