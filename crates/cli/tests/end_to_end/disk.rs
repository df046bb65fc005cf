//! A full disk: one clear error, and everything that was finished is still there.

use std::fs;

use dnslab_record::RunStatus;
use dnslab_results::ResultsDirectory;

use crate::command::{Done, Running, program, unshare};
use crate::evidence::{files, is_intact, records, report_is_whole, valid_records};
use crate::processes::processes_of;
use crate::room::{Room, SHORT, UDP_AND_TCP, folders};

/// Makes four runs on a disk of `size` octets. The disk is in a mount namespace, which goes away with the
/// command. Its content is copied into `kept` first.
#[track_caller]
fn run_on(room: &Room, size: &str) -> Done {
    let repeat = "repeat = { runs = 2, alternate = \"runs\" }\n";
    run_this_on(room, size, &format!("{repeat}{SHORT}{UDP_AND_TCP}"))
}

/// [`run_on`] with an experiment of these lines.
#[track_caller]
fn run_this_on(room: &Room, size: &str, lines: &str) -> Done {
    room.experiment(lines);
    for folder in ["disk", "kept"] {
        fs::create_dir(room.path().join(folder)).unwrap();
    }
    let mut command = unshare();
    let script = "mount -t tmpfs -o size=$0 tmpfs disk || exit 99
        \"$@\"; code=$?; cp -a disk/. kept || exit 98; exit $code";
    command.args(["--mount", "sh", "-c", script, size]).arg(program());
    command.args(["run", "./experiment.toml", "--results", "disk"]);
    Running::start(command, room.path()).finish()
}

/// The experiment that was copied from the disk.
#[track_caller]
fn kept(room: &Room, done: &Done) -> ResultsDirectory {
    let found = folders(&room.path().join("kept"));
    assert_eq!(found.len(), 1, "{found:?}{done}");
    ResultsDirectory::open(&found[0]).unwrap_or_else(|error| panic!("{error}{done}"))
}

#[test]
fn a_disk_that_fills_up_between_runs_keeps_the_finished_ones() {
    let room = Room::with_load();
    // The page takes 110 KiB, a run 50 KiB: there is room for two runs.
    let done = run_on(&room, "140k").exits_with(1).errors(1).complains("No space left on device");
    let done = done.complains("--resume");
    let results = kept(&room, &done);
    is_intact(&results);
    let finished = records(&results).len();
    assert!((1..4).contains(&finished), "{finished} runs are finished: {done}");
    valid_records(&results, finished);
    assert!(processes_of(room.path()).is_empty(), "{:?}{done}", processes_of(room.path()));

    // With room again, only the missing runs are made.
    let before = files(&results.path().join("runs"));
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    let done = room.dnslab(&["run", "--resume", path]).exits_with(0);
    valid_records(&results, 4);
    report_is_whole(&results, &["udp", "tcp"]);
    let after = files(&results.path().join("runs"));
    for name in before.keys().filter(|name| name.ends_with("record.json")) {
        assert!(after.get(name) == before.get(name), "{name:?} has changed: {done}");
    }
}

#[test]
fn a_disk_without_room_for_the_report_keeps_all_runs() {
    let room = Room::with_load();
    let done = run_on(&room, "260k").exits_with(1).errors(1).complains("No space left on device");
    let results = kept(&room, &done);
    is_intact(&results);
    valid_records(&results, 4);
    assert!(!results.path().join("report.html").exists(), "{done}");
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    room.dnslab(&["report", path]).exits_with(0);
    report_is_whole(&results, &["udp", "tcp"]);
}

/// With each size another file is the first without room: the session, its lock, the experiment, what a
/// server needs.
#[test]
fn a_disk_without_room_for_a_run_is_one_error() {
    for size in ["4k", "8k", "12k", "16k", "20k"] {
        let room = Room::with_load();
        let done = run_on(&room, size).exits_with(1).errors(1);
        done.complains("No space left on device");
        let parts = files(&room.path().join("kept")).into_keys();
        let parts: Vec<_> =
            parts.filter(|path| path.extension() == Some("part".as_ref())).collect();
        assert!(parts.is_empty(), "half-written with {size}: {parts:?}");
    }
}

/// Logs with `key` until the disk of `size` is full.
#[track_caller]
fn check_logs(key: &str, size: &str, kept_log: Option<&str>) {
    let room = Room::with_load();
    let lines = format!(
        "repeat.runs = 1\nrepeat.seed = 2\nserver.kind = \"bind\"\nload.warm_up = \"0s\"\n\
         baseline = \"silent\"\n[[variant]]\nname = \"logging\"\n{key} = true\n\
         load.duration = \"60s\"\n[[variant]]\nname = \"silent\"\nload.duration = \"300ms\"\n"
    );
    let done = run_this_on(&room, size, &lines).exits_with(3).prints("[1/2] logging");
    let results = kept(&room, &done);
    is_intact(&results);
    let found = records(&results);
    assert_eq!(found.len(), 2, "the other variant goes on: {done}");
    for record in &found {
        let RunStatus::Failed { reason, .. } = &record.status else {
            assert_eq!((&*record.variant, &record.status), ("silent", &RunStatus::Valid), "{done}");
            continue;
        };
        assert_eq!(record.variant, "logging", "{done}");
        let ends =
            ["the disk under the logs in ", "is full: give --results a folder with more room"];
        assert!(ends.iter().all(|words| reason.contains(words)), "{reason}{done}");
        // What was measured until then is there, and how much was written.
        let measured =
            record.measured.as_ref().unwrap_or_else(|| panic!("nothing measured: {done}"));
        assert!(measured.counters.outcomes.answered > 0, "{:?}{done}", measured.counters);
    }
    let log = kept_log.map(|name| results.path().join("runs/logging-1/server").join(name));
    let length =
        log.map(|path| fs::metadata(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")));
    assert!(length.is_none_or(|log| (1..=65_536).contains(&log.len())), "it is not short: {done}");
    report_is_whole(&results, &["logging", "silent"]);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    assert!(page.contains("the disk under the logs"), "the page does not say it: {done}");
    assert!(processes_of(room.path()).is_empty(), "{:?}{done}", processes_of(room.path()));
}

#[test]
fn a_query_log_that_fills_the_disk_fails_its_run_alone() {
    check_logs("server.query_log", "6m", Some("query.log"));
}

#[test]
fn dnstap_that_fills_the_disk_fails_its_run_alone() {
    check_logs("server.dnstap", "8m", None);
}
