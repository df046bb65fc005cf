//! The results directory: one folder per experiment, one folder per run, every file written whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::statistics::Metric;
use crate::{CostLimit, RECORD_FORMAT, RunRecord};

/// Version of the session file's form; see [`RECORD_FORMAT`] for the rule.
pub const SESSION_FORMAT: u32 = 1;

/// What is known before the first run: the experiment, its plan, the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// [`SESSION_FORMAT`] at the time of writing.
    pub format: u32,
    /// Version of dnslab that began the experiment.
    pub dnslab: String,
    /// Name of the experiment.
    pub name: String,
    /// The question it answers.
    pub question: String,
    /// Name of the variant that the others are compared with.
    pub baseline: String,
    /// Names of the variants, in the order of the file.
    pub variants: Vec<String>,
    /// Variants that cannot run here, and why.
    pub skipped: Vec<SkippedVariant>,
    /// The metric that answers the question; `None` if the load decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Metric>,
    /// Relative difference (0.02 = 2 %) below which a difference does not matter.
    pub margin: f64,
    /// Seed of the order and of everything drawn at random.
    pub seed: u64,
    /// When the experiment began, RFC 3339 in UTC.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// Facts of the host, in the order in which they are shown.
    pub host: Vec<Fact>,
    /// Files that the load is made from, and a digest of each; none in sessions that do not have it.
    #[serde(default)]
    pub inputs: Vec<Fact>,
    /// Which variants are compared with which; each with the baseline, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Compared>,
    /// The servers of a round are up together and the load goes to them in turns, in slices of this
    /// length in nanoseconds; `None` where whole runs alternate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// Why whole runs alternate though slices were possible to ask for; empty where they do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub whole_runs_because: String,
    /// Rate of the common load of all variants, queries per second, once it is known; `None` without
    /// a common load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_rate_qps: Option<f64>,
    /// What the variants may cost, as given with `--limit`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<CostLimit>,
    /// The runs in the order of execution.
    pub plan: Vec<CaseId>,
}

/// Two variants that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The one whose difference is told.
    pub variant: String,
    /// The one that it is compared with.
    pub against: String,
}

impl Session {
    /// Which variants are compared with which, those that cannot run here left out.
    #[must_use]
    pub fn compared(&self) -> Vec<Compared> {
        let runs = |name: &str| !self.skipped.iter().any(|skip| skip.variant == name);
        let with_baseline = || {
            let others = self.variants.iter().filter(|name| **name != self.baseline);
            let against = &self.baseline;
            others
                .map(|name| Compared { variant: name.clone(), against: against.clone() })
                .collect()
        };
        let asked: Vec<Compared> =
            if self.compared.is_empty() { with_baseline() } else { self.compared.clone() };
        asked.into_iter().filter(|of| runs(&of.variant) && runs(&of.against)).collect()
    }
}

/// A variant that cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedVariant {
    /// Its name.
    pub variant: String,
    /// Why, as a sentence.
    pub reason: String,
}

/// One fact of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is, e.g. `kernel`.
    pub name: String,
    /// Its value as text.
    pub value: String,
}

/// One planned run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CaseId {
    /// Name of the variant.
    pub variant: String,
    /// Repetition, from 1.
    pub repetition: u32,
}

impl CaseId {
    /// Name of the run's folder: `VARIANT-REPETITION`.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("{}-{}", self.variant, self.repetition)
    }
}

/// Why a results directory could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write`, `create`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{} is not a dnslab file of this kind: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A newer dnslab wrote the file.
    #[error(
        "{} has format {found}; this dnslab reads up to {known}: use a newer one", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// The folder is not a results directory.
    #[error("{} is not a results directory: it has no session.json", path.display())]
    NotResults {
        /// The folder.
        path: PathBuf,
    },
}

