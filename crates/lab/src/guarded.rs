//! What a guard is told and says: the process that it starts, and the program that it is itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cgroup::Sources;
use crate::ending::ExitReport;
use crate::file_system::FileSystem;
use crate::launch::Environment;
use crate::privileges::RunAs;
use crate::users;

/// Time that a server has to end by itself, unless the caller says another.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The program that becomes the guard, and the arguments that make it call [`crate::guard::main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardProgram {
    /// The executable.
    pub path: PathBuf,
    /// E.g. `guard`. The guard starts its own executable with the same arguments and two more, which must
    /// reach it too.
    pub arguments: Vec<OsString>,
}

impl GuardProgram {
    /// The running program itself, even if its file was replaced meanwhile.
    #[must_use]
    pub fn this_program<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { path: PathBuf::from("/proc/self/exe"), arguments }
    }
}

/// What the guard starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Working directory of the server.
    pub directory: PathBuf,
    /// File that its standard output and error are appended to.
    pub log: PathBuf,
    /// File that the guard copies its standard error to, through a pipe; `None` to append it to the log.
    #[serde(default)]
    pub standard_error: Option<PathBuf>,
    /// CPUs that the server may use; empty for all that dnslab may use.
    pub cpus: Vec<usize>,
    /// What it sees of the file system.
    pub file_system: FileSystem,
    /// The user that it becomes; `None`, or a guard that is not root, for no change.
    #[serde(default)]
    pub run_as: Option<RunAs>,
    /// The variables of the environment that it gets.
    #[serde(default)]
    pub environment: Environment,
}

impl GuardSpec {
    /// A command on all CPUs and with the user and the file system of the guard.
    #[must_use]
    pub fn new(command: Vec<String>, directory: PathBuf, log: PathBuf) -> Self {
        Self {
            command,
            directory,
            log,
            standard_error: None,
            cpus: Vec::new(),
            file_system: FileSystem::Shared,
            run_as: None,
            environment: Environment::Named,
        }
    }

    /// The user that the server becomes; `None` if it stays who the guard is.
    pub(crate) fn run_as(&self) -> Option<&RunAs> {
        self.run_as.as_ref().filter(|_| users::own() == 0)
    }
}

/// One line of the guard's standard output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report {
    Started {
        pid: u32,
        sources: Sources,
    },
    Failed {
        reason: String,
    },
    /// It has ended, and nothing is left.
    Exited(ExitReport),
}
