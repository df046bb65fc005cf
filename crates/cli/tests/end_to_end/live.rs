//! A load that a person watches, in a real terminal: that of tmux.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use dnslab_record::RunStatus;
use dnslab_wire::Transport;
use rustix::process::{Pid, Signal, kill_process};

use crate::command::program;
use crate::evidence::{is_cut, records};
use crate::processes::{processes_of, wait_for};
use crate::room::{Room, with_few_clients};
use crate::running_server::{queries, serve};

/// A terminal with a shell in it. Dropping it ends both.
struct Pane {
    socket: PathBuf,
}

impl Pane {
    #[track_caller]
    fn open(room: &Room, width: u16, height: u16) -> Self {
        // A server that is about to end takes no sessions.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("tmux-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let pane = Self { socket: room.path().join(name) };
        let (width, height) = (width.to_string(), height.to_string());
        let size = ["-x", &width, "-y", &height];
        // No files of whoever runs the test: neither tmux's nor the shell's.
        let shell = ["env", "-u", "ENV", "-u", "NO_COLOR", "PS1=ready> ", "sh"];
        let start = ["-f", "/dev/null", "new-session", "-d"];
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&pane.socket).args(start).args(size).args(shell);
        let status = command.current_dir(room.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "tmux does not start: {command:?}");
        pane.shows("ready>");
        pane
    }

    #[track_caller]
    fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(words);
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until all of these are on the screen at once. Returns its text.
    #[track_caller]
    fn shows_all(&self, texts: &[&str]) -> String {
        let is_there = || {
            let text = self.text();
            texts.iter().all(|expected| text.contains(expected)).then_some(text)
        };
        wait_for(&format!("{texts:?} on the screen"), || self.text(), is_there)
    }

    #[track_caller]
    fn shows(&self, text: &str) -> String {
        self.shows_all(&[text])
    }

    #[track_caller]
    fn shows_no(&self, text: &str) {
        let is_gone = || (!self.text().contains(text)).then_some(());
        wait_for(&format!("no `{text}` on the screen"), || self.text(), is_gone);
    }

    fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    /// Sends octets as they are.
    fn send(&self, room: &Room, octets: &[u8]) {
        let path = room.path().join("octets");
        fs::write(&path, octets).expect("the folder can be written");
        self.tmux(&["load-buffer", path.to_str().expect("a temporary folder has a plain name")]);
        self.tmux(&["paste-buffer", "-r"]);
    }

    /// Gives the shell a line.
    fn enter(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.press("Enter");
    }

    fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.tmux(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// Starts a load of a minute.
    fn start_load(&self, target: &str, further: &str) {
        let words = ["load", target, "--duration", "60s", "--queries", "queries"];
        let words = with_few_clients(&words).join(" ");
        let program = program();
        self.enter(&format!("{further} {} {words}; echo exit=$?", program.display()));
    }

    /// The shell has the terminal as it was: lines, echo, the cursor, and what was written before.
    #[track_caller]
    fn is_restored(&self) {
        let state = self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
        assert_eq!(state.trim(), "0 1", "{}", self.text());
        self.enter("clear; stty -a; echo done");
        let text = self.shows("\ndone");
        for mode in ["icanon", "echo", "isig", "icrnl", "opost"] {
            let has = text.split_whitespace().any(|word| word.trim_end_matches(';') == mode);
            assert!(has, "{mode} is not set: {text}");
        }
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).arg("kill-server").output().ok();
    }
}

/// A room with queries, and a server there that runs until the first value is dropped.
macro_rules! served {
    ($running:ident, $room:ident, $target:ident) => {
        let $room = Room::with_load();
        $room.write("queries", &queries());
        let ($running, at) = serve(&$room, "127.0.0.1", &[]);
        let $target = at(Transport::Udp).to_string();
    };
}

/// The row of a table of the view has a figure in each column.
fn has_figures(text: &str, row: &str) -> bool {
    let line = text.lines().find(|line| line.starts_with(row)).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    line.contains('%') && words.iter().filter(|word| word.starts_with(char::is_numeric)).count() > 5
}

