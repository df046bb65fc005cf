//! What keeps a side from its CPUs, from the samples of a run.

use std::time::Duration;

use dnslab_analysis::statistics::Verdict;
use dnslab_analysis::{BottleneckFigures, Ruling, SendingLimits, Summary, not_sent_as_asked};
use dnslab_record::Metric;
use dnslab_record::{
    Bottleneck, BottleneckKind, Caveat, CostLimit, CpuLimit, Evidence, InvalidReason, LoadMode,
    RunRecord, Session, TurnsTaken,
};
use proptest::prelude::*;

use crate::caveats::{Run, check, run};
use crate::example;
use dnslab_analysis::is_disturbed;
use dnslab_record::OpenPace;
use dnslab_traffic::Pace;
use dnslab_wire::Transport;

/// Over the window of one second: what the server's threads waited, and what was used of its CPU at all, in
/// milliseconds. The server itself uses 500.
fn waits(run: &mut Run, waited_ms: u64, used_ms: u64) {
    for (place, sample) in run.watched.resources.samples.iter_mut().enumerate() {
        let is_after = u64::from(place == 2);
        sample.waited_ns = Some(1_000 + is_after * waited_ms * 1_000_000);
        sample.cpus_used_ns = 1_000 + is_after * used_ms * 1_000_000;
    }
    run.load.cpus = vec![1];
}

fn bottleneck(run: &Run) -> Bottleneck {
    BottleneckFigures::of(&run.observed()).bottleneck()
}

fn held_up(waited_share: f64, others_share: f64) -> Caveat {
    Caveat::ServerHeldUp { role: "server".to_owned(), waited_share, others_share }
}

/// Who waits for the next period of a CPU quota waits for nobody else, whoever uses the machine besides.
#[test]
fn a_quota_is_no_neighbour() {
    let is_wait =
        |caveat: &Caveat| matches!(caveat, Caveat::ServerHeldUp { .. } | Caveat::Crowded { .. });
    for (throttled, expected) in [(0, 2), (10, 0)] {
        let mut both = run();
        waits(&mut both, 500, 1_000);
        both.measured.workers[0].waited_ns = 800_000_000;
        let group = "/sys/fs/cgroup/x".to_owned();
        let limit = Some(CpuLimit { cpus: 0.2, group, periods: 10, throttled, throttled_ns: 1 });
        both.watched.load_cpu_limit.clone_from(&limit);
        both.watched.resources.cpu_limit = limit;
        assert_eq!(both.caveats().iter().filter(|caveat| is_wait(caveat)).count(), expected);
    }
}

#[test]
fn a_server_that_waits_for_others() {
    // But for a tick of 10 ms at each end.
    check(|run| waits(run, 500, 1_000), &[held_up(0.5, 0.48)]);
    // It waited for its own threads: nobody else was there.
    check(|run| waits(run, 500, 500), &[]);
    check(|run| waits(run, 500, 550), &[]);
    check(|run| waits(run, 20, 1_000), &[]);
    // The other servers of its round have the same CPU in their turns.
    let mut with_turns = run();
    waits(&mut with_turns, 500, 1_000);
    with_turns.watched.others_cpu_ns = 480_000_000;
    let turns = TurnsTaken { loads: 2, ..TurnsTaken::default() };
    with_turns.measured.turns = Some(TurnsTaken { own_ns: 1_000_000_000, counted_ns: 1, ..turns });
    let is_held = |caveat: &Caveat| matches!(caveat, Caveat::ServerHeldUp { .. });
    assert!(!with_turns.caveats().iter().any(is_held), "{:?}", with_turns.caveats());
    // What watches the server may run on its CPU.
    let watching = |run: &mut Run| {
        waits(run, 500, 580);
        run.watched.observing_cpu_ns = 20_000_000;
    };
    check(|run| waits(run, 500, 580), &[held_up(0.5, 0.06)]);
    check(watching, &[]);
    // On CPUs that the load has, too, it is not told whose the use was.
    let shared = |run: &mut Run| {
        waits(run, 500, 1_000);
        run.load.cpus = vec![0];
    };
    check(shared, &[Caveat::SharedCpus]);
    let mut slow = run();
    waits(&mut slow, 500, 1_000);
    slow.load.mode = LoadMode::Closed { outstanding: 1 };
    assert_eq!(bottleneck(&slow).kind, BottleneckKind::OtherPrograms);
}

