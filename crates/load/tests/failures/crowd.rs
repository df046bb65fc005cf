//! A hundred thousand clients, each with a life of its own, on fewer descriptors than that.

use std::net::SocketAddr;
use std::time::Duration;

use dnslab_load::LoadSpec;
use dnslab_traffic::{ClientBehaviour, Connect};
use dnslab_wire::Transport;

use crate::applied::{apply_while, both, last_end, open, spec};
use crate::process::{Serving, alone, role, status_kib, until_input_ends};
use crate::responder::Responder;

/// Clients of the load.
const CLIENTS: u32 = 100_000;

/// Serves over UDP and TCP until the parent has no more use for it.
fn serve() {
    let server = Responder::start(|config| {
        config.max_connections = 15_000.try_into().unwrap();
    });
    println!("serving: {}", server.address(Transport::Udp));
    until_input_ends();
}

/// Files that this process has open.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[track_caller]
fn check(transport: Transport, target: SocketAddr) {
    let before = status_kib("VmRSS");
    let mut max_files = 0;
    let behaviour = ClientBehaviour {
        idle: Some(Duration::from_millis(200)),
        connect: Connect::OnDemand,
        ..ClientBehaviour::default()
    };
    let spec = LoadSpec {
        clients: CLIENTS,
        mode: open(20_000.0),
        warm_up: Duration::from_secs(1),
        // Each client gets one query, in its turn.
        duration: Duration::from_secs(4),
        timeout: Duration::from_millis(700),
        workers: 1,
        behaviour,
        // One address has 28,000 ports.
        sources: Some("127.0.1.0/24".parse().unwrap()),
        ..spec(target, transport)
    };
    assert!(spec.sockets() < 20_000, "{}", spec.sockets());
    let mut calls = 0;
    let result = apply_while(&spec, &mut || {
        calls += 1;
        // Counting takes the kernel a while.
        if calls % 8 == 0 {
            max_files = max_files.max(open_files());
        }
    });
    let counters = both(&result);
    let context = format!("{transport}: {counters:?} {}", last_end(&result));
    println!(
        "found: {transport}: {:?} {:?}, {max_files} files, {} KiB more, {}",
        counters.outcomes,
        counters.connections,
        status_kib("VmHWM").saturating_sub(before),
        last_end(&result),
    );
    // All are used: each has its one query.
    assert_eq!(counters.outcomes.due, u64::from(CLIENTS), "{context}");
    // How many of them find their socket in time is the machine's affair.
    assert!(counters.outcomes.answered > 1_000, "{context}");
    assert!(max_files > 100 && max_files < 20_000, "{max_files} files were open, {context}");
    if transport.is_connection() {
        assert!(counters.connections.closed > 0, "{context}");
        assert!(counters.connections.attempted >= counters.sent, "{context}");
    }
}

#[test]
fn a_hundred_thousand_udp_clients() {
    const NAME: &str = "crowd::a_hundred_thousand_udp_clients";
    one_after_the_other(NAME, Transport::Udp);
}

#[test]
fn a_hundred_thousand_tcp_clients() {
    const NAME: &str = "crowd::a_hundred_thousand_tcp_clients";
    one_after_the_other(NAME, Transport::Tcp);
}

/// The load and its server, each in a process of its own.
fn one_after_the_other(name: &str, transport: Transport) {
    if role().as_deref() == Some("serve") {
        return serve();
    }
    alone(&[], name, || {
        let server = Serving::start(&[], name);
        check(transport, server.words[0].parse().unwrap());
    });
}
