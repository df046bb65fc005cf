//! Real forwarders in front of a real authoritative server, over each transport between them.

mod trust;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use dnslab_lab::{
    DNSTAP_LOG, LabError, Logging, QUERY_LOG, QueryLog, RunningServer, ServerKind, ServerSpec,
    Upstream, UpstreamTls, ZoneFile, certificate, find, ports,
};
use dnslab_record::counter;
use dnslab_settings::CacheSize;
use dnslab_wire::Transport::{self, Doh2, Dot, Tcp, Udp};

use crate::program::guard;
use crate::support::{
    PATIENCE, ask, ask_for, copy_program, groups_of, nobody, parent, spec as authoritative,
    started, wait_until,
};

/// Names of the zone that one transport each asks for: no cache knows them before.
const NAMES: usize = 8;

struct Case {
    kind: ServerKind,
    clients: &'static [Transport],
    upstreams: &'static [Transport],
    /// The counter that grows by one with each query, and over which transports.
    counted: Option<(&'static str, &'static [Transport])>,
    /// Transports over which it counts the queries to the upstream.
    counts_upstream: &'static [Transport],
}

const USUAL: &[Transport] = &[Udp, Tcp, Dot, Doh2];

const CASES: &[Case] = &[
    Case {
        kind: ServerKind::Unbound,
        clients: USUAL,
        upstreams: &[Udp, Tcp, Dot],
        counted: Some((counter::QUERIES, USUAL)),
        // Over streams it counts connections.
        counts_upstream: &[Udp],
    },
    Case {
        kind: ServerKind::KnotResolver,
        clients: USUAL,
        upstreams: &[Udp, Dot],
        counted: Some((counter::QUERIES, USUAL)),
        counts_upstream: &[Udp, Tcp, Dot],
    },
    Case {
        kind: ServerKind::Dnsmasq,
        clients: &[Udp, Tcp],
        upstreams: &[Udp],
        // Queries over TCP are its blind spot.
        counted: Some((counter::QUERIES_UDP, &[Udp])),
        counts_upstream: &[Udp, Tcp, Dot],
    },
    Case {
        kind: ServerKind::Stubby,
        clients: &[Udp, Tcp],
        upstreams: &[Udp, Tcp, Dot],
        counted: None,
        counts_upstream: &[],
    },
    Case {
        kind: ServerKind::CoreDns,
        clients: USUAL,
        upstreams: &[Udp, Tcp, Dot],
        counted: Some((counter::QUERIES, USUAL)),
        counts_upstream: &[Udp, Tcp, Dot],
    },
    Case {
        kind: ServerKind::Dnsdist,
        clients: USUAL,
        upstreams: &[Udp, Tcp, Dot],
        counted: Some((counter::QUERIES, USUAL)),
        counts_upstream: &[Udp, Tcp, Dot],
    },
    Case {
        kind: ServerKind::PowerDnsRecursor,
        clients: &[Udp, Tcp],
        // To TLS at one port only, which `tls_without_a_name_at_its_own_port` has.
        upstreams: &[Udp],
        counted: Some((counter::QUERIES, &[Udp, Tcp])),
        counts_upstream: &[Udp],
    },
    Case {
        kind: ServerKind::Bind,
        clients: USUAL,
        // To TLS from 9.20 on.
        upstreams: &[Udp, Tcp],
        counted: Some((counter::QUERIES, USUAL)),
        counts_upstream: &[Udp, Tcp],
    },
];

/// A server that no distribution packages: where `./test` puts it; `None` to look in PATH.
fn binary(kind: ServerKind) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/coredns");
    (kind == ServerKind::CoreDns && tools.exists()).then_some(tools)
}

/// An authoritative server over UDP, TCP and TLS, the upstream of forwarders.
struct Authority {
    server: RunningServer,
    folder: tempfile::TempDir,
}

impl Authority {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = authoritative(ServerKind::Nsd, folder.path(), "127.0.0.1", &[Udp, Tcp, Dot]);
        let ZoneFile { path, .. } = spec.zone.as_ref().unwrap();
        let mut zone = fs::read_to_string(path).unwrap();
        for transport in Transport::ALL {
            for number in 0..NAMES {
                zone.push_str(&format!("{transport}-{number} 3600 A 192.0.2.{number}\n"));
            }
        }
        fs::write(path, zone).unwrap();
        spec.threads = 1;
        let probe = |transport, address| ask(folder.path(), transport, address);
        let server = probed(&spec, &probe);
        Self { server, folder }
    }

    fn upstream(&self, transport: Transport) -> Upstream {
        let tls = UpstreamTls {
            authority: self.server.authority().unwrap().to_owned(),
            name: certificate::NAME.to_owned(),
        };
        Upstream {
            address: self.server.address(transport).unwrap(),
            further: Vec::new(),
            transport,
            tls: transport.is_encrypted().then_some(tls),
        }
    }
}