/// A results directory that exists.
///
/// ```text
/// session.json       what was known before the first run
/// experiment.toml    the experiment as run
/// runs/VARIANT-N/    record.json when the run is over; server/ with its whole state
/// summary.json, report.html, ...
/// ```
#[derive(Clone, Debug)]
pub struct ResultsDirectory {
    path: PathBuf,
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
        let own = Self { path: path.to_owned() };
        own.write("session.json", json(session).as_bytes())?;
        Ok(own)
    }

    /// Opens an existing results directory.
    ///
    /// # Errors
    /// When there is no session file in it.
    pub fn open(path: &Path) -> Result<Self, ResultsError> {
        if !path.join("session.json").is_file() {
            return Err(ResultsError::NotResults { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned() })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of one run.
    #[must_use]
    pub fn run_path(&self, case: &CaseId) -> PathBuf {
        self.path.join("runs").join(case.folder())
    }

    /// Writes the session again, for a plan that grows.
    ///
    /// # Errors
    /// When the disk refuses; the earlier session stays as it was.
    pub fn write_session(&self, session: &Session) -> Result<(), ResultsError> {
        self.write("session.json", json(session).as_bytes())
    }

    /// Reads the session.
    ///
    /// # Errors
    /// When the file cannot be read or a newer dnslab wrote it.
    pub fn session(&self) -> Result<Session, ResultsError> {
        read_versioned(&self.path.join("session.json"), SESSION_FORMAT)
    }

    /// Reads the records of all finished runs, in the order of execution.
    ///
    /// # Errors
    /// When a record cannot be read or a newer dnslab wrote it.
    pub fn runs(&self) -> Result<Vec<RunRecord>, ResultsError> {
        let mut records = Vec::new();
        for case in self.session()?.plan {
            let path = self.run_path(&case).join("record.json");
            if path.is_file() {
                records.push(read_versioned::<RunRecord>(&path, RECORD_FORMAT)?);
            }
        }
        records.sort_by_key(|record| record.position);
        Ok(records)
    }

    /// True if the run is over and on disk.
    #[must_use]
    pub fn has_run(&self, case: &CaseId) -> bool {
        self.run_path(case).join("record.json").is_file()
    }

    /// Writes the record of one run; from then on the run is over.
    ///
    /// # Errors
    /// When the disk refuses; an earlier record stays as it was.
    pub fn write_run(&self, record: &RunRecord) -> Result<(), ResultsError> {
        let case = CaseId { variant: record.variant.clone(), repetition: record.repetition };
        let folder = self.run_path(&case);
        fs::create_dir_all(&folder).map_err(io_error("create", &folder))?;
        write_whole(&folder.join("record.json"), json(record).as_bytes())
    }

    /// Writes one file of the directory, whole or not at all.
    ///
    /// # Errors
    /// When the disk refuses; an earlier file of that name stays as it was.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), ResultsError> {
        write_whole(&self.path.join(name), content)
    }

    /// The text files of a run's server folder (configuration and log), by name; large zones and
    /// keys are left out. For the page.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn server_files(&self, case: &CaseId) -> Result<BTreeMap<String, String>, ResultsError> {
        self.files_of(case, "server")
    }

    /// The same of any server of a run, by the name of its folder in that of the run.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn files_of(
        &self,
        case: &CaseId,
        folder: &str,
    ) -> Result<BTreeMap<String, String>, ResultsError> {
        const LARGEST: u64 = 64 * 1024;
        const SHOWN: [&str; 5] = [".conf", ".yaml", ".yml", ".log", "Corefile"];
        let folder = self.run_path(case).join(folder);
        let mut files = BTreeMap::new();
        if !folder.is_dir() {
            return Ok(files);
        }
        for entry in fs::read_dir(&folder).map_err(io_error("read", &folder))? {
            let path = entry.map_err(io_error("read", &folder))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let shown = SHOWN.iter().any(|ending| name.ends_with(ending));
            let small =
                path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() <= LARGEST);
            if shown && small {
                let octets = fs::read(&path).map_err(io_error("read", &path))?;
                files.insert(name, String::from_utf8_lossy(&octets).into_owned());
            }
        }
        Ok(files)
    }
}

fn json<T: Serialize>(value: &T) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("our types have string keys only");
    text.push('\n');
    text
}

/// Reads a file that names its format, unless that is newer than `known`.
pub(crate) fn read_versioned<T: DeserializeOwned>(
    path: &Path,
    known: u32,
) -> Result<T, ResultsError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let malformed = |source| ResultsError::Malformed { path: path.to_owned(), source };
    let text = fs::read_to_string(path).map_err(io_error("read", path))?;
    let Version { format } = serde_json::from_str(&text).map_err(malformed)?;
    if format > known {
        return Err(ResultsError::Newer { path: path.to_owned(), found: format, known });
    }
    serde_json::from_str(&text).map_err(malformed)
}

/// Writes beside the place, syncs, then renames: a reader sees the old file or the new one.
fn write_whole(path: &Path, content: &[u8]) -> Result<(), ResultsError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let written = (|| {
        let mut file = File::create(&part)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&part, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    })();
    if written.is_err() {
        // A half-written file helps nobody, least of all on a full disk.
        fs::remove_file(&part).ok();
    }
    written.map_err(io_error("write", path))
}

fn io_error<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> ResultsError + 'a {
    move |source| ResultsError::Io { action, path: path.to_owned(), source }
}
