//! `dnslab compare`: two sessions of one experiment, before a change and after it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use dnslab_analysis::{SessionComparison, WholeSession};
use dnslab_record::{RunRecord, Session};
use dnslab_report::{
    machine_texts, session_comparison_json, session_comparison_junit, session_comparison_markdown,
    session_comparison_screen,
};
use dnslab_results::ResultsDirectory;

use crate::arguments::Compare;
use crate::exit::{Exit, Failure};
use crate::{gate, terminal};

pub(crate) fn compare(arguments: &Compare) -> Result<Exit, Failure> {
    let Compare { base, new, limit, across_machines, .. } = arguments;
    let (base, new) = (Read::of(&first_of(base))?, Read::of(&last_of(new))?);
    if base.is_same_as(&new) {
        let path = base.results.path().display();
        return Err(Failure::bad_input(anyhow!("{path} would be compared with itself")));
    }
    let comparison = SessionComparison::of(base.whole(), new.whole(), limit);
    let machines = machine_texts(&comparison);
    if !machines.is_empty() && !across_machines {
        return Err(anyhow!(
            "the sessions are of different machines: {}\n  hint:    measure both on one machine, best by \
             `dnslab run FILE --against BINARY`; --across-machines compares them all the same",
            machines.join("; ")
        )
        .into());
    }
    if arguments.json {
        say!("{}", session_comparison_json(&comparison).trim_end());
    } else {
        terminal::show(&session_comparison_screen(&comparison, terminal::width()));
    }
    if let Some(path) = &arguments.markdown {
        write(path, &session_comparison_markdown(&comparison))?;
    }
    if let Some(path) = &arguments.junit {
        write(path, &session_comparison_junit(&comparison))?;
    }
    Ok(gate::exit(Some(comparison.ruling())))
}

/// The oldest of the results directories in a folder; any other path as it is.
fn first_of(path: &Path) -> PathBuf {
    all_in(path).into_iter().next().unwrap_or_else(|| path.to_owned())
}

/// The newest of them.
fn last_of(path: &Path) -> PathBuf {
    all_in(path).pop().unwrap_or_else(|| path.to_owned())
}

/// The results directories in a folder that is none itself, the oldest first: their names begin with their time. They have
/// all runs of their plans, and the experiment of the newest one.
fn all_in(path: &Path) -> Vec<PathBuf> {
    if ResultsDirectory::open(path).is_ok() {
        return Vec::new();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<(PathBuf, String)> = entries.filter_map(whole).collect();
    all.sort();
    let last = all.last().map(|(_, name)| name.clone());
    all.into_iter().filter(|(_, name)| Some(name) == last.as_ref()).map(|(path, _)| path).collect()
}

/// A results directory that has all of its runs, with the name of its experiment.
fn whole(path: PathBuf) -> Option<(PathBuf, String)> {
    let results = ResultsDirectory::open(&path).ok()?;
    let session = results.session().ok()?;
    let is_whole = results.runs().is_ok_and(|runs| runs.len() == session.plan.len());
    is_whole.then_some((path, session.name))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// A results directory that was read.
pub(crate) struct Read {
    results: ResultsDirectory,
    session: Session,
    records: Vec<RunRecord>,
    experiment: String,
}

impl Read {
    pub(crate) fn of(path: &Path) -> Result<Self, Failure> {
        let results = ResultsDirectory::open(path).map_err(Failure::bad_input)?;
        if results.capacity()?.is_some() {
            return Err(Failure::bad_input(anyhow!(
                "{} is a search for a rate, whose steps are no variants\n  hint:    compare runs of an \
                 experiment (`dnslab run`) or of one load (`dnslab load`)",
                path.display()
            )));
        }
        let (session, records) = (results.session()?, results.runs()?);
        // A directory without it has all that is judged.
        let experiment = results.written("experiment.toml").unwrap_or_default();
        Ok(Self { results, session, records, experiment })
    }

    pub(crate) fn whole(&self) -> WholeSession<'_> {
        let Self { session, records, experiment, .. } = self;
        WholeSession { session, records, experiment }
    }

    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        let place = |read: &Self| read.results.path().canonicalize().ok();
        place(self).is_some_and(|path| Some(path) == place(other))
    }
}
