//! A full disk: one clear error, and everything that was finished is still there.

use std::fs;
use std::process::Command;

use dnslab_measure::ResultsDirectory;

use crate::command::{Done, Running, program};
use crate::evidence::{files, is_intact, records, report_is_whole, valid_records};
use crate::processes::processes_of;
use crate::room::{Room, SHORT, UDP_AND_TCP, folders};

/// Runs four runs on a disk of `size` octets. The disk is in a name space of its own, which goes
/// away with the command; what was on it is copied out first, into `kept`.
#[track_caller]
fn run_on(room: &Room, size: &str) -> Done {
    room.experiment(&format!("repeat.runs = 2\n{SHORT}{UDP_AND_TCP}"));
    for folder in ["disk", "kept"] {
        fs::create_dir(room.path().join(folder)).unwrap();
    }
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
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
    // The page is 110 KiB, a run 50 KiB: there is room for two runs.
    let done = run_on(&room, "140k").exits_with(1).errors(1).complains("No space left on device");
    let done = done.complains("--resume");
    let results = kept(&room, &done);
    is_intact(&results);
    let finished = records(&results).len();
    assert!((1..4).contains(&finished), "{finished} runs are finished: {done}");
    valid_records(&results, finished);
    assert!(processes_of(room.path()).is_empty(), "{:?}{done}", processes_of(room.path()));

    // With room again, only what is missing is done.
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

#[test]
fn a_disk_without_room_for_anything_is_one_error() {
    let room = Room::with_load();
    run_on(&room, "4k").exits_with(1).errors(1).complains("No space left on device");
}