#[track_caller]
fn probed(spec: &ServerSpec, probe: &dnslab_lab::Probe<'_>) -> RunningServer {
    RunningServer::start(spec, &guard(), probe, PATIENCE).unwrap_or_else(|error| panic!("{error}"))
}

fn forwarder(
    kind: ServerKind,
    folder: &Path,
    (address, transports): (&str, &[Transport]),
    upstream: Upstream,
) -> ServerSpec {
    let spec = authoritative(kind, folder, address, transports);
    ServerSpec { zone: None, upstream: Some(upstream), binary: binary(kind), ..spec }
}

/// Returns how many names it asked for.
fn ask_for_all(server: &RunningServer, folder: &Path, transport: Transport) -> u64 {
    let at = (transport, server.address(transport).unwrap());
    for number in 0..NAMES {
        let name = format!("{transport}-{number}.example.test");
        let kind = &server.facts().kind;
        ask_for(&name, &format!("192.0.2.{number}"), folder, at, PATIENCE.as_secs())
            .unwrap_or_else(|error| panic!("{kind} {transport}: {error}"));
    }
    NAMES as u64
}

#[track_caller]
fn stop(server: RunningServer) {
    let guard = parent(server.process().pid());
    let (addresses, tail) = (server.addresses().to_vec(), server.log_tail(20));
    let kind = server.facts().kind.clone();
    let report = server.stop().unwrap_or_else(|error| panic!("{error}"));
    assert!(report.requested && !report.killed, "{kind}: {report:?}: {tail:?}");
    assert!(groups_of(guard).is_empty());
    for (transport, address) in addresses {
        ports::check(transport, address).unwrap();
    }
}

fn check(case: &Case, upstream: Upstream, address: &str) {
    let folder = tempfile::tempdir().unwrap();
    let way = upstream.transport;
    let mut spec = forwarder(case.kind, folder.path(), (address, case.clients), upstream);
    spec.threads = 2;
    let probe = |transport, address| ask(folder.path(), transport, address);
    let server = probed(&spec, &probe);
    let watch = server.count();
    assert_eq!(watch.is_some(), case.counted.is_some(), "{}", case.kind);
    let asked: Vec<(Transport, u64)> = case
        .clients
        .iter()
        .map(|transport| (*transport, ask_for_all(&server, folder.path(), *transport)))
        .collect();
    if let (Some(watch), Some((name, counted))) = (watch, case.counted) {
        let series = watch.finish(Instant::now());
        assert_eq!(series.failure, None, "{}", case.kind);
        let counted = asked.iter().filter(|(its, _)| counted.contains(its));
        let expected: u64 = counted.map(|(_, count)| count).sum();
        let label = format!("{} over {way}: {series:?}", case.kind);
        assert_eq!(series.growth(name), Some(expected), "{label}");
        if case.counts_upstream.contains(&way) {
            // On a busy machine an answer of the upstream may be late, so it is asked again.
            let sent = series.growth(counter::UPSTREAM_QUERIES).unwrap();
            assert!((expected..2 * expected).contains(&sent), "{label}");
        }
    }
    stop(server);
}

#[test]
fn every_forwarder_over_every_transport_to_its_upstream() {
    let authority = Authority::start();
    for case in CASES {
        for transport in case.upstreams {
            check(case, authority.upstream(*transport), "127.0.0.1");
        }
        let absent =
            Transport::ALL.into_iter().filter(|transport| !case.upstreams.contains(transport));
        let folder = tempfile::tempdir().unwrap();
        for transport in absent {
            let upstream = match transport {
                Tcp | Dot => authority.upstream(transport),
                _ => Upstream { transport, ..authority.upstream(Udp) },
            };
            let spec = forwarder(case.kind, folder.path(), ("127.0.0.1", &[Udp]), upstream);
            // A newer version than those of the table may have it.
            if find(case.kind, None, &guard())
                .is_ok_and(|installed| installed.can_start(&spec).is_ok())
            {
                check(case, spec.upstream.unwrap(), "127.0.0.1");
                continue;
            }
            let refused = RunningServer::start(&spec, &guard(), &|_, _| Ok(()), PATIENCE);
            assert!(matches!(refused, Err(LabError::Unsupported(_))), "{transport}: {refused:?}");
        }
    }
    stop(authority.server);
    drop(authority.folder);
}

