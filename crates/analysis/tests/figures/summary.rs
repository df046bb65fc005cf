//! The figures of an experiment from its records.

use dnslab_analysis::statistics::{Comparison, Verdict};
use dnslab_analysis::{NotCompared, Ruling, Summary, VariantSummary, judge};
use dnslab_figures::{Histogram, Outcomes, WindowCounts};
use dnslab_record::{
    Bottleneck, BottleneckKind, Caveat, CommonLoad, Compared, CostLimit, Evidence, Imported,
    InvalidReason, LoadFacts, LoadMode, Measured, Metric, OpenPace, RunRecord, RunStatus, Session,
    TimeOuts,
};
use dnslab_traffic::Pace;

use crate::example::{record, session};

/// The margin of the session.
const EQUAL: Verdict = Verdict::EqualWithin { margin: 0.02 };

/// Five runs of each variant, interleaved: `tcp` answers as much as `udp`, `dot` 30 % less.
fn records() -> Vec<RunRecord> {
    let rates = [1_000, 1_010, 990, 1_005, 995];
    let mut records = Vec::new();
    for (block, rate) in (0..).zip(rates) {
        records.push(record("udp", 3 * block, rate));
        records.push(record("tcp", 3 * block + 1, rate));
        records.push(record("dot", 3 * block + 2, rate * 7 / 10));
    }
    records
}

/// A common load that differs from the main one in its mode and in what was measured.
fn like_the_main_load(record: &RunRecord, mode: LoadMode, measured: Measured) -> CommonLoad {
    CommonLoad {
        load: LoadFacts { mode, ..record.load.clone() },
        measured,
        watched: record.watched.clone(),
        caveats: Vec::new(),
        bottleneck: record.bottleneck.clone(),
    }
}

fn verdict(summary: &Summary, variant: &str, metric: Metric) -> Option<Verdict> {
    let mut own = summary.comparisons.iter();
    Some(own.find(|c| c.variant == variant && c.metric == metric)?.verdict)
}

#[test]
fn the_figures_are_those_of_the_runs() {
    let summary = Summary::of(&session(), &records());
    assert_eq!((summary.name.as_str(), summary.baseline.as_str()), ("encryption", "udp"));
    let names: Vec<&str> = summary.variants.iter().map(|variant| &*variant.name).collect();
    assert_eq!(names, ["udp", "tcp", "dot"]);
    let udp = summary.variant("udp").unwrap();
    assert_eq!((udp.valid_runs, udp.other_runs), (5, 0));
    let qps = udp.metrics[&Metric::AnsweredQps];
    let geometric = [1_000.0_f64, 1_010.0, 990.0, 1_005.0, 995.0].iter().product::<f64>().powf(0.2);
    assert!((qps.value - geometric).abs() < 1e-9 && qps.low > 990.0 && qps.high < 1_010.0);
    assert_eq!((udp.outcomes.due, udp.outcomes.answered), (5_000, 5_000));
    assert_eq!(udp.latency.len(), 500);
    assert_eq!(udp.mode, Some(LoadMode::Closed { outstanding: 100 }));
    assert!((udp.p999_ns.unwrap() / 1e6 - 1.0).abs() < 0.001);
    assert!((udp.server_busy_share.unwrap() - 0.5).abs() < 1e-9);
    assert_eq!(udp.peak_memory_octets, Some(1_550_000));
    // 0.25 s of CPU time for about 1,000 answers.
    assert!((udp.generator_cpu_per_query_ns.unwrap() / 250_000.0 - 1.0).abs() < 0.001);
    assert_eq!(verdict(&summary, "dot", Metric::AnsweredQps), Some(Verdict::Costs));
    assert_eq!(verdict(&summary, "dot", Metric::ServerCpuPerQuery), Some(Verdict::Costs));
    assert_eq!(verdict(&summary, "dot", Metric::LatencyP50), Some(EQUAL));
    assert_eq!(verdict(&summary, "tcp", Metric::AnsweredQps), Some(EQUAL));
    assert_eq!(verdict(&summary, "udp", Metric::AnsweredQps), None);
    // All but the log, which nobody wrote, and handshakes, of which there were none.
    assert_eq!(summary.comparisons.len(), 2 * (Metric::COMPARED.len() - 2));
}

