//! A process that removes folders when whoever made them is gone, however that ended.
//!
//! It is a stage of the guard: dnslab starts itself again, and writes the folders to its standard input, a line each. The
//! end of the input is the end of dnslab.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::guarded::GuardProgram;

/// First argument of the guard program when it is this stage.
pub(crate) const SWEEP: &str = "sweep";

/// A server that still writes may make a folder anew.
const PATIENCE: Duration = Duration::from_secs(30);

const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// What removes folders when this process is gone.
#[derive(Debug)]
pub struct Sweeper {
    input: ChildStdin,
}

impl Sweeper {
    /// Starts it, in a session of its own.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(guard: &GuardProgram) -> io::Result<Self> {
        let mut command = Command::new(&guard.path);
        command.args(&guard.arguments).arg(SWEEP).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().expect("it is a pipe");
        Ok(Self { input })
    }

    /// Has it remove a folder, too.
    ///
    /// # Errors
    /// When it is gone.
    pub fn add(&mut self, folder: &Path) -> io::Result<()> {
        let line = [folder.as_os_str().as_bytes(), b"\n"].concat();
        self.input.write_all(&line)
    }
}

/// The whole life of the stage.
pub(crate) fn sweep() -> ExitCode {
    // What ends the group of dnslab does not end this.
    rustix::process::setsid().ok();
    let lines = io::stdin().lock().split(b'\n');
    let mut folders: Vec<PathBuf> =
        lines.map_while(Result::ok).map(|line| PathBuf::from(OsStr::from_bytes(&line))).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        folders.retain(|folder| folder.exists() && fs::remove_dir_all(folder).is_err());
        if folders.is_empty() || Instant::now() > deadline {
            return ExitCode::SUCCESS;
        }
        thread::sleep(BETWEEN_ATTEMPTS);
    }
}
