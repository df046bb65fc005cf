//! The stage between the guard and the server: it enters the server's groups and CPUs, then *becomes* the
//! server by exec.
//!
//! So the server never runs outside its groups, the guard never runs inside them, and the process id that the
//! guard knows is the server's own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};

use crate::file_system::FileSystem;
use crate::privileges::{self, RunAs};
use crate::stage_error::{StageError, refused};

/// First argument of the guard program when it is this stage.
pub(crate) const STAGE: &str = "enter";

/// Status of a stage that could not become the server; shells use 127 for a command that is not found.
pub(crate) const NOT_EXECUTED: u8 = 127;

/// Most file descriptors that a server is given. Every server here asks for fewer, and some walk through the
/// whole range when they start.
const FILES: u64 = 65_536;

/// Variables that a server gets from dnslab's environment, where they are set. Root's environment, or that of CI, has
/// tokens that are none of a server's business, and whatever else is set could change what is measured. These say where
/// programs and libraries are, how memory is had and threads are made, and in which language to speak.
const NAMED: [&str; 22] = [
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "GLIBC_TUNABLES",
    "MALLOC_CONF",
    "MALLOC_ARENA_MAX",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "RUST_BACKTRACE",
];

/// Which variables of dnslab's environment a process gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Environment {
    /// A few that are named here.
    #[default]
    Named,
    /// All of them but that by which systemd is told of a start: for tools that fetch and build.
    Whole,
}

impl Environment {
    fn apply(self, command: &mut Command) {
        match self {
            Self::Named => {
                let set =
                    NAMED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
                command.env_clear().envs(set);
            }
            // A server built for systemd would report to whoever supervises dnslab.
            Self::Whole => drop(command.env_remove("NOTIFY_SOCKET")),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stage {
    pub(crate) command: Vec<OsString>,
    pub(crate) groups: Vec<PathBuf>,
    /// CPUs to run on; empty for no change.
    pub(crate) cpus: Vec<usize>,
    pub(crate) file_system: FileSystem,
    /// The user that it becomes; `None` to stay who the guard is.
    pub(crate) run_as: Option<RunAs>,
    pub(crate) environment: Environment,
    pub(crate) guard: u32,
}

impl Stage {
    /// The command that becomes this stage: this program, with the arguments that lead to [`crate::guard::main`].
    /// It has no input.
    pub(crate) fn begin(&self, arguments: impl Iterator<Item = OsString>) -> io::Result<Command> {
        let mut command = Command::new("/proc/self/exe");
        command.args(arguments).arg(STAGE).arg(serde_json::to_string(self)?).stdin(Stdio::null());
        Ok(command)
    }
}

/// Becomes the server; returns only when that failed, with a line for the log.
pub(crate) fn enter(spec: &OsStr) -> ExitCode {
    let error = match spec.to_str().map(serde_json::from_str::<Stage>) {
        Some(Ok(stage)) => become_server(&stage),
        _ => "the stage's specification is unreadable".to_owned(),
    };
    eprintln!("dnslab: {error}");
    ExitCode::from(NOT_EXECUTED)
}

/// Everything up to exec. Returns only on failure, with the reason.
fn become_server(stage: &Stage) -> String {
    // As in the grammar of the shell (POSIX, "Simple Commands"): an image of a server may have no env(1).
    let variables = stage.command.iter().take_while(|word| variable(word).is_some()).count();
    let (variables, command) = stage.command.split_at(variables);
    let [program, arguments @ ..] = command else {
        return "the command is empty".to_owned();
    };
    // Before the user changes: the new one may not see the program at its path.
    let executed = match stage.run_as {
        Some(_) => privileges::executed(program),
        None => program,
    };
    if let Err(error) = prepare(stage) {
        return error.to_string();
    }
    let mut command = Command::new(executed);
    stage.environment.apply(&mut command);
    command.envs(variables.iter().filter_map(|word| variable(word)));
    let error = command.arg0(program).args(arguments).exec();
    format!("cannot execute {}: {error}", program.display())
}

/// The name and the value of a variable that is set before a command.
fn variable(word: &OsStr) -> Option<(&str, &str)> {
    let (name, value) = word.to_str()?.split_once('=')?;
    let is_name = name.bytes().all(|octet| octet.is_ascii_uppercase() || octet == b'_');
    (is_name && !name.is_empty()).then_some((name, value))
}

fn bind_to_guard(guard: u32) -> Result<(), StageError> {
    // The last resort: if the guard itself is killed, the kernel kills the server.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(refused("bind to the guard"))?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if parent == Some(guard) { Ok(()) } else { Err(StageError::GuardGone) }
}

/// Binds this process to the guard's life, its groups, CPUs, limits and user. All of it stays across exec.
fn prepare(stage: &Stage) -> Result<(), StageError> {
    bind_to_guard(stage.guard)?;
    for group in &stage.groups {
        fs::write(group.join("cgroup.procs"), std::process::id().to_string())
            .map_err(refused(format!("enter {}", group.display())))?;
    }
    if !stage.cpus.is_empty() {
        let mut set = CpuSet::new();
        for cpu in stage.cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
            set.set(*cpu);
        }
        rustix::thread::sched_setaffinity(None, &set)
            .map_err(refused(format!("run on CPUs {:?}", stage.cpus)))?;
    }
    raise_file_limit();
    // Inside another root neither the groups nor `/proc` need be where they were.
    stage.file_system.enter()?;
    let Some(run_as) = &stage.run_as else { return Ok(()) };
    run_as.uncover()?;
    // Last: all of the above may need the rights of root.
    run_as.give_up_root()?;
    // The change of user has undone it (prctl(2), PR_SET_PDEATHSIG).
    bind_to_guard(stage.guard)
}

/// File descriptors that a server may open. The hard limit is inherited, so it is the same here and in the
/// stage.
pub(crate) fn file_limit() -> u64 {
    rustix::process::getrlimit(Resource::Nofile).maximum.unwrap_or(FILES).min(FILES)
}

/// The hard limit on file descriptors, up to which a server may raise its own; `None` for no limit.
pub(crate) fn hard_file_limit() -> Option<u64> {
    rustix::process::getrlimit(Resource::Nofile).maximum
}

/// Raises the soft limit on file descriptors to what the hard one allows. A frequent soft limit, 1,024, is
/// less than the TCP clients that the adapters configure.
fn raise_file_limit() {
    let Rlimit { current, maximum } = rustix::process::getrlimit(Resource::Nofile);
    let wanted = file_limit();
    if current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum };
        // A failure makes the server smaller, not wrong: it says so itself when it runs out.
        rustix::process::setrlimit(Resource::Nofile, raised).ok();
    }
}