/// Five runs of each variant with a time window, in which `dot` loses `lost` of 100 queries in its third run.
fn windowed(lost: u64) -> Vec<RunRecord> {
    let mut records = records();
    for record in &mut records {
        let lost = if (&*record.variant, record.repetition) == ("dot", 3) { lost } else { 0 };
        let outcomes =
            Outcomes { due: 100, answered: 100 - lost, timed_out: lost, ..Outcomes::default() };
        let mut latency = Histogram::new();
        latency.record_many_ns(1_000_000 * u64::from(record.repetition), outcomes.answered);
        latency.record_many_ns(record.load.timeout_ns, lost);
        let rcodes = [("NOERROR".to_owned(), outcomes.answered)].into();
        let (name, to_ns) = ("cold".to_owned(), 500_000_000);
        let measured = record.measured.as_mut().unwrap();
        let window =
            WindowCounts { name, to_ns, outcomes, rcodes, latency, ..WindowCounts::default() };
        measured.windows = vec![window];
    }
    records
}

#[test]
fn a_time_window_has_figures_and_comparisons_of_its_own() {
    let summary = Summary::of(&session(), &windowed(0));
    let [cold] = summary.windows.as_slice() else { panic!("{:?}", summary.windows) };
    assert_eq!((cold.name.as_str(), cold.from_ns, cold.to_ns), ("cold", 0, 500_000_000));
    let names: Vec<&str> = cold.variants.iter().map(|figures| figures.variant.as_str()).collect();
    assert_eq!(names, ["udp", "tcp", "dot"]);
    let dot = &cold.variants[2];
    assert_eq!((dot.runs, dot.outcomes.due, dot.rcodes["NOERROR"]), (5, 500, 500));
    assert_eq!(dot.latency.len(), 500);
    assert_eq!(dot.metrics[&Metric::AnsweredShare].value, 1.0);
    let p50_ns = 1e6 * 120_f64.powf(0.2);
    assert!((dot.metrics[&Metric::LatencyP50].value / p50_ns - 1.0).abs() < 0.001);
    let compared: Vec<(&str, Metric)> =
        cold.comparisons.iter().map(|pair| (pair.variant.as_str(), pair.metric)).collect();
    let by_all = |name| Metric::OF_WINDOWS.map(|metric| (name, metric));
    assert_eq!(compared, [by_all("tcp"), by_all("dot")].concat());
    assert!(cold.comparisons.iter().all(|pair| pair.rounds == 5));
    // Those of the whole runs are where they were.
    assert_eq!(summary.comparisons.len(), 2 * (Metric::COMPARED.len() - 2));
}

#[test]
fn a_quantile_that_is_the_time_out_in_one_round_is_none_of_a_time_window() {
    let summary = Summary::of(&session(), &windowed(2));
    let cold = &summary.windows[0];
    let dot = &cold.variants[2];
    assert!((dot.metrics[&Metric::AnsweredShare].value - 0.98_f64.powf(0.2)).abs() < 1e-9);
    assert!(dot.metrics.contains_key(&Metric::LatencyP50));
    // The mean of the four others would say that nothing was lost.
    assert!(!dot.metrics.contains_key(&Metric::LatencyP99), "{:?}", dot.metrics);
    assert_eq!(dot.time_outs(Metric::LatencyP99), Some(TimeOuts { runs: 1, of: 5 }));
    assert_eq!(dot.time_outs(Metric::LatencyP50), None);
    let compared: Vec<Metric> = cold
        .comparisons
        .iter()
        .filter(|pair| pair.variant == "dot")
        .map(|pair| pair.metric)
        .collect();
    assert_eq!(compared, [Metric::AnsweredShare, Metric::SoundShare, Metric::LatencyP50]);
}

#[test]
fn the_same_runs_in_any_order_give_the_same_figures() {
    let mut records = records();
    let summary = Summary::of(&session(), &records);
    records.reverse();
    assert_eq!(Summary::of(&session(), &records), summary);
    let text = serde_json::to_string(&summary).unwrap();
    let read: Summary = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
}

