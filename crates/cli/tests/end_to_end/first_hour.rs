//! What a new user types first.

use std::fs;
use std::process::Command;

use dnslab_lab::find;
use dnslab_settings::ServerKind;

use crate::command::{Running, guard, program};
use crate::processes::processes_of;
use crate::room::{Room, SHORT, UDP_AND_TCP, folders};

#[test]
fn nothing_is_kept_if_nobody_wants_it() {
    let room = Room::with_load();
    room.experiment(&format!("repeat.runs = 1\n{SHORT}{UDP_AND_TCP}"));
    let temporary = room.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(program());
        command.args(words).args(["--results", "none"]).env("TMPDIR", &temporary);
        Running::start(command, room.path()).finish()
    };
    // Whether a run counts on a busy machine is not what is tested.
    let done = run(&["run", "./experiment.toml", "--only", "udp"]).exits_with_one_of(&[0, 3]);
    let done = done.prints("report: none, and no results are kept");
    assert!(!done.stdout.contains("tcp"), "{done}");
    let done = run(&["run", "./experiment.toml", "--json"]).exits_with_one_of(&[0, 3]);
    let summary: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(summary["variants"].as_array().map(Vec::len), Some(2), "{done}");
    // What needs a folder says so, before anything is made.
    for words in [
        &["run", "./experiment.toml", "--profile"][..],
        &["replay", "unix:sock", "127.0.0.1", "--duration", "1s"],
    ] {
        run(words).exits_with(2).complains("so `--results none` does not fit");
    }
    assert_eq!(folders(room.path()), std::slice::from_ref(&temporary));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(processes_of(room.path()).is_empty());
}

#[test]
fn run_and_plan_take_the_same_choices() {
    let room = Room::quiet();
    let named =
        find(ServerKind::Bind, None, &guard()).unwrap_or_else(|error| panic!("{error}")).binary;
    let named = named.to_str().expect("a plain path");
    let bind = ["encryption", "--set", "server.kind=bind"];
    let plan = |words: &[&str]| room.dnslab(&[&["plan"], &bind[..], words].concat());
    let dry_run = |words: &[&str]| room.dnslab(&[&["run", "--dry-run"], &bind[..], words].concat());
    let chosen = ["--only", "udp,dot", "--against", named];
    let done = plan(&chosen).exits_with(0).prints("udp-base").prints("dot-base");
    assert!(!done.stdout.contains("tcp-base"), "{done}");
    assert_eq!(dry_run(&chosen).exits_with(0).stdout, done.stdout);
    plan(&["--insecure", "--profile"]).exits_with(0);
    // The remedy is one.
    for command in [plan(&["--without", "udp"]), dry_run(&["--without", "udp"])] {
        let done = command.exits_with(2).complains("the baseline `udp` is left out");
        done.complains("`--set baseline=tcp`");
    }
    plan(&["--without", "udp", "--set", "baseline=tcp"]).exits_with(0);
    plan(&["--only", "tpc"]).exits_with(2).complains("did you mean `tcp`?");
}

#[test]
fn options_of_dnsperf_are_answered_and_the_answer_works() {
    let room = Room::quiet();
    let line = "load -s 127.0.0.1 -p 1 -c 4 -q 400 -l 1";
    let done = room.dnslab(&line.split(' ').collect::<Vec<_>>()).exits_with(2).errors(1);
    let done = done.complains("the server is an argument of its own");
    let hint =
        "dnslab load 127.0.0.1:1 --clients 4 --outstanding 100 --duration 1s --recursion-desired";
    done.complains(hint);
    // Nobody answers there, which is found out after the command line.
    let words: Vec<&str> = hint.split(' ').skip(1).collect();
    room.dnslab(&words).exits_with(1).complains("127.0.0.1:1 does not answer");
}
