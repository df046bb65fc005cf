//! What is published for programs is what its schema says, in the eyes of a validator that others wrote
//! (python3-jsonschema).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dnslab_import::{ImportFacts, ImportSource, read, results_of};
use dnslab_record::{RunRecord, Session};
use dnslab_report::{dns_metrics, summary_schema, write_report};
use dnslab_results::ResultsDirectory;

use crate::{copy, sample};

/// Validates each line or file against a schema, and says what is wrong with it.
const VALIDATOR: &str = "
import json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
for path in sys.argv[2:]:
    text = open(path).read()
    objects = text.splitlines() if path.endswith('.jsonl') else [text]
    for place, text in enumerate(objects):
        for error in validator.iter_errors(json.loads(text)):
            print(path, place + 1, list(error.absolute_path), error.message[:300])
";

/// What a validator says of these files, one fault a line; nothing if they satisfy the schema.
pub(crate) fn faults(schema: &Path, files: &[PathBuf]) -> String {
    let output = Command::new("/usr/bin/python3")
        .args(["-c", VALIDATOR])
        .arg(schema)
        .args(files)
        .output()
        .expect("Debian's python3 is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "python3-jsonschema is needed: {errors}");
    said.into_owned()
}

/// The session and records of a file of the other crate's samples.
pub(crate) fn imported(names: &[&str]) -> (Session, Vec<RunRecord>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/dnsperf");
    let sources = names.iter().flat_map(|name| {
        let file = format!("{name}.txt");
        let runs = read(&fs::read(folder.join(&file)).unwrap()).unwrap();
        let variant = (*name).to_owned();
        runs.into_iter().map(move |run| ImportSource {
            variant: variant.clone(),
            file: file.clone(),
            run,
        })
    });
    let facts = ImportFacts {
        name: "dnsperf".to_owned(),
        dnslab: "0.1.0".to_owned(),
        command: vec!["dnslab".to_owned(), "import".to_owned()],
        imported: "2026-11-25T02:00:00Z".to_owned(),
    };
    results_of(facts, sources.collect())
}

/// A results directory in `folder` with these runs.
pub(crate) fn written(folder: &Path, experiment: &(Session, Vec<RunRecord>)) -> ResultsDirectory {
    let results = ResultsDirectory::create(folder, &experiment.0).unwrap();
    experiment.1.iter().for_each(|record| results.write_run(record).unwrap());
    results
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/summary.schema.json");
    let made = summary_schema();
    if std::env::var_os("DNSLAB_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == made,
        "{} is stale: write it anew with `DNSLAB_BLESS=1 cargo test -p dnslab-report schema`",
        path.display()
    );
}

#[test]
fn each_summary_satisfies_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut summaries = Vec::new();
    for sample in fs::read_dir(samples).unwrap() {
        let sample = sample.unwrap();
        let own = folder.path().join(sample.file_name());
        copy(&sample.path(), &own);
        write_report(&ResultsDirectory::open(&own).unwrap()).unwrap();
        summaries.push(own.join("summary.json"));
    }
    let path = |name: &str| folder.path().join(name);
    let made = [
        ("whole", sample::write(&path("whole")).unwrap()),
        ("chain", sample::chain::write(&path("chain")).unwrap()),
        ("logs", sample::chain::write_logs(&path("logs")).unwrap()),
        ("open", sample::open::write(&path("open"), 10_000_000_000).unwrap()),
        ("rate", sample::capacity::write_rate(&path("rate")).unwrap()),
        ("window", sample::capacity::write_window(&path("window")).unwrap()),
        (
            "imported",
            written(&folder.path().join("imported"), &imported(&["2.10-udp", "2.14-dot"])),
        ),
    ];
    for (name, results) in &made {
        write_report(results).unwrap();
        summaries.push(folder.path().join(name).join("summary.json"));
    }
    assert!(summaries.len() >= 8, "{summaries:?}");
    let schema = folder.path().join("schema.json");
    fs::write(&schema, summary_schema()).unwrap();
    assert_eq!(faults(&schema, &summaries), "");
    // A test that finds nothing in anything would prove nothing.
    let wrong = folder.path().join("wrong.json");
    let text = fs::read_to_string(&summaries[0]).unwrap();
    fs::write(&wrong, text.replacen("\"format\": 1", "\"format\": 3", 1)).unwrap();
    assert!(faults(&schema, &[wrong]).contains("['format'] 1 was expected"));
}

/// The schema of DNS-OARC's dns-metrics, as it is in <https://github.com/DNS-OARC/dns-metrics> at commit b433f35
/// (2024-05-30), whose licence is CC0 1.0.
const DNS_METRICS: &str = include_str!("dns-metrics.schema.json");

