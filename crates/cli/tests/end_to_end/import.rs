//! What dnsperf printed, imported: its totals are dnsperf's own, and nothing else is a figure.

use std::fs;
use std::process::Command;

use dnslab_analysis::Summary;
use dnslab_record::{Measured, Metric, RunRecord};
use dnslab_results::ResultsDirectory;
use dnslab_wire::Transport;

use crate::command::Running;
use crate::room::Room;
use crate::running_server::{queries, serve};

/// The figure behind a heading of dnsperf's statistics: `Queries sent:         15000`.
fn printed<'a>(text: &'a str, heading: &str) -> &'a str {
    let line = text.lines().find(|line| line.trim_start().starts_with(heading));
    let value = line.and_then(|line| line.split_once(':')).expect("dnsperf prints it").1;
    value.split_whitespace().next().expect("a figure stands behind it")
}

#[test]
fn totals_of_a_real_dnsperf_are_its_own() {
    let room = Room::with_load();
    // Some answers are lost, and some names do not exist.
    let (_serving, at) = serve(&room, "127.0.0.1", &["--loss", "1%"]);
    room.write("queries.txt", &(queries() + "none.example.test A\n"));
    let port = at(Transport::Udp).port().to_string();
    for (file, words) in [
        ("first.txt", &["-c", "4", "-q", "8", "-l", "1", "-S", "0.2"][..]),
        ("second.txt", &["-c", "4", "-q", "8", "-l", "1", "-S", "0.2"]),
        ("tcp.txt", &["-m", "tcp", "-c", "2", "-q", "4", "-l", "1"]),
    ] {
        let mut dnsperf = Command::new("dnsperf");
        dnsperf.args(["-s", "127.0.0.1", "-p", &port, "-d", "queries.txt", "-t", "0.2", "-W"]);
        dnsperf.args(words).args(["-Q", "2000"]);
        let done = Running::start(dnsperf, room.path()).finish().exits_with(0);
        room.write(file, &done.stdout);
    }
    let words = ["import", "dnsperf", "udp=first.txt", "udp=second.txt", "tcp.txt", "--out", "out"];
    let done = room.dnslab(&words).exits_with(0);
    assert!(done.stdout.contains("measured by dnsperf 2."), "{done}");
    assert!(done.stdout.contains("Bottleneck: not known."), "{done}");
    assert!(!done.stdout.contains("dnslab itself may add"), "{done}");

    let results = ResultsDirectory::open(&room.path().join("out")).unwrap();
    let (session, records) = (results.session().unwrap(), results.runs().unwrap());
    let cases: Vec<(&str, u32)> =
        records.iter().map(|record| (record.variant.as_str(), record.repetition)).collect();
    assert_eq!(cases, [("udp", 1), ("udp", 2), ("tcp", 1)]);
    for (record, file) in records.iter().zip(["first.txt", "second.txt", "tcp.txt"]) {
        check(record, &fs::read_to_string(room.path().join(file)).unwrap());
    }
    let summary = Summary::of(&session, &records);
    let sent: u64 =
        records.iter().map(|record| record.measured.as_ref().unwrap().counters.sent).sum();
    let due: u64 = summary.variants.iter().map(|variant| variant.outcomes.due).sum();
    assert_eq!(due, sent);

    // The report of the directory can be written again, and says whose figures these are.
    room.dnslab(&["report", "out"]).exits_with(0);
    let page = fs::read_to_string(room.path().join("out/report.html")).unwrap();
    for text in ["These figures are those of dnsperf 2.", "dnslab applied no load", "not known"] {
        assert!(page.contains(text), "{text}");
    }
    // What is not known is no zero.
    let runs = fs::read_to_string(room.path().join("out/runs.csv")).unwrap();
    let rows: Vec<Vec<&str>> = runs.lines().map(|line| line.split(',').collect()).collect();
    for heading in ["late", "wrong", "server_busy_share", "host_udp_receive_drops", "self_check"] {
        let column = rows[0].iter().position(|known| *known == heading).expect("a column");
        assert!(rows[1..].iter().all(|row| row[column].is_empty()), "{heading}");
    }
    let error = room.dnslab(&["run", "--resume", "out"]).exits_with(2);
    error.complains("was imported");
}

/// The figures of a record are those that dnsperf printed.
fn check(record: &RunRecord, text: &str) {
    let measured = record.measured.as_ref().unwrap();
    let outcomes = &measured.counters.outcomes;
    assert_eq!(measured.counters.sent.to_string(), printed(text, "Queries sent"));
    assert_eq!(outcomes.answered.to_string(), printed(text, "Queries completed"));
    assert_eq!(outcomes.timed_out.to_string(), printed(text, "Queries lost"));
    let codes = text.lines().find(|line| line.contains("Response codes:")).unwrap();
    for (code, count) in &measured.counters.answers.rcodes {
        assert!(codes.contains(&format!("{code} {count} (")), "{code} {count}: {codes}");
    }
    let qps: f64 = printed(text, "Queries per second").parse().unwrap();
    assert!((record.figure(Metric::AnsweredQps).unwrap().at_least() / qps - 1.0).abs() < 1e-6);
    let latency: f64 = printed(text, "Average Latency").parse().unwrap();
    assert!((record.figure(Metric::LatencyMean).unwrap().at_least() / 1e9 - latency).abs() < 1e-9);
    let has_intervals = !measured.intervals.is_empty();
    assert_eq!(has_intervals, record.variant == "udp");
    if has_intervals {
        check_intervals(measured, text);
    }
}