#[test]
fn quotas() {
    let quota = |throttled| {
        let group = "/sys/fs/cgroup/q".to_owned();
        Some(CpuLimit { cpus: 0.1, group, periods: 100, throttled, throttled_ns: 5 })
    };
    let of_server =
        |throttled| move |run: &mut Run| run.watched.resources.cpu_limit = quota(throttled);
    let role = "server".to_owned();
    let expected = Caveat::ServerCpuLimit { role, cpus: 0.1, throttled_share: 0.02 };
    check(of_server(1), &[]);
    check(of_server(2), &[expected]);
    let of_load = |throttled| move |run: &mut Run| run.watched.load_cpu_limit = quota(throttled);
    check(of_load(1), &[]);
    check(of_load(2), &[Caveat::LoadCpuLimit { cpus: 0.1, throttled_share: 0.02 }]);
    let mut slow = run();
    slow.load.mode = LoadMode::Closed { outstanding: 1 };
    of_server(77)(&mut slow);
    let found = bottleneck(&slow);
    assert_eq!(found.kind, BottleneckKind::ServerCpuLimit);
    let role = "server".to_owned();
    let expected = Evidence::CpuLimit { role, cpus: 0.1, throttled_share: 0.77 };
    assert_eq!(found.evidence[0], expected);
}

proptest! {
    /// Whatever was sampled, a share of waiting is a share.
    #[test]
    fn waited_shares_are_shares(
        waited in prop::collection::vec(0_u64..1 << 50, 3),
        used in prop::collection::vec(0_u64..1 << 50, 3),
        of_worker in any::<u64>(),
        elapsed_ns in 1_u64..1 << 50,
    ) {
        let mut run = run();
        for (place, sample) in run.watched.resources.samples.iter_mut().enumerate() {
            (sample.waited_ns, sample.cpu_ns) = (Some(waited[place]), used[place]);
        }
        let share = run.measured.waited_share_of(&run.watched.resources).unwrap();
        prop_assert!((0.0..=1.0).contains(&share), "{share}");
        let worker = &mut run.measured.workers[0];
        (worker.waited_ns, worker.elapsed_ns) = (of_worker, elapsed_ns);
        prop_assert!((0.0..=1.0).contains(&worker.waited_share()));
    }
}

/// What is said of this run with the limits of the default.
fn late(run: &Run) -> Option<InvalidReason> {
    let figures = BottleneckFigures::of(&run.observed());
    let limits = SendingLimits { unsent: 0.05, lag: Duration::from_millis(10) };
    not_sent_as_asked(&figures, &run.observed(), limits)
}

/// Half of the queries left this late.
fn lag(run: &mut Run, ms: u64) {
    run.measured.send_lag = dnslab_figures::Histogram::new();
    run.measured.send_lag.record_many_ns(ms * 1_000_000, 10);
}

#[test]
fn an_open_loop_that_was_not_sent_as_asked() {
    fn with(ms: u64, change: &dyn Fn(&mut Run)) -> bool {
        let mut run = run();
        lag(&mut run, ms);
        change(&mut run);
        late(&run).is_some()
    }
    assert!(!with(9, &|_| {}));
    assert!(with(11, &|_| {}));
    assert!(!with(11, &|run| run.load.mode = LoadMode::Closed { outstanding: 1 }));
    // Over a connection queries also wait for the server.
    let over_tcp = |run: &mut Run| run.load.transport = Some(Transport::Tcp);
    assert!(!with(900, &over_tcp));
    let crowded = |run: &mut Run| {
        over_tcp(run);
        run.measured.workers[0].waited_ns = 700_000_000;
    };
    assert!(with(11, &crowded));
    let none_in_time = |run: &mut Run| {
        over_tcp(run);
        run.measured.sent_in_window = 0;
    };
    assert!(with(11, &none_in_time));
    // A rate that is short, by a generator without CPU time.
    fn short(run: &mut Run, sent: u64, waited_ns: u64) {
        run.measured.sent_in_window = sent;
        run.measured.workers[0].waited_ns = waited_ns;
    }
    assert!(with(1, &|run| short(run, 949, 700_000_000)));
    assert!(!with(1, &|run| short(run, 951, 700_000_000)));
    assert!(!with(1, &|run| short(run, 949, 0)));
    // Clients of a capture have a limit of their own for when they begin.
    let captured = |run: &mut Run| {
        run.load.mode = LoadMode::Open { rate_qps: 0.0, pace: OpenPace::Clients };
    };
    assert!(!with(11, &captured));
}

