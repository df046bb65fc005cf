//! The report again from the results alone, and the limits of `--limit`.

use std::fs;

use crate::evidence::{REPORT, files, valid_records};
use crate::room::{Room, SHORT, UDP_AND_TCP};

#[test]
fn the_report_is_made_again_from_the_results_alone() {
    let room = Room::with_load();
    room.experiment(&format!("repeat.runs = 2\n{SHORT}{UDP_AND_TCP}"));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let results = room.results();
    let before = files(results.path());
    // Somewhere else, under another name, without anything that a report wrote.
    let moved = room.path().join("moved");
    fs::rename(results.path(), &moved).unwrap();
    for name in REPORT {
        fs::remove_file(moved.join(name)).unwrap();
    }
    let done = room.dnslab(&["report", "moved"]).exits_with(0).prints("report: moved/report.html");
    let after = files(&moved);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{done}");
    for (name, content) in &before {
        assert!(after.get(name) == Some(content), "{name:?} differs: {done}");
    }
}

#[test]
fn a_cost_over_the_limit_has_its_own_exit_code() {
    let room = Room::with_load();
    // 4 x 100 outstanding with 50 ms each cannot be more than 8,000 qps.
    room.experiment(&format!(
        "baseline = \"fast\"\nrepeat.runs = 3\n{SHORT}\
         [[variant]]\nname = \"fast\"\n\
         [[variant]]\nname = \"slow\"\nserver.delay = \"50ms\"\n"
    ));
    let limited = |limit: &str| {
        room.dnslab(&["run", "./experiment.toml", "--results", limit, "--limit", limit])
    };
    let done = limited("answered_qps=1%").exits_with(4);
    let done = done.prints("over the limit: answered_qps of slow").prints("slow answers");
    let found = crate::room::folders(&room.path().join("answered_qps=1%"));
    let results = dnslab_measure::ResultsDirectory::open(&found[0]).unwrap();
    valid_records(&results, 6);
    assert!(results.path().join("report.html").exists(), "{done}");
    // A limit that nothing can exceed: no rate falls by more than all of it.
    let done = limited("answered_qps=100%").exits_with(0);
    assert!(!done.stdout.contains("over the limit"), "{done}");
}
