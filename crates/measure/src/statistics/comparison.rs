//! A variant against the baseline, in one of four words.

use serde::{Deserialize, Serialize};

use super::bootstrap::{relative_variance_of_mean, student};
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
}

impl Metric {
    /// All metrics, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::AnsweredQps,
        Self::LatencyMean,
        Self::LatencyP50,
        Self::LatencyP95,
        Self::LatencyP99,
        Self::ServerCpuPerQuery,
        Self::LogOctetsPerQuery,
    ];

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
            Self::LatencyMean => measured.latency.mean_ns(),
            Self::LatencyP50 => latency(0.5),
            Self::LatencyP95 => latency(0.95),
            Self::LatencyP99 => latency(0.99),
            Self::ServerCpuPerQuery => Measured::server_cpu_per_query_ns(measured),
            Self::LogOctetsPerQuery => measured.log_octets_per_query(),
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
    ///    estimate with the square root of the number of runs and with Student's t. With one run,
    ///    or beyond 100 more, it is not given.
    ///
    /// Costs and gains need that no single run decides: if leaving one run out, of either sample,
    /// turns the sign of the difference, it cannot be told. This is a second lock. The interval is
    /// the first: at least a quarter of the resamples of the bootstrap lack any given run, so that
    /// an interval of such runs holds zero already.
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
        let samples = [baseline_runs, variant_runs];
        let spreads = samples.map(|runs| (relative_variance_of_mean(runs), runs.len()));
        let verdict = match Verdict::of(&difference, metric.higher_is_better(), margin, spreads) {
            Verdict::Costs | Verdict::Gains if one_run_decides(samples) => {
                Verdict::CannotTell { more_runs: None }
            }
            verdict => verdict,
        };
        Some(Self { variant: variant.to_owned(), metric, difference, verdict })
    }
}

impl Verdict {
    /// The numbered rules of [`Comparison::between`] for an interval from samples given as in
    /// [`more_runs`].
    fn of(
        difference: &Estimate,
        higher_is_better: bool,
        margin: f64,
        spreads: [(f64, usize); 2],
    ) -> Self {
        let Estimate { low, high, .. } = *difference;
        if -margin <= low && high <= margin {
            Self::NoDifferenceSeen
        } else if low > 0.0 || high < 0.0 {
            if (low > 0.0) == higher_is_better { Self::Gains } else { Self::Costs }
        } else {
            Self::CannotTell { more_runs: more_runs(difference, margin, spreads) }
        }
    }
}

/// True if leaving one run out, of the baseline or of the variant, turns the sign of the difference
/// of the means. False for samples of one run, of which nothing is left.
fn one_run_decides([baseline, variant]: [&[f64]; 2]) -> bool {
    let mean = |runs: &[f64]| runs.iter().sum::<f64>() / runs.len() as f64;
    let (below, own) = (mean(baseline), mean(variant));
    let turns = |without: f64| without * (own - below) < 0.0;
    without_one(baseline).any(|mean| turns(own - mean))
        || without_one(variant).any(|mean| turns(mean - below))
}

/// The mean of all runs but one, for each run in turn; nothing for fewer than two runs.
fn without_one(runs: &[f64]) -> impl Iterator<Item = f64> {
    let left = runs.len().saturating_sub(1);
    let sum: f64 = runs.iter().sum();
    runs.iter().filter(move |_| left > 0).map(move |run| (sum - run) / left as f64)
}

/// The fewest further runs of each variant with which the interval gets a verdict, if estimate and
/// spread stay as they are. Each sample is given as the variance of its mean, in any unit that both
/// have, and its size: the variances fall with the number of runs, and with the degrees of freedom
/// that grow with it Student's t. `None` if that cannot be said or is above 100.
fn more_runs(difference: &Estimate, margin: f64, spreads: [(f64, usize); 2]) -> Option<u32> {
    if !difference.is_bounded() {
        return None;
    }
    let Estimate { value, low, high } = *difference;
    // A lower end at -1 may have been cut off there. How far it would reach is not known; the upper
    // one of a ratio reaches further, so it stands in.
    let low = if low > -1.0 { low } else { low.min(value - (high - value)) };
    let width_now = relative_width(&spreads)?;
    (1..=MOST_MORE_RUNS).find(|more| {
        let then = spreads.map(|(variance, size)| {
            let size_then = size + *more as usize;
            (variance * size as f64 / size_then as f64, size_then)
        });
        let Some(width_then) = relative_width(&then) else { return false };
        let shrink = width_then / width_now;
        let low = value - (value - low) * shrink;
        let high = value + (high - value) * shrink;
        low > 0.0 || high < 0.0 || (-margin <= low && high <= margin)
    })
}

