//! A variant against the baseline, in one of four words.

use serde::{Deserialize, Serialize};

use super::{Estimate, difference};
use crate::{Measured, RunRecord};

/// More runs than this are not proposed: the difference is better sought in another way.
const MOST_MORE_RUNS: u32 = 100;

/// A figure of a run that variants are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Answered queries per second; more is better.
    AnsweredQps,
    /// Median latency, nanoseconds; less is better.
    LatencyP50,
    /// 0.95 quantile of the latency, nanoseconds; less is better.
    LatencyP95,
    /// 0.99 quantile of the latency, nanoseconds; less is better.
    LatencyP99,
    /// The server's CPU time per answered query, nanoseconds; less is better.
    ServerCpuPerQuery,
}

impl Metric {
    /// All metrics, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::AnsweredQps,
        Self::LatencyP50,
        Self::LatencyP95,
        Self::LatencyP99,
        Self::ServerCpuPerQuery,
    ];

    /// Name in tables that machines read, with the unit last.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AnsweredQps => "answered_qps",
            Self::LatencyP50 => "latency_p50_ns",
            Self::LatencyP95 => "latency_p95_ns",
            Self::LatencyP99 => "latency_p99_ns",
            Self::ServerCpuPerQuery => "server_cpu_per_query_ns",
        }
    }

    /// Name for people, as it stands inside a sentence.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::AnsweredQps => "answered queries per second",
            Self::LatencyP50 => "median latency",
            Self::LatencyP95 => "95th percentile of the latency",
            Self::LatencyP99 => "99th percentile of the latency",
            Self::ServerCpuPerQuery => "server CPU time per answered query",
        }
    }

    /// True if a larger value is the better one.
    #[must_use]
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::AnsweredQps)
    }

    /// The value in one run, in the unit of [`Metric::name`]; `None` if it was not measured.
    /// Whether the run is valid is not asked.
    #[must_use]
    pub fn of(self, record: &RunRecord) -> Option<f64> {
        let measured = record.measured.as_ref()?;
        let latency = |quantile| Some(measured.latency.quantile_ns(quantile)? as f64);
        match self {
            Self::AnsweredQps => Some(measured.answered_qps()),
            Self::LatencyP50 => latency(0.5),
            Self::LatencyP95 => latency(0.95),
            Self::LatencyP99 => latency(0.99),
            Self::ServerCpuPerQuery => Measured::server_cpu_per_query_ns(measured),
        }
        .filter(|value| value.is_finite())
    }
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Worse than the baseline: the whole interval is on the bad side of zero, and not inside the
    /// margin.
    Costs,
    /// Better than the baseline: the whole interval is on the good side of zero, and not inside
    /// the margin.
    Gains,
    /// The whole interval is inside the margin, its ends included.
    NoDifferenceSeen,
    /// The interval is too wide for any of the others.
    CannotTell {
        /// How many more runs of each variant would probably do; `None` if that cannot be said.
        more_runs: Option<u32>,
    },
}

/// One metric of one variant against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The variant.
    pub variant: String,
    /// What is compared.
    pub metric: Metric,
    /// The relative difference from the baseline (0.1 = 10 % more).
    pub difference: Estimate,
    /// What it means.
    pub verdict: Verdict,
}

impl Comparison {
    /// Compares the runs of a variant with those of the baseline, one value of `metric` for each
    /// run. `margin` is the relative difference that does not matter (0.02 = 2 %).
    ///
    /// The verdict, in this order:
    /// 1. the whole interval within ±`margin`: no difference seen. This goes first, so a
    ///    difference that is certain but too small to matter is none;
    /// 2. the interval excludes zero: costs or gains, by the side that is good for `metric`;
    /// 3. else it cannot be told, and the number of runs is given that would probably do, at the
    ///    present estimate and spread, for one of the two above: the ends come nearer to the
    ///    estimate with the square root of the number of runs. That Student's t shrinks too is left
    ///    out, so with few runs the number errs on the side of too many: about twofold with 3 of
    ///    each, up to tenfold with 2. With one run, or beyond 100 more, it is not given.
    ///
    /// `None` when [`difference`] has none.
    #[must_use]
    pub fn between(
        metric: Metric,
        baseline_runs: &[f64],
        variant: &str,
        variant_runs: &[f64],
        margin: f64,
        seed: u64,
    ) -> Option<Self> {
        let difference = difference(baseline_runs, variant_runs, seed)?;
        let sizes = (baseline_runs.len(), variant_runs.len());
        let verdict = Verdict::of(&difference, metric.higher_is_better(), margin, sizes);
        Some(Self { variant: variant.to_owned(), metric, difference, verdict })
    }
}

impl Verdict {
    /// The rule of [`Comparison::between`] for an interval from samples of these sizes.
    fn of(
        difference: &Estimate,
        higher_is_better: bool,
        margin: f64,
        sizes: (usize, usize),
    ) -> Self {
        let Estimate { low, high, .. } = *difference;
        if -margin <= low && high <= margin {
            Self::NoDifferenceSeen
        } else if low > 0.0 || high < 0.0 {
            if (low > 0.0) == higher_is_better { Self::Gains } else { Self::Costs }
        } else {
            Self::CannotTell { more_runs: more_runs(difference, margin, sizes) }
        }
    }
}

