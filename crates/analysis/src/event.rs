//! What the operator did during the loads of a variant.

use dnslab_record::{EventFacts, RunRecord};
use serde::{Deserialize, Serialize};

/// What was done during the loads of a variant, over its valid runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EventFigures {
    /// The program and its arguments, as in the first run.
    pub command: String,
    /// How long it went on, mean over the runs, nanoseconds.
    pub length_ns: f64,
    /// Queries that ended without an answer in the measured window, mean over the runs.
    pub lost: f64,
    /// Length of time in which so many became due, nanoseconds.
    pub lost_ns: f64,
}

impl EventFigures {
    /// Of runs; `None` if nothing was done in them.
    pub(crate) fn over_runs<'a>(records: impl Iterator<Item = &'a RunRecord>) -> Option<Self> {
        let seen = records.filter_map(|record| {
            let (event, measured) = (record.watched.event.as_ref()?, record.measured.as_ref()?);
            let outcomes = &measured.counters.outcomes;
            let lost_ns = outcomes.lost_share() * measured.window_ns as f64;
            Some((event, outcomes.lost() as f64, lost_ns))
        });
        let seen: Vec<(&EventFacts, f64, f64)> = seen.collect();
        let (first, ..) = seen.first()?;
        let mean = |figure: &dyn Fn(&(&EventFacts, f64, f64)) -> f64| {
            seen.iter().map(figure).sum::<f64>() / seen.len() as f64
        };
        Some(Self {
            command: first.command.join(" "),
            length_ns: mean(&|(event, ..)| (event.ended_ns - event.at_ns) as f64),
            lost: mean(&|(_, lost, _)| *lost),
            lost_ns: mean(&|(.., lost_ns)| *lost_ns),
        })
    }
}
