//! The doubts and the limit that follow from the figures of a run.

use dnslab_analysis::{BottleneckFigures, caveats};
use dnslab_figures::{Answers, Histogram, Interval, NetworkDrops, Outcomes, PacingTally};
use dnslab_record::{
    AfterTruncation, BottleneckKind, Caveat, CpuShare, LoadFacts, LoadMode, Measured, Observation,
    OpenPace, ResourceSample, ServerFacts, Watched,
};
use dnslab_traffic::Pace;
use dnslab_wire::Transport;

use crate::example;

/// A quiet open loop of 1,000 qps, in which nothing gives rise to doubt, on a machine of 2 CPUs.
pub(crate) struct Run {
    pub(crate) load: LoadFacts,
    pub(crate) server: ServerFacts,
    pub(crate) measured: Measured,
    pub(crate) watched: Watched,
    host_cpus: usize,
}

pub(crate) fn run() -> Run {
    let mode = LoadMode::Open { rate_qps: 1_000.0, pace: OpenPace::constant(Pace::Constant) };
    Run {
        load: LoadFacts { mode, ..example::load() },
        server: example::server(),
        measured: example::measured(1_000),
        watched: example::watched(),
        host_cpus: 2,
    }
}

impl Run {
    pub(crate) fn observed(&self) -> Observation<'_> {
        let Self { load, server, measured, watched, .. } = self;
        Observation { load, server, measured, watched }
    }

    pub(crate) fn caveats(&self) -> Vec<Caveat> {
        caveats(&self.observed(), self.host_cpus)
    }
}

#[track_caller]
pub(crate) fn check(change: impl FnOnce(&mut Run), expected: &[Caveat]) {
    let mut run = run();
    change(&mut run);
    assert_eq!(run.caveats(), expected);
}

#[test]
fn a_quiet_run_has_none() {
    check(|_| {}, &[]);
}

#[test]
fn the_generator() {
    let busy = |cpu_ns| move |run: &mut Run| run.measured.workers[0].cpu_ns = cpu_ns;
    check(busy(899_000_000), &[]);
    check(busy(900_000_000), &[Caveat::GeneratorLimited { busy_share: 0.9 }]);
    check(|run| run.measured.workers[0].drops = 1, &[Caveat::GeneratorDrops { datagrams: 1 }]);
    // The busiest of the workers decides; drops are summed.
    check(
        |run| {
            let mut second = run.measured.workers[0].clone();
            (second.cpu_ns, second.drops) = (1_000_000_000, 2);
            run.measured.workers[0].drops = 1;
            run.measured.workers.push(second);
        },
        &[Caveat::GeneratorLimited { busy_share: 1.0 }, Caveat::GeneratorDrops { datagrams: 3 }],
    );
}

#[test]
fn a_machine_that_others_use() {
    let waited = |waited_ns| move |run: &mut Run| run.measured.workers[0].waited_ns = waited_ns;
    check(waited(50_000_000), &[]);
    check(waited(60_000_000), &[Caveat::Crowded { waited_share: 0.06 }]);
    // Where it is known that others did not use the load's CPU, the worker waited for dnslab's other threads.
    fn used(run: &mut Run, used: f64) {
        run.measured.workers[0].waited_ns = 500_000_000;
        let resources = &mut run.watched.resources;
        resources.load_cpus = vec![CpuShare { cpu: 1, used, irq: 0.1 }];
        (resources.samples[1].dnslab_ns, resources.samples[2].dnslab_ns) = (1, 500_000_001);
    }
    check(|run| used(run, 0.51), &[]);
    // Use is told in ticks of 10 ms.
    check(|run| used(run, 0.53), &[]);
    check(|run| used(run, 0.55), &[Caveat::Crowded { waited_share: 0.5 }]);
    let apart = |run: &mut Run| {
        used(run, 0.61);
        run.watched.resources.irq_apart = Some(true);
    };
    check(apart, &[]);
    // The server has the same CPU, and used half of it.
    let shared = |run: &mut Run| {
        used(run, 1.0);
        (run.load.cpus, run.server.cpus) = (vec![1], vec![1]);
    };
    check(shared, &[Caveat::SharedCpus]);
    // The window is 1 s long; in it the server uses 0.5 s of CPU time and the load 0.25 s.
    fn machine(run: &mut Run, used_ns: u64) {
        let samples = &mut run.watched.resources.samples;
        (samples[1].machine_ns, samples[2].machine_ns) = (1_000, 1_000 + used_ns);
    }
    check(|run| machine(run, 850_000_000), &[]);
    check(
        |run| machine(run, 1_250_000_000),
        &[Caveat::OtherProcesses { cpus: 0.5, host: String::new() }],
    );
}

