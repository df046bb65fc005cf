//! The temporary folders of an agent.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dnslab_protocol::Failure;

/// The folders of an agent. Nothing of them stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch(Arc<Mutex<HashSet<PathBuf>>>);

impl Scratch {
    pub(crate) fn make(&self) -> Result<PathBuf, Failure> {
        let made = tempfile::Builder::new().prefix("dnslab-agent-").tempdir();
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
