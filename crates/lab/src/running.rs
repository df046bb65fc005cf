//! A DNS server under test, from its folder to its end.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use dnslab_record::ServerFacts;
use dnslab_wire::Transport;

use crate::counting::{Counted, CounterWatch};
use crate::cpus::{self, Cores};
use crate::ending::ExitReport;
use crate::error::{AddressTaken, Exited, LabError, NotReady, refused};
use crate::file_system::FileSystem;
use crate::guarded::{GRACE, GuardProgram, GuardSpec};
use crate::launch::Environment;
use crate::privileges::{self, StaysRoot};
use crate::process::RunningProcess;
use crate::ready::{self, NotYet, Patience, Probe};
use crate::regular::open_regular;
use crate::root::Root;
use crate::root_error::RootError;
use crate::sampler::Watched;
use crate::server::{
    self, Access, Installed, LOG, POLICY_ZONE, QUERY_LOG_FOLDER, Rendered, ServerKind, ServerSpec,
    UPSTREAM_AUTHORITY,
};
use crate::sockets::{self, Owner};
use crate::{certificate, ports, tls_library, users};

/// Time that a server has to end which nobody waits for any more. It has no logs that anybody wants.
const SHORT_GRACE: Duration = Duration::from_millis(500);

const SHOWN_LINES: usize = 10;

/// Octets at the end of a log that are searched for its last lines; a query log can have gigabytes.
const TAIL_OCTETS: u64 = 64 * 1024;

/// A server that owns its sockets and gave a right answer. It is stopped when this is dropped.
#[derive(Debug)]
pub struct RunningServer {
    process: RunningProcess,
    kind: ServerKind,
    addresses: Vec<(Transport, SocketAddr)>,
    facts: ServerFacts,
    authority: Option<PathBuf>,
    log: PathBuf,
    cpus: usize,
    counted: Counted,
    query_logs: Vec<PathBuf>,
}