#[test]
fn shared_cpus() {
    fn pinned(run: &mut Run, load: &[usize], server: &[usize], host_cpus: usize) {
        (run.load.cpus, run.server.cpus) = (load.to_vec(), server.to_vec());
        run.host_cpus = host_cpus;
    }
    check(|run| pinned(run, &[1, 2], &[0, 3], 4), &[]);
    check(|run| pinned(run, &[1, 2], &[2, 3], 4), &[Caveat::SharedCpus]);
    check(|run| pinned(run, &[], &[], 2), &[]);
    check(|run| pinned(run, &[], &[], 1), &[Caveat::SharedCpus]);
    check(|run| pinned(run, &[0], &[], 1), &[Caveat::SharedCpus]);
    fn external(run: &mut Run, target: &str) {
        (run.load.target, run.load.cpus, run.host_cpus) = (target.to_owned(), vec![0], 1);
        run.server = ServerFacts { kind: "external".to_owned(), ..ServerFacts::default() };
    }
    check(|run| external(run, "192.0.2.1:53"), &[]);
    check(|run| external(run, "127.0.0.1:53"), &[Caveat::SharedCpus]);
    check(|run| external(run, "[::1]:53"), &[Caveat::SharedCpus]);
}

/// A closed loop, with `answered` queries of 1 ms each in the second of the window.
fn closed(clients: u32, outstanding: u32, answered: u64) -> impl FnOnce(&mut Run) {
    move |run: &mut Run| {
        run.load.clients = clients;
        run.load.mode = LoadMode::Closed { outstanding };
        run.measured = example::measured(answered);
    }
}

#[test]
fn the_window() {
    // The histogram keeps 1 ms with three digits.
    let service_ns = example::measured(1).service_time.mean_ns().unwrap();
    let in_flight = |answered: u64| answered as f64 * service_ns / 1e9;
    let full = Caveat::ClosedLoop { window: 400 };
    // 2 s of time-out in 1.1 s: eleven losses hold the twentieth part of the window.
    fn losing(run: &mut Run, answered: u64, lost: u64) {
        closed(4, 100, answered)(run);
        run.load.timeout_ns = 2_000_000_000;
        run.measured.warm_up.outcomes.due += lost;
        run.measured.warm_up.outcomes.timed_out += lost;
    }
    check(|run| losing(run, 360_000, 30), std::slice::from_ref(&full));
    check(|run| losing(run, 359_000, 0), std::slice::from_ref(&full));
    check(|run| losing(run, 359_000, 10), std::slice::from_ref(&full));
    let expected = |answered| {
        [full.clone(), Caveat::WindowNotFull { in_flight: in_flight(answered), window: 400 }]
    };
    check(|run| losing(run, 359_000, 12), &expected(359_000));
    // No answer at all leaves no service time.
    check(
        |run| {
            losing(run, 0, 30);
            run.measured.service_time = Histogram::new();
        },
        &expected(0),
    );
    // Nothing is lost, but half of the window is neither in flight nor in the worker's hands, whose
    // rounds took 10 us each: it waited for streams or connections.
    fn waiting(run: &mut Run, pauses: u64) {
        losing(run, 200_000, 0);
        (run.measured.workers[0].cpu_ns, run.measured.workers[0].pauses) = (800_000_000, pauses);
    }
    let half = || Caveat::WindowNotFull { in_flight: in_flight(200_000), window: 400 };
    check(|run| waiting(run, 80_000), &[full.clone(), half()]);
    // Rounds of 1 ms hold the other places: the generator's own work.
    check(|run| waiting(run, 800), std::slice::from_ref(&full));
    // Without a window there is none to fill.
    check(|run| run.measured.service_time = Histogram::new(), &[]);
}

