//! What a simulated client costs the generator in memory, counted by its allocator. The server is a process
//! of its own, and this is the only test here: whatever another test allocated would count too.

#[path = "sockets/encrypted.rs"]
#[expect(dead_code, reason = "for other tests")]
mod encrypted;
#[path = "sockets/failures/process.rs"]
#[expect(dead_code, reason = "for other tests")]
mod process;
#[path = "sockets/responder.rs"]
#[expect(dead_code, reason = "for other tests")]
mod responder;

use std::alloc::System;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cap::Cap;
use dnslab_load::{Job, Progress, TlsSettings, Verification, run};
use dnslab_settings::Mode;
use dnslab_traffic::Connect;
use dnslab_wire::Transport;

use crate::encrypted::job;
use crate::process::{Serving, role, until_input_ends};
use crate::responder::Responder;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

fn serve() {
    let server = Responder::start(|config| config.idle_timeout = Duration::from_secs(100));
    let addresses = [Transport::Udp, Transport::Dot]
        .map(|transport| server.addresses(transport)[0].to_string());
    println!("serving: {}", addresses.join(" "));
    until_input_ends();
}

/// The most octets in use at the end of an interval of the measured window, and how many clients were
/// connected when it began.
fn max_octets(job: &Job) -> (usize, u32) {
    let (before, mut most) = (ALLOCATOR.allocated(), 0);
    let result = run(job, &AtomicBool::new(false), &mut |progress| {
        if let Progress::Interval(live) = progress
            && Duration::from_nanos(live.interval.at_ns) >= job.settings.warm_up
        {
            most = most.max(ALLOCATOR.allocated().saturating_sub(before));
        }
    })
    .unwrap();
    let outcomes = &result.measured.counters.outcomes;
    assert!(outcomes.answered > 0, "{outcomes:?} {:?}", result.last_connection_end);
    (most, result.measured.workers.iter().map(|worker| worker.open_clients).sum())
}

/// A load of so many clients that together ask ten times a second.
fn quiet(target: SocketAddr, transport: Transport, clients: u32, connect: Connect) -> Job {
    let tls = TlsSettings::new("localhost", &Verification::Off).unwrap();
    job(target, transport, tls).with(|load| {
        load.clients = clients;
        load.mode = Mode::constant(10.0);
        load.warm_up = Duration::from_secs(if connect == Connect::OnDemand { 1 } else { 8 });
        load.duration = Duration::from_millis(500);
        load.timeout = Duration::from_secs(10);
        load.workers = Some(1);
        load.connect = connect;
    })
}

#[test]
fn a_client_takes_no_more_than_stated() {
    if role().is_some() {
        return serve();
    }
    let server = Serving::start(&[], "a_client_takes_no_more_than_stated");
    let addresses: Vec<SocketAddr> =
        server.words.iter().map(|address| address.parse().unwrap()).collect();
    // The first load of a process allocates what lasts; a worker's own buffers are not the clients'.
    max_octets(&quiet(addresses[0], Transport::Udp, 1, Connect::OnDemand));
    let mut failed = false;
    for (name, transport, clients, connect, most) in [
        ("not connected", Transport::Tcp, 10_000, Connect::OnDemand, 1 << 10),
        ("TCP", Transport::Tcp, 2_000, Connect::AtStart, 4 << 10),
        ("DoT, with tickets", Transport::Dot, 1_000, Connect::AtStart, 24 << 10),
    ] {
        let target = addresses[usize::from(transport == Transport::Dot)];
        let (one, _) = max_octets(&quiet(target, transport, 1, Connect::OnDemand));
        let (all, connected) = max_octets(&quiet(target, transport, clients, connect));
        let each = all.saturating_sub(one) / clients as usize;
        println!("{name}: {:.2} KiB for each client", each as f64 / 1024.0);
        let expected = if connect == Connect::AtStart { clients } else { connected };
        assert_eq!(connected, expected, "{name}: some were not connected in time");
        failed |= each >= most;
    }
    assert!(!failed, "a client takes more than stated: see above");
}
