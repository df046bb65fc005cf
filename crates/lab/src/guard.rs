//! The guard: a small process between dnslab and a server, so that nothing is left behind even when dnslab is
//! killed with SIGKILL.
//!
//! dnslab starts itself again as its hidden subcommand `guard` and writes a [`GuardSpec`] as the first line
//! of the guard's standard input. The guard leaves the terminal's session (Ctrl-C does not reach the server),
//! adopts every orphan below it (`PR_SET_CHILD_SUBREAPER`), makes the control groups, and starts the server
//! through the stage in `crate::launch`. Then it waits for the first of: the server's end, the line `stop
//! MILLISECONDS`, the end of its input (dnslab died), SIGTERM. It ends the server with SIGTERM, after the
//! grace time with SIGKILL, together with all descendants, and removes the groups. The guard is in no group
//! of the server: only the server is counted.

use std::ffi::OsString;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use crate::cgroup::{Groups, Sources};
use crate::hosts::link;
use crate::launch::Environment;
use crate::monitoring::{self, daemon::DAEMON};
use crate::privileges::RunAs;
use crate::regular::open_regular;
use crate::root::FileSystem;
use crate::{asked, descendants, launch, users};

/// Time that a server has to end by itself, unless the caller says another.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How long the guard tries to kill what is left; only a process stuck in the kernel takes longer.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The program that becomes the guard, and the arguments that make it call [`main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardProgram {
    /// The executable.
    pub path: PathBuf,
    /// E.g. `guard`. The guard starts its own executable with the same arguments and two more, which must
    /// reach [`main`] too.
    pub arguments: Vec<OsString>,
}

impl GuardProgram {
    /// The running program itself, even if its file was replaced meanwhile.
    #[must_use]
    pub fn this_program<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { path: PathBuf::from("/proc/self/exe"), arguments }
    }
}

/// What the guard starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Working directory of the server.
    pub directory: PathBuf,
    /// File that its standard output and error are appended to.
    pub log: PathBuf,
    /// File that the guard copies its standard error to, through a pipe; `None` to append it to the log.
    #[serde(default)]
    pub standard_error: Option<PathBuf>,
    /// CPUs that the server may use; empty for all that dnslab may use.
    pub cpus: Vec<usize>,
    /// The network namespace that it runs in, e.g. `/proc/17/ns/net`; `None` for that of the guard.
    #[serde(default)]
    pub network: Option<PathBuf>,
    /// What it sees of the file system.
    pub file_system: FileSystem,
    /// The user that it becomes; `None`, or a guard that is not root, for no change.
    #[serde(default)]
    pub run_as: Option<RunAs>,
    /// The variables of the environment that it gets.
    #[serde(default)]
    pub environment: Environment,
}

impl GuardSpec {
    /// A command on all CPUs and with the user, the network and the file system of the guard.
    #[must_use]
    pub fn new(command: Vec<String>, directory: PathBuf, log: PathBuf) -> Self {
        Self {
            command,
            directory,
            log,
            standard_error: None,
            cpus: Vec::new(),
            network: None,
            file_system: FileSystem::Shared,
            run_as: None,
            environment: Environment::Named,
        }
    }

    /// The user that the server becomes; `None` if it stays who the guard is.
    fn run_as(&self) -> Option<&RunAs> {
        self.run_as.as_ref().filter(|_| users::own() == 0)
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// The guard itself was lost, so nobody knows.
    Unknown,
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(formatter, "exited with status {status}"),
            Self::Signaled(signal) => write!(formatter, "was ended by signal {signal}"),
            Self::Unknown => formatter.write_str("ended together with its guard"),
        }
    }
}

/// The end of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// How its first process ended.
    pub ending: Ending,
    /// True if it was asked to end; false if it ended by itself.
    pub requested: bool,
    /// True if it did not end within the grace time and was killed.
    pub killed: bool,
    /// Descendants that outlived the first process and were killed.
    pub left_over: usize,
}

