//! The pilot of an experiment: one long load of each variant, from its first query. It tells how long loads need to
//! settle, and how long they have to be.

use std::time::Duration;

use dnslab_analysis::{Steady, Unsteady};
use dnslab_record::RunRecord;
use dnslab_settings::{Alternate, Experiment, Rounds};

/// What the pilot found in steps of.
const STEP: Duration = Duration::from_millis(500);
/// No load is longer: then more rounds are the better use of the time.
const LONGEST: Duration = Duration::from_secs(300);

/// The experiment as its pilot: one run of each variant of this length, one variant after the other.
#[must_use]
pub fn pilot_of(experiment: &Experiment, length: Duration) -> Experiment {
    let mut pilot = experiment.clone();
    for variant in &mut pilot.variants {
        (variant.load.warm_up, variant.load.duration) = (Duration::ZERO, length);
    }
    pilot.common.duration = Duration::ZERO;
    pilot.repeat.profile = false;
    pilot.repeat.alternate = Alternate::Runs;
    (pilot.repeat.runs, pilot.repeat.sessions, pilot.repeat.until) = (Rounds::Count(1), 1, 0.0);
    pilot
}

/// What the runs of a pilot say.
#[derive(Clone, Debug, PartialEq)]
pub struct PilotFindings {
    /// The longest warm-up that a variant needs.
    pub warm_up: Duration,
    /// The longest load that a variant needs.
    pub length: Duration,
    /// Variants of which nothing is known, and why.
    pub unsteady: Vec<UnsteadyVariant>,
}

/// A variant whose pilot says nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct UnsteadyVariant {
    /// Its name.
    pub name: String,
    /// Why its pilot says nothing; `None` if it was not measured.
    pub why: Option<Unsteady>,
}

impl PilotFindings {
    /// Of the records of a pilot, for loads whose rates have at most this standard error, relative to them.
    #[must_use]
    pub fn of(records: &[RunRecord], error_share: f64) -> Self {
        let mut found =
            Self { warm_up: Duration::ZERO, length: Duration::ZERO, unsteady: Vec::new() };
        for record in records {
            let name = record.variant.clone();
            match record.measured.as_ref().map(Steady::of) {
                Some(Ok(steady)) => {
                    found.warm_up = found.warm_up.max(Duration::from_nanos(steady.warm_up_ns));
                    let needed = Duration::from_nanos(steady.needed_ns(error_share));
                    found.length = found.length.max(needed);
                }
                Some(Err(why)) => found.unsteady.push(UnsteadyVariant { name, why: Some(why) }),
                None => found.unsteady.push(UnsteadyVariant { name, why: None }),
            }
        }
        (found.warm_up, found.length) = (in_steps(found.warm_up), in_steps(found.length));
        found.length = found.length.min(LONGEST);
        found
    }

    /// Whether a longer pilot may say more.
    #[must_use]
    pub fn wants_longer(&self) -> bool {
        self.unsteady.iter().any(|variant| variant.why == Some(Unsteady::Changes))
    }
}

/// Rounded up.
fn in_steps(time: Duration) -> Duration {
    STEP * u32::try_from(time.as_nanos().div_ceil(STEP.as_nanos())).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_half_seconds() {
        for (ms, expected) in [(0, 0), (1, 500), (500, 500), (501, 1_000)] {
            assert_eq!(in_steps(Duration::from_millis(ms)), Duration::from_millis(expected));
        }
    }
}
