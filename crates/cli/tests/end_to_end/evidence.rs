//! What must hold of every results directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use dnslab_record::{Caveat, Measured, RunRecord, RunStatus};
use dnslab_results::ResultsDirectory;

pub(crate) const REPORT: [&str; 5] =
    ["report.html", "summary.json", "runs.csv", "series.csv", "table.md"];

/// Whether others used the machine while a variant was measured, by the summary: no word is certain then.
#[track_caller]
pub(crate) fn is_disturbed(results: &ResultsDirectory) -> bool {
    let text = results.written("summary.json").unwrap_or_else(|error| panic!("{error}"));
    let summary: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let variants = summary["variants"].as_array().expect("it has variants");
    variants.iter().any(|variant| variant["is_disturbed"] == true)
}

/// Reads all records. Every one that measured anything must add up.
#[track_caller]
pub(crate) fn records(results: &ResultsDirectory) -> Vec<RunRecord> {
    let records = results.runs().unwrap_or_else(|error| panic!("{error}"));
    for record in &records {
        if let Some(measured) = &record.measured {
            adds_up(&label(record), measured);
        }
    }
    records
}

/// [`records`], which must be this many, all valid, with answers and without wrong ones.
#[track_caller]
pub(crate) fn valid_records(results: &ResultsDirectory, count: usize) -> Vec<RunRecord> {
    let records = records(results);
    let path = results.path().display();
    let names: Vec<String> = records.iter().map(label).collect();
    assert_eq!(records.len(), count, "in {path}: {names:?}");
    for record in &records {
        let name = label(record);
        assert_eq!(record.status, RunStatus::Valid, "{name} in {path}");
        let counters = &measured(record).counters;
        assert!(counters.outcomes.answered > 0, "{name} in {path}: {counters:?}");
        let (outcomes, answers) = (&counters.outcomes, &counters.answers);
        // Nobody else sends on our sockets, and none of these servers ends a connection.
        let strange = answers.wrong + answers.unexpected + outcomes.malformed + outcomes.not_sent;
        assert_eq!(strange + outcomes.connection_lost, 0, "{name} in {path}: {counters:?}");
    }
    records
}

#[track_caller]
pub(crate) fn measured(record: &RunRecord) -> &Measured {
    let measured = record.measured.as_ref();
    measured.unwrap_or_else(|| panic!("{} measured nothing: {:?}", label(record), record.status))
}

/// Why a run failed, and the log that it kept.
#[track_caller]
pub(crate) fn failure(record: &RunRecord) -> (&str, &[String]) {
    match &record.status {
        RunStatus::Failed { reason, log_tail } => (reason, log_tail),
        other => panic!("{} did not fail: {other:?}", label(record)),
    }
}

pub(crate) fn is_cut(record: &RunRecord) -> bool {
    record.caveats.iter().any(|caveat| matches!(caveat, Caveat::CutShort { .. }))
}

/// `udp-1`.
pub(crate) fn label(record: &RunRecord) -> String {
    format!("{}-{}", record.variant, record.repetition)
}

/// Every due query has one outcome, and what is counted twice gives the same number.
#[track_caller]
fn adds_up(name: &str, measured: &Measured) {
    for counters in [&measured.counters, &measured.warm_up] {
        counters.outcomes.check().unwrap_or_else(|error| panic!("{name}: {error}"));
        let by_rcode: u64 = counters.answers.rcodes.values().sum();
        assert_eq!(by_rcode, counters.outcomes.answered, "{name}: {counters:?}");
        let most = counters.outcomes.due + counters.asked_again;
        assert!(counters.sent <= most, "{name}: {counters:?}");
    }
    let outcomes = measured.counters.outcomes;
    let served = measured.service_time.len();
    match &measured.turns {
        None => assert_eq!(served, outcomes.answered, "{name}: {outcomes:?}"),
        // Without what became due at the edges of slices.
        Some(_) => assert!((1..=outcomes.answered).contains(&served), "{name}: {outcomes:?}"),
    }
    assert!(measured.latency.len() >= served, "{name}: {outcomes:?}");
    let in_intervals: u64 = measured.intervals.iter().map(|interval| interval.due).sum();
    let due = outcomes.due + measured.warm_up.outcomes.due;
    assert_eq!(in_intervals, due, "{name}: the intervals do not add up");
    for interval in measured.intervals.iter().chain(&measured.seconds) {
        let by_rcode: u64 = interval.rcodes.values().sum();
        assert_eq!(by_rcode, interval.answered, "{name}: {interval:?}");
    }
    for window in &measured.windows {
        window.outcomes.check().unwrap_or_else(|error| panic!("{name}, {}: {error}", window.name));
        let by_rcode: u64 = window.rcodes.values().sum();
        assert_eq!(by_rcode, window.outcomes.answered, "{name}: {}", window.name);
    }
}

/// The whole report is there, and it is of these variants. Only the series may leave out a variant, if
/// nothing was measured of it.
#[track_caller]
pub(crate) fn report_is_whole(results: &ResultsDirectory, variants: &[&str]) {
    for name in REPORT {
        let path = results.path().join(name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for variant in variants.iter().filter(|_| name != "series.csv") {
            assert!(text.contains(variant), "`{variant}` is not in {path:?}");
        }
    }
}

/// No half-written file is left, and every record can be read.
#[track_caller]
pub(crate) fn is_intact(results: &ResultsDirectory) {
    results.session().unwrap_or_else(|error| panic!("{error}"));
    records(results);
    let parts: Vec<PathBuf> = files(results.path())
        .into_keys()
        .filter(|path| path.extension().is_some_and(|extension| extension == "part"))
        .collect();
    assert!(parts.is_empty(), "half-written: {parts:?}");
}

/// All files below `folder` with their content, by their relative path.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for entry in
            fs::read_dir(&next).unwrap_or_else(|error| panic!("{next:?}: {error}")).flatten()
        {
            let path = entry.path();
            let name = path.strip_prefix(folder).expect("it was found there").to_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(path),
                // A server's control socket cannot be read as a file.
                Ok(kind) if kind.is_file() => {
                    found.insert(name, fs::read(&path).unwrap_or_default());
                }
                _ => {}
            }
        }
    }
    found
}
