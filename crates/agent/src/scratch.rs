//! The temporary folders of an agent.

use std::collections::HashSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dnslab_protocol::Failure;

/// The folders of an agent. Nothing of them stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch(Arc<Mutex<HashSet<PathBuf>>>);

impl Scratch {
    /// A folder that goes with what is returned.
    pub(crate) fn folder(&self) -> Result<Folder, Failure> {
        Ok(Folder { path: self.make()?, scratch: self.clone() })
    }

    /// Servers run as other users, and pass through it.
    pub(crate) fn make(&self) -> Result<PathBuf, Failure> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("dnslab-agent-").permissions(Permissions::from_mode(0o711));
        let made = builder.tempdir();
        let refused = |error: std::io::Error| {
            Failure::of(format!("no temporary folder can be made: {error}"))
        };
        let folder = made.map_err(refused)?.keep();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.clone());
        Ok(folder)
    }

    pub(crate) fn remove(&self, folder: &Path) {
        std::fs::remove_dir_all(folder).ok();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(folder);
    }

    pub(crate) fn remove_all(&self) {
        let folders = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for folder in folders {
            std::fs::remove_dir_all(&folder).ok();
        }
    }
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
