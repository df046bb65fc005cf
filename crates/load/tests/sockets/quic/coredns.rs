//! CoreDNS, whose QUIC and HTTP come from others (quic-go).

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dnslab_settings::{Mode, QuotaKind};
use dnslab_test_support::free_address;
use dnslab_wire::{Method, Transport};

use crate::encrypted::{Identity, go, go_well, job, zone};
use crate::foreign::Foreign;

/// CoreDNS as a process of its own, with every encrypted transport.
struct CoreDns {
    _process: Foreign,
    identity: Identity,
    addresses: Vec<(Transport, SocketAddr)>,
}

/// Where `./test` puts it, or where a user has it.
fn program() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/coredns");
    if tools.exists() { tools } else { "coredns".into() }
}

impl CoreDns {
    fn start() -> Self {
        let identity = Identity::new();
        let folder = identity.folder.path();
        let mut addresses = Vec::new();
        let mut configuration = String::new();
        for (transport, scheme) in [
            (Transport::Dot, "tls"),
            (Transport::Doh2, "https"),
            (Transport::Doq, "quic"),
            (Transport::Doh3, "https3"),
        ] {
            let address = free_address([127, 0, 0, 1].into());
            addresses.push((transport, address));
            writeln!(
                configuration,
                "{scheme}://example:{} {{\n bind 127.0.0.1\n tls {} {}\n file {}/zone example\n}}",
                address.port(),
                identity.chain.display(),
                identity.key.display(),
                folder.display()
            )
            .unwrap();
        }
        std::fs::write(folder.join("zone"), zone()).unwrap();
        std::fs::write(folder.join("Corefile"), configuration).unwrap();
        let mut command = Command::new(program());
        command.arg("-conf").arg(folder.join("Corefile"));
        // It opens its sockets before it says so.
        let process = Foreign::start(&mut command, folder, "CoreDNS-", &[addresses[0].1]);
        Self { _process: process, identity, addresses }
    }

    fn address(&self, transport: Transport) -> SocketAddr {
        self.addresses.iter().find(|(its, _)| *its == transport).unwrap().1
    }
}

#[test]
fn every_encrypted_transport() {
    let server = CoreDns::start();
    for transport in [Transport::Dot, Transport::Doh2, Transport::Doq, Transport::Doh3] {
        for method in [Method::Get, Method::Post] {
            let job = job(server.address(transport), transport, server.identity.settings());
            let result = go_well(&job.with(|load| load.http_method = method));
            let connections = &result.measured.counters.connections;
            assert_eq!(connections.opened, 3, "{transport} {connections:?}");
        }
    }
}

/// More queries outstanding than it allows streams, and short connections, which it lets resume.
#[test]
fn stream_limits_and_tickets() {
    let server = CoreDns::start();
    for transport in [Transport::Doq, Transport::Doh3] {
        let job = job(server.address(transport), transport, server.identity.settings());
        go_well(&job.clone().with(|load| load.mode = Mode::Closed { outstanding: 600 }));
        let result = go_well(&job.with(|load| {
            load.queries_per_connection = Some(30);
            load.connection_quota = QuotaKind::Exact;
        }));
        let connections = &result.measured.counters.connections;
        assert!(connections.closed > 3, "{transport} {connections:?}");
        assert!(connections.resumed_handshakes > 0, "{transport} {connections:?}");
    }
}

/// CoreDNS serves 200 connections of each transport at a time. Connections that nobody closes stay until they
/// have been idle for long. So a load is served only if the one before has closed its own.
#[test]
fn loads_one_after_another() {
    let server = CoreDns::start();
    for transport in [Transport::Doq, Transport::Doh3] {
        for number in 0..3 {
            let job = job(server.address(transport), transport, server.identity.settings());
            let result = go(&job.with(|load| {
                load.clients = 150;
                load.mode = Mode::Closed { outstanding: 1 };
                // quic-go refuses some connections for the moment if more than 32 wait to be accepted. They
                // are opened one after the other in the warm-up, and again where that was not enough.
                load.warm_up = Duration::from_secs(1);
            }));
            let workers = &result.measured.workers;
            let served: u32 = workers.iter().filter_map(|worker| worker.served_clients).sum();
            let shown = (&result.measured.counters, &result.last_connection_end);
            assert_eq!(served, 150, "load {number} over {transport}: {shown:?}");
        }
    }
}
