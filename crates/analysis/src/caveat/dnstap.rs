//! The doubt about a log that has holes.

use dnslab_record::{Caveat, Observation, counter};

/// Above this share of its dnstap messages, what a server did not write makes the logging look cheaper,
/// and its files smaller, than they are.
const DROPPED: f64 = 0.001;

/// More than 0.1 % of the dnstap messages were dropped between the first reading of the server's
/// counters and the last: while the load ran.
pub(super) fn dnstap_dropped(run: &Observation<'_>) -> Option<Caveat> {
    let counters = run.watched.counters.as_ref()?;
    let dropped = counters.growth(counter::DNSTAP_DROPPED)?;
    let written = counters.growth(counter::DNSTAP_MESSAGES)?;
    let share = dropped as f64 / (written + dropped).max(1) as f64;
    (share > DROPPED).then_some(Caveat::DnstapDropped { share })
}
