//! Figures and differences in the cells of the table.

use dnslab_analysis::VariantSummary;
use dnslab_analysis::statistics::{Comparison, Estimate, Verdict};
use dnslab_record::{Metric, Unit};

use super::line::{Look, Piece};
use crate::number;
use crate::variants::is_at_least;

/// A figure of the reference, in its unit, with no more digits than its interval leaves certain.
pub(crate) fn figure(metric: Metric, figure: &Estimate) -> String {
    let (value, half) = (figure.value, figure.half_width().unwrap_or(0.0));
    let written = match (metric, metric.unit()) {
        (Metric::AnsweredQps, _) => return number::qps(number::certain_value(value, half)),
        (Metric::LogOctetsPerQuery, _) | (_, Unit::Number) => number::three_digits(value),
        (_, Unit::Duration) => number::duration(value),
        (_, Unit::Octets) => number::octets(value.max(0.0) as u64),
        (_, Unit::Share) => number::share(value),
    };
    number::certain(&written, value, half)
}

/// A figure of a variant: an answered rate that is a lower bound is one, cut to three digits.
pub(crate) fn of_variant(variant: &VariantSummary, metric: Metric, estimate: &Estimate) -> String {
    if metric != Metric::AnsweredQps || !is_at_least(variant) {
        return figure(metric, estimate);
    }
    let step = 10_f64.powf((estimate.value.max(1.0).log10().floor() - 2.0).max(0.0));
    format!("{AT_LEAST}{}", number::qps((estimate.value / step).floor() * step))
}

/// What stands before a lower bound.
pub(crate) const AT_LEAST: &str = "\u{2265} ";

/// A figure per query as one per second at a rate, in queries per second.
pub(crate) fn per_second(figure: &Estimate, qps: f64) -> String {
    let value = figure.value * qps;
    let half = figure.half_width().unwrap_or(0.0) * qps;
    number::certain(&number::three_digits(value), value, half)
}

/// What stands before the margin within which two figures are equal.
pub(super) const EQUAL: &str = "= ";

/// Where a difference of this size (10 times as much) would stay hidden, nothing is known of it.
pub(crate) const HARDLY_MEASURED: f64 = 9.0;
/// What stands in its place.
pub(super) const UNKNOWN: &str = "unknown";

/// A difference: `-34 ±2 %`, beyond a factor of two `3.1 ±0.2 x`; of a latency and of CPU time as time, `+3.7 ±0.2 us`.
/// What is not certain is dimmed: `~ 5 %` is a difference that is not seen, with
/// the largest one that its interval allows; `-34 ±2 % ?` is one whose interval excludes zero, but which is one of too
/// many comparisons to be certain. `= 2 %` is equal within the margin, and `(0.3 ±0.8 %)` is a control.
pub(crate) fn difference(comparison: &Comparison) -> Piece {
    let difference = &comparison.difference;
    let value = difference.value;
    let Some(half) = difference.half_width() else {
        return Piece::new(Look::Dim, format!("{} ?", number::change(value)));
    };
    match (comparison.verdict, unseen(difference)) {
        (Verdict::Control, _) => Piece::new(Look::Dim, format!("({})", size(comparison, half))),
        (Verdict::Costs | Verdict::Gains, _) => Piece::new(Look::Plain, size(comparison, half)),
        (Verdict::EqualWithin { margin }, _) => {
            Piece::new(Look::Dim, format!("{EQUAL}{}", number::size(margin)))
        }
        (_, Some(unseen)) if unseen >= HARDLY_MEASURED => Piece::new(Look::Dim, UNKNOWN),
        (_, Some(unseen)) if unseen >= number::TIMES_FROM => {
            Piece::new(Look::Dim, format!("~ {:.0} x", 1.0 + unseen))
        }
        (_, Some(unseen)) => Piece::new(Look::Dim, format!("~ {}", percent(unseen, half))),
        (_, None) => Piece::new(Look::Dim, format!("{} ?", size(comparison, half))),
    }
}

/// A difference with its interval, as time where it is one and where the interval excludes zero in time as well.
fn size(comparison: &Comparison, half: f64) -> String {
    let time = comparison.absolute.filter(|_| comparison.metric.unit() == Unit::Duration);
    match time.and_then(|time| Some((time.value, time.half_width()?))) {
        Some((ns, half_ns)) if ns.abs() > half_ns => number::time_with_interval(ns, half_ns),
        _ => with_interval(&comparison.difference, half),
    }
}

/// A relative difference with half the width of its interval, no more digits than that leaves certain. A
/// multiple that is hardly known has the ends of its interval, in whose middle it is not: `31 to 280 x`.
pub(crate) fn with_interval(difference: &Estimate, half: f64) -> String {
    let value = difference.value;
    if value >= number::TIMES_FROM && half > 0.5 * (1.0 + value) {
        return format!("{:.0} to {:.0} x", 1.0 + difference.low, 1.0 + difference.high);
    }
    if value >= number::TIMES_FROM {
        let digits = number::certain_decimals(half).max(usize::from(1.0 + value < 10.0)).min(2);
        return format!("{:.digits$} ±{half:.digits$} x", 1.0 + value);
    }
    let digits = number::certain_decimals(half * 100.0);
    format!("{:+.digits$} ±{:.digits$} %", value * 100.0, half * 100.0)
}

