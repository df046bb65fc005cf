//! A limit on what a change may cost, for a gate in continuous integration.

use std::str::FromStr;

use crate::statistics::{Comparison, Metric};

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

impl CostLimit {
    /// True if the comparison is of this metric and costs more than the limit for certain: the
    /// whole interval lies beyond it. A gate that failed on the estimate alone would fail by noise.
    #[must_use]
    pub fn is_exceeded_by(&self, comparison: &Comparison) -> bool {
        if comparison.metric != self.metric {
            return false;
        }
        let difference = &comparison.difference;
        if self.metric.higher_is_better() {
            difference.high < -self.largest
        } else {
            difference.low > self.largest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Estimate, Verdict};

    fn comparison(metric: Metric, low: f64, high: f64) -> Comparison {
        let difference = Estimate { value: f64::midpoint(low, high), low, high };
        Comparison { variant: "v".to_owned(), metric, difference, verdict: Verdict::Costs }
    }

    #[test]
    fn only_a_certain_cost_exceeds() {
        let cases = [
            ("answered_qps=10%", Metric::AnsweredQps, -0.30, -0.11, true),
            ("answered_qps=10%", Metric::AnsweredQps, -0.30, -0.09, false),
            ("answered_qps=10%", Metric::AnsweredQps, 0.20, 0.30, false),
            ("latency_p99_ns=50%", Metric::LatencyP99, 0.51, 0.90, true),
            ("latency_p99_ns=50%", Metric::LatencyP99, 0.10, 0.90, false),
            ("latency_p99_ns=50%", Metric::LatencyP50, 0.51, 0.90, false),
        ];
        for (limit, metric, low, high, expected) in cases {
            let limit: CostLimit = limit.parse().unwrap();
            let exceeded = limit.is_exceeded_by(&comparison(metric, low, high));
            assert_eq!(exceeded, expected, "{limit:?} {low} {high}");
        }
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
