//! Two sessions of one experiment against each other.

use dnslab_analysis::{
    Condition, ConditionChange, NotCompared, Ruling, SessionComparison, VariantChange, WholeSession,
};
use dnslab_figures::Histogram;
use dnslab_record::{
    BottleneckKind, Caveat, CostLimit, Fact, InvalidReason, LoadMode, Metric, OpenPace, RunRecord,
    RunStatus, Session, SkippedVariant, TimeOuts,
};
use dnslab_traffic::Pace;

use crate::example::{record, session as example};

/// A session of the variants `udp` and `tcp`, and its runs.
#[derive(Clone)]
struct Made {
    session: Session,
    records: Vec<RunRecord>,
    experiment: String,
}

impl Made {
    fn whole(&self) -> WholeSession<'_> {
        WholeSession {
            session: &self.session,
            records: &self.records,
            experiment: &self.experiment,
        }
    }
}

const EXPERIMENT: &str = "name = \"encryption\"\nrepeat.runs = 5\n[[variant]]\nname = \"udp\"\n\
    [[variant]]\nname = \"tcp\"\nload.transport = \"tcp\"\n";

/// Runs of both variants that answer this often.
fn made(rates: &[u64]) -> Made {
    let mut session = example();
    session.variants.truncate(2);
    session.plan.clear();
    let mut records = Vec::new();
    for (round, rate) in (0..).zip(rates) {
        for (place, variant) in (0..).zip(["udp", "tcp"]) {
            let mut run = record(variant, 2 * round + place, *rate);
            run.repetition = round + 1;
            session
                .plan
                .push(dnslab_record::CaseId { variant: variant.to_owned(), repetition: round + 1 });
            records.push(run);
        }
    }
    Made { session, records, experiment: EXPERIMENT.to_owned() }
}

fn limits(texts: &[&str]) -> Vec<CostLimit> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn compare(base: &Made, new: &Made, texts: &[&str]) -> SessionComparison {
    SessionComparison::of(base.whole(), new.whole(), &limits(texts))
}

const RATES: [u64; 5] = [100_000, 101_000, 99_000, 100_500, 99_500];

/// The change of a metric of the first variant that has it.
fn change(found: &SessionComparison, metric: Metric) -> &VariantChange {
    found.changes.iter().find(|change| change.metric == metric).unwrap()
}

#[test]
fn equal_is_within_slower_is_worse_and_one_run_cannot_tell() {
    let base = made(&RATES);
    let all = ["qps>-3%", "p99<+5%", "cpu_per_query<+5%", "p99<10ms"];
    let equal = compare(&base, &made(&[99_800, 101_200, 98_900, 100_300, 99_700]), &all);
    assert_eq!((equal.ruling(), equal.more_runs()), (Ruling::Pass, Some(0)));
    assert_eq!(equal.variants, ["udp", "tcp"]);
    assert!(equal.conditions.is_empty(), "{:?}", equal.conditions);

    let slower = compare(&base, &made(&RATES.map(|rate| rate * 8 / 10)), &all);
    assert_eq!(slower.ruling(), Ruling::Fail);
    let rulings: Vec<Ruling> = slower.rulings.iter().map(|limit| limit.ruling).collect();
    // A fifth less per second at the same CPU time is a quarter more for each query.
    assert_eq!(rulings, [Ruling::Fail, Ruling::Pass, Ruling::Fail, Ruling::Pass]);
    let found = slower.rulings[0].variants[0].found.unwrap();
    assert!((found.value + 0.2).abs() < 1e-9 && found.high < -0.18, "{found:?}");
    let cpu = change(&slower, Metric::ServerCpuPerQuery);
    assert!((cpu.difference.unwrap().value - 0.25).abs() < 1e-9, "{cpu:?}");
    assert_eq!(cpu.runs, [5, 5]);

    // Improvements never fail.
    let faster = compare(&base, &made(&RATES.map(|rate| rate * 2)), &all);
    assert_eq!(faster.ruling(), Ruling::Pass);
    let asked = compare(&base, &made(&RATES), &["qps>+10%"]);
    assert_eq!(asked.ruling(), Ruling::Fail);

    let one = compare(&made(&[100_000]), &made(&[80_000]), &all[..3]);
    assert_eq!((one.ruling(), one.more_runs()), (Ruling::Unclear, None));
    assert_eq!(one.too_few_runs(), Some(1));
    // Two runs may be alike by chance: they neither fail nor pass.
    for (before, after) in [([100_000, 100_100], 50_000), ([50_000, 50_100], 100_000)] {
        let two = compare(&made(&before), &made(&[after; 10]), &["qps>-3%"]);
        assert_eq!((two.ruling(), two.more_runs()), (Ruling::Unclear, None));
        assert_eq!(two.too_few_runs(), Some(2));
    }
    assert_eq!((equal.too_few_runs(), slower.too_few_runs()), (None, None));
    let few = compare(&made(&[100_000, 106_000, 95_000]), &made(&[99_000, 105_000, 96_000]), &all);
    assert_eq!(few.ruling(), Ruling::Unclear);
    assert!(few.more_runs().is_some_and(|more| more > 3), "{:?}", few.more_runs());
}

