//! The runs of a round, and the trial that finds the rate of the common load.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use dnslab_record::{CaseId, LiveLoad, Measured, RunRecord, RunStatus};
use dnslab_settings::Variant;

use super::rounds::{rounds, tried};
use super::{Observer, Session, SessionError, came_to_nothing, seed_of};
use crate::run::case::Case;
use crate::run::open_load::OpenLoad;
use crate::run::queries::Asked;
use crate::run::round::{Played, Round};

/// Folder of the trial's servers in the results directory.
const SCRATCH: &str = "trial";

/// Rounded down to two digits.
fn half(rate_qps: f64) -> f64 {
    let half = rate_qps / 2.0;
    let unit = 10f64.powf(half.log10().floor() - 1.0);
    (half / unit).floor() * unit
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

/// What a run is made with.
struct Input {
    queries: Asked,
    folder: PathBuf,
    /// Where what its queries are told is written, if answers are compared.
    answers: Option<File>,
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
        let is_open = |variant: &Variant| !variant.load.mode.is_closed();
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
            let variant_of =
                |id: &CaseId| variants.iter().find(|variant| variant.name == id.variant);
            let runs: Vec<_> =
                together.iter().filter_map(|id| Some((variant_of(id)?, id))).collect();
            let folders = |id: &CaseId| folder.join(id.folder());
            let records = self.play(&runs, seed, &folders, &[], stop, &mut |_, _| {})?;
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
        folder: &dyn Fn(&CaseId) -> PathBuf,
        open: &[OpenLoad],
        stop: &AtomicBool,
        observe: &mut dyn FnMut(usize, &LiveLoad<'_>),
    ) -> Result<Vec<RunRecord>, SessionError> {
        let played = self.play_sampled(runs, (seed, None), folder, open, stop, observe)?;
        Ok(played.into_iter().map(|played| played.record).collect())
    }

    /// Plays these runs at once, with servers that are sampled if so many stacks are to be kept of each.
    pub(super) fn play_sampled(
        &self,
        runs: &[(&Variant, &CaseId)],
        (seed, max_stacks): (u64, Option<usize>),
        folder: &dyn Fn(&CaseId) -> PathBuf,
        open: &[OpenLoad],
        stop: &AtomicBool,
        observe: &mut dyn FnMut(usize, &LiveLoad<'_>),
    ) -> Result<Vec<Played>, SessionError> {
        let inputs = runs.iter().map(|(variant, id)| {
            let queries = self.lists.borrow_mut().of(variant, seed)?;
            Ok(Input { queries, folder: folder(id), answers: self.answers_file(id)? })
        });
        let mut inputs = inputs.collect::<Result<Vec<Input>, SessionError>>()?;
        let cases = runs.iter().zip(&mut inputs).map(|((variant, id), input)| {
            let position = self.facts.plan.iter().position(|planned| planned == *id).unwrap_or(0);
            Case {
                variant,
                id,
                position: u32::try_from(position).unwrap_or(u32::MAX),
                seed,
                queries: &input.queries,
                folder: &input.folder,
                guard: &self.guard,
                agents: &self.agents,
                told: input.answers.take(),
                max_stacks,
            }
        });
        let cases = cases.collect();
        let round = Round { cases, slices: &self.slices, open, seed };
        Ok(round.run(stop, observe))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_rate_is_half_in_two_digits() {
        for (rate, expected) in [(77_430.0, 38_000.0), (199.0, 99.0), (1_000_000.0, 500_000.0)] {
            assert!((half(rate) - expected).abs() < 1e-6, "{rate}: {}", half(rate));
        }
    }
}
