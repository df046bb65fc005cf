//! Servers that go away, are not there, or do not speak what they are asked to.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use dnslab_load::{LoadSpec, TlsSettings, Verification};
use dnslab_wire::Transport;

use crate::load::{Identity, go, spec};
use crate::responder::Responder;

/// A server that is stopped closes its connections with a word; then nobody is there.
#[test]
fn a_server_that_is_stopped() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let server = Responder::start(|_| {});
        let stop = server.stop_handle();
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(150));
            stop.stop();
        });
        let spec = spec(server.addresses(transport)[0], transport, server.identity.settings());
        let result = go(&LoadSpec { timeout: Duration::from_millis(100), ..spec });
        stopper.join().unwrap();
        let counters = &result.measured.counters;
        assert!(counters.outcomes.answered > 0, "{counters:?}");
        assert_eq!(counters.connections.lost, 3, "{counters:?}");
        assert!(counters.connections.failed > 0, "{counters:?}");
        assert!(result.last_connection_end.is_some());
    }
}

/// Nobody is there, somebody who says nothing, somebody who talks nonsense.
#[test]
fn servers_that_are_none() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let garbage = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (speaker, mut buffer) = (garbage.try_clone().unwrap(), vec![0; 65_535]);
    thread::spawn(move || {
        while let Ok((length, peer)) = speaker.recv_from(&mut buffer) {
            buffer[..length].reverse();
            speaker.send_to(&buffer[..length], peer).ok();
        }
    });
    let identity = Identity::new();
    for target in [closed, silent.local_addr().unwrap(), garbage.local_addr().unwrap()] {
        for transport in [Transport::Doq, Transport::Doh3] {
            let spec = spec(target, transport, identity.settings());
            let result = go(&LoadSpec { timeout: Duration::from_millis(100), ..spec });
            let counters = &result.measured.counters;
            assert_eq!(counters.outcomes.answered, 0, "{counters:?}");
            assert!(counters.connections.failed >= 3, "{counters:?}");
            assert_eq!(counters.connections.opened, 0, "{counters:?}");
        }
    }
}

/// What is wrong with a handshake is said.
#[track_caller]
fn check_refused(target: SocketAddr, transport: Transport, tls: TlsSettings, expected: &str) {
    let result = go(&spec(target, transport, tls));
    assert_eq!(result.measured.counters.connections.opened, 0);
    assert!(result.measured.counters.connections.failed >= 3);
    let end = result.last_connection_end.unwrap();
    assert!(end.contains(expected), "{end}");
}

#[test]
fn handshakes_that_fail() {
    let server = Responder::start(|_| {});
    let (doq, doh3) = (server.addresses(Transport::Doq)[0], server.addresses(Transport::Doh3)[0]);
    let settings = || server.identity.settings();
    // No protocol in common: alert 120 (RFC 7301, section 3.2).
    check_refused(doh3, Transport::Doq, settings(), "error 120");
    check_refused(doq, Transport::Doh3, settings(), "error 120");
    let other = Verification::Authority(server.identity.chain.clone());
    let other = TlsSettings::new("elsewhere.example", &other).unwrap();
    check_refused(doq, Transport::Doq, other, "certificate not valid for name");
    check_refused(doh3, Transport::Doh3, Identity::new().settings(), "certificate");
}
