//! Quantiles that so many lost queries reach that they are the time-out.

use dnslab_analysis::statistics::{Comparison, Verdict};
use dnslab_analysis::{Judgement, Ruling, Summary};
use dnslab_figures::{Histogram, Outcomes, WindowCounts};
use dnslab_record::Metric;
use dnslab_record::{CostLimit, LoadMode, RunRecord, Session, TimeOuts};
use proptest::prelude::*;

use crate::example::{record, session};
use dnslab_analysis::judge;
use dnslab_record::OpenPace;
use dnslab_traffic::Pace;

const TIMEOUT_NS: u64 = 500_000_000;

/// A run of `variant` in this round, with latencies and a time window of these, nanoseconds, each for a hundred queries, and
/// so many lost ones of a hundred.
fn run(variant: &str, round: u32, latencies_ns: &[u64], lost_percent: u64) -> RunRecord {
    let mut run = record(variant, 3 * round, 1_000);
    run.load.timeout_ns = TIMEOUT_NS;
    let mut latency = Histogram::new();
    latencies_ns.iter().for_each(|ns| latency.record_many_ns(*ns, 100 - lost_percent));
    let count = latencies_ns.len() as u64;
    latency.record_many_ns(TIMEOUT_NS, lost_percent * count);
    let outcomes = Outcomes {
        due: 100 * count,
        answered: (100 - lost_percent) * count,
        timed_out: lost_percent * count,
        ..Outcomes::default()
    };
    let measured = run.measured.as_mut().unwrap();
    measured.latency = latency.clone();
    measured.counters.outcomes = outcomes;
    let (name, to_ns) = ("cold".to_owned(), 500_000_000);
    measured.windows =
        vec![WindowCounts { name, to_ns, outcomes, latency, ..WindowCounts::default() }];
    run
}

/// Eight rounds. `udp` answers all, `dot` loses 2 % in five of them and is faster in the others.
fn records() -> Vec<RunRecord> {
    let mut records = Vec::new();
    for round in 0..8 {
        let more = 1_000 * u64::from(round);
        records.push(run("udp", round, &[3_000_000 + more], 0));
        records.push(match round {
            ..5 => run("dot", round, &[3_100_000], 2),
            _ => run("dot", round, &[2_000_000 + more], 0),
        });
    }
    records
}

fn time_outs_of(summary: &Summary, variant: &str) -> Vec<(String, u32, u32)> {
    let variant = summary.variants.iter().find(|own| own.name == variant).unwrap();
    variant.time_outs.iter().map(|(name, found)| (name.clone(), found.runs, found.of)).collect()
}

#[test]
fn the_rounds_that_are_left_are_no_figure() {
    let summary = Summary::of(&session(), &records());
    let expected = ["p99", "p99.9"].map(|name| (name.to_owned(), 5, 8));
    assert_eq!(time_outs_of(&summary, "dot"), expected);
    assert_eq!(time_outs_of(&summary, "udp"), []);
    let dot = summary.variant("dot").unwrap();
    assert!(dot.metrics.contains_key(&Metric::LatencyP95) && dot.p90_ns.is_some());
    assert!(!dot.metrics.contains_key(&Metric::LatencyP99) && dot.p999_ns.is_none());
    let is_compared =
        |all: &[Comparison], metric: Metric| all.iter().any(|own| own.metric == metric);
    assert!(is_compared(&summary.comparisons, Metric::LatencyP95));
    assert!(!is_compared(&summary.comparisons, Metric::LatencyP99));
    let [cold] = &summary.windows[..] else { panic!("{:?}", summary.windows) };
    let window = cold.variants.iter().find(|figures| figures.variant == "dot").unwrap();
    assert_eq!(window.time_outs(Metric::LatencyP99), Some(TimeOuts { runs: 5, of: 8 }));
    assert!(is_compared(&cold.comparisons, Metric::LatencyP50));
    assert!(!is_compared(&cold.comparisons, Metric::LatencyP99));
}

/// A round that the reference does not have is none that may be forgotten either.
#[test]
fn a_time_out_without_its_pair_counts() {
    let mut records = records();
    let is_left = |record: &RunRecord| record.variant == "dot" || record.repetition > 5;
    records.retain(is_left);
    let summary = Summary::of(&session(), &records);
    assert!(!summary.comparisons.iter().any(|comparison| comparison.metric == Metric::LatencyP99));
}

fn judged(limit: &str, records: &[RunRecord]) -> Judgement {
    let limit: CostLimit = limit.parse().unwrap();
    let session = Session { limits: vec![limit], ..session() };
    let summary = Summary::of(&session, records);
    let mut judgements = summary.rulings.into_iter().flat_map(|ruling| ruling.variants);
    judgements.find(|judgement| judgement.variant == "dot").unwrap()
}

