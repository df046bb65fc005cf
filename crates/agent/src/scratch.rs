//! The temporary folders of an agent.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dnslab_lab::GuardProgram;
use dnslab_lab::remote::COPIED;
use dnslab_lab::sweep::Sweeper;
use dnslab_protocol::Failure;

use rustix::fs::{FlockOperation, flock};

/// How the names of all folders begin.
const PREFIX: &str = "dnslab-agent-";

/// A folder that is younger may not be locked yet.
const LOCKED_WITHIN: Duration = Duration::from_secs(2);

/// The folders of an agent, each locked (flock(2)) as long as the agent lives. Where it is killed, another process removes
/// them; where that is killed, too, the next agent does.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    folders: Arc<Mutex<HashMap<PathBuf, File>>>,
    /// It is started with the first folder.
    sweeper: Arc<Mutex<Option<Sweeper>>>,
    guard: GuardProgram,
}

impl Scratch {
    /// Without a folder. Those of agents of this user that were killed are removed.
    pub(crate) fn begin(guard: GuardProgram) -> Self {
        let all = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
        let named = all.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
        for path in named.map(|entry| entry.path()) {
            if path.symlink_metadata().is_ok_and(|facts| is_old(&facts)) && lock(&path).is_ok() {
                fs::remove_dir_all(&path).ok();
            }
        }
        Self { folders: Arc::default(), sweeper: Arc::default(), guard }
    }

    /// A folder that goes with what is returned.
    pub(crate) fn folder(&self) -> Result<Folder, Failure> {
        Ok(Folder { path: self.make()?, scratch: self.clone() })
    }

    /// Servers run as other users, and pass through it.
    pub(crate) fn make(&self) -> Result<PathBuf, Failure> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).permissions(Permissions::from_mode(0o711));
        let made = builder.tempdir().and_then(|made| Ok((lock(made.path())?, made)));
        let refused =
            |error: io::Error| Failure::of(format!("no temporary folder can be made: {error}"));
        let (locked, made) = made.map_err(refused)?;
        // Without it the next agent removes what is left.
        self.sweep(made.path()).ok();
        let folder = made.keep();
        self.folders().insert(folder.clone(), locked);
        Ok(folder)
    }

    /// Has the folder removed if this process is killed.
    fn sweep(&self, folder: &Path) -> io::Result<()> {
        let mut sweeper = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner);
        if sweeper.is_none() {
            *sweeper = Some(Sweeper::start(&self.guard)?);
        }
        sweeper.iter_mut().try_for_each(|sweeper| sweeper.add(folder))
    }

    fn folders(&self) -> MutexGuard<'_, HashMap<PathBuf, File>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remove(&self, folder: &Path) {
        fs::remove_dir_all(folder).ok();
        self.folders().remove(folder);
    }

    pub(crate) fn remove_all(&self) {
        let folders = std::mem::take(&mut *self.folders());
        for folder in folders.keys() {
            fs::remove_dir_all(folder).ok();
        }
    }
}

/// Removes the folder that this program was copied to. The program itself is there until its last process has ended.
pub fn remove_copy() {
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent);
    let is_own = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(COPIED))
    };
    if let Some(folder) = folder.filter(is_own) {
        fs::remove_dir_all(folder).ok();
    }
}

/// Locks a folder, if no other process has it locked.
fn lock(folder: &Path) -> io::Result<File> {
    let opened = File::open(folder)?;
    flock(&opened, FlockOperation::NonBlockingLockExclusive)?;
    Ok(opened)
}

/// Whether a folder is of this user, and no agent is about to lock it.
fn is_old(facts: &Metadata) -> bool {
    let age = facts.modified().ok().and_then(|made| made.elapsed().ok());
    let is_own = facts.uid() == rustix::process::geteuid().as_raw();
    facts.is_dir() && is_own && age.is_some_and(|age| age > LOCKED_WITHIN)
}

/// A folder of an agent, which is removed with this.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    scratch: Scratch,
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.scratch.remove(&self.path);
    }
}