/// One line of the guard's standard output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    Started {
        pid: u32,
        sources: Sources,
    },
    Failed {
        reason: String,
    },
    /// It has ended, and nothing is left.
    Exited(ExitReport),
}

/// What wakes the guard.
pub(crate) enum Event {
    /// dnslab asks for the end, with this grace time.
    Stop(Duration),
    Child,
}

/// The whole life of the guard. The hidden subcommand passes the arguments after its name (none when dnslab
/// starts it) and returns what this returns.
///
/// Never call this from a process that does anything else: it changes the session and reaps all children.
#[must_use]
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [] => supervise(),
        [stage, spec] if stage == launch::STAGE => launch::enter(spec),
        [stage, question] if stage == asked::ASK => asked::answer(question),
        [carrier, spec] if carrier == link::LINK => link::carry(spec),
        [daemon, spec] if daemon == DAEMON => monitoring::daemon::enter(spec),
        _ => {
            eprintln!("the guard is started by dnslab, not by hand");
            ExitCode::FAILURE
        }
    }
}

/// Leaves the terminal's session, and adopts every orphan below this process. What wakes the guard comes from the
/// receiver.
pub(crate) fn become_guard() -> io::Result<Receiver<Event>> {
    // Fails only if the caller has made us a group leader; then we have what we want.
    rustix::process::setsid().ok();
    let events = listen()?;
    // Without this, children that the server leaves behind would be adopted by init.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(events)
}

fn supervise() -> ExitCode {
    let mut line = String::new();
    let started = read_specification(&mut line).and_then(|spec| {
        let events = become_guard()?;
        let groups = Groups::create();
        let (server, reader) = spawn(&spec, &groups).inspect_err(|_| groups.remove())?;
        Ok((spec, server, reader, groups, events))
    });
    match started {
        Err(error) => {
            say(&Report::Failed { reason: error.to_string() });
            ExitCode::FAILURE
        }
        Ok((spec, server, reader, groups, events)) => {
            let pid = server.as_raw_nonzero().get().unsigned_abs();
            say(&Report::Started { pid, sources: groups.sources.clone() });
            let report = watch(server, &groups, &events);
            groups.remove();
            // Nobody holds the pipe any more, so this ends; what is in it belongs to the log.
            if let Some(reader) = reader {
                reader.join().ok();
            }
            if let Some(run_as) = spec.run_as() {
                run_as.take_back(&spec.directory);
            }
            say(&Report::Exited(report));
            ExitCode::SUCCESS
        }
    }
}

fn read_specification(line: &mut String) -> io::Result<GuardSpec> {
    io::stdin().read_line(line)?;
    Ok(serde_json::from_str(line)?)
}

/// Starts the threads that turn input and signals into events. Call it before the first child starts, or the
/// end of that child goes unheard.
fn listen() -> io::Result<Receiver<Event>> {
    let (sender, receiver) = mpsc::channel();
    // A handler that does nothing, not "ignore": an ignored signal stays ignored across exec, and the server
    // would ignore it too.
    let mut signals = signal_hook::iterator::Signals::new([SIGCHLD, SIGTERM, SIGINT, SIGHUP])?;
    let for_signals = sender.clone();
    thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGCHLD => Event::Child,
                SIGTERM => Event::Stop(GRACE),
                _ => continue,
            };
            if for_signals.send(event).is_err() {
                return;
            }
        }
    })?;
    thread::Builder::new().spawn(move || forward_input(&sender))?;
    Ok(receiver)
}

/// The end of the input (dnslab died) asks for the end too.
fn forward_input(sender: &Sender<Event>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let milliseconds = line.strip_prefix("stop ").and_then(|text| text.parse().ok());
        let grace = milliseconds.map_or(GRACE, Duration::from_millis);
        if sender.send(Event::Stop(grace)).is_err() {
            return;
        }
    }
    sender.send(Event::Stop(GRACE)).ok();
}