impl RunningServer {
    /// Finds the server, writes its whole state into its folder, starts it under a guard, and waits until it
    /// owns the socket of every transport and `probe` is content with each.
    ///
    /// # Errors
    /// When it is not installed, cannot do what is asked, finds its address taken, ends before it answers, is not
    /// ready in time, or is not wanted any more. Nothing is left running then; the folder stays, for its log.
    pub fn start<'a>(
        spec: &ServerSpec,
        guard: &GuardProgram,
        probe: &Probe<'_>,
        patience: impl Into<Patience<'a>>,
    ) -> Result<Self, LabError> {
        let patience = patience.into();
        let (root, installed) = locate(spec, guard)?;
        installed.can_start(spec).map_err(LabError::Unsupported)?;
        if spec.has_stream() {
            server::check_connections(spec.connections)?;
        }
        let rendered = server::render(spec, &installed.binary)?;
        let addresses: Vec<_> = spec
            .transports
            .iter()
            .map(|transport| (*transport, spec.socket_address(*transport)))
            .collect();
        check_addresses(spec.kind, &addresses)?;
        let (authority, logs) = prepare(spec, &rendered)?;
        let log = spec.directory.join(LOG);
        // The guard's working directory is ours, from which a relative path would start.
        let directory = absolute(&spec.directory)?;
        let whole = directory.canonicalize().map_err(refused("find", &directory))?;
        let folder = root.as_ref().map(Root::folder);
        let decision = privileges::decide(spec, &installed.binary, folder, (&whole, logs));
        let (run_as, stays_root) = match decision {
            None => (None, None),
            Some(Ok(run_as)) => (Some(run_as), None),
            Some(Err(StaysRoot(why))) => (None, Some(why)),
        };
        let guarded = GuardSpec {
            command: rendered.command.clone(),
            log: directory.join(LOG),
            standard_error: spec.logging.standard_error().map(|name| directory.join(name)),
            // Its path without links: that way is made passable.
            directory: whole,
            cpus: spec.cpus.clone(),
            file_system: root.as_ref().map_or(FileSystem::Shared, Root::file_system),
            run_as,
            environment: Environment::Named,
        };
        let process = RunningProcess::start(guard, &guarded)?;
        if let Err(reason) = ready::wait(&process, &addresses, probe, patience) {
            // End it first, so that the log is complete.
            process.stop(if matches!(reason, NotYet::Interrupted) { SHORT_GRACE } else { GRACE });
            return Err(explain(spec.kind, reason, &rendered.command, &log, patience.timeout));
        }
        let has_tls = spec.has_encrypted()
            || spec.upstream.as_ref().is_some_and(|upstream| upstream.tls.is_some());
        // Read while it runs: a program of the user's own may have libraries of its own.
        let tls_library = match has_tls {
            true => tls_library::of(spec.kind, process.pid()),
            false => String::new(),
        };
        let directory = absolute(&spec.directory)?;
        let counted = Counted {
            kind: spec.kind,
            access: Access {
                directory: directory.clone(),
                address: ([127, 0, 0, 1], spec.ports.control).into(),
                service: spec.socket_address(Transport::Udp),
                binary: installed.binary.clone(),
                user: guarded.run_as.as_ref().map(|run_as| run_as.user.clone()),
                guard: guard.clone(),
                earlier: 0,
            },
            is_disturbed: crate::server::adapter(spec.kind).counting_disturbs(&installed.version),
            network: None,
        };
        let user = users::of_process(process.pid()).unwrap_or_default();
        Ok(Self {
            process,
            counted,
            query_logs: spec.logging.files().map(|name| directory.join(name)).collect(),
            kind: spec.kind,
            addresses,
            facts: ServerFacts {
                tls_library,
                user,
                ..facts(spec, root.as_ref(), (&installed, stays_root), rendered)
            },
            authority,
            log,
            cpus: if spec.cpus.is_empty() { cpus::allowed().len() } else { spec.cpus.len() },
        })
    }

    /// Where it answers over `transport`; `None` if it was not asked to.
    #[must_use]
    pub fn address(&self, transport: Transport) -> Option<SocketAddr> {
        self.addresses.iter().find(|(its, _)| *its == transport).map(|(_, address)| *address)
    }

    /// Where it answers, one entry per transport asked for.
    #[must_use]
    pub fn addresses(&self) -> &[(Transport, SocketAddr)] {
        &self.addresses
    }

    /// The server as it runs, for the record.
    #[must_use]
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// The certificate that its clients must trust, if it speaks TLS.
    #[must_use]
    pub fn authority(&self) -> Option<&Path> {
        self.authority.as_deref()
    }

    /// What a sampler needs to know of it.
    #[must_use]
    pub fn watched(&self) -> Watched {
        Watched::new(self.process.pid(), self.process.sources().clone(), self.cpus)
            .with_logs(self.query_logs.clone())
            .pinned_to(&self.facts.cpus)
    }

    /// Begins to read its own counters; `None` if it publishes none.
    #[must_use]
    pub fn count(&self) -> Option<CounterWatch> {
        CounterWatch::start(self.counted.clone())
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &RunningProcess {
        &self.process
    }

    /// How it ended, if it has ended by itself; does not wait.
    #[must_use]
    pub fn exited(&self) -> Option<ExitReport> {
        self.process.exited()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last `lines` lines of its log, oldest first; empty if the log cannot be read.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> Vec<String> {
        log_tail(&self.log, lines).unwrap_or_default()
    }

    /// Ends it: SIGTERM, 5 s of grace, SIGKILL. Then nothing of it is left but its folder.
    ///
    /// # Errors
    /// When it had ended by itself before: whatever was measured meanwhile is in doubt.
    pub fn stop(self) -> Result<ExitReport, LabError> {
        let report = self.process.stop(GRACE);
        if report.requested {
            return Ok(report);
        }
        let reason = NotYet::Exited(report);
        Err(explain(self.kind, reason, &self.facts.command, &self.log, Duration::ZERO))
    }
}

/// The root that the server runs in, if it has one of its own, and its program there.
fn locate(spec: &ServerSpec, guard: &GuardProgram) -> Result<(Option<Root>, Installed), LabError> {
    let Some(root) = &spec.root else {
        return Ok((None, server::find(spec.kind, spec.binary.as_deref(), guard)?));
    };
    if spec.binary.is_some() {
        let (what, why) = ("a program of your own", "the root has its own program");
        return Err(RootError::Senseless { what, why }.into());
    }
    let root = Root::open(root)?;
    let installed = root.find(spec.kind, guard)?;
    Ok((Some(root), installed))
}

/// Attempts at an address, and the time between two: a process that looks for a free port holds it for a
/// moment.
const ATTEMPTS: u32 = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(20);

/// Whether an address is free now or soon.
fn free_in_time(transport: Transport, address: SocketAddr) -> io::Result<()> {
    for _ in 1..ATTEMPTS {
        match ports::check(transport, address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                thread::sleep(BETWEEN_ATTEMPTS);
            }
            other => return other,
        }
    }
    ports::check(transport, address)
}

