//! Servers that somebody else started, here the test itself: whether their processes are found.

use std::time::{Duration, Instant};

use crate::program::guard;
use crate::support::{ask, guarded, spec, started, wait_until};
use dnslab_lab::{
    ExternalServer, Identity, RunningProcess, Sampler, ServerKind, Watched, version_at,
};
use dnslab_record::Span;
use dnslab_wire::Transport::{self, Dot, Tcp, Udp};

#[track_caller]
fn check(kind: ServerKind, address: &str, transports: &[Transport], least_processes: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(kind, folder.path(), address, transports);
    spec.threads = 2;
    let server = started(&spec, folder.path());
    for &transport in transports {
        let address = server.address(transport).unwrap();
        let found = ExternalServer::find(&Identity::Address, transport, address)
            .unwrap_or_else(|error| panic!("{kind} over {transport}: {error}"));
        let facts = found.facts();
        assert!(facts.threads as usize >= least_processes, "{kind}: {facts:?}");
        let named = facts.notes[0].matches(program_name(kind)).count();
        assert!(named >= least_processes, "{kind} over {transport}: {facts:?}");
        assert!(!found.cpus().is_empty(), "{kind}: {facts:?}");
        // TLS has a port of its own, where nobody answers over UDP.
        let plain = found.plain_address(transport, address);
        let version = plain.and_then(version_at).unwrap_or_default();
        assert!(version.bytes().any(|letter| letter.is_ascii_digit()), "{kind}: {version:?}");

        let sampler = Sampler::start(found.watched());
        let origin = Instant::now();
        ask(folder.path(), transport, address).unwrap();
        let series = sampler.finish(origin);
        let [first, .., last] = series.samples.as_slice() else { panic!("{kind}: {series:?}") };
        assert!(last.cpu_ns >= first.cpu_ns && last.memory_octets > 500_000, "{kind}: {series:?}");
    }
    server.stop().unwrap();
}

fn program_name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Bind => "named",
        ServerKind::Knot => "knotd",
        _ => "nsd",
    }
}

#[test]
fn threads_of_one_process_are_found() {
    check(ServerKind::Bind, "127.0.0.1", &[Udp, Tcp, Dot], 1);
    check(ServerKind::Knot, "::1", &[Udp, Tcp], 1);
}

/// Each process of NSD has a socket of its own at the port (SO_REUSEPORT).
#[test]
fn all_processes_of_one_port_are_found() {
    check(ServerKind::Nsd, "127.0.0.1", &[Udp, Tcp], 2);
}

#[test]
fn the_busiest_thread_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let spec = guarded(folder.path(), &["sh", "-c", "sleep 1000 & while :; do :; done"]);
    let process = RunningProcess::start(&guard(), &spec).unwrap();
    let stat = || std::fs::read_to_string(format!("/proc/{}/schedstat", process.pid())).unwrap();
    let used_ns = || stat().split(' ').next().unwrap().parse::<u64>().unwrap();
    wait_until("it runs", || used_ns() > 50_000_000);
    let watched = Watched::new(process.pid(), process.sources().clone(), 2);
    let sampler = Sampler::start(watched);
    let origin = Instant::now();
    let before = used_ns();
    wait_until("0.3 s are used", || used_ns() > before + 300_000_000);
    let inside = i64::try_from(origin.elapsed().as_nanos()).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    let series = sampler.finish_over(origin, Span::between(0, inside));
    let [busiest] = series.threads.as_slice() else { panic!("{:?}", series.threads) };
    assert_eq!(busiest.name, "sh");
    // The share depends on the machine.
    assert!(busiest.share > 0.0 && busiest.share <= 1.0, "{busiest:?}");
}
