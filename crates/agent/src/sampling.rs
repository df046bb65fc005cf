//! Samples of where a server on the agent's host spends its CPU time.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dnslab_lab::GuardProgram;
use dnslab_lab::perf::{self, Perf, PerfError, Recording, Sampled};
use dnslab_protocol::{Answer, Failure};
use dnslab_record::Span;
use dnslab_settings::ServerKind;

use crate::scratch::Scratch;
use crate::servers::ToWatch;

/// The samplings that run; `None` for one that is about to.
type Running = HashMap<u32, Option<Begun>>;

/// A sampling that runs.
#[derive(Debug)]
struct Begun {
    recording: Recording,
    folder: PathBuf,
    /// `None` of a server that somebody else started.
    kind: Option<ServerKind>,
}

/// The samplings of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Samplings {
    running: Arc<Mutex<Running>>,
    scratch: Scratch,
    /// At once at most. Each is a perf that runs.
    most: usize,
}

impl Samplings {
    /// Without a sampling yet. All folders are among those of `scratch`.
    pub(crate) fn within(scratch: Scratch, most: usize) -> Self {
        Self { running: Arc::default(), scratch, most }
    }

    pub(crate) fn begin(
        &self,
        sampling: u32,
        server: ToWatch,
        length: Duration,
        place: (&GuardProgram, Option<&Path>, &[usize]),
    ) -> Result<Answer, Failure> {
        {
            let mut running = self.running();
            if running.len() >= self.most || running.contains_key(&sampling) {
                let most = self.most;
                let why = format!("{most} samplings run already, or one of number {sampling}");
                return Err(Failure::of(why));
            }
            running.insert(sampling, None);
        }
        let begun = self.record(server, length, place);
        let mut running = self.running();
        match begun {
            // Unless it was left meanwhile.
            Ok(begun) => {
                if let Some(place) = running.get_mut(&sampling) {
                    *place = Some(begun);
                }
                Ok(Answer::Sampling)
            }
            Err(failure) => {
                running.remove(&sampling);
                Err(failure)
            }
        }
    }

    fn record(
        &self,
        server: ToWatch,
        length: Duration,
        (guard, folder, load_cpus): (&GuardProgram, Option<&Path>, &[usize]),
    ) -> Result<Begun, Failure> {
        let perf = Perf::find(guard).map_err(failure)?;
        let rate_hz = perf::rate_hz(length, server.cpus);
        let folder = folder.map_or_else(|| self.scratch.make(), |folder| Ok(folder.to_owned()))?;
        let recording = perf.record(&server.watched, rate_hz, (guard, &folder, load_cpus));
        let recording = recording.map_err(|error| {
            self.scratch.remove(&folder);
            failure(error)
        })?;
        Ok(Begun { recording, folder, kind: server.kind })
    }

    pub(crate) fn end(
        &self,
        sampling: u32,
        (origin, window): (Instant, Span),
        max_stacks: usize,
    ) -> Result<Answer, Failure> {
        let found = self.running().remove(&sampling).flatten();
        let Begun { recording, folder, kind } =
            found.ok_or_else(|| Failure::of(format!("no sampling has number {sampling}")))?;
        let profile = recording.finish(&Sampled { kind, origin, window, max_stacks });
        self.scratch.remove(&folder);
        Ok(Answer::Profile(Box::new(profile.map_err(failure)?)))
    }

    /// Ends a sampling of no interest, if there is one of this number. It waits until its perf has ended.
    pub(crate) fn leave(&self, sampling: u32) {
        let left = self.running().remove(&sampling).flatten();
        if let Some(Begun { recording, folder, .. }) = left {
            drop(recording);
            self.scratch.remove(&folder);
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failure(error: PerfError) -> Failure {
    Failure::from(&error as &(dyn Error + 'static))
}
