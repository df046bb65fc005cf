//! The results directory: one folder per experiment, one folder per run, every file written whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dnslab_figures::answers_header;
use dnslab_record::{
    AnswerComparison, CAPACITY_FORMAT, COMPARISON_FORMAT, Capacity, CaseId, Compared, CpuProfiles,
    PROFILE_FORMAT, RECORD_FORMAT, RunRecord, SESSION_FORMAT, Session,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bounds::{self, Budget};
use crate::error::{ResultsError, io_error};
use crate::folder::{Folder, MAX_ENTRIES};

const SESSION: &str = "session.json";

const EXPERIMENT: &str = "experiment.toml";

/// A search for the capacity.
const CAPACITY: &str = "capacity.json";

pub(crate) const RUNS: &str = "runs";

pub(crate) const RECORD: &str = "record.json";

/// What the queries of a run were told, for a comparison of answers.
const ANSWERS: &str = "answers.bin";

/// Where the CPU time of the servers goes, if that was asked for.
const CPU_PROFILE: &str = "cpu-profile.json";

/// A results directory that exists. Whatever is read or written in one is read and written here:
/// regular files inside it, by a path without a link ([`ResultsError::Foreign`]).
///
/// ```text
/// session.json       what was known before the first run
/// experiment.toml    the experiment as run
/// runs/VARIANT-N/    record.json when the run is over; server/ with its whole state; where answers are
///                    compared, answers.bin and answers-OTHER.json
/// summary.json, report.html, ...
/// ```
#[derive(Clone, Debug)]
pub struct ResultsDirectory {
    pub(crate) root: Arc<Folder>,
}

impl ResultsDirectory {
    /// Creates `path` and writes the session into it.
    ///
    /// # Errors
    /// When the folder exists already or cannot be written.
    pub fn create(path: &Path, session: &Session) -> Result<Self, ResultsError> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io_error("create", parent))?;
        }
        fs::create_dir(path).map_err(io_error("create", path))?;
        let root = Arc::new(Folder::open(path).map_err(io_error("open", path))?);
        let own = Self { root };
        own.write_session(session)?;
        Ok(own)
    }

    /// Opens an existing results directory. The path may be a link; nothing in the directory may.
    ///
    /// # Errors
    /// When there is no session file in it.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        let none = || ResultsError::NotResults { path: path.to_owned() };
        let root = match Folder::open(path) {
            Ok(root) => Arc::new(root),
            Err(error) => {
                return Err(match error.kind() {
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => none(),
                    _ => io_error("open", path)(error),
                });
            }
        };
        match root.has_file(SESSION)? {
            true => Ok(Self { root }),
            false => Err(none()),
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The folder of one run, for people and for the processes of that run.
    #[must_use]
    pub fn run_path(&self, case: &CaseId) -> PathBuf {
        self.path().join(RUNS).join(case.folder())
    }

    /// Writes the session again, for a plan that grows.
    ///
    /// # Errors
    /// When the disk refuses; the earlier session stays as it was.
    pub fn write_session(&self, session: &Session) -> Result<(), ResultsError> {
        self.write(SESSION, json(session).as_bytes())
    }

    /// Reads the session.
    ///
    /// # Errors
    /// When the file cannot be read, a newer dnslab wrote it, or it names what cannot be.
    pub fn session(&self) -> Result<Session, ResultsError> {
        let read = self.read_versioned(SESSION, SESSION_FORMAT)?;
        let none = || ResultsError::NotResults { path: self.path().to_owned() };
        let session = read.ok_or_else(none)?;
        bounds::check_session(&session, &self.path().join(SESSION))?;
        Ok(session)
    }

    /// Writes the experiment's file.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write_experiment(&self, text: &str) -> Result<(), ResultsError> {
        self.write(EXPERIMENT, text.as_bytes())
    }

    /// The experiment's file, opened to be read, with its path for messages.
    ///
    /// # Errors
    /// When there is none, or it cannot be opened.
    pub fn open_experiment(&self) -> Result<(PathBuf, File), ResultsError> {
        let path = self.path().join(EXPERIMENT);
        match self.root.open_file(EXPERIMENT)? {
            Some(file) => Ok((path, file)),
            None => Err(io_error("read", &path)(io::ErrorKind::NotFound.into())),
        }
    }

    /// The text of a file that [`ResultsDirectory::write`] wrote.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn written(&self, name: &str) -> Result<String, ResultsError> {
        let path = self.path().join(name);
        let refused = |error: io::Error| io_error("read", &path)(error);
        let content = self.root.read(name, bounds::MAX_WRITTEN)?;
        let content = content.ok_or_else(|| refused(io::ErrorKind::NotFound.into()))?;
        let not_text = |_| refused(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"));
        String::from_utf8(content).map_err(not_text)
    }

    /// Reads the records of all finished runs, in the order of execution.
    ///
    /// # Errors
    /// When a record cannot be read, is that of another run, or a newer dnslab wrote it.
    pub fn runs(&self) -> Result<Vec<RunRecord>, ResultsError> {
        let plan = self.session()?.plan;
        let Some(runs) = self.root.folder(RUNS)? else { return Ok(Vec::new()) };
        let mut records = Vec::new();
        let (mut left, mut words_left) = (bounds::RECORDS, bounds::MAX_WORDS);
        for case in plan {
            let Some(folder) = runs.folder(&case.folder())? else { continue };
            let read = read_versioned(&folder, RECORD, &mut left, RECORD_FORMAT);
            let Some(record) = read.map_err(|error| self.with_remedy(error, &case))? else {
                continue;
            };
            self.check_record(&record, &mut words_left, &case)?;
            records.push(record);
        }
        records.sort_by_key(|record| record.position);
        Ok(records)
    }

    /// True if the run is over and on disk.
    ///
    /// # Errors
    /// When something that is no record is in its place, or it cannot be looked for.
    pub fn has_run(&self, case: &CaseId) -> Result<bool, ResultsError> {
        match self.run_folder(case)? {
            Some(folder) => folder.has_file(RECORD),
            None => Ok(false),
        }
    }

    /// Writes the record of one run; from then on the run is over.
    ///
    /// # Errors
    /// When the disk refuses; an earlier record stays as it was.
    pub fn write_run(&self, record: &RunRecord) -> Result<(), ResultsError> {
        let case = CaseId { variant: record.variant.clone(), repetition: record.repetition };
        let folder = self.root.make(RUNS)?.make(&case.folder())?;
        folder.write(RECORD, json(record).as_bytes())
    }

    /// Makes the file of what the queries of a run are told, with its header, in the folder of the run.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn create_answers(&self, case: &CaseId) -> Result<File, ResultsError> {
        let folder = self.root.make(RUNS)?.make(&case.folder())?;
        let mut file = folder.create_file(ANSWERS)?;
        let path = folder.path().join(ANSWERS);
        file.write_all(&answers_header()).map_err(io_error("write", &path))?;
        Ok(file)
    }

    /// The file of what the queries of a run were told; `None` if there is none.
    ///
    /// # Errors
    /// When something else is in its place.
    pub fn open_answers(&self, case: &CaseId) -> Result<Option<File>, ResultsError> {
        match self.run_folder(case)? {
            Some(folder) => folder.open_file(ANSWERS),
            None => Ok(None),
        }
    }

    /// Writes a comparison of answers into the folder of its variant's run.
    ///
    /// # Errors
    /// When the disk refuses; an earlier one stays as it was.
    pub fn write_answer_comparison(
        &self,
        comparison: &AnswerComparison,
    ) -> Result<(), ResultsError> {
        let AnswerComparison { variant, repetition, against, .. } = comparison;
        let case = CaseId { variant: variant.clone(), repetition: *repetition };
        let folder = self.root.make(RUNS)?.make(&case.folder())?;
        folder.write(&comparison_file(against), json(comparison).as_bytes())
    }

    /// True if the answers of a run were compared with those of the variant `against`.
    ///
    /// # Errors
    /// When something else is in the place of the comparison.
    pub fn has_answer_comparison(
        &self,
        case: &CaseId,
        against: &str,
    ) -> Result<bool, ResultsError> {
        match self.run_folder(case)? {
            Some(folder) => folder.has_file(&comparison_file(against)),
            None => Ok(false),
        }
    }

    /// All comparisons of answers, in the order of the session's pairs and, for each, of the repetitions.
    ///
    /// # Errors
    /// When one cannot be read, is that of other runs, or a newer dnslab wrote it.
    pub fn answer_comparisons(&self) -> Result<Vec<AnswerComparison>, ResultsError> {
        let session = self.session()?;
        let mut left = bounds::COMPARISONS;
        let mut comparisons = Vec::new();
        for Compared { variant, against } in session.compared() {
            let mut cases: Vec<&CaseId> =
                session.plan.iter().filter(|case| case.variant == variant).collect();
            cases.sort_by_key(|case| case.repetition);
            for case in cases {
                let Some(folder) = self.run_folder(case)? else { continue };
                let name = comparison_file(&against);
                let read = read_versioned(&folder, &name, &mut left, COMPARISON_FORMAT)?;
                let Some(comparison) = read else { continue };
                let path = folder.path().join(&name);
                bounds::check_comparison(&comparison, &path)?;
                let AnswerComparison { variant: its, against: with, repetition, .. } = &comparison;
                if (its, with, *repetition) != (&variant, &against, case.repetition) {
                    let what = "it is the comparison of other runs".to_owned();
                    return Err(ResultsError::Contradiction { path, what });
                }
                comparisons.push(comparison);
            }
        }
        Ok(comparisons)
    }

    /// Reads the search of this directory; `None` if it holds none.
    ///
    /// # Errors
    /// When the file cannot be read or a newer dnslab wrote it.
    pub fn capacity(&self) -> Result<Option<Capacity>, ResultsError> {
        self.read_versioned(CAPACITY, CAPACITY_FORMAT)
    }

    /// Writes the search as it is now.
    ///
    /// # Errors
    /// When the disk refuses; the earlier state stays as it was.
    pub fn write_capacity(&self, capacity: &Capacity) -> Result<(), ResultsError> {
        self.write(CAPACITY, json(capacity).as_bytes())
    }

    /// Writes the profiles of the experiment.
    ///
    /// # Errors
    /// When the disk refuses; earlier ones stay as they were.
    pub fn write_cpu_profiles(&self, profiles: &CpuProfiles) -> Result<(), ResultsError> {
        // Many stacks: white space would be most of the file.
        let text = serde_json::to_string(profiles).expect("our types have string keys only");
        self.write(CPU_PROFILE, (text + "\n").as_bytes())
    }

    /// The profiles of the experiment; `None` if there are none.
    ///
    /// # Errors
    /// When the file cannot be read, a newer dnslab wrote it, or it contradicts itself.
    pub fn cpu_profiles(&self) -> Result<Option<CpuProfiles>, ResultsError> {
        let mut left = bounds::CPU_PROFILES;
        let read = read_versioned(&self.root, CPU_PROFILE, &mut left, PROFILE_FORMAT)?;
        if let Some(profiles) = &read {
            bounds::check_profiles(profiles, &self.path().join(CPU_PROFILE))?;
        }
        Ok(read)
    }

    /// Writes one file of the directory, whole or not at all.
    ///
    /// # Errors
    /// When the disk refuses; an earlier file of that name stays as it was.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), ResultsError> {
        self.root.write(name, content)
    }

    /// Removes a file of the directory, if it is there.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remove_file(&self, name: &str) -> Result<(), ResultsError> {
        let path = self.path().join(name);
        self.root.unlink(name).map_err(|error| io_error("remove", &path)(error.into()))
    }

    /// Moves a file of the same file system into the directory, and returns its path there. It takes the place of
    /// a file of that name.
    ///
    /// # Errors
    /// When the disk refuses; the file stays where it was.
    pub fn take_in(&self, name: &str, file: &Path) -> Result<PathBuf, ResultsError> {
        self.root.take_in(name, file)
    }

    /// Makes an empty folder for processes that belong to no run, and its path. What was in one of this
    /// name is removed.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn begin_scratch(&self, name: &str) -> Result<PathBuf, ResultsError> {
        self.root.remove(name)?;
        Ok(self.root.make(name)?.path().to_owned())
    }

    /// Removes such a folder.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remove_scratch(&self, name: &str) -> Result<(), ResultsError> {
        self.root.remove(name)
    }

    /// The text files (configurations and logs) of a server of a run, by name, from the folder of this name
    /// in that of the run (`server` for the one under test); zones and keys are left out. Instead of a large
    /// one, and of those beyond some number, a sentence says that it is not shown. For the page.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn files_of(
        &self,
        case: &CaseId,
        folder: &str,
    ) -> Result<BTreeMap<String, String>, ResultsError> {
        const SHOWN: [&str; 5] = [".conf", ".yaml", ".yml", ".log", "Corefile"];
        let mut files = BTreeMap::new();
        let Some(run) = self.run_folder(case)? else { return Ok(files) };
        let Some(folder) = run.folder(folder)? else { return Ok(files) };
        let (names, are_more) = folder.names()?;
        let names = names.into_iter().filter_map(|name| name.into_string().ok());
        let mut shown = names.filter(|name| SHOWN.iter().any(|ending| name.ends_with(ending)));
        for name in shown.by_ref().take(bounds::MAX_SERVER_FILES) {
            let text = match folder.read(&name, bounds::MAX_SERVER_FILE) {
                Ok(None) => continue,
                Err(ResultsError::TooLarge { found, most, .. }) => {
                    format!(
                        "not shown: it has {found} octets, and the page shows files of up to {most}"
                    )
                }
                Ok(Some(octets)) => String::from_utf8_lossy(&octets).into_owned(),
                // A server may leave a link; what is behind it is not the run's.
                Err(ResultsError::Foreign { what, .. }) => format!("not shown: it is {what}"),
                Err(error) => return Err(error),
            };
            files.insert(name, text);
        }
        let further = match (shown.count(), are_more) {
            (0, false) => return Ok(files),
            (further, false) => format!("not shown: {further} of this folder"),
            (_, true) => format!(
                "not shown: this folder holds more than {MAX_ENTRIES} files, of which some were looked at"
            ),
        };
        // No file of this name would be shown.
        files.insert("further files".to_owned(), further);
        Ok(files)
    }

    /// Reads a file of the directory that names its format; `None` if there is none.
    fn read_versioned<T: DeserializeOwned>(
        &self,
        name: &str,
        known: u32,
    ) -> Result<Option<T>, ResultsError> {
        read_versioned(&self.root, name, &mut { bounds::SESSION }, known)
    }

    fn run_folder(&self, case: &CaseId) -> Result<Option<Folder>, ResultsError> {
        match self.root.folder(RUNS)? {
            Some(runs) => runs.folder(&case.folder()),
            None => Ok(None),
        }
    }

    /// Checks that a record is that of its place, and of a size that can be shown.
    fn check_record(
        &self,
        record: &RunRecord,
        words_left: &mut usize,
        case: &CaseId,
    ) -> Result<(), ResultsError> {
        let path = self.run_path(case).join(RECORD);
        if (&record.variant, record.repetition) != (&case.variant, case.repetition) {
            let found = CaseId { variant: record.variant.clone(), repetition: record.repetition };
            let remedy = self.remedy(case);
            return Err(ResultsError::Misplaced { path, found: found.folder(), remedy });
        }
        bounds::check_record(record, words_left, &path)
    }

    /// A record that is none can be made anew.
    fn with_remedy(&self, error: ResultsError, case: &CaseId) -> ResultsError {
        match error {
            ResultsError::Malformed { path, source } => {
                ResultsError::BrokenRecord { path, source, remedy: self.remedy(case) }
            }
            other => other,
        }
    }

    fn remedy(&self, case: &CaseId) -> String {
        let quoted =
            |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
        let (run, own) = (quoted(&self.run_path(case)), quoted(self.path()));
        format!("remove the run, then make it anew: rm -r {run} && dnslab run --resume {own}")
    }
}

fn comparison_file(against: &str) -> String {
    format!("answers-{against}.json")
}

fn json<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("our types have string keys only");
    text.push('\n');
    text
}

/// Reads a file that names its format, unless that is newer than `known`; `None` if there is none. What is
/// `left` is lessened by what it has.
fn read_versioned<T: DeserializeOwned>(
    folder: &Folder,
    name: &str,
    left: &mut Budget,
    known: u32,
) -> Result<Option<T>, ResultsError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let path = folder.path().join(name);
    let Some(content) = folder.read(name, left.next())? else { return Ok(None) };
    left.take(&content, &path)?;
    let malformed = |source| ResultsError::Malformed { path: path.clone(), source };
    let Version { format } = serde_json::from_slice(&content).map_err(malformed)?;
    if format > known {
        return Err(ResultsError::Newer { path, found: format, known });
    }
    serde_json::from_slice(&content).map(Some).map_err(malformed)
}

#[cfg(test)]
mod tests;
