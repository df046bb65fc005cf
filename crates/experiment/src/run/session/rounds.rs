//! Which runs are made together.

use std::collections::BTreeSet;
use std::time::Duration;

use dnslab_load::{check_sockets, sockets};
use dnslab_record::{CaseId, Compared, SkippedVariant};
use dnslab_settings::{Alternate, Event, Experiment, Variant};

use crate::run::error::NoSlicesError;
use crate::run::testbed::has_hosts;

/// The load of the trial that finds the common rate: long enough for a rate within some percent, which is
/// then halved and rounded.
const TRIAL: Duration = Duration::from_millis(400);

const TRIAL_WARM_UP: Duration = Duration::from_millis(300);

/// How the variants of a round get their loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Alternation {
    /// Their servers are up together, and they take turns.
    Slices,
    /// One run after the other. Why they take no turns; empty if that was asked for.
    Runs(String),
}

/// Whether the variants of a round can take turns in slices, and are to.
///
/// # Errors
/// When slices were asked for and are impossible.
pub(crate) fn alternation(
    experiment: &Experiment,
    skipped: &[SkippedVariant],
) -> Result<Alternation, NoSlicesError> {
    let runs = |variant: &&Variant| !skipped.iter().any(|skip| skip.variant == variant.name);
    let variants: Vec<&Variant> = experiment.variants.iter().filter(runs).collect();
    if experiment.repeat.alternate == Alternate::Runs || variants.len() < 2 {
        return Ok(Alternation::Runs(String::new()));
    }
    let apart = variants.iter().find_map(|variant| Some((*variant, apart(variant)?)));
    // Those of other hosts are not this machine's.
    let here = variants.iter().filter(|variant| variant.load.hosts.is_none());
    let sockets: u64 = here.map(|variant| sockets(&variant.load)).sum();
    let apart = apart.or_else(|| {
        let first = &variants[0].load.hosts;
        let other = variants.iter().find(|variant| variant.load.hosts != *first)?;
        Some((*other, "its load comes from other hosts than those of the others"))
    });
    let (variant, reason) = match (apart, check_sockets(sockets)) {
        (Some((variant, reason)), _) => (variant.name.clone(), reason.to_owned()),
        (None, Err(error)) => (variants[0].name.clone(), format!("all loads together: {error}")),
        (None, Ok(())) => return Ok(Alternation::Slices),
    };
    match experiment.repeat.alternate {
        Alternate::Slices => Err(NoSlicesError { variant, reason }),
        _ => Ok(Alternation::Runs(format!("{variant}: {reason}"))),
    }
}

/// Why the servers of a variant cannot be up beside others without changing what is measured.
fn apart(variant: &Variant) -> Option<&'static str> {
    let (server, load) = (&variant.server, &variant.load);
    if variant.target().is_some() {
        Some(
            "one server that runs already is all variants' server, and its CPU time is that of all",
        )
    } else if variant.event.command.is_some() {
        Some("what is done during its load is done to it alone")
    } else if has_hosts(variant) {
        Some("it has hosts of its own")
    } else if variant.resolves() {
        Some("its server resolves by itself, and its cache fills from the start of the load on")
    } else if variant.forwards() {
        Some("its server forwards, and its cache fills from the start of the load on")
    } else if server.delay.is_some() {
        Some("its answers are delayed on purpose, and may come after its turn")
    } else if !server.hold.is_zero() || !server.serial.is_zero() {
        Some("its answers keep their threads on purpose, also behind its turns")
    } else if variant.writes_logs() {
        Some("its server writes logs, also behind its own turns")
    } else if load.mode.is_played() {
        Some("its clients keep their own time, which leaves no turns to others")
    } else if load.queries_in_all.is_some() {
        Some("its load ends after a number of queries")
    } else if load.mode.rate().is_some_and(|rate| !rate.is_constant()) {
        Some("its rate changes with time")
    } else {
        None
    }
}

/// Empty if all variants are compared with the baseline.
pub(super) fn compared(experiment: &Experiment) -> Vec<Compared> {
    if experiment.variants.iter().all(|variant| variant.compare.with.is_none()) {
        return Vec::new();
    }
    let pairs = experiment.variants.iter().flat_map(|variant| {
        let own = match &variant.compare.with {
            None if variant.name == experiment.baseline => Vec::new(),
            None => vec![experiment.baseline.clone()],
            Some(names) => names.0.clone(),
        };
        own.into_iter().map(|against| Compared { variant: variant.name.clone(), against })
    });
    pairs.collect()
}

/// The runs that are made together: those of one repetition if variants take turns, otherwise each by itself.
pub(crate) fn rounds(cases: Vec<CaseId>, in_slices: bool) -> Vec<Vec<CaseId>> {
    let together = |one: &CaseId, other: &CaseId| in_slices && one.repetition == other.repetition;
    cases.chunk_by(together).map(<[CaseId]>::to_vec).collect()
}

/// The repetitions that have all their runs. If variants take turns, half a round is made again as a whole.
pub(super) fn whole_repetitions(plan: &[CaseId], done: &BTreeSet<(&str, u32)>) -> BTreeSet<u32> {
    let lacks = |case: &&CaseId| !done.contains(&(case.variant.as_str(), case.repetition));
    let lacking: BTreeSet<u32> = plan.iter().filter(lacks).map(|case| case.repetition).collect();
    plan.iter().map(|case| case.repetition).filter(|number| !lacking.contains(number)).collect()
}

/// A variant with the short load of the trial.
pub(crate) fn tried(variant: &Variant) -> Variant {
    let mut short = variant.clone();
    short.load.duration = short.load.duration.min(TRIAL);
    short.load.warm_up = short.load.warm_up.min(TRIAL_WARM_UP);
    short.event = Event::default();
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(variant: &str, repetition: u32) -> CaseId {
        CaseId { variant: variant.to_owned(), repetition }
    }

    #[test]
    fn a_round_holds_the_variants_of_one_repetition() {
        let plan = [case("a", 1), case("b", 1), case("b", 2), case("a", 2)];
        assert_eq!(rounds(plan.to_vec(), true), [plan[..2].to_vec(), plan[2..].to_vec()]);
        assert_eq!(rounds(plan.to_vec(), false).len(), 4);
        let done = BTreeSet::from([("a", 1), ("b", 1), ("b", 2)]);
        assert_eq!(whole_repetitions(&plan, &done), BTreeSet::from([1]));
    }
}
