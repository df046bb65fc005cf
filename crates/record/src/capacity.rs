//! The search for a server's capacity: its steps, and the answer that follows from them.
//!
//! `capacity.json` in a results directory holds a [`Capacity`]; the runs of its steps are records
//! like any other.

use serde::{Deserialize, Serialize};

use crate::bottleneck::BottleneckKind;
use crate::finding::Finding;
use crate::invalid::InvalidReason;
use crate::objective::{Objective, Threshold};
use crate::quantiles::RunFigure;
use crate::run::RunRecord;
use crate::session::CaseId;

/// Version of `capacity.json`; see [`crate::run::RECORD_FORMAT`] for the rule.
pub const CAPACITY_FORMAT: u32 = 1;

/// A search for the capacity of a server, on its way or at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// [`CAPACITY_FORMAT`] at the time of writing.
    pub format: u32,
    /// The server, as the user wrote it.
    pub target: String,
    /// What is looked for, and how.
    pub sought: Sought,
    /// The steps so far, in the order of execution. Each is one run.
    pub steps: Vec<Step>,
    /// Why there is no further step; `None` while there is one.
    pub end: Option<End>,
}

/// What is looked for, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sought", rename_all = "kebab-case")]
pub enum Sought {
    /// The highest rate of an open loop that meets the objective.
    Rate(RateSearch),
    /// The smallest window of a closed loop that gets nearly the highest answered rate.
    Window(WindowSweep),
}

/// How the highest rate is looked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// What has to be met.
    pub objective: Objective,
    /// The first rate of the ramp, queries per second, above 0.
    pub from_qps: f64,
    /// No higher rate is tried, queries per second; at least `from_qps`.
    pub max_qps: f64,
    /// The bisection ends when the bracket is at most this wide: 0.05 = its upper end is 5 % above
    /// its lower one. Above 0.
    pub tolerance: f64,
    /// Runs at each rate around the edge, at least 1.
    pub repeats: u32,
    /// Seed of the order of the repeats.
    pub seed: u64,
}

/// How the windows are swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowSweep {
    /// What a window has to meet to be named, if anything.
    pub objective: Option<Objective>,
    /// Clients that the window is spread over, at least 1.
    pub clients: u32,
    /// No larger window is tried, queries outstanding over all clients; at least 1.
    pub largest: u64,
    /// Runs at each window, at least 1.
    pub repeats: u32,
    /// Seed of the order of the repeats, and of the bootstrap.
    pub seed: u64,
}

/// Where in the search a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// From the first rate up by factors of two; also the first round of a window sweep.
    Ramp,
    /// Halving the bracket.
    Bracket,
    /// Repeats around the edge; also those of a window sweep.
    Repeat,
    /// Repeats at a rate that was met and above which there is no further step.
    Confirm,
}

impl Phase {
    /// Its name, at most seven letters.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ramp => "ramp",
            Self::Bracket => "bracket",
            Self::Repeat => "repeat",
            Self::Confirm => "confirm",
        }
    }
}

/// One step: one run at one rate or window, and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The run.
    pub case: CaseId,
    /// Where in the search it is.
    pub phase: Phase,
    /// Intended queries per second, or queries outstanding over all clients.
    pub at: f64,
    /// What is said of it.
    #[serde(flatten)]
    pub judged: Judged,
    /// Its figures; `None` if the run failed.
    pub figures: Option<StepFigures>,
}

/// The figures of a step that are shown. Rates are in queries per second, times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepFigures {
    /// Queries sent.
    pub offered_qps: f64,
    /// Queries answered.
    pub answered_qps: f64,
    /// Lost queries as a share of the due ones.
    pub lost_share: f64,
    /// Median latency; `None` if no query ended.
    pub p50_ns: Option<u64>,
    /// 0.99 quantile of the latency.
    pub p99_ns: Option<u64>,
    /// What the latency of a lost query reaches, nanoseconds: a quantile of that much is the time-out. 0 in
    /// searches that do not have it.
    #[serde(default)]
    pub max_wait_ns: u64,
    /// What bounded the answered rate; `None` in searches that do not have it.
    #[serde(default)]
    pub bottleneck: Option<BottleneckKind>,
    /// Batch delay that was applied, nanoseconds; `None` in searches that do not have it. A small window
    /// has none, and its clients and workers are no more than its queries.
    #[serde(default)]
    pub batch_delay_ns: Option<u64>,
    /// CPU use of the server in [0, 1] of what it was given; `None` if it was not watched, and in
    /// searches that do not have it.
    #[serde(default)]
    pub server_busy_share: Option<f64>,
}