#[test]
fn a_gate_says_the_same_and_passes_nothing() {
    let records = records();
    for (limit, expected) in [
        ("p99=10%", Ruling::Fail),
        ("p99=100000%", Ruling::Unclear),
        ("p99<1ms", Ruling::Fail),
        // Five of eight rounds are no certainty, and no pass whatever the bound.
        ("p99<100ms", Ruling::Unclear),
        ("p99<3000s", Ruling::Unclear),
        ("max<1ms", Ruling::Fail),
    ] {
        let found = judged(limit, &records);
        assert_eq!((found.ruling, found.found), (expected, None), "{limit}");
        assert_eq!(found.time_outs, Some(TimeOuts { runs: 5, of: 8 }), "{limit}");
    }
    let p95 = judged("p95=10%", &records);
    assert!(p95.found.is_some() && p95.time_outs.is_none() && p95.ruling == Ruling::Pass);
    // A reference that is the time-out is no measure.
    let session = Session { baseline: "dot".to_owned(), ..session() };
    let summary = Summary::of(&session, &records);
    let limit: CostLimit = "p99=10%".parse().unwrap();
    let records: Vec<&RunRecord> = records.iter().collect();
    let ruling = judge(&limit, &summary, &records, &session);
    let udp = ruling.variants.iter().find(|judgement| judgement.variant == "udp").unwrap();
    assert_eq!((udp.ruling, udp.found, udp.time_outs), (Ruling::Unclear, None, None));
    assert_eq!(udp.reference_time_outs, Some(TimeOuts { runs: 5, of: 8 }));
}

/// Open loops whose p99 differ by 0.3 ms, with a send lag of `lag_ns` for the slowest 2 %.
fn word_of_p99(lag_ns: u64) -> Verdict {
    let mut records: Vec<RunRecord> = Vec::new();
    for round in 0..8 {
        let noise = 1_000 * u64::from(round % 3);
        records.push(run("udp", round, &[3_000_000 + noise], 0));
        records.push(run("dot", round, &[3_300_000 + 2 * noise], 0));
    }
    for record in &mut records {
        record.load.mode =
            LoadMode::Open { rate_qps: 1_000.0, pace: OpenPace::constant(Pace::Constant) };
        let measured = record.measured.as_mut().unwrap();
        measured.send_lag = Histogram::new();
        measured.send_lag.record_many_ns(20_000, 98);
        measured.send_lag.record_many_ns(lag_ns, 2);
    }
    let summary = Summary::of(&session(), &records);
    let floors = &summary.variants[0].latency_floors_ns;
    assert!(floors[&Metric::LatencyP50] < 30_000.0 && floors[&Metric::LatencyP99] > lag_ns as f64);
    let word = |metric: Metric| {
        summary.comparisons.iter().find(|comparison| comparison.metric == metric).unwrap().verdict
    };
    assert_eq!(word(Metric::LatencyP50), Verdict::Costs);
    word(Metric::LatencyP99)
}

#[test]
fn a_difference_below_the_floor_of_its_own_quantile_is_not_certain() {
    assert_eq!(word_of_p99(100_000), Verdict::Costs);
    assert!(matches!(word_of_p99(481_000), Verdict::CannotTell { .. }));
}

/// What a table shows of a quantile: a mean, or in how many of the runs it is the time-out.
fn shown(value: Option<f64>, time_outs: Option<TimeOuts>) -> Option<(f64, u32)> {
    assert!(value.is_none() || time_outs.is_none());
    match (value, time_outs) {
        (Some(value), _) => Some((value, 0)),
        (None, Some(found)) => Some((f64::INFINITY, found.runs)),
        (None, None) => None,
    }
}

#[track_caller]
fn check_order(quantiles: &[Option<(f64, u32)>]) {
    for pair in quantiles.windows(2) {
        let (Some(lower), Some(higher)) = (pair[0], pair[1]) else {
            assert_eq!(pair[0].is_some(), pair[1].is_some(), "{quantiles:?}");
            continue;
        };
        assert!(lower.0 <= higher.0 * (1.0 + 1e-12) && lower.1 <= higher.1, "{quantiles:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever was measured: p50 <= p90 <= p95 <= p99 <= p99.9 of each variant and time window, a time-out being
    /// larger than all values; and nothing is compared by a figure that a variant does not have.
    #[test]
    fn quantiles_rise_in_every_variant(
        rounds in prop::collection::vec(
            [(prop::collection::vec(1_000u64..TIMEOUT_NS, 1..6), prop_oneof![Just(0u64), 0u64..=100]),
             (prop::collection::vec(1_000u64..TIMEOUT_NS, 1..6), prop_oneof![Just(0u64), 0u64..=100])],
            1..6,
        ),
    ) {
        let records: Vec<RunRecord> = (0..)
            .zip(&rounds)
            .flat_map(|(round, [udp, dot])| {
                [("udp", udp), ("dot", dot)].map(|(name, (latencies, lost))| run(name, round, latencies, *lost))
            })
            .collect();
        let summary = Summary::of(&session(), &records);
        for variant in summary.variants.iter().filter(|variant| variant.valid_runs > 0) {
            let by = |metric: Metric| {
                shown(variant.metrics.get(&metric).map(|found| found.value), variant.time_outs(metric))
            };
            let far = |value: Option<f64>, name: &str| shown(value, variant.time_outs.get(name).copied());
            check_order(&[
                by(Metric::LatencyP50),
                far(variant.p90_ns, "p90"),
                by(Metric::LatencyP95),
                by(Metric::LatencyP99),
                far(variant.p999_ns, "p99.9"),
            ]);
        }
        for own in summary.windows.iter().flat_map(|window| &window.variants) {
            check_order(&[Metric::LatencyP50, Metric::LatencyP99].map(|metric| {
                shown(own.metrics.get(&metric).map(|found| found.value), own.time_outs(metric))
            }));
        }
        let has = |name: &str, metric: &Metric| {
            summary.variants.iter().any(|variant| variant.name == name && variant.metrics.contains_key(metric))
        };
        for compared in &summary.comparisons {
            prop_assert!(has(&compared.variant, &compared.metric), "{compared:?}");
            prop_assert!(has(&compared.against, &compared.metric), "{compared:?}");
        }
    }
}
