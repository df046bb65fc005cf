//! The measured processes and the servers.

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
use tempfile::TempDir;

use crate::sys;

/// Each look takes microseconds, on the server's CPU.
const LOOK: Duration = Duration::from_millis(10);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Set by SIGINT, SIGTERM and SIGHUP. Everything then ends in order.
#[derive(Clone, Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// # Errors
    /// When the system does not allow it.
    pub(crate) fn listen() -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&stop)).context("cannot listen to signals")?;
        }
        Ok(Self(stop))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    /// # Errors
    /// If a signal came.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() { bail!("interrupted") } else { Ok(()) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The one CPU that it may use.
    pub(crate) cpu: usize,
    /// By name; `None` for the namespace of this process.
    pub(crate) namespace: Option<&'a str>,
}

impl Place<'_> {
    /// The beginning of a command line that runs there and dies with this process. Each program replaces the
    /// one before it, so the process becomes the last one.
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

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ended: sys::Ended,
    /// Standard output and error.
    pub(crate) output: String,
}

impl Finished {
    pub(crate) fn tail(&self) -> String {
        tail(&self.output)
    }
}

/// Runs a command to its end. Its output goes through a file in `folder`.
///
/// # Errors
/// When it cannot be started, is not done after `limit`, or a signal came. It is then ended.
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

/// Runs a command of the system to its end, and returns its standard output.
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

/// A folder for everything that a subcommand writes for itself; removed with this value.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn scratch(subcommand: &str) -> Result<TempDir> {
    let prefix = format!("dnslab-{subcommand}-");
    tempfile::Builder::new().prefix(&prefix).tempdir().context("cannot make a temporary folder")
}

/// # Errors
/// When it cannot be written: with its path.
pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, contents).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the page of a subcommand to a folder, or prints it.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn publish(page: &str, folder: Option<&Path>, name: &str) -> Result<()> {
    match folder {
        Some(folder) => write(&folder.join(name), page)?,
        None => println!("{page}"),
    }
    Ok(())
}

/// A process that ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    /// Collected by wait4(2), never through this.
    child: Child,
    log: PathBuf,
    /// Set once it has been collected.
    ended: Option<sys::Ended>,
}

impl Running {
    /// Output goes to the file `log`.
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
    /// # Errors
    /// When somebody else collected it.
    pub(crate) fn collect(&mut self) -> Result<Option<sys::Ended>> {
        if self.ended.is_none() {
            self.ended = sys::collect(self.child.id()).context("cannot wait for a process")?;
        }
        Ok(self.ended)
    }
    /// # Errors
    /// If it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        if let Some(ended) = self.collect()? {
            let log = fs::read(&self.log).unwrap_or_default();
            bail!("it ended ({}): {}", ended.status, tail(&String::from_utf8_lossy(&log)));
        }
        Ok(())
    }

    /// Waits until it `is_ready`.
    ///
    /// # Errors
    /// If it ends first, or is not ready after `limit`: with `complaint`.
    pub(crate) fn wait_until(
        &mut self,
        is_ready: impl Fn() -> bool,
        limit: Duration,
        complaint: &str,
    ) -> Result<()> {
        let begun = Instant::now();
        while !is_ready() {
            self.check()?;
            if begun.elapsed() > limit {
                bail!("{complaint} after {limit:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// SIGKILL, so that it cannot end in order.
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

    /// SIGTERM, and SIGKILL after [`GRACE`].
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

/// As a person would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// The last lines, joined into one.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(6)..].join(" | ")
}
