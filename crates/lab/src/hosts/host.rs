//! A host: a network namespace, and the process that holds it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::ip::ip;
use super::ports;
use crate::descendants;
use crate::error::{LabError, refused};
use crate::guarded::{GuardProgram, GuardSpec};
use crate::process::RunningProcess;

/// How long a namespace or a device may take to appear; it takes milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

pub(super) const PAUSE: Duration = Duration::from_millis(2);

/// Log of the processes that hold namespaces.
pub(super) const HOSTS_LOG: &str = "hosts.log";

#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: &'static str,
    pub(super) network: PathBuf,
    /// Keeps the namespace.
    pub(super) holder: RunningProcess,
}

impl Host {
    /// A process that has a network namespace of its own and does nothing else.
    pub(super) fn make(
        name: &'static str,
        folder: &Path,
        guard: &GuardProgram,
    ) -> Result<Self, LabError> {
        let command = ["unshare", "--net", "--", "sleep", "infinity"].map(str::to_owned).to_vec();
        let holder = RunningProcess::start(guard, &guarded(command, folder, HOSTS_LOG)?)?;
        let network = PathBuf::from(format!("/proc/{}/ns/net", holder.pid()));
        let own = std::fs::read_link("/proc/self/ns/net");
        let failed = |reason: String| LabError::Hosts { what: format!("make host {name}"), reason };
        let deadline = Instant::now() + PATIENCE;
        // `unshare` has left our namespace for good only when it has become `sleep`.
        while !comm_is(holder.pid(), "sleep")
            || std::fs::read_link(&network).ok() == own.as_ref().ok().cloned()
        {
            if let Some(report) = holder.exited() {
                let log = std::fs::read_to_string(folder.join(HOSTS_LOG)).unwrap_or_default();
                let said = log.lines().last().unwrap_or_default().to_owned();
                return Err(failed(format!("unshare {}: {said}", report.ending)));
            }
            if Instant::now() > deadline {
                return Err(failed("it has no network namespace after 10 s".to_owned()));
            }
            thread::sleep(PAUSE);
        }
        ip(&network, &["link set lo up".to_owned()], None)?;
        ports::share(&network)?;
        Ok(Self { name, network, holder })
    }
}

pub(super) fn guarded(
    command: Vec<String>,
    folder: &Path,
    log: &str,
) -> Result<GuardSpec, LabError> {
    let directory = std::path::absolute(folder).map_err(refused("find", folder))?;
    let log = directory.join(log);
    Ok(GuardSpec::new(command, directory, log))
}

fn comm_is(pid: u32, name: &str) -> bool {
    descendants::name(pid).as_deref() == Some(name)
}
