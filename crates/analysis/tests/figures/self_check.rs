//! What the caveats and the bottleneck of a run amount to.

use dnslab_analysis::self_check::{VariantSelfCheck, Verdict};
use dnslab_analysis::{SelfCheck, Summary};
use dnslab_record::{
    AfterTruncation, Bottleneck, BottleneckKind, Caveat, Evidence, Finding, LoadMode, RunRecord,
    RunStatus,
};

use crate::example::{record, session};

fn run(kind: BottleneckKind, caveats: &[Caveat]) -> RunRecord {
    let bottleneck = Bottleneck { kind, evidence: evidence() };
    RunRecord { bottleneck, caveats: caveats.to_vec(), ..record("udp", 0, 1_000) }
}

fn evidence() -> Vec<Evidence> {
    vec![Evidence::LostOnLoopback]
}

/// The finding of a caveat of a load with one worker.
fn of(caveat: &Caveat) -> Finding {
    Finding::Caveat { caveat: caveat.clone(), workers: 1 }
}

#[track_caller]
fn check(record: &RunRecord, verdict: Verdict, findings: &[Finding]) {
    let check = SelfCheck::of(record).unwrap();
    assert_eq!(check, SelfCheck { verdict, findings: findings.to_vec() });
}

const BUSY: Caveat = Caveat::GeneratorLimited { busy_share: 0.97 };
const DROPS: Caveat = Caveat::GeneratorDrops { datagrams: 12 };
const STEAL: Caveat = Caveat::Steal { share: 0.03, host: String::new() };

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
        Caveat::Truncated { share: 0.5, then: AfterTruncation::Counted },
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
fn the_bottleneck_decides_what_a_busy_generator_means() {
    check(&run(BottleneckKind::Generator, &[BUSY]), Verdict::GeneratorLimited, &[of(&BUSY)]);
    // It met its rate, or the server was busier: then the latency is in doubt.
    check(&run(BottleneckKind::Rate, &[BUSY]), Verdict::Doubtful, &[of(&BUSY)]);
    let both = [of(&BUSY), of(&DROPS)];
    check(&run(BottleneckKind::ServerCpu, &[BUSY, DROPS]), Verdict::Doubtful, &both);
    // No caveat names it: the evidence does.
    let generator = Finding::Generator { evidence: evidence(), workers: 1 };
    check(&run(BottleneckKind::Generator, &[]), Verdict::GeneratorLimited, &[generator]);
}

#[test]
fn the_worst_finding_comes_first() {
    check(&run(BottleneckKind::Unclear, &[STEAL]), Verdict::Doubtful, &[of(&STEAL)]);
    let both = run(BottleneckKind::Generator, &[STEAL, BUSY]);
    check(&both, Verdict::GeneratorLimited, &[of(&BUSY), of(&STEAL)]);
}

#[test]
fn bottlenecks_of_the_measuring_side() {
    let window = Finding::SmallWindow { evidence: evidence(), outstanding: 100 };
    check(&run(BottleneckKind::Window, &[]), Verdict::Doubtful, &[window]);
    let mut one_by_one = run(BottleneckKind::Window, &[]);
    one_by_one.load.clients = 1;
    one_by_one.load.mode = LoadMode::Closed { outstanding: 1 };
    check(&one_by_one, Verdict::Clean, &[]);
    let network = Finding::Network { evidence: evidence() };
    check(&run(BottleneckKind::Network, &[]), Verdict::Doubtful, &[network]);
    let socket = Finding::ServerSocket { evidence: evidence(), program: "bind".to_owned() };
    check(&run(BottleneckKind::ServerSocket, &[]), Verdict::Doubtful, &[socket]);
}

#[test]
fn a_server_at_its_end_is_noted() {
    let mut record = run(BottleneckKind::ServerCpu, &[]);
    let samples = &mut record.watched.resources.samples;
    samples[2].cpu_ns = samples[1].cpu_ns + 980_000_000;
    let note = Finding::ServerFull { busy_share: 0.98 };
    check(&record, Verdict::Clean, std::slice::from_ref(&note));
    record.caveats.push(STEAL);
    check(&record, Verdict::Doubtful, &[of(&STEAL), note]);
    // Not where the generator was the more saturated of the two: the server may do more.
    record.bottleneck.kind = BottleneckKind::Generator;
    let generator = Finding::Generator { evidence: evidence(), workers: 1 };
    check(&record, Verdict::GeneratorLimited, &[generator, of(&STEAL)]);
    record.bottleneck.kind = BottleneckKind::ServerCpu;
    let samples = &mut record.watched.resources.samples;
    samples[2].cpu_ns = samples[1].cpu_ns + 890_000_000;
    check(&record, Verdict::Doubtful, &[of(&STEAL)]);
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
        check.findings.iter().map(|found| (found.finding.clone(), found.runs)).collect();
    let window = Finding::SmallWindow { evidence: evidence(), outstanding: 100 };
    assert_eq!(found, [(of(&busy(0.99)), 2), (of(&STEAL), 1), (window, 1)]);
    // A variant without a run has no verdict.
    assert_eq!(summary.variants[1].self_check.verdict(), None);
}
