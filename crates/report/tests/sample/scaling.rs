//! A synthetic study of threads: one server with 1, 2, 3, 4, 6 and 8 of them, whose rates follow the universal
//! scalability law. With 8 threads the load generator may be the bottleneck.

use dnslab_record::{
    Bottleneck, BottleneckKind, CaseId, Evidence, RunRecord, Session, SkippedVariant, ThreadSweep,
};

use super::{Behaviour, MS, run};

const VARIANTS: [(&str, u32); 6] = [
    ("threads-1", 1),
    ("threads-2", 2),
    ("threads-3", 3),
    ("threads-4", 4),
    ("threads-6", 6),
    ("threads-8", 8),
];

/// Queries per second of one thread, contention and coherency.
const LAW: [f64; 3] = [100_000.0, 0.06, 0.004];

pub(crate) fn session(runs: u32) -> Session {
    let names = || VARIANTS.iter().map(|(name, _)| (*name).to_owned());
    let case = |variant: String, repetition| CaseId { variant, repetition };
    let plan = (1..=runs).flat_map(|repetition| names().map(move |name| case(name, repetition)));
    let skipped = "threads-12".to_owned();
    Session {
        name: "scaling".to_owned(),
        question: "What is another thread worth?".to_owned(),
        baseline: "threads-1".to_owned(),
        variants: names().chain([skipped.clone()]).collect(),
        scaling: vec![ThreadSweep {
            name: "bind".to_owned(),
            variants: names().chain([skipped.clone()]).collect(),
        }],
        skipped: vec![SkippedVariant {
            variant: skipped,
            reason: "12 threads, and the server has 8 CPUs here".to_owned(),
        }],
        plan: plan.collect(),
        ..super::session(runs)
    }
}

/// Of the runs of `limited` the load generator was the bottleneck.
pub(crate) fn records(session: &Session, limited: &[&str]) -> Vec<RunRecord> {
    let cases = (0..).zip(&session.plan);
    cases.map(|(position, case)| record(position, case, limited)).collect()
}

fn record(position: u32, case: &CaseId, limited: &[&str]) -> RunRecord {
    let (name, threads) = VARIANTS.iter().find(|(name, _)| *name == case.variant).unwrap();
    let [one, contention, coherency] = LAW;
    let (all, others) = (f64::from(*threads), f64::from(*threads) - 1.0);
    let slower = 1.0 + contention * others + coherency * all * others;
    let behaviour =
        Behaviour { name, transport: "udp", qps: one * all / slower, p50_ms: 0.5, tail: 3.0 };
    let mut record = run(&behaviour, case.repetition, position, 2_000 * MS);
    record.server.threads = *threads;
    record.server.cpus = (0..8).collect();
    let is_limited = limited.contains(name);
    record.bottleneck = Bottleneck {
        kind: if is_limited { BottleneckKind::Generator } else { BottleneckKind::ServerCpu },
        evidence: vec![Evidence::BusiestWorker { share: if is_limited { 0.99 } else { 0.3 } }],
    };
    record
}
