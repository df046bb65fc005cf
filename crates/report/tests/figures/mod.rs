//! Figures that stand in several places: in each table p50 <= p95 <= p99, and a figure that stands twice is the same.

use std::path::Path;

use dnslab_figures::Histogram;
use dnslab_record::{RunRecord, Session};
use dnslab_report::write_report;
use dnslab_results::ResultsDirectory;
use serde_json::Value;

use crate::golden::SAMPLES;
use crate::{between, cells, copy, read, report_of, runs_of, sample};

/// The quantiles of the tables, and what `summary.json` calls them.
const QUANTILES: [(&str, &str); 5] = [
    ("p50", "latency-p50"),
    ("p90", "p90_ns"),
    ("p95", "latency-p95"),
    ("p99", "latency-p99"),
    ("p99.9", "p999_ns"),
];

/// A duration as tables write it, nanoseconds; a time-out is longer than all, `-` is none.
fn ns(cell: &str) -> Option<f64> {
    if cell.starts_with("time-out") {
        return Some(f64::INFINITY);
    }
    let (number, unit) = cell.split_once(' ')?;
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

/// The rows of the first Markdown table in a text, the headings first.
fn rows(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with("| "));
    let lines = lines.take_while(|line| line.starts_with("| "));
    let row = |line: &str| {
        let cells = line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('\\', ""));
        cells.collect::<Vec<String>>()
    };
    lines.map(row).filter(|row| !row.iter().all(|cell| cell.starts_with("---"))).collect()
}

#[track_caller]
fn check_order(what: &str, row: &[String], header: &[String]) {
    let found = QUANTILES.iter().filter_map(|(name, _)| {
        let column = header.iter().position(|heading| heading == name)?;
        ns(row.get(column)?)
    });
    let found: Vec<f64> = found.collect();
    assert!(found.is_sorted(), "{what}: {header:?} {row:?}");
}

/// The value of a quantile in `summary.json`, nanoseconds; infinite if it is the time-out.
fn of_summary(variant: &Value, name: &str, key: &str) -> Option<f64> {
    let value = variant[key].as_f64().or_else(|| variant["metrics"][key]["value"].as_f64());
    match variant["time_outs"].get(name) {
        Some(_) => {
            assert_eq!(value, None, "{name} has a value and is the time-out: {variant}");
            Some(f64::INFINITY)
        }
        None => value,
    }
}

#[track_caller]
fn check_near(what: &str, one: f64, other: f64, within: f64) {
    let is_near = one == other || (one / other - 1.0).abs() <= within;
    assert!(is_near, "{what}: {one} and {other}");
}

/// Checks screen, tables, page, its charts and `summary.json` of one report against each other.
fn check(name: &str, [page, summary, _, _, markdown]: &[String; 5]) {
    let summary: Value = serde_json::from_str(summary).unwrap();
    let variants = summary["variants"].as_array().unwrap();
    let (screen, all) = markdown.split_once("<details>").unwrap();
    let (screen, all) = (rows(screen), rows(all));
    let section = between(page, "<table class=\"variants\">", "</table>");
    let data = between(page, "id=\"data\">", "</script>").replace("\\u003c", "<");
    let data: Value = serde_json::from_str(&data).unwrap();
    let hundredth = data["percentiles"]["slowest_share"].as_array().unwrap();
    let hundredth = hundredth.iter().position(|share| share.as_f64() == Some(0.01)).unwrap();
    for (place, variant) in variants.iter().enumerate() {
        let own = variant["name"].as_str().unwrap();
        let what = format!("{name}, {own}");
        let row = &all[1 + place];
        let shown = row[0].split(" [").next().unwrap_or_default();
        // Figures of runs that do not count are marked, and in no summary.
        assert_eq!(shown.trim_end_matches(" (INVALID)"), own, "{what}");
        check_order(&what, row, &all[0]);
        // The page has no column for the interval, which stands below the rate there.
        let on_page = cells(section, &format!("</i>{shown}</th>"));
        for (column, heading) in all[0].iter().enumerate().filter(|(column, _)| *column > 2) {
            assert_eq!(on_page[column - 1], row[column], "{what}: {heading}");
        }
        if variant["valid_runs"] == 0 {
            continue;
        }
        for (quantile, key) in QUANTILES {
            let Some(column) = all[0].iter().position(|heading| heading == quantile) else {
                continue;
            };
            match (of_summary(variant, quantile, key), ns(&row[column])) {
                (Some(value), Some(shown)) => check_near(&what, value, shown, 0.005),
                (value, shown) => assert_eq!(value, shown, "{what}: {quantile}"),
            }
        }
        // What the percentile chart has at 1 % is the p99.
        let chart = &data["percentiles"]["latency_ms"][place]["mean"][hundredth];
        let p99 = of_summary(variant, "p99", "latency-p99");
        if let (Some(ms), Some(ns)) = (chart.as_f64(), p99.filter(|ns| ns.is_finite())) {
            check_near(&format!("{what}: the chart"), ms * 1e6, ns, 0.001);
        }
        let shown = screen.iter().find(|row| row[0] == own);
        let Some(shown) = shown.filter(|_| own == summary["baseline"]) else { continue };
        check_order(&what, shown, &screen[0]);
        for (quantile, key) in QUANTILES {
            let column = screen[0].iter().position(|heading| heading == quantile);
            let shown = column.and_then(|column| ns(&shown[column]));
            let Some((shown, value)) = shown.zip(of_summary(variant, quantile, key)) else {
                continue;
            };
            // Digits that are not certain are left away, a tenth of the figure at most.
            check_near(&format!("{what}: {quantile} on the screen"), shown, value, 0.1);
        }
    }
}