#[test]
fn only_valid_runs_enter_a_figure() {
    let mut records = records();
    let figures = Summary::of(&session(), &records).variants;
    let mut invalid = record("udp", 90, 1);
    invalid.status = RunStatus::Invalid { reason: InvalidReason::Late { p99_ns: 2, limit_ns: 1 } };
    invalid.caveats = vec![Caveat::SharedCpus];
    invalid.bottleneck = Bottleneck { kind: BottleneckKind::Network, evidence: Vec::new() };
    let mut failed = record("udp", 91, 1);
    failed.status = RunStatus::Failed { reason: "died".to_owned(), log_tail: Vec::new() };
    failed.measured = None;
    records.extend([invalid, failed, record("unknown", 92, 1)]);
    let summary = Summary::of(&session(), &records);
    let udp = summary.variant("udp").unwrap();
    assert_eq!((udp.valid_runs, udp.other_runs), (5, 2));
    assert_eq!(VariantSummary { other_runs: 0, ..udp.clone() }, figures[0]);
    assert_eq!(summary.variants.len(), 3);
}

#[test]
fn a_variant_without_a_valid_run_stays_in_the_table() {
    let mut records = records();
    records.retain(|record| record.variant != "dot");
    for record in records.iter_mut().filter(|record| record.variant == "tcp") {
        record.status =
            RunStatus::Invalid { reason: InvalidReason::Late { p99_ns: 2, limit_ns: 1 } };
    }
    let summary = Summary::of(&session(), &records);
    for (name, others) in [("tcp", 5), ("dot", 0)] {
        let variant = summary.variant(name).unwrap();
        assert_eq!((variant.valid_runs, variant.other_runs), (0, others));
        assert!(variant.metrics.is_empty() && variant.latency.is_empty());
        assert_eq!((variant.p999_ns, variant.server_busy_share), (None, None));
        assert_eq!((variant.peak_memory_octets, variant.generator_cpu_per_query_ns), (None, None));
        assert!(variant.bottlenecks.is_empty() && variant.caveats.is_empty());
        assert_eq!(variant.mode.is_some(), others > 0, "an invalid run had a mode too");
    }
    assert!(summary.comparisons.is_empty());
}

#[test]
fn without_a_baseline_nothing_is_compared() {
    let mut records = records();
    records.retain(|record| record.variant != "udp");
    let summary = Summary::of(&session(), &records);
    assert_eq!(summary.variant("dot").unwrap().valid_runs, 5);
    assert!(summary.comparisons.is_empty());
    let none = Summary::of(&session(), &[]);
    assert_eq!(none.variants.len(), 3);
}

#[test]
fn what_could_not_be_measured_is_left_out() {
    let mut records = records();
    for record in records.iter_mut().filter(|record| record.variant == "udp") {
        record.watched.resources.samples.clear();
    }
    let summary = Summary::of(&session(), &records);
    assert!(!summary.variant("udp").unwrap().metrics.contains_key(&Metric::ServerCpuPerQuery));
    assert_eq!(verdict(&summary, "dot", Metric::ServerCpuPerQuery), None);
    assert_eq!(verdict(&summary, "dot", Metric::AnsweredQps), Some(Verdict::Costs));
}

#[test]
fn handshakes_of_the_warm_up_count() {
    let mut records = records();
    let measured = records[2].measured.as_mut().unwrap();
    measured.warm_up.connections.full_handshakes = 4;
    measured.counters.connections.full_handshakes = 2;
    measured.counters.connections.resumed_handshakes = 1;
    let summary = Summary::of(&session(), &records);
    assert_eq!(summary.variant("dot").unwrap().handshakes, 7);
}

#[test]
fn bottlenecks_are_counted() {
    let mut records = records();
    let limit =
        |kind, answers| Bottleneck { kind, evidence: vec![Evidence::GeneratorDrops { answers }] };
    let kinds = [
        BottleneckKind::Unclear,
        BottleneckKind::ServerCpu,
        BottleneckKind::Generator,
        BottleneckKind::ServerCpu,
        BottleneckKind::Generator,
    ];
    let dot = records.iter_mut().filter(|record| record.variant == "dot");
    for (place, record) in dot.enumerate() {
        record.bottleneck = limit(kinds[place], place as u64);
    }
    let summary = Summary::of(&session(), &records);
    let expected = [
        limit(BottleneckKind::ServerCpu, 1),
        limit(BottleneckKind::Generator, 2),
        limit(BottleneckKind::Unclear, 0),
    ];
    assert_eq!(summary.variant("dot").unwrap().bottlenecks, expected);
}

fn limits(texts: &[&str]) -> Vec<CostLimit> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// The runs of [`records`], of which so many of `udp` were bounded by this.
fn bounded(kind: BottleneckKind, runs: usize) -> Vec<RunRecord> {
    let mut records = records();
    let udp = records.iter_mut().filter(|record| record.variant == "udp");
    for record in udp.take(runs) {
        record.bottleneck = Bottleneck { kind, evidence: Vec::new() };
    }
    records
}

