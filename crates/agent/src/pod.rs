//! A pod as a host: the program comes into its container, and a process holds it for the agents that are started in it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{WaitOptions, wait};

/// A pod without an agent for so long is nobody's: its coordinator begins one at once, and is dead if it does not. An
/// agent that hears nothing ends after 30 s.
const ALONE: Duration = Duration::from_secs(30);

const LOOK: Duration = Duration::from_secs(1);

/// Puts the running program into a folder, as `dnslab`.
///
/// # Errors
/// When it cannot be read, or the folder not be written.
pub fn put_program(folder: &Path) -> io::Result<()> {
    let there = folder.join("dnslab");
    fs::copy("/proc/self/exe", &there)?;
    fs::set_permissions(&there, fs::Permissions::from_mode(0o755))
}

/// Returns when no other process was in the PID namespace of this one for half a minute. Meanwhile it is the parent
/// of those that have lost theirs.
pub fn stay() {
    let mut alone_since = Instant::now();
    while alone_since.elapsed() < ALONE {
        thread::sleep(LOOK);
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if has_company() {
            alone_since = Instant::now();
        }
    }
}

/// Whether there is a process beside this one.
fn has_company() -> bool {
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut names = processes.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| name != own && name.bytes().all(|octet| octet.is_ascii_digit()))
}
