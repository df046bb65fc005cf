//! What is said of figures that are not the server's, of controls, of errors, and of limits.

use dnslab_analysis::Summary;
use dnslab_record::{BottleneckKind, Compared, RunRecord, Session};
use dnslab_report::{Terminal, screen};
use dnslab_wire::units::number;
use serde_json::Value;

use crate::session_comparison::text;
use crate::{report_of, runs_of, sample};

/// Ten runs of each variant of the sample, those of `bounded` bounded by this.
fn made(kind: BottleneckKind, bounded: &[&str]) -> (Session, Vec<RunRecord>) {
    let session = sample::session(10);
    let mut records = runs_of(&session);
    for record in records.iter_mut().filter(|record| bounded.contains(&&*record.variant)) {
        record.bottleneck.kind = kind;
    }
    (session, records)
}

/// The screen, `table.md`, the page and `summary.json`.
fn told(session: &Session, records: &[RunRecord]) -> ([String; 3], Value) {
    let summary = Summary::of(session, records);
    let screen = text(&screen(session, records, &summary, Terminal { width: 100, following: 2 }));
    let [page, json, _, _, table] = report_of(session, records);
    ([screen, table, page], serde_json::from_str(&json).unwrap())
}

/// A text without its line breaks and with plain blanks.
fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Each of these ways of reading has the first texts and none of the others.
#[track_caller]
fn check(read: &[String; 3], has: &[&str], has_not: &[&str]) {
    for read in read.iter().map(|text| plain(text)) {
        for text in has {
            assert!(read.contains(text), "no `{text}`: {read}");
        }
        for text in has_not {
            assert!(!read.contains(text), "`{text}`: {read}");
        }
    }
}

const OF_RATES: [&str; 2] = ["queries per second than", "% fewer"];

#[test]
fn a_rate_of_the_generator_is_at_least_and_in_no_sentence() {
    let (session, records) = made(BottleneckKind::ServerCpu, &[]);
    let (read, json) = told(&session, &records);
    let added =
        "udp takes 6.33 us of CPU for a query, tcp 870 ±90 ns more and dot 3.9 ±0.1 us more.";
    // The method says that a lost query counts with "at least the time-out".
    check(&read, &[added], &["at least 1"]);
    assert!(json["variants"][0]["not_compared"].is_null());
    let (session, records) = made(BottleneckKind::Generator, &["udp"]);
    let (read, json) = told(&session, &records);
    check(&read, &[added], &OF_RATES);
    let [screen, table, page] = &read;
    let rate = &json["variants"][0]["metrics"]["answered-qps"];
    let qps = number::qps(rate["value"].as_f64().unwrap());
    // Cut to thousands, not rounded.
    let bound = format!("\u{2265} {},000 ", qps.split(',').next().unwrap());
    assert!(screen.contains(&bound), "{bound}: {screen}");
    assert!(plain(screen).contains("\u{2265}: at least, the load generator was the bottleneck"));
    assert!(table.contains(&format!("| at least {qps} | - | baseline |")), "{table}");
    assert!(page.contains(&format!(">at least {qps}<")), "no lower bound on the page");
    let udp = &json["variants"][0];
    assert_eq!(udp["not_compared"], "generator");
    assert!(rate["low"].is_null() && rate["high"].is_null(), "{rate}");
    let compared = json["comparisons"].as_array().unwrap();
    assert!(
        compared.iter().all(|comparison| comparison["metric"] != "answered-qps"),
        "{compared:?}"
    );
    // The other way round: a variant that is bounded, of which the reference is not.
    let (session, records) = made(BottleneckKind::Generator, &["dot"]);
    let (read, _) = told(&session, &records);
    check(&read, &[added], &OF_RATES);
}

#[test]
fn refused_connections_are_a_bottleneck_of_their_own() {
    let (session, mut records) = made(BottleneckKind::ConnectionsRefused, &["dot"]);
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        let connections = &mut record.measured.as_mut().unwrap().counters.connections;
        (connections.attempted, connections.failed, connections.refused) = (1_000, 600, 600);
    }
    let (read, json) = told(&session, &records);
    let said =
        "the server turned connections away, so its rate and its CPU time are compared with none";
    let [screen, table, _] = &read;
    for read in [screen, table].map(|text| plain(text)) {
        assert!(read.contains(said) && read.contains("6,000 of 10,0"), "{read}");
        assert!(!read.contains("dot takes") && !read.contains("dot answers"), "{read}");
    }
    check(&read, &["connections refused"], &[]);
    assert_eq!(json["variants"][2]["not_compared"], "connections-refused");
    assert_eq!(json["variants"][2]["connections"]["counts"]["refused"], 6_000);
}

