//! Which runs are made together, and at which common rate.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dnslab_load::{check_sockets, sockets};
use dnslab_record::{CaseId, Compared, LiveLoad, Measured, RunRecord, RunStatus, SkippedVariant};
use dnslab_settings::{Alternate, Experiment, Variant};

use super::{Observer, Session, SessionError, came_to_nothing, seed_of};
use crate::run::case::{Case, Sampling};
use crate::run::common_rate::CommonRate;
use crate::run::round::{Played, Round};
use crate::run::testbed::has_hosts;

/// The load of the trial that finds the common rate: long enough for a rate within some percent, which is
/// then halved and rounded.
const TRIAL: Duration = Duration::from_millis(400);

/// Folder of the trial's servers in the results directory.
const SCRATCH: &str = "trial";

const TRIAL_WARM_UP: Duration = Duration::from_millis(300);

/// Whether the variants of a round take turns in slices. The inner error is the reason why not, and empty if
/// that was asked for.
///
/// # Errors
/// When slices were asked for and are impossible.
pub(crate) fn in_slices(
    experiment: &Experiment,
    skipped: &[SkippedVariant],
) -> Result<Result<(), String>, SessionError> {
    let runs = |variant: &&Variant| !skipped.iter().any(|skip| skip.variant == variant.name);
    let variants: Vec<&Variant> = experiment.variants.iter().filter(runs).collect();
    if experiment.repeat.alternate == Alternate::Runs || variants.len() < 2 {
        return Ok(Err(String::new()));
    }
    let apart = variants.iter().find_map(|variant| Some((*variant, apart(variant)?)));
    let sockets: u64 = variants.iter().map(|variant| sockets(&variant.load)).sum();
    let reason = match (apart, check_sockets(sockets)) {
        (Some((variant, reason)), _) => (variant.name.clone(), reason.to_owned()),
        (None, Err(error)) => (variants[0].name.clone(), format!("all loads together: {error}")),
        (None, Ok(())) => return Ok(Ok(())),
    };
    match (experiment.repeat.alternate, reason) {
        (Alternate::Slices, (variant, reason)) => {
            let hint = "remove `repeat.alternate`, or set it to \"runs\"";
            let reason = format!("it cannot take turns in slices: {reason}\n  hint:    {hint}");
            Err(SessionError::Variant { variant, reason })
        }
        (_, (variant, reason)) => Ok(Err(format!("{variant}: {reason}"))),
    }
}

