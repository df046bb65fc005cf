//! Limits of the system that a command meets: they are errors that name the limit, and no end without a word.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use dnslab_wire::Transport;

use crate::command::program;
use crate::room::Room;
use crate::running_server::{queries, serve};

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_with_its_remedy() {
    let room = Room::quiet();
    for words in ["plan encryption > plan", "make zone example.test --records 100 --output zone"] {
        let line = format!("ulimit -f 0; exec {} {words}", program().display());
        let mut command = Command::new("sh");
        let output = command.args(["-c", &line]).current_dir(room.path()).output().unwrap();
        let error = said(&output);
        assert_eq!(output.status.code(), Some(1), "`{words}`: {:?} {error}", output.status);
        assert!(error.contains("cannot write ") && error.contains("File too large"), "{error}");
        assert!(error.contains("hint:    ") && error.contains("ulimit -f unlimited"), "{error}");
    }
}

/// A user without other processes, of whom the kernel allows so many processes and threads.
fn limited(room: &Room, count: u32, words: &[&str]) -> Output {
    const USER: &str = "61999";
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "prlimit"]);
    command.arg(format!("--nproc={count}")).arg(room.path().join("dnslab")).args(words);
    command.current_dir(room.path().join("work")).env("HOME", room.path()).output().unwrap()
}

#[track_caller]
fn failed(room: &Room, count: u32, words: &[&str]) -> bool {
    let output = limited(room, count, words);
    let said = said(&output) + &String::from_utf8_lossy(&output.stdout);
    assert!(!said.contains("panicked"), "{count}: {said}");
    // A run of a load that could not begin has failed.
    let has_failed = matches!(output.status.code(), Some(1 | 3));
    assert!(has_failed || output.status.success(), "{count}: {:?} {said}", output.status);
    assert!(!has_failed || said.contains("ulimit -u"), "{count}: {said}");
    has_failed
}

#[test]
fn a_limit_on_threads_is_an_error_with_its_remedy() {
    assert!(rustix::process::geteuid().is_root(), "only root can become a user who is limited");
    let room = Room::with_load();
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    // The user must reach its program, and write its results.
    let copied = Command::new("cp").arg(program()).arg(room.path().join("dnslab")).status();
    assert!(copied.unwrap().success());
    let work = room.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("queries"), queries()).unwrap();
    fs::set_permissions(room.path(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&work, Permissions::from_mode(0o777)).unwrap();
    let load = ["load", &target, "--queries", "queries", "--clients", "4", "--workers", "4"];
    let load = [&load[..], &["--duration", "100ms", "--warm-up", "0s"]].concat();
    fs::copy(room.path().join("zone"), work.join("zone")).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--zone", "zone", "--threads", "4"];
    // One process, its thread for signals, and one to four of the load's own.
    let failures = (1..=5).filter(|count| failed(&room, *count, &load)).count();
    assert!(failures >= 4, "four workers began with fewer threads");
    for count in 1..=4 {
        assert!(failed(&room, count, &serve), "four threads began with {count}");
    }
}