#[test]
fn clients_without_a_connection() {
    fn open(run: &mut Run, clients: u32, open_clients: u32) {
        let worker = &mut run.measured.workers[0];
        (worker.clients, worker.open_clients) = (clients, open_clients);
        run.measured.workers.push(run.measured.workers[0].clone());
    }
    check(|run| open(run, 4, 4), &[]);
    check(|run| open(run, 4, 3), &[Caveat::ClientsNotConnected { open: 6, clients: 8 }]);
    check(|run| open(run, 0, 0), &[]);
}

#[test]
fn the_rate() {
    let sent = |sent| move |run: &mut Run| run.measured.sent_in_window = sent;
    check(sent(990), &[]);
    check(sent(989), &[Caveat::RateMissed { intended_qps: 1_000.0, offered_qps: 989.0 }]);
    // What a Poisson process draws is not the rate that was asked for, and all of it was sent.
    let drawn = |run: &mut Run| {
        run.measured.sent_in_window = 940;
        let outcomes = &mut run.measured.counters.outcomes;
        (outcomes.due, outcomes.answered) = (940, 940);
    };
    check(drawn, &[]);
}

#[test]
fn send_lag() {
    // The latency is 1 ms throughout. Of 100 lags, `late` are `ns`, the others none.
    fn lags(run: &mut Run, ns: u64, late: u32) {
        run.measured.send_lag = Histogram::new();
        (0..100).for_each(|n| run.measured.send_lag.record_ns(if n < late { ns } else { 1 }));
    }
    let stored = |ns| {
        let mut stored = Histogram::new();
        stored.record_ns(ns);
        stored.quantile_ns(0.5).unwrap()
    };
    check(|run| lags(run, 99_000, 100), &[]);
    let p99_ns = Some(stored(101_000));
    check(|run| lags(run, 101_000, 100), &[Caveat::SendLag { p50_ns: stored(101_000), p99_ns }]);
    // The tail alone, from two of a hundred on.
    check(|run| lags(run, 101_000, 1), &[]);
    check(|run| lags(run, 101_000, 2), &[Caveat::SendLag { p50_ns: 1, p99_ns }]);
    check(|run| run.measured.latency = Histogram::new(), &[]);
    // A closed loop has no schedule to lag behind.
    check(
        |run| {
            closed(1, 1, 1_000)(run);
            lags(run, 101_000, 100);
        },
        &[Caveat::ClosedLoop { window: 1 }],
    );
}

#[test]
fn pacing() {
    /// An open loop of `due_per_ms` queries per millisecond, of which every window of 10 ms sends
    /// one in fifty too few or too many, if it is one of the first `uneven` of a hundred.
    fn paced(due_per_ms: u32, uneven: u32) -> impl FnOnce(&mut Run) {
        move |run: &mut Run| {
            let mut tally = PacingTally::new();
            for ms in 0..1_000 {
                let window = ms / 10;
                let off = if ms % 10 == 0 && window < uneven { due_per_ms / 5 } else { 0 };
                let sent = if window % 2 == 0 { due_per_ms - off } else { due_per_ms + off };
                tally.push(due_per_ms, sent);
            }
            run.measured.pacing = Some(tally.finish());
        }
    }
    let uneven =
        |share_within| Caveat::Pacing { width_ns: 10_000_000, share_within, p99_error: 0.02 };
    check(paced(100, 0), &[]);
    check(paced(100, 1), &[]);
    check(paced(100, 2), &[uneven(0.98)]);
    // With 100 due in a window one query is 1 % of them; with 50 the next wider window is judged,
    // in which the errors cancel out.
    check(paced(10, 2), &[uneven(0.98)]);
    check(paced(5, 2), &[]);
    // A rate that was not met is said once.
    check(
        |run| {
            paced(100, 50)(run);
            run.measured.sent_in_window = 900;
        },
        &[Caveat::RateMissed { intended_qps: 1_000.0, offered_qps: 900.0 }],
    );
}