#[test]
fn a_load_is_watched_and_left_early() {
    served!(_running, room, target);
    let pane = Pane::open(&room, 100, 30);
    pane.start_load(&target, "");
    let parts = [
        "What does 127.0.0.1",
        "last second",
        "so far",
        "queries/s",
        "p99",
        "Bottleneck so far",
        "Answered queries/s",
        "Latency",
        "Latency histogram",
        "NOERROR",
        "Server, generator",
        "p pause the view",
        "q leave early",
    ];
    pane.shows_all(&parts);
    let all = || Some(pane.text()).filter(|text| has_figures(text, "last second"));
    wait_for("figures of the last second", || pane.text(), all);
    // Smaller, then larger: what fits is there, and nothing of before.
    pane.resize(60, 20);
    pane.shows_no("Latency histogram");
    pane.shows_all(&["last second", "queries/s", "Latency", "q leave"]);
    pane.resize(120, 40);
    pane.shows_all(&["last second", "CPU use", "Memory of the server", "q leave early"]);
    pane.press("?");
    pane.shows("as after Ctrl-C");
    pane.press("x");
    pane.shows_no("as after Ctrl-C");
    pane.press("p");
    pane.shows("PAUSED, the load goes on");
    pane.press("p");
    pane.shows_no("PAUSED");
    // What is left in the warm-up has no figures.
    pane.shows("measured ");
    let all = || Some(pane.text()).filter(|text| has_figures(text, "so far"));
    wait_for("figures of the measured window", || pane.text(), all);
    pane.press("q");
    pane.shows("exit=130");
    pane.shows_all(&["queries/s", " s of 60 s", "report: ", "interrupted; to go on"]);
    pane.is_restored();
    let records = records(&room.results());
    assert!(records.len() == 1 && is_cut(&records[0]), "{:?}", records.first());
    assert_eq!(records[0].status, RunStatus::Valid);
}

#[test]
fn no_octets_freeze_the_view_or_swallow_its_keys() {
    served!(_running, room, target);
    // Alt and a bracket, an octet that is no UTF-8, a part of a character, a paste that does not end.
    for octets in [&b"\x1b["[..], b"\xff", b"\xe2\x82", b"\x1b[200~pasted"] {
        let pane = Pane::open(&room, 100, 30);
        pane.start_load(&target, "");
        pane.shows("Answered queries/s");
        pane.send(&room, octets);
        pane.press("q");
        pane.shows("exit=130");
        pane.is_restored();
        // It goes on drawing.
        let pane = Pane::open(&room, 100, 30);
        pane.start_load(&target, "");
        pane.shows("Answered queries/s");
        pane.send(&room, octets);
        pane.resize(90, 26);
        pane.shows_all(&["Answered queries/s", "q leave"]);
        pane.press("C-c");
        pane.shows("exit=130");
        pane.is_restored();
    }
}

#[test]
fn a_load_that_goes_on_in_the_background_leaves_the_terminal_to_the_shell() {
    served!(_running, room, target);
    let pane = Pane::open(&room, 80, 24);
    pane.start_load(&target, "");
    pane.shows("Answered queries/s");
    pane.press("C-z");
    pane.shows_all(&["topped", "exit="]);
    pane.enter("clear; bg");
    pane.enter("clear; echo still-$((1 + 1))");
    let text = pane.shows("still-2");
    assert!(!text.contains("Answered queries/s"), "{text}");
    pane.enter("clear; fg; echo then=$?");
    pane.shows("Answered queries/s");
    pane.press("q");
    pane.shows("then=130");
    pane.is_restored();
}

#[test]
fn a_search_leaves_its_steps_in_the_history() {
    served!(_running, room, target);
    let pane = Pane::open(&room, 100, 30);
    let words = ["capacity", &target, "--step-duration", "300ms", "--queries", "queries"];
    let words = with_few_clients(&words).join(" ");
    pane.enter(&format!("{} {words}; echo exit=$?", program().display()));
    pane.shows_all(&["looking for the highest rate", "[  1] ramp", "q leave early"]);
    pane.press("q");
    let text = pane.shows_all(&["[  1] ramp", "report: ", "exit=130"]);
    assert!(!text.contains("q leave early"), "{text}");
    pane.is_restored();
}

