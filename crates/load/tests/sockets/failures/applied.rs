//! A load applied to something hostile, and what must be true of it in any case.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dnslab_figures::{Connections, Counters, Outcomes};
use dnslab_load::{Expected, Job, LoadResult, Progress, run};
use dnslab_record::LiveInterval;
use dnslab_settings::{Load, Mode, QuotaKind, RightCodes};
use dnslab_traffic::{Pace, QueryList, Rate, SyntheticZone, TypeMix};
use dnslab_wire::{QueryOptions, Transport};

/// How much longer than stated a load may take on a busy machine.
const SLACK: Duration = Duration::from_secs(20);

/// A small zone, which [`crate::failures::responder`] serves.
pub(crate) fn zone() -> SyntheticZone {
    SyntheticZone::new("test.example".parse().unwrap(), 7, Duration::from_secs(1)).unwrap()
}

pub(crate) fn queries() -> Arc<QueryList> {
    let options = QueryOptions::default();
    Arc::new(QueryList::from_zone(&zone(), &TypeMix::default(), 0, &options))
}

/// A short closed loop of three clients with five queries outstanding each, from two workers.
pub(crate) fn job(target: SocketAddr, transport: Transport) -> Job {
    let settings = Load {
        transport,
        clients: 3,
        mode: Mode::Closed { outstanding: 5 },
        duration: Duration::from_millis(400),
        warm_up: Duration::from_millis(100),
        timeout: Duration::from_millis(150),
        workers: Some(2),
        ..Load::default()
    };
    let expected = Some(Expected { codes: RightCodes::One(0), answers: 0 });
    Job { expected, ..Job::new(settings, target, queries()) }
}

/// Makes it an open loop with equal gaps.
pub(crate) fn open(load: &mut Load, rate_qps: f64) {
    load.mode = Mode::constant(rate_qps);
}

/// The job as it is, and as an open loop of 400 queries per second.
pub(crate) fn closed_and_open(job: Job) -> [Job; 2] {
    [job.clone(), job.with(|load| open(load, 400.0))]
}

/// Closes each connection after exactly so many queries.
pub(crate) fn exact_quota(load: &mut Load, queries: u32) {
    load.queries_per_connection = Some(queries);
    load.connection_quota = QuotaKind::Exact;
}

/// Applies the load, and checks what is true of every load.
#[track_caller]
pub(crate) fn apply(job: &Job) -> LoadResult {
    apply_while(job, &mut || {})
}

/// Applies the load as [`apply`] does, with `meanwhile` called every 50 ms at least.
#[track_caller]
pub(crate) fn apply_while(job: &Job, meanwhile: &mut dyn FnMut()) -> LoadResult {
    let (mut reports, mut so_far) = (0, Counters::default());
    let began = Instant::now();
    let result = run(job, &AtomicBool::new(false), &mut |progress| {
        if let Progress::Interval(live) = progress {
            reports += 1;
            check_live(live, &mut so_far);
        }
        meanwhile();
    })
    .unwrap();
    let took = began.elapsed();
    // A query may be asked again three times, and each time has its time-out.
    let longest = job.timeline.length() + 4 * job.settings.timeout + SLACK;
    assert!(took < longest, "the load was still running after {took:?}");
    assert!(reports > 0, "no interval was reported");
    check(job, &result);
    result
}

/// What is true of every load that was not interrupted.
#[track_caller]
fn check(job: &Job, result: &LoadResult) {
    let (load, measured) = (&job.settings, &result.measured);
    for counters in [&measured.warm_up, &measured.counters] {
        counters.outcomes.check().unwrap();
        let max_sent = counters.outcomes.due + counters.asked_again;
        assert!(counters.sent <= max_sent, "more was sent than was due: {counters:?}");
        let unsent = counters.outcomes.due - counters.outcomes.not_sent;
        assert!(counters.sent >= unsent, "what was not sent has another outcome: {counters:?}");
    }
    let Counters { outcomes, answers, .. } = both(result);
    assert!(outcomes.due > 0 || load.transport.is_connection(), "nothing was due");
    let answered: u64 = answers.rcodes.values().sum();
    assert_eq!(answered, outcomes.answered, "each answer has a response code");
    assert_eq!(measured.latency.len(), measured.counters.outcomes.due, "each due query counts");
    assert_eq!(measured.service_time.len(), measured.counters.outcomes.answered);
    // The series tells the same story as the sums.
    let due: u64 = measured.intervals.iter().map(|interval| interval.due).sum();
    assert_eq!(due, outcomes.due);
    for interval in measured.intervals.iter().chain(&measured.seconds) {
        assert_eq!(interval.rcodes.values().sum::<u64>(), interval.answered, "{interval:?}");
    }
    if let Mode::Open { rate: Rate::Constant(rate_qps), pace: Pace::Constant } = &load.mode {
        let expected = |length: Duration| rate_qps * length.as_secs_f64();
        for (counters, length) in
            [(&measured.warm_up, load.warm_up), (&measured.counters, load.duration)]
        {
            let off = (counters.outcomes.due as f64 - expected(length)).abs();
            assert!(off <= 2.0, "{} due in {length:?}", counters.outcomes.due);
        }
    }
    check_connections(&both(result).connections);
}

/// What the load has counted when an interval ends is what happened in it and in those before, whose sums are in
/// `so_far`.
#[track_caller]
fn check_live(live: &LiveInterval, so_far: &mut Counters) {
    let LiveInterval { interval, latency, .. } = live;
    let counters = live.total();
    so_far.outcomes.due += interval.due;
    so_far.outcomes.answered += interval.answered;
    so_far.sent += interval.sent;
    assert_eq!(counters.outcomes.due, so_far.outcomes.due, "{live:?}");
    assert_eq!(counters.outcomes.answered, so_far.outcomes.answered, "{live:?}");
    assert!(so_far.sent <= counters.sent, "{live:?}");
    assert!(counters.sent <= so_far.sent + counters.asked_again, "{live:?}");
    assert_eq!(latency.len(), interval.answered + interval.lost, "{interval:?}");
    let Outcomes { due, answered, .. } = counters.outcomes;
    assert_eq!(due - counters.outcomes.settled(), live.in_flight());
    assert_eq!(counters.answers.rcodes.values().sum::<u64>(), answered);
}

/// Connections add up: those that failed and those that opened were attempted, and those that ended were
/// open.
#[track_caller]
fn check_connections(connections: &Connections) {
    let Connections { attempted, opened, failed, refused, lost, closed, .. } = *connections;
    assert!(opened + failed <= attempted, "{connections:?}");
    assert!(refused <= failed + lost, "{connections:?}");
    assert!(lost + closed <= opened, "{connections:?}");
    let handshakes = connections.full_handshakes + connections.resumed_handshakes;
    assert!(handshakes <= opened && connections.early_data <= handshakes, "{connections:?}");
}

/// The counts of warm-up and measured window together.
pub(crate) fn both(result: &LoadResult) -> Counters {
    let mut both = result.measured.warm_up.clone();
    both.merge(&result.measured.counters);
    both
}

/// Why the last connection ended.
pub(crate) fn last_end(result: &LoadResult) -> &str {
    result.last_connection_end.as_deref().unwrap_or_default()
}
