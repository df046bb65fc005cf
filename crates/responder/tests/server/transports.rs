//! Right answers on each transport, and their counts.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::Arc;

use dnslab_transport::Method;
use dnslab_wire::{Response, push_frame};
use domain::base::iana::Rtype;
use rustls::HandshakeKind;

use crate::running::{ASKED, PATIENCE, Running, exchange, query, read_message};

#[test]
fn every_transport_on_both_address_families() {
    for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"] {
        let mut server = Running::start_on(address, |_| {});
        if server.address.ip().is_unspecified() {
            let loopback = if server.address.is_ipv6() { "::1" } else { "127.0.0.1" };
            server.address.set_ip(loopback.parse().unwrap());
            server.dot_address.set_ip(loopback.parse().unwrap());
            server.doh2_address.set_ip(loopback.parse().unwrap());
        }
        for transport in ASKED {
            let octets = server.ask(transport, &query(7, "wWw.example.", Rtype::A));
            let response = Response::parse(&octets).unwrap();
            assert_eq!((response.id, response.rcode, response.answers), (7, 0, 1));
            assert!(response.question.starts_with(b"\x03wWw\x07example\0"));
            assert!(octets.ends_with(&[192, 0, 2, 1]), "{transport} on {address}");
        }
        let counters = server.stop();
        for transport in ASKED {
            let messages = counters.messages(transport);
            assert_eq!((messages.received, messages.answered), (1, 1), "{transport}");
        }
        let connections = counters.connections;
        assert_eq!((connections.accepted, connections.full_handshakes), (3, 2));
    }
}

/// A socket bound to all addresses answers from the one that was asked (RFC 2181, section 4.1).
#[test]
fn the_answer_comes_from_the_address_that_was_asked() {
    let server = Running::start_on("0.0.0.0:0", |config| {
        config.program.delay = "1ms".parse().unwrap();
    });
    for address in ["127.0.0.1", "127.0.0.2", "127.1.2.3"] {
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let ip: std::net::IpAddr = address.parse().unwrap();
        let asked = (ip, server.address.port()).into();
        client.send_to(&query(1, "www.example.", Rtype::A), asked).unwrap();
        let (_, answered) = client.recv_from(&mut [0; 512]).unwrap();
        assert_eq!(answered, asked);
    }
}

#[test]
fn a_burst_of_datagrams_is_answered_whole() {
    let server = Running::start(|config| config.threads = NonZeroUsize::new(2).unwrap());
    let clients: Vec<_> = (0..4).map(|_| server.udp()).collect();
    for round in 0..50 {
        for client in &clients {
            for host in 0..10 {
                let name = format!("host{}.example.", round * 10 + host);
                client.send(&query(host, &name, Rtype::A)).unwrap();
            }
        }
        for client in &clients {
            let mut ids = BTreeSet::new();
            for _ in 0..10 {
                let mut buffer = [0; 512];
                let length = client.recv(&mut buffer).unwrap();
                let response = Response::parse(&buffer[..length]).unwrap();
                assert_eq!((response.rcode, response.answers), (0, 1));
                ids.insert(response.id);
            }
            assert_eq!(ids.len(), 10);
        }
    }
    assert_eq!(server.stop().udp.answered, 2000);
}

#[test]
fn pipelined_queries() {
    let server = Running::start(|_| {});
    let mut frames = Vec::new();
    for id in 0..2000 {
        push_frame(&mut frames, &query(id, &format!("host{}.example.", id % 1000), Rtype::A));
    }
    let streams: [Box<dyn ReadWrite>; 2] =
        [Box::new(server.tcp()), Box::new(server.tls(server.dot_address, b"dot"))];
    for mut stream in streams {
        for part in frames.chunks(7777) {
            stream.write_all(part).unwrap();
            stream.flush().unwrap();
        }
        for id in 0..2000 {
            let message = read_message(&mut stream);
            let response = Response::parse(&message).unwrap();
            assert_eq!((response.id, response.rcode, response.answers), (id, 0, 1));
        }
    }
    let counters = server.stop();
    assert_eq!((counters.tcp.answered, counters.dot.answered), (2000, 2000));
}

trait ReadWrite: Read + Write {}

impl<T: Read + Write> ReadWrite for T {}