/// What the width of the interval is in proportion to, for samples as in [`more_runs`]: the
/// standard error times Student's t. `None` without any spread.
fn relative_width(spreads: &[(f64, usize)]) -> Option<f64> {
    let variance: f64 = spreads.iter().map(|(variance, _)| variance).sum();
    Some(variance.sqrt() * student(spreads)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MARGIN: f64 = 0.02;

    #[track_caller]
    fn check(low: f64, value: f64, high: f64, higher_is_better: bool, expected: Verdict) {
        let difference = Estimate { value, low, high };
        let verdict = Verdict::of(&difference, higher_is_better, MARGIN, [(1.0, 5); 2]);
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

    /// Runs that scatter equally in both samples.
    #[track_caller]
    fn check_more(low: f64, value: f64, high: f64, sizes: (usize, usize), expected: Option<u32>) {
        let spreads = [sizes.0, sizes.1].map(|size| (1.0 / size as f64, size));
        assert_eq!(more_runs(&Estimate { value, low, high }, MARGIN, spreads), expected);
    }

    /// Checked against the same rule in Python, with Student's t by numerical integration.
    #[test]
    fn more_runs_shrink_the_interval() {
        // The half width 0.10 must become less than 0.05. With 16 runs instead of 5 it shrinks to
        // sqrt(5 / 16) t(30) / t(8) = 0.495, with 15 to 0.513.
        check_more(-0.05, 0.05, 0.15, (5, 5), Some(11));
        check_more(-0.15, -0.05, 0.05, (5, 5), Some(11));
        // The half width 0.03 must become 0.02: sqrt(4 / 8) t(14) / t(6) = 0.62, with 7 runs 0.67.
        check_more(-0.030001, 0.0, 0.03, (4, 4), Some(4));
        // With 4 runs of each instead of 2, t falls from 4.30 to 2.45: 0.40, with 3 runs 0.53.
        check_more(-0.01, 0.01, 0.03, (2, 2), Some(2));
        // Whichever needs fewer: off zero 0.10 -> 0.019, inside the margin 0.10 -> 0.001.
        check_more(-0.081, 0.019, 0.119, (3, 3), Some(40));
        // Only the end on zero's side counts: 0.06 -> 0.05, though the other is far away.
        check_more(-0.01, 0.05, 0.95, (10, 10), Some(4));
        // Unequal samples: the smaller one is what widens the interval.
        check_more(-0.05, 0.05, 0.15, (2, 1_000), Some(1));
        // The lower end was cut off at -1: 2.5 -> 0.5, a fifth, not 1.5 -> 0.5.
        check_more(-0.99, 0.5, 2.99, (4, 4), Some(21));
        check_more(-1.0, 0.5, 2.99, (4, 4), Some(61));
        // More than 100 would be needed, or no number does.
        check_more(-0.5, 0.02, 0.6, (5, 5), None);
        check_more(-0.021, 0.02, 0.06, (100, 100), None);
        check_more(f64::NEG_INFINITY, 0.1, f64::INFINITY, (1, 5), None);
    }

    #[test]
    fn leaving_one_run_out() {
        #[track_caller]
        fn check(baseline: &[f64], variant: &[f64], expected: bool) {
            assert_eq!(one_run_decides([baseline, variant]), expected);
            assert_eq!(one_run_decides([variant, baseline]), expected, "the other way round");
        }
        check(&[100.0, 101.0, 99.0], &[90.0, 91.0, 89.0], false);
        // One run of the variant, or of the baseline, makes the whole difference.
        check(&[100.0, 101.0, 99.0], &[100.5, 100.5, 60.0], true);
        check(&[100.0, 101.0, 160.0], &[102.0, 103.0, 104.0], true);
        // Down to no difference is not to the other side.
        check(&[100.0, 100.0, 100.0], &[100.0, 100.0, 60.0], false);
        check(&[100.0], &[90.0], false);
        check(&[100.0, 80.0], &[90.0], false);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Why the lock of [`one_run_decides`] is the second one.
        #[test]
        fn an_interval_that_one_run_decides_holds_zero(
            baseline in prop::collection::vec(1.0..3.0, 2..7),
            variant in prop::collection::vec(1.0..3.0, 2..7),
            outlier in 0.1..10.0,
            seed: u64,
        ) {
            let mut variant = variant;
            variant[0] *= outlier;
            if one_run_decides([&baseline, &variant]) {
                let Estimate { low, high, .. } = difference(&baseline, &variant, seed).unwrap();
                prop_assert!(low <= 0.0 && 0.0 <= high, "{low} to {high}");
            }
        }
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
