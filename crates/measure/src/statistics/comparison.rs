//! A variant against the baseline, in one of four words.

use serde::{Deserialize, Serialize};

use super::Estimate;

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

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Worse than the baseline: the whole interval is on the bad side of zero, and not inside the
    /// margin.
    Costs,
    /// Better than the baseline.
    Gains,
    /// The whole interval is inside the margin.
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
