//! The report of whole results directories.

use std::fs;
use std::path::Path;

use dnslab_measure::{LoadMode, ResultsDirectory, ResultsError, RunRecord, RunStatus, Session};
use dnslab_report::{ReportError, write_report};

mod sample;

/// Every file of a report.
const FILES: [&str; 5] = ["report.html", "summary.json", "runs.csv", "series.csv", "table.md"];

/// Writes a results directory of these runs and its report; returns the files by [`FILES`].
fn report_of(session: &Session, records: &[RunRecord]) -> [String; 5] {
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("results"), session).unwrap();
    for record in records {
        results.write_run(record).unwrap();
    }
    write_report(&results).unwrap();
    read(results.path())
}

/// Reads the files of a report.
fn read(folder: &Path) -> [String; 5] {
    FILES.map(|name| fs::read_to_string(folder.join(name)).unwrap())
}

/// The planned runs of a session, each valid, with a window of 1 s.
fn runs_of(session: &Session) -> Vec<RunRecord> {
    let run = |(position, case): (usize, &dnslab_measure::CaseId)| {
        let behaviour = sample::VARIANTS.iter().find(|of| of.name == case.variant).unwrap();
        sample::run(behaviour, case.repetition, position as u32, 1_000_000_000)
    };
    session.plan.iter().enumerate().map(run).collect()
}

#[test]
fn the_same_directory_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::write(&folder.path().join("results")).unwrap();
    write_report(&results).unwrap();
    let first = read(results.path());
    for name in FILES {
        fs::remove_file(results.path().join(name)).unwrap();
    }
    write_report(&results).unwrap();
    for (name, (one, two)) in FILES.iter().zip(first.iter().zip(&read(results.path()))) {
        assert!(one == two, "{name} differs");
    }
    // A copy elsewhere is the same directory: no path is in the report.
    assert!(!first[0].contains(folder.path().to_str().unwrap()));
}

#[test]
fn samples_of_every_format_are_read() {
    for version in ["v1"] {
        let folder = tempfile::tempdir().unwrap();
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples").join(version);
        copy(&kept, folder.path());
        let results = ResultsDirectory::open(folder.path()).unwrap();
        write_report(&results).unwrap();
        let [page, summary, runs, series, table] = read(results.path());
        assert!(page.contains("could not listen on TCP socket"), "the log of the failed run");
        assert!(page.contains("listen-on port 5300"), "the server's configuration");
        let sentences: serde_json::Value = serde_json::from_str(&summary).unwrap();
        let lines: Vec<&str> = sentences["sentences"]
            .as_array()
            .unwrap()
            .iter()
            .map(|sentence| sentence.as_str().unwrap())
            .collect();
        insta::assert_snapshot!(format!("{version}-table"), table);
        insta::assert_snapshot!(format!("{version}-sentences"), lines.join("\n"));
        insta::assert_snapshot!(format!("{version}-runs"), runs);
        let head: Vec<&str> = series.lines().take(3).collect();
        insta::assert_snapshot!(format!("{version}-series"), head.join("\n"));
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_newer_format_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let results = sample::write(&folder.path().join("results")).unwrap();
    for name in ["runs/udp-1/record.json", "session.json"] {
        let path = results.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen("\"format\": 1", "\"format\": 99", 1)).unwrap();
        let error = write_report(&results).unwrap_err();
        let ReportError::Results(ResultsError::Newer { path: named, found, .. }) = error else {
            panic!("{error}");
        };
        assert_eq!((named, found), (path.clone(), 99));
        fs::write(&path, text).unwrap();
    }
    write_report(&results).unwrap();
}

#[test]
fn a_directory_without_a_run_has_a_report() {
    let session = sample::session(2);
    let [page, _, runs, series, table] = report_of(&session, &[]);
    assert!(page.contains("No run has ended yet"));
    assert!(page.contains("<td>not run</td>"));
    assert_eq!((runs.lines().count(), series.lines().count()), (1, 1));
    assert!(table.contains("| udp [a] | - |"), "{table}");
}

#[test]
fn a_variant_with_failed_runs_only_is_shown_and_not_compared() {
    let session = sample::session(2);
    let mut records = runs_of(&session);
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        sample::fail(record);
    }
    let [page, summary, runs, _, table] = report_of(&session, &records);
    assert!(page.contains("No run of this variant is valid"));
    assert!(table.contains("| dot ["), "{table}");
    assert!(!table.contains("dot answers"), "{table}");
    assert!(table.contains("tcp answers"), "{table}");
    assert_eq!(runs.matches(",failed,named exited with status 1").count(), 2);
    assert!(serde_json::from_str::<serde_json::Value>(&summary).is_ok());
}

#[test]
fn a_failed_baseline_gives_no_answer() {
    let session = sample::session(1);
    let mut records = runs_of(&session);
    records.iter_mut().filter(|record| record.variant == "udp").for_each(sample::fail);
    let [page, ..] = report_of(&session, &records);
    assert!(page.contains("No answer: the baseline udp has no valid run."));
}

#[test]
fn one_run_of_each_gives_no_interval() {
    let session = sample::session(1);
    let [page, summary, _, _, table] = report_of(&session, &runs_of(&session));
    assert!(table.contains("too few runs"), "{table}");
    assert!(!table.contains("inf"), "{table}");
    assert!(!table.contains("NaN"), "{table}");
    assert!(page.contains("One valid run only"));
    assert!(serde_json::from_str::<serde_json::Value>(&summary).is_ok());
}