/// Starts the stage that enters the groups and then becomes the server, and the thread that copies its
/// standard error, if that goes through a pipe.
fn spawn(spec: &GuardSpec, groups: &Groups) -> io::Result<(Pid, Option<JoinHandle<()>>)> {
    let open = |path: &Path| open_regular(path, OpenOptions::new().create(true).append(true));
    let log = open(&spec.log)?;
    let standard_error = spec.standard_error.as_deref().map(open).transpose()?;
    let run_as = spec.run_as();
    // The files are open: from here on the server's user may put others in their place.
    if let Some(run_as) = run_as {
        run_as.hand_over(&spec.directory)?;
    }
    let (standard_error, reader) = match standard_error {
        None => (Stdio::from(log.try_clone()?), None),
        Some(mut file) => {
            let (mut pipe, end) = io::pipe()?;
            // A full disk ends the reading, and then the writing, as it does for a server's own file.
            let copy = move || drop(io::copy(&mut pipe, &mut file));
            (Stdio::from(end), Some(thread::Builder::new().spawn(copy)?))
        }
    };
    let stage = launch::Stage {
        command: spec.command.iter().map(OsString::from).collect(),
        groups: groups.folders.clone(),
        cpus: spec.cpus.clone(),
        network: spec.network.clone(),
        file_system: spec.file_system.clone(),
        run_as: run_as.cloned(),
        environment: spec.environment,
        guard: std::process::id(),
    };
    let child = stage
        .begin(std::env::args_os().skip(1))?
        .current_dir(&spec.directory)
        .stdout(log)
        .stderr(standard_error)
        .spawn()?;
    Ok((Pid::from_child(&child), reader))
}

/// Waits for the end of the first process and ends what it leaves. All of them must be children of this process, or
/// become its children ([`become_guard`]).
pub(crate) fn watch(server: Pid, groups: &Groups, events: &Receiver<Event>) -> ExitReport {
    let (mut requested, mut killed) = (false, false);
    let mut deadline: Option<Instant> = None;
    let ending = loop {
        let event = match deadline {
            Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Child) => {}
            Ok(Event::Stop(_)) if requested => {}
            Ok(Event::Stop(grace)) => {
                requested = true;
                rustix::process::kill_process(server, Signal::TERM).ok();
                // A stopped process receives SIGTERM only when it continues.
                rustix::process::kill_process(server, Signal::CONT).ok();
                deadline = Some(Instant::now() + grace);
            }
            Err(_) => {
                killed = true;
                kill_all(groups);
                deadline = Some(Instant::now() + Duration::from_millis(50));
            }
        }
        if let Some(ending) = reap(server) {
            break ending;
        }
    };
    ExitReport { ending, requested, killed, left_over: clear_away(groups) }
}

/// Reaps every child that has ended. Returns the server's ending, if it is among them.
fn reap(server: Pid) -> Option<Ending> {
    let mut ending = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == server {
            ending = Some(ending_of(status));
        }
    }
    ending
}

fn ending_of(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signaled(signal),
        (None, None) => Ending::Unknown,
    }
}

/// Kills all descendants until none is left. Returns how many there were at first.
fn clear_away(groups: &Groups) -> usize {
    let own = std::process::id();
    let left_over = descendants::descendants(own).len();
    let deadline = Instant::now() + KILL_PATIENCE;
    while !descendants::descendants(own).is_empty() && Instant::now() < deadline {
        kill_all(groups);
        thread::sleep(Duration::from_millis(5));
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }
    left_over
}

/// Kills what is in the groups and all descendants. They are our children or will be, so none of the ids can
/// belong to a stranger before we reap it.
fn kill_all(groups: &Groups) {
    groups.kill();
    for pid in descendants::descendants(std::process::id()) {
        if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            rustix::process::kill_process(pid, Signal::KILL).ok();
        }
    }
}

/// When dnslab is gone nobody reads the line, which is no reason to stop.
fn say(report: &Report) {
    let line = serde_json::to_string(report).expect("a report has string keys only");
    let mut output = io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).ok();
}
