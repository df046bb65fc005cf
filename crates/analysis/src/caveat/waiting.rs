//! Answers that wait in the server for the next query of their connection.
//!
//! A server that leaves Nagle's algorithm on (RFC 1122, section 4.2.3.4) keeps a small segment back
//! while an earlier one is not acknowledged. The client's kernel delays its acknowledgement by up to
//! 40 ms (Linux; section 4.2.3.2 allows 500 ms), in the hope that it can go with data: with the next
//! query. So once an answer is kept back, each leaves the server when the query after it comes, and
//! what is measured is the gap between two queries of a connection. A closed loop on connections that
//! stay hides it, for there the next query follows at once. The first answer of a connection over TLS waits
//! in any loop: the server has sent a session ticket before, and nothing of the client is on its way.
//!
//! The evidence is direct: answers that took long come at once after a *later* query of their
//! connection. Where an answer does not wait for that query, it comes at any time after it. Let `w` be
//! what counts as at once, and the gap as well as the time of the answer at least `4 w`: then that
//! happens by chance to a quarter of them at a constant pace, and to 35 % with Poisson arrivals
//! (`(1 - exp(-w / gap)) / (1 - exp(-time / gap))`), whatever the server does.

use dnslab_figures::{LONG, at_once_ns};
use dnslab_record::{Caveat, Observation};
use dnslab_wire::Transport;

use crate::bottleneck::{GENERATOR_BUSY, SERVER_BUSY, busiest};

/// Share of the answers that took long and were overtaken that come at once after the next query, from
/// which on they wait for it: twice what chance gives.
const WAITED: f64 = 0.7;

/// From this share of all answers on, those that waited decide the 0.95 quantile of the latency.
const VISIBLE: f64 = 0.05;

/// In an open loop over TCP with neither side busy, a twentieth of the answers or more took long
/// and came at once after the next query of their connection; and of those that took long and were
/// overtaken by another query, 70 % or more. Nothing is said where a connection sends its queries
/// closer together than four times what counts as at once.
pub(super) fn answers_wait(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    let answers = &measured.counters.answers;
    let (waited, overtaken) = (answers.after_next_query, answers.overtaken);
    let share = waited as f64 / measured.counters.outcomes.answered.max(1) as f64;
    let is_told = share >= VISIBLE && waited as f64 >= WAITED * overtaken as f64;
    if !is_told || load.window().is_some() {
        return None;
    }
    let server_is_busy = run.server_busy_share().is_some_and(|share| share >= SERVER_BUSY);
    if server_is_busy || busiest(run) >= GENERATOR_BUSY {
        return None;
    }
    let gap_ns = measured.connection_gap_ns()?;
    let round_trips = measured.workers.iter().filter_map(|worker| worker.round_trip_ns);
    let at_once = at_once_ns(round_trips.max()?);
    (gap_ns >= at_once.saturating_mul(LONG) as f64)
        .then_some(Caveat::AnswersWaitForNextQuery { share, gap_ns: gap_ns as u64 })
}

/// The time for which Linux delays an acknowledgement at least (TCP_DELACK_MIN), and what a waking client
/// and server add to it; nanoseconds.
const HELD_BACK_NS: (u64, u64) = (38_000_000, 50_000_000);

/// From this share of the answers on, those that were held back are seen in the 0.99 quantile.
const FIRST_VISIBLE: f64 = 0.005;

/// Of new connections, the share whose first answer was held back from which on the server is named.
const FIRST_WAITED: f64 = 0.5;

/// Over TCP or TLS: answers that took as long as a delayed acknowledgement are at least half as many as
/// the new connections, and at least 0.5 % of all; in a closed loop, too, since the first query of a
/// connection has no answer before it. Nothing is said where the median takes that long by itself.
pub(super) fn first_answers_wait(run: &Observation<'_>) -> Option<Caveat> {
    let Observation { load, measured, .. } = *run;
    let answered = measured.counters.outcomes.answered.max(1) as f64;
    let connections = measured.counters.connections.opened as f64 / answered;
    let times = &measured.service_time;
    let (from, to) = HELD_BACK_NS;
    let is_over_tcp = load.transport.is_some_and(Transport::runs_over_tcp);
    if !is_over_tcp || times.quantile_ns(0.5)? >= from / 2 {
        return None;
    }
    let share = times.share_at_most(to) - times.share_at_most(from);
    (share >= FIRST_VISIBLE && share >= FIRST_WAITED * connections && connections > 0.0)
        .then_some(Caveat::FirstAnswersWait { share, connections })
}
