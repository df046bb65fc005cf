//! Why a server was not fetched.

use std::path::PathBuf;

use crate::ending::Ending;
use crate::error::LabError;

/// Why a server was not fetched. Long ones have further lines, indented.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// The program that makes it is not there.
    #[error("cannot get {name}: `{tool}` is not installed\n  hint:    {hint}")]
    NoTool {
        /// What was to be fetched.
        name: &'static str,
        /// The program.
        tool: &'static str,
        /// How to get it.
        hint: String,
    },
    /// debootstrap needs root.
    #[error(
        "cannot get {name}: debootstrap makes devices, mounts and changes the root, which only root \
         may\n  hint:    run `dnslab lab get {name}` as root (with CAP_SYS_ADMIN, in a container)"
    )]
    NotPrivileged {
        /// What was to be fetched.
        name: &'static str,
    },
    /// Nothing to verify packages with.
    #[error(
        "nothing to verify Debian's packages with: there is no {looked_for}\n  hint:    apt-get install \
         debian-archive-keyring (Debian and Ubuntu have it)"
    )]
    NoKeyring {
        /// The file.
        looked_for: &'static str,
    },
    /// A path is no argument for a tool.
    #[error("the path {} must be UTF-8\n  hint:    name another cache folder with DNSLAB_CACHE", path.display())]
    NotUtf8 {
        /// The path.
        path: PathBuf,
    },
    /// There is something else in its place.
    #[error(
        "{} is in the way: dnslab did not make it, or it is not whole\n  hint:    look at it and move it \
         away, or name another cache folder with DNSLAB_CACHE",
        path.display()
    )]
    InTheWay {
        /// What.
        path: PathBuf,
    },
    /// The tool failed.
    #[error(
        "cannot get {name}: the tool {ending}\n  command: {}\n  log:     {}, last lines:{}\n  hint:    {hint}",
        command.join(" "),
        log.display(),
        log_tail.iter().map(|line| format!("\n    {line}")).collect::<String>()
    )]
    Failed {
        /// What was to be fetched.
        name: &'static str,
        /// How it ended.
        ending: Ending,
        /// The command line.
        command: Vec<String>,
        /// Its log, which is kept.
        log: PathBuf,
        /// The log's last lines.
        log_tail: Vec<String>,
        /// What to look at.
        hint: &'static str,
    },
    /// The tool ended well, but what it made does not run.
    #[error("{} was made, but does not run", program.display())]
    NotWhole {
        /// The program.
        program: PathBuf,
    },
    /// The mirror has another version than the name says.
    #[error(
        "the mirror's {name} is version {found}, not what its name says\n  hint:    name a mirror of \
         Debian itself with `--mirror URL`"
    )]
    OtherVersion {
        /// What was to be fetched.
        name: &'static str,
        /// The version that came.
        found: String,
    },
    /// It was interrupted; nothing is left.
    #[error("getting {name} was interrupted; nothing of it is left")]
    Interrupted {
        /// What was to be fetched.
        name: &'static str,
    },
    /// The guard, the program that was made, or a file of the cache failed.
    #[error(transparent)]
    Lab(#[from] LabError),
}
