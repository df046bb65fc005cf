use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dnslab_wire::Transport;

use super::dnslab::{Length, Room, TIMEOUT};
use super::sample::{Finding, Load, Mode};
use crate::process::{Finished, Place, run};

/// What a run may take beyond its length: dnsperf waits 5 s for its last answers.
const SLACK: Duration = Duration::from_secs(30);
/// Window of an open loop, which must not bound it.
const WIDE_WINDOW: u32 = 10_000;

/// Buffers of a UDP socket, KiB (`SOCKET_BUFFER` in `crates/load/src/kernel.rs`).
const BUFFER_KIB: &str = "4096";

/// Root folder of a newer Debian with its dnsperf. It is made by hand (`evidence/BENCHMARKS.md`).
const OTHER_DEBIAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/trixie");

#[derive(Clone, Debug)]
pub(crate) struct Dnsperf {
    /// The words that start it.
    program: Vec<OsString>,
    /// `dnsperf` and its version.
    pub(crate) name: String,
}

impl Dnsperf {
    /// The named ones; otherwise the one of the search path, and the one in the root folder of another
    /// Debian, if it is there.
    ///
    /// # Errors
    /// When one of them does not run: with the remedy.
    pub(crate) fn find(paths: &[PathBuf]) -> Result<Vec<Self>> {
        let programs: Vec<Vec<OsString>> = if paths.is_empty() {
            let other = Path::new(OTHER_DEBIAN);
            let other = other.is_dir().then(|| words(other)).transpose()?;
            std::iter::once(vec!["dnsperf".into()]).chain(other).collect()
        } else {
            paths.iter().map(|path| words(path)).collect::<Result<_>>()?
        };
        programs.into_iter().map(Self::look).collect()
    }

    fn look(program: Vec<OsString>) -> Result<Self> {
        let shown = program.last().map(|word| word.to_string_lossy().into_owned());
        let shown = shown.unwrap_or_default();
        let done =
            Command::new(&program[0]).args(&program[1..]).arg("-h").output().with_context(
                || format!("cannot run {shown} (on Debian: apt-get install dnsperf)"),
            )?;
        let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        let version =
            text.split_once("Version ").and_then(|(_, rest)| rest.split_whitespace().next());
        let version = version.with_context(|| format!("{shown} does not say its version"))?;
        Ok(Self { program, name: format!("dnsperf {version}") })
    }

    /// Applies a load. Its warm-up is part of the measurement here.
    ///
    /// # Errors
    /// When it cannot run, or what it says cannot be read.
    pub(crate) fn load(
        &self,
        load: &Load<'_>,
        length: Length,
        room: &Room<'_>,
    ) -> Result<(Finished, Finding)> {
        let mut command = self.command(load, length, room);
        let finished =
            run(&mut command, room.folder, length.duration + length.warm_up + SLACK, room.stop)?;
        room.stop.check()?;
        let finding = finding(&finished.output)
            .filter(|finding| finished.ended.status.success() && finding.answered > 0);
        let Some(finding) = finding else {
            bail!("{} failed over {}: {}", self.name, load.transport.name(), finished.tail());
        };
        Ok((finished, finding))
    }

    fn command(&self, load: &Load<'_>, length: Length, room: &Room<'_>) -> Command {
        let place = Place { cpu: room.cpu, namespace: load.namespace };
        let mut command = place.command(&self.program);
        let (address, port) = (load.target.ip().to_string(), load.target.port().to_string());
        let clients = load.clients.to_string();
        let mode = match load.transport {
            Transport::Doh2 => "doh",
            other => other.name(),
        };
        command.args(["-s", &address, "-p", &port, "-m", mode, "-c", &clients, "-T", "1"]);
        if load.transport == Transport::Doh2 {
            // dnsperf's default is GET, ours POST.
            command.args(["-O", "doh-method=POST"]);
        }
        // It has no warm-up: its run is as long as that of dnslab with the warm-up.
        let whole = length.duration + length.warm_up;
        command.args(["-l", &whole.as_secs_f64().to_string()]);
        if load.transport == Transport::Udp {
            // As much as dnslab's sockets ask for. For TCP the kernel sizes the buffers of both.
            command.args(["-b", BUFFER_KIB]);
        }
        let timeout = TIMEOUT.as_secs().to_string();
        command.args(["-t", &timeout, "-d"]).arg(room.queries);
        match load.mode {
            Mode::Window(window) => command.args(["-q", &window.to_string()]),
            Mode::Rate(rate) => {
                command.args(["-q", &WIDE_WINDOW.to_string(), "-Q", &rate.to_string()])
            }
        };
        command
    }
}

/// The words that start the program at `path`. A folder is the root of another Debian: its dnsperf runs with
/// that system's libraries, without chroot(2).
fn words(path: &Path) -> Result<Vec<OsString>> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let architecture = std::env::consts::ARCH;
    let libraries = path.join(format!("usr/lib/{architecture}-linux-gnu"));
    let program = path.join("usr/bin/dnsperf");
    let loaders = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
    let loader = loaders.iter().map(|name| libraries.join(name)).find(|path| path.exists());
    let loader = loader.filter(|_| program.exists()).with_context(|| {
        format!("--dnsperf: {} is a folder, but no Debian with a dnsperf", path.display())
    })?;
    Ok(vec![loader.into(), "--library-path".into(), libraries.into(), program.into()])
}

fn finding(text: &str) -> Option<Finding> {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(Finding {
        answered: number("Queries completed")? as u64,
        lost: number("Queries lost")? as u64,
        answered_qps: number("Queries per second")?,
        ..Finding::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read() {
        let text = "[Status] Testing complete (time limit)\n\nStatistics:\n\n  \
            Queries sent:         419700\n  Queries completed:    419684 (100.00%)\n  \
            Queries lost:         16 (0.00%)\n\n  Run time (s):         1.500036\n  \
            Queries per second:   279782.618550\n";
        let found = finding(text).unwrap();
        assert_eq!((found.answered, found.lost), (419_684, 16));
        assert_eq!(found.answered_qps, 279_782.618_55);
        assert_eq!(finding("Error: nothing works"), None);
    }

    #[test]
    fn an_empty_folder_is_no_debian() {
        let folder = tempfile::tempdir().unwrap();
        assert!(words(folder.path()).unwrap_err().to_string().contains("no Debian"));
        assert_eq!(words(Path::new("/usr/bin/dnsperf")).unwrap(), ["/usr/bin/dnsperf"]);
    }
}
