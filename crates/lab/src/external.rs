//! Servers that somebody else started: which processes of this machine they are.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use dnslab_record::ServerFacts;
use dnslab_settings::Identity;
use dnslab_wire::Transport;

use crate::cgroup::{self, CpuSource, MemorySource, Sources, Unit};
use crate::counting::{Counted, CounterWatch};
use crate::cpus::{self, Cores};
use crate::sampler::{Processes, Watched};
use crate::server::{Access, ServerKind, chaos};
use crate::sockets::{self, Entry};
use crate::{GuardProgram, descendants, ports};

/// Why an external server cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// This machine does not have the address.
    #[error(
        "it runs on another host: name that by `--watch HOST` (`server.host`); or it has a network of its own on this \
         one: name it by `server.pid` or `server.unit`"
    )]
    Elsewhere,
    /// This machine has the address, but none of its sockets receives what is sent there.
    #[error("no process listens on {address} ({transport}) in this network")]
    NobodyListens {
        /// Where the queries go.
        address: SocketAddr,
        /// Over which transport.
        transport: Transport,
    },
    /// The socket is there, but this user may not see whose it is.
    #[error(
        "port {port} belongs to a process of another user: run as root or as that user, or name \
         it by `server.pid` or `server.unit`"
    )]
    OtherUser {
        /// The port.
        port: u16,
    },
    /// Even root sees no process that has the socket.
    #[error("port {port} belongs to a process outside this container: run dnslab outside")]
    Outside {
        /// The port.
        port: u16,
    },
    /// Whoever has the socket passes everything on.
    #[error(
        "port {port} belongs to {name}, which passes queries on to a container: name the server itself by `server.pid`"
    )]
    Proxy {
        /// The port.
        port: u16,
        /// The program.
        name: String,
    },
    /// There is no such process.
    #[error("the process {pid} is not there\n  hint:    {REMEDY}")]
    ProcessGone {
        /// Its id.
        pid: u32,
    },
    /// There is no such unit.
    #[error(
        "the unit {unit} has no control group under /sys/fs/cgroup: it does not run, or not as a \
         unit of systemd\n  hint:    `systemctl status` shows the group of a unit; or {REMEDY}"
    )]
    UnitGone {
        /// Its name.
        unit: String,
    },
    /// There is such a unit, but nothing runs in it.
    #[error("the unit {unit} has no processes\n  hint:    start it, or {REMEDY}")]
    UnitEmpty {
        /// Its name.
        unit: String,
    },
    /// What was named is there, but somebody else gets the queries.
    #[error(
        "{named} does not listen on {address} ({transport}){}\n  hint:    {REMEDY}",
        listener(owner)
    )]
    NotListening {
        /// What was named.
        named: String,
        /// Where the queries go.
        address: SocketAddr,
        /// Over which transport.
        transport: Transport,
        /// Who listens there, if that is known.
        owner: Option<(u32, String)>,
    },
}

const REMEDY: &str = "`ss -lntup` names the process of each port; without `server.pid` and \
    `server.unit` the server is found by its port";

/// The process that listens instead, as the rest of a sentence.
fn listener(owner: &Option<(u32, String)>) -> String {
    owner.as_ref().map_or_else(String::new, |(pid, name)| format!("; process {pid} {name} does"))
}

/// The processes of an external server, and where their resources are read.
#[derive(Clone, Debug)]
struct Found {
    processes: Processes,
    sources: Sources,
}

/// An external server whose processes are known.
#[derive(Clone, Debug)]
pub struct ExternalServer {
    found: Found,
    /// Its sockets at the address of the load.
    sockets: HashSet<u64>,
    /// CPUs that it may use, ascending.
    cpus: Vec<usize>,
    facts: ServerFacts,
}

