//! What is said of a run in a search for the capacity.

use dnslab_analysis::judge_run;
use dnslab_figures::Histogram;
use dnslab_record::{
    Breach, InvalidReason, Judged, LoadMode, Measured, Objective, OpenPace, RunRecord, RunStatus,
};
use dnslab_traffic::Pace;
use dnslab_wire::Transport;

use crate::example;

/// A run of an open loop at 100,000 queries per second with a median latency of 1 ms, changed by
/// `change`.
fn run(change: impl FnOnce(&mut Measured)) -> RunRecord {
    let mut record = example::record("rate-100000", 0, 100_000);
    record.load.mode =
        LoadMode::Open { rate_qps: 100_000.0, pace: OpenPace::constant(Pace::Constant) };
    change(record.measured.as_mut().unwrap());
    record
}

fn times(measured: &mut Measured, latency_ms: u64, lag_ms: u64) {
    let all = |ms: u64| {
        let mut times = Histogram::new();
        times.record_many_ns(ms * 1_000_000, 1_000);
        times
    };
    measured.latency = all(latency_ms);
    measured.send_lag = all(lag_ms);
    measured.service_time = all(latency_ms - lag_ms);
}

fn lose(measured: &mut Measured, lost: u64) {
    let outcomes = &mut measured.counters.outcomes;
    (outcomes.timed_out, outcomes.answered) = (lost, outcomes.due - lost);
    measured.answered_in_window -= lost;
}

/// What is said of the run, in short: a letter for each breach, and the generator's finding.
#[track_caller]
fn check(record: &RunRecord, objective: &str, expected: &str) {
    let objective: Objective = objective.parse().unwrap();
    let judged = judge_run(record, Some(&objective));
    let breaches = judged.breaches().iter().map(|breach| match breach {
        Breach::Threshold { demand, .. } => demand.indicator.to_string(),
        Breach::NotOffered { .. } => "not offered".to_owned(),
        Breach::Backlog { .. } => "backlog".to_owned(),
        Breach::Invalid { .. } => "invalid".to_owned(),
    });
    let breaches = breaches.collect::<Vec<_>>().join(" ");
    let found = match &judged {
        Judged::Met => "met".to_owned(),
        Judged::Violated { .. } => format!("violated: {breaches}"),
        Judged::GeneratorLimited { generator, .. } => {
            let generator = serde_json::to_string(generator).unwrap();
            format!("generator: {breaches}: {generator}")
        }
        Judged::Failed { reason } => format!("failed: {reason}"),
    };
    assert!(found.starts_with(expected), "{found}");
    // On disk it stays what it is.
    let json = serde_json::to_string(&judged).unwrap();
    assert_eq!(serde_json::from_str::<Judged>(&json).unwrap(), judged);
}

const USUAL: &str = "lost<0.1%, p99<10ms";

#[test]
fn the_objective_is_held_against_the_run() {
    check(&run(|_| {}), USUAL, "met");
    check(&run(|measured| lose(measured, 99)), USUAL, "met");
    check(&run(|measured| lose(measured, 100)), USUAL, "violated: lost");
    check(&run(|measured| lose(measured, 100)), "answered>99%", "met");
    check(&run(|measured| lose(measured, 1_000)), "answered>99%", "violated: answered");
    check(&run(|measured| times(measured, 9, 0)), USUAL, "met");
    check(&run(|measured| times(measured, 11, 0)), USUAL, "violated: p99");
    check(&run(|measured| times(measured, 11, 0)), "mean<10ms, max<10ms", "violated: mean max");
    let nothing = run(|measured| {
        measured.counters.outcomes = dnslab_figures::Outcomes::default();
        measured.latency = Histogram::new();
    });
    check(&nothing, USUAL, "violated: lost p99");
}

#[test]
fn a_server_that_does_not_keep_up_violates() {
    let late = |answers| run(move |measured| measured.answered_in_window -= answers);
    check(&late(2_000), USUAL, "met");
    check(&late(2_020), USUAL, "violated: backlog");
    // A closed loop has neither a schedule nor a backlog.
    let mut closed = late(50_000);
    closed.load.mode = LoadMode::Closed { outstanding: 100 };
    check(&closed, USUAL, "met");
}