/// Four rounds in which `b` answers half of what `a` does, with this doubt in so many runs of `b`.
fn summary(caveat: &Caveat, runs: usize, limit: &str) -> (Summary, Vec<RunRecord>) {
    let mut records: Vec<RunRecord> = Vec::new();
    for round in 0..4_u32 {
        for (name, answered) in [("a", 100_000), ("b", 50_000)] {
            let answered = answered + u64::from(round) * 100;
            let record = example::record(name, records.len() as u32, answered);
            records.push(RunRecord { repetition: round, ..record });
        }
    }
    let of_b = records.iter_mut().filter(|record| record.variant == "b");
    of_b.take(runs).for_each(|record| record.caveats.push(caveat.clone()));
    let limit: CostLimit = limit.parse().unwrap();
    let session = Session {
        baseline: "a".to_owned(),
        variants: vec!["a".to_owned(), "b".to_owned()],
        margin: 0.02,
        seed: 1,
        limits: vec![limit],
        ..Session::default()
    };
    (Summary::of(&session, &records), records)
}

/// What `run` says: one rule with what `compare` says of two sessions (`session_comparison.rs`).
#[test]
fn a_machine_that_others_use_gives_no_certain_word() {
    let of_rate = |summary: &Summary| {
        let mut rates = summary.comparisons.iter();
        rates.find(|compared| compared.metric == Metric::AnsweredQps).unwrap().verdict
    };
    let quiet = Caveat::Lost { share: 0.01 };
    let (found, _) = summary(&quiet, 4, "qps=3%");
    assert_eq!((of_rate(&found), found.rulings[0].ruling), (Verdict::Costs, Ruling::Fail));
    let others = [
        held_up(0.06, 0.06),
        Caveat::Crowded { waited_share: 0.06 },
        Caveat::Steal { share: 0.02, host: String::new() },
        Caveat::OtherProcesses { cpus: 0.3, host: String::new() },
    ];
    for caveat in others {
        let (found, _) = summary(&caveat, 1, "qps=3%");
        assert_eq!(of_rate(&found), Verdict::Costs, "{caveat:?}");
        let (found, _) = summary(&caveat, 2, "qps=3%");
        let open = Verdict::CannotTell { more_runs: None };
        assert_eq!(of_rate(&found), open, "{caveat:?}");
        assert_eq!(found.rulings[0].ruling, Ruling::Unclear, "{caveat:?}");
        assert!(found.variants[1].is_disturbed && !found.variants[0].is_disturbed);
        // A bound of the figure itself is no more certain.
        let (found, _) = summary(&caveat, 2, "qps>90000");
        assert_eq!(found.rulings[0].ruling, Ruling::Unclear, "{caveat:?}");
    }
    // Programs that used other CPUs made nobody wait, where that is known.
    let mut apart =
        summary(&Caveat::OtherProcesses { cpus: 0.3, host: String::new() }, 4, "qps=3%").1;
    for record in &mut apart {
        for sample in &mut record.watched.resources.samples {
            sample.waited_ns = Some(0);
        }
        assert!(!is_disturbed(record), "{:?}", record.caveats);
    }
}

/// Of two loads in turns each has half of a second, 20 % of which do not count and are slower. The server is busy all of
/// that half: rate times CPU time per query is the share of its CPU that it used.
#[test]
fn rate_times_cpu_per_query_is_the_use_of_the_cpu() {
    let mut record = example::record("udp", 1, 40_000);
    let measured = record.measured.as_mut().unwrap();
    measured.turns = Some(TurnsTaken {
        loads: 2,
        own_ns: 500_000_000,
        counted_ns: 400_000_000,
        answered: 48_500,
        ..TurnsTaken::default()
    });
    measured.answered_in_window = 40_000;
    let run = record.observation().unwrap();
    assert_eq!(run.measured.answered_qps(), 100_000.0);
    assert_eq!(run.server_cpu_per_query_ns(), Some(10_000.0));
    assert_eq!(run.server_busy_share(), Some(1.0));
    assert_eq!(record.servers_cpu_per_query_ns(), Some(10_000.0));
    // An open loop sends nothing in what does not count behind its turn.
    let pace = OpenPace::constant(Pace::Constant);
    record.load.mode = LoadMode::Open { rate_qps: 97_000.0, pace };
    let all = 500_000_000.0 / 48_500.0;
    assert_eq!(record.observation().unwrap().server_cpu_per_query_ns(), Some(all));
}