impl ExternalServer {
    /// Finds the server that answers at `address` over `transport`, without sending anything to it.
    ///
    /// # Errors
    /// When it cannot be watched; [`NotFound::is_fault`] tells whether a named process or unit is wrong.
    pub fn find(
        identity: &Identity,
        transport: Transport,
        address: SocketAddr,
    ) -> Result<Self, NotFound> {
        let found = match identity {
            Identity::Address => by_address(transport, address)?,
            Identity::Process(pid) => by_process(*pid)?,
            Identity::Unit(unit) => by_unit(unit)?,
        };
        let now = found.processes.now();
        let named = match identity {
            Identity::Address => None,
            Identity::Process(pid) => {
                let name = descendants::name(*pid).unwrap_or_default();
                Some(format!("the process {pid} {name}"))
            }
            Identity::Unit(unit) => Some(format!("the unit {unit}")),
        };
        if let Some(named) = named {
            check_listens(named, &now, transport, address)?;
        }
        let cpus = affinity(&now);
        let facts = facts(&now, &cpus);
        let receivers = sockets::nearest(&network_of(&now), transport, address);
        let sockets = receivers.iter().map(|entry| entry.inode).collect();
        Ok(Self { found, sockets, cpus, facts })
    }

    /// What a sampler needs to know of it.
    #[must_use]
    pub fn watched(&self) -> Watched {
        Watched::of_external(
            self.found.processes.clone(),
            self.found.sources.clone(),
            self.cpus.clone(),
            self.sockets.clone(),
        )
    }

    /// The CPUs that it may use (sched_getaffinity(2)), ascending.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Files that its processes may have open together; `None` where that is not known, or has no bound.
    #[must_use]
    pub fn file_limit(&self) -> Option<u64> {
        self.found
            .processes
            .now()
            .into_iter()
            .map(file_limit)
            .try_fold(0u64, |sum, own| Some(sum.saturating_add(own?)))
    }

    /// The server as it runs, for the record, without its version.
    #[must_use]
    pub fn facts(&self) -> &ServerFacts {
        &self.facts
    }

    /// Begins to read what it counts, from where it publishes that over HTTP.
    ///
    /// # Errors
    /// When nothing is known of what its program counts.
    pub fn count(
        &self,
        statistics: SocketAddr,
        guard: &GuardProgram,
    ) -> Result<CounterWatch, String> {
        let processes = self.found.processes.now();
        // Nobody else is asked than the server.
        let own: HashSet<u64> = processes.iter().flat_map(|pid| sockets::inodes_of(*pid)).collect();
        let table = sockets::table(&network_of(&processes), Transport::Tcp);
        let listens = |entry: &&Entry| {
            entry.remote.port() == 0
                && own.contains(&entry.inode)
                && sockets::covers(entry.local, statistics)
        };
        if table.iter().find(listens).is_none() {
            return Err(format!("it does not listen on {statistics} (TCP)"));
        }
        let names: Vec<String> =
            processes.iter().filter_map(|pid| descendants::name(*pid)).collect();
        let known = PUBLISHING.iter().find(|(program, _)| names.iter().any(|name| name == program));
        let counted = known.map(|(_, kind)| Counted {
            kind: *kind,
            access: Access {
                directory: PathBuf::new(),
                address: statistics,
                service: statistics,
                binary: PathBuf::new(),
                user: None,
                guard: guard.clone(),
                earlier: 0,
            },
            is_disturbed: false,
            network: processes.first().and_then(|pid| other_network(*pid)),
        });
        counted.and_then(CounterWatch::start).ok_or_else(|| {
            let known: Vec<&str> = PUBLISHING.iter().map(|(program, _)| *program).collect();
            format!(
                "its program is `{}`; what these publish is read: {}",
                names.first().map_or("unknown", String::as_str),
                known.join(", ")
            )
        })
    }

    /// Where it answers plain DNS over UDP: at `address` for UDP and TCP, else at its socket with the lowest port, which is
    /// below those of QUIC. `None` if it has none.
    #[must_use]
    pub fn plain_address(&self, transport: Transport, address: SocketAddr) -> Option<SocketAddr> {
        if matches!(transport, Transport::Udp | Transport::Tcp) {
            return Some(address);
        }
        let own: HashSet<u64> =
            self.found.processes.now().into_iter().flat_map(sockets::inodes_of).collect();
        let table = sockets::table("self", Transport::Udp);
        let waiting = table
            .iter()
            .filter(|entry| own.contains(&entry.inode) && waits_at(entry, address.ip()));
        let port = waiting.map(|entry| entry.local.port()).min()?;
        Some(SocketAddr::new(address.ip(), port))
    }
}

