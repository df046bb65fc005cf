//! Programs that are asked something and end by themselves: a server's version, its counters.
//!
//! Each runs under a guard of its own, the stage [`answer`]. So it has no terminal into which it could write or type
//! (TIOCSTI, ioctl_tty(2)), and nothing that it starts outlives it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::cgroup::Groups;
use crate::ending::Ending;
use crate::file_system::FileSystem;
use crate::guarded::GuardProgram;
use crate::launch::{Environment, NOT_EXECUTED, Stage};
use crate::privileges::RunAs;
use crate::users::{self, User};
use crate::watch::{become_guard, watch};

/// First argument of the guard program when it is this stage.
pub(crate) const ASK: &str = "ask";

/// CoreDNS takes a second to say its version when all CPUs are busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the stage may take to end a program that is late, with all that it has started.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// Octets read of each output: `knotc -f stats` writes some kilobytes.
const MAX_COUNT: u64 = 1 << 20;

/// How often a stage whose outputs are closed is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Shells add this to the number of a signal that ended a program.
const SIGNALED: i32 = 128;

/// A program that is asked something.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The program and its arguments.
    command: Vec<OsString>,
    directory: Option<PathBuf>,
    user: Option<User>,
}

/// What the stage is told.
#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    command: Vec<OsString>,
    run_as: Option<RunAs>,
}

#[derive(Debug)]
pub(crate) struct Said {
    /// It exited with status 0.
    pub(crate) succeeded: bool,
    /// At most [`MAX_COUNT`] octets of its standard output.
    pub(crate) output: String,
    /// Its standard error, likewise.
    pub(crate) error: String,
}

impl Question {
    /// Of a program with these arguments, as this process's user and in its working directory.
    pub(crate) fn new<A: AsRef<OsStr>>(
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        let command = [program.into()].into_iter().chain(arguments).collect();
        Self { command, directory: None, user: None }
    }

    pub(crate) fn within(self, directory: PathBuf) -> Self {
        Self { directory: Some(directory), ..self }
    }

    /// As `user`, who has less rights; `None` for this process's user.
    pub(crate) fn by(self, user: Option<User>) -> Self {
        Self { user, ..self }
    }

    /// Runs the program without input and without a terminal. What it leaves running is killed, and it itself if it is
    /// late. Fails if it cannot be executed or is late.
    pub(crate) fn ask(&self, guard: &GuardProgram) -> io::Result<Said> {
        self.ask_within(guard, PATIENCE)
    }

    fn ask_within(&self, guard: &GuardProgram, patience: Duration) -> io::Result<Said> {
        let run_as = self.user.clone().map(RunAs::only);
        let asked = Asked { command: self.command.clone(), run_as };
        let mut command = Command::new(&guard.path);
        command.args(&guard.arguments).arg(ASK).arg(serde_json::to_string(&asked)?);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        let deadline = Instant::now() + patience;
        let outputs = child.stdout.take().map(read).transpose();
        let outputs =
            outputs.and_then(|output| Ok((output, child.stderr.take().map(read).transpose()?)));
        let said = outputs.and_then(|outputs| collect(&mut child, outputs, deadline));
        if said.is_err() {
            end(&mut child);
        }
        said
    }
}

/// Has the stage end the program with all that it has started.
fn end(child: &mut Child) {
    if let Some(mut input) = child.stdin.take() {
        // If the stage is gone, there is nobody to be told.
        writeln!(input, "stop 0").ok();
    }
    let deadline = Instant::now() + END_PATIENCE;
    while Instant::now() < deadline {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        thread::sleep(LOOK);
    }
    // The kernel then kills the program.
    child.kill().ok();
    child.wait().ok();
}

/// The stage: runs the program with the outputs that it has itself, and ends with its status when nothing of it runs any
/// more. The end of the input (dnslab died) ends the program too.
pub(crate) fn answer(question: &OsStr) -> ExitCode {
    let status = question
        .to_str()
        .ok_or_else(|| io::Error::other("the question is unreadable"))
        .and_then(|text| Ok(serde_json::from_str::<Asked>(text)?))
        .and_then(run);
    match status {
        Ok(Ending::Exited(status)) => ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)),
        Ok(Ending::Signaled(signal)) => {
            ExitCode::from(u8::try_from(SIGNALED + signal).unwrap_or(u8::MAX))
        }
        Ok(Ending::Unknown) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{BEFORE_ERROR}{error}");
            ExitCode::from(NOT_EXECUTED)
        }
    }
}

/// How a stage's own error begins.
const BEFORE_ERROR: &str = "dnslab: ";

fn run(asked: Asked) -> io::Result<Ending> {
    let events = become_guard()?;
    let stage = Stage {
        command: asked.command,
        groups: Vec::new(),
        cpus: Vec::new(),
        file_system: FileSystem::Shared,
        // Only root can become somebody else.
        run_as: asked.run_as.filter(|_| users::own() == 0),
        environment: Environment::Named,
        guard: std::process::id(),
    };
    // Without the two that have led here.
    let own = std::env::args_os().count().saturating_sub(2);
    let program = stage.begin(std::env::args_os().take(own).skip(1))?.spawn()?;
    Ok(watch(Pid::from_child(&program), &Groups::none(), &events).ending)
}

/// The text comes when the output ends or exceeds [`MAX_COUNT`].
fn read(output: impl Read + Send + 'static) -> io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let mut octets = Vec::new();
        output.take(MAX_COUNT).read_to_end(&mut octets).ok();
        sender.send(String::from_utf8_lossy(&octets).into_owned()).ok();
    })?;
    Ok(receiver)
}

fn collect(
    child: &mut Child,
    (output, error): (Option<Receiver<String>>, Option<Receiver<String>>),
    deadline: Instant,
) -> io::Result<Said> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "it does not end by itself");
    let text = |receiver: Option<Receiver<String>>| {
        let Some(receiver) = receiver else { return Ok(String::new()) };
        let left = deadline.saturating_duration_since(Instant::now());
        receiver.recv_timeout(left).map_err(|_| late())
    };
    let (output, error) = (text(output)?, text(error)?);
    loop {
        if let Some(status) = child.try_wait()? {
            let own_error = error.trim_end().strip_prefix(BEFORE_ERROR);
            if let Some(why) = own_error.filter(|_| status.code() == Some(NOT_EXECUTED.into())) {
                return Err(io::Error::other(why.to_owned()));
            }
            return Ok(Said { succeeded: status.success(), output, error });
        }
        if Instant::now() >= deadline {
            return Err(late());
        }
        thread::sleep(LOOK);
    }
}
