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
    let limited = |limit: &str, further: &[&str]| {
        let words = ["run", "./experiment.toml", "--results", limit, "--limit", limit];
        room.dnslab(&[&words[..], further].concat())
    };
    let results = |limit: &str| {
        let found = crate::room::folders(&room.path().join(limit));
        dnslab_measure::ResultsDirectory::open(&found[0]).unwrap()
    };
    let read = |limit: &str, name: &str| {
        std::fs::read_to_string(results(limit).path().join(name)).unwrap()
    };
    let done = limited("qps=1%", &["--limit", "memory<500GiB"]).exits_with(4);
    let done =
        done.prints("FAIL slow: qps -").prints("(limit 1 %)").prints("PASS memory: at worst ");
    valid_records(&results("qps=1%"), 6);
    assert!(results("qps=1%").path().join("report.html").exists(), "{done}");
    let table = read("qps=1%", "table.md");
    let last = table.lines().last().unwrap_or_default();
    assert!(last.starts_with("**FAIL** slow: qps -") && last.ends_with("(limit 1 %)"), "{last}");
    let summary: serde_json::Value = serde_json::from_str(&read("qps=1%", "summary.json")).unwrap();
    let ruling = &summary["rulings"][0];
    assert_eq!((&ruling["limit"], &ruling["metric"]), (&"qps=1%".into(), &"qps".into()));
    assert_eq!(
        (&ruling["ruling"], &ruling["variants"][0]["variant"]),
        (&"fail".into(), &"slow".into())
    );
    assert!(ruling["variants"][0]["found"]["value"].as_f64().unwrap() < -0.01, "{ruling}");

    // The limits are part of the results: the report that is written again has them.
    let path = results("qps=1%").path().to_owned();
    room.dnslab(&["report".as_ref(), path.as_os_str()]).exits_with(0);
    assert_eq!(read("qps=1%", "table.md"), table);

    // A limit that nothing can exceed, in its older name: no rate falls by more than all of it.
    let done = limited("answered_qps=100%", &[]).exits_with(0).prints("PASS slow: qps -");
    let table = read("answered_qps=100%", "table.md");
    assert!(table.lines().last().is_some_and(|last| last.starts_with("**PASS** ")), "{done}");
}