/// Each interval has the answers of its printed rate. dnsperf 2.10 divides the first rate by the seconds since 1970: what
/// then is left of it is none, and neither it nor the time after the last line is an interval.
fn check_intervals(measured: &Measured, text: &str) {
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let rates: Vec<(f64, f64)> =
        lines.filter_map(|(time, rate)| Some((time.parse().ok()?, rate.parse().ok()?))).collect();
    assert!(rates.len() >= 3, "a rate for each fifth of a second: {text}");
    let answered = measured.intervals.iter().map(|interval| interval.answered);
    let is_first_known = measured.intervals[0].at_ns == 0;
    assert_eq!(is_first_known, rates[0].1 > 1.0, "{text}");
    let printed = rates.windows(2).map(|pair| (pair[1].1 * (pair[1].0 - pair[0].0)).round() as u64);
    let of_lines: Vec<u64> = answered.clone().skip(usize::from(is_first_known)).collect();
    assert_eq!(of_lines[..rates.len() - 1], printed.collect::<Vec<u64>>(), "{text}");
    if is_first_known {
        assert_eq!(answered.sum::<u64>(), measured.counters.outcomes.answered, "{text}");
    }
}

#[test]
fn what_cannot_be_imported_is_named_with_its_line() {
    let room = Room::quiet();
    let sample = include_str!("../../../import/tests/dnsperf/2.10-udp.txt");
    room.write("whole.txt", sample);
    room.write("cut.txt", &sample[..sample.find("Queries lost").unwrap() - 2]);
    let check = |words: &[&str], complaint: &str| {
        let words = [&["import", "dnsperf", "--out", "out"], words].concat();
        room.dnslab(&words).exits_with(2).errors(1).complains(complaint);
        assert!(!room.path().join("out").exists(), "nothing is written");
    };
    check(&["whole.txt", "cut.txt"], "cut.txt: the statistics that begin in line 12 are cut");
    check(&["none.txt"], "cannot read none.txt");
    check(&["a/b=whole.txt"], "`a/b` cannot be a name, since a folder is named so");
    room.write("other.txt", "hello\n");
    check(&["other.txt"], "other.txt: no run of dnsperf is in it");
    room.dnslab(&["import", "dnsperf", "whole.txt", "--out", "out", "--json"]).exits_with(0);
    // A results directory is not written into again.
    room.dnslab(&["import", "dnsperf", "whole.txt", "--out", "out"]).exits_with(1);
}

/// dns-metrics of a real load, in the place of the first screen and from its results.
#[test]
fn a_load_is_told_as_dns_metrics() {
    let room = Room::with_load();
    let (_serving, at) = serve(&room, "127.0.0.1", &[]);
    room.write("queries.txt", &queries());
    let target = at(Transport::Tcp).to_string();
    let load =
        ["load", &target, "--transport", "tcp", "--clients", "4", "--queries", "queries.txt"];
    let short = ["--duration", "300ms", "--warm-up", "100ms", "--json", "dns-metrics"];
    let done = room.dnslab(&[&load[..], &short].concat()).exits_with(0);
    let results = room.results();
    let exported = room.dnslab(&["export", "dns-metrics", &results.path().display().to_string()]);
    assert_eq!(exported.exits_with(0).stdout, done.stdout);
    let objects: Vec<serde_json::Value> =
        done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let objects_of =
        |kind: &str| objects.iter().filter(|object| object["type"] == kind).collect::<Vec<_>>();
    assert_eq!((objects_of("header").len(), objects_of("stats_sum").len()), (1, 1));
    let record = results.runs().unwrap().remove(0);
    let measured = record.measured.as_ref().unwrap();
    let sum = objects_of("stats_sum")[0];
    assert_eq!(sum["responses"], measured.counters.outcomes.answered);
    assert_eq!(sum["queries"], measured.counters.outcomes.due);
    let buckets = sum["response_latency"]["buckets"].as_array().unwrap();
    let counted: u64 = buckets.iter().map(|bucket| bucket[2].as_u64().unwrap()).sum();
    assert_eq!(counted, measured.service_time.len());
    assert!(objects_of("stats_periodic").len() >= 2, "{done}");
    // And it can be imported.
    room.write("metrics.json", &done.stdout);
    let imported =
        room.dnslab(&["import", "dnsperf", "metrics.json", "--out", "out"]).exits_with(0);
    assert!(imported.stdout.contains("measured by dnslab"), "{imported}");
}