#[test]
fn full_sockets_of_the_host() {
    // 1,000 queries were sent, so one drop is 0.1 %.
    fn dropped(run: &mut Run, all: u64, own: u64, server: u64) {
        run.measured.network =
            Some(NetworkDrops { udp_receive_buffer: all, ..NetworkDrops::default() });
        run.measured.workers[0].drops = own;
        run.watched.resources.samples[2].udp_drops = server;
    }
    check(|run| dropped(run, 1, 0, 0), &[]);
    // What the one server did not drop was a stranger's.
    check(|run| dropped(run, 20_000, 0, 0), &[]);
    // Nor was it one of these queries, which were all answered.
    check(|run| dropped(run, 9, 0, 7), &[]);
    fn lost(run: &mut Run, all: u64, server: u64) {
        dropped(run, all, 0, server);
        let outcomes = &mut run.measured.counters.outcomes;
        (outcomes.answered, outcomes.timed_out) = (outcomes.answered - 1, 1);
    }
    let with_loss = |datagrams, of_server| {
        [Caveat::HostDrops { datagrams, of_server }, Caveat::Lost { share: 0.001 }]
    };
    check(|run| lost(run, 2, 0), &[Caveat::Lost { share: 0.001 }]);
    check(|run| lost(run, 9, 7), &with_loss(7, 7));
    check(|run| lost(run, 9, 70), &with_loss(9, 9));
    let unwatched = |run: &mut Run| {
        lost(run, 9, 0);
        run.watched.resources.samples.clear();
    };
    check(unwatched, &with_loss(9, 0));
    // The generator's own are said once.
    check(|run| dropped(run, 9, 9, 0), &[Caveat::GeneratorDrops { datagrams: 9 }]);
    let over_tcp = |run: &mut Run| {
        dropped(run, 9, 0, 0);
        run.load.transport = Some(Transport::Dot);
    };
    check(over_tcp, &[]);
}

#[test]
fn a_batch_delay() {
    // Ten pauses in a second.
    fn paused(run: &mut Run, mean_ns: u64) {
        let worker = &mut run.measured.workers[0];
        (worker.pause_ns, worker.pauses) = (10 * mean_ns, 10);
    }
    let p50_ns = example::measured(1).latency.quantile_ns(0.5).unwrap();
    // 3.162 ms, 3.162 % of the time: 99.98 us for an answer, with a median of 1,000.4 us.
    check(|run| paused(run, 3_162_000), &[]);
    check(|run| paused(run, 3_163_000), &[Caveat::BatchDelay { batch_delay_ns: 100_045, p50_ns }]);
    // As long, but hardly ever.
    check(
        |run| (run.measured.workers[0].pause_ns, run.measured.workers[0].pauses) = (400_000, 1),
        &[],
    );
    check(|run| run.load.batch_delay_ns = 900_000, &[]);
}

#[test]
fn lost_queries() {
    fn lost(run: &mut Run, lost: u64) {
        run.measured.sent_in_window = 100_000;
        let outcomes = &mut run.measured.counters.outcomes;
        *outcomes = Outcomes {
            due: 100_000,
            answered: 100_000 - lost,
            connection_lost: lost,
            ..Outcomes::default()
        };
    }
    check(|run| lost(run, 99), &[]);
    check(|run| lost(run, 100), &[Caveat::Lost { share: 0.001 }]);
}

#[test]
fn answers_that_are_not_whole() {
    fn answers(run: &mut Run, answers: Answers) {
        run.measured.sent_in_window = 10_000;
        run.measured.counters.outcomes.due = 10_000;
        run.measured.counters.outcomes.answered = 10_000;
        run.measured.counters.answers = answers;
    }
    fn truncated(run: &mut Run, truncated: u64) {
        answers(run, Answers { truncated, ..Answers::default() });
    }
    check(|run| truncated(run, 9), &[]);
    let then = AfterTruncation::Counted;
    check(|run| truncated(run, 10), &[Caveat::Truncated { share: 0.001, then }]);
    // Each that was asked again over TCP counts once, and is no more than all of them.
    fn again(run: &mut Run, asked_over_tcp: u64, truncated_over_tcp: u64) {
        let truncated = 10_000;
        let own = Answers { truncated, asked_over_tcp, truncated_over_tcp, ..Answers::default() };
        answers(run, own);
    }
    let then = |truncated_share| AfterTruncation::AskedOverTcp { truncated_share };
    check(|run| again(run, 10_000, 10_000), &[Caveat::Truncated { share: 1.0, then: then(1.0) }]);
    check(|run| again(run, 10_000, 0), &[Caveat::Truncated { share: 1.0, then: then(0.0) }]);
    let over_tcp = |run: &mut Run| {
        truncated(run, 5_000);
        run.load.transport = Some(Transport::Tcp);
    };
    let then = AfterTruncation::WasOverConnection;
    check(over_tcp, &[Caveat::Truncated { share: 0.5, then }]);
    fn empty(run: &mut Run, empty: u64) {
        answers(run, Answers { empty, ..Answers::default() });
    }
    check(|run| empty(run, 1_000), &[]);
    check(|run| empty(run, 1_001), &[Caveat::EmptyAnswers { share: 0.1001 }]);
}

