//! CPU time planted into servers that others wrote.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use dnslab_lab::ServerKind;
use tempfile::TempDir;

use crate::process::{scratch, write};

/// The library that is loaded before the C library of a server.
const SOURCE: &str = include_str!("busy.c");

/// A library that keeps a server busy before each answer, and the programs that load it.
#[derive(Debug)]
pub(crate) struct Planter {
    /// Users without rights may read it: servers run as such.
    folder: TempDir,
}

impl Planter {
    /// # Errors
    /// When the library cannot be compiled.
    pub(crate) fn new() -> Result<Self> {
        let folder = scratch("busy")?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        write(&folder.path().join("busy.c"), SOURCE)?;
        let made = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-o", "busy.so", "busy.c", "-ldl"])
            .current_dir(folder.path())
            .output()
            .context("cannot run `cc`, which compiles what keeps a server busy")?;
        if !made.status.success() {
            bail!("`cc` refuses busy.c: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
        Ok(Self { folder })
    }

    /// The installed server as a program whose answers cost so much CPU time more.
    ///
    /// # Errors
    /// When the program cannot be written.
    pub(crate) fn program(&self, server: ServerKind, busy_ns: u64) -> Result<PathBuf> {
        let path = self.folder.path().join(format!("{server}-{busy_ns}"));
        let (library, program) = (self.folder.path().join("busy.so"), server.profile().program);
        let script = format!(
            "#!/bin/sh\nprogram=$(PATH=$PATH:/usr/local/sbin:/usr/sbin command -v {program}) || exit\n\
             DNSLAB_BUSY_NS={busy_ns} LD_PRELOAD={} exec \"$program\" \"$@\"\n",
            library.display()
        );
        write(&path, script)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        Ok(path)
    }
}
