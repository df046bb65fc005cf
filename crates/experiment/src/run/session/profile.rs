//! The round after all others, in which the servers are sampled.
//!
//! It is made as the others are, with the same load, and nothing of it is kept but where the CPU time went. What sampling
//! costs is in none of the other figures.

use std::sync::atomic::{AtomicBool, Ordering};

use dnslab_lab::perf::Perf;
use dnslab_record::{
    CaseId, CpuProfiles, LiveLoad, MAX_PROFILE_STACKS, MAX_STACKS, NotProfiled, PROFILE_FORMAT,
    RunStatus,
};
use dnslab_settings::Variant;

use super::rounds::rounds;
use super::{Observer, Session, SessionError, seed_of};
use crate::run::case::is_cut_short;
use crate::run::round::Played;

/// Folder of the servers in the results directory.
const SCRATCH: &str = "sampled";

impl Session {
    /// Why no server can be sampled here, though that is asked for and still to be done.
    #[must_use]
    pub fn cannot_profile(&self) -> Option<String> {
        let is_to_be_done = self.lacks_profile().unwrap_or(false);
        let is_here = |variant: &Variant| variant.server.host.is_none();
        let is_to_be_done = is_to_be_done && self.experiment.variants.iter().any(is_here);
        is_to_be_done.then(|| Perf::find(&self.guard))?.err().map(|error| error.to_string())
    }

    /// Whether servers are to be sampled, and were not yet.
    pub(super) fn lacks_profile(&self) -> Result<bool, SessionError> {
        Ok(self.experiment.repeat.profile && self.results.cpu_profiles()?.is_none())
    }

    /// Samples the servers of all variants that ran, unless that is done or not asked for. An interrupt leaves it to
    /// a session that is resumed. Servers that cannot be sampled are noted with the reason.
    pub(super) fn profile(
        &self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        if stop.load(Ordering::Relaxed) || !self.lacks_profile()? {
            return Ok(());
        }
        let ran =
            |variant: &&Variant| self.facts.plan.iter().any(|case| case.variant == variant.name);
        let variants: Vec<&Variant> = self.experiment.variants.iter().filter(ran).collect();
        let mut found = CpuProfiles { format: PROFILE_FORMAT, ..CpuProfiles::default() };
        let perf = Perf::find(&self.guard);
        let is_elsewhere = |variant: &&Variant| variant.server.host.is_some();
        match perf {
            Err(error) if !variants.iter().any(is_elsewhere) => {
                let reason = error.to_string();
                found.failed.extend(variants.iter().map(|variant| NotProfiled {
                    variant: variant.name.clone(),
                    reason: reason.clone(),
                }));
            }
            _ => {
                observer.profile_begins();
                let max_stacks = MAX_STACKS.min(MAX_PROFILE_STACKS / variants.len().max(1));
                self.sample(&variants, max_stacks, &mut found, stop, observer)?;
            }
        }
        if !stop.load(Ordering::Relaxed) {
            self.results.write_cpu_profiles(&found)?;
        }
        Ok(())
    }

    fn sample(
        &self,
        variants: &[&Variant],
        max_stacks: usize,
        found: &mut CpuProfiles,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let id = |variant: &&Variant| CaseId { variant: variant.name.clone(), repetition: 0 };
        let ids: Vec<CaseId> = variants.iter().map(id).collect();
        let folder = self.results.begin_scratch(SCRATCH)?;
        let folders = |id: &CaseId| folder.join(id.folder());
        let seed = seed_of(self.experiment.repeat.seed, self.planned_rounds() + 1);
        for together in rounds(ids, self.facts.slice_ns.is_some()) {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let variant = |id: &CaseId| self.experiment.variant(&id.variant);
            let runs: Vec<_> = together.iter().filter_map(|id| Some((variant(id)?, id))).collect();
            let seeded = (seed, Some(max_stacks));
            let mut observe = |place: usize, live: &LiveLoad<'_>| {
                observer.interval(&together[place], live);
            };
            let played = self.play_sampled(&runs, seeded, &folders, &[], stop, &mut observe)?;
            for (Played { record, profile }, id) in played.into_iter().zip(&together) {
                let profile = match (&record.status, profile) {
                    (RunStatus::Failed { reason, .. }, _) => Err(reason.clone()),
                    (RunStatus::Invalid { .. }, _) => {
                        Err("the run in which it was sampled does not count".to_owned())
                    }
                    (RunStatus::Valid, _) if is_cut_short(&record) => {
                        Err("the run in which it was sampled was cut short".to_owned())
                    }
                    (RunStatus::Valid, None) => Err("it was not sampled".to_owned()),
                    (RunStatus::Valid, Some(profile)) => profile,
                };
                match profile {
                    Ok(profile) => found.profiles.push(profile),
                    Err(reason) => {
                        let variant = id.variant.clone();
                        found.failed.push(NotProfiled { variant, reason });
                    }
                }
            }
        }
        // What cannot be removed only takes disk space.
        self.results.remove_scratch(SCRATCH).ok();
        Ok(())
    }
}
