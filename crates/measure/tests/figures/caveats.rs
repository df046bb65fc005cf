//! The doubts and the limit that follow from the figures of a run.

use dnslab_measure::{
    Answers, Caveat, Histogram, Limit, LimitFigures, LimitKind, LoadFacts, LoadMode, Measured,
    ResourceSample, ServerFacts,
};

use crate::example;

/// A quiet open loop of 1,000 qps, in which nothing gives rise to doubt, on a machine of 2 CPUs.
struct Run {
    load: LoadFacts,
    server: ServerFacts,
    measured: Measured,
    host_cpus: usize,
}

fn run() -> Run {
    let mode = LoadMode::Open { rate_qps: 1_000.0, pace: "constant".to_owned() };
    Run {
        load: LoadFacts { mode, ..example::load() },
        server: example::server(),
        measured: example::measured(1_000),
        host_cpus: 2,
    }
}

#[track_caller]
fn check(change: impl FnOnce(&mut Run), expected: &[Caveat]) {
    let mut run = run();
    change(&mut run);
    let Run { load, server, measured, host_cpus } = run;
    assert_eq!(Caveat::find(&load, &server, &measured, host_cpus), expected);
}

#[test]
fn a_quiet_run_has_none() {
    check(|_| {}, &[]);
}

#[test]
fn the_generator() {
    let busy = |cpu_ns| move |run: &mut Run| run.measured.workers[0].cpu_ns = cpu_ns;
    check(busy(949_000_000), &[]);
    check(busy(950_000_000), &[Caveat::GeneratorLimited { busy_share: 0.95 }]);
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
    // The window is 1 s long; in it the server uses 0.5 s of CPU time and the load 0.25 s.
    let machine = |used_ns: u64| {
        move |run: &mut Run| {
            let samples = &mut run.measured.resources.samples;
            (samples[1].machine_ns, samples[2].machine_ns) = (1_000, 1_000 + used_ns);
        }
    };
    check(machine(850_000_000), &[]);
    check(machine(1_250_000_000), &[Caveat::OtherProcesses { cpus: 0.5 }]);
}

#[test]
fn shared_cpus() {
    let pinned = |load: &[usize], server: &[usize], host_cpus| {
        let (load, server) = (load.to_vec(), server.to_vec());
        move |run: &mut Run| {
            (run.load.cpus, run.server.cpus, run.host_cpus) = (load, server, host_cpus);
        }
    };
    check(pinned(&[1, 2], &[0, 3], 4), &[]);
    check(pinned(&[1, 2], &[2, 3], 4), &[Caveat::SharedCpus]);
    check(pinned(&[], &[], 2), &[]);
    check(pinned(&[], &[], 1), &[Caveat::SharedCpus]);
    check(pinned(&[0], &[], 1), &[Caveat::SharedCpus]);
    let external = |target: &str| {
        let target = target.to_owned();
        move |run: &mut Run| {
            (run.load.target, run.load.cpus, run.host_cpus) = (target, vec![0], 1);
            run.server = ServerFacts { kind: "external".to_owned(), ..ServerFacts::default() };
        }
    };
    check(external("192.0.2.1:53"), &[]);
    check(external("127.0.0.1:53"), &[Caveat::SharedCpus]);
    check(external("[::1]:53"), &[Caveat::SharedCpus]);
}

#[test]
fn the_mode() {
    check(
        |run| run.load.mode = LoadMode::Closed { outstanding: 100 },
        &[Caveat::ClosedLoop { window: 400 }],
    );
    let sent = |sent| move |run: &mut Run| run.measured.counters.sent = sent;
    check(sent(990), &[]);
    check(sent(989), &[Caveat::RateMissed { intended_qps: 1_000.0, offered_qps: 989.0 }]);
}

#[test]
fn send_lag() {
    let lag = |ns| {
        move |run: &mut Run| {
            run.measured.send_lag = Histogram::new();
            run.measured.send_lag.record_ns(ns);
        }
    };
    check(lag(99_000), &[]);
    let mut stored = Histogram::new();
    stored.record_ns(101_000);
    let p50_ns = stored.quantile_ns(0.5).unwrap();
    check(lag(101_000), &[Caveat::SendLag { p50_ns }]);
    check(|run| run.measured.latency = Histogram::new(), &[]);
}

#[test]
fn steal() {
    // Over the one second of the window, on two CPUs.
    let stolen = |steal_ns| {
        move |run: &mut Run| {
            run.measured.resources.samples[2] =
                ResourceSample { at_ns: 1_100_000_000, steal_ns, ..ResourceSample::default() };
        }
    };
    check(stolen(20_000_000), &[]);
    check(stolen(30_000_000), &[Caveat::Steal { share: 0.015 }]);
    check(|run| run.measured.resources.samples.clear(), &[]);
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
fn check_limit(change: impl FnOnce(&mut Run), expected: LimitKind) {
    let mut run = run();
    change(&mut run);
    let limit = Limit::decide(&LimitFigures::of(&run.load, &run.measured));
    assert_eq!(limit.kind, expected, "{}", limit.evidence);
}

#[test]
fn the_limit_is_named_from_what_was_measured() {
    check_limit(|_| {}, LimitKind::Rate);
    check_limit(|run| run.measured.counters.sent = 900, LimitKind::Generator);
    // 1,000 qps of 1 ms each are one query in flight.
    let closed = |clients, outstanding| {
        move |run: &mut Run| {
            run.load.clients = clients;
            run.load.mode = LoadMode::Closed { outstanding };
        }
    };
    check_limit(closed(1, 1), LimitKind::Window);
    check_limit(closed(2, 1), LimitKind::Unclear);
    let lossy = |transport: &'static str| {
        move |run: &mut Run| {
            closed(1, 1)(run);
            run.load.transport = transport.to_owned();
            let outcomes = &mut run.measured.counters.outcomes;
            (outcomes.answered, outcomes.timed_out) = (990, 10);
        }
    };
    check_limit(lossy("udp"), LimitKind::Network);
    check_limit(lossy("tcp"), LimitKind::Window);
    check_limit(
        |run| {
            closed(1, 1)(run);
            run.measured.resources.samples[2].cpu_ns = 1_000_000_000;
        },
        LimitKind::ServerCpu,
    );
    check_limit(
        |run| {
            closed(1, 1)(run);
            run.measured.resources.samples.clear();
        },
        LimitKind::Unclear,
    );
}