/// The largest difference that the interval allows where it holds 0: with 95 %, and by itself, the true one
/// is no larger. It says nothing of what would have been found: a word takes more than one interval that
/// excludes 0. `None` where there is no interval, or where it excludes zero and only the number of
/// comparisons keeps the difference from being certain.
pub(crate) fn unseen(difference: &Estimate) -> Option<f64> {
    difference.half_width().filter(|half| difference.value.abs() <= *half)?;
    Some(difference.high.max(-difference.low))
}

/// A share in percent with as many digits as `half` leaves certain.
fn percent(share: f64, half: f64) -> String {
    number::percent(share, number::certain_decimals(half * 100.0))
}

#[cfg(test)]
mod tests {
    use dnslab_analysis::NotCompared;

    use super::*;

    #[track_caller]
    fn check(ends: [f64; 3], verdict: Verdict, look: Look, expected: &str) {
        let [value, low, high] = ends;
        let comparison = Comparison {
            variant: "dot".to_owned(),
            against: "udp".to_owned(),
            metric: Metric::AnsweredQps,
            difference: Estimate { value, low, high },
            absolute: None,
            rounds: 5,
            floor: 0.0,
            verdict,
        };
        assert_eq!(difference(&comparison), Piece::new(look, expected));
    }

    #[test]
    fn differences() {
        let unclear = Verdict::CannotTell { more_runs: None };
        check([-0.343, -0.36, -0.325], Verdict::Costs, Look::Plain, "-34 ±2 %");
        check([-0.052, -0.056, -0.048], Verdict::Costs, Look::Plain, "-5.2 ±0.4 %");
        check([0.12, 0.08, 0.16], Verdict::Gains, Look::Plain, "+12 ±4 %");
        check([2.13, 2.02, 2.24], Verdict::Costs, Look::Plain, "3.1 ±0.1 x");
        check([41.0, 38.0, 44.0], Verdict::Costs, Look::Plain, "42 ±3 x");
        check([0.004, -0.05, 0.06], unclear, Look::Dim, "~ 6 %");
        let equal = Verdict::EqualWithin { margin: 0.02 };
        check([0.004, -0.004, 0.006], equal, Look::Dim, "= 2 %");
        check([0.004, -0.004, 0.012], Verdict::Control, Look::Dim, "(+0.4 ±0.8 %)");
        check([0.4, -0.9, 3.0], unclear, Look::Dim, "~ 4 x");
        check([0.4, -0.9, 30.0], unclear, Look::Dim, "unknown");
        check([93.0, 30.0, 279.0], Verdict::Costs, Look::Plain, "31 to 280 x");
        check([0.012, 0.008, 0.016], equal, Look::Dim, "= 2 %");
        check([-0.343, -0.36, -0.325], unclear, Look::Dim, "-34 ±2 % ?");
        check([-0.3, f64::NEG_INFINITY, f64::INFINITY], unclear, Look::Dim, "-30 % ?");
    }

    #[test]
    fn a_lower_bound_is_never_rounded_up() {
        let bound = VariantSummary {
            not_compared: Some(NotCompared::Generator),
            ..VariantSummary::default()
        };
        let estimate = |value| Estimate { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let text = |value| of_variant(&bound, Metric::AnsweredQps, &estimate(value));
        assert_eq!(text(151_999.0), "\u{2265} 151,000");
        assert_eq!(text(99.7), "\u{2265} 99");
        // Its other figures are the server's.
        assert_eq!(of_variant(&bound, Metric::ServerCpuPerQuery, &estimate(6_123.0)), "6.12 us");
        let plain = VariantSummary::default();
        assert_eq!(of_variant(&plain, Metric::AnsweredQps, &estimate(151_999.0)), "151,999");
    }

    #[test]
    fn figures() {
        let check = |metric, value: f64, half: f64, expected: &str| {
            let estimate = Estimate { value, low: value - half, high: value + half };
            assert_eq!(figure(metric, &estimate), expected);
        };
        check(Metric::AnsweredQps, 151_491.2, 1_500.0, "151,000");
        check(Metric::AnsweredQps, 147_300.0, 160_000.0, "150,000");
        check(Metric::LatencyP99, 996_000.0, 300_000.0, "1.0 ms");
        check(Metric::AnsweredQps, 151_491.2, 90.0, "151,490");
        check(Metric::AnsweredQps, 151_491.2, f64::INFINITY, "151,491");
        check(Metric::LatencyP99, 428_000.0, 1_000.0, "428 us");
        check(Metric::LatencyP99, 1_742_000.0, 400_000.0, "1.7 ms");
        check(Metric::ServerCpuPerQuery, 6_123.0, 90.0, "6.12 us");
        check(Metric::PeakMemory, 24_641_536.0, 1.0, "23.5 MiB");
    }
}
