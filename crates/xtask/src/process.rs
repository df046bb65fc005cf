//! Processes that are measured, and servers that they are measured against.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::sys;

/// How often a running process is looked at. Each look takes microseconds, on the server's CPU.
const LOOK: Duration = Duration::from_millis(10);
/// What a process gets to end after SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Set by SIGINT, SIGTERM and SIGHUP; everything then ends in order and is taken down.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to the signals from now on.
    ///
    /// # Errors
    /// When the system does not allow it.
    pub(crate) fn listen() -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&stop)).context("cannot listen to signals")?;
        }
        Ok(Self(stop))
    }

    /// Whether a signal came.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// An error if a signal came.
    ///
    /// # Errors
    /// If a signal came.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() { bail!("interrupted") } else { Ok(()) }
    }
}

/// Where a process runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The one CPU that it may use.
    pub(crate) cpu: usize,
    /// Its network namespace by name; `None` for this process's own.
    pub(crate) namespace: Option<&'a str>,
}

impl Place<'_> {
    /// The beginning of a command line that runs there and dies with this process. Each program
    /// replaces the one before it, so that the process is the last one from then on.
    pub(crate) fn command<Word: AsRef<OsStr>>(self, program: &[Word]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "taskset", "-c", &self.cpu.to_string()]);
        if let Some(namespace) = self.namespace {
            command.arg("nsenter").arg(format!("--net=/run/netns/{namespace}"));
        }
        command.args(program);
        command
    }
}

/// What a process left behind.
#[derive(Debug)]
pub(crate) struct Finished {
    /// How it ended, and what it used.
    pub(crate) ended: sys::Ended,
    /// What it wrote to its standard output and error.
    pub(crate) output: String,
}

impl Finished {
    /// The last lines of the output, for messages.
    pub(crate) fn tail(&self) -> String {
        tail(&self.output)
    }
}

/// Runs a command to its end; its output goes through a file in `folder`.
///
/// # Errors
/// When it cannot be started, is not done after `limit`, or a signal came: it is then ended.
pub(crate) fn run(
    command: &mut Command,
    folder: &Path,
    limit: Duration,
    stop: &Stop,
) -> Result<Finished> {
    let path = folder.join("output");
    let mut running = Running::start(command, &path)?;
    let begun = Instant::now();
    loop {
        if let Some(ended) = running.collect()? {
            let output = fs::read(&path)
                .with_context(|| format!("cannot read {}", path.display()))
                .map(|octets| String::from_utf8_lossy(&octets).into_owned())?;
            return Ok(Finished { ended, output });
        }
        stop.check()?;
        if begun.elapsed() > limit {
            bail!("`{}` is not done after {limit:?}: ended it", shown(command));
        }
        thread::sleep(LOOK);
    }
}

/// Runs a command of the system to its end and gives its standard output.
///
/// # Errors
/// When it cannot be started or fails: with what it said and `remedy`.
pub(crate) fn output(command: &mut Command, remedy: &str) -> Result<String> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}` ({remedy})", shown(command)))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("`{}` failed ({remedy}): {}", shown(command), tail(&said));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// A process that is ended when this value goes away.
#[derive(Debug)]
pub(crate) struct Running {
    /// The process; it is collected by wait4(2), never through this.
    child: Child,
    /// File of its output.
    log: PathBuf,
    /// How it ended, once it has been collected.
    ended: Option<sys::Ended>,
}

impl Running {
    /// Starts a command; its output goes to the file `log`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let both = file.try_clone().context("cannot duplicate a file descriptor")?;
        command.stdin(Stdio::null()).stdout(file).stderr(both);
        let child =
            command.spawn().with_context(|| format!("cannot start `{}`", shown(command)))?;
        Ok(Self { child, log: log.to_owned(), ended: None })
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When somebody else collected it.
    pub(crate) fn collect(&mut self) -> Result<Option<sys::Ended>> {
        if self.ended.is_none() {
            self.ended = sys::collect(self.child.id()).context("cannot wait for a process")?;
        }
        Ok(self.ended)
    }

    /// An error if it has ended, with the last lines of its log.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        if let Some(ended) = self.collect()? {
            let log = fs::read(&self.log).unwrap_or_default();
            bail!("it ended ({}): {}", ended.status, tail(&String::from_utf8_lossy(&log)));
        }
        Ok(())
    }

    /// Kills it, and gives it no chance to end in order.
    ///
    /// # Errors
    /// When somebody else collected it.
    pub(crate) fn kill(mut self) -> Result<()> {
        while self.collect()?.is_none() {
            kill_process(Pid::from_child(&self.child), Signal::KILL).ok();
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Ends it: SIGTERM, and SIGKILL after [`GRACE`].
    fn end(&mut self) {
        let begun = Instant::now();
        let mut signal = Signal::TERM;
        while let Ok(None) = self.collect() {
            // It may just have ended; the next look tells.
            kill_process(Pid::from_child(&self.child), signal).ok();
            thread::sleep(LOOK);
            if begun.elapsed() > GRACE {
                signal = Signal::KILL;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command as a person would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The last lines of a text, in one line.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}