#[test]
fn a_run_that_does_not_count_violates_or_fails() {
    let mut record = run(|_| {});
    record.status = RunStatus::Invalid { reason: InvalidReason::Late { p99_ns: 2, limit_ns: 1 } };
    check(&record, USUAL, "violated: invalid");
    record.status = RunStatus::Failed { reason: "gone".to_owned(), log_tail: Vec::new() };
    check(&record, USUAL, "failed: gone");
    record.status = RunStatus::Valid;
    record.measured = None;
    check(&record, USUAL, "failed: nothing was measured");
}

#[test]
fn the_generator_is_named_when_it_explains_everything() {
    let busy = |measured: &mut Measured| measured.workers[0].cpu_ns = 950_000_000;
    let slow = |measured: &mut Measured| {
        times(measured, 11, 0);
        busy(measured);
    };
    check(&run(busy), USUAL, "met");
    check(&run(slow), USUAL, "generator: p99: ");
    // Queries that left late, if the demand would be met from when they were sent.
    check(
        &run(|measured| times(measured, 18, 9)),
        USUAL,
        r#"generator: p99: {"finding":"left-late""#,
    );
    check(&run(|measured| times(measured, 20, 9)), USUAL, "violated: p99");
    // Not if others than those that left late are slow: a difference of quantiles would not tell.
    let others = run(|measured| {
        times(measured, 2, 0);
        measured.latency.record_many_ns(15_000_000, 20);
        measured.service_time.record_many_ns(15_000_000, 20);
        measured.send_lag.record_many_ns(14_000_000, 20);
    });
    check(&others, USUAL, "violated: p99");
    let both = run(|measured| {
        times(measured, 18, 9);
        lose(measured, 5_000);
    });
    check(&both, USUAL, "violated: lost p99");
    let missed = |measured: &mut Measured| measured.sent_in_window = 98_000;
    check(&run(missed), USUAL, "generator: not offered: ");
    // 1,000 of 100,000 are lost; 99 would be few enough.
    for (drops, expected) in [(901, "generator: lost: "), (900, "violated: lost")] {
        let mut lossy = run(|measured| lose(measured, 1_000));
        lossy.measured.as_mut().unwrap().workers[0].drops = drops;
        check(&lossy, USUAL, expected);
    }
    // Wrong answers are never the generator's.
    let mut wrong = run(slow);
    wrong.status = RunStatus::Invalid { reason: InvalidReason::Late { p99_ns: 2, limit_ns: 1 } };
    check(&wrong, USUAL, "violated: invalid p99");
}

#[test]
fn a_server_that_is_busier_or_does_not_read_is_the_limit() {
    let busier = |measured: &mut Measured| {
        times(measured, 11, 0);
        measured.workers[0].cpu_ns = 920_000_000;
    };
    let mut busier = run(busier);
    busier.watched.resources.samples[2].cpu_ns = 50_000_000 + 980_000_000;
    check(&busier, USUAL, "violated: p99");
    // A stream that takes no more, of a worker with little to do.
    let mut stream = run(|measured| {
        times(measured, 18, 9);
        measured.sent_in_window = 80_000;
    });
    stream.load.transport = Some(Transport::Tcp);
    check(&stream, USUAL, "violated: p99 not offered");
    stream.measured.as_mut().unwrap().workers[0].cpu_ns = 600_000_000;
    check(&stream, "lost<1%", "generator: not offered: ");
    // The same worker with little to do held connections back itself; unless those that were on
    // their way failed.
    let held = stream.measured.as_mut().unwrap();
    held.workers[0].cpu_ns = 100_000_000;
    held.workers[0].connections_held_ns = 100_000_000;
    check(
        &stream,
        "lost<1%",
        r#"generator: not offered: {"finding":"caveat","caveat":{"kind":"connections-held""#,
    );
    let connections = &mut stream.measured.as_mut().unwrap().counters.connections;
    (connections.attempted, connections.failed) = (1_000, 101);
    check(&stream, "lost<1%", "violated: not offered");
}
