//! What the caveats and the limit of a run amount to.

use dnslab_measure::self_check::{VariantSelfCheck, Verdict};
use dnslab_measure::{
    Bottleneck, BottleneckKind, Caveat, LoadMode, RunRecord, RunStatus, SelfCheck, Summary,
};

use crate::example::{record, session};

/// A run with this limit and these caveats.
fn run(kind: BottleneckKind, caveats: &[Caveat]) -> RunRecord {
    let bottleneck = Bottleneck { kind, evidence: "the evidence".to_owned() };
    RunRecord { bottleneck, caveats: caveats.to_vec(), ..record("udp", 0, 1_000) }
}

/// Checks the verdict, and that the findings in their order contain these words: what, figure,
/// remedy.
#[track_caller]
fn check(record: &RunRecord, verdict: Verdict, expected: &[[&str; 3]]) {
    let check = SelfCheck::of(record).unwrap();
    assert_eq!(check.verdict, verdict, "{check:#?}");
    assert_eq!(check.findings.len(), expected.len(), "{check:#?}");
    for (finding, [what, figure, remedy]) in check.findings.iter().zip(expected) {
        assert!(finding.what.contains(what), "{finding:?} lacks {what:?}");
        assert!(finding.figure.contains(figure), "{finding:?} lacks {figure:?}");
        assert!(finding.remedy.contains(remedy), "{finding:?} lacks {remedy:?}");
    }
}

const BUSY: Caveat = Caveat::GeneratorLimited { busy_share: 0.97 };
const DROPS: Caveat = Caveat::GeneratorDrops { datagrams: 12 };
const STEAL: Caveat = Caveat::Steal { share: 0.03 };

#[test]
fn a_run_without_findings_is_clean() {
    for kind in [
        BottleneckKind::ServerCpu,
        BottleneckKind::Rate,
        BottleneckKind::Unclear,
        BottleneckKind::Unknown,
    ] {
        check(&run(kind, &[]), Verdict::Clean, &[]);
    }
    // What the server and its answers were like is no fault of the measuring side.
    let results = [
        Caveat::ClosedLoop { window: 400 },
        Caveat::Lost { share: 0.5 },
        Caveat::Truncated { share: 0.5 },
        Caveat::Other { text: "The moon was full.".to_owned() },
    ];
    check(&run(BottleneckKind::ServerCpu, &results), Verdict::Clean, &[]);
}

#[test]
fn what_was_not_measured_was_not_checked() {
    let mut failed = run(BottleneckKind::Unclear, &[BUSY]);
    failed.status = RunStatus::Failed { reason: String::new(), log_tail: Vec::new() };
    failed.measured = None;
    assert_eq!(SelfCheck::of(&failed), None);
}

#[test]
fn the_limit_decides_what_a_busy_generator_means() {
    let busy = ["no CPU left", "97.0 % of its CPU", "`--set load.workers=2`"];
    let drops = ["dropped answers", "12 datagrams", "`net.core.rmem_max`"];
    check(&run(BottleneckKind::Generator, &[BUSY]), Verdict::GeneratorLimited, &[busy]);
    // It met its rate, or the server was busier: then the latency is in doubt.
    check(&run(BottleneckKind::Rate, &[BUSY]), Verdict::Doubtful, &[busy]);
    check(&run(BottleneckKind::ServerCpu, &[BUSY, DROPS]), Verdict::Doubtful, &[busy, drops]);
    // No caveat names it: the evidence does.
    let limit = ["the limit", "the evidence", "`--set load.workers=2`"];
    check(&run(BottleneckKind::Generator, &[]), Verdict::GeneratorLimited, &[limit]);
}

#[test]
fn the_worst_finding_comes_first() {
    let steal = ["hypervisor", "3 %", "machine of your own"];
    let busy = ["no CPU left", "97.0 %", "Add a worker"];
    check(&run(BottleneckKind::Unclear, &[STEAL]), Verdict::Doubtful, &[steal]);
    let both = run(BottleneckKind::Generator, &[STEAL, BUSY]);
    check(&both, Verdict::GeneratorLimited, &[busy, steal]);
}

