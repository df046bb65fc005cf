//! A run that is repeated: the old record stays until the new one is on disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dnslab_measure::{CaseId, ResultsDirectory};

use super::SessionError;

/// Ending of the folder that an old run waits in. A run's folder ends with its number, so none has
/// this name.
const ENDING: &str = "replaced";

/// Makes room for a new run in `case`'s folder: a run with a record is put aside, what an unfinished
/// one left is removed.
pub(super) fn put_aside(results: &ResultsDirectory, case: &CaseId) -> Result<(), SessionError> {
    // What a kill left aside is decided first: there is one place aside for each run.
    settle(results, case)?;
    let folder = results.run_path(case);
    if results.has_run(case) {
        let aside = aside(&folder);
        fs::rename(&folder, &aside).map_err(refused("move aside", &folder))
    } else {
        remove(&folder)
    }
}

/// Decides what becomes of an old run that was put aside: it is removed if the new record is on disk,
/// else it takes its place again. Does nothing if there is none.
///
/// A kill between any two steps leaves one of the two records, and this can begin again.
pub(super) fn settle(results: &ResultsDirectory, case: &CaseId) -> Result<(), SessionError> {
    let folder = results.run_path(case);
    let aside = aside(&folder);
    if !aside.exists() {
        return Ok(());
    }
    if results.has_run(case) {
        return remove(&aside);
    }
    remove(&folder)?;
    // A removal that was cut short: its record may be gone already, and then it is worth nothing.
    if !aside.join("record.json").is_file() {
        return remove(&aside);
    }
    fs::rename(&aside, &folder).map_err(refused("move back", &aside))
}

/// Where an old run waits.
fn aside(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(ENDING);
    folder.with_file_name(name)
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> Result<(), SessionError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(refused("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

fn refused<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> SessionError + 'a {
    move |source| SessionError::Replaced { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::super::tests::session;
    use super::*;

    /// A folder's record and another file of it.
    type Run = Option<(&'static str, &'static str)>;

    /// Record that says that a folder has none.
    const NONE: &str = "";

    fn write(folder: &Path, run: Run) {
        let Some((record, log)) = run else { return };
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("log"), log).unwrap();
        if record != NONE {
            fs::write(folder.join("record.json"), record).unwrap();
        }
    }

    fn read(folder: &Path) -> Option<(String, String)> {
        let text = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
        folder.exists().then(|| (text("record.json"), text("log")))
    }

    #[track_caller]
    fn check(
        act: fn(&ResultsDirectory, &CaseId) -> Result<(), SessionError>,
        before: [Run; 2],
        after: [Run; 2],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let results = ResultsDirectory::create(&folder.path().join("x"), &session()).unwrap();
        let case = CaseId { variant: "udp".to_owned(), repetition: 1 };
        let places = [results.run_path(&case), results.path().join("runs/udp-1.replaced")];
        places.iter().zip(before).for_each(|(place, run)| write(place, run));
        act(&results, &case).unwrap();
        let found = places.map(|place| read(&place));
        let expected = after.map(|run| run.map(|(record, log)| (record.into(), log.into())));
        assert_eq!(found, expected, "{before:?}");
    }

    #[test]
    fn a_record_is_put_aside_and_an_unfinished_run_removed() {
        let (old, new) = (Some(("old", "1")), Some(("new", "2")));
        let unfinished = Some((NONE, "3"));
        check(put_aside, [None, None], [None, None]);
        check(put_aside, [unfinished, None], [None, None]);
        check(put_aside, [old, None], [None, old]);
        // After a kill: the place aside is free again, and no record is lost.
        check(put_aside, [unfinished, old], [None, old]);
        check(put_aside, [None, old], [None, old]);
        check(put_aside, [new, old], [None, new]);
    }

    #[test]
    fn what_a_kill_left_aside_is_restored_or_removed() {
        let (old, new) = (Some(("old", "1")), Some(("new", "2")));
        let unfinished = Some((NONE, "3"));
        check(settle, [None, None], [None, None]);
        check(settle, [unfinished, None], [unfinished, None]);
        check(settle, [old, None], [old, None]);
        check(settle, [None, old], [old, None]);
        check(settle, [unfinished, old], [old, None]);
        check(settle, [new, old], [new, None]);
        check(settle, [None, unfinished], [None, None]);
        // A removal that was cut short.
        check(settle, [new, unfinished], [new, None]);
    }
}