/// The verdicts of all comparisons with this metric.
fn verdicts(summary: &Summary, metric: Metric) -> Vec<Verdict> {
    let of_metric = summary.comparisons.iter().filter(|pair| pair.metric == metric);
    of_metric.map(|pair| pair.verdict).collect()
}

#[test]
fn the_rate_of_the_generator_is_a_lower_bound_and_compared_with_none() {
    // `dot` answers 30 % less than a reference that the generator bounded in two of five runs.
    let session = Session { limits: limits(&["qps=50%", "qps>=900", "qps>=2000"]), ..session() };
    let summary = Summary::of(&session, &bounded(BottleneckKind::Generator, 2));
    let udp = summary.variant("udp").unwrap();
    assert_eq!(udp.not_compared, Some(NotCompared::Generator));
    let rate = udp.metrics[&Metric::AnsweredQps];
    let rates = [1_000.0_f64, 1_010.0, 990.0, 1_005.0, 995.0];
    let geometric = rates.iter().product::<f64>().powf(0.2);
    assert!((rate.value - geometric).abs() < 1e-9 && !rate.is_bounded(), "{rate:?}");
    assert_eq!((udp.drift, summary.variant("dot").unwrap().not_compared), (None, None));
    assert_eq!(verdicts(&summary, Metric::AnsweredQps), []);
    assert_eq!(verdicts(&summary, Metric::ServerCpuPerQuery), [EQUAL, Verdict::Costs]);
    // It spends nothing of the error rate: what is left is as certain as without the metric.
    let rulings: Vec<Vec<Ruling>> = summary
        .rulings
        .iter()
        .map(|ruling| ruling.variants.iter().map(|judgement| judgement.ruling).collect())
        .collect();
    use Ruling::{Fail, Pass, Unclear};
    assert_eq!(rulings[0], [Unclear, Unclear], "a difference of 30 % would be within 50 %");
    // What the lower bound keeps is kept; what it does not keep is not known.
    assert_eq!(rulings[1], [Pass, Pass, Fail]);
    assert_eq!(rulings[2], [Unclear, Fail, Fail]);
    let why = Some(NotCompared::Generator);
    assert!(summary.rulings[0].variants.iter().all(|judgement| judgement.not_compared == why));
    assert!(summary.rulings[0].variants.iter().all(|judgement| judgement.found.is_none()));

    // One run of five is part of the spread.
    let summary = Summary::of(&session, &bounded(BottleneckKind::Generator, 1));
    assert_eq!(summary.variant("udp").unwrap().not_compared, None);
    assert_eq!(verdicts(&summary, Metric::AnsweredQps), [EQUAL, Verdict::Costs]);
    assert!(summary.variant("udp").unwrap().metrics[&Metric::AnsweredQps].is_bounded());
}

/// A planted cost of CPU time, between two sides that the generator bounds: by its own noise the slower server
/// seems to answer more.
#[test]
fn a_planted_cost_is_no_gain_by_the_rate_of_the_generator() {
    let mut records = Vec::new();
    for (block, rate) in (0..).zip([1_000, 1_010, 990, 1_005, 995]) {
        for (place, name, rate) in [(0, "udp", rate), (1, "tcp", rate + 40)] {
            let mut run = record(name, 2 * block + place, rate);
            run.repetition = block + 1;
            run.bottleneck.kind = BottleneckKind::Generator;
            records.push(run);
        }
    }
    let words = |records: &[RunRecord]| Summary::of(&session(), records).comparisons;
    let is_gain =
        |pair: &Comparison| pair.verdict == Verdict::Gains && pair.metric == Metric::AnsweredQps;
    assert!(!words(&records).iter().any(is_gain));
    records.iter_mut().for_each(|run| run.bottleneck.kind = BottleneckKind::ServerCpu);
    assert!(words(&records).iter().any(is_gain), "the same figures of two servers are a gain");
}

