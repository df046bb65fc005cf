//! What a server does to its clients that a rate does not show: answers that wait, clients that are not
//! served; and the smallest latency that can be told from nothing.

use dnslab_analysis::{latency_floor_ns, unserved};
use dnslab_figures::Histogram;
use dnslab_record::{Caveat, InvalidReason, LoadMode, Metric};
use dnslab_settings::ReceiveTime;
use dnslab_wire::Transport;

use crate::caveats::{Run, check, run};

/// An open loop over three TCP connections with a round trip of 100 us: `waited` of its 1,000 answers came at once after the next query, and `overtaken` took long and came after one.
fn waiting(run: &mut Run, waited: u64, overtaken: u64) {
    run.load.transport = Some(Transport::Tcp);
    run.measured.workers[0].round_trip_ns = Some(100_000);
    run.measured.warm_up.connections.opened = 3;
    let answers = &mut run.measured.counters.answers;
    (answers.after_next_query, answers.overtaken) = (waited, overtaken);
}

#[test]
fn answers_that_wait_for_the_next_query() {
    // Three connections with 1,000 queries in a second: one each 3 ms.
    let expected = |share| [Caveat::AnswersWaitForNextQuery { share, gap_ns: 3_000_000 }];
    check(|run| waiting(run, 1_000, 1_000), &expected(1.0));
    check(|run| waiting(run, 50, 50), &expected(0.05));
    check(|run| waiting(run, 49, 49), &[]);
    // Slow answers come whenever they are there: by chance a quarter of them soon after a query.
    check(|run| waiting(run, 250, 1_000), &[]);
    check(|run| waiting(run, 699, 1_000), &[]);
    check(|run| waiting(run, 700, 1_000), &expected(0.7));
    #[track_caller]
    fn check_with(change: impl FnOnce(&mut Run), expected: &[Caveat]) {
        let both = |run: &mut Run| {
            waiting(run, 1_000, 1_000);
            change(run);
        };
        check(both, expected);
    }
    // Queries that follow each other within 1.6 ms tell nothing apart.
    check_with(|run| run.measured.warm_up.connections.opened = 1, &[]);
    check_with(|run| run.measured.warm_up.connections.lost = 2, &[]);
    // Nor does a round trip of 1 ms, at 3 ms between queries.
    check_with(|run| run.measured.workers[0].round_trip_ns = Some(1_000_000), &[]);
    check_with(
        |run| run.measured.workers[0].cpu_ns = 900_000_000,
        &[Caveat::GeneratorLimited { busy_share: 0.9 }],
    );
    check_with(|run| run.watched.resources.samples[2].cpu_ns = 1_000_000_000, &[]);
    check_with(|run| run.measured.workers[0].round_trip_ns = None, &[]);
}

#[test]
fn clients_that_are_not_served() {
    fn reason(change: fn(&mut Run)) -> Option<InvalidReason> {
        let mut run = run();
        run.load.transport = Some(Transport::Dot);
        run.measured.workers[0].clients = 9_500;
        run.measured.workers[0].served_clients = Some(150);
        change(&mut run);
        unserved(&run.observed())
    }
    let few = |failed_attempts, program: &str, is_started| {
        let program = program.to_owned();
        let (served, clients) = (150, 9_500);
        InvalidReason::Unserved { served, clients, failed_attempts, program, is_started }
    };
    assert_eq!(reason(|_| {}), Some(few(0, "bind", true)));
    let failed = reason(|run| run.measured.warm_up.connections.failed = 12);
    assert_eq!(failed, Some(few(12, "bind", true)));
    let external = reason(|run| run.server.kind = "external".to_owned());
    assert_eq!(external, Some(few(0, "external", false)));
    // 99 % are enough, over all workers; and where clients connect on demand nothing is known.
    assert_eq!(reason(|run| run.measured.workers[0].served_clients = Some(9_405)), None);
    assert!(reason(|run| run.measured.workers[0].served_clients = Some(9_404)).is_some());
    assert_eq!(reason(|run| run.measured.workers[0].served_clients = None), None);
    assert_eq!(reason(|run| run.load.transport = Some(Transport::Udp)), None);
    assert_eq!(reason(|run| run.load.max_queries = Some(5)), None);
}

