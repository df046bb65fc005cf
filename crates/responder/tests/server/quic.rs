//! DNS over QUIC and over HTTP/3, asked by a client on quic-go.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use dnslab_responder::Server;
use dnslab_wire::Transport;

use crate::running::{Running, zone};

/// `./test` builds the client.
#[track_caller]
fn run(server: &Running, protocol: &str, address: SocketAddr, count: u32) -> Output {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/quic-go-client");
    Command::new(&program)
        .args([protocol, &address.to_string()])
        .arg(&server.chain)
        .arg(count.to_string())
        .output()
        .unwrap_or_else(|error| {
            panic!("cannot run {}: {error}; ./test builds it", program.display())
        })
}

/// The answers must be right, and the output must end with `expected`.
#[track_caller]
fn check(server: &Running, protocol: &str, address: SocketAddr, count: u32, expected: &str) {
    let output = run(server, protocol, address, count);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.trim(), format!("{} answers, {expected}", count + 1), "{output:?}");
}

#[test]
fn a_foreign_client_is_answered() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        for early_data in [false, true] {
            let server = Running::start_on(address, |config| {
                config.early_data = early_data;
                config.program.busy = Duration::from_micros(1);
            });
            let expected = format!("resumed true, early data {early_data}");
            // More requests at once than the server allows streams.
            check(&server, "doq", server.doq_address, 2_000, &expected);
            check(&server, "get", server.doh3_address, 500, &expected);
            check(&server, "post", server.doh3_address, 500, &expected);
            let busy_steps = server.busy_steps;
            let counters = server.stop();
            for (transport, asked) in [(Transport::Doq, 2_001), (Transport::Doh3, 1_002)] {
                let messages = counters.messages(transport);
                assert_eq!((messages.received, messages.answered), (asked, asked));
                assert_eq!(messages.busy_steps, asked * busy_steps, "{transport}");
            }
            let connections = counters.connections;
            assert_eq!((connections.accepted, connections.full_handshakes), (6, 3));
            assert_eq!((connections.resumed_handshakes, connections.failed_handshakes), (3, 0));
        }
    }
}

/// A client that asks for another protocol, or for none, is refused (RFC 9001, section 8.1).
#[test]
fn other_protocols_are_refused() {
    let server = Running::start(|_| {});
    for (protocol, address) in [
        ("alpn=h3", server.doq_address),
        ("alpn=", server.doq_address),
        ("alpn=doq", server.doh3_address),
        ("alpn=h2", server.doh3_address),
        ("alpn=", server.doh3_address),
    ] {
        let output = run(&server, protocol, address, 1);
        let said = String::from_utf8_lossy(&output.stderr);
        // The alert no_application_protocol (RFC 9001, section 4.8).
        let is_refused = said.contains("CRYPTO_ERROR 0x178 (remote)");
        assert!(!output.status.success() && is_refused, "{protocol} {address}: {said}");
    }
    check(&server, "doq", server.doq_address, 1, "resumed true, early data false");
    let connections = server.stop().connections;
    assert_eq!((connections.full_handshakes, connections.failed_handshakes), (1, 5));
}

#[test]
fn addresses_are_bound() {
    let mut config = dnslab_responder::Config::new(zone());
    config.doq_listen.push("127.0.0.1:0".parse().unwrap());
    let error = Server::bind(config.clone()).err().unwrap().to_string();
    assert!(error.contains("certificate"), "{error}");
    let other = Running::start(|_| {});
    config.certificate = Some(other.certificate.clone());
    config.doh3_listen = vec!["[::1]:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
    config.threads = std::num::NonZeroUsize::new(2).unwrap();
    let server = Server::bind(config).unwrap();
    let bound = [Transport::Doq, Transport::Doh3].map(|transport| server.addresses(transport));
    assert_eq!(bound.each_ref().map(Vec::len), [1, 2]);
    let mut all = bound.concat();
    assert!(all.iter().all(|address| address.port() != 0));
    all.dedup();
    assert_eq!(all.len(), 3);
}