#[test]
fn a_rate_that_breaks_down() {
    /// Ten intervals of 0.1 s in the window, with these answers in the fifth and in the others.
    fn intervals(fifth: u64, others: u64) -> Vec<Interval> {
        (0..10)
            .map(|at| Interval {
                at_ns: 100_000_000 * (at + 1),
                length_ns: 100_000_000,
                answered: if at == 4 { fifth } else { others },
                ..Interval::default()
            })
            .collect()
    }
    let with = |intervals: Vec<Interval>| move |run: &mut Run| run.measured.intervals = intervals;
    let unsteady = [Caveat::Unsteady { lowest_qps: 490.0, median_qps: 1_000.0 }];
    check(with(intervals(50, 100)), &[]);
    check(with(intervals(49, 100)), &unsteady);
    // A median of 20 says enough, one of 19 does not.
    check(with(intervals(9, 20)), &[Caveat::Unsteady { lowest_qps: 90.0, median_qps: 200.0 }]);
    check(with(intervals(0, 19)), &[]);
    // Eight intervals do, seven do not.
    let first = |count: usize| intervals(49, 100).into_iter().take(count).collect();
    check(with(first(8)), &unsteady);
    check(with(first(7)), &[]);
    // The warm-up and a part of an interval at the end may be slow.
    let mut ends = intervals(100, 100);
    ends.insert(0, Interval { length_ns: 100_000_000, ..Interval::default() });
    ends.push(Interval { at_ns: 1_090_000_000, length_ns: 10_000_000, ..Interval::default() });
    check(with(ends), &[]);
    // Arrivals that scatter must leave the range of chance: 4 x sqrt(25) = 20 below 25.
    fn poisson(run: &mut Run, intervals: Vec<Interval>) {
        run.load.mode =
            LoadMode::Open { rate_qps: 1_000.0, pace: OpenPace::constant(Pace::Poisson) };
        run.measured.intervals = intervals;
    }
    check(|run| poisson(run, intervals(5, 25)), &[]);
    check(
        |run| poisson(run, intervals(4, 25)),
        &[Caveat::Unsteady { lowest_qps: 40.0, median_qps: 250.0 }],
    );
    check(|run| poisson(run, intervals(49, 100)), &unsteady);
}

#[test]
fn a_rate_that_rises_or_falls() {
    /// So many intervals of 0.1 s with these answers.
    fn intervals(answers: impl Fn(u64) -> u64, count: u64) -> Vec<Interval> {
        (0..count)
            .map(|at| Interval {
                at_ns: 100_000_000 * (at + 1),
                length_ns: 100_000_000,
                answered: answers(at),
                ..Interval::default()
            })
            .collect()
    }
    fn found(intervals: Vec<Interval>, mode: LoadMode) -> Option<Caveat> {
        let mut run = run();
        run.measured.window_start_ns = 100_000_000;
        run.measured.window_ns = 100_000_000 * intervals.len() as u64;
        run.measured.intervals = intervals;
        run.load.mode = mode;
        run.caveats().into_iter().find(|caveat| matches!(caveat, Caveat::Trend { .. }))
    }
    let closed = LoadMode::Closed { outstanding: 1 };
    // From 105 to 70 thousand in its first minute: the published study.
    let falling = |at: u64| 10_500 - 175 * at;
    let fell = Caveat::Trend { first_qps: 102_375.0, last_qps: 74_375.0 };
    assert_eq!(found(intervals(falling, 20), closed.clone()), Some(fell));
    assert_eq!(found(intervals(falling, 19), closed.clone()), None);
    // By 4 % it is none that matters; noise without a direction is none.
    assert_eq!(found(intervals(|at| 10_000 + 20 * at, 20), closed.clone()), None);
    let noise = |at: u64| 10_000 + 1_000 * (at * 7 % 5);
    assert_eq!(found(intervals(noise, 40), closed), None);
    // What an open loop was asked for is no trend of the server.
    let open = LoadMode::Open { rate_qps: 1_000.0, pace: OpenPace::constant(Pace::Constant) };
    assert_eq!(found(intervals(falling, 20), open), None);
}

