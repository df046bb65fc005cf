//! Output that cannot be written is an error of every command. A reader that goes away is none.

use std::fs::File;
use std::process::{Command, Output};

use dnslab_wire::Transport;

use crate::command::program;
use crate::room::Room;
use crate::running_server::{queries, serve};

/// Every command that prints a result, in a room with results `a` and `b`, a server and a capture.
fn commands(target: &str) -> Vec<Vec<String>> {
    let load = ["--queries", "queries", "--clients", "1", "--warm-up", "0s", "--results", "made"];
    let load = load.join(" ");
    [
        "--help".to_owned(),
        "--version".to_owned(),
        "load --help".to_owned(),
        "help run".to_owned(),
        "completions bash".to_owned(),
        "completions zsh".to_owned(),
        "doctor".to_owned(),
        "plan encryption".to_owned(),
        "run encryption --dry-run".to_owned(),
        "lab list".to_owned(),
        "make zone example.test".to_owned(),
        "make population".to_owned(),
        "monitor status".to_owned(),
        "report a".to_owned(),
        "report a --json".to_owned(),
        "report a --json=dns-metrics".to_owned(),
        "compare a b".to_owned(),
        "compare a b --json".to_owned(),
        "history a b --figure qps".to_owned(),
        "export dns-metrics a".to_owned(),
        "export prometheus a --out -".to_owned(),
        "import dnsperf dnsperf.txt".to_owned(),
        format!("load {target} --duration 100ms {load}"),
        format!("load {target} --duration 100ms {load} --json"),
        format!("load {target} --duration 100ms {load} --json=dns-metrics"),
    ]
    .iter()
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .collect()
}

fn call(room: &Room, words: &[String], change: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(program());
    command.args(words).current_dir(room.path()).env("DNSLAB_CACHE", room.path());
    change(&mut command);
    command.output().expect("the program is there")
}

fn full() -> File {
    File::options().write(true).open("/dev/full").expect("Linux has it")
}

/// A room with results, and the server that they are of.
fn room() -> (Room, crate::command::Running, String) {
    let room = Room::with_load();
    let (running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    room.write("queries", &queries());
    let sample = include_str!("../../../import/tests/dnsperf/2.10-udp.txt");
    room.write("dnsperf.txt", sample);
    for name in ["a", "b"] {
        let words =
            ["load", &target, "--queries", "queries", "--duration", "100ms", "--warm-up", "0s"];
        let folder = format!("results-{name}");
        room.dnslab(&[&words[..], &["--clients", "1", "--results", &folder]].concat())
            .exits_with(0);
        let made = crate::room::folders(&room.path().join(&folder)).remove(0);
        std::fs::rename(made, room.path().join(name)).unwrap();
    }
    (room, running, target)
}

#[test]
fn what_is_lost_is_an_error() {
    let (room, _running, target) = room();
    for words in commands(&target) {
        let done = call(&room, &words, |command| {
            command.stdout(full());
        });
        let error = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{words:?}: {error}");
        let said = error.contains("error: cannot write to the standard output")
            && error.contains("No space left on device");
        assert!(said, "{words:?}: {error}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (room, _running, target) = room();
    for words in commands(&target) {
        let done = call(&room, &words, |command| {
            let (reader, writer) = std::io::pipe().expect("pipes can be made");
            drop(reader);
            command.stdout(writer);
        });
        let error = String::from_utf8_lossy(&done.stderr);
        let is_verdict = words[0] == "compare" && [3, 4].map(Some).contains(&done.status.code());
        assert!(done.status.success() || is_verdict, "{words:?}: {:?} {error}", done.status);
        assert!(!error.contains("error"), "{words:?}: {error}");
    }
}

/// Nobody can be told there, and the exit code is the same.
#[test]
fn a_standard_error_that_is_full_changes_nothing() {
    let room = Room::quiet();
    for (line, code) in [
        ("plan ./absent.toml", 2),
        ("load 127.0.0.1:x", 2),
        ("serve --zone absent", 2),
        ("nothing", 2),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let done = call(&room, &words, |command| {
            command.stderr(full());
        });
        assert_eq!(done.status.code(), Some(code), "{line}");
    }
}