/// The network namespace of a process; `None` if it is that of this thread, which needs no right to enter it.
fn other_network(pid: u32) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/{pid}/ns/net"));
    let own = fs::read_link("/proc/thread-self/ns/net").ok();
    (fs::read_link(&path).ok() != own).then_some(path)
}

/// Programs that publish what they count over HTTP.
const PUBLISHING: [(&str, ServerKind); 5] = [
    ("named", ServerKind::Bind),
    ("coredns", ServerKind::CoreDns),
    ("dnsdist", ServerKind::Dnsdist),
    ("pdns_server", ServerKind::PowerDnsAuthoritative),
    ("pdns_recursor", ServerKind::PowerDnsRecursor),
];

/// The version that a server says it has (`version.bind CH TXT`), asked over UDP. `None` if it does not tell us.
#[must_use]
pub fn version_at(address: SocketAddr) -> Option<String> {
    chaos::texts(address, "version.bind.").ok()?.into_iter().next()
}

/// True for a socket without a peer that receives what is sent to its port at an address.
fn waits_at(entry: &Entry, address: IpAddr) -> bool {
    let at = SocketAddr::new(address, entry.local.port());
    entry.remote.port() == 0 && sockets::covers(entry.local, at)
}

impl NotFound {
    /// True if a named process or unit is not the server. False if only permission is missing or the server
    /// is elsewhere: the load may then go on without a watch.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::ProcessGone { .. }
                | Self::UnitGone { .. }
                | Self::UnitEmpty { .. }
                | Self::NotListening { .. }
        )
    }
}

/// The processes whose sockets receive what is sent to `address`.
fn by_address(transport: Transport, address: SocketAddr) -> Result<Found, NotFound> {
    if !ports::is_local(address.ip()) {
        return Err(NotFound::Elsewhere);
    }
    let receivers = sockets::nearest("thread-self", transport, address);
    if receivers.is_empty() {
        return Err(NotFound::NobodyListens { address, transport });
    }
    let owners = sockets::owners(&receivers);
    if owners.is_empty() {
        let port = address.port();
        return Err(match rustix::process::geteuid().is_root() {
            true => NotFound::Outside { port },
            false => NotFound::OtherUser { port },
        });
    }
    let names = owners.iter().filter_map(|pid| descendants::name(*pid));
    if let Some(name) = names.into_iter().find(|name| PROXIES.contains(&name.as_str())) {
        return Err(NotFound::Proxy { port: address.port(), name });
    }
    Ok(Found { processes: Processes::Trees(owners), sources: Sources::PROCESSES })
}

/// Programs that have the port of a container and answer nothing themselves.
const PROXIES: [&str; 3] = ["docker-proxy", "rootlessport", "slirp4netns"];

fn by_process(pid: u32) -> Result<Found, NotFound> {
    if descendants::tree(pid).is_empty() {
        return Err(NotFound::ProcessGone { pid });
    }
    Ok(Found { processes: Processes::Trees(vec![pid]), sources: Sources::PROCESSES })
}

fn by_unit(name: &str) -> Result<Found, NotFound> {
    let unit = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let Unit { folder, .. } = match cgroup::unit(&unit) {
        None => return Err(NotFound::UnitGone { unit }),
        Some(unit_group) if unit_group.processes.is_empty() => {
            return Err(NotFound::UnitEmpty { unit });
        }
        Some(unit_group) => unit_group,
    };
    let cpu = Some(CpuSource::V2(folder.clone())).filter(|source| source.read_ns().is_some());
    let memory =
        Some(MemorySource::V2(folder.clone())).filter(|source| source.read_octets().is_some());
    let sources = Sources {
        cpu: cpu.unwrap_or(CpuSource::Processes),
        memory: memory.unwrap_or(MemorySource::Processes),
    };
    Ok(Found { processes: Processes::Group(folder), sources })
}

