//! A hundred thousand clients, each on its own, with fewer descriptors than clients.

use std::net::SocketAddr;
use std::time::Duration;

use dnslab_load::sockets;
use dnslab_traffic::Connect;
use dnslab_wire::Transport;

use crate::failures::applied::{apply_while, both, job, last_end, open};
use crate::failures::process::{Serving, alone, role, status_kib, until_input_ends};
use crate::failures::responder::Responder;

const CLIENTS: u32 = 100_000;

fn serve() {
    let server = Responder::start(|config| {
        config.max_connections = 15_000.try_into().unwrap();
    });
    println!("serving: {}", server.address);
    until_input_ends();
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[track_caller]
fn check(transport: Transport, target: SocketAddr) {
    let before = status_kib("VmRSS");
    let mut max_files = 0;
    let job = job(target, transport).with(|load| {
        load.clients = CLIENTS;
        open(load, 20_000.0);
        load.warm_up = Duration::from_secs(1);
        // Each client gets one query, in its turn.
        load.duration = Duration::from_secs(4);
        load.timeout = Duration::from_millis(700);
        load.workers = Some(1);
        load.idle = Some(Duration::from_millis(200));
        load.connect = Connect::OnDemand;
        // One address has 28,000 ports.
        load.sources = Some("127.0.1.0/24".parse().unwrap());
    });
    let sockets = sockets(&job.settings);
    assert!(sockets < 20_000, "{sockets}");
    let mut calls = 0;
    let result = apply_while(&job, &mut || {
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
    // The machine decides how many of them find a socket in time.
    assert!(counters.outcomes.answered > 1_000, "{context}");
    assert!(max_files > 100 && max_files < 20_000, "{max_files} files were open, {context}");
    if transport.is_connection() {
        assert!(counters.connections.closed > 0, "{context}");
        assert!(counters.connections.attempted >= counters.sent, "{context}");
    }
}

#[test]
fn a_hundred_thousand_udp_clients() {
    const NAME: &str = "failures::crowd::a_hundred_thousand_udp_clients";
    one_after_the_other(NAME, Transport::Udp);
}

#[test]
fn a_hundred_thousand_tcp_clients() {
    const NAME: &str = "failures::crowd::a_hundred_thousand_tcp_clients";
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