#[test]
fn a_stop_leaves_the_terminal_and_takes_it_again() {
    served!(_running, room, target);
    let pane = Pane::open(&room, 80, 24);
    pane.start_load(&target, "");
    pane.shows("Answered queries/s");
    pane.press("C-z");
    pane.shows_all(&["topped", "exit=", "ready>"]);
    pane.shows_no("Answered queries/s");
    pane.enter("clear; fg; echo then=$?");
    pane.shows("Answered queries/s");
    // The first one ends the run, and another one the process.
    pane.press("C-c");
    let ends = || {
        pane.press("C-c");
        pane.text().contains("then=130").then_some(())
    };
    wait_for("the end", || pane.text(), ends);
    pane.is_restored();
}

#[test]
fn signals_restore_the_terminal() {
    served!(_running, room, target);
    for signal in [Signal::TERM, Signal::HUP, Signal::QUIT] {
        let pane = Pane::open(&room, 80, 24);
        pane.start_load(&target, "");
        pane.shows("Answered queries/s");
        let loads = || {
            let all = processes_of(room.path()).into_iter();
            let loads = all.filter(|(_, line)| line.contains(" load "));
            loads.filter_map(|(pid, _)| Pid::from_raw(pid as i32)).collect::<Vec<_>>()
        };
        let ends = || {
            let pids = loads();
            pids.iter().for_each(|pid| kill_process(*pid, signal).unwrap_or_default());
            pids.is_empty().then_some(())
        };
        wait_for("the end of the load", || pane.text(), ends);
        pane.shows("exit=");
        pane.is_restored();
    }
}

/// Colours of text and background in escape sequences (ECMA-48, SGR 30 to 49 and 90 to 107).
fn has_colour(text: &str) -> bool {
    let sequences = text.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m'));
    let numbers = |codes: &str| codes.split(';').filter_map(|code| code.parse().ok()).collect();
    sequences.map(|(codes, _)| codes).any(|codes| {
        let codes: Vec<u32> = numbers(codes);
        codes.iter().any(|code| matches!(code, 30..=38 | 40..=48 | 90..=107))
    })
}

#[test]
fn no_color_is_obeyed() {
    served!(_running, room, target);
    for (setting, expected) in [("", true), ("NO_COLOR=1", false)] {
        let pane = Pane::open(&room, 80, 24);
        pane.start_load(&target, setting);
        pane.shows_all(&["Answered queries/s", "Latency histogram", "NOERROR"]);
        let text = pane.tmux(&["capture-pane", "-p", "-e"]);
        assert_eq!(has_colour(&text), expected, "{setting}: {text:?}");
        pane.press("q");
        pane.shows("exit=130");
    }
}

#[test]
fn lines_take_the_place_of_the_view() {
    served!(_running, room, target);
    let lines = |text: &str| text.lines().filter(|line| line.contains(" qps  p50 ")).count();
    // Options, a terminal that cannot place text, and a process in the background.
    for (before, after) in [("", " --plain"), ("TERM=dumb", "")] {
        let pane = Pane::open(&room, 100, 30);
        pane.start_load(&format!("{target}{after}"), before);
        let two = || (lines(&pane.text()) >= 2).then_some(());
        wait_for("two lines", || pane.text(), two);
        pane.press("C-c");
        pane.shows("exit=130");
    }
    let words = ["load", &target, "--duration", "2s", "--queries", "queries"];
    let done = room.dnslab(&with_few_clients(&words)).exits_with(0);
    assert!(lines(&done.stdout) >= 2, "{done}");
    let warm_up = done.stdout.lines().filter(|line| line.ends_with("(warm-up)")).count();
    assert!(warm_up >= 1 && warm_up < lines(&done.stdout), "{done}");
    let asked = [&words[..], &["--live"]].concat();
    let done = room.dnslab(&with_few_clients(&asked)).exits_with(2);
    done.complains("--live needs a terminal").complains("hint:");
}

#[test]
fn a_narrow_terminal_has_a_bar_unless_the_view_is_asked_for() {
    served!(_running, room, target);
    let pane = Pane::open(&room, 60, 20);
    pane.start_load(&target, "");
    pane.shows_all(&["[1/1] load, run 1", "qps, p99"]);
    assert!(!pane.text().contains("q leave"), "{}", pane.text());
    pane.press("C-c");
    pane.shows("exit=130");
    pane.enter("clear");
    pane.start_load(&format!("{target} --live"), "");
    pane.shows_all(&["last second", "q leave"]);
    pane.press("q");
    pane.shows("exit=130");
    pane.is_restored();
}
