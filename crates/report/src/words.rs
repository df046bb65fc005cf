//! The words for what records and findings have as figures: metrics, caveats, bottlenecks, findings, reasons, compared answers.

pub(crate) mod answers;
pub(crate) mod bottleneck;
pub(crate) mod capacity;
pub(crate) mod caveat;
pub(crate) mod cpu;
pub(crate) mod invalid;
pub(crate) mod metric;
pub(crate) mod self_check;
pub(crate) mod session_comparison;
#[cfg(test)]
mod tests;

use dnslab_record::TimeOuts;

use crate::variants::{grouped, listed};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) what: String,
    /// How much of it; empty if there is no figure.
    pub(crate) figure: String,
    /// What can be done, a sentence without its full stop; empty if nothing needs to be.
    pub(crate) remedy: String,
}

impl Remark {
    pub(crate) fn new(
        what: impl Into<String>,
        figure: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), figure: figure.into(), remedy: remedy.into() }
    }

    /// The whole as sentences: what with its figure, then the remedy.
    pub(crate) fn text(&self) -> String {
        let figure = match self.figure.as_str() {
            "" => String::new(),
            figure => format!(" ({figure})"),
        };
        let remedy = match self.remedy.as_str() {
            "" => String::new(),
            remedy => format!(" {remedy}."),
        };
        format!("{}{figure}.{remedy}", self.what)
    }
}

/// How much of a doubt there is in one variant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Amount {
    pub(crate) variant: String,
    /// Empty if there is no figure.
    pub(crate) figure: String,
    /// The larger, the worse; 0 where that is not known.
    pub(crate) size: f64,
}

/// More different figures than these are told by their ends.
const MAX_FIGURES: usize = 3;

/// The figures of one doubt in several variants. One that all have alike stands alone; another one names its variants,
/// or is an end of a range. Empty without a figure.
pub(crate) fn amounts(amounts: &[Amount]) -> String {
    let known = || amounts.iter().filter(|amount| !amount.figure.is_empty());
    let figures = grouped(known().map(|known| (known.figure.as_str(), known.variant.as_str())));
    let named = |(figure, variants): &(&str, Vec<&str>)| format!("{}: {figure}", listed(variants));
    match figures.as_slice() {
        [] => String::new(),
        [(figure, variants)] if variants.len() == amounts.len() => (*figure).to_owned(),
        few if few.len() <= MAX_FIGURES => few.iter().map(named).collect::<Vec<_>>().join(" / "),
        several => {
            let by_size = |one: &&Amount, other: &&Amount| one.size.total_cmp(&other.size);
            match (known().min_by(by_size), known().max_by(by_size)) {
                (Some(least), Some(most)) if least.size < most.size => format!(
                    "least in {}: {}; most in {}: {}",
                    least.variant, least.figure, most.variant, most.figure
                ),
                _ => format!("for example {}", named(&several[0])),
            }
        }
    }
}

/// What stands for a quantile that so many lost queries reach.
pub(crate) const TIME_OUT: &str = "time-out";

/// A quantile that is the time-out in these runs, which are called `runs`: `time-out (5 of 8 rounds)`; without the
/// count if it is in all.
pub(crate) fn time_out(found: TimeOuts, runs: &str) -> String {
    match found.are_all() {
        true => TIME_OUT.to_owned(),
        false => format!("{TIME_OUT} ({} of {} {runs})", found.runs, found.of),
    }
}

/// The remedy for a generator that is short of CPU time, without a full stop. How many CPUs the machine has is not known
/// here.
const MORE_CPUS: &str =
    "Give the load more CPUs and workers (`load.cpus`, `load.workers`), on a machine that has them";
