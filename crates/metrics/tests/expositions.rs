//! What scrapers, Prometheus' own tools and readers of the documents see.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use dnslab_figures::{Answers, ByPhase, Connections, Counters, Histogram, Interval, Outcomes};
use dnslab_metrics::{Format, Metrics, Point, Series, Value, page, points_of, timed_text};
use dnslab_record::{
    CaseId, Caveat, CpuShare, LiveInterval, LiveLoad, LiveServer, LoadPart, RunRecord,
};
use dnslab_results::ResultsDirectory;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/samples/v1")
}

fn records() -> Vec<RunRecord> {
    ResultsDirectory::open(&samples()).unwrap().runs().unwrap()
}

fn case() -> CaseId {
    CaseId { variant: "dot".to_owned(), repetition: 2 }
}

/// So many queries were due, all but one in flight answered.
fn counters(due: u64) -> Counters {
    let answered = due.saturating_sub(1);
    Counters {
        outcomes: Outcomes { due, answered, ..Outcomes::default() },
        sent: due,
        sent_octets: 40 * due,
        answers: Answers {
            rcodes: BTreeMap::from([("NOERROR".to_owned(), answered)]),
            octets: 60 * answered,
            ..Answers::default()
        },
        connections: Connections {
            attempted: 4,
            opened: 4,
            lost: 1,
            full_handshakes: 1,
            resumed_handshakes: 3,
            early_data: 2,
            ..Connections::default()
        },
        ..Counters::default()
    }
}

fn interval() -> LiveInterval {
    let mut latency = Histogram::new();
    [80_000, 90_000, 2_500_000].into_iter().for_each(|ns| latency.record_ns(ns));
    LiveInterval {
        interval: Interval {
            at_ns: 1_000_000_000,
            length_ns: 500_000_000,
            p50_ns: Some(90_000),
            p99_ns: Some(2_500_000),
            ..Interval::default()
        },
        latency,
        counters: ByPhase { warm_up: Counters::default(), measured: counters(4) },
        busiest_worker_ns: 900_000_000,
        window_ns: 1_000_000_000..2_000_000_000,
        began_unix_ns: 1_700_000_000_000_000_000,
    }
}

fn live(latest: &LiveInterval) -> LiveLoad<'_> {
    LiveLoad {
        part: LoadPart::Main,
        latest,
        server: Some(LiveServer {
            cpu_ns: 750_000_000,
            cpu_share: Some(0.5),
            cpus: 1,
            memory_octets: 10_000_000,
            udp_drops: 3,
            ..LiveServer::default()
        }),
        load_cpus: vec![CpuShare { cpu: 1, used: 0.25, irq: 0.0 }],
    }
}

fn text(metrics: &Metrics, format: Format) -> String {
    String::from_utf8(metrics.snapshot().encode(format)).unwrap()
}

fn under_way() -> Metrics {
    let mut metrics = Metrics::new("encryption", "0.1.0", 4);
    metrics.run_begins(&case(), "dot");
    metrics.interval(&case(), &live(&interval()));
    metrics
}

#[test]
fn a_run_under_way_is_exposed() {
    insta::assert_snapshot!("under_way", text(&under_way(), Format::OpenMetrics));
}

#[test]
fn a_run_that_has_ended_has_the_figures_of_its_record() {
    let mut metrics = under_way();
    let mut record = records().swap_remove(0);
    (record.variant, record.repetition) = ("dot".to_owned(), 2);
    record.caveats = vec![Caveat::SharedCpus];
    let measured = record.measured.as_mut().unwrap();
    measured.counters = counters(9);
    measured.counters.outcomes.timed_out = 1;
    measured.latency = Histogram::new();
    measured.latency.record_many_ns(1_000_000, 9);
    let points = metrics.run_ends(&record);
    insta::assert_snapshot!("ended", text(&metrics, Format::OpenMetrics));
    // One millisecond after the latest point, in the run's own time.
    assert_eq!(points.iter().map(|point| point.at_ms).collect::<Vec<_>>(), [1_700_000_001_501]);
}

#[test]
fn points_are_those_of_the_run_and_at_most_one_for_each_second() {
    let mut metrics = Metrics::new("encryption", "0.1.0", 4);
    metrics.run_begins(&case(), "dot");
    let mut at = Vec::new();
    for tenth in 0..25 {
        let mut latest = interval();
        (latest.interval.at_ns, latest.interval.length_ns) = (tenth * 100_000_000, 100_000_000);
        at.extend(metrics.interval(&case(), &live(&latest)).iter().map(|point| point.at_ms));
    }
    assert_eq!(at, [1_700_000_000_000, 1_700_000_001_000, 1_700_000_002_000]);
}

/// The value of a gauge at a point.
fn gauge(point: &Point, metric: &str) -> Option<f64> {
    let series = point.series.iter().find(|series| series.family.full_name() == metric)?;
    match series.value {
        Value::Real(number) => Some(number),
        _ => None,
    }
}

