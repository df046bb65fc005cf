//! What the operator does during a load: a command that is run at an instant of it, and one that waits until what the first
//! one began is over.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_record::EventFacts;

use crate::ending::Ending;
use crate::guarded::{GuardProgram, GuardSpec};
use crate::launch::Environment;
use crate::process::RunningProcess;
use crate::timeline::signed_ns;

/// Time that what was begun has after the load.
const ENDS_WITHIN: Duration = Duration::from_secs(120);

const LOOK: Duration = Duration::from_millis(5);

/// Time that a command has to end by itself when nobody waits for it any more.
const GRACE: Duration = Duration::from_millis(500);

/// Octets of a complaint that are told.
const MAX_SAID: usize = 2_000;

/// Commands of an event.
#[derive(Clone, Debug)]
pub struct EventPlan {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What ends when that is over; empty if it is over with the command.
    pub until: Vec<String>,
    /// An existing folder for what they say.
    pub folder: PathBuf,
}

/// An event that will happen, or does.
#[derive(Debug)]
pub struct PlannedEvent {
    plan: EventPlan,
    /// Without it, what goes on is ended at once.
    stop: mpsc::Sender<()>,
    thread: io::Result<JoinHandle<Result<(Instant, Instant), String>>>,
}

impl PlannedEvent {
    /// Lets it happen at this instant.
    #[must_use]
    pub fn begin(plan: EventPlan, at: Instant, guard: &GuardProgram) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (own, guard) = (plan.clone(), guard.clone());
        let thread = thread::Builder::new().spawn(move || own.happen(at, &guard, &stopped));
        Self { plan, stop, thread }
    }

    /// Waits until it is over, at most two minutes, and puts it on the timeline of a load that began at `origin`.
    ///
    /// # Errors
    /// When a command could not be run, failed, or does not end; or when the load was over before.
    pub fn finish(self, origin: Instant) -> Result<EventFacts, String> {
        // It waits no longer for its time, if that has not come.
        self.stop.send(()).ok();
        let thread = self.thread.map_err(|error| error.to_string())?;
        let ended = thread.join().map_err(|_| "its thread has ended".to_owned());
        drop(self.stop);
        let (at, ended) = ended??;
        let (at_ns, ended_ns) = (signed_ns(at, origin), signed_ns(ended, origin));
        Ok(EventFacts { command: self.plan.command, at_ns, ended_ns })
    }
}

impl EventPlan {
    fn happen(
        &self,
        at: Instant,
        guard: &GuardProgram,
        stopped: &mpsc::Receiver<()>,
    ) -> Result<(Instant, Instant), String> {
        match stopped.recv_timeout(at.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return Err("the load was over before its time".to_owned()),
        }
        let began = Instant::now();
        let mut end = None;
        for command in [&self.command, &self.until].into_iter().filter(|words| !words.is_empty()) {
            self.run(command, guard, (stopped, &mut end))?;
        }
        Ok((began, Instant::now()))
    }

    /// Runs one of its commands to its end, `end` at the latest, which is set when the load is over.
    fn run(
        &self,
        command: &[String],
        guard: &GuardProgram,
        (stopped, end): (&mpsc::Receiver<()>, &mut Option<Instant>),
    ) -> Result<(), String> {
        let log = self.folder.join("event.log");
        let spec = GuardSpec {
            environment: Environment::Whole,
            ..GuardSpec::new(command.to_vec(), self.folder.clone(), log.clone())
        };
        let line = command.join(" ");
        let process = RunningProcess::start(guard, &spec)
            .map_err(|error| format!("`{line}` cannot be run: {error}"))?;
        let report = loop {
            if let Some(report) = process.exited() {
                break report;
            }
            match stopped.try_recv() {
                Ok(()) => *end = Some(Instant::now() + ENDS_WITHIN),
                Err(TryRecvError::Empty) => {}
                // Nobody waits for it.
                Err(TryRecvError::Disconnected) => *end = Some(Instant::now()),
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                process.stop(GRACE);
                return Err(format!("`{line}` does not end"));
            }
            thread::sleep(LOOK);
        };
        if report.ending == Ending::Exited(0) {
            return Ok(());
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        let said: String = said.trim().chars().take(MAX_SAID).collect();
        Err(format!("`{line}` failed ({}): {said}", report.ending))
    }
}