/// A rate that the generator bounded in either session is compared with none, and leaves the error to others.
#[test]
fn a_rate_of_the_generator_is_unclear() {
    let (base, slower) = (made(&RATES), made(&RATES.map(|rate| rate * 8 / 10)));
    let texts = ["qps>-3%", "p99<+5%", "qps>=70000", "qps>=90000"];
    for is_base in [true, false] {
        let mut sides = [base.clone(), slower.clone()];
        let side = if is_base { 0 } else { 1 };
        for record in &mut sides[side].records {
            record.bottleneck.kind = BottleneckKind::Generator;
        }
        let found = compare(&sides[0], &sides[1], &texts);
        let rulings: Vec<Ruling> = found.rulings.iter().map(|limit| limit.ruling).collect();
        let absolute = if is_base { Ruling::Fail } else { Ruling::Unclear };
        assert_eq!(rulings, [Ruling::Unclear, Ruling::Pass, Ruling::Pass, absolute], "{is_base}");
        let qps = &found.rulings[0].variants[0];
        assert_eq!((qps.found, qps.not_compared), (None, Some(NotCompared::Generator)));
        let change = change(&found, Metric::AnsweredQps);
        assert_eq!((change.difference, change.not_compared), (None, Some(NotCompared::Generator)));
    }
}

#[test]
fn a_run_that_does_not_count_after_the_change_leaves_it_open() {
    let (base, mut new) = (made(&RATES), made(&RATES));
    new.records[3].status =
        RunStatus::Invalid { reason: InvalidReason::Late { p99_ns: 2, limit_ns: 1 } };
    let found = compare(&base, &new, &["qps>-3%"]);
    assert_eq!((found.ruling(), found.new.other_runs), (Ruling::Unclear, 1));
    // Before it, there are only fewer runs to compare with.
    let found = compare(&new, &base, &["qps>-3%"]);
    assert_eq!((found.ruling(), found.base.other_runs), (Ruling::Pass, 1));
    new.records.pop();
    assert_eq!(compare(&base, &new, &["qps>-3%"]).new.missing_runs, 1);
    assert_eq!(compare(&base, &base, &[]).ruling(), Ruling::Unclear);
}

fn disturb(records: &mut [RunRecord], variant: &str, runs: usize) {
    let own = records.iter_mut().filter(|record| record.variant == variant);
    let by_others = || Caveat::OtherProcesses { cpus: 0.7, host: String::new() };
    own.take(runs).for_each(|run| run.caveats.push(by_others()));
}

#[test]
fn nothing_is_worse_where_others_used_the_machine() {
    let (base, mut new) = (made(&RATES), made(&RATES.map(|rate| rate / 2)));
    disturb(&mut new.records, "udp", 2);
    assert_eq!(compare(&base, &new, &["qps>-3%"]).ruling(), Ruling::Fail);
    disturb(&mut new.records[4..], "udp", 1);
    disturb(&mut new.records, "tcp", 3);
    for found in [compare(&base, &new, &["qps>-3%"]), compare(&new, &base, &["qps>+200%"])] {
        assert_eq!((found.ruling(), found.more_runs()), (Ruling::Unclear, None));
        assert_eq!(
            [&found.base, &found.new].map(|side| side.disturbed.len()).iter().sum::<usize>(),
            2
        );
    }
    // A session before the change that was disturbed may hide what the change costs.
    let faster = compare(&new, &base, &["qps>-3%"]);
    assert_eq!(
        (faster.ruling(), faster.base.disturbed),
        (Ruling::Unclear, vec!["udp".to_owned(), "tcp".to_owned()])
    );
    // One after it may not: it is within the limit all the same.
    let mut same = made(&RATES);
    disturb(&mut same.records, "udp", 5);
    assert_eq!(compare(&base, &same, &["qps>-3%"]).ruling(), Ruling::Pass);
}

fn rename(made: &mut Made, from: &str, to: &str) {
    let names = made.session.variants.iter_mut();
    let plan = made.session.plan.iter_mut().map(|case| &mut case.variant);
    let runs = made.records.iter_mut().map(|record| &mut record.variant);
    for name in names.chain(plan).chain(runs).filter(|name| *name == from) {
        to.clone_into(name);
    }
}