/// The fewest further runs of each variant with which an interval that shrinks with the square
/// root of the number of runs gets a verdict; `None` if that cannot be said or is above 100.
fn more_runs(difference: &Estimate, margin: f64, sizes: (usize, usize)) -> Option<u32> {
    if !difference.is_bounded() {
        return None;
    }
    let Estimate { value, low, high } = *difference;
    // A lower end at -1 may have been cut off there. How far it would reach is not known; the upper
    // one of a ratio reaches further, so it stands in.
    let low = if low > -1.0 { low } else { low.min(value - (high - value)) };
    // The variance of a difference of two means goes with this.
    let variance = |more: u32| {
        let share = |size: usize| 1.0 / (size as f64 + f64::from(more));
        share(sizes.0) + share(sizes.1)
    };
    (1..=MOST_MORE_RUNS).find(|more| {
        let shrink = (variance(*more) / variance(0)).sqrt();
        let low = value - (value - low) * shrink;
        let high = value + (high - value) * shrink;
        low > 0.0 || high < 0.0 || (-margin <= low && high <= margin)
    })
}
#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: f64 = 0.02;

    #[track_caller]
    fn check(low: f64, value: f64, high: f64, higher_is_better: bool, expected: Verdict) {
        let difference = Estimate { value, low, high };
        let verdict = Verdict::of(&difference, higher_is_better, MARGIN, (5, 5));
        assert_eq!(verdict, expected, "{difference:?}");
    }

    #[test]
    fn verdicts() {
        use Verdict::{Costs, Gains, NoDifferenceSeen};
        check(0.05, 0.10, 0.15, true, Gains);
        check(0.05, 0.10, 0.15, false, Costs);
        check(-0.15, -0.10, -0.05, true, Costs);
        check(-0.15, -0.10, -0.05, false, Gains);
        // Barely off zero is enough outside the margin.
        check(0.001, 0.02, 0.04, true, Gains);
        check(-0.04, -0.02, -0.001, true, Costs);
        // Inside the margin first, ends included, though the interval excludes zero.
        check(-0.01, 0.0, 0.01, true, NoDifferenceSeen);
        check(0.005, 0.01, 0.015, true, NoDifferenceSeen);
        check(-MARGIN, 0.0, MARGIN, false, NoDifferenceSeen);
        check(0.0, 0.0, 0.0, true, NoDifferenceSeen);
        let cannot = |more_runs| Verdict::CannotTell { more_runs };
        // Zero is in the interval if it is one of its ends.
        check(0.0, 0.05, 0.10, true, cannot(Some(1)));
        check(-0.10, -0.05, 0.0, true, cannot(Some(1)));
        check(f64::NEG_INFINITY, 0.5, f64::INFINITY, true, cannot(None));
    }

    #[track_caller]
    fn check_more(low: f64, value: f64, high: f64, sizes: (usize, usize), expected: Option<u32>) {
        assert_eq!(more_runs(&Estimate { value, low, high }, MARGIN, sizes), expected);
    }

    #[test]
    fn more_runs_shrink_the_interval_with_their_square_root() {
        // The half width 0.10 must become less than 0.05: more than 4 times the runs.
        check_more(-0.05, 0.05, 0.15, (5, 5), Some(16));
        check_more(-0.15, -0.05, 0.05, (5, 5), Some(16));
        // The half width 0.03 must become 0.02, (3/2)^2 = 2.25 times the runs: 4 become 9.
        check_more(-0.030001, 0.0, 0.03, (4, 4), Some(6));
        check_more(-0.029999, 0.0, 0.029999, (4, 4), Some(5));
        // Whichever needs fewer: off zero 0.10 -> 0.019, inside the margin 0.10 -> 0.001.
        check_more(-0.081, 0.019, 0.119, (3, 3), Some(81));
        // Only the end on zero's side counts: 0.06 -> 0.05, though the other is far away.
        check_more(-0.01, 0.05, 0.95, (10, 10), Some(5));
        // Unequal samples: the smaller one is what widens the interval.
        check_more(-0.05, 0.05, 0.15, (2, 1_000), Some(7));
        // The lower end was cut off at -1: 2.5 -> 0.5, 25 times the runs, not 1.5 -> 0.5.
        check_more(-0.99, 0.5, 2.99, (4, 4), Some(32));
        check_more(-1.0, 0.5, 2.99, (4, 4), Some(96));
        // More than 100 would be needed, or no number does.
        check_more(-0.5, 0.05, 0.6, (5, 5), None);
        check_more(-0.021, 0.02, 0.06, (100, 100), None);
        check_more(f64::NEG_INFINITY, 0.1, f64::INFINITY, (1, 5), None);
    }

    #[test]
    fn runs_are_compared() {
        let compare = |metric, variant: &[f64]| {
            Comparison::between(metric, &[100.0, 101.0, 99.0, 100.5], "dot", variant, MARGIN, 1)
        };
        let low = [70.0, 71.0, 69.0, 70.5];
        let comparison = compare(Metric::AnsweredQps, &low).unwrap();
        assert_eq!((comparison.variant.as_str(), comparison.verdict), ("dot", Verdict::Costs));
        assert!((comparison.difference.value + 0.30).abs() < 0.01, "{comparison:?}");
        for metric in [Metric::LatencyP50, Metric::LatencyP99, Metric::ServerCpuPerQuery] {
            assert_eq!(compare(metric, &low).unwrap().verdict, Verdict::Gains);
        }
        let one = compare(Metric::AnsweredQps, &[70.0]).unwrap();
        assert_eq!(one.verdict, Verdict::CannotTell { more_runs: None });
        assert!(!one.difference.is_bounded());
        assert_eq!(compare(Metric::AnsweredQps, &[]), None);
    }

    #[test]
    fn names_are_distinct() {
        let names: std::collections::BTreeSet<_> = Metric::ALL.map(Metric::name).into();
        assert_eq!(names.len(), Metric::ALL.len());
    }
}