#[test]
fn a_window_that_is_too_small() {
    let window = ["window was too small", "the evidence", "`--set load.outstanding=200`"];
    check(&run(BottleneckKind::Window, &[]), Verdict::Doubtful, &[window]);
    let mut one_by_one = run(BottleneckKind::Window, &[]);
    one_by_one.load.clients = 1;
    one_by_one.load.mode = LoadMode::Closed { outstanding: 1 };
    check(&one_by_one, Verdict::Clean, &[]);
    let network = ["Datagrams were lost", "the evidence", "counters of the interfaces"];
    check(&run(BottleneckKind::Network, &[]), Verdict::Doubtful, &[network]);
    let buffer = ["socket buffer was full", "the evidence", "`net.core.rmem_default`"];
    let mut full = run(BottleneckKind::ServerSocket, &[]);
    check(&full, Verdict::Doubtful, &[buffer]);
    full.server.kind = "unbound".to_owned();
    check(&full, Verdict::Doubtful, &[["", "", "or its option `so-rcvbuf`"]]);
}

#[test]
fn a_server_at_its_end_is_noted() {
    let mut record = run(BottleneckKind::ServerCpu, &[]);
    let samples = &mut record.measured.as_mut().unwrap().resources.samples;
    samples[2].cpu_ns = samples[1].cpu_ns + 980_000_000;
    let note = ["at its end", "the server had 2 % of its CPU left", ""];
    check(&record, Verdict::Clean, &[note]);
    record.caveats.push(STEAL);
    check(&record, Verdict::Doubtful, &[["hypervisor", "", ""], note]);
    // Not where the generator was the more saturated of the two: the server may do more.
    record.bottleneck.kind = BottleneckKind::Generator;
    let limit = ["generator was the limit", "", ""];
    check(&record, Verdict::GeneratorLimited, &[limit, ["hypervisor", "", ""]]);
    record.bottleneck.kind = BottleneckKind::ServerCpu;
    let samples = &mut record.measured.as_mut().unwrap().resources.samples;
    samples[2].cpu_ns = samples[1].cpu_ns + 890_000_000;
    check(&record, Verdict::Doubtful, &[["hypervisor", "", ""]]);
}

#[test]
fn each_finding_of_an_open_loop() {
    let mut record = run(
        BottleneckKind::Rate,
        &[
            Caveat::SendLag { p50_ns: 10_000, p99_ns: Some(900_000) },
            Caveat::Pacing { width_ns: 10_000_000, share_within: 0.9, p99_error: 0.61 },
            Caveat::ConnectionsFailed {
                attempted: 100,
                failed: 2,
                lost: 0,
                example: "refused".to_owned(),
            },
        ],
    );
    record.load.mode = LoadMode::Open { rate_qps: 1_000.0, pace: "constant".to_owned() };
    let expected = [
        ["left later", "p50 10.0 us, p99 900 us", "`--set load.workers=2`"],
        ["not evenly", "90.0 % of the windows of 10 ms within 1 %", "`--set load.workers=2`"],
        ["Connections failed", "2 failed, 0 lost; the last one: refused", "limits on connections"],
    ];
    check(&record, Verdict::Doubtful, &expected);
}

#[test]
fn a_variant_has_the_worst_of_its_runs() {
    let busy = |busy_share| Caveat::GeneratorLimited { busy_share };
    let runs = [
        run(BottleneckKind::ServerCpu, &[]),
        run(BottleneckKind::Generator, &[STEAL, busy(0.91), busy(0.92)]),
        run(BottleneckKind::Rate, &[busy(0.99)]),
        run(BottleneckKind::Window, &[]),
    ];
    let records: Vec<RunRecord> = (0..)
        .zip(runs)
        .map(|(position, run)| RunRecord { position, repetition: position + 1, ..run })
        .collect();
    let summary = Summary::of(&session(), &records);
    let check: &VariantSelfCheck = &summary.variants[0].self_check;
    assert_eq!((check.clean, check.doubtful, check.generator_limited), (1, 2, 1));
    assert_eq!((check.runs(), check.runs_with(Verdict::Doubtful)), (4, 2));
    assert_eq!(check.verdict(), Some(Verdict::GeneratorLimited));
    let found: Vec<_> =
        check.findings.iter().map(|of| (of.finding.figure.as_str(), of.runs)).collect();
    let expected = [
        ("busiest worker: 99.0 % of its CPU", 2),
        ("3 % of the time of its CPUs", 1),
        ("the evidence", 1),
    ];
    assert_eq!(found, expected);
    // A variant without a run has no verdict.
    assert_eq!(summary.variants[1].self_check.verdict(), None);
}
