//! Loads that take turns, in slices that may be too short for their answers.

use dnslab_record::{InvalidReason, Measured};

/// A slice holds this many answers of the same client, one after another, at least.
const SLICES_FOR_ANSWER: u64 = 5;

/// Why a load that takes turns does not count if its answers come too late for its slices.
#[must_use]
pub fn slower_than_slices(measured: &Measured) -> Option<InvalidReason> {
    slice_needed_ns(measured).or_else(|| measured.service_time.is_empty().then_some(u64::MAX))?;
    let slice_ns = measured.turns.as_ref()?.slice_ns;
    Some(InvalidReason::SlowerThanSlices { slice_ns, max_ns: slice_ns / SLICES_FOR_ANSWER })
}

/// How long slices must be for the answers of this load, nanoseconds; `None` where they are long enough, where it
/// takes no turns, and where nothing was answered.
#[must_use]
pub fn slice_needed_ns(measured: &Measured) -> Option<u64> {
    let slice_ns = measured.turns.as_ref()?.slice_ns;
    let needed_ns = measured.service_time.quantile_ns(0.5)?.saturating_mul(SLICES_FOR_ANSWER);
    (needed_ns > slice_ns).then_some(needed_ns)
}

/// How long the server needs for the queries of `window` that are outstanding when a turn ends, if
/// that may be more than the next turn leaves uncounted: it answers them beside the server whose turn
/// it is then. Nanoseconds; `None` where the load has one turn, or takes none.
#[must_use]
pub fn backlog_beyond_lead_ns(measured: &Measured, window: u64) -> Option<f64> {
    let turns = measured.turns.as_ref().filter(|turns| turns.own_ns > turns.slice_ns)?;
    // Two servers on one CPU.
    let ns = 2.0 * window as f64 * 1e9 / measured.answered_qps();
    (ns.is_finite() && ns > turns.lead_ns as f64).then_some(ns)
}
