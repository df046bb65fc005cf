//! Ctrl-C, `kill -9` and resume: what was measured stays, nothing keeps running.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use dnslab_lab::find;
use dnslab_record::{InvalidReason, RunStatus};
use dnslab_results::ResultsDirectory;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;
use rustix::process::Signal;

use crate::command::{Running, guard};
use crate::evidence::{
    failure, files, is_cut, is_intact, label, measured, records, report_is_whole, valid_records,
};
use crate::processes::{guard_of, kill, processes_of, wait_for};
use crate::replay::capture;
use crate::room::{Room, SHORT, UDP_AND_TCP};
use crate::running_server::{queries, serve};

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
    // It is the only one of its variant.
    assert_eq!(found[1].status, RunStatus::Valid, "{done}");
    assert!(done.stdout.contains("queries/s"), "no table: {done}");
    assert!(done.stdout.contains("report: "), "no report: {done}");
}

/// What was left early is in no mean of whole runs if it had less than half of its time.
#[test]
fn a_short_rest_does_not_stand_beside_whole_runs() {
    let room = Room::with_load();
    room.experiment(
        "server.kind = \"embedded\"\nrepeat.runs = 2\nrepeat.alternate = \"runs\"\n[load]\nduration = \"2s\"\n\
         warm_up = \"0s\"\n[[variant]]\nname = \"udp\"\n",
    );
    let mut running = room.start(&["run", "./experiment.toml"]);
    room.wait_for_load(&running, |plan| plan.get(1));
    running.press_ctrl_c();
    let done = running.finish().exits_with(130);
    let found = records(&room.results());
    assert_eq!((found.len(), &found[0].status), (2, &RunStatus::Valid), "{done}");
    let (measured, asked_ns) = (measured(&found[1]), 2_000_000_000);
    let is_short = measured.window_ns < asked_ns / 2;
    let is_left_out =
        matches!(found[1].status, RunStatus::Invalid { reason: InvalidReason::TooShort { .. } });
    assert!(is_cut(&found[1]) && is_left_out == is_short, "{:?} {done}", found[1].status);
}

/// Lines of seconds that were measured.
fn seconds(text: &str) -> usize {
    text.lines().filter(|line| line.contains(" qps  p50 ") && !line.contains("warm-up")).count()
}

#[test]
fn a_single_load_that_is_left_has_the_figures_of_the_time_that_it_had() {
    let room = Room::with_load();
    room.write("queries", &queries());
    capture(&room, 20, 240, 250_000_000);
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    let load = [
        "load",
        &target,
        "--queries",
        "queries",
        "--rate",
        "300",
        "--duration",
        "1m",
        "--warm-up",
        "0s",
    ];
    let replay = ["replay", "capture.pcap", &target];
    for words in [&load[..], &replay] {
        fs::remove_dir_all(room.path().join("results")).ok();
        let mut running = room.start(words);
        wait_for(
            "three seconds",
            || running.so_far(),
            || (seconds(&running.so_far()) >= 3).then_some(()),
        );
        running.press_ctrl_c();
        let done =
            running.finish().exits_with(130).prints("queries/s").prints("a run was left early (");
        assert!(!done.stdout.contains("No answer"), "{done}");
        let record = valid_records(&room.results(), 1).remove(0);
        let measured = measured(&record);
        assert!((2_000_000_000..59_000_000_000).contains(&measured.window_ns), "{done}");
        assert_eq!(measured.counters.outcomes.lost(), 0, "{done}");
        let left = format!("{:.2} s of ", measured.window_ns as f64 / 1e9);
        report_is_whole(&room.results(), &[words[0]]);
        done.prints(&left);
    }
}

/// One Ctrl-C ends a state that lasts for a minute or longer if nobody does.
#[track_caller]
fn one_ctrl_c_ends(
    mut running: Running,
    is_there: &dyn Fn(&Running) -> bool,
    codes: &[i32],
    said: &str,
) {
    let so_far = || running.so_far();
    wait_for(&format!("the state that ends with `{said}`"), so_far, || {
        is_there(&running).then_some(())
    });
    running.press_ctrl_c();
    let done = running.finish().exits_with_one_of(codes);
    assert!(done.stdout.contains(said) || done.stderr.contains(said), "not `{said}`: {done}");
}