#[test]
fn no_figure_of_a_sample_contradicts_another() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    for version in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        copy(&samples.join(version), folder.path());
        write_report(&ResultsDirectory::open(folder.path()).unwrap()).unwrap();
        check(version, &read(folder.path()));
    }
    let session = sample::session(3);
    check("three rounds", &report_of(&session, &runs_of(&session)));
    let folder = tempfile::tempdir().unwrap();
    let results = sample::open::write(&folder.path().join("results"), 1_000_000_000).unwrap();
    write_report(&results).unwrap();
    check("open loop", &read(results.path()));
    let session = sample::sweep::session(3);
    check("sweep", &report_of(&session, &sample::sweep::records(&session)));
}

/// Three rounds, in two of which `dot` loses 2 % of its queries.
fn lossy() -> (Session, Vec<RunRecord>) {
    let session = sample::session(3);
    let mut records = runs_of(&session);
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        if record.repetition == 3 {
            continue;
        }
        let timeout_ns = record.load.timeout_ns;
        let measured = record.measured.as_mut().unwrap();
        let outcomes = &mut measured.counters.outcomes;
        let lost = outcomes.answered / 50;
        outcomes.answered -= lost;
        outcomes.timed_out += lost;
        let mut latency = Histogram::new();
        latency.merge(&measured.latency);
        latency.record_many_ns(timeout_ns, latency.len() / 45);
        measured.latency = latency;
    }
    (session, records)
}

#[test]
fn a_time_out_in_some_rounds_is_one_statement() {
    const SAID: &str = "time-out (2 of 3 rounds)";
    let (mut session, records) = lossy();
    session.limits = vec!["p99<100ms".parse().unwrap(), "p99=10%".parse().unwrap()];
    let files = report_of(&session, &records);
    check("lossy", &files);
    let [page, summary, _, _, markdown] = &files;
    let (screen, all) = markdown.split_once("<details>").unwrap();
    let cell = |table: &[Vec<String>], quantile: &str| {
        let column = table[0].iter().position(|heading| heading == quantile).unwrap();
        let row = table.iter().find(|row| row[0].starts_with("dot")).unwrap();
        row[column].clone()
    };
    assert_eq!(cell(&rows(screen), "p99"), SAID);
    assert_eq!([cell(&rows(all), "p99"), cell(&rows(all), "p99.9")], [SAID, SAID]);
    assert!(ns(&cell(&rows(all), "p95")).is_some_and(f64::is_finite), "{all}");
    let sentence = "The p99 latency of dot is the time-out in 2 of 3 rounds.";
    assert!(screen.contains(sentence) && page.contains(sentence), "{screen}");
    let summary: Value = serde_json::from_str(summary).unwrap();
    let dot = &summary["variants"][2];
    assert_eq!(dot["time_outs"]["p99"], serde_json::json!({ "runs": 2, "of": 3 }));
    // No difference from the round that is left, and no pass.
    let compared = summary["comparisons"].as_array().unwrap().iter();
    let compared = compared.filter(|comparison| comparison["variant"] == "dot");
    assert!(compared.clone().any(|comparison| comparison["metric"] == "latency-p95"));
    assert!(!compared.clone().any(|comparison| comparison["metric"] == "latency-p99"));
    for ruling in summary["rulings"].as_array().unwrap() {
        let judged = ruling["variants"].as_array().unwrap().iter();
        let dot = judged.into_iter().find(|variant| variant["variant"] == "dot").unwrap();
        assert!(dot["ruling"] != "pass" && dot["found"].is_null(), "{ruling}");
    }
    assert!(markdown.contains(&format!("dot: p99 {SAID}")), "{markdown}");
}
