//! Real servers: started, ready, asked, stopped, nothing left.

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Command;
use std::time::{Duration, Instant};

use dnslab_lab::{
    CertificateKind, LabError, RunningServer, Sampler, ServerKind, ServerSpec, find, ports, sockets,
};
use dnslab_record::counter;
use dnslab_test_support::bind_both;
use dnslab_wire::Transport::{self, Doh2, Dot, Tcp, Udp};

use crate::program::guard;
use crate::support::{
    PATIENCE, alive, ask, copy_program, groups_of, nobody, parent, refused, spec, start, started,
    wait_until,
};

#[track_caller]
fn check(kind: ServerKind, address: &str, transports: &[Transport]) {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(kind, folder.path(), address, transports);
    let server = started(&spec, folder.path());
    let (pid, guard) = (server.process().pid(), parent(server.process().pid()));
    let sampler = Sampler::start(server.watched());
    let counters = server.count().unwrap();
    let origin = Instant::now();
    for &transport in transports {
        let address = server.address(transport).unwrap();
        let (owner, name) = sockets::owner(transport, address).unwrap().process.unwrap();
        let program = program_name(kind);
        assert!(alive(owner) && name.starts_with(program), "{owner} {name} is no {program}");
        ask(folder.path(), transport, address).unwrap();
    }
    let counters = counters.finish(origin);
    assert_eq!(counters.failure, None, "{kind}");
    let growth = counters.growth(counter::QUERIES);
    assert_eq!(growth, Some(transports.len() as u64), "{kind}: {counters:?}");
    let absent = Transport::ALL.into_iter().find(|transport| !transports.contains(transport));
    assert_eq!(absent.and_then(|transport| server.address(transport)), None);
    let series = sampler.finish(origin);
    assert!(series.samples.last().unwrap().memory_octets > 500_000, "{series:?}");
    assert_eq!(server.facts().kind, kind.name());
    assert!(!server.facts().notes.is_empty() && !server.facts().version.is_empty());
    assert!(server.log().exists() && server.exited().is_none());
    let addresses: Vec<_> = server.addresses().to_vec();
    let tail = server.log_tail(20);

    let report = server.stop().unwrap_or_else(|error| panic!("{error}"));
    assert!(report.requested && !report.killed, "{kind}: {report:?}: {tail:?}");
    assert!(!alive(pid) && !alive(guard));
    assert!(groups_of(guard).is_empty());
    for (transport, address) in addresses {
        ports::check(transport, address).unwrap();
    }
}

const AUTHORITATIVE: [ServerKind; 4] =
    [ServerKind::Bind, ServerKind::Knot, ServerKind::Nsd, ServerKind::PowerDnsAuthoritative];

fn program_name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Embedded => "dnslab",
        // Its worker threads have other names.
        ServerKind::Bind => "named",
        ServerKind::Knot => "knotd",
        ServerKind::Nsd => "nsd",
        ServerKind::PowerDnsAuthoritative => "pdns_server",
        forwarder => unreachable!("{forwarder} is in tests of its own"),
    }
}

#[test]
fn bind_on_both_ip_versions() {
    check(ServerKind::Bind, "127.0.0.1", &[Udp, Tcp, Dot, Doh2]);
    check(ServerKind::Bind, "::1", &[Udp, Tcp, Dot, Doh2]);
    check(ServerKind::Bind, "127.0.0.1", &[Dot]);
    check(ServerKind::Bind, "127.0.0.1", &[Doh2]);
}

#[test]
fn knot_on_both_ip_versions() {
    let installed =
        find(ServerKind::Knot, None, &guard()).unwrap_or_else(|error| panic!("{error}"));
    let all = Transport::ALL.into_iter().filter(|transport| installed.supports(*transport).is_ok());
    let all: Vec<_> = all.collect();
    check(ServerKind::Knot, "127.0.0.1", &all);
    check(ServerKind::Knot, "::1", &all);
}

#[test]
fn nsd_on_both_ip_versions() {
    check(ServerKind::Nsd, "127.0.0.1", &[Udp, Tcp, Dot]);
    check(ServerKind::Nsd, "::1", &[Udp, Tcp, Dot]);
    check(ServerKind::Nsd, "127.0.0.1", &[Dot]);
}

#[test]
fn powerdns_on_both_ip_versions() {
    check(ServerKind::PowerDnsAuthoritative, "127.0.0.1", &[Udp, Tcp]);
    check(ServerKind::PowerDnsAuthoritative, "::1", &[Udp, Tcp]);
}

