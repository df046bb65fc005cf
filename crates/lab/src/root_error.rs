//! Why no server can run in a root folder.

use std::path::PathBuf;

/// Where programs are inside a root, in the order in which they are looked for.
pub(crate) const PROGRAM_FOLDERS: [&str; 6] =
    ["usr/sbin", "usr/bin", "usr/local/sbin", "usr/local/bin", "sbin", "bin"];

/// Why no server can run in a root folder.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// There is no such folder, and the cache has nothing of that name.
    #[error("there is no root folder `{}`", root.display())]
    Missing {
        /// As it was named.
        root: PathBuf,
        /// How to get it.
        hint: String,
    },
    /// The folder is no root of a system.
    #[error("{} is no root folder: it has no folder `{folder}`", root.display())]
    Incomplete {
        /// The folder.
        root: PathBuf,
        /// What it lacks.
        folder: &'static str,
    },
    /// The server is not in it.
    #[error(
        "there is no {kind} in {}: no `{program}` in its {}",
        root.display(),
        PROGRAM_FOLDERS.join(", ")
    )]
    NoProgram {
        /// The server.
        kind: &'static str,
        /// Its program.
        program: &'static str,
        /// The root folder.
        root: PathBuf,
    },
    /// What is asked for makes no sense in a root.
    #[error("{what} is not to be had in a root folder: {why}")]
    Senseless {
        /// What.
        what: &'static str,
        /// Why.
        why: &'static str,
    },
    /// The rights are missing.
    #[error(
        "a server in the root folder {} needs rights that this process does not have ({missing})",
        root.display()
    )]
    NotPrivileged {
        /// The folder.
        root: PathBuf,
        /// The capabilities, by the kernel's names.
        missing: String,
    },
}

impl RootError {
    /// What to do about it, if there is something to be done.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Missing { hint, .. } => Some(hint),
            Self::Incomplete { .. } => Some(
                "name the folder that holds the `usr` of a whole system, as debootstrap makes it",
            ),
            Self::NoProgram { .. } => {
                Some("`dnslab lab list` shows which servers there are to get")
            }
            Self::Senseless { .. } => None,
            Self::NotPrivileged { .. } => Some("run dnslab as root"),
        }
    }
}
