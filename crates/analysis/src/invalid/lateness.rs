//! Open loops that the load generator did not send as it was asked to.

use std::time::Duration;

use dnslab_record::{InvalidReason, LoadMode, Observation, OpenPace};

use crate::bottleneck::{BottleneckFigures, GENERATOR_BUSY};

/// How far an open loop may be from what was asked for, as `[expect]` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendingLimits {
    /// Share of the intended rate that may be missing, in [0, 1].
    pub unsent: f64,
    /// What the median send lag may be.
    pub lag: Duration,
}

/// Why an open loop does not count because the generator did not send it as it was asked to; `None` if it did, or if
/// the server held it up.
///
/// Half of the queries left later than the limit, or less of the intended rate was sent, by a generator that shows
/// that it was at its end: a worker was on its CPU or waited for it for 90 % of the time, a CPU quota was used up,
/// or connections waited for their turn. Two kinds of lateness need no such sign. Datagrams are always taken, so they
/// leave late for no other reason, while queries over a connection also wait for a server that does not read. And
/// where none of the queries that left late did so within the window, nothing of it was measured.
#[must_use]
pub fn not_sent_as_asked(
    figures: &BottleneckFigures,
    run: &Observation<'_>,
    limits: SendingLimits,
) -> Option<InvalidReason> {
    let Observation { load, measured, .. } = *run;
    let LoadMode::Open { pace, .. } = &load.mode else { return None };
    let is_at_its_end = figures.generator_wanted_share >= GENERATOR_BUSY
        || figures.holds_connections()
        || figures.load_is_at_its_limit();
    let lag_p50_ns = measured.send_lag.quantile_ns(0.5).unwrap_or(0);
    let lag_limit_ns = u64::try_from(limits.lag.as_nanos()).unwrap_or(u64::MAX);
    // Clients with queries of their own have a limit for when they turn to those.
    let is_late = lag_p50_ns > lag_limit_ns && *pace != OpenPace::Clients;
    let is_unsent = figures.offered_qps < (1.0 - limits.unsent) * figures.due_qps;
    let nothing_in_time = measured.sent_in_window == 0;
    let counts = is_at_its_end && (is_unsent || is_late)
        || is_late && (!figures.is_stream || nothing_in_time);
    counts.then_some(InvalidReason::NotSentAsAsked {
        intended_qps: figures.due_qps,
        offered_qps: figures.offered_qps,
        unsent_limit: limits.unsent,
        lag_p50_ns,
        lag_limit_ns,
    })
}