#[test]
fn every_forwarder_on_ipv6() {
    let authority = Authority::start();
    for case in CASES {
        check(case, authority.upstream(case.upstreams[0]), "::1");
    }
}

/// BIND writes a line and two dnstap messages for each query, as an authoritative server and as a forwarder.
#[test]
fn queries_are_logged() {
    let authority = Authority::start();
    for is_forwarder in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = authoritative(ServerKind::Bind, folder.path(), "127.0.0.1", &[Udp]);
        if is_forwarder {
            spec =
                forwarder(spec.kind, folder.path(), ("127.0.0.1", &[Udp]), authority.upstream(Udp));
        }
        spec.logging = Logging { query_log: Some(QueryLog::default()), dnstap: true };
        let server = started(&spec, folder.path());
        let asked = server.count().unwrap().finish(Instant::now());
        let tapped =
            [counter::DNSTAP_MESSAGES, counter::DNSTAP_DROPPED].map(|counter| asked.total(counter));
        let asked = asked.total(counter::QUERIES).unwrap();
        assert_eq!(tapped, [Some(2 * asked), Some(0)], "forwarder: {is_forwarder}");
        let (log, dnstap) = (spec.directory.join(QUERY_LOG), spec.directory.join(DNSTAP_LOG));
        let lines = fs::read_to_string(log).unwrap();
        let lines =
            lines.lines().filter(|line| line.contains("query: alf.example.test IN A")).count();
        assert_eq!(lines as u64, asked, "forwarder: {is_forwarder}");
        // Its end writes what dnstap has in its buffers.
        stop(server);
        let output = Command::new("dnstap-read").arg(dnstap).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stdout);
        assert_eq!(messages.lines().count() as u64, 2 * asked, "{is_forwarder}: {messages}");
    }
}

/// As in a home router: dnsmasq in front of Stubby, which speaks TLS.
#[test]
fn a_chain_of_forwarders() {
    let authority = Authority::start();
    let (near, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let local = ("127.0.0.1", &[Udp, Tcp] as &[_]);
    let stubby = forwarder(ServerKind::Stubby, far.path(), local, authority.upstream(Dot));
    let stubby = started(&stubby, far.path());
    let upstream = Upstream {
        address: stubby.address(Udp).unwrap(),
        further: Vec::new(),
        transport: Udp,
        tls: None,
    };
    let dnsmasq = forwarder(ServerKind::Dnsmasq, near.path(), local, upstream);
    let dnsmasq = started(&dnsmasq, near.path());
    ask_for_all(&dnsmasq, near.path(), Udp);
    stop(dnsmasq);
    stop(stubby);
}

#[test]
fn nonsense_in_the_configuration_ends_a_forwarder_with_its_own_words() {
    let authority = Authority::start();
    for (kind, extra, words) in [
        (ServerKind::Unbound, "nonsense: 1", "nonsense"),
        (ServerKind::KnotResolver, "nonsense(1)", "nonsense"),
        (ServerKind::Dnsmasq, "nonsense=1", "bad option at line"),
        (ServerKind::Stubby, "nonsense: 1", "Could not parse config file"),
        (ServerKind::CoreDns, "nonsense 1", "Unknown directive 'nonsense'"),
        (ServerKind::Dnsdist, "nonsense(1)", "nonsense"),
        (ServerKind::PowerDnsRecursor, "nonsense=1", "nonsense"),
        (ServerKind::Bind, "nonsense 1;", "unknown option 'nonsense'"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let upstream = authority.upstream(Udp);
        let mut spec = forwarder(kind, folder.path(), ("127.0.0.1", &[Udp]), upstream);
        spec.extra = Some(extra.to_owned());
        let probe = |_, _| Err("the probe is never content".to_owned());
        let error = RunningServer::start(&spec, &guard(), &probe, PATIENCE).unwrap_err();
        assert!(matches!(error, LabError::Exited(_)), "{kind}: {error}");
        assert!(error.to_string().contains(words), "{kind}: {error}");
    }
}

#[test]
fn forwarders_answer_without_counting() {
    let authority = Authority::start();
    for kind in [ServerKind::Unbound, ServerKind::CoreDns] {
        let folder = tempfile::tempdir().unwrap();
        let mut spec =
            forwarder(kind, folder.path(), ("127.0.0.1", &[Udp]), authority.upstream(Udp));
        spec.counts = false;
        stop(started(&spec, folder.path()));
    }
    stop(authority.server);
}

/// Forwarders that count entries take their number, answer with it, and dnsmasq tells it.
#[test]
fn caches_have_the_entries_that_are_asked_for() {
    let authority = Authority::start();
    for kind in [ServerKind::Dnsmasq, ServerKind::CoreDns, ServerKind::Dnsdist] {
        let folder = tempfile::tempdir().unwrap();
        let upstream = authority.upstream(Udp);
        let mut spec = forwarder(kind, folder.path(), ("127.0.0.1", &[Udp]), upstream);
        spec.cache = CacheSize::Entries(2_048);
        let probe = |transport, address| ask(folder.path(), transport, address);
        let server = probed(&spec, &probe);
        let watch = server.count().unwrap();
        let asked = ask_for_all(&server, folder.path(), Udp);
        ask_for_all(&server, folder.path(), Udp);
        let series = watch.finish(Instant::now());
        let hits = series.growth(counter::CACHE_HITS);
        assert!(hits.is_some_and(|hits| hits >= asked), "{kind}: {series:?}");
        if kind == ServerKind::Dnsmasq {
            let port = spec.ports.plain.to_string();
            let what =
                ["@127.0.0.1", "-p", &port, "-c", "CH", "-t", "TXT", "cachesize.bind", "+short"];
            let output = Command::new("kdig").args(what).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "\"2048\"");
        }
        stop(server);
    }
    stop(authority.server);
}

/// It has letters that mean something elsewhere, and may be longer than a Unix socket's path.
#[test]
fn the_name_of_a_forwarders_folder_does_not_matter() {
    let authority = Authority::start();
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        let upstream = authority.upstream(*case.upstreams.last().unwrap());
        let mut spec = forwarder(case.kind, folder.path(), ("127.0.0.1", &[Udp]), upstream);
        spec.directory = folder.path().join("a \"b\" {c}; #".repeat(15));
        let server = started(&spec, folder.path());
        if let Some(watch) = server.count() {
            assert_eq!(watch.finish(Instant::now()).failure, None, "{}", case.kind);
        }
        stop(server);
    }
}