/// Clients that trust the authority accept each kind, and the TLS library is known.
#[test]
fn servers_show_each_kind_of_certificate() {
    for (kind, library) in [(ServerKind::Bind, "OpenSSL 3."), (ServerKind::Nsd, "OpenSSL 3.")] {
        for certificate in CertificateKind::ALL {
            let folder = tempfile::tempdir().unwrap();
            let mut spec = spec(kind, folder.path(), "127.0.0.1", &[Dot]);
            spec.certificate = certificate;
            let server = start(&spec, folder.path())
                .unwrap_or_else(|error| panic!("{kind} with {certificate}: {error}"));
            let found = &server.facts().tls_library;
            assert!(found.starts_with(library), "{kind}: {found}");
            server.stop().unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(ServerKind::Bind, folder.path(), "127.0.0.1", &[Udp]);
    let server = started(&spec, folder.path());
    assert_eq!(server.facts().tls_library, "", "nothing is encrypted");
    server.stop().unwrap();
}

/// Each process of NSD has sockets of its own at the same address (SO_REUSEPORT).
#[test]
fn several_threads_or_processes_are_ready_together() {
    for kind in AUTHORITATIVE {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spec(kind, folder.path(), "127.0.0.1", &[Udp, Tcp]);
        spec.threads = 2;
        let server = started(&spec, folder.path());
        // The kernel may choose any of them.
        for transport in [Udp, Tcp].into_iter().cycle().take(8) {
            ask(folder.path(), transport, server.address(transport).unwrap()).unwrap();
        }
        server.stop().unwrap();
    }
}

/// Clients over UDP need no files of the server's.
#[test]
fn clients_that_do_not_fit_are_refused_where_they_need_files() {
    for (transport, refused) in [(Udp, false), (Tcp, true)] {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spec(ServerKind::Nsd, folder.path(), "127.0.0.1", &[transport]);
        // More than `launch` ever gives to a server.
        spec.connections = 70_000;
        let started = start(&spec, folder.path());
        let error = started.err().map(|error| error.to_string());
        assert_eq!(error.is_some(), refused, "{error:?}");
        assert!(
            error.is_none_or(|error| error.starts_with("connections `70000`: a server may open "))
        );
    }
}

#[test]
fn the_name_of_the_folder_does_not_matter() {
    for kind in AUTHORITATIVE {
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spec(kind, folder.path(), "127.0.0.1", &[Udp]);
        // Longer than the path of a Unix socket may be, and with letters that mean something in every
        // configuration language.
        spec.directory = folder.path().join("a \"b\" {c}; #".repeat(15));
        let server = started(&spec, folder.path());
        server.stop().unwrap();
    }
}

#[track_caller]
fn changed(kind: ServerKind, change: impl Fn(&mut ServerSpec), asked: impl Fn(SocketAddr)) {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(kind, folder.path(), "127.0.0.1", &[Udp]);
    change(&mut spec);
    let server = started(&spec, folder.path());
    asked(server.address(Udp).unwrap());
    server.stop().unwrap();
}

#[test]
fn options_of_the_user_are_options_of_bind() {
    let change = |spec: &mut ServerSpec| {
        spec.extra = Some("options {\n    version \"ours\"; # of the user\n};\n".to_owned());
    };
    changed(ServerKind::Bind, change, |address| {
        let (ip, port) = (address.ip(), address.port());
        let question = format!("@{ip} -p {port} +short CH TXT version.bind");
        let output = Command::new("kdig").args(question.split(' ')).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "\"ours\"");
    });
}

#[test]
fn knot_answers_without_counting() {
    changed(ServerKind::Knot, |spec| spec.counts = false, |_| {});
}

#[track_caller]
fn failure(kind: ServerKind, extra: &str, timeout: Duration) -> LabError {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(kind, folder.path(), "127.0.0.1", &[Udp]);
    spec.extra = Some(extra.to_owned());
    let probe = |_, _: SocketAddr| Err("the probe is never content".to_owned());
    RunningServer::start(&spec, &guard(), &probe, timeout).unwrap_err()
}

#[test]
fn a_broken_configuration_shows_the_last_lines_of_the_log() {
    for (kind, line) in [
        (ServerKind::Bind, "unknown option 'nonsense'"),
        (ServerKind::Knot, "nonsense"),
        (ServerKind::Nsd, "nonsense"),
    ] {
        let error = failure(kind, "nonsense 1;", PATIENCE);
        let text = error.to_string();
        assert!(matches!(error, LabError::Exited(_)), "{text}");
        assert!(text.contains("exited with status 1 before answering"), "{text}");
        assert!(
            text.contains("\n  command: /") && text.contains("server.log, last lines:"),
            "{text}"
        );
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn a_wrong_answer_is_not_ready() {
    let error = failure(ServerKind::Nsd, "", Duration::from_millis(500)).to_string();
    assert!(error.contains("nsd was not ready after 0.5 s"), "{error}");
    assert!(error.contains("socket open, but the probe is never content"), "{error}");
}

#[test]
fn the_owner_of_a_taken_port_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(ServerKind::Bind, folder.path(), "127.0.0.1", &[Tcp, Udp]);
    let (_tcp, ours) = bind_both([127, 0, 0, 1].into());
    spec.ports.plain = ours.local_addr().unwrap().port();
    let error = refused(&spec);
    let text = error.to_string();
    assert!(matches!(error, LabError::AddressTaken(_)), "{text}");
    let ours = format!("another process owns the address: {} ", std::process::id());
    assert!(text.contains(&ours), "{text}");
    assert!(!spec.directory.exists(), "nothing is written for a server that cannot start");
}

#[test]
fn what_a_version_cannot_do_is_refused() {
    let installed =
        find(ServerKind::Knot, None, &guard()).unwrap_or_else(|error| panic!("{error}"));
    let Err(reason) = installed.supports(Dot) else { return };
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(ServerKind::Knot, folder.path(), "127.0.0.1", &[Udp, Dot]);
    let error = refused(&spec);
    assert_eq!(error.to_string(), reason);
}

#[test]
fn a_server_that_dies_in_the_middle_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(ServerKind::Nsd, folder.path(), "127.0.0.1", &[Udp]);
    let server = started(&spec, folder.path());
    let pid = i32::try_from(server.process().pid()).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::KILL).unwrap();
    wait_until("the end is known", || server.exited().is_some());
    let error = server.stop().unwrap_err().to_string();
    assert!(error.contains("nsd was ended by signal 9"), "{error}");
}