#[test]
fn variants_are_matched_by_name() {
    let (mut base, mut new) = (made(&RATES), made(&RATES));
    rename(&mut base, "tcp", "dot");
    let found = compare(&base, &new, &["qps>-3%"]);
    assert_eq!(found.variants, ["udp"]);
    assert_eq!(
        (found.base.only_here, found.new.only_here),
        (vec!["dot".into()], vec!["tcp".into()])
    );
    // What can no longer run may be what the change has cost.
    rename(&mut base, "dot", "tcp");
    new.records.retain(|record| record.variant == "udp");
    new.session.plan.retain(|case| case.variant == "udp");
    let reason = "it is not installed".to_owned();
    new.session.skipped.push(SkippedVariant { variant: "tcp".to_owned(), reason });
    let found = compare(&base, &new, &["qps>-3%"]);
    assert_eq!((found.ruling(), found.base.only_here), (Ruling::Unclear, vec!["tcp".to_owned()]));
    new.session.skipped.clear();
    new.session.variants.retain(|name| name != "tcp");
    assert_eq!(compare(&base, &new, &["qps>-3%"]).ruling(), Ruling::Pass);
    rename(&mut base, "udp", "other");
    assert_eq!(compare(&base, &new, &["qps>-3%"]).ruling(), Ruling::Unclear);
}

#[test]
fn what_makes_two_sessions_less_comparable_is_named() {
    let fact = |name: &str, value: &str| Fact { name: name.to_owned(), value: value.to_owned() };
    let (mut base, mut new) = (made(&RATES), made(&RATES));
    let host = [("CPU", "A"), ("memory", "4000 MiB"), ("kernel", "6.1"), ("steal", "1 s")];
    base.session.host = host.map(|(name, value)| fact(name, value)).to_vec();
    let host = [("CPU", "B"), ("memory", "4010 MiB"), ("kernel", "6.2"), ("steal", "2 s")];
    new.session.host = host.map(|(name, value)| fact(name, value)).to_vec();
    new.session.dnslab = "0.2.0".to_owned();
    new.session.slice_ns = Some(50_000_000);
    new.session.inputs = vec![fact("query file /q", "sha256:1")];
    base.session.inputs = vec![fact("query file /q", "sha256:0"), fact("BIND 9", "9.18")];
    new.experiment = EXPERIMENT.replace("name = \"udp\"", "name = \"udp\"\nload.clients = 7");
    for record in &mut new.records {
        record.server.version = "9.20".to_owned();
    }
    new.records
        .iter_mut()
        .filter(|record| record.variant == "tcp")
        .for_each(|record| record.load.cpus = vec![0]);
    let found = compare(&base, &new, &["qps>-3%"]);
    let lines: Vec<String> = found
        .conditions
        .iter()
        .map(|ConditionChange { condition, name, variants, then, now }| {
            let [then, now] = [then, now].map(|value| value.clone().unwrap_or_default());
            format!("{condition:?} {name} {}: {then} > {now}", variants.join(","))
        })
        .collect();
    assert_eq!(
        lines,
        [
            "Machine CPU : A > B",
            "Dnslab dnslab : 0.1.0 > 0.2.0",
            "Experiment query file /q : sha256:0 > sha256:1",
            "Experiment alternation : whole runs > slices",
            "Experiment load.clients udp: 100 > 7",
            "Experiment CPUs of the load tcp: [1] > [0]",
            "System kernel : 6.1 > 6.2",
            "Server version : bind > bind 9.20",
        ]
    );
    assert_eq!(found.machine_changes().count(), 1);
    assert_eq!(found.machine_changes().next().unwrap().condition, Condition::Machine);
}

#[test]
fn latencies_at_different_rates_are_not_judged() {
    let (mut base, mut new) = (made(&RATES), made(&RATES));
    let limits = ["qps>-3%", "p99<+5%"];
    (base.session.common_rate_qps, new.session.common_rate_qps) = (Some(40_000.0), Some(41_000.0));
    assert_eq!(compare(&base, &new, &limits).ruling(), Ruling::Pass);
    new.session.common_rate_qps = Some(30_000.0);
    let found = compare(&base, &new, &limits);
    assert_eq!(found.common_rates_qps, Some([40_000.0, 30_000.0]));
    let rulings: Vec<Ruling> = found.rulings.iter().map(|limit| limit.ruling).collect();
    assert_eq!(rulings, [Ruling::Pass, Ruling::Unclear]);
}