#[test]
fn an_ordinary_user_can_start_every_forwarder() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: every other test is this one");
        return;
    }
    let authority = Authority::start();
    for case in CASES {
        let folder = tempfile::tempdir().unwrap();
        let clients = ("127.0.0.1", &[Udp, Tcp] as &[_]);
        let mut spec = forwarder(case.kind, folder.path(), clients, authority.upstream(Udp));
        let nobody = nobody(&spec, folder.path());
        if let Some(binary) = &mut spec.binary {
            // That user may not read the folder of the tools.
            let copy = folder.path().join("program");
            copy_program(binary, &copy);
            *binary = copy;
        }
        let probe = |transport, address| ask(folder.path(), transport, address);
        let server = RunningServer::start(&spec, &nobody, &probe, PATIENCE)
            .unwrap_or_else(|error| panic!("{error}"));
        if let Some(watch) = server.count() {
            assert_eq!(watch.finish(Instant::now()).failure, None, "{}", case.kind);
        }
        stop(server);
    }
}

/// The id of one of its processes, which the name of its control socket has.
fn process_of_kresd(directory: &Path) -> Option<i32> {
    let entries = fs::read_dir(directory).unwrap().flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.find_map(|name| name.strip_prefix("kresd-")?.strip_suffix(".ctl")?.parse().ok())
}

/// If one of several processes dies, all end: half a server would be measured as a whole one.
#[test]
fn a_process_of_knot_resolver_that_dies_is_noticed() {
    let authority = Authority::start();
    let folder = tempfile::tempdir().unwrap();
    let upstream = authority.upstream(Udp);
    let mut spec =
        forwarder(ServerKind::KnotResolver, folder.path(), ("127.0.0.1", &[Udp]), upstream);
    spec.threads = 2;
    let server = started(&spec, folder.path());
    let process = || process_of_kresd(&spec.directory);
    wait_until("its control sockets are there", || process().is_some());
    let pid = rustix::process::Pid::from_raw(process().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_until("the end is known", || server.exited().is_some());
    assert!(server.stop().is_err());
}

#[test]
fn every_forwarder_is_installed() {
    for case in CASES {
        let found = find(case.kind, binary(case.kind).as_deref(), &guard());
        assert!(found.is_ok(), "{found:?}");
    }
}
