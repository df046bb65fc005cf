//! Whatever happens to datagrams on their way, and whatever datagrams come besides, a client over QUIC takes
//! nothing for an answer but what the server gave, tells of no request twice, and does not panic.
//!
//! The octets are two for each datagram on its way to the client: what happens to it, and where. What is
//! behind so many is sent to the client as datagrams of its own.
#![no_main]

#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../crates/transport/tests/quic/simulation.rs"]
mod simulation;

use std::collections::HashSet;
use std::time::Duration;

use dnslab_transport::quic::{QuicServer, Reaction};
use libfuzzer_sys::fuzz_target;
use simulation::{CLIENT, Outcome, Protocol, client_tls, connect, query, server};

/// Requests of one conversation.
const REQUESTS: u16 = 4;

/// Datagrams to which something happens.
const MEDDLED: usize = 24;

/// What the link makes of a datagram, by two octets.
fn meddled(mut datagram: Vec<u8>, what: u8, place: u8) -> Vec<Vec<u8>> {
    let at = usize::from(place) * datagram.len() / 256;
    match what % 8 {
        0 => Vec::new(),
        1 => vec![datagram.clone(), datagram],
        2 => {
            datagram[at] ^= 1 << (what >> 3 & 7);
            vec![datagram]
        }
        3 => {
            datagram.truncate(at);
            vec![datagram]
        }
        // What comes behind the packet is a packet, too (RFC 9000, section 12.2).
        4 => vec![[datagram.as_slice(), &datagram[at..]].concat()],
        // A packet of the same connection, of another form.
        5 => {
            datagram[0] = place;
            vec![datagram]
        }
        _ => vec![datagram],
    }
}

fuzz_target!(|octets: &[u8]| {
    let (meddling, injected) = octets.split_at(octets.len().min(2 * MEDDLED));
    let mut meddling = meddling.chunks_exact(2);
    let mut injected = injected.chunks(61);
    let mut now = std::time::Instant::now();
    let mut client = connect(Protocol::Doq, client_tls(Protocol::Doq), 1, now);
    let mut server = QuicServer::new(&server(Protocol::Doq, 1));
    let peer = CLIENT.parse().expect("the text is an address");
    let (mut sent, mut settled) = (0, HashSet::new());
    // Ten simulated seconds at most: what is lost is sent again after some of them.
    for _ in 0..200 {
        now += Duration::from_millis(50);
        while sent < REQUESTS && client.send(sent, &query(sent)) {
            sent += 1;
        }
        let mut out = Vec::new();
        while let Some(segment) = client.transmit(now, &mut out) {
            server.receive(now, peer, None, &out, segment);
            out.clear();
        }
        server.poll(now, &mut |_, query, out| {
            out.extend_from_slice(query);
            out.extend_from_slice(b"and its answer");
            Reaction::Answered
        });
        while let Some(outgoing) = server.transmit(now, &mut out) {
            for datagram in out.chunks(outgoing.segment) {
                let datagrams = match meddling.next() {
                    Some([what, place]) => meddled(datagram.to_vec(), *what, *place),
                    _ => vec![datagram.to_vec()],
                };
                for datagram in &datagrams {
                    client.receive(now, datagram, datagram.len());
                }
            }
            out.clear();
        }
        if let Some(datagram) = injected.next() {
            client.receive(now, datagram, 17);
        }
        server.handle_timeouts(now);
        if client.next_timeout().is_some_and(|due| due <= now) {
            client.handle_timeout(now);
        }
        let polled = client.poll(now, &mut |exchange| {
            let outcome = Outcome::from(exchange);
            assert!(settled.insert(outcome.request()), "{outcome:?} is told twice");
            if let Outcome::Answer(request, message) = outcome {
                let right = [query(request), b"and its answer".to_vec()].concat();
                assert_eq!(message, right, "not what the server gave");
            }
        });
        if polled.is_err() || settled.len() == usize::from(REQUESTS) {
            break;
        }
    }
});
