//! Why a results directory could not be read or written.

use std::io;
use std::path::{Path, PathBuf};

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
    /// A record is cut short, or was changed.
    #[error("{} is not a whole record: {source}\n  hint:    {remedy}", path.display())]
    BrokenRecord {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
        /// The commands that make the run anew.
        remedy: String,
    },
    /// A record lies in the place of another run's.
    #[error("{} is the record of run {found}, not of this one\n  hint:    {remedy}", path.display())]
    Misplaced {
        /// The file.
        path: PathBuf,
        /// The folder of the run that it is the record of.
        found: String,
        /// The commands that make the run anew.
        remedy: String,
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
    /// Something else has the name of a file or folder of the results.
    #[error(
        "{} is {what}: results are regular files in folders, and no link is followed\n  hint:    \
         remove it, or put what belongs there in its place", path.display()
    )]
    Foreign {
        /// What has the name.
        path: PathBuf,
        /// What it is, with an article.
        what: &'static str,
    },
    /// A name from a file leads out of its folder.
    #[error("`{}` is no name of something in {}: the results were changed by hand",
        dnslab_record::visible(name), path.display())]
    Outside {
        /// The folder.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A file is larger than what is read of its kind, or of what others of its kind have left.
    #[error("{} has {found} octets, of which dnslab reads up to {most} here", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length, octets.
        found: u64,
        /// The bound, octets.
        most: u64,
    },
    /// There are more of something than can be reported.
    #[error("{} has {found} {what}; dnslab reads up to {most}", path.display())]
    TooMany {
        /// The file or folder.
        path: PathBuf,
        /// Of what.
        what: &'static str,
        /// How many there are; one more than the bound where nobody counted on.
        found: usize,
        /// The bound.
        most: usize,
    },
    /// A file contradicts itself.
    #[error("{}: {what}: it was changed by hand", path.display())]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// What cannot be.
        what: String,
    },
    /// Another session writes into the directory.
    #[error(
        "another session writes into {}: {holder}\n  hint:    wait until it has ended; to end it, \
         send that process SIGINT", path.display()
    )]
    Held {
        /// The results directory.
        path: PathBuf,
        /// The process, its host, and since when.
        holder: String,
    },
}

pub(crate) fn io_error<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl Fn(io::Error) -> ResultsError + 'a {
    move |source| ResultsError::Io { action, path: path.to_owned(), source }
}
