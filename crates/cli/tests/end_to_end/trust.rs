//! An experiment file is code. `plan` runs nothing that it names, and `run` takes a file that may be somebody
//! else's only if told to.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Running, program};
use crate::room::{Room, SHORT};

/// A user id that nobody has.
const STRANGER: u32 = 54_321;

/// An experiment whose `server.binary` leaves the file `ran` behind if it is run.
fn room_with_trap() -> Room {
    let room = Room::quiet();
    // The program runs as another user.
    let marker = marker(&room);
    fs::create_dir(marker.parent().unwrap()).unwrap();
    set_mode(marker.parent().unwrap(), 0o777);
    let trap = format!("#!/bin/sh\ntouch {}\necho named 9.18.1\nexit 1\n", marker.display());
    fs::set_permissions(room.write("trap", &trap), fs::Permissions::from_mode(0o755)).unwrap();
    room.experiment(&format!(
        "{SHORT}[server]\nkind = \"bind\"\nbinary = \"./trap\"\nextra = \"// one\\n// two\\u001b[2J\"\n\
         [[variant]]\nname = \"a\"\n"
    ));
    room
}

fn marker(room: &Room) -> PathBuf {
    room.path().join("marks").join("ran")
}

fn has_run(room: &Room) -> bool {
    marker(room).exists()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_plan_runs_nothing_that_the_file_names() {
    let room = room_with_trap();
    let trap = room.path().join("trap").canonicalize().unwrap();
    for words in
        [["plan", "./experiment.toml"].as_slice(), &["run", "./experiment.toml", "--dry-run"]]
    {
        let done = room.dnslab(words).exits_with(0);
        assert!(!has_run(&room), "{done}");
        for text in [
            "configuration text or a folder that is written to, so it is code: run it only if you trust who wrote it",
            &format!("program   {} (`server.binary`)", trap.display()),
            "extra     text of its configuration (`server.extra`):",
            "| // one\n",
            // No control character reaches the terminal.
            "| // two [2J\n",
            "not asked for its version",
        ] {
            assert!(done.stdout.contains(text), "`{text}` is missing: {done}");
        }
    }
    let plain = room.dnslab(&["plan", "encryption"]).exits_with(0);
    assert!(!plain.stdout.contains("it is code"), "{plain}");
}

/// The experiment must be refused for this reason, and nothing run.
#[track_caller]
fn is_refused(room: &Room, words: &[&str], doubt: &str) {
    let done = room.dnslab(words).exits_with(2).errors(1);
    let done = done
        .complains("names what is run, configured or written (server.binary, server.extra), and ")
        .complains(doubt)
        .complains("run it with --trust");
    assert!(!has_run(room) && room.results_so_far().is_none(), "{done}");
}

#[test]
fn a_file_that_others_may_write_is_not_run() {
    let run = ["run", "./experiment.toml"];
    let room = room_with_trap();
    let file = room.path().join("experiment.toml");
    set_mode(&file, 0o666);
    is_refused(&room, &run, "everybody may write it");
    // A group with other members: not this user's own group.
    let other = std::os::unix::fs::chown(&file, None, Some(65_534));
    set_mode(&file, 0o664);
    if other.is_ok() {
        is_refused(&room, &run, "may write it");
    }
    set_mode(&file, 0o644);
    set_mode(room.path(), 0o777);
    is_refused(&room, &run, "everybody may write its folder ");
    // In a sticky folder only its owner may replace a file.
    set_mode(room.path(), 0o1777);
    room.dnslab(&run);
    assert!(has_run(&room), "the user's own file was refused");
    // Values of the command line are the user's own, whoever owns the file.
    set_mode(&file, 0o666);
    fs::write(&file, format!("name = \"x\"\n{SHORT}[[variant]]\nname = \"a\"\n")).unwrap();
    room.dnslab(&[
        "run",
        "./experiment.toml",
        "--set",
        "server.kind=bind",
        "--set",
        "server.binary=./trap",
    ])
    .exits_with(1);
}

#[test]
fn a_file_of_another_user_is_run_only_when_told_to() {
    assert!(rustix::process::geteuid().is_root(), "only root can give a file away: run it as root");
    let room = room_with_trap();
    let run = ["run", "./experiment.toml"];
    chown(room.path().join("experiment.toml"), Some(STRANGER), None).unwrap();
    is_refused(&room, &run, "it belongs to the user 54321, not to root (0)");
    // A link of the user's own does not make the file theirs.
    std::os::unix::fs::symlink("experiment.toml", room.path().join("link.toml")).unwrap();
    is_refused(&room, &["run", "./link.toml"], "it belongs to the user 54321");
    // A file that is read and not run needs no trust.
    room.dnslab(&["plan", "./experiment.toml"]).exits_with(0);
    assert!(!has_run(&room));
    room.dnslab(&["run", "./experiment.toml", "--trust"]);
    assert!(has_run(&room), "--trust did not run it");
}

fn runs_as(room: &Room, sudo_uid: &str) -> bool {
    fs::remove_file(marker(room)).ok();
    let mut command = Command::new(program());
    command.args(["run", "./experiment.toml"]).env("SUDO_UID", sudo_uid);
    Running::start(command, room.path()).finish();
    has_run(room)
}

#[test]
fn whose_a_file_is_does_not_depend_on_the_way_to_it() {
    assert!(rustix::process::geteuid().is_root(), "only root can give a file away: run it as root");
    let room = room_with_trap();
    // A link in a stranger's folder leads to the user's own file, and to the program beside it.
    let theirs = room.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::symlink("../experiment.toml", theirs.join("link.toml")).unwrap();
    let wrong = "#!/bin/sh\ntouch ../wrong\n";
    fs::write(theirs.join("trap"), wrong).unwrap();
    set_mode(&theirs.join("trap"), 0o755);
    chown(&theirs, Some(STRANGER), None).unwrap();
    room.dnslab(&["run", "./theirs/link.toml"]);
    assert!(has_run(&room) && !room.path().join("wrong").exists(), "the stranger's program ran");
    // Nobody knows who writes into a pipe.
    let line = format!("{} run <(cat experiment.toml)", program().display());
    let mut command = Command::new("bash");
    command.args(["-c", &line]);
    let done = Running::start(command, room.path()).finish();
    done.exits_with(2).complains("it is a pipe");
    // A user who became root by sudo may run their own file.
    chown(room.path().join("experiment.toml"), Some(STRANGER), None).unwrap();
    assert!(runs_as(&room, &STRANGER.to_string()));
    assert!(!runs_as(&room, "54322"));
    assert!(!runs_as(&room, "no number"));
}

#[test]
fn root_starts_no_server_where_others_may_swap_its_folder() {
    assert!(rustix::process::geteuid().is_root(), "only root can give a file away: run it as root");
    let room = Room::with_load();
    room.experiment(&format!("{SHORT}[[variant]]\nname = \"a\"\n"));
    let shared = room.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let run = ["run", "./experiment.toml", "--results", "shared/below/results"];
    let refuse = |doubt: &str| {
        let done = room.dnslab(&run).exits_with(2).errors(1).complains(doubt);
        done.complains("servers would write their files below shared/below/results, but ");
        assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "something was written");
    };
    set_mode(&shared, 0o777);
    refuse("everybody may write ");
    set_mode(&shared, 0o755);
    chown(&shared, Some(STRANGER), None).unwrap();
    refuse("belongs to the user 54321, not to root (0)");
    room.dnslab(&[run.as_slice(), &["--trust"]].concat()).exits_with(0);
    fs::remove_dir_all(shared.join("below")).unwrap();
    // In a sticky folder nobody can take the place of root's own.
    chown(&shared, Some(0), None).unwrap();
    set_mode(&shared, 0o1777);
    room.dnslab(&run).exits_with(0);
}