/// Refuses to start a server whose address another process has, and names that one.
fn check_addresses(
    kind: ServerKind,
    addresses: &[(Transport, SocketAddr)],
) -> Result<(), LabError> {
    for &(transport, address) in addresses {
        match free_in_time(transport, address) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let owner = sockets::owner(transport, address).unwrap_or(Owner { process: None });
                let taken = AddressTaken { kind: kind.name(), address, transport, owner };
                return Err(LabError::AddressTaken(Box::new(taken)));
            }
            Err(error) => {
                return Err(LabError::Specification {
                    field: "address",
                    value: address.to_string(),
                    reason: format!("{error}; it must be an address of this machine"),
                });
            }
        }
    }
    Ok(())
}

/// Writes everything that the server needs into its folder. Returns the authority of its certificate, if it
/// needs one, and the folder of its query log, if that is elsewhere.
fn prepare(
    spec: &ServerSpec,
    rendered: &Rendered,
) -> Result<(Option<PathBuf>, Option<PathBuf>), LabError> {
    let folder = &spec.directory;
    fs::create_dir_all(folder).map_err(refused("create", folder))?;
    if let Some(zone) = &spec.zone {
        bring(&zone.path, &folder.join(spec.zone_file_name()))?;
    }
    for file in spec.own.iter().flat_map(|own| own.files()) {
        bring(&file.from, &folder.join(&file.name))?;
    }
    if let Some(policy) = &spec.policy_zone {
        bring(&policy.path, &folder.join(POLICY_ZONE))?;
    }
    if let Some(tls) = spec.upstream.as_ref().and_then(|upstream| upstream.tls.as_ref()) {
        bring(&tls.authority, &folder.join(UPSTREAM_AUTHORITY))?;
    }
    let logs = spec.logging.folder().map(|logs| link_log_folder(logs, folder)).transpose()?;
    for file in &rendered.files {
        let path = folder.join(file.name);
        fs::write(&path, &file.content).map_err(refused("write", &path))?;
    }
    if !spec.has_encrypted() {
        return Ok((None, logs));
    }
    let made = certificate::create(folder, spec.address, spec.certificate)?;
    Ok((Some(made.authority), logs))
}

/// Makes a folder of this process's own in `logs`, and a symbolic link to it in the server's folder. The file
/// itself is not linked: a server that rotates it would rename the link. Returns the path of the new folder.
fn link_log_folder(logs: &Path, folder: &Path) -> Result<PathBuf, LabError> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let own = absolute(logs)?.join(format!("dnslab-query-log-{}-{number}", std::process::id()));
    fs::create_dir(&own).map_err(refused("create", &own))?;
    let link = folder.join(QUERY_LOG_FOLDER);
    symlink(&own, &link).map_err(refused("create", &link))?;
    Ok(own)
}

