//! Servers that go away, are not there, or do not speak what they are asked to.

use dnslab_settings::Mode;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use dnslab_load::{TlsSettings, Verification};
use dnslab_responder::CertificateFiles;
use dnslab_test_support::free_address;
use dnslab_wire::Transport;

use crate::encrypted::{Identity, go, go_well, job};
use crate::responder::Responder;

/// A server that is stopped says so when it closes its connections. Then nobody is there.
#[test]
fn a_server_that_is_stopped() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let server = Responder::start(|_| {});
        let stop = server.stop_handle();
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(150));
            stop.stop();
        });
        let job = job(server.addresses(transport)[0], transport, server.identity.settings());
        let result = go(&job.with(|load| load.timeout = Duration::from_millis(100)));
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
    let closed = free_address([127, 0, 0, 1].into());
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
            let job = job(target, transport, identity.settings());
            let result = go(&job.with(|load| load.timeout = Duration::from_millis(100)));
            let counters = &result.measured.counters;
            assert_eq!(counters.outcomes.answered, 0, "{counters:?}");
            assert!(counters.connections.failed >= 3, "{counters:?}");
            assert_eq!(counters.connections.opened, 0, "{counters:?}");
        }
    }
}

/// The result says what is wrong with a handshake.
#[track_caller]
fn check_refused(target: SocketAddr, transport: Transport, tls: TlsSettings, expected: &str) {
    let result = go(&job(target, transport, tls));
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
    check_refused(doh3, Transport::Doq, settings(), "NoApplicationProtocol");
    check_refused(doq, Transport::Doh3, settings(), "NoApplicationProtocol");
    let other = Verification::Authority(server.identity.chain.clone());
    let other = TlsSettings::new("elsewhere.example", &other).unwrap();
    check_refused(doq, Transport::Doq, other, "certificate not valid for name");
    check_refused(doh3, Transport::Doh3, Identity::new().settings(), "certificate");
}

/// The server lets connections be idle only briefly. They end in good order, and nothing is lost.
#[test]
fn a_connection_that_was_idle_is_closed_and_not_lost() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let server = Responder::start(|config| config.idle_timeout = Duration::from_millis(300));
        let job = job(server.addresses(transport)[0], transport, server.identity.settings());
        let result = go_well(&job.with(|load| {
            // Each of three clients asks once in a second: a busy machine is not that late.
            load.mode = Mode::constant(3.0);
            load.duration = Duration::from_secs(3);
        }));
        let connections = &result.measured.counters.connections;
        assert!(connections.closed >= 3, "{connections:?}");
        assert_eq!((connections.lost, connections.failed), (0, 0), "{connections:?}");
        assert_eq!(result.last_connection_end, None);
    }
}

/// The client tells the server of its short idle time, but a query may take longer.
#[test]
fn a_query_may_take_longer_than_a_connection_may_be_idle() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let server = Responder::start(|config| config.program.delay = "300ms".parse().unwrap());
        let job = job(server.addresses(transport)[0], transport, server.identity.settings());
        let result = go_well(&job.with(|load| load.idle = Some(Duration::from_millis(50))));
        assert_eq!(result.measured.counters.connections.lost, 0);
    }
}

/// Passes datagrams between clients and whichever server is there now.
fn switch(server: SocketAddr) -> (SocketAddr, Arc<Mutex<SocketAddr>>) {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = near.local_addr().unwrap();
    let current = Arc::new(Mutex::new(server));
    let target = Arc::clone(&current);
    thread::spawn(move || {
        let mut ways: HashMap<(SocketAddr, SocketAddr), UdpSocket> = HashMap::new();
        let mut buffer = vec![0; 65_535];
        loop {
            let (length, client) = near.recv_from(&mut buffer).unwrap();
            let server = *target.lock().unwrap_or_else(PoisonError::into_inner);
            let far = ways.entry((client, server)).or_insert_with(|| {
                let far = UdpSocket::bind("127.0.0.1:0").unwrap();
                far.connect(server).unwrap();
                let (back, near) = (far.try_clone().unwrap(), near.try_clone().unwrap());
                thread::spawn(move || {
                    let mut buffer = vec![0; 65_535];
                    while let Ok(length) = back.recv(&mut buffer) {
                        near.send_to(&buffer[..length], client).ok();
                    }
                });
                far
            });
            far.send(&buffer[..length]).ok();
        }
    });
    (address, current)
}

/// A server that is killed and started anew on its address knows no connection, and what it says of them
/// cannot be believed (RFC 9000, section 10.3). Queries time out. Then their clients connect again.
#[test]
fn a_server_that_is_started_anew() {
    for transport in [Transport::Doq, Transport::Doh3] {
        let first = Responder::start(|_| {});
        let files = CertificateFiles {
            chain: first.identity.chain.clone(),
            key: first.identity.key.clone(),
        };
        let second = Responder::start(|config| config.certificate = Some(files));
        let (target, current) = switch(first.addresses(transport)[0]);
        let second_address = second.addresses(transport)[0];
        let switcher = thread::spawn(move || {
            thread::sleep(Duration::from_millis(500));
            *current.lock().unwrap_or_else(PoisonError::into_inner) = second_address;
        });
        let job = job(target, transport, first.identity.settings());
        let result = go(&job.with(|load| {
            load.timeout = Duration::from_millis(300);
            load.duration = Duration::from_secs(5);
        }));
        switcher.join().unwrap();
        let counters = &result.measured.counters;
        let (outcomes, connections) = (&counters.outcomes, &counters.connections);
        assert!(outcomes.timed_out > 0, "{counters:?}");
        assert_eq!(outcomes.answered + outcomes.timed_out, outcomes.due, "{counters:?}");
        assert_eq!((connections.opened, connections.lost), (6, 3), "{connections:?}");
        let end = result.last_connection_end.unwrap();
        assert!(end.contains("fell silent"), "{end}");
        assert!(second.stop().messages(transport).answered > 0);
    }
}