/// Why the servers of a variant cannot be up beside others without changing what is measured.
fn apart(variant: &Variant) -> Option<&'static str> {
    let (server, load) = (&variant.server, &variant.load);
    if variant.target().is_some() {
        Some(
            "one server that runs already is all variants' server, and its CPU time is that of all",
        )
    } else if has_hosts(variant) {
        Some("it has hosts of its own")
    } else if variant.resolves() {
        Some("its server resolves by itself, and its cache fills from the start of the load on")
    } else if !variant.behind().is_empty() {
        Some("its server forwards, and its cache fills from the start of the load on")
    } else if server.delay.is_some() {
        Some("its answers are delayed on purpose, and may come after its turn")
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
    let of = |variant: &Variant| -> Vec<Compared> {
        let own = match &variant.compare.with {
            None if variant.name == experiment.baseline => Vec::new(),
            None => vec![experiment.baseline.clone()],
            Some(names) => names.0.clone(),
        };
        let name = &variant.name;
        own.into_iter().map(|against| Compared { variant: name.clone(), against }).collect()
    };
    experiment.variants.iter().flat_map(of).collect()
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

/// Rounded down to two digits.
fn half(rate_qps: f64) -> f64 {
    let half = rate_qps / 2.0;
    let unit = 10f64.powf(half.log10().floor() - 1.0);
    (half / unit).floor() * unit
}

/// A variant with the short load of the trial.
pub(crate) fn tried(variant: &Variant) -> Variant {
    let mut short = variant.clone();
    short.load.duration = short.load.duration.min(TRIAL);
    short.load.warm_up = short.load.warm_up.min(TRIAL_WARM_UP);
    short
}

/// What a variant answered in its trial, queries per second.
///
/// # Errors
/// When the trial failed. What had been measured until then is not what the variant bears.
fn tried_qps(record: &RunRecord) -> Result<f64, SessionError> {
    if let Some(error) = came_to_nothing(record) {
        return Err(error);
    }
    match &record.status {
        RunStatus::Failed { reason, .. } => Err(SessionError::TrialFailed {
            variant: record.variant.clone(),
            reason: reason.clone(),
        }),
        RunStatus::Valid | RunStatus::Invalid { .. } => {
            Ok(record.measured.as_ref().map_or(0.0, Measured::answered_qps))
        }
    }
}

impl Session {
    /// The rate of the common load: the configured one, or half of what the slowest variant answers in one
    /// trial. `None` if nothing was answered, or `stop` was set.
    ///
    /// # Errors
    /// When the trial of a variant failed: the rate that it bears is not known, and that of the others may be
    /// too high for it.
    pub(super) fn common_rate(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Option<f64>, SessionError> {
        let Some(common) = self.experiment.common_load() else { return Ok(None) };
        let is_open = |variant: &Variant| variant.load.mode.rate().is_some();
        if self.experiment.variants.iter().any(is_open) {
            return Ok(None);
        }
        if let Some(known) = common.rate.map(f64::from).or(self.facts.common_rate_qps) {
            if self.facts.common_rate_qps != Some(known) {
                self.facts.common_rate_qps = Some(known);
                self.results.write_session(&self.facts)?;
            }
            return Ok(Some(known));
        }
        observer.trial_begins();
        let slowest = self.trial(stop)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.facts.common_rate_qps = slowest.map(half);
        self.results.write_session(&self.facts)?;
        Ok(self.facts.common_rate_qps)
    }

    /// What the slowest variant answers in a short load, queries per second.
    fn trial(&self, stop: &AtomicBool) -> Result<Option<f64>, SessionError> {
        let names: BTreeSet<&str> =
            self.facts.plan.iter().map(|case| case.variant.as_str()).collect();
        let variants: Vec<Variant> = self
            .experiment
            .variants
            .iter()
            .filter(|variant| names.contains(variant.name.as_str()))
            .map(tried)
            .collect();
        let ids: Vec<CaseId> = variants
            .iter()
            .map(|variant| CaseId { variant: variant.name.clone(), repetition: 0 })
            .collect();
        let folder = self.results.begin_scratch(SCRATCH)?;
        let seed = seed_of(self.experiment.repeat.seed, 0);
        let mut answered = Vec::new();
        for together in rounds(ids, self.facts.slice_ns.is_some()) {
            let of = |id: &CaseId| variants.iter().find(|variant| variant.name == id.variant);
            let runs: Vec<_> = together.iter().filter_map(|id| Some((of(id)?, id))).collect();
            let folders = |id: &CaseId| folder.join(id.folder());
            let records = self.play(&runs, seed, &folders, None, stop, &mut |_, _| {})?;
            // An interrupt also ends what the trial needs.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            for record in &records {
                answered.push(tried_qps(record)?);
            }
        }
        // What cannot be removed only takes disk space.
        self.results.remove_scratch(SCRATCH).ok();
        // One that answers nothing bears no rate. Its runs say so: none of them counts.
        Ok(answered.into_iter().filter(|qps| *qps > 0.0).reduce(f64::min))
    }

    /// Makes runs together, each in its folder.
    pub(super) fn play(
        &self,
        runs: &[(&Variant, &CaseId)],
        seed: u64,
        folder: &dyn Fn(&CaseId) -> std::path::PathBuf,
        common: Option<CommonRate>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(usize, &LiveLoad<'_>),
    ) -> Result<Vec<RunRecord>, SessionError> {
        let played = self.play_sampled(runs, (seed, None), folder, common, stop, observe)?;
        Ok(played.into_iter().map(|played| played.record).collect())
    }

    /// Plays these runs at once, with servers that are sampled if `sampling` says how.
    pub(super) fn play_sampled(
        &self,
        runs: &[(&Variant, &CaseId)],
        (seed, sampling): (u64, Option<&Sampling>),
        folder: &dyn Fn(&CaseId) -> std::path::PathBuf,
        common: Option<CommonRate>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(usize, &LiveLoad<'_>),
    ) -> Result<Vec<Played>, SessionError> {
        let queries: Vec<_> = runs
            .iter()
            .map(|(variant, _)| Ok(self.lists.borrow_mut().of(variant, seed)?))
            .collect::<Result<_, SessionError>>()?;
        let folders: Vec<_> = runs.iter().map(|(_, id)| folder(id)).collect();
        let told = runs.iter().map(|(_, id)| self.answers_file(id));
        let mut told = told.collect::<Result<Vec<_>, SessionError>>()?;
        let mut case = |place: usize| {
            let (variant, id) = runs[place];
            let position = self.facts.plan.iter().position(|planned| planned == id).unwrap_or(0);
            Case {
                variant,
                id,
                position: u32::try_from(position).unwrap_or(u32::MAX),
                seed,
                queries: &queries[place],
                folder: &folders[place],
                guard: &self.guard,
                told: told[place].take(),
                sampling,
            }
        };
        let cases = (0..runs.len()).map(&mut case).collect();
        let round = Round { cases, slices: &self.slices, common, seed };
        Ok(round.run(stop, observe))
    }
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

    #[test]
    fn a_common_rate_is_half_in_two_digits() {
        for (rate, expected) in [(77_430.0, 38_000.0), (199.0, 99.0), (1_000_000.0, 500_000.0)] {
            assert!((half(rate) - expected).abs() < 1e-6, "{rate}: {}", half(rate));
        }
    }
}