/// Copies a file into the server's folder, unless it is there already.
fn bring(from: &Path, to: &Path) -> Result<(), LabError> {
    let already = to.exists() && from.canonicalize().ok() == to.canonicalize().ok();
    if !already {
        fs::copy(from, to).map_err(refused("copy", from))?;
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, LabError> {
    std::path::absolute(path).map_err(refused("find", path))
}

fn facts(
    spec: &ServerSpec,
    root: Option<&Root>,
    (installed, stays_root): (&Installed, Option<String>),
    rendered: Rendered,
) -> ServerFacts {
    let folder = spec.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ServerFacts {
        host: String::new(),
        kind: spec.kind.name().to_owned(),
        version: installed.version.text.clone(),
        command: rendered.command,
        configuration: rendered.files.first().map(|file| format!("{folder}/{}", file.name)),
        threads: spec.threads,
        cpus: spec.cpus.clone(),
        seed: spec.embedded.seed.filter(|_| spec.kind == ServerKind::Embedded),
        core_siblings: Cores::of_this_machine().siblings(&spec.cpus),
        notes: rendered.notes.into_iter().chain(root.map(Root::note)).chain(stays_root).collect(),
        upstream: None,
        user: String::new(),
        process: String::new(),
        tls_library: String::new(),
    }
}

/// Turns the end of the wait into an error that names command, log and remedy.
fn explain(
    kind: ServerKind,
    reason: NotYet,
    command: &[String],
    log: &Path,
    waited: Duration,
) -> LabError {
    let log_tail = log_tail(log, SHOWN_LINES).unwrap_or_default();
    let hint = hint(kind, &log_tail);
    let (kind, command, log) = (kind.name(), command.to_vec(), log.to_owned());
    match reason {
        NotYet::Taken { transport, address, owner } => {
            LabError::AddressTaken(Box::new(AddressTaken { kind, address, transport, owner }))
        }
        NotYet::Interrupted => LabError::Interrupted { kind },
        NotYet::Exited(ExitReport { ending, .. }) => {
            LabError::Exited(Box::new(Exited { kind, ending, command, log, log_tail, hint }))
        }
        NotYet::TimedOut(missing) => {
            let hint = hint.or_else(|| Some(hint_of_late(&missing)));
            let error = NotReady { kind, waited, missing, command, log, log_tail, hint };
            LabError::NotReady(Box::new(error))
        }
    }
}

/// A remedy, by what is missing.
fn hint_of_late(missing: &[String]) -> String {
    let says = |code: &str| missing.iter().any(|line| line.contains(code));
    if says("REFUSED") {
        return "it is not allowed to answer: its access lists, or a zone that it does not have"
            .to_owned();
    }
    "a large zone takes longer: `server.start_limit` gives it more time".to_owned()
}

/// A remedy, if the log's last lines show the cause.
fn hint(kind: ServerKind, log_tail: &[String]) -> Option<String> {
    let says = |text: &str| log_tail.iter().any(|line| line.to_ascii_lowercase().contains(text));
    if says("address already in use") || says("address in use") {
        return Some(
            "another process took the address meanwhile: `dnslab doctor` names it".to_owned(),
        );
    }
    if says("permission denied") && kind == ServerKind::Bind {
        return Some(
            "if this user may read the folder, AppArmor confines named to the system's folders: \
             `aa-complain /usr/sbin/named`, or name a copy of the program as the server's binary"
                .to_owned(),
        );
    }
    None
}

pub(crate) fn log_tail(path: &Path, lines: usize) -> io::Result<Vec<String>> {
    let mut file = open_regular(path, File::options().read(true))?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(TAIL_OCTETS);
    file.seek(SeekFrom::Start(from))?;
    let mut octets = Vec::new();
    file.take(TAIL_OCTETS).read_to_end(&mut octets)?;
    let text = String::from_utf8_lossy(&octets);
    // The first line of a tail is a part of one, unless the tail is the whole file.
    let all: Vec<&str> = text.lines().skip(usize::from(from > 0)).collect();
    let first = all.len().saturating_sub(lines);
    Ok(all[first..].iter().map(|line| (*line).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_is_its_last_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(log_tail(&path, 2).unwrap(), ["two", "three"]);
        assert_eq!(log_tail(&path, 9).unwrap().len(), 3);
        let long: String = (0..20_000).map(|number| format!("line {number:05}\n")).collect();
        fs::write(&path, long).unwrap();
        let tail = log_tail(&path, usize::MAX).unwrap();
        assert_eq!(tail.last().unwrap(), "line 19999");
        assert!(tail.iter().all(|line| line.len() == 10) && tail.len() < 20_000);
    }

    #[test]
    fn signs_in_the_log_give_a_hint() {
        let tail = |line: &str| vec![line.to_owned()];
        let denied = tail("could not open 'named.conf': Permission denied");
        assert!(hint(ServerKind::Bind, &denied).unwrap().contains("AppArmor"));
        assert_eq!(hint(ServerKind::Nsd, &denied), None);
        assert!(hint(ServerKind::Nsd, &tail("bind: Address already in use")).is_some());
        assert_eq!(hint(ServerKind::Knot, &[]), None);
    }
}