#[test]
fn requests_are_answered_by_both_methods_and_as_the_program_says() {
    let server = Running::start(|config| {
        config.program.delay = "uniform:1ms..20ms".parse().unwrap();
    });
    for method in [Method::Get, Method::Post] {
        let octets = server.doh2(method, &query(7, "big.example.", Rtype::TXT)).unwrap();
        let response = Response::parse(&octets).unwrap();
        assert_eq!((response.id, response.rcode, response.answers), (7, 0, 200));
        assert_eq!(server.doh2_at("/other", method, &query(7, "www.example.", Rtype::A)), Err(404));
    }
    let counters = server.stop();
    assert_eq!((counters.doh2.received, counters.doh2.answered), (2, 2));
    assert_eq!(counters.lateness.answers, 2);
}

#[test]
fn early_data() {
    for accepted in [true, false] {
        let server = Running::start(|config| config.early_data = accepted);
        let mut config = server.tls_config(b"dot");
        config.enable_early_data = true;
        let config = Arc::new(config);
        exchange(&mut server.dot(&config), &query(1, "www.example.", Rtype::A));
        let mut stream = server.dot(&config);
        let mut frame = Vec::new();
        push_frame(&mut frame, &query(2, "www.example.", Rtype::A));
        if accepted {
            stream.conn.early_data().unwrap().write_all(&frame).unwrap();
        } else {
            assert!(stream.conn.early_data().is_none());
            stream.write_all(&frame).unwrap();
        }
        assert_eq!(Response::parse(&read_message(&mut stream)).unwrap().id, 2);
        // When this is answered, the handshake has ended at the server too.
        exchange(&mut stream, &query(3, "www.example.", Rtype::A));
        assert_eq!(stream.conn.is_early_data_accepted(), accepted);
        assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Resumed));
        let counters = server.stop();
        assert_eq!((counters.dot.answered, counters.connections.resumed_handshakes), (3, 1));
        assert_eq!(counters.connections.early_data, u64::from(accepted));
    }
}

#[test]
fn without_tickets_nothing_is_resumed() {
    let server = Running::start(|config| config.tickets = false);
    let config = Arc::new(server.tls_config(b"dot"));
    for _ in 0..2 {
        let mut stream = server.dot(&config);
        exchange(&mut stream, &query(1, "www.example.", Rtype::A));
        assert_eq!(stream.conn.handshake_kind(), Some(HandshakeKind::Full));
    }
}

/// With a random delay answers overtake each other (RFC 7766, section 6.2.1.1). A client that closed its
/// sending side still gets all of them.
#[test]
fn delayed_answers_come_out_of_order_and_all() {
    let server = Running::start(|config| {
        config.program.delay = "uniform:1ms..50ms".parse().unwrap();
    });
    let mut stream = server.tcp();
    let mut frames = Vec::new();
    for id in 0..200 {
        push_frame(&mut frames, &query(id, "www.example.", Rtype::A));
    }
    stream.write_all(&frames).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let ids: Vec<_> =
        (0..200).map(|_| Response::parse(&read_message(&mut stream)).unwrap().id).collect();
    assert!(!ids.is_sorted());
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 200);
    assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the server closes after the last answer");
    let counters = server.stop();
    assert_eq!((counters.tcp.answered, counters.lateness.answers), (200, 200));
}

#[test]
fn tls_is_verified_resumed_and_speaks_both_versions() {
    let server = Running::start(|config| config.threads = NonZeroUsize::new(2).unwrap());
    let config = Arc::new(server.tls_config(b"dot"));
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
        let mut stream = server.dot(&config);
        exchange(&mut stream, &query(1, "www.example.", Rtype::A));
        assert_eq!(stream.conn.handshake_kind(), Some(expected));
        assert_eq!(stream.conn.alpn_protocol(), Some(b"dot".as_slice()));
        stream.conn.send_close_notify();
        stream.conn.write_tls(&mut stream.sock).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "the server says good-bye");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let old = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(Arc::clone(&server.roots))
        .with_no_client_auth();
    let mut stream = server.dot(&Arc::new(old));
    exchange(&mut stream, &query(1, "www.example.", Rtype::A));
    assert_eq!(stream.conn.alpn_protocol(), None);

    let mut stream = server.tls(server.dot_address, b"h2");
    assert!(stream.write_all(&[0]).and_then(|()| stream.read(&mut [0])).is_err());
    let connections = server.stop().connections;
    assert_eq!((connections.full_handshakes, connections.resumed_handshakes), (2, 1));
    assert_eq!(connections.failed_handshakes, 1);
}
