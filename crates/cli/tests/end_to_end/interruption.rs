//! Ctrl-C, `kill -9` and resume: what was measured stays, nothing keeps running.

use std::fs;
use std::path::PathBuf;

use dnslab_measure::{ResultsDirectory, RunStatus};
use rustix::process::Signal;

use crate::command::Running;
use crate::evidence::{
    files, is_cut, is_intact, label, measured, records, report_is_whole, valid_records,
};
use crate::processes::{guard_of, kill, processes_of};
use crate::room::{Room, UDP_AND_TCP};

/// Starts four runs of `kind`, 2 s each, one after another.
#[track_caller]
fn start(room: &Room, kind: &str) -> Running {
    start_alternating(room, kind, "runs")
}

/// Starts two rounds of two runs of `kind`, 2 s each.
#[track_caller]
fn start_alternating(room: &Room, kind: &str, alternate: &str) -> Running {
    write_experiment(room, kind, alternate);
    room.start(&["run", "./experiment.toml"])
}

fn write_experiment(room: &Room, kind: &str, alternate: &str) {
    let lines = format!(
        "server.kind = \"{kind}\"\nrepeat.runs = 2\nrepeat.alternate = \"{alternate}\"\n\
         [load]\nduration = \"2s\"\nwarm_up = \"0s\"\n{UDP_AND_TCP}"
    );
    room.experiment(&lines);
}

fn finished(results: &ResultsDirectory) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = results.path().join("runs");
    let is_over = |path: &PathBuf| {
        let run = path.components().next().expect("it is below a run's folder");
        folder.join(run).join("record.json").exists()
    };
    files(&folder).into_iter().filter(|(path, _)| is_over(path)).collect()
}

/// Resumes. All four runs must then be there, and the finished ones untouched.
#[track_caller]
fn resume(room: &Room, before: &[(PathBuf, Vec<u8>)], missing: usize) {
    let results = room.results();
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    let done = room.dnslab(&["run", "--resume", path]).exits_with(0);
    let done = done.prints(&format!("{missing} runs of 2 variants"));
    let repeated =
        done.stdout.lines().filter(|line| line.starts_with('[') && line.contains(", run "));
    assert_eq!(repeated.count(), missing, "{done}");
    valid_records(&results, 4);
    let after = files(&results.path().join("runs"));
    for (name, content) in before {
        assert!(after.get(name) == Some(content), "{name:?} of a finished run has changed: {done}");
    }
    report_is_whole(&results, &["udp", "tcp"]);
}

#[test]
fn ctrl_c_keeps_and_reports_what_was_measured() {
    let room = Room::with_load();
    let mut running = start(&room, "bind");
    room.wait_for_load(&running, |plan| plan.get(1));
    running.press_ctrl_c();
    let done =
        running.finish().exits_with(130).prints("interrupted; to go on: dnslab run --resume");
    assert!(processes_of(room.path()).is_empty(), "{:?}{done}", processes_of(room.path()));
    let results = room.results();
    is_intact(&results);
    report_is_whole(&results, &["udp", "tcp"]);
    let found = records(&results);
    let first = found.first().unwrap_or_else(|| panic!("no record: {done}"));
    assert_eq!(first.status, RunStatus::Valid, "{done}");
    assert_eq!(found.len(), 2, "the run that was cut short is kept: {done}");
    assert!(is_cut(&found[1]), "{:?}{done}", found[1].caveats);
    assert!(done.stdout.contains("queries/s"), "no table: {done}");
    assert!(done.stdout.contains("report: "), "no report: {done}");
}

#[test]
fn json_is_json_after_ctrl_c_too() {
    let room = Room::with_load();
    write_experiment(&room, "embedded", "runs");
    let mut running = room.start(&["run", "./experiment.toml", "--json", "--limit", "qps=50%"]);
    room.wait_for_load(&running, |plan| plan.get(1));
    running.press_ctrl_c();
    let done =
        running.finish().exits_with(130).complains("interrupted; to go on: dnslab run --resume");
    let summary: serde_json::Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}{done}"));
    // The first two of four runs were made.
    assert_eq!(summary["missing_runs"], 2, "{done}");
    let table = fs::read_to_string(room.results().path().join("table.md")).unwrap();
    let gate = table.lines().last().unwrap_or_default();
    assert!(gate.contains("2 runs are missing") && !gate.starts_with("**PASS**"), "{gate}");
}

#[test]
fn what_ctrl_c_left_out_is_resumed() {
    let room = Room::with_load();
    let mut running = start(&room, "embedded");
    room.wait_for_load(&running, |plan| plan.get(1));
    running.press_ctrl_c();
    running.finish().exits_with(130);
    let results = room.results();
    let first = results.session().unwrap().plan[0].folder();
    let mut before = finished(&results);
    before.retain(|(path, _)| path.starts_with(&first));
    assert!(!before.is_empty());
    // The report says of the run that was cut short: resume the experiment to repeat it.
    resume(&room, &before, 3);
    for record in records(&results) {
        assert!(!is_cut(&record), "{}: {:?}", label(&record), record.caveats);
    }
}

