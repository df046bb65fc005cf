//! Whose experiment a file is. It may name programs and configuration text, which run with the rights of
//! whoever runs dnslab. So a file that somebody else wrote, or can change, is not taken without a question.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use dnslab_lab::users::{self, Trusted};

/// An experiment that names code, or has results already, in a file that may be somebody else's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}\n  hint:    {}", self.statement(), self.remedy())]
pub struct Untrusted {
    /// The file, or the folder of results.
    pub path: PathBuf,
    /// The keys of the file that are code, each once. Empty if the doubt is about a folder of results, in which
    /// servers would be started.
    pub keys: Vec<&'static str>,
    /// Whose it is or who can change it, as half a sentence.
    pub doubt: String,
}

impl Untrusted {
    fn remedy(&self) -> &'static str {
        match self.keys.as_slice() {
            [] => "write the results into a folder of your own (--results), or say --trust",
            _ => {
                "read it (`dnslab plan` shows what would run), then run it with --trust, or from a copy of your own"
            }
        }
    }

    /// The doubt as a sentence without its full stop.
    #[must_use]
    pub fn statement(&self) -> String {
        let Self { path, keys, doubt } = self;
        let path = path.display();
        match keys.as_slice() {
            [] => format!("servers would write their files below {path}, but {doubt}"),
            keys => format!(
                "the experiment file {path} names what is run, configured or written ({}), and {doubt}",
                keys.join(", ")
            ),
        }
    }
}

/// The path of an open file without symbolic links, as it was when the file was opened. `None` for a pipe,
/// and for a file that was removed.
pub(super) fn place(file: &File) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    let (there, open) = (fs::symlink_metadata(&path).ok()?, file.metadata().ok()?);
    ((there.dev(), there.ino()) == (open.dev(), open.ino())).then_some(path)
}

/// Why an open file may hold what this process's user did not write. `None` if only this user or root can
/// have written it, and what lies beside it at `place`.
pub(super) fn doubt(file: &File, place: Option<&Path>) -> Option<String> {
    let trusted = Trusted::of_this_process();
    if let Some(doubt) = trusted.doubt_of("it", file.metadata().ok().as_ref()) {
        return Some(doubt);
    }
    let Some(place) = place else {
        return Some("it is a pipe, or was removed: nobody knows who wrote it".to_owned());
    };
    trusted.doubt_of_folders(place.parent()?, "its folder ")
}

/// Why somebody else may take the place of what is made below `results`, a folder that need not exist yet. A server's
/// files are written and given away by path, with the rights of this process. `None` if nobody can, or if this process is
/// not root: an ordinary user may share a folder with others.
#[must_use]
pub fn doubt_of_results(results: &Path) -> Option<Untrusted> {
    if users::own() != 0 {
        return None;
    }
    let absolute = std::path::absolute(results).unwrap_or_else(|_| results.to_owned());
    let there = absolute.ancestors().find_map(|folder| folder.canonicalize().ok())?;
    let doubt = Trusted::of_this_process().doubt_of_folders(&there, "")?;
    Some(Untrusted { path: results.to_owned(), keys: Vec::new(), doubt })
}
