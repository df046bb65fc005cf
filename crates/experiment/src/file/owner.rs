//! Whose experiment a file is. It may name programs and configuration text, which run with the rights of
//! whoever runs dnslab. So a file that somebody else wrote, or can change, is not taken without a question.

use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use dnslab_lab::users;

/// The bits that let the group and everybody write (chmod(2)).
const GROUP_MAY_WRITE: u32 = 0o020;
const ALL_MAY_WRITE: u32 = 0o002;

/// The bit that keeps strangers from replacing what is in a folder that they may write (unlink(2)).
const STICKY: u32 = 0o1000;

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
    let Ok(facts) = file.metadata() else { return Some(unknown("it")) };
    if let Some(doubt) = doubt_of("it", &facts, trusted.has(facts.uid())) {
        return Some(doubt);
    }
    let Some(place) = place else {
        return Some("it is a pipe, or was removed: nobody knows who wrote it".to_owned());
    };
    let mut folders = place.ancestors().skip(1);
    folders.find_map(|folder| {
        trusted.doubt_of_folder(&format!("its folder {}", folder.display()), folder)
    })
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
    let trusted = Trusted::of_this_process();
    let mut folders = there.ancestors();
    let doubt = folders
        .find_map(|folder| trusted.doubt_of_folder(&folder.display().to_string(), folder))?;
    Some(Untrusted { path: results.to_owned(), keys: Vec::new(), doubt })
}

fn unknown(what: &str) -> String {
    format!("the system does not say whose {what} is")
}

/// Users who can run something as this process's user anyway.
struct Trusted {
    own: u32,
    /// Who became root by sudo(8) to run this process.
    caller: Option<u32>,
    /// The owner of `/`: root, by whatever number a user namespace shows it (user_namespaces(7)).
    root: u32,
}

impl Trusted {
    fn of_this_process() -> Self {
        let own = users::own();
        let caller = std::env::var("SUDO_UID").ok().filter(|_| own == 0);
        Self {
            own,
            caller: caller.and_then(|caller| caller.parse().ok()),
            root: fs::metadata("/").map_or(0, |facts| facts.uid()),
        }
    }

    fn has(&self, user: u32) -> bool {
        [Some(self.own), Some(0), self.caller].contains(&Some(user))
    }

    /// Why somebody else may replace what is in a folder; `what` is its name in the sentence.
    fn doubt_of_folder(&self, what: &str, folder: &Path) -> Option<String> {
        let Ok(facts) = fs::metadata(folder) else { return Some(unknown(what)) };
        let is_trusted = self.has(facts.uid()) || facts.uid() == self.root;
        // In a sticky folder strangers cannot replace this user's file.
        let is_sticky = facts.permissions().mode() & STICKY != 0;
        if is_sticky && is_trusted { None } else { doubt_of(what, &facts, is_trusted) }
    }
}

/// `what` is the name of the file or folder in the sentence.
fn doubt_of(what: &str, facts: &Metadata, is_trusted: bool) -> Option<String> {
    let mode = facts.permissions().mode();
    if !is_trusted {
        let (owner, own) = (users::described(facts.uid()), users::described(users::own()));
        return Some(format!("{what} belongs to the user {owner}, not to {own}"));
    }
    if mode & ALL_MAY_WRITE != 0 {
        return Some(format!("everybody may write {what}"));
    }
    let is_shared = mode & GROUP_MAY_WRITE != 0 && !users::is_alone_in(facts.uid(), facts.gid());
    is_shared.then(|| format!("the group {} may write {what}", facts.gid()))
}