#[test]
fn one_ctrl_c_ends_the_wait_for_a_server_that_never_gets_ready() {
    let room = Room::with_load();
    room.open_to_all();
    let began = room.path().join("began");
    let named =
        find(ServerKind::Bind, None, &guard()).unwrap_or_else(|error| panic!("{error}")).binary;
    // It says its version.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in -v|-V) exec {} \"$@\";; esac\n: > {}\nexec sleep 600\n",
        named.display(),
        began.display()
    );
    let never = room.write("never", &script);
    fs::set_permissions(&never, fs::Permissions::from_mode(0o755)).unwrap();
    room.experiment(&format!(
        "server.kind = \"bind\"\nserver.binary = \"{}\"\n{SHORT}{UDP_AND_TCP}",
        never.display()
    ));
    let running = room.start(&["run", "./experiment.toml"]);
    one_ctrl_c_ends(running, &|_| began.exists(), &[130], "interrupted before bind was ready");
    room.wait_for_silence();
}

fn is_zone_written(room: &Room) -> bool {
    let folder = room.results_so_far().map(|results| results.path().join("runs/udp-1/server"));
    let mut names =
        folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    names.any(|entry| entry.path().extension().is_some_and(|extension| extension == "zone"))
}

#[test]
fn one_ctrl_c_ends_the_writing_of_a_zone_of_ten_million_records() {
    let room = Room::with_load();
    room.write("queries", &queries());
    room.experiment(&format!(
        "server.kind = \"embedded\"\nserver.zone.records = 10_000_000\n{SHORT}queries = \"queries\"\n\
         [[variant]]\nname = \"udp\"\n"
    ));
    let running = room.start(&["run", "./experiment.toml"]);
    one_ctrl_c_ends(running, &|_| is_zone_written(&room), &[130], "interrupted");
    let record = records(&room.results()).remove(0);
    assert!(failure(&record).0.contains("interrupted"), "{:?}", record.status);
}

#[test]
fn one_ctrl_c_ends_a_billion_queries_a_second_and_an_hour_of_last_metrics() {
    let room = Room::with_load();
    room.write("queries", &queries());
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    let load = ["load", &target, "--queries", "queries"];
    let words = [&load[..], &["--rate", "1000000000", "--duration", "10m"]].concat();
    let goes_on = |running: &Running| running.so_far().contains(" qps  p50 ");
    one_ctrl_c_ends(room.start(&words), &goes_on, &[130], "interrupted; to go on");
    let record = records(&room.results()).remove(0);
    assert!(is_cut(&record), "{:?}", record.caveats);

    let short = ["--rate", "300", "--duration", "500ms", "--results", "none"];
    let linger = ["--metrics-listen", "127.0.0.1:0", "--metrics-linger", "1h"];
    let is_reported = |running: &Running| running.so_far().contains("report: none");
    let running = room.start(&[&load[..], &short, &linger].concat());
    one_ctrl_c_ends(running, &is_reported, &[0, 130], "report: none, and no results are kept");
}

#[test]
fn one_ctrl_c_ends_an_hour_between_two_rounds() {
    let room = Room::with_load();
    room.experiment(&format!("repeat.runs = 2\nrepeat.pause = \"1h\"\n{SHORT}{UDP_AND_TCP}"));
    let rests = |running: &Running| running.so_far().contains("[2/4]");
    let running = room.start(&["run", "./experiment.toml"]);
    one_ctrl_c_ends(running, &rests, &[130], "interrupted; to go on");
}

#[test]
fn one_ctrl_c_ends_the_wait_for_the_other_end_of_a_pipe() {
    let room = Room::quiet();
    let pipe = room.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let listens = |_: &Running| room.path().join("sock").exists();
    let recording = room.start(&["record", "unix:sock", "pipe"]);
    one_ctrl_c_ends(recording, &listens, &[130], "nobody reads from the pipe");
    let done = room.dnslab(&["replay", "pipe", "127.0.0.1:5690"]).exits_with(2);
    done.complains("is no regular file, and a capture is read several times");
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
    let gate = table.lines().next().unwrap_or_default();
    assert!(gate.contains("2 runs are missing") && !gate.starts_with("**PASS"), "{gate}");
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
    let guard = guard_of(server);
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