#[test]
fn refused_connections_leave_neither_rate_nor_cpu_time_to_compare() {
    let session = Session { limits: limits(&["cpu_per_query=50%"]), ..session() };
    let summary = Summary::of(&session, &bounded(BottleneckKind::ConnectionsRefused, 2));
    let udp = summary.variant("udp").unwrap();
    assert_eq!(udp.not_compared, Some(NotCompared::ConnectionsRefused));
    // The rate is what was answered, no bound.
    assert!(udp.metrics[&Metric::AnsweredQps].is_bounded());
    for metric in [Metric::AnsweredQps, Metric::ServerCpuPerQuery] {
        assert_eq!(verdicts(&summary, metric), []);
    }
    assert_eq!(verdicts(&summary, Metric::LatencyP50), [EQUAL; 2]);
    assert_eq!(summary.ruling(), Some(Ruling::Unclear));
}

#[test]
fn a_control_has_no_word_and_spends_nothing() {
    let pair = |variant: &str, against: &str| Compared {
        variant: variant.to_owned(),
        against: against.to_owned(),
    };
    let compared = vec![pair("tcp", "udp"), pair("dot", "tcp")];
    let controls = vec![pair("dot", "tcp")];
    let limits = limits(&["qps=5%"]);
    let session = Session { compared, controls, limits, ..session() };
    let mut records = records();
    let summary = Summary::of(&session, &records);
    let all = [Metric::AnsweredQps, Metric::ServerCpuPerQuery];
    for metric in all.into_iter().chain([Metric::LatencyP50]) {
        assert_eq!(verdicts(&summary, metric), [EQUAL, Verdict::Control], "{metric:?}");
    }
    // 30 % less of a control is no cost, so no limit is about it.
    let judged: Vec<&str> =
        summary.rulings[0].variants.iter().map(|judgement| judgement.variant.as_str()).collect();
    assert_eq!((judged, summary.ruling()), (vec!["tcp"], Some(Ruling::Pass)));
    // At the common rate the two are compared.
    for record in &mut records {
        let mut measured = record.measured.clone().unwrap();
        if record.variant == "dot" {
            measured.latency = Histogram::new();
            measured.latency.record_many_ns(3_000_000, 100);
        }
        let mode = LoadMode::Open { rate_qps: 500.0, pace: OpenPace::constant(Pace::Poisson) };
        record.common_load = Some(like_the_main_load(record, mode, measured));
    }
    let summary = Summary::of(&session, &records);
    for metric in all {
        assert_eq!(verdicts(&summary, metric), [EQUAL, Verdict::Control], "{metric:?}");
    }
    assert_eq!(verdicts(&summary, Metric::LatencyP50), [EQUAL, Verdict::Costs]);
}

#[test]
fn the_share_of_errors_is_that_of_the_worse_load() {
    let mut records = records();
    let codes = |errors: [u64; 4], answered: u64| {
        let errors = ["SERVFAIL", "REFUSED", "NOTIMP", "FORMERR"].into_iter().zip(errors);
        let others = [("NOERROR", answered), ("NXDOMAIN", 7)];
        errors.chain(others).map(|(code, count)| (code.to_owned(), count)).collect()
    };
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        let measured = record.measured.as_mut().unwrap();
        measured.counters.outcomes.answered = 1_000;
        measured.counters.answers.rcodes = codes([1, 2, 3, 4], 983);
        if record.repetition == 1 {
            let mut measured = measured.clone();
            measured.counters.answers.rcodes = codes([600, 0, 0, 0], 393);
            let mode = record.load.mode.clone();
            record.common_load = Some(like_the_main_load(record, mode, measured));
        }
    }
    let summary = Summary::of(&session(), &records);
    assert!((summary.variant("dot").unwrap().error_share - 0.6).abs() < 1e-9);
    assert_eq!(summary.variant("udp").unwrap().error_share, 0.0);
    records.iter_mut().for_each(|record| record.common_load = None);
    let summary = Summary::of(&session(), &records);
    assert!((summary.variant("dot").unwrap().error_share - 0.01).abs() < 1e-9);
}

