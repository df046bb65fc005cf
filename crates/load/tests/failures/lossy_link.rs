//! A relay between clients and a server over datagrams that loses, doubles, delays and corrupts them.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use dnslab_wire::Transport;
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::applied::{apply, both, closed_and_open, last_end};
use crate::responder::{Responder, job_with_tls};

/// What happens to a datagram of the server; those of the clients arrive.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It is lost.
    Lost,
    /// It comes twice.
    Doubled,
    /// Random octets come before it.
    AfterGarbage,
    /// One of its bits is another.
    Spoilt,
    /// It comes after the next one.
    Late,
}

/// Starts a relay, at the address returned, in which every `each`-th datagram of the server meets this fate.
fn relay(server: SocketAddr, fate: Fate, each: u64) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = front.local_addr().unwrap();
    thread::spawn(move || {
        let mut back: HashMap<SocketAddr, UdpSocket> = HashMap::new();
        let mut buffer = [0; 65_536];
        loop {
            let (length, client) = front.recv_from(&mut buffer).unwrap();
            let to = back.entry(client).or_insert_with(|| {
                let to = UdpSocket::bind("127.0.0.1:0").unwrap();
                to.connect(server).unwrap();
                let (from, front) = (to.try_clone().unwrap(), front.try_clone().unwrap());
                thread::spawn(move || pass_answers(&from, &front, client, fate, each));
                to
            });
            to.send(&buffer[..length]).ok();
        }
    });
    address
}

/// Passes the server's datagrams on to one client.
fn pass_answers(from: &UdpSocket, front: &UdpSocket, client: SocketAddr, fate: Fate, each: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(client.port()));
    let mut buffer = [0; 65_536];
    let mut held: Option<Vec<u8>> = None;
    let send = |octets: &[u8]| drop(front.send_to(octets, client));
    for number in 1.. {
        let Ok(length) = from.recv(&mut buffer) else { return };
        let octets = &mut buffer[..length];
        if number % each != 0 {
            send(octets);
            held.take().iter().for_each(|late| send(late));
            continue;
        }
        match fate {
            Fate::Lost => {}
            Fate::Doubled => {
                send(octets);
                send(octets);
            }
            Fate::AfterGarbage => {
                let garbage: Vec<u8> = octets.iter().map(|_| random.random()).collect();
                send(&garbage);
                send(octets);
            }
            Fate::Spoilt => {
                let octet = random.random_range(0..length);
                octets[octet] ^= 1 << random.random_range(0..8);
                send(octets);
            }
            Fate::Late => held = Some(octets.to_vec()),
        }
    }
}

const OVER_UDP: [Transport; 3] = [Transport::Udp, Transport::Doq, Transport::Doh3];

#[test]
fn datagrams_that_are_lost_doubled_late_and_spoilt() {
    let server = Responder::start(|_| {});
    for transport in OVER_UDP {
        for fate in [Fate::Lost, Fate::Doubled, Fate::AfterGarbage, Fate::Spoilt, Fate::Late] {
            let target = relay(server.address(transport), fate, 5);
            for job in closed_and_open(job_with_tls(target, transport)) {
                let result = apply(&job);
                let counters = both(&result);
                let context = format!("{transport} {fate:?}: {counters:?} {}", last_end(&result));
                assert!(counters.outcomes.answered > 0, "{context}");
                if transport != Transport::Udp {
                    // QUIC repairs all of it (RFC 9000, section 13), unless time runs out.
                    assert_eq!(counters.connections.lost, 0, "{context}");
                    assert_eq!(counters.answers.duplicate, 0, "{context}");
                    continue;
                }
                match fate {
                    Fate::Lost => assert!(counters.outcomes.timed_out > 0, "{context}"),
                    Fate::Doubled => assert!(counters.answers.duplicate > 0, "{context}"),
                    Fate::AfterGarbage => assert!(counters.answers.unexpected > 0, "{context}"),
                    Fate::Spoilt | Fate::Late => {}
                }
            }
        }
    }
}

#[test]
fn a_quic_server_that_says_nothing() {
    let server = Responder::start(|_| {});
    for transport in [Transport::Doq, Transport::Doh3] {
        let target = relay(server.address(transport), Fate::Lost, 1);
        let job = job_with_tls(target, transport);
        for job in closed_and_open(job.with(|load| load.timeout = Duration::from_millis(200))) {
            let result = apply(&job);
            let counters = both(&result);
            assert_eq!(counters.outcomes.not_sent, counters.outcomes.due, "{transport}");
            assert!(counters.connections.failed >= 3, "{transport}: {:?}", counters.connections);
            assert_eq!(last_end(&result), "cannot connect: timed out", "{transport}");
        }
    }
}
