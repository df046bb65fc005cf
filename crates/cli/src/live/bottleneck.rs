//! What bounds the answered rate as it looks while the load runs.

use dnslab_analysis::{BottleneckFigures, SERVER_WAITED, ServerUse, TurnedAway};
use dnslab_figures::Counters;
use dnslab_record::{Bottleneck, BottleneckKind, CpuLimit, LiveLimit, UNDER_TEST};
use dnslab_report::bottleneck_text;

use super::sum::{Kind, Sum};

/// Seconds of the measured window before which nothing is said: queries that have no outcome yet would look lost.
const TOO_EARLY: f64 = 1.0;

/// What is known while a load runs.
pub(super) struct Seen<'a> {
    pub(super) kind: &'a Kind,
    /// Of the measured window.
    pub(super) counters: &'a Counters,
    pub(super) sum: &'a Sum,
    /// It is in the measured window of the load that the variant asks for.
    pub(super) is_loaded: bool,
}

/// Names the bottleneck by the rules of the result, from those of its figures that there are already. `None` if there
/// is nothing to say yet. What is told after the run only is left out: threads of the server, servers behind it, the
/// lag of the load, answers that its own sockets dropped.
pub(super) fn so_far(seen: &Seen<'_>) -> Option<Bottleneck> {
    let Seen { kind, counters, sum, is_loaded } = seen;
    let seconds = sum.seconds();
    if !is_loaded || seconds < TOO_EARLY {
        return None;
    }
    let outcomes = &counters.outcomes;
    let late = counters.answers.late;
    let lost = if kind.is_stream { 0 } else { outcomes.timed_out.saturating_sub(late) };
    let share = |queries: u64| queries as f64 / outcomes.due.max(1) as f64;
    let load_cpu = sum.load_cpu().unwrap_or_default();
    let server = ServerUse {
        role: UNDER_TEST.to_owned(),
        busy_share: sum.server_cpu(),
        cpus: sum.server_cpus(),
        waited_share: sum.server_waited(),
        limit: sum.server_limit().map(|LiveLimit { cpus, periods, throttled }| CpuLimit {
            cpus,
            periods,
            throttled,
            ..CpuLimit::default()
        }),
        ..ServerUse::default()
    };
    let connections = &counters.connections;
    let mut found = BottleneckFigures {
        mode: kind.mode.clone(),
        clients: kind.clients,
        due_qps: sum.due as f64 / seconds,
        offered_qps: sum.sent as f64 / seconds,
        answered_qps: sum.answered as f64 / seconds,
        answered: outcomes.answered,
        mean_latency_ns: sum.latency.mean_ns(),
        is_stream: kind.is_stream,
        is_loopback: false,
        lost_datagrams: lost,
        lost_datagram_share: share(lost),
        late_share: share(late),
        servers: vec![server],
        server_udp_drops: sum.server_drops(),
        workers: Vec::new(),
        generator_busy_share: load_cpu,
        generator_wanted_share: load_cpu,
        others_on_load_cpus: None,
        load_limit: None,
        generator_drops: 0,
        connections_held_share: 0.0,
        turned_away: TurnedAway {
            attempted: connections.attempted,
            refused: connections.refused,
            waited: 0,
        },
        failed_connections_share: connections.failed as f64 / connections.attempted.max(1) as f64,
        send_lag_p50_ns: None,
    }
    .bottleneck();
    // Who else had the CPUs is told after the run only.
    let waits = sum.server_waited().is_some_and(|waited| waited >= SERVER_WAITED);
    if (kind.has_more_servers || waits) && found.kind == BottleneckKind::Window {
        found.kind = BottleneckKind::Unclear;
    }
    Some(found)
}

/// The bottleneck in words that claim no more than is known: whether the network lost queries, or a full socket, is told
/// after the run.
pub(super) fn in_words(bottleneck: &Bottleneck) -> String {
    let text = bottleneck_text(bottleneck);
    match (bottleneck.kind, text.split_once(": ")) {
        (BottleneckKind::Network | BottleneckKind::ServerSocket, Some((_, figures))) => {
            format!("losses: {figures}")
        }
        _ => text,
    }
}