/// In slices a round is whole, or it is made again.
#[test]
fn a_round_that_ctrl_c_cut_short_is_made_again() {
    let room = Room::with_load();
    let mut running = start_alternating(&room, "embedded", "slices");
    room.wait_for_load(&running, |plan| plan.get(2));
    running.press_ctrl_c();
    running.finish().exits_with(130);
    let results = room.results();
    assert!(processes_of(room.path()).is_empty(), "{:?}", processes_of(room.path()));
    let mut before = finished(&results);
    before.retain(|(path, _)| path.starts_with("udp-1") || path.starts_with("tcp-1"));
    assert!(!before.is_empty());
    resume(&room, &before, 2);
    for record in records(&results) {
        assert!(measured(&record).turns.is_some(), "{}", label(&record));
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let room = Room::with_load();
    let mut running = start(&room, "bind");
    room.wait_for_load(&running, |plan| plan.get(1));
    // Two different signals: of two equal ones the kernel may deliver one.
    running.signal(Signal::INT);
    running.signal(Signal::TERM);
    running.finish().exits_with(130);
    room.wait_for_silence();
    is_intact(&room.results());
    assert!(!finished(&room.results()).is_empty());
}

/// Kills the command in its third run, and with `guard_too` the guard of that run's server.
#[track_caller]
fn check_kill(kind: &str, guard_too: bool) {
    let room = Room::with_load();
    let mut running = start(&room, kind);
    let (run, server) = room.wait_for_load(&running, |plan| plan.get(2));
    let guard = guard_of(server, running.pid());
    let there: Vec<u32> = processes_of(room.path()).into_iter().map(|(pid, _)| pid).collect();
    assert!([server, guard, running.pid()].iter().all(|pid| there.contains(pid)), "{there:?}");
    running.signal(Signal::KILL);
    if guard_too {
        kill(guard);
    }
    room.wait_for_silence();
    drop(running);
    let results = room.results();
    assert!(!run.join("record.json").exists(), "{run:?} was not over");
    is_intact(&results);
    let before = finished(&results);
    assert_eq!(valid_records(&results, 2).len(), 2);
    assert!(before.iter().any(|(path, _)| path.ends_with("record.json")));
    resume(&room, &before, 2);
    assert!(fs::metadata(run.join("record.json")).is_ok(), "{run:?} was not repeated");
}

#[test]
fn kill_leaves_no_server_and_loses_no_finished_run() {
    check_kill("bind", false);
}

#[test]
fn kill_of_command_and_guard_leaves_no_server_either() {
    check_kill("embedded", true);
    check_kill("nsd", true);
}

/// Resuming a directory that `running` writes into must fail.
#[track_caller]
fn is_kept_out(room: &Room, running: &Running, path: &str) {
    let done = room.dnslab(&["run", "--resume", path]).exits_with(1).errors(1);
    let done = done.complains("another session writes into ");
    done.complains(&format!("process {} on ", running.pid())).complains("SIGINT");
}

#[test]
fn two_sessions_do_not_write_into_one_directory() {
    let room = Room::with_load();
    let mut running = start(&room, "embedded");
    room.wait_for_load(&running, |plan| plan.get(1));
    let results = room.results();
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    // The session keeps its place meanwhile.
    running.signal(Signal::STOP);
    is_kept_out(&room, &running, path);
    // Reading needs no lock.
    room.dnslab(&["report", path]).exits_with(0).prints("report: ");
    running.press_ctrl_c();
    running.signal(Signal::CONT);
    running.finish().exits_with(130);
    assert!(!results.path().join("session.lock").exists());
    let mut first = room.start(&["run", "--resume", path]);
    room.wait_for_load(&first, |plan| plan.last());
    first.signal(Signal::STOP);
    is_kept_out(&room, &first, path);
    first.signal(Signal::CONT);
    // A session that was stopped may have an invalid run.
    first.finish().prints(" runs of 2 variants");
    assert_eq!(records(&results).len(), 4);
    is_intact(&results);
}

#[test]
fn a_record_that_is_none_is_made_anew_by_the_commands_that_are_named() {
    let room = Room::with_load();
    let results = room.short_results(1);
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    let record = |run: &str| results.path().join("runs").join(run).join("record.json");
    let whole = fs::read(record("udp-1")).unwrap();
    let planted = [
        (&whole[..whole.len() / 2], "record.json is not a whole record: EOF"),
        (&fs::read(record("tcp-1")).unwrap(), "record.json is the record of run tcp-1"),
    ];
    for (content, words) in planted {
        fs::write(record("udp-1"), content).unwrap();
        for arguments in [["report", path].as_slice(), &["run", "--resume", path]] {
            let done = room.dnslab(arguments).exits_with(1).errors(1).complains(words);
            done.complains(&format!("rm -r '{path}/runs/udp-1' && dnslab run --resume '{path}'"));
        }
    }
    fs::remove_dir_all(results.path().join("runs/udp-1")).unwrap();
    // The two variants take turns, so both runs are made again.
    room.dnslab(&["run", "--resume", path]).exits_with(0).prints("2 runs of 2 variants");
    valid_records(&results, 2);
}

#[test]
fn a_complete_experiment_is_not_repeated() {
    let room = Room::with_load();
    let results = room.short_results(1);
    let before = files(results.path());
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    room.dnslab(&["run", "--resume", path]).exits_with(0).prints("queries/s");
    let after = files(results.path());
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (name, content) in &before {
        assert!(after.get(name) == Some(content), "{name:?} has changed");
    }
}
