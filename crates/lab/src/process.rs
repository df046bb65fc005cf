//! A guarded process as dnslab sees it.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use dnslab_wire::units::raised_thread_limit;

use crate::cgroup::Sources;
use crate::ending::{Ending, ExitReport};
use crate::error::LabError;
use crate::guarded::{GRACE, GuardProgram, GuardSpec, Report};

/// How much longer than the grace time dnslab waits before it kills the guard and thereby the server: killing
/// and removing groups takes the guard up to seconds.
const GUARD_PATIENCE: Duration = Duration::from_secs(12);

/// A process that runs under a guard, and is stopped when this is dropped.
#[derive(Debug)]
pub struct RunningProcess {
    pid: u32,
    sources: Sources,
    guard: Mutex<Guard>,
    exit: Arc<Exit>,
}

#[derive(Debug)]
struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

#[derive(Debug, Default)]
struct Exit {
    report: Mutex<Option<ExitReport>>,
    known: Condvar,
}

impl RunningProcess {
    /// Starts `spec` under `program` as its guard.
    ///
    /// # Errors
    /// When the guard cannot be started or could not start the process. A missing command is no error here:
    /// the process exits with status 127 and says why in its log.
    pub fn start(program: &GuardProgram, spec: &GuardSpec) -> Result<Self, LabError> {
        let failed = |reason: String| LabError::Guard { program: program.path.clone(), reason };
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(no_process(&error)))?;
        let mut input = child.stdin.take().expect("the input was asked for as a pipe");
        let output = child.stdout.take().expect("the output was asked for as a pipe");
        let line = serde_json::to_string(spec).map_err(|error| failed(error.to_string()))?;
        // When the guard is gone already, its missing first report says so below.
        writeln!(input, "{line}").ok();
        let exit = Arc::new(Exit::default());
        let (sender, started) = mpsc::channel();
        let for_reader = Arc::clone(&exit);
        let guard = Mutex::new(Guard { child, input: Some(input) });
        let read = move || read_reports(output, &sender, &for_reader);
        if let Err(error) = thread::Builder::new().spawn(read) {
            return Err(reap(guard, failed(no_process(&error))));
        }
        match started.recv() {
            Ok(Report::Started { pid, sources }) => Ok(Self { pid, sources, guard, exit }),
            Ok(Report::Failed { reason }) => Err(reap(guard, failed(reason))),
            _ => Err(reap(guard, failed("it ended without a word".to_owned()))),
        }
    }

    /// Process id of the first process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where its figures are read.
    #[must_use]
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// How it ended, if it has; does not wait.
    #[must_use]
    pub fn exited(&self) -> Option<ExitReport> {
        *lock(&self.exit.report)
    }

    /// Ends the process with SIGTERM, after `grace` with SIGKILL, and waits until it and all its
    /// descendants are gone. If it has ended already, says how.
    pub fn stop(&self, grace: Duration) -> ExitReport {
        let mut guard = lock(&self.guard);
        if let Some(input) = &mut guard.input {
            // If the server has ended, so has the guard, and nobody reads this.
            writeln!(input, "stop {}", grace.as_millis()).ok();
        }
        let report = self.exit.wait(grace + GUARD_PATIENCE);
        guard.input = None;
        if report.is_none() {
            guard.child.kill().ok();
        }
        guard.child.wait().ok();
        let report = report.or_else(|| self.exited()).unwrap_or(lost(true));
        if report.ending == Ending::Unknown {
            // The guard cannot do it any more; the kernel has ended only the first process.
            self.sources.clear_away();
        }
        report
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.stop(GRACE);
    }
}

impl Exit {
    fn wait(&self, patience: Duration) -> Option<ExitReport> {
        let waiting = lock(&self.report);
        let waited = self.known.wait_timeout_while(waiting, patience, |report| report.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The first report counts.
    fn note(&self, report: ExitReport) {
        lock(&self.report).get_or_insert(report);
        self.known.notify_all();
    }
}

/// Reads the guard's lines until it ends. A guard that ends without reporting the server's end was
/// killed, and the kernel has killed the server with it.
fn read_reports(output: ChildStdout, started: &mpsc::Sender<Report>, exit: &Exit) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Report::Exited(report)) => exit.note(report),
            Ok(report) => {
                started.send(report).ok();
            }
            // The guard program wrote something of its own; it is no report.
            Err(_) => {}
        }
    }
    exit.note(lost(false));
}

/// The report for a guard that gave none.
fn lost(requested: bool) -> ExitReport {
    ExitReport { ending: Ending::Unknown, requested, killed: true, left_over: 0 }
}

/// Waits for a guard that failed, so that it leaves no zombie, and passes the error on.
fn reap(guard: Mutex<Guard>, error: LabError) -> LabError {
    let mut guard = guard.into_inner().unwrap_or_else(PoisonError::into_inner);
    guard.input = None;
    guard.child.wait().ok();
    error
}

/// What the system said, with a remedy if it gives this user no more processes (fork(2)).
fn no_process(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => format!("{error}; {}", raised_thread_limit()),
        _ => error.to_string(),
    }
}

/// Locks; a thread that panicked while holding the lock left plain values, which stay usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
