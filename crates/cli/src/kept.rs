//! Where the results of a command are, and whether they stay.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use tempfile::TempDir;

use crate::arguments::ResultsFolder;
use crate::exit::Failure;
use crate::signals;

/// In place of a folder: nothing is kept.
const NONE: &str = "none";

/// The folder in which a results directory is made. One that nobody keeps is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    temporary: Option<TempDir>,
}

impl Place {
    /// # Errors
    /// When results that nobody keeps have no place either.
    pub(crate) fn of(wanted: &ResultsFolder) -> Result<Self, Failure> {
        if !is_none(wanted) {
            return Ok(Self { folder: wanted.results.clone(), temporary: None });
        }
        let mut builder = tempfile::Builder::new();
        // The users that servers run as find their folders below it, and nobody can list it.
        builder.prefix("dnslab-").permissions(Permissions::from_mode(0o711));
        let temporary = builder.tempdir().context("there is no place for what is not kept")?;
        signals::remove_at_exit(temporary.path());
        Ok(Self { folder: temporary.path().to_owned(), temporary: Some(temporary) })
    }

    /// A folder that stays.
    pub(crate) fn kept(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), temporary: None }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The results stay.
    pub(crate) fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }
}

fn is_none(wanted: &ResultsFolder) -> bool {
    wanted.results.as_os_str() == NONE
}

/// # Errors
/// When nothing is to be kept. `what` is why something must be.
pub(crate) fn needs_folder(wanted: &ResultsFolder, what: &str) -> Result<(), Failure> {
    match is_none(wanted) {
        true => Err(Failure::bad_input(anyhow!(
            "{what}, so `--results none` does not fit\n  hint:    leave `--results none` out; a folder of that name \
             is `--results ./none`"
        ))),
        false => Ok(()),
    }
}