#[test]
fn a_control_is_called_that() {
    let (mut session, records) = made(BottleneckKind::ServerCpu, &[]);
    let pair = |variant: &str, against: &str| Compared {
        variant: variant.to_owned(),
        against: against.to_owned(),
    };
    session.compared = vec![pair("tcp", "udp"), pair("dot", "tcp")];
    session.controls = vec![pair("dot", "tcp")];
    let (read, json) = told(&session, &records);
    let same = "dot is the same as tcp at saturation";
    check(
        &read,
        &[same, "tcp takes 7.20 us of CPU for a query, udp 6.33 us: 870 ±90 ns more."],
        &["dot answers", "dot 3", "dot takes"],
    );
    let [screen, table, _] = &read;
    let row = screen.lines().find(|line| line.starts_with("  dot (to tcp)")).unwrap();
    assert!(row.contains("(-30"), "{row}");
    assert!(table.contains("a control of tcp"), "{table}");
    let compared = json["comparisons"].as_array().unwrap();
    let mut of_dot = compared.iter().filter(|comparison| comparison["variant"] == "dot");
    assert!(of_dot.all(|comparison| comparison["verdict"]["verdict"] == "control"), "{compared:?}");
}

#[test]
fn errors_have_a_column_from_a_thousandth_on() {
    let (session, mut records) = made(BottleneckKind::ServerCpu, &[]);
    for (share, is_shown) in [(0.0009, false), (0.0011, true), (0.83, true)] {
        for record in records.iter_mut().filter(|record| record.variant == "tcp") {
            let counters = &mut record.measured.as_mut().unwrap().counters;
            let answered = counters.outcomes.answered;
            let errors = (answered as f64 * share) as u64;
            let codes = [("NOERROR", answered - errors), ("SERVFAIL", errors)];
            counters.answers.rcodes = codes.map(|(code, count)| (code.to_owned(), count)).into();
        }
        let (read, json) = told(&session, &records);
        let found = json["variants"][1]["error_share"].as_f64().unwrap();
        assert!((found - share).abs() < 1e-4, "{found}");
        let [screen, table, page] = &read;
        let first = screen.lines().find(|line| line.contains("CPU/query")).unwrap();
        assert_eq!(first.contains("errors"), is_shown, "{screen}");
        assert_eq!(table.contains("| errors |"), is_shown, "{table}");
        assert_eq!(page.contains("<th scope=\"col\">errors</th>"), is_shown, "{share}");
        if share > 0.5 {
            check(&read, &["83.0 %"], &[]);
        }
    }
}

/// One line for all limits, then one for each, before anything else.
#[test]
fn the_verdict_comes_first() {
    let (mut session, records) = made(BottleneckKind::ServerCpu, &[]);
    for (limits, overall, each) in [
        (
            ["qps=1%", "memory<500GiB", "p99=1000%"],
            "FAIL: 1 of 3 limits fails",
            ["FAIL tcp: qps -11 %", "PASS memory: at worst", "PASS p99: at worst"],
        ),
        (
            ["qps=20%", "handshakes=1%", "memory<1KiB"],
            "FAIL: 2 of 3 limits fail, 1 is unclear",
            ["FAIL dot: qps -38 %", "UNCLEAR tcp: handshakes was not", "FAIL udp: memory"],
        ),
        (
            ["qps=90%", "p99=1000%", "memory<500GiB"],
            "PASS: 3 of 3 limits pass",
            ["PASS qps: at worst -38 %", "PASS p99: at worst", "PASS memory: at worst"],
        ),
    ] {
        session.limits = limits.map(|limit| limit.parse().unwrap()).to_vec();
        let (read, json) = told(&session, &records);
        let [screen, table, page] = &read;
        let lines: Vec<&str> = screen.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(lines[0], overall);
        let mut limits = lines[1..4].iter().zip(each);
        assert!(limits.all(|(line, start)| line.starts_with(start)), "{screen}");
        let start = format!("**{overall}**\n\n- {}", each[0]);
        assert!(table.starts_with(&start), "{table}");
        let (_, main) = page.split_once("<main>").unwrap();
        let start = format!("<h2 id=\"verdict\">{overall}</h2>");
        assert_eq!(main.find(&start), main.find("<h2"), "{overall} is not the first heading");
        let word = overall.split(':').next().unwrap().to_lowercase();
        assert_eq!(json["ruling"], word.as_str());
    }
    // A run that is missing leaves open what would pass.
    let missing = &records[..records.len() - 1];
    let (read, _) = told(&session, missing);
    check(&read, &["UNCLEAR: 3 of 3 limits pass, a run is missing"], &[]);
}