#[test]
fn dns_metrics_satisfy_the_schema_of_dns_oarc() {
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("schema.json");
    fs::write(&schema, DNS_METRICS).unwrap();
    let mut files = Vec::new();
    let own = sample::write(&folder.path().join("own")).unwrap();
    let all = [
        ("own", (own.session().unwrap(), own.runs().unwrap())),
        ("imported", imported(&["2.10-udp", "2.14-dot", "2.10-interrupted", "2.10-unanswered"])),
    ];
    for (name, (session, records)) in &all {
        let mut records = records.clone();
        // One that failed has no statistics.
        records.retain(|record| record.measured.is_some());
        let text = dns_metrics(session, &records);
        let path = folder.path().join(format!("{name}.jsonl"));
        fs::write(&path, &text).unwrap();
        files.push(path);
        // What was exported can be imported, and has the same counts.
        let again = read(text.as_bytes()).unwrap();
        let measured = records.iter().filter_map(|record| record.measured.as_ref());
        let counts = measured.map(|measured| measured.counters.outcomes.answered);
        let counts: Vec<u64> = counts.collect();
        let read: Vec<u64> = again.iter().map(|run| run.totals.completed).collect();
        assert_eq!(read, counts, "{name}");
    }
    assert_eq!(faults(&schema, &files), "");
    let wrong = folder.path().join("wrong.jsonl");
    let text = fs::read_to_string(&files[0]).unwrap();
    fs::write(&wrong, text.replace("\"since\":", "\"from\":")).unwrap();
    assert!(!faults(&schema, &[wrong]).is_empty());
}

/// `docs/RESULTS.md`.
fn manual() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/RESULTS.md");
    fs::read_to_string(path).unwrap()
}

/// The report of a sample, which has the files that every result has.
fn reported(folder: &Path) -> ResultsDirectory {
    let results = sample::write(&folder.join("sample")).unwrap();
    write_report(&results).unwrap();
    results
}

/// A column by the name under which its family is described once.
fn family(heading: &str) -> String {
    for figure in ["mean", "p50", "p90", "p95", "p99", "p999", "max"] {
        if let Some(name) = heading.strip_suffix(&format!("_{figure}_ns")) {
            return format!("{name}_*_ns");
        }
    }
    for width in ["1s", "100ms", "10ms", "1ms"] {
        if let Some(name) = heading.strip_prefix(&format!("pacing_{width}_")) {
            return format!("pacing_*_{name}");
        }
    }
    heading.to_owned()
}

#[test]
fn every_column_is_in_the_manual() {
    let folder = tempfile::tempdir().unwrap();
    let results = reported(folder.path());
    let manual = manual();
    for (file, least) in [("runs.csv", 100), ("series.csv", 20), ("resources.csv", 10)] {
        let text = fs::read_to_string(results.path().join(file)).unwrap();
        let headings: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert!(headings.len() > least, "{file}: {headings:?}");
        for heading in headings {
            let is_told = [heading.to_owned(), family(heading)]
                .iter()
                .any(|name| manual.contains(&format!("`{name}`")));
            assert!(is_told, "docs/RESULTS.md lacks `{heading}` of {file}");
        }
    }
}

#[test]
fn the_example_for_pandas_runs() {
    let folder = tempfile::tempdir().unwrap();
    let results = reported(folder.path());
    let manual = manual();
    let (_, example) = manual.split_once("```python\n").expect("it has an example");
    let (example, _) = example.split_once("```").expect("the example has an end");
    let output = Command::new("/usr/bin/python3")
        .args(["-c", example])
        .current_dir(results.path())
        .output()
        .expect("Debian's python3 is installed");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "python3-pandas is needed: {errors}");
    // The rates of the example are those of `runs.csv`: each variant has its own.
    let runs = fs::read_to_string(results.path().join("runs.csv")).unwrap();
    let headings: Vec<&str> = runs.lines().next().unwrap().split(',').collect();
    let column = headings.iter().position(|name| *name == "answered_qps").unwrap();
    for variant in ["udp", "dot"] {
        let row = runs.lines().find(|line| line.starts_with(&format!("{variant},1,"))).unwrap();
        let qps: f64 = row.split(',').nth(column).unwrap().parse().unwrap();
        let line = said.lines().find(|line| line.starts_with(variant)).expect("a row for each");
        let first: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        // Intervals are of events; a sample's are drawn beside its sums.
        assert!((first / qps - 1.0).abs() < 0.1, "{variant}: {line}, {qps}");
    }
    assert!(said.contains("second"), "{said}");
}