/// Two loads in turns of 50 ms, on servers that are idle between their turns.
#[test]
fn the_pace_is_that_of_the_loads_own_turns() {
    let mut metrics = Metrics::new("encryption", "0.1.0", 4);
    metrics.run_begins(&case(), "dot");
    let mut at = Vec::new();
    for tenth in 0..30 {
        // 4,000 in each second of its turns, then 8,000, and then the others have all of the time.
        let (answered, own_ms) = match tenth {
            0..10 => (200, 50),
            10..20 => (400, 50),
            _ => (0, 0),
        };
        let mut latest = interval();
        latest.interval = Interval {
            at_ns: tenth * 100_000_000,
            length_ns: 100_000_000,
            own_ns: Some(own_ms * 1_000_000),
            answered,
            lost: if own_ms == 0 { 7 } else { answered / 100 },
            ..Interval::default()
        };
        let mut live = live(&latest);
        // Three quarters of a CPU in its turns.
        let cpu_ns = (tenth + 1).min(20) * 37_500_000;
        live.server = live.server.map(|server| LiveServer { cpu_ns, ..server });
        let points = metrics.interval(&case(), &live);
        at.extend(points.iter().map(|point| {
            ["dnslab_answered_per_second", "dnslab_lost_per_second", "dnslab_server_cpus_used"]
                .map(|name| gauge(point, name))
        }));
    }
    let expected = [
        [Some(0.0), Some(0.0), None],
        [4_000.0, 20.0, 0.75].map(Some),
        [8_000.0, 40.0, 0.75].map(Some),
        // What times out when its load has no turn.
        [0.0, 70.0, 0.0].map(Some),
    ];
    assert_eq!(at, expected);
    let mut record = records().swap_remove(0);
    (record.variant, record.repetition) = ("dot".to_owned(), 2);
    let ended = metrics.run_ends(&record);
    assert_eq!(gauge(&ended[0], "dnslab_answered_per_second"), Some(0.0));
}

/// Answers per second of the second that ends with this interval.
fn pace_until(last: &Interval, series: &[Interval]) -> f64 {
    let end = |interval: &Interval| interval.at_ns + interval.length_ns;
    let second = end(last).saturating_sub(1_000_000_000) + 1..=end(last);
    let inside = || series.iter().filter(|interval| second.contains(&end(interval)));
    let answered: u64 = inside().map(|interval| interval.answered).sum();
    let own_ns: u64 = inside().map(|own| own.own_ns.unwrap_or(own.length_ns)).sum();
    answered as f64 * 1e9 / (own_ns as f64).max(1.0)
}

#[test]
fn the_pace_of_results_is_the_rate_of_their_seconds() {
    let mut checked = 0;
    for record in records() {
        let Some(measured) = &record.measured else { continue };
        let paces = points_of("sample", &record).into_iter();
        let highest = paces
            .filter_map(|point| gauge(&point, "dnslab_answered_per_second"))
            .fold(0.0, f64::max);
        let series = match measured.seconds.as_slice() {
            [] => &measured.intervals,
            _ => &measured.seconds,
        };
        let expected = series.iter().map(|last| pace_until(last, series)).fold(0.0, f64::max);
        let common = record.common_load.is_some();
        assert!(common || (highest / expected - 1.0).abs() < 1e-9, "{highest}, not {expected}");
        checked += 1;
    }
    assert!(checked > 3, "{checked}");
}

/// `promtool` with this input.
fn promtool(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool is installed, from Debian's prometheus");
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn promtool_finds_no_fault() {
    let mut metrics = under_way();
    let mut record = records().swap_remove(0);
    (record.variant, record.repetition) = ("dot".to_owned(), 2);
    metrics.run_ends(&record);
    let exposition = metrics.snapshot().encode(Format::Text);
    let output = promtool(&["check", "metrics"], &exposition);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// The value of a counter at a point, summed over its series.
fn sum(point: &Point, metric: &str, label: Option<&str>) -> u64 {
    let is_meant = |series: &&Series| {
        series.family.full_name() == metric
            && label.is_none_or(|label| series.labels().any(|(_, value)| value == label))
    };
    let number = |series: &Series| match series.value {
        Value::Whole(number) => number,
        _ => 0,
    };
    point.series.iter().filter(is_meant).map(number).sum()
}

#[test]
fn the_last_point_of_results_has_the_totals_of_the_record_and_none_before_has_more() {
    let mut checked = 0;
    for record in records() {
        let Some(measured) = &record.measured else { continue };
        let points = points_of("sample", &record);
        let last = points.last().unwrap();
        let outcomes = &measured.counters.outcomes;
        assert_eq!(sum(last, "dnslab_queries_due_total", Some("measured")), outcomes.due);
        assert_eq!(sum(last, "dnslab_queries_total", Some("measured")), outcomes.settled());
        for metric in ["dnslab_queries_total", "dnslab_answers_total", "dnslab_sent_bytes_total"] {
            let values: Vec<u64> = points.iter().map(|point| sum(point, metric, None)).collect();
            assert!(values.is_sorted(), "{}: {metric}: {values:?}", record.variant);
            assert!(values[0] == 0 && values[values.len() - 1] > 0, "{metric}: {values:?}");
        }
        assert!(points.is_sorted_by(|one, other| one.at_ms < other.at_ms), "{}", record.variant);
        checked += 1;
    }
    assert!(checked > 3, "{checked}");
}

#[test]
fn promtool_makes_blocks_of_results() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("metrics.txt"), folder.path().join("data"));
    let points: Vec<Point> =
        records().iter().flat_map(|record| points_of("sample", record)).collect();
    fs::write(&file, timed_text(&points)).unwrap();
    let arguments = ["tsdb", "create-blocks-from", "openmetrics"];
    let paths = [file.to_str().unwrap(), data.to_str().unwrap()];
    let output = promtool(&[&arguments[..], &paths].concat(), &[]);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    let blocks = fs::read_dir(&data).unwrap().count();
    assert!(blocks > 0, "{said}");
}

#[test]
fn the_documents_list_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let (begin, end) = ("<!-- made by crates/metrics -->\n", "<!-- end -->\n");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(begin).unwrap();
    let (listed, after) = rest.split_once(end).unwrap();
    if std::env::var_os("DNSLAB_BLESS").is_some() {
        fs::write(&path, format!("{before}{begin}{}{end}{after}", page())).unwrap();
    } else {
        let how = "docs/METRICS.md is stale: DNSLAB_BLESS=1 cargo test -p dnslab-metrics";
        assert_eq!(listed, page(), "{how}");
    }
}
