//! The first screens, as they are printed on terminals of 80 and of 100 columns.

use std::path::Path;

use dnslab_analysis::Summary;
use dnslab_record::{
    Caveat, CommonLoad, Compared, LoadFacts, LoadMode, OpenPace, RunRecord, Session,
};
use dnslab_report::{Line, Terminal, capacity_screen, screen};
use dnslab_results::{ResultsDirectory, ResultsError};
use dnslab_traffic::Pace;

use crate::{runs_of, sample};

/// Lines that follow a screen: the path of the report, and a hint.
const FOLLOWING: usize = 2;
/// Most lines of a terminal for up to six variants, one more for each further one.
const MAX_LINES: usize = 20;

/// Checks the bounds of a screen, and what it says.
#[track_caller]
fn check(name: &str, variants: usize, screen: &dyn Fn(Terminal) -> Vec<Line>) {
    for width in [80, 100] {
        let lines: Vec<String> = screen(Terminal { width, following: FOLLOWING })
            .iter()
            .map(|line| line.iter().map(|piece| piece.text.as_str()).collect::<String>())
            .collect();
        let text = lines.join("\n");
        let most = MAX_LINES + variants.saturating_sub(6);
        assert!(lines.len() + FOLLOWING <= most, "{} lines of {most}:\n{text}", lines.len());
        for line in &lines {
            assert!(line.chars().count() <= width, "wider than {width}: {line}");
        }
        insta::assert_snapshot!(format!("{name}-{width}"), text);
    }
}

/// Checks the screen of an experiment.
#[track_caller]
fn check_runs(name: &str, session: &Session, records: &[RunRecord]) {
    let summary = Summary::of(session, records);
    check(name, summary.variants.len(), &|terminal| screen(session, records, &summary, terminal));
}

fn written(
    write: impl Fn(&Path) -> Result<ResultsDirectory, ResultsError>,
) -> (tempfile::TempDir, ResultsDirectory) {
    let folder = tempfile::tempdir().unwrap();
    let results = write(&folder.path().join("results")).unwrap();
    (folder, results)
}

#[test]
fn of_an_experiment_with_pairs_and_a_common_load() {
    let names: Vec<String> = sample::session(3).variants;
    let compared =
        names.windows(2).map(|two| Compared { variant: two[1].clone(), against: two[0].clone() });
    let session = Session {
        common_rate_qps: Some(1_600.0),
        compared: compared.collect(),
        ..sample::session(3)
    };
    let mut records = runs_of(&session);
    for record in &mut records {
        let mode = LoadMode::Open { rate_qps: 1_600.0, pace: OpenPace::constant(Pace::Constant) };
        record.common_load = Some(CommonLoad {
            load: LoadFacts { mode, ..record.load.clone() },
            measured: record.measured.clone().unwrap(),
            watched: record.watched.clone(),
            caveats: vec![Caveat::RateMissed { intended_qps: 1_600.0, offered_qps: 1_500.0 }],
            bottleneck: record.bottleneck.clone(),
        });
    }
    check_runs("pairs", &session, &records);
}

#[test]
fn of_an_open_loop() {
    let (_folder, results) = written(|path| sample::open::write(path, 10_000_000_000));
    check_runs("open", &results.session().unwrap(), &results.runs().unwrap());
}

#[test]
fn of_chains_of_servers() {
    let (_folder, results) = written(sample::chain::write);
    check_runs("chain", &results.session().unwrap(), &results.runs().unwrap());
}

#[test]
fn of_runs_that_are_missing_invalid_and_failed() {
    let session = sample::session(3);
    let mut records = runs_of(&session);
    records.pop();
    let failed = records.iter_mut().find(|record| record.variant == "dot").unwrap();
    sample::fail(failed);
    check_runs("missing", &session, &records);
}

#[test]
fn of_searches() {
    for (name, write) in [
        ("rate", sample::capacity::write_rate as fn(&Path) -> _),
        ("window", sample::capacity::write_window),
    ] {
        let (_folder, results) = written(write);
        let (session, records) = (results.session().unwrap(), results.runs().unwrap());
        let capacity = results.capacity().unwrap().unwrap();
        check(name, 1, &|terminal| capacity_screen(&session, &records, &capacity, terminal));
    }
}

#[test]
fn of_a_server_with_several_numbers_of_threads() {
    let session = sample::scaling::session(5);
    let records = sample::scaling::records(&session, &["threads-8"]);
    check_runs("threads", &session, &records);
}