#[test]
fn a_folder_of_results_of_another_user_is_not_resumed() {
    assert!(rustix::process::geteuid().is_root(), "only root can give a file away: run it as root");
    let room = Room::with_load();
    room.experiment(&format!("{SHORT}[[variant]]\nname = \"a\"\n"));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let results = room.results();
    let file = results.path().join("experiment.toml");
    let planted = room_with_trap();
    let trap = planted.path().join("trap");
    let text = format!(
        "name = \"x\"\n{SHORT}[[variant]]\nname = \"a\"\nserver.kind = \"bind\"\nserver.binary = \"{}\"\n",
        trap.display()
    );
    fs::write(&file, text).unwrap();
    chown(&file, Some(STRANGER), None).unwrap();
    fs::remove_dir_all(results.path().join("runs")).unwrap();
    let words = ["run", "--resume", results.path().to_str().unwrap()];
    let done = room.dnslab(&words).exits_with(2).complains("(server.binary), and it belongs to");
    assert!(!has_run(&planted), "{done}");
}

/// Root writes a server's files into folders of such a directory, by their paths.
#[test]
fn nor_is_one_that_names_no_code() {
    assert!(rustix::process::geteuid().is_root(), "only root can give a file away: run it as root");
    let room = Room::with_load();
    room.experiment(&format!("{SHORT}[[variant]]\nname = \"a\"\n"));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let results = room.results();
    fs::remove_dir_all(results.path().join("runs")).unwrap();
    chown(results.path(), Some(STRANGER), None).unwrap();
    let words = ["run", "--resume", results.path().to_str().unwrap()];
    let doubt = format!("belongs to the user {STRANGER}, not to root (0)");
    let done =
        room.dnslab(&words).exits_with(2).complains("servers would write their files below ");
    done.complains(&doubt);
    assert!(!results.path().join("runs").exists());
    room.dnslab(&[words.as_slice(), &["--trust"]].concat()).exits_with(0);
}

/// What `dnslab run` does at a terminal where somebody types `answer`.
fn at_a_terminal(room: &Room, answer: &str) -> (PathBuf, bool) {
    let line = format!("{} run ./experiment.toml", program().display());
    let mut command = Command::new("sh");
    // `script` of util-linux gives a terminal to both.
    command.args(["-c", "(sleep 1; echo $1; sleep 1) | script -qec \"$0\" typescript"]);
    command.args([line.as_str(), answer]);
    Running::start(command, room.path()).finish();
    (room.path().join("typescript"), has_run(room))
}

#[test]
fn a_person_at_the_terminal_is_asked() {
    for (answer, expected) in [("n", false), ("", false), ("y", true)] {
        let room = room_with_trap();
        set_mode(&room.path().join("experiment.toml"), 0o666);
        let (typescript, ran) = at_a_terminal(&room, answer);
        let text = fs::read_to_string(typescript).unwrap();
        assert!(text.contains("everybody may write it. Run it? [y/N]"), "{text}");
        assert_eq!(ran, expected, "after `{answer}`: {text}");
    }
}
