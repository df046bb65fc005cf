//! A limit on what a change may cost, for a gate in continuous integration.

use std::str::FromStr;

use crate::Summary;
use crate::statistics::{Comparison, Estimate, Metric, Verdict};

/// How much worse than the baseline a metric may be: `latency_p99_ns=10%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostLimit {
    /// The metric.
    pub metric: Metric,
    /// The largest cost that is accepted, relative (0.1 = 10 %).
    pub largest: f64,
}

/// The text is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostLimitError {
    /// There is no `=`.
    #[error("`{0}` is no limit: write METRIC=PERCENT, as in answered_qps=10%")]
    Form(String),
    /// There is no such metric.
    #[error("unknown metric `{given}`: it is one of {}", known.join(", "))]
    Metric {
        /// What was given.
        given: String,
        /// All metrics.
        known: Vec<&'static str>,
    },
    /// The percentage cannot be.
    #[error("`{0}` is no percentage of 0 or more: write it as 10%")]
    Percentage(String),
}

impl FromStr for CostLimit {
    type Err = CostLimitError;

    fn from_str(text: &str) -> Result<Self, CostLimitError> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| CostLimitError::Form(text.to_owned()))?;
        let metric =
            Metric::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
                let known = Metric::ALL.into_iter().map(Metric::name).collect();
                CostLimitError::Metric { given: name.to_owned(), known }
            })?;
        let percentage = value.strip_suffix('%').and_then(|number| number.trim().parse().ok());
        match percentage {
            Some(percentage) if (0.0..f64::INFINITY).contains(&percentage) => {
                Ok(Self { metric, largest: percentage / 100.0 })
            }
            _ => Err(CostLimitError::Percentage(value.to_owned())),
        }
    }
}

/// What a limit says of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The variant.
    pub variant: String,
    /// Its relative difference from the variant that it is compared with; `None` if the metric was not measured in both.
    pub difference: Option<Estimate>,
    /// Whether it keeps within the limit.
    pub ruling: Ruling,
}

/// Whether a variant keeps within a limit. A gate that failed on the estimate alone would fail by
/// noise, and one that passed whatever is not certainly beyond its limit would pass what was hardly
/// measured: so there are three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It costs more for certain: the whole interval lies beyond the limit, and not by one run
    /// alone.
    Exceeded,
    /// It does not cost more: the whole interval lies within the limit, its ends included.
    Kept,
    /// The limit lies inside the interval, the interval has no end, one run decides, or the metric
    /// was not measured in both.
    CannotTell,
}

impl CostLimit {
    /// What the limit says of every variant but the baseline, in their order. Empty when there is
    /// no other.
    #[must_use]
    pub fn judge(&self, summary: &Summary) -> Vec<Judgement> {
        let others = summary.variants.iter().filter(|variant| variant.name != summary.baseline);
        let judge = |name: &String| {
            let compared = summary
                .comparisons
                .iter()
                .find(|of| of.variant == *name && of.metric == self.metric);
            Judgement {
                variant: name.clone(),
                difference: compared.map(|comparison| comparison.difference),
                ruling: compared.map_or(Ruling::CannotTell, |found| self.rule(found)),
            }
        };
        others.map(|variant| judge(&variant.name)).collect()
    }

    /// Whether a comparison of this metric keeps within the limit.
    fn rule(&self, comparison: &Comparison) -> Ruling {
        let Estimate { low, high, .. } = comparison.difference;
        let (least, most) =
            if self.metric.higher_is_better() { (-high, -low) } else { (low, high) };
        let doubtful = matches!(comparison.verdict, Verdict::CannotTell { .. });
        if most <= self.largest {
            Ruling::Kept
        } else if least > self.largest && !doubtful {
            Ruling::Exceeded
        } else {
            Ruling::CannotTell
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `limit` says of a variant whose `metric` differs by this interval.
    fn outcome(limit: &str, metric: Metric, [low, high]: [f64; 2]) -> Ruling {
        let limit: CostLimit = limit.parse().unwrap();
        assert_eq!(limit.metric, metric);
        let difference = Estimate { value: f64::midpoint(low, high), low, high };
        // The verdict where no single run decides.
        let verdict = match (low > 0.0 || high < 0.0, (low > 0.0) == metric.higher_is_better()) {
            (false, _) => Verdict::CannotTell { more_runs: None },
            (true, true) => Verdict::Gains,
            (true, false) => Verdict::Costs,
        };
        limit.rule(&comparison(metric, difference, verdict))
    }

    fn comparison(metric: Metric, difference: Estimate, verdict: Verdict) -> Comparison {
        Comparison {
            variant: "v".to_owned(),
            against: "b".to_owned(),
            metric,
            difference,
            absolute: None,
            rounds: 5,
            verdict,
        }
    }

    #[test]
    fn a_limit_is_exceeded_kept_or_neither() {
        use Ruling::{CannotTell, Exceeded, Kept};
        const ENDLESS: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];
        let cases = [
            ("answered_qps=10%", Metric::AnsweredQps, [-0.30, -0.11], Exceeded),
            ("answered_qps=10%", Metric::AnsweredQps, [-0.30, -0.09], CannotTell),
            ("answered_qps=10%", Metric::AnsweredQps, [-0.09, -0.01], Kept),
            ("answered_qps=10%", Metric::AnsweredQps, [-0.09, 0.90], Kept),
            ("answered_qps=10%", Metric::AnsweredQps, [0.20, 0.30], Kept),
            ("answered_qps=10%", Metric::AnsweredQps, ENDLESS, CannotTell),
            // A ratio cannot fall by more than all of it.
            ("answered_qps=100%", Metric::AnsweredQps, [-1.0, 0.5], Kept),
            ("latency_p99_ns=50%", Metric::LatencyP99, [0.51, 0.90], Exceeded),
            ("latency_p99_ns=50%", Metric::LatencyP99, [0.10, 0.90], CannotTell),
            ("latency_p99_ns=50%", Metric::LatencyP99, [-0.90, 0.50], Kept),
            ("latency_p99_ns=50%", Metric::LatencyP99, ENDLESS, CannotTell),
        ];
        for (limit, metric, ends, expected) in cases {
            assert_eq!(outcome(limit, metric, ends), expected, "{limit} {ends:?}");
        }
    }

    #[test]
    fn a_doubtful_comparison_exceeds_nothing() {
        let difference = Estimate { value: 0.3, low: 0.2, high: 0.4 };
        let limit: CostLimit = "latency_p50_ns=10%".parse().unwrap();
        let outcome = |verdict| limit.rule(&comparison(limit.metric, difference, verdict));
        assert_eq!(outcome(Verdict::Costs), Ruling::Exceeded);
        assert_eq!(outcome(Verdict::CannotTell { more_runs: None }), Ruling::CannotTell);
    }

    #[test]
    fn bad_limits_name_the_culprit() {
        for (text, expected) in [
            ("p99", "`p99` is no limit"),
            ("p99=10%", "unknown metric `p99`: it is one of answered_qps, "),
            ("latency_p99_ns=10", "`10` is no percentage"),
            ("latency_p99_ns=-1%", "`-1%` is no percentage"),
        ] {
            let error = text.parse::<CostLimit>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
