//! A guarded process leaves nothing behind, whatever ends.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::program::{guard, program};
use crate::support::{alive, groups_of, guarded, parent, wait_until};
use dnslab_lab::users::User;
use dnslab_lab::{Ending, LabError, RunAs, RunningProcess};
use rustix::process::{Pid, Signal, kill_process};

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("ids of processes fit");
    kill_process(pid, signal).unwrap();
}

fn start(folder: &Path, command: &[&str]) -> RunningProcess {
    RunningProcess::start(&guard(), &guarded(folder, command)).unwrap()
}

/// Starts another dnslab that holds a guarded process. Returns it and the process's id.
fn hold(folder: &Path, command: &[&str]) -> (Child, u32) {
    // Tests that run in the background of a script ignore SIGINT (POSIX.1, 2.11).
    let mut holder = Command::new("env")
        .args(["--default-signal=INT", program().to_str().unwrap(), "hold"])
        .arg(folder)
        .args(command)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (holder, line.trim().parse().unwrap())
}

#[test]
fn a_process_that_ends_by_itself_is_reported() {
    let cases = [
        (["sh", "-c", "exit 7"], Ending::Exited(7)),
        (["sh", "-c", "kill -9 $$"], Ending::Signaled(9)),
        (["/nonexistent/server", "-c", "x"], Ending::Exited(127)),
    ];
    for (command, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let process = start(folder.path(), &command);
        wait_until("the end is reported", || process.exited().is_some());
        let report = process.exited().unwrap();
        assert_eq!((report.ending, report.requested), (expected, false), "{command:?}");
        assert_eq!(process.stop(Duration::ZERO), report);
    }
}

#[test]
fn output_and_errors_are_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path(), &["sh", "-c", "echo out; echo err >&2; pwd"]);
    wait_until("the end is reported", || process.exited().is_some());
    let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
    let here = folder.path().canonicalize().unwrap();
    assert_eq!(log, format!("out\nerr\n{}\n", here.display()));
}

#[test]
fn a_stop_ends_the_process_and_removes_its_groups() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path(), &["sleep", "1000"]);
    let (pid, guard) = (process.pid(), parent(process.pid()));
    assert!(alive(pid));
    let report = process.stop(Duration::from_secs(20));
    assert_eq!(report.ending, Ending::Signaled(15));
    assert!(report.requested && !report.killed && report.left_over == 0, "{report:?}");
    assert!(!alive(pid) && !alive(guard));
    assert_eq!(groups_of(guard), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_ignores_the_request_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let program = program();
    let process = start(folder.path(), &[program.to_str().unwrap(), "linger"]);
    let log = folder.path().join("server.log");
    wait_until("both processes ignore SIGTERM", || {
        std::fs::read_to_string(&log).unwrap_or_default().lines().count() == 2
    });
    let report = process.stop(Duration::from_millis(100));
    assert_eq!(report.ending, Ending::Signaled(9));
    assert!(report.requested && report.killed, "{report:?}");
    let lines = std::fs::read_to_string(&log).unwrap();
    assert!(lines.lines().all(|pid| !alive(pid.parse().unwrap())), "{lines}");
}

#[test]
fn orphans_of_a_process_end_with_it() {
    let folder = tempfile::tempdir().unwrap();
    // The inner shell leaves the session and outlives its parents.
    let script = "setsid sh -c 'echo $$; exec sleep 1000' &
                  until [ -s server.log ]; do sleep 0.01; done";
    let process = start(folder.path(), &["sh", "-c", script]);
    wait_until("the end is reported", || process.exited().is_some());
    let report = process.exited().unwrap();
    assert_eq!((report.ending, report.left_over), (Ending::Exited(0), 1));
    let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(!alive(log.trim().parse().unwrap()));
}

#[test]
fn a_dropped_process_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path(), &["sleep", "1000"]);
    let pid = process.pid();
    drop(process);
    assert!(!alive(pid));
}

#[test]
fn killing_dnslab_leaves_no_server() {
    for end in [Signal::KILL, Signal::TERM, Signal::INT] {
        let folder = tempfile::tempdir().unwrap();
        let (mut holder, pid) = hold(folder.path(), &["sleep", "1000"]);
        let guard = parent(pid);
        assert!(alive(pid));
        signal(holder.id(), end);
        holder.wait().unwrap();
        wait_until("server and guard are gone", || !alive(pid) && !alive(guard));
        assert!(groups_of(guard).is_empty());
    }
}

