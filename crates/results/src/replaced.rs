//! A run that is repeated: the old record stays until the new one is on disk.

use std::path::PathBuf;

use dnslab_record::CaseId;

use crate::directory::{RECORD, RUNS, ResultsDirectory};
use crate::error::ResultsError;

/// Ending of the folder that an old run waits in. A run's folder ends with its number, so none has
/// this name.
const ENDING: &str = "replaced";

impl ResultsDirectory {
    /// Makes an empty folder for a run that begins; its path, for the processes of the run. A run with a
    /// record is put aside first ([`ResultsDirectory::settle`]), what an unfinished one left is removed.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn begin_run(&self, case: &CaseId) -> Result<PathBuf, ResultsError> {
        self.put_aside(case)?;
        Ok(self.root.make(RUNS)?.make(&case.folder())?.path().to_owned())
    }

    fn put_aside(&self, case: &CaseId) -> Result<(), ResultsError> {
        // What a kill left aside is decided first: there is one place aside for each run.
        self.settle(case)?;
        let Some(runs) = self.root.folder(RUNS)? else { return Ok(()) };
        if self.has_run(case)? {
            runs.rename("move aside", &case.folder(), &aside(case))
        } else {
            runs.remove(&case.folder())
        }
    }

    /// Decides what becomes of an old run that was put aside: it is removed if the new record is on disk,
    /// else it takes its place again. Does nothing if there is none.
    ///
    /// A kill between any two steps leaves one of the two records, and this can begin again.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn settle(&self, case: &CaseId) -> Result<(), ResultsError> {
        let Some(runs) = self.root.folder(RUNS)? else { return Ok(()) };
        let (folder, aside) = (case.folder(), aside(case));
        let Some(old) = runs.folder(&aside)? else { return Ok(()) };
        if self.has_run(case)? {
            return runs.remove(&aside);
        }
        runs.remove(&folder)?;
        // A removal that was cut short: its record may be gone already, and then it is worth nothing.
        if !old.has_file(RECORD)? {
            return runs.remove(&aside);
        }
        runs.rename("move back", &aside, &folder)
    }
}

fn aside(case: &CaseId) -> String {
    format!("{}.{ENDING}", case.folder())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    use dnslab_record::Session;

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
        act: fn(&ResultsDirectory, &CaseId) -> Result<(), ResultsError>,
        before: [Run; 2],
        after: [Run; 2],
    ) {
        let folder = tempfile::tempdir().unwrap();
        let session = Session::default();
        let results = ResultsDirectory::create(&folder.path().join("x"), &session).unwrap();
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
        let put_aside = ResultsDirectory::put_aside;
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
        let settle = ResultsDirectory::settle;
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
