//! What a search has found.

use dnslab_record::{Capacity, End, Finding, Judged, Sought, Step};
use serde::{Deserialize, Serialize};

use super::BestWindow;
use super::threshold::{Run, Trial, of_server, threshold};
use crate::statistics::Estimate;

/// What a search has found, computed from its steps alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The capacity: the rate that half of the runs meet, with its interval.
    Found {
        /// Queries per second.
        qps: Estimate,
    },
    /// The capacity is not below this rate; more could not or should not be tried.
    AtLeast {
        /// Queries per second.
        qps: f64,
        /// What the generator lacked; `None` if the highest rate that was allowed is met.
        generator: Option<Finding>,
    },
    /// Even the lowest rate is not met.
    Below {
        /// That rate, queries per second.
        qps: f64,
        /// What the generator lacked, if it had a part in it.
        generator: Option<Finding>,
    },
    /// The window to use.
    Window(BestWindow),
    /// There is no answer: the search ended before it was there.
    Nothing {
        /// What the steps say so far.
        outlook: Outlook,
        /// What went wrong; `None` if the user ended it.
        failure: Option<String>,
    },
}

/// What can be said before the end of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// The highest rate that was met more often than not, queries per second.
    pub met: Option<f64>,
    /// The lowest rate above it that was violated at least as often as met, queries per second.
    pub violated: Option<f64>,
}

/// What has been found up to now.
#[must_use]
pub fn answer(capacity: &Capacity) -> Answer {
    let failure = match &capacity.end {
        Some(End::Failed { reason }) => Some(reason.clone()),
        _ => None,
    };
    let nothing = || Answer::Nothing { outlook: outlook(&capacity.steps), failure };
    match (&capacity.sought, &capacity.end) {
        // A sweep that was ended early names the best of what it has.
        (Sought::Window(sweep), _) => {
            BestWindow::of(sweep, &capacity.steps).map_or_else(nothing, Answer::Window)
        }
        (Sought::Rate(search), Some(End::Lowest)) => {
            Answer::Below { qps: search.from_qps, generator: None }
        }
        (Sought::Rate(search), Some(End::Generator { qps: None })) => {
            Answer::Below { qps: search.from_qps, generator: generator(capacity) }
        }
        (Sought::Rate(_), Some(End::Generator { qps: Some(qps) })) => {
            Answer::AtLeast { qps: *qps, generator: generator(capacity) }
        }
        (Sought::Rate(_), Some(End::Max { qps })) => Answer::AtLeast { qps: *qps, generator: None },
        (Sought::Rate(_), Some(End::Edge)) => {
            threshold(&trials(capacity)).map_or_else(nothing, |qps| Answer::Found { qps })
        }
        (Sought::Rate(_), None | Some(End::Failed { .. } | End::Interrupted)) => nothing(),
    }
}

/// The runs that say something of the server, as trials: neither those that failed nor those of
/// [`of_server`].
#[must_use]
pub fn trials(capacity: &Capacity) -> Vec<Trial> {
    trials_of(&capacity.steps)
}

/// What the generator lacked in the last of the steps that it limited.
fn generator(capacity: &Capacity) -> Option<Finding> {
    capacity.steps.iter().rev().find_map(|step| match &step.judged {
        Judged::GeneratorLimited { generator, .. } => Some(generator.clone()),
        _ => None,
    })
}

fn trials_of(steps: &[Step]) -> Vec<Trial> {
    let runs = steps.iter().filter_map(|step| {
        let met = match step.judged {
            Judged::Met => Some(true),
            Judged::Violated { .. } => Some(false),
            Judged::GeneratorLimited { .. } => None,
            Judged::Failed { .. } => return None,
        };
        Some(Run { qps: step.at, met })
    });
    of_server(&runs.collect::<Vec<_>>())
}

/// Where the edge lies by the majority of the runs at each rate.
fn outlook(steps: &[Step]) -> Outlook {
    let trials = trials_of(steps);
    let rates = trials.iter().map(|trial| trial.qps);
    let (met, violated): (Vec<f64>, Vec<f64>) = rates.partition(|qps| mostly_met(&trials, *qps));
    let met = met.into_iter().max_by(f64::total_cmp);
    let violated = violated.into_iter().filter(|qps| met.is_none_or(|met| *qps > met));
    Outlook { met, violated: violated.min_by(f64::total_cmp) }
}

fn mostly_met(trials: &[Trial], qps: f64) -> bool {
    let own: Vec<bool> =
        trials.iter().filter(|trial| trial.qps == qps).map(|trial| trial.met).collect();
    2 * own.iter().filter(|met| **met).count() > own.len()
}