/// Also below a folder that only root may enter, where root usually has the results.
#[test]
fn servers_give_up_root() {
    assert!(rustix::process::geteuid().is_root(), "only root can give it up: run it as root");
    let mut users = HashSet::new();
    for kind in AUTHORITATIVE {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let spec = spec(kind, folder.path(), "127.0.0.1", &[Udp, Tcp]);
        let server = started(&spec, folder.path());
        let user = server.facts().user.clone();
        assert!(user.parse::<u32>().is_ok_and(|user| user >= 61_184), "{:?}", server.facts());
        assert!(users.insert(user), "each has its own");
        let status =
            fs::read_to_string(format!("/proc/{}/status", server.process().pid())).unwrap();
        assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
        // Only the server sees the cover of the closed folder.
        let log = folder.path().join("server").join("server.log");
        assert!(log.exists());
        assert!(!server.stop().unwrap().killed);
        assert_eq!(
            fs::metadata(log).unwrap().uid(),
            0,
            "the next one of that number has no part in it"
        );
    }
    // A program that this user may not execute.
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let mut spec = spec(ServerKind::Nsd, folder.path(), "127.0.0.1", &[Udp]);
    let copy = folder.path().join("nsd");
    copy_program(&dnslab_lab::find(ServerKind::Nsd, None, &guard()).unwrap().binary, &copy);
    spec.binary = Some(copy);
    let server = started(&spec, folder.path());
    let facts = server.facts();
    assert_eq!(facts.user, "root");
    let says = |note: &String| {
        note.starts_with("runs as root: its user ") && note.contains(" may not execute ")
    };
    assert!(facts.notes.iter().any(says), "{:?}", facts.notes);
}

#[test]
fn an_ordinary_user_can_start_every_server() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: every other test is this one");
        return;
    }
    for kind in AUTHORITATIVE {
        let folder = tempfile::tempdir().unwrap();
        let spec = spec(kind, folder.path(), "127.0.0.1", &[Udp, Tcp]);
        let nobody = nobody(&spec, folder.path());
        let probe = |transport, address| ask(folder.path(), transport, address);
        let server = RunningServer::start(&spec, &nobody, &probe, PATIENCE)
            .unwrap_or_else(|error| panic!("{error}"));
        let status = format!("/proc/{}/status", server.process().pid());
        let status = fs::read_to_string(status).unwrap();
        assert!(status.contains("Uid:\t65534\t"), "{status}");
        let sources = server.process().sources();
        assert_eq!(
            sources.cpu.describe(),
            "/proc/PID/task/*/schedstat, /proc/PID/stat",
            "{sources:?}"
        );
        assert!(!server.stop().unwrap().killed);
    }
}