/// Checks that what was named gets the queries, as far as this user may see. A process in another network
/// namespace may get them through an address translation.
fn check_listens(
    named: String,
    processes: &[u32],
    transport: Transport,
    address: SocketAddr,
) -> Result<(), NotFound> {
    let own = fs::read_link("/proc/thread-self/ns/net").ok();
    let is_here =
        |pid: &u32| own.is_some() && fs::read_link(format!("/proc/{pid}/ns/net")).ok() == own;
    let may_see = |pid: &u32| fs::read_dir(format!("/proc/{pid}/fd")).is_ok();
    if !processes.iter().all(|pid| is_here(pid) && may_see(pid)) {
        return Ok(());
    }
    let is_local = ports::is_local(address.ip());
    let receivers = match is_local {
        true => sockets::nearest("thread-self", transport, address),
        false => sockets::at_port("thread-self", transport, address.port()),
    };
    // An address that others translate may have its port translated, too.
    if !is_local && receivers.is_empty() {
        return Ok(());
    }
    let inodes: HashSet<u64> = receivers.iter().map(|entry| entry.inode).collect();
    if processes.iter().any(|pid| !sockets::inodes_of(*pid).is_disjoint(&inodes)) {
        return Ok(());
    }
    let owner = sockets::owners(&receivers).into_iter().next();
    let owner = owner.map(|pid| (pid, descendants::name(pid).unwrap_or_default()));
    Err(NotFound::NotListening { named, address, transport, owner })
}

/// The process whose socket tables show the sockets of these processes.
fn network_of(processes: &[u32]) -> String {
    processes.first().map_or_else(|| "thread-self".to_owned(), ToString::to_string)
}

/// CPUs that some thread of these processes may use and that are there, ascending.
fn affinity(processes: &[u32]) -> Vec<usize> {
    let threads = processes.iter().flat_map(|pid| {
        let folder = format!("/proc/{pid}/task");
        descendants::numbers_in(&folder)
            .into_iter()
            .map(move |tid| format!("{folder}/{tid}/status"))
    });
    let allowed: BTreeSet<usize> = threads
        .filter_map(|path| allowed_list(&fs::read_to_string(path).ok()?))
        .flatten()
        .collect();
    let online = cpus::online();
    allowed.into_iter().filter(|cpu| online.contains(cpu)).collect()
}

/// `Cpus_allowed_list` of a `status` file. It may name CPUs that do not exist.
fn allowed_list(status: &str) -> Option<Vec<usize>> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    cpus::parse_list(list).ok()
}

fn facts(processes: &[u32], cpus: &[usize]) -> ServerFacts {
    let threads =
        processes.iter().map(|pid| descendants::numbers_in(&format!("/proc/{pid}/task")).len());
    let threads: usize = threads.sum();
    let names: Vec<String> = processes
        .iter()
        .map(|pid| format!("{pid} {}", descendants::name(*pid).unwrap_or_default()))
        .collect();
    let plural = if names.len() == 1 { "process" } else { "processes" };
    ServerFacts {
        kind: "external".to_owned(),
        command: processes.first().map(|pid| command(*pid)).unwrap_or_default(),
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        cpus: cpus.to_vec(),
        core_siblings: Cores::of_this_machine().siblings(cpus),
        process: processes.first().and_then(|pid| start_of(*pid)).unwrap_or_default(),
        notes: vec![format!(
            "it ran already: dnslab watched its {plural} ({}) and configured nothing; its threads \
             are all that it has, not those that it was configured for",
            names.join(", ")
        )],
        ..ServerFacts::default()
    }
}

/// Files that a process may have open (proc_pid_limits(5)).
fn file_limit(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let own = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    own.split_ascii_whitespace().next()?.parse().ok()
}

/// A process by its number and when it started, in clock ticks after the system (proc_pid_stat(5), field 22).
fn start_of(pid: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let started = *descendants::stat_fields(&text)?.get(22 - 3)?;
    Some(format!("{pid}, started at tick {started}"))
}