/// The caveats of five runs, and what is kept of them.
#[track_caller]
fn check_caveats(runs: [Vec<Caveat>; 5], expected: &[(Caveat, u32)]) {
    let mut records = records();
    let dot = records.iter_mut().filter(|record| record.variant == "dot");
    dot.zip(runs).for_each(|(record, caveats)| record.caveats = caveats);
    let summary = Summary::of(&session(), &records);
    let found: Vec<_> = summary
        .variant("dot")
        .unwrap()
        .caveats
        .iter()
        .map(|caveat| (caveat.worst.clone(), caveat.runs))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_worst_caveat_of_each_kind_is_kept_and_its_runs_are_counted() {
    let one =
        |caveat: fn(u64) -> Caveat, figures: [u64; 5]| figures.map(|figure| vec![caveat(figure)]);
    let drops = |datagrams| Caveat::GeneratorDrops { datagrams };
    check_caveats(one(drops, [2, 7, 1, 7, 3]), &[(drops(7), 5)]);
    // The smaller figure may be the worse one.
    let cut = |measured_ns| Caveat::CutShort { measured_ns, asked_ns: 9, in_flight: 0 };
    check_caveats(one(cut, [5, 4, 3, 4, 5]), &[(cut(3), 5)]);
    let unfilled = |in_flight| Caveat::WindowNotFull { in_flight: in_flight as f64, window: 100 };
    check_caveats(one(unfilled, [80, 70, 60, 70, 80]), &[(unfilled(60), 5)]);
    let slow = |qps| Caveat::Unsteady { lowest_qps: qps as f64, median_qps: 100.0 };
    check_caveats(one(slow, [40, 30, 0, 30, 40]), &[(slow(0), 5)]);
    // Kinds stand in the order seen; a run counts once.
    let held = |role: &str| Caveat::ServerCpuLimit {
        role: role.to_owned(),
        cpus: 0.1,
        throttled_share: 0.5,
    };
    check_caveats(
        [
            vec![],
            vec![held("server"), Caveat::Lost { share: 0.1 }, Caveat::Lost { share: 0.3 }],
            vec![Caveat::SharedCpus, Caveat::CertificateNotVerified, held("server")],
            vec![Caveat::Lost { share: 0.2 }],
            vec![],
        ],
        &[
            (held("server"), 2),
            (Caveat::Lost { share: 0.3 }, 2),
            (Caveat::SharedCpus, 1),
            (Caveat::CertificateNotVerified, 1),
        ],
    );
}

#[test]
fn a_limit_judges_every_variant_but_the_baseline() {
    #[track_caller]
    fn check(limit: &str, summary: &Summary, expected: &[(&str, Ruling)]) {
        let limit: CostLimit = limit.parse().unwrap();
        let judged = judge(&limit, summary, &[], &session());
        let found: Vec<_> = judged
            .variants
            .iter()
            .map(|judgement| (judgement.variant.as_str(), judgement.ruling))
            .collect();
        assert_eq!(found, expected, "{limit:?}");
        let worst = expected.iter().map(|(_, ruling)| *ruling).max();
        assert_eq!(judged.ruling, worst.unwrap_or(Ruling::Unclear), "{limit:?}");
    }
    let mut records = records();
    let all = Summary::of(&session(), &records);
    check("qps=20%", &all, &[("tcp", Ruling::Pass), ("dot", Ruling::Fail)]);
    check("qps=30%", &all, &[("tcp", Ruling::Pass), ("dot", Ruling::Unclear)]);
    check("qps=40%", &all, &[("tcp", Ruling::Pass), ("dot", Ruling::Pass)]);
    // What was not measured is not within the limit.
    records.retain(|record| record.variant != "tcp");
    let part = Summary::of(&session(), &records);
    check("qps=40%", &part, &[("tcp", Ruling::Unclear), ("dot", Ruling::Pass)]);
    // What is compared with none has no cost.
    let compared = Compared { variant: "dot".to_owned(), against: "tcp".to_owned() };
    let pairs = Session { compared: vec![compared], ..session() };
    let limit: CostLimit = "qps=20%".parse().unwrap();
    let judged = judge(&limit, &all, &[], &pairs);
    assert_eq!(
        judged.variants.iter().map(|judgement| &*judgement.variant).collect::<Vec<_>>(),
        ["dot"]
    );
    let alone = Summary { variants: vec![all.variant("udp").unwrap().clone()], ..all };
    check("qps=40%", &alone, &[]);
}

#[test]
fn an_absolute_limit_judges_every_variant_by_its_runs() {
    fn rulings(limit: &str, records: &[RunRecord]) -> Vec<(String, Ruling)> {
        let session = Session { limits: vec![limit.parse().unwrap()], ..session() };
        let summary = Summary::of(&session, records);
        let [ruling] = &summary.rulings[..] else { panic!("{:?}", summary.rulings) };
        let variants = ruling.variants.iter();
        variants.map(|judgement| (judgement.variant.clone(), judgement.ruling)).collect()
    }
    let mut records = records();
    let all = |ruling: Ruling| ["udp", "tcp", "dot"].map(|name| (name.to_owned(), ruling)).to_vec();
    assert_eq!(rulings("p99<3000s", &records), all(Ruling::Pass));
    assert_eq!(rulings("p99<1ns", &records), all(Ruling::Fail));
    assert_eq!(rulings("qps>=1", &records), all(Ruling::Pass));
    assert_eq!(rulings("qps>1e9", &records), all(Ruling::Fail));
    // One run has no interval; an invalid one says nothing; what was not measured is not kept.
    records.retain(|record| record.repetition == 1 || record.variant != "tcp");
    assert_eq!(rulings("qps>=1", &records)[1].1, Ruling::Unclear);
    records.retain(|record| record.variant != "tcp");
    assert_eq!(rulings("qps>=1", &records)[1].1, Ruling::Unclear);
    assert_eq!(rulings("memory<1GiB", &[]), all(Ruling::Unclear));
}

/// 0 of 5,000 queries: with 95 % no more than 0.074 % are lost (Clopper and Pearson).
#[test]
fn what_is_too_seldom_to_be_seen_is_no_proof() {
    let ruling = |limit: &str, records: &[RunRecord]| {
        let session = Session { limits: vec![limit.parse().unwrap()], ..session() };
        Summary::of(&session, records).rulings[0].variants[0].clone()
    };
    let records = records();
    assert_eq!(ruling("lost<0.1%", &records).ruling, Ruling::Pass);
    assert_eq!(ruling("answered>99.9%", &records).ruling, Ruling::Pass);
    let found = ruling("lost<0.05%", &records);
    assert_eq!(found.ruling, Ruling::Unclear);
    let high = found.found.unwrap().high;
    assert!((high - 0.000_737_5).abs() < 1e-6, "{high}");
    assert_eq!(ruling("lost<0.1%", &records[..9]).ruling, Ruling::Unclear);
}

/// Runs of another load generator are no rounds, and a rate that it was told is no finding.
#[test]
fn imported_runs_are_compared_as_they_came() {
    fn with(max_qps: Option<f64>, turned: bool) -> Summary {
        let mut records = records();
        for run in &mut records {
            let (generator, file) = ("dnsperf".to_owned(), "x".to_owned());
            run.imported = Some(Imported { generator, file, max_qps, ..Imported::default() });
            if turned && run.variant == "dot" {
                // In another order.
                run.repetition = 14 - run.repetition;
            }
        }
        Summary::of(&session(), &records)
    }
    let dot_by = |summary: &Summary, metric: Metric| {
        let mut own = summary.comparisons.iter();
        own.find(|pair| pair.variant == "dot" && pair.metric == metric).cloned()
    };
    let found = dot_by(&with(None, false), Metric::AnsweredQps).unwrap();
    assert_eq!(found.verdict, Verdict::Costs);
    assert_eq!(dot_by(&with(None, true), Metric::AnsweredQps).unwrap(), found);
    assert!(dot_by(&with(Some(1_000.0), false), Metric::ServerCpuPerQuery).is_some());
    assert_eq!(dot_by(&with(Some(1_000.0), false), Metric::AnsweredQps), None);
    assert!(dot_by(&with(Some(1e6), false), Metric::AnsweredQps).is_some());
}

/// Memory is charged in steps of 256 KiB for each CPU: two equal servers may be that far apart in every round.
#[test]
fn a_step_of_the_measure_is_no_difference() {
    let mut records = records();
    for run in &mut records {
        let fewer = if run.variant == "tcp" { 262_144 } else { 0 };
        for sample in &mut run.watched.resources.samples {
            sample.memory_octets = 2_000_000 - fewer;
        }
    }
    let summary = Summary::of(&session(), &records);
    let found = verdict(&summary, "tcp", Metric::PeakMemory);
    assert_eq!(found, Some(Verdict::CannotTell { more_runs: None }));
}

/// The rate and the CPU time are of the main load, which counts.
#[test]
fn a_run_without_its_common_load_lacks_the_latencies_alone() {
    let mut run = record("udp", 0, 1_000);
    let all: Vec<Metric> =
        Metric::COMPARED.into_iter().filter(|metric| run.figure(*metric).is_some()).collect();
    assert!(all.contains(&Metric::AnsweredQps) && all.contains(&Metric::LatencyP99), "{all:?}");
    run.lacks_common_load = true;
    for metric in all {
        assert_eq!(run.figure(metric).is_none(), metric.is_latency(), "{metric:?}");
    }
}