/// The values that were tried, each once, from the smallest: rates in queries per second, or queries
/// outstanding.
#[must_use]
pub fn tried(steps: &[Step]) -> Vec<f64> {
    let mut values: Vec<f64> = steps.iter().map(|step| step.at).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

impl StepFigures {
    /// The median latency, nanoseconds.
    #[must_use]
    pub fn p50(&self) -> Option<RunFigure> {
        Some(RunFigure::of_quantile(self.p50_ns?, self.max_wait_ns))
    }

    /// The 0.99 quantile of the latency, nanoseconds.
    #[must_use]
    pub fn p99(&self) -> Option<RunFigure> {
        Some(RunFigure::of_quantile(self.p99_ns?, self.max_wait_ns))
    }

    /// The figures of a run; `None` if nothing was measured.
    #[must_use]
    pub fn of(record: &RunRecord) -> Option<Self> {
        let run = record.observation()?;
        let measured = run.measured;
        Some(Self {
            offered_qps: measured.offered_qps(),
            answered_qps: measured.answered_qps(),
            lost_share: measured.counters.outcomes.lost_share(),
            p50_ns: measured.latency.quantile_ns(0.5),
            p99_ns: measured.latency.quantile_ns(0.99),
            max_wait_ns: record.load.max_wait_ns(),
            bottleneck: Some(record.bottleneck.kind),
            batch_delay_ns: Some(record.load.batch_delay_ns),
            server_busy_share: run.server_busy_share(),
        })
    }
}

/// Why a search has no further step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum End {
    /// The edge was found and repeated; or all windows were.
    Edge,
    /// The highest rate that was allowed is met.
    Max {
        /// That rate, queries per second.
        qps: f64,
    },
    /// The generator cannot do more.
    Generator {
        /// The highest rate that was met and confirmed, queries per second; `None` if none was.
        qps: Option<f64>,
    },
    /// Even the lowest rate violates the objective.
    Lowest,
    /// The server could not be measured any more.
    Failed {
        /// What happened.
        reason: String,
    },
    /// The user ended it.
    Interrupted,
}

impl Sought {
    /// What has to be met, if anything.
    #[must_use]
    pub fn objective(&self) -> Option<&Objective> {
        match self {
            Self::Rate(search) => Some(&search.objective),
            Self::Window(sweep) => sweep.objective.as_ref(),
        }
    }
}

/// What is said of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Judged {
    /// Everything is met.
    Met,
    /// The server does not meet it.
    Violated {
        /// What is not met; not empty.
        breaches: Vec<Breach>,
    },
    /// It is not met, and the generator explains all of it: the server may do more.
    GeneratorLimited {
        /// What is not met; not empty.
        breaches: Vec<Breach>,
        /// What the generator lacked, and the remedy.
        generator: Finding,
    },
    /// The run failed, so nothing can be said.
    Failed {
        /// Why.
        reason: String,
    },
}

/// One thing that is not met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "breach", rename_all = "kebab-case")]
pub enum Breach {
    /// A demand of the objective.
    Threshold {
        /// The demand.
        demand: Threshold,
        /// The figure: a share in [0, 1], or nanoseconds; `None` if there was no query.
        found: Option<f64>,
    },
    /// Fewer queries were sent than became due: it was not the rate that should be tried.
    NotOffered {
        /// Queries that became due.
        due: u64,
        /// Queries that were sent.
        sent: u64,
    },
    /// Fewer answers came inside the window than its queries got in the end: the server does not
    /// keep up, and in a longer window the latency would grow further.
    Backlog {
        /// Queries of the window that were answered in the end.
        answered: u64,
        /// Answers that came inside the window.
        in_window: u64,
    },
    /// The run does not count: its answers were wrong, or there was none.
    Invalid {
        /// Why.
        reason: InvalidReason,
    },
}

impl Judged {
    /// True if everything is met.
    #[must_use]
    pub fn is_met(&self) -> bool {
        *self == Self::Met
    }

    /// What is not met.
    #[must_use]
    pub fn breaches(&self) -> &[Breach] {
        match self {
            Self::Violated { breaches } | Self::GeneratorLimited { breaches, .. } => breaches,
            Self::Met | Self::Failed { .. } => &[],
        }
    }
}