#[test]
fn clients_that_are_answered_no_more() {
    let two = InvalidReason::Forsaken { forsaken: 2, clients: 200 };
    for (forsaken, expected) in [(0, None), (1, None), (2, Some(two))] {
        let mut run = run();
        run.measured.workers[0].clients = 200;
        run.measured.workers[0].forsaken_clients = forsaken;
        assert_eq!(unserved(&run.observed()), expected);
    }
}

#[test]
fn the_floor_of_a_latency() {
    fn floor_us(change: &dyn Fn(&mut Run)) -> f64 {
        let mut run = run();
        run.load.batch_delay_ns = 0;
        change(&mut run);
        (latency_floor_ns(&run.load, &run.measured, Metric::LatencyP50) / 1_000.0).round()
    }
    // 1 us, the send lag of 10 us, and a step of 1 us at the median of 1 ms.
    assert_eq!(floor_us(&|_| {}), 12.0);
    let closed = |run: &mut Run| run.load.mode = LoadMode::Closed { outstanding: 1 };
    assert_eq!(floor_us(&closed), 2.0);
    // Nine tenths of the time in pauses of 90 us; the worst of its workers counts.
    let slept = |run: &mut Run| {
        let mut second = run.measured.workers[0].clone();
        (second.pause_ns, second.pauses) = (900_000_000, 10_000);
        run.measured.workers.push(second);
    };
    assert_eq!(floor_us(&slept), 93.0);
    let stamped = |run: &mut Run| {
        slept(run);
        run.load.receive_time = Some(ReceiveTime::Kernel);
    };
    assert_eq!(floor_us(&stamped), 12.0);
    // Streams have no stamps.
    let over_tcp = |run: &mut Run| {
        stamped(run);
        run.load.transport = Some(Transport::Tcp);
    };
    assert_eq!(floor_us(&over_tcp), 93.0);
    let empty = |run: &mut Run| {
        (run.measured.latency, run.measured.send_lag) = (Histogram::new(), Histogram::new());
    };
    assert_eq!(floor_us(&empty), 1.0);
}

/// Each figure has the floor of its own place in the distributions.
#[test]
fn the_floor_of_each_figure() {
    let mut run = run();
    run.load.batch_delay_ns = 0;
    let (mut lag, mut latency) = (Histogram::new(), Histogram::new());
    for (ns, count) in [(20_000, 900), (100_000, 80), (480_000, 20)] {
        lag.record_many_ns(ns, count);
        latency.record_many_ns(ns + 1_000_000, count);
    }
    (run.measured.send_lag, run.measured.latency) = (lag, latency);
    let floor_us =
        |metric: Metric| (latency_floor_ns(&run.load, &run.measured, metric) / 1_000.0).round();
    // 1 us, the lag, and a thousandth of the latency: of the median, of the p95 and of the p99.
    let quantiles = [Metric::LatencyP50, Metric::LatencyP95, Metric::LatencyP99].map(floor_us);
    assert_eq!(quantiles, [22.0, 102.0, 483.0]);
    // 0.9 * 20 + 0.08 * 100 + 0.02 * 480.
    assert_eq!(floor_us(Metric::LatencyMean), (1.0_f64 + 35.6 + 1.0356).round());
}

/// A thousand answers over DoT with `connections` new connections, of which `held` took 41 ms.
fn coming_and_going(run: &mut Run, connections: u64, held: u64) {
    run.load.transport = Some(Transport::Dot);
    run.load.mode = LoadMode::Closed { outstanding: 1 };
    run.measured.counters.connections.opened = connections;
    let mut times = Histogram::new();
    times.record_many_ns(41_000_000, held);
    times.record_many_ns(1_000_000, 1_000 - held);
    run.measured.service_time = times;
}

#[test]
fn the_first_answer_of_a_connection() {
    fn is_told(connections: u64, held: u64, transport: Transport) -> bool {
        let mut run = run();
        coming_and_going(&mut run, connections, held);
        run.load.transport = Some(transport);
        run.caveats().iter().any(|caveat| matches!(caveat, Caveat::FirstAnswersWait { .. }))
    }
    let case = |connections, held| is_told(connections, held, Transport::Dot);
    assert!(case(50, 50) && case(50, 25));
    assert!(!case(50, 24) && !case(5, 4));
    // Nobody came, and yet some took so long; or all do.
    assert!(!case(0, 50) && !case(900, 900));
    assert!(!is_told(50, 50, Transport::Doq));
}