fn command(pid: u32) -> Vec<String> {
    let octets = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&octets);
    text.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use dnslab_test_support::free_address;

    use super::*;

    #[track_caller]
    fn check(identity: &Identity, bind: &str, ask: &str) {
        let udp = UdpSocket::bind((bind, 0)).unwrap();
        let tcp = TcpListener::bind((bind, 0)).unwrap();
        let at = |port| SocketAddr::new(ask.parse().unwrap(), port);
        let own = std::process::id();
        for (transport, port) in [
            (Transport::Udp, udp.local_addr().unwrap().port()),
            (Transport::Doq, udp.local_addr().unwrap().port()),
            (Transport::Tcp, tcp.local_addr().unwrap().port()),
            (Transport::Dot, tcp.local_addr().unwrap().port()),
        ] {
            let found = ExternalServer::find(identity, transport, at(port)).unwrap();
            // This process is both server and observer; the observer is no part of the server.
            match &found.found.processes {
                // Until it executes its program, a process that another test starts has all of our sockets.
                Processes::Trees(roots) => {
                    let is_child = |pid: &&u32| **pid != own;
                    let strangers = roots.iter().filter(is_child).filter(|pid| is_stranger(**pid));
                    assert_eq!(strangers.count(), 0, "{transport} {bind}: {roots:?}");
                    assert!(roots.contains(&own), "{transport} {bind}: {roots:?}");
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(found.sockets.len(), 1, "{transport} {bind}");
            assert!(!found.cpus().is_empty(), "{found:?}");
            // Other tests start processes, which have files of their own.
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
            assert!(found.file_limit() >= limit, "{:?}", found.file_limit());
        }
    }

    /// True for an existing process that this one did not start.
    fn is_stranger(pid: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let own = format!("PPid:\t{}", std::process::id());
        !status.is_empty() && !status.lines().any(|line| line == own)
    }

    #[test]
    fn a_server_is_found_by_its_port() {
        for (bind, ask) in [
            ("127.0.0.1", "127.0.0.1"),
            ("0.0.0.0", "127.0.0.1"),
            ("::1", "::1"),
            ("::", "::1"),
            ("::", "127.0.0.1"),
        ] {
            check(&Identity::Address, bind, ask);
            check(&Identity::Process(std::process::id()), bind, ask);
        }
    }

    /// The reason, and whether it is a fault.
    fn refusal(identity: &Identity, address: &str) -> (String, bool) {
        let found = ExternalServer::find(identity, Transport::Udp, address.parse().unwrap());
        let error = found.err().unwrap_or_else(|| panic!("{identity:?} was found"));
        (error.to_string(), error.is_fault())
    }

    #[test]
    fn reasons_are_the_true_ones() {
        let (text, is_fault) = refusal(&Identity::Address, "192.0.2.1:53");
        assert!(text.starts_with("it runs on another host") && !is_fault, "{text}");
        // No other test uses this host part.
        let free = free_address([127, 200, 1, 1].into()).to_string();
        let (text, is_fault) = refusal(&Identity::Address, &free);
        assert!(text.starts_with("no process listens on 127.200.1.1") && !is_fault, "{text}");
        let (text, is_fault) = refusal(&Identity::Process(u32::MAX), "127.0.0.1:53");
        assert!(text.starts_with("the process 4294967295 is not there") && is_fault, "{text}");
        let (text, is_fault) = refusal(&Identity::Unit("no-such-unit".to_owned()), "127.0.0.1:53");
        assert!(text.contains("no-such-unit.service has no control group") && is_fault, "{text}");
        assert!(text.contains("hint:"), "{text}");
        // This process is there, but has no socket at that address.
        let (text, is_fault) = refusal(&Identity::Process(std::process::id()), &free);
        assert!(text.contains("does not listen on 127.200.1.1") && is_fault, "{text}");
    }

    #[test]
    fn the_affinity_is_read() {
        let status = "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,6\n";
        assert_eq!(allowed_list(status), Some(vec![0, 1, 2, 3, 6]));
        assert_eq!(allowed_list("Name:\tx\n"), None);
        // Other tests may have pinned threads of their own; none can leave what is allowed.
        let own = affinity(&[std::process::id()]);
        assert!(!own.is_empty() && own.iter().all(|cpu| cpus::online().contains(cpu)), "{own:?}");
    }
}