#[test]
fn a_quantile_that_became_the_time_out_is_worse() {
    let (base, mut new) = (made(&RATES), made(&RATES));
    for record in &mut new.records {
        let longest = record.load.timeout_ns;
        let measured = record.measured.as_mut().unwrap();
        for _ in 0..5 {
            measured.latency.record_ns(longest);
        }
        let lost = measured.counters.outcomes.due / 20;
        measured.counters.outcomes.answered -= lost;
        measured.counters.outcomes.timed_out += lost;
    }
    let found = compare(&base, &new, &["p99<+5%"]);
    assert_eq!((found.ruling(), found.rulings[0].variants[0].found), (Ruling::Fail, None));
    let time_outs = found.rulings[0].variants[0].time_outs;
    assert_eq!(time_outs, Some(TimeOuts { runs: 5, of: 5 }));
    let change = change(&found, Metric::LatencyP99);
    assert!(change.base.is_some(), "{change:?}");
    assert_eq!((change.new, change.difference), (None, None));
    assert_eq!((change.time_outs, change.runs), ([None, time_outs], [5, 5]));
    // The other way round there is nothing to hold it against.
    let found = compare(&new, &base, &["p99<+5%"]);
    assert_eq!(found.ruling(), Ruling::Unclear);
    assert_eq!(found.rulings[0].variants[0].reference_time_outs, time_outs);
    // The runs that are left would be those that went well.
    let kept = made(&RATES);
    for (record, before) in new.records.iter_mut().zip(kept.records).take(4) {
        record.measured = before.measured;
    }
    let found = compare(&base, &new, &["p99<+5%", "p99<10ms"]);
    for ruling in &found.rulings {
        let judged = &ruling.variants[0];
        assert_eq!((judged.found, judged.ruling), (None, Ruling::Unclear), "{ruling:?}");
        assert_eq!(judged.time_outs, Some(TimeOuts { runs: 3, of: 5 }));
    }
}

/// Runs whose latencies are these, milliseconds; each has one.
fn with_latencies(latencies_ms: &[u64]) -> Made {
    let mut made = made(&vec![100_000; latencies_ms.len()]);
    for record in &mut made.records {
        let measured = record.measured.as_mut().unwrap();
        measured.latency = Histogram::new();
        let ms = latencies_ms[record.repetition as usize - 1];
        measured.latency.record_many_ns(1_000_000 * ms, 100);
    }
    made
}

/// The arithmetic means fall from 220 to 190 ms, the logarithms rise by 34 %.
#[test]
fn the_columns_and_the_difference_agree() {
    let base = with_latencies(&[50, 50, 50, 50, 900]);
    let new = with_latencies(&[150, 150, 150, 150, 350]);
    let found = compare(&base, &new, &[]);
    assert_eq!(found.changes.len(), 2 * (Metric::COMPARED.len() - 2));
    for change in &found.changes {
        let (base, new) = (change.base.unwrap().value, change.new.unwrap().value);
        let difference = change.difference.unwrap().value;
        assert!((new / base - 1.0 - difference).abs() < 1e-9, "{change:?}");
    }
    let p95 = change(&found, Metric::LatencyP95);
    assert!(p95.difference.unwrap().value > 0.3, "{p95:?}");
}

/// A difference of 0.1 ms in p99 is certain by its spread, and is less than what leaves late.
#[test]
fn what_dnslab_itself_may_add_is_not_worse() {
    for (lag_ns, expected) in [(20_000, Ruling::Fail), (2_000_000, Ruling::Unclear)] {
        let (mut base, mut new) = (made(&RATES), with_latencies(&[2; 5]));
        for record in base.records.iter_mut().chain(&mut new.records) {
            let pace = OpenPace::constant(Pace::Constant);
            record.load.mode = LoadMode::Open { rate_qps: 100_000.0, pace };
            let measured = record.measured.as_mut().unwrap();
            measured.send_lag.record_many_ns(lag_ns, 2);
        }
        assert_eq!(compare(&base, &new, &["p99<+5%"]).ruling(), expected);
    }
}

#[test]
fn a_figure_that_a_variant_cannot_have_is_not_asked_of_it() {
    let (mut base, none) = (made(&RATES), made(&RATES));
    assert_eq!(compare(&none, &none, &["handshakes<+5%"]).ruling(), Ruling::Unclear);
    for record in base.records.iter_mut().filter(|record| record.variant == "tcp") {
        record.measured.as_mut().unwrap().counters.connections.full_handshakes = 100;
    }
    let found = compare(&base, &base, &["handshakes<+5%"]);
    assert_eq!((found.ruling(), found.rulings[0].variants.len()), (Ruling::Pass, 1));
    // One that is gone is no such figure.
    assert_eq!(compare(&base, &none, &["handshakes<+5%"]).ruling(), Ruling::Unclear);
}
