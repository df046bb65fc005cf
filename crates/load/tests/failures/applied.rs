//! A load applied to something hostile, and what must be true of it in any case.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dnslab_load::{Expected, LoadResult, LoadSpec, Mode, Progress, run};
use dnslab_measure::{Connections, Counters};
use dnslab_traffic::{Pace, QueryList, Rate, SyntheticZone, TypeMix};
use dnslab_wire::{QueryOptions, Transport};

/// What a busy machine may take longer for than the load itself says.
const SLACK: Duration = Duration::from_secs(20);

/// Names of a small zone, which [`crate::responder`] serves.
pub(crate) fn zone() -> SyntheticZone {
    SyntheticZone::new("test.example".parse().unwrap(), 7, Duration::from_secs(1)).unwrap()
}

/// The names of that zone.
pub(crate) fn queries() -> Arc<QueryList> {
    let options = QueryOptions::default();
    Arc::new(QueryList::from_zone(&zone(), &TypeMix::default(), 0, &options))
}

/// A short closed loop of three clients with five queries outstanding each, from two workers.
pub(crate) fn spec(target: SocketAddr, transport: Transport) -> LoadSpec {
    LoadSpec {
        clients: 3,
        mode: Mode::Closed { outstanding: 5 },
        duration: Duration::from_millis(400),
        warm_up: Duration::from_millis(100),
        timeout: Duration::from_millis(150),
        workers: 2,
        expected: Some(Expected { rcode: 0, answers: 0 }),
        ..LoadSpec::new(target, transport, queries())
    }
}

/// An open loop at a constant rate, queries per second.
pub(crate) fn open(rate_qps: f64) -> Mode {
    Mode::Open { rate: Rate::Constant(rate_qps), pace: Pace::Constant }
}

/// Applies the load, and checks what is true of every load.
#[track_caller]
pub(crate) fn apply(spec: &LoadSpec) -> LoadResult {
    apply_while(spec, &mut || {})
}

/// Applies the load and calls `meanwhile` every 50 ms at least, and checks what is true of every
/// load.
#[track_caller]
pub(crate) fn apply_while(spec: &LoadSpec, meanwhile: &mut dyn FnMut()) -> LoadResult {
    let mut told = 0;
    let began = Instant::now();
    let result = run(spec, &AtomicBool::new(false), &mut |progress| {
        told += u32::from(matches!(progress, Progress::Interval(_)));
        meanwhile();
    })
    .unwrap();
    let took = began.elapsed();
    // A query may be asked again three times, and each time has its time-out.
    let longest = spec.warm_up + spec.duration + 4 * spec.timeout + SLACK;
    assert!(took < longest, "the load was still running after {took:?}");
    assert!(told > 0, "no interval was reported");
    check(spec, &result);
    result
}

/// What is true of every load that was not interrupted.
#[track_caller]
fn check(spec: &LoadSpec, result: &LoadResult) {
    let measured = &result.measured;
    for counters in [&measured.warm_up, &measured.counters] {
        counters.outcomes.check().unwrap();
        let max_sent = counters.outcomes.due + counters.asked_again;
        assert!(counters.sent <= max_sent, "more was sent than was due: {counters:?}");
        let unsent = counters.outcomes.due - counters.outcomes.not_sent;
        assert!(counters.sent >= unsent, "what was not sent has another outcome: {counters:?}");
    }
    let Counters { outcomes, answers, .. } = both(result);
    assert!(outcomes.due > 0 || spec.transport.is_connection(), "nothing was due");
    let answered: u64 = answers.rcodes.values().sum();
    assert_eq!(answered, outcomes.answered, "each answer has a response code");
    assert_eq!(measured.latency.len(), measured.counters.outcomes.due, "each due query counts");
    assert_eq!(measured.service_time.len(), measured.counters.outcomes.answered);
    // The series tells the same story as the sums.
    let due: u64 = measured.intervals.iter().map(|interval| interval.due).sum();
    assert_eq!(due, outcomes.due);
    if let Mode::Open { rate: Rate::Constant(rate_qps), pace: Pace::Constant } = spec.mode {
        let expected = |length: Duration| rate_qps * length.as_secs_f64();
        for (counters, length) in
            [(&measured.warm_up, spec.warm_up), (&measured.counters, spec.duration)]
        {
            let off = (counters.outcomes.due as f64 - expected(length)).abs();
            assert!(off <= 2.0, "{} due in {length:?}", counters.outcomes.due);
        }
    }
    check_connections(&both(result).connections);
}

/// Connections that add up: those that failed and those that opened were attempted, those that
/// ended were open.
#[track_caller]
fn check_connections(connections: &Connections) {
    let Connections { attempted, opened, failed, lost, closed, .. } = *connections;
    assert!(opened + failed <= attempted, "{connections:?}");
    assert!(lost + closed <= opened, "{connections:?}");
    let handshakes = connections.full_handshakes + connections.resumed_handshakes;
    assert!(handshakes <= opened && connections.early_data <= handshakes, "{connections:?}");
}

/// The counts of the warm-up and of the measured window together.
pub(crate) fn both(result: &LoadResult) -> Counters {
    let mut both = result.measured.warm_up.clone();
    both.merge(&result.measured.counters);
    both
}

/// Why the last connection ended, as the result says.
pub(crate) fn last_end(result: &LoadResult) -> &str {
    result.last_connection_end.as_deref().unwrap_or_default()
}
