//! `kill -9` at many instants of an experiment, on several servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, Result, bail};
use dnslab_record::{RunRecord, RunStatus};
use dnslab_results::ResultsDirectory;

use super::{Room, experiment, folders, processes_of};
use crate::process::{Finished, Running};

const KINDS: [&str; 4] = ["embedded", "bind", "nsd", "knot"];

/// Time for a guard to notice that its command is gone, and to end the server.
const GRACE: Duration = Duration::from_secs(20);

pub(super) struct Kill {
    pub(super) kind: &'static str,
    pub(super) after: Duration,
    /// Runs that were over; `None` if there was no results directory yet.
    pub(super) finished: Option<usize>,
    /// What did not hold.
    pub(super) faults: Vec<String>,
}

/// Kills at this many instants, spread over the length of an experiment and over the servers.
///
/// # Errors
/// When dnslab cannot be run.
pub(super) fn kill(instants: u32, room: &Room<'_>) -> Result<Vec<Kill>> {
    let mut kills = Vec::new();
    for (number, kind) in (0_u32..).zip(KINDS) {
        let ours = (instants + KINDS.len() as u32 - 1 - number) / KINDS.len() as u32;
        let length = whole(kind, room)?;
        for instant in 0..ours {
            let after = length * (2 * instant + 1) / (2 * ours.max(1));
            kills.push(kill_once(kind, after, room)?);
        }
    }
    Ok(kills)
}

fn place(kind: &str, room: &Room<'_>) -> Result<tempfile::TempDir> {
    let place = tempfile::tempdir_in(room.folder).context("cannot make a folder")?;
    fs::write(place.path().join("x.toml"), experiment(kind)).context("cannot write x.toml")?;
    Ok(place)
}

/// Length of an undisturbed experiment.
fn whole(kind: &str, room: &Room<'_>) -> Result<Duration> {
    let place = place(kind, room)?;
    let begun = Instant::now();
    let done = room.dnslab(place.path(), &["run", "./x.toml"])?;
    if !done.ended.status.success() {
        bail!("the experiment on {kind} did not succeed: {}", done.tail());
    }
    Ok(begun.elapsed())
}

fn kill_once(kind: &'static str, after: Duration, room: &Room<'_>) -> Result<Kill> {
    room.stop.check()?;
    let place = place(kind, room)?;
    let mut command = Command::new(&room.dnslab.path);
    command.args(["run", "./x.toml"]).current_dir(place.path());
    let running = Running::start(&mut command, &place.path().join("output"))?;
    thread::sleep(after);
    running.kill()?;
    let mut faults = Vec::new();
    let begun = Instant::now();
    let mut left = processes_of(place.path());
    while !left.is_empty() && begun.elapsed() < GRACE {
        thread::sleep(Duration::from_millis(20));
        left = processes_of(place.path());
    }
    faults.extend(left.iter().map(|name| format!("{name} was left running")));
    let results = folders(&place.path().join("results")).into_iter().next();
    let session = results.and_then(|path| {
        let session = ResultsDirectory::open(&path).ok()?;
        Some((path, session))
    });
    let finished = match &session {
        Some((path, session)) => {
            let before = records(path);
            let words = ["run", "--resume", &*path.to_string_lossy()];
            let done = room.dnslab(place.path(), &words)?;
            if !is_carried_out(&done) {
                faults.push(format!("--resume: {}", done.tail()));
            }
            let after = records(path);
            let changed = before.iter().filter(|(path, record)| after.get(*path) != Some(record));
            faults.extend(changed.map(|(path, _)| format!("{} was changed", path.display())));
            faults.extend(incomplete(session));
            Some(before.len())
        }
        // Nothing can be resumed. What is left must not hinder a new run.
        None => {
            let done = room.dnslab(place.path(), &["run", "./x.toml"])?;
            if !is_carried_out(&done) {
                faults.push(format!("run: {}", done.tail()));
            }
            None
        }
    };
    Ok(Kill { kind, after, finished, faults })
}

/// True if every run was measured. An invalid run (exit code 3) is no fault of the kill: the machine was
/// busy.
fn is_carried_out(done: &Finished) -> bool {
    matches!(done.ended.status.code(), Some(0 | 3))
}

/// By their paths.
fn records(results: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = folders(&results.join("runs")).into_iter().map(|run| run.join("record.json"));
    paths.filter_map(|path| fs::read(&path).ok().map(|record| (path, record))).collect()
}

/// What is missing from a whole experiment.
fn incomplete(session: &ResultsDirectory) -> Option<String> {
    let found = session.session().and_then(|facts| Ok((facts.plan.len(), session.runs()?)));
    match found {
        Ok((planned, runs)) => {
            let is_measured = |run: &&RunRecord| !matches!(run.status, RunStatus::Failed { .. });
            let measured = runs.iter().filter(is_measured).count();
            (measured != planned)
                .then(|| format!("{measured} of {planned} runs are there and measured"))
        }
        Err(error) => Some(error.to_string()),
    }
}