#[test]
fn killing_the_guard_kills_the_server_too() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path(), &["sleep", "1000"]);
    let guard = parent(process.pid());
    // The process is the server only after exec; before, it would notice by itself.
    wait_until("sleep runs", || {
        std::fs::read_to_string(format!("/proc/{}/comm", process.pid())).unwrap() == "sleep\n"
    });
    let groups = groups_of(guard);
    signal(guard, Signal::KILL);
    wait_until("the end is known", || process.exited().is_some());
    assert_eq!(process.exited().unwrap().ending, Ending::Unknown);
    wait_until("the server is gone", || !alive(process.pid()));
    // Nobody is left to remove them; later guards do.
    groups.iter().for_each(|group| std::fs::remove_dir(group).unwrap());
}

/// A change of user undoes what ties a process to its parent, so it is tied again.
#[test]
fn killing_the_guard_kills_a_server_that_gave_up_root_too() {
    assert!(rustix::process::geteuid().is_root(), "only root can give it up: run it as root");
    let folder = tempfile::tempdir().unwrap();
    let user = User { uid: 65_534, gid: 65_534 };
    for low_ports in [false, true] {
        let run_as = RunAs { user: user.clone(), low_ports, closed: None, logs: None };
        let mut spec = guarded(folder.path(), &["sleep", "1000"]);
        spec.run_as = Some(run_as);
        let process = RunningProcess::start(&guard(), &spec).unwrap();
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/{}/{name}", process.pid())).unwrap()
        };
        wait_until("sleep runs", || read("comm") == "sleep\n");
        let status = read("status");
        // CAP_NET_BIND_SERVICE is number 10.
        let rights = if low_ports { "0000000000000400" } else { "0000000000000000" };
        let user = "65534\t65534\t65534\t65534";
        let lines = [
            format!("Uid:\t{user}"),
            format!("Gid:\t{user}"),
            "Groups:\t ".to_owned(),
            format!("CapPrm:\t{rights}"),
            format!("CapEff:\t{rights}"),
        ];
        for line in lines {
            assert!(
                status.lines().any(|its| its.trim_end() == line.trim_end()),
                "{line}: {status}"
            );
        }
        let guard = parent(process.pid());
        let groups = groups_of(guard);
        signal(guard, Signal::KILL);
        wait_until("the server is gone", || !alive(process.pid()));
        groups.iter().for_each(|group| std::fs::remove_dir(group).unwrap());
    }
}

#[test]
fn signals_of_the_terminal_do_not_end_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(folder.path(), &["sleep", "1000"]);
    let guard = parent(process.pid());
    // The terminal signals its own session only.
    let stat = std::fs::read_to_string(format!("/proc/{guard}/stat")).unwrap();
    let session = stat.rsplit_once(") ").unwrap().1.split(' ').nth(3).unwrap().to_owned();
    assert_eq!(session, guard.to_string());
    signal(guard, Signal::INT);
    signal(guard, Signal::HUP);
    // TERM comes after them in the same queue, so they were received and ignored.
    signal(guard, Signal::TERM);
    wait_until("the end is reported", || process.exited().is_some());
    let report = process.exited().unwrap();
    assert_eq!((report.ending, report.requested), (Ending::Signaled(15), true));
}

#[test]
fn cpus_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let last = *dnslab_lab::cpus::allowed().last().unwrap();
    let command = ["sh", "-c", "grep Cpus_allowed_list /proc/self/status"];
    let mut spec = guarded(folder.path(), &command);
    spec.cpus = vec![last];
    let process = RunningProcess::start(&guard(), &spec).unwrap();
    wait_until("the end is reported", || process.exited().is_some());
    let log = std::fs::read_to_string(&spec.log).unwrap();
    assert_eq!(log.trim(), format!("Cpus_allowed_list:\t{last}"));
}

#[test]
fn a_guard_that_cannot_work_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let spec = guarded(&folder.path().join("absent"), &["true"]);
    let error = RunningProcess::start(&guard(), &spec).unwrap_err();
    assert!(matches!(error, LabError::Guard { .. }), "{error}");
    assert!(error.to_string().contains("No such file"), "{error}");
    let mut no_guard = guard();
    no_guard.path = "/bin/true".into();
    let error = RunningProcess::start(&no_guard, &spec).unwrap_err();
    assert!(error.to_string().contains("without a word"), "{error}");
}
