//! A process that lives on when dnslab has ended, and is ended by another call.
//!
//! dnslab starts its hidden subcommand `guard` with two arguments more, and that stage *becomes* the program by exec.
//! Before, it writes who it is into a file. So a process that has no such file never runs the program, even if dnslab
//! is killed while it starts one.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};

use crate::descendants::stat_fields;
use crate::guarded::GuardProgram;
use crate::launch::NOT_EXECUTED;
use crate::privileges::RunAs;
use crate::regular::open_regular;

/// First argument of the guard program when it is this stage.
pub(crate) const DAEMON: &str = "daemon";

/// How long a process that has got SIGKILL may take.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How often to look whether a process has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Lowest priority (setpriority(2)): a load that runs beside comes first.
const NICENESS: i32 = 19;

/// What is started.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DaemonSpec {
    /// The program and its arguments.
    pub(super) command: Vec<OsString>,
    /// Working directory.
    pub(super) directory: PathBuf,
    /// File that its outputs are appended to.
    pub(super) log: PathBuf,
    /// File that says who it is, in a folder that its user may not write.
    pub(super) record: PathBuf,
    /// The user that it becomes; `None` for no change.
    pub(super) run_as: Option<RunAs>,
}

/// Who runs, as its file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DaemonRecord {
    pub(super) id: DaemonId,
    /// What it may write belongs to this user while it runs.
    pub(super) run_as: Option<RunAs>,
}

/// Which process it is. A number alone may belong to another process later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DaemonId {
    pub(super) pid: u32,
    /// When it started, in clock ticks after the system (proc_pid_stat(5), field 22).
    started: u64,
    /// Which start of the system that was.
    boot: String,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It had ended before.
    Before,
    /// On request.
    Asked,
    /// It did not end in time and was killed.
    Killed,
}

impl DaemonId {
    /// That of a process which runs; `None` if there is none, or only what waits for its parent.
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields = stat_fields(&text)?;
        if matches!(*fields.first()?, "Z" | "X") {
            return None;
        }
        let started = fields.get(22 - 3)?.parse().ok()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Self { pid, started, boot: boot.trim_end().to_owned() })
    }

    pub(super) fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Ends it with SIGTERM, after `grace` with SIGKILL, and waits until it is gone. Never touches another process,
    /// whatever has its number.
    pub(super) fn end(&self, grace: Duration) -> io::Result<Ended> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(Ended::Before);
        };
        let handle = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(Ended::Before),
            other => other?,
        };
        // Now, not earlier: from here on the handle is of this one process.
        if !self.is_alive() {
            return Ok(Ended::Before);
        }
        for (signal, patience, ended) in
            [(Signal::TERM, grace, Ended::Asked), (Signal::KILL, KILL_PATIENCE, Ended::Killed)]
        {
            match rustix::process::pidfd_send_signal(&handle, signal) {
                Err(rustix::io::Errno::SRCH) => return Ok(ended),
                other => other?,
            }
            // A stopped process receives SIGTERM only when it continues.
            rustix::process::pidfd_send_signal(&handle, Signal::CONT).ok();
            if self.is_gone_within(patience) {
                return Ok(ended);
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "it does not end, though it was killed"))
    }

    fn is_gone_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.is_alive() {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(LOOK);
        }
        true
    }
}

/// What a record file says; `None` if there is none, or what is there is not whole.
pub(super) fn recorded(path: &Path) -> Option<DaemonRecord> {
    serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
}

/// Starts a process that lives on. It has not become the program yet when this returns.
pub(super) fn start(program: &GuardProgram, spec: &DaemonSpec) -> io::Result<Child> {
    let log = open_regular(&spec.log, OpenOptions::new().create(true).append(true))?;
    if let Some(run_as) = &spec.run_as {
        run_as.hand_over(&spec.directory)?;
    }
    Command::new(&program.path)
        .args(&program.arguments)
        .arg(DAEMON)
        .arg(serde_json::to_string(spec)?)
        .current_dir(&spec.directory)
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
}

/// Becomes the program; returns only when that failed, with a line for the log.
pub(crate) fn enter(spec: &OsStr) -> ExitCode {
    let error = match spec.to_str().map(serde_json::from_str::<DaemonSpec>) {
        Some(Ok(spec)) => become_daemon(&spec),
        _ => "the specification of the process is unreadable".to_owned(),
    };
    eprintln!("dnslab: {error}");
    ExitCode::from(NOT_EXECUTED)
}

/// Everything up to exec. Returns only on failure, with the reason.
fn become_daemon(spec: &DaemonSpec) -> String {
    let [program, arguments @ ..] = spec.command.as_slice() else {
        return "the command is empty".to_owned();
    };
    // Away from the terminal: its end and its Ctrl-C do not reach the process.
    rustix::process::setsid().ok();
    if let Err(error) = write_record(spec) {
        return format!("cannot write {}: {error}", spec.record.display());
    }
    rustix::process::setpriority_process(None, NICENESS).ok();
    if let Some(run_as) = &spec.run_as
        && let Err(error) = run_as.uncover().and_then(|()| run_as.give_up_root())
    {
        return error.to_string();
    }
    let error = Command::new(program).args(arguments).exec();
    format!("cannot execute {}: {error}", program.display())
}

/// Whole or not at all.
fn write_record(spec: &DaemonSpec) -> io::Result<()> {
    let id = DaemonId::of(std::process::id());
    let id = id.ok_or_else(|| io::Error::other("/proc does not say when this process started"))?;
    let record = DaemonRecord { id, run_as: spec.run_as.clone() };
    let part = spec.record.with_extension("part");
    serde_json::to_writer(File::create(&part)?, &record)?;
    fs::rename(&part, &spec.record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn a_process_is_ended_once() {
        let mut child = sleeper();
        let id = DaemonId::of(child.id()).unwrap();
        assert!(id.is_alive());
        assert_eq!(id.end(Duration::from_secs(60)).unwrap(), Ended::Asked);
        // Its parent has not asked for its status yet.
        assert!(!id.is_alive());
        child.wait().unwrap();
        assert_eq!(id.end(Duration::from_secs(60)).unwrap(), Ended::Before);
    }

    #[test]
    fn one_that_ignores_the_request_is_killed() {
        let script = "trap '' TERM; echo; while :; do read -r line; done";
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let id = DaemonId::of(child.id()).unwrap();
        assert_eq!(id.end(Duration::from_millis(20)).unwrap(), Ended::Killed);
        child.wait().unwrap();
    }

    #[test]
    fn another_process_with_the_same_number_is_left_alone() {
        let mut child = sleeper();
        let id = DaemonId::of(child.id()).unwrap();
        let earlier = DaemonId { started: id.started - 1, ..id.clone() };
        let of_another_boot = DaemonId { boot: "another".to_owned(), ..id.clone() };
        for other in [earlier, of_another_boot] {
            assert!(!other.is_alive());
            assert_eq!(other.end(Duration::ZERO).unwrap(), Ended::Before);
        }
        assert!(id.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_record_that_is_not_whole_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        assert_eq!(recorded(&path), None);
        fs::write(&path, "{\"id\":{\"pid\":1").unwrap();
        assert_eq!(recorded(&path), None);
    }
}