#[test]
fn an_invalid_run_is_in_no_figure() {
    let session = sample::session(2);
    let good = runs_of(&session);
    let mut records = good.clone();
    let wrong = records.iter_mut().find(|record| record.variant == "dot").unwrap();
    wrong.status = RunStatus::Invalid { reason: "wrong, \"very\"\nwrong".to_owned() };
    wrong.measured.as_mut().unwrap().intervals.iter_mut().for_each(|of| of.answered = 77_777_777);
    let [page, _, runs, ..] = report_of(&session, &records);
    assert!(runs.contains("invalid,\"wrong, \"\"very\"\"\nwrong\","), "{runs}");
    assert!(page.contains("1 run is invalid or failed"));
    // Nor in a chart: 77,777,777 answers in 0.1 s are 777,777,770 queries per second.
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!data.contains("77777"), "the invalid run is in the chart data");
    assert!(report_of(&session, &good)[0] != page);
}

/// The field of the first run of `runs.csv` under a heading.
fn first_field<'a>(runs: &'a str, heading: &str) -> &'a str {
    let mut lines = runs.lines().map(|line| line.split(','));
    let place = lines.next().unwrap().position(|name| name == heading).unwrap();
    lines.next().unwrap().nth(place).unwrap()
}

#[test]
fn an_open_loop_is_told_by_its_latency() {
    let session = sample::session(3);
    let mut records = runs_of(&session);
    for record in &mut records {
        record.measured.as_mut().unwrap().send_lag.record_ns(5_000);
    }
    let [page, _, runs, ..] = report_of(&session, &records);
    assert!(page.contains("tcp answers <strong>"), "the headline of a closed loop");
    assert_eq!(first_field(&runs, "send_lag_max_ns"), "", "a closed loop has no lag");
    for record in records.iter_mut().filter(|record| record.variant == "udp") {
        record.load.mode = LoadMode::Open { rate_qps: 150_000.0, pace: "constant".to_owned() };
        let outcomes = &mut record.measured.as_mut().unwrap().counters.outcomes;
        outcomes.timed_out += outcomes.answered / 4;
        outcomes.answered -= outcomes.answered / 4;
    }
    records.sort_by_key(|record| record.variant != "udp");
    (0..).zip(&mut records).for_each(|(position, record)| record.position = position);
    let [page, _, runs, ..] = report_of(&session, &records);
    assert!(page.contains("tcp has <strong>"), "the headline is the median latency");
    assert!(
        page.contains("<p class=\"remarks\">Queries lost: udp 25.0\u{a0}%.</p>"),
        "and what was lost"
    );
    assert_ne!(first_field(&runs, "send_lag_max_ns"), "");
}

#[test]
fn figures_of_the_server_are_those_of_the_window() {
    let session = sample::session(1);
    let mut records = runs_of(&session);
    let resources = &mut records[0].measured.as_mut().unwrap().resources;
    for (at, sample) in (0..).zip(&mut resources.samples) {
        // Ten of each in a sample's 0.1 s: the window of 1 s has a hundred, the whole load more.
        (sample.udp_drops, sample.steal_ns) = (10 * at, 10 * at);
    }
    let [_, _, runs, ..] = report_of(&session, &records);
    for (heading, expected) in
        [("server_udp_drops", "100"), ("steal_ns", "100"), ("server_context_switches", "9000")]
    {
        assert_eq!(first_field(&runs, heading), expected, "{heading}");
    }
}

#[test]
fn a_caveat_of_some_runs_says_of_how_many() {
    let session = sample::session(3);
    let [page, _, _, _, table] = report_of(&session, &runs_of(&session));
    assert!(table.contains("(in 1 of 3 runs)"), "{table}");
    assert!(page.contains("(in 1 of 3 runs)"));
    assert!(!table.contains("(in 3 of 3 runs)"), "{table}");
}

#[test]
fn names_from_outside_cannot_leave_their_place() {
    const NAME: &str = "</script><b>|,\"";
    let mut session = sample::session(2);
    session.question = "</title><script>alert(1)</script>".to_owned();
    let mut records = runs_of(&session);
    session.variants.iter_mut().filter(|name| *name == "dot").for_each(|name| *name = NAME.into());
    for case in session.plan.iter_mut().filter(|case| case.variant == "dot") {
        case.variant = NAME.to_owned();
    }
    for record in records.iter_mut().filter(|record| record.variant == "dot") {
        record.variant = NAME.to_owned();
    }
    let folder = tempfile::tempdir().unwrap();
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    for record in &records {
        results.write_run(record).unwrap();
    }
    write_report(&results).unwrap();
    let [page, _, runs, _, table] = read(results.path());
    assert_eq!(page.matches("</script>").count(), 2, "the data block's and the bundle's");
    assert!(!page.contains("<b>|"), "the name opened an element");
    assert!(!page.contains("<script>alert"), "the question opened an element");
    assert!(page.contains("\\u003c/script>\\u003cb>|,"), "the name is in the chart data");
    assert!(table.contains("&lt;/script>&lt;b>\\|,\""), "{table}");
    assert!(runs.contains("\n\"</script><b>|,\"\"\",1,"), "{runs}");
}

#[test]
fn a_plan_that_contradicts_the_variants_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = sample::session(1);
    session.variants.retain(|name| name != "dot");
    let results = ResultsDirectory::create(&folder.path().join("results"), &session).unwrap();
    let error = write_report(&results).unwrap_err();
    assert!(error.to_string().contains("`dot`"), "{error}");
}

#[test]
fn the_policy_of_the_page_allows_nothing_from_outside() {
    let session = sample::session(1);
    let [page, ..] = report_of(&session, &runs_of(&session));
    let policy = page.split("http-equiv=\"Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!page.contains(" style=\""), "the policy would refuse it");
    assert!(!page.contains(" src="), "the page loads something");
}
