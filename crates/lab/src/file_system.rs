//! The file system that a guarded process sees, and how it enters it.

use std::path::{Path, PathBuf};

use rustix::mount::MountPropagationFlags;
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use crate::stage_error::{StageError, refused};

/// Where the run's folder is inside a root. Debian has this folder for mounts and leaves it empty.
pub(crate) const RUN_FOLDER: &str = "mnt";

/// The kernel's file systems that servers look into: devices, processes, and how many CPUs there are.
pub(crate) const KERNEL_FOLDERS: [&str; 3] = ["dev", "proc", "sys"];

/// The file system that a guarded process sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// That of dnslab.
    #[default]
    Shared,
    /// That of dnslab with mounts of its own: nobody else sees them, and they go away with the process.
    OwnMounts,
    /// This folder is `/`, with mounts of its own, and the working directory is bound into it.
    Root(PathBuf),
}

impl FileSystem {
    /// Applies it to this process, which must have one thread. The working directory stays the same folder,
    /// by whatever name.
    pub(crate) fn enter(&self) -> Result<(), StageError> {
        match self {
            Self::Shared => Ok(()),
            Self::OwnMounts => own_mounts(),
            Self::Root(root) => own_mounts().and_then(|()| change_root(root)),
        }
    }
}

pub(crate) fn own_mounts() -> Result<(), StageError> {
    #[expect(deprecated, reason = "only with FILES is it unsafe, which is not asked for here")]
    rustix::thread::unshare(UnshareFlags::NEWNS).map_err(refused("have mounts of its own"))?;
    // systemd leaves mounts shared: what is mounted here would then appear everywhere.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(refused("keep its mounts to itself"))
}

/// Binds what is needed into `root` and moves there.
fn change_root(root: &Path) -> Result<(), StageError> {
    for folder in KERNEL_FOLDERS {
        let (here, there) = (Path::new("/").join(folder), root.join(folder));
        rustix::mount::mount_bind_recursive(&here, &there).map_err(refused(format!(
            "bind {} to {}",
            here.display(),
            there.display()
        )))?;
    }
    let there = root.join(RUN_FOLDER);
    rustix::mount::mount_bind(".", &there)
        .map_err(refused(format!("bind the run's folder to {}", there.display())))?;
    rustix::process::chroot(root).map_err(refused(format!("enter {}", root.display())))?;
    rustix::process::chdir(Path::new("/").join(RUN_FOLDER))
        .map_err(refused("enter the run's folder"))
}