#[test]
fn steal() {
    // Over the one second of the window, on two CPUs.
    fn stolen(run: &mut Run, steal_ns: u64) {
        run.watched.resources.samples[2] =
            ResourceSample { at_ns: 1_100_000_000, steal_ns, ..ResourceSample::default() };
    }
    check(|run| stolen(run, 20_000_000), &[]);
    check(|run| stolen(run, 30_000_000), &[Caveat::Steal { share: 0.015, host: String::new() }]);
    check(|run| run.watched.resources.samples.clear(), &[]);
}

#[test]
fn stray_answers() {
    check(
        |run| {
            let answers = &mut run.measured.counters.answers;
            *answers = Answers { late: 1, duplicate: 2, unexpected: 3, ..Answers::default() };
        },
        &[Caveat::StrayAnswers { late: 1, duplicate: 2, unexpected: 3 }],
    );
}

#[track_caller]
fn check_limit(change: impl FnOnce(&mut Run), expected: BottleneckKind) {
    let mut run = run();
    change(&mut run);
    let limit = BottleneckFigures::of(&run.observed()).bottleneck();
    assert_eq!(limit.kind, expected, "{limit:?}");
}

#[test]
fn the_limit_is_named_from_what_was_measured() {
    check_limit(|_| {}, BottleneckKind::Rate);
    check_limit(|run| run.measured.sent_in_window = 900, BottleneckKind::Generator);
    let stream = |run: &mut Run| {
        run.load.transport = Some(Transport::Tcp);
        run.measured.sent_in_window = 900;
    };
    check_limit(stream, BottleneckKind::Unclear);
    // 1,000 qps of 1 ms each are one query in flight.
    check_limit(closed(1, 1, 1_000), BottleneckKind::Window);
    check_limit(closed(2, 1, 1_000), BottleneckKind::Unclear);
    fn lossy(run: &mut Run, transport: &str, late: u64) {
        closed(1, 1, 1_000)(run);
        run.load.transport = transport.parse().ok();
        run.load.target = "192.0.2.1:53".to_owned();
        let counters = &mut run.measured.counters;
        (counters.outcomes.answered, counters.outcomes.timed_out) = (990, 10);
        counters.answers.late = late;
    }
    check_limit(|run| lossy(run, "udp", 0), BottleneckKind::Network);
    check_limit(|run| lossy(run, "udp", 8), BottleneckKind::Network);
    check_limit(|run| lossy(run, "udp", 9), BottleneckKind::Unclear);
    // What the server's sockets dropped is no loss of the network.
    fn dropped(run: &mut Run, drops: u64) {
        lossy(run, "udp", 0);
        run.watched.resources.samples[2].udp_drops = drops;
    }
    check_limit(|run| dropped(run, 4), BottleneckKind::Network);
    check_limit(|run| dropped(run, 5), BottleneckKind::ServerSocket);
    check_limit(|run| lossy(run, "tcp", 0), BottleneckKind::Window);
    check_limit(|run| lossy(run, "tcp", 9), BottleneckKind::Unclear);
    check_limit(
        |run| {
            closed(1, 1, 1_000)(run);
            run.watched.resources.samples[2].cpu_ns = 1_000_000_000;
        },
        BottleneckKind::ServerCpu,
    );
    check_limit(
        |run| {
            closed(1, 1, 1_000)(run);
            run.watched.resources.samples.clear();
        },
        BottleneckKind::Unknown,
    );
}

#[test]
fn drops_count_inside_the_window_only() {
    let mut run = run();
    for (sample, udp_drops) in run.watched.resources.samples.iter_mut().zip([0, 500, 512]) {
        sample.udp_drops = udp_drops;
    }
    let figures = |load| BottleneckFigures::of(&Observation { load, ..run.observed() });
    assert_eq!(figures(&run.load).server_udp_drops, 12);
    assert!(figures(&run.load).is_loopback);
    let elsewhere = LoadFacts { target: "192.0.2.1:53".to_owned(), ..run.load.clone() };
    assert!(!figures(&elsewhere).is_loopback);
}
