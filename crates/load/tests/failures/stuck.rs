//! Servers that accept and say nothing, stop reading, or do not even accept.

use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use dnslab_load::Job;
use dnslab_traffic::Connect;
use dnslab_wire::Transport;
use socket2::{Domain, Socket, Type};

use crate::applied::{apply, both, closed_and_open, exact_quota, job, last_end, open};
use crate::process::{alone, status_kib};
use crate::relay::{Fault, relay};
use crate::responder::{Responder, job_with_tls};
use crate::server::tcp_server;

/// A listening socket whose queue of connections is full, and which nobody accepts from.
fn full_listener() -> (Socket, Vec<TcpStream>, SocketAddr) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(1).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let patience = Duration::from_millis(100);
    let queued: Vec<TcpStream> =
        (0..16).map_while(|_| TcpStream::connect_timeout(&address, patience).ok()).collect();
    assert!(queued.len() < 16, "the queue does not fill");
    (listener, queued, address)
}

#[test]
fn a_server_that_does_not_accept() {
    let (_listener, _queued, target) = full_listener();
    for transport in [Transport::Tcp, Transport::Dot, Transport::Doh2] {
        let job = job_with_tls(target, transport);
        for job in closed_and_open(job.with(|load| load.timeout = Duration::from_millis(150))) {
            let result = apply(&job);
            let counters = both(&result);
            assert_eq!(counters.outcomes.not_sent, counters.outcomes.due, "{transport}");
            assert!(counters.connections.failed >= 3, "{transport}: {:?}", counters.connections);
            assert_eq!(last_end(&result), "cannot connect: timed out", "{transport}");
        }
    }
}

#[test]
fn a_server_that_accepts_and_says_nothing() {
    let server = Responder::start(|_| {});
    for transport in [Transport::Tcp, Transport::Dot, Transport::Doh2] {
        let target = relay(server.address(transport), Fault::Silence);
        let job = job_with_tls(target, transport);
        for job in closed_and_open(job.with(|load| load.timeout = Duration::from_millis(150))) {
            let result = apply(&job);
            let counters = both(&result);
            let (outcomes, connections) = (counters.outcomes, counters.connections);
            if transport == Transport::Tcp {
                assert!(outcomes.timed_out > 0, "{outcomes:?}");
                assert_eq!(outcomes.timed_out, outcomes.due, "{outcomes:?}");
                assert_eq!(connections.opened, 3, "{connections:?}");
            } else {
                // The handshake does not end.
                assert_eq!(outcomes.not_sent, outcomes.due, "{transport}: {outcomes:?}");
                assert!(connections.failed >= 3, "{transport}: {connections:?}");
                assert_eq!(last_end(&result), "cannot connect: timed out", "{transport}");
            }
        }
    }
}

#[test]
fn a_server_that_takes_early_data_and_says_nothing() {
    // More clients than may be connecting at the same time, each with a ticket from its first connection.
    // What follows goes unanswered. A handshake that early data has begun must end too, or those clients
    // would keep all others away.
    let server = Responder::start(|config| config.early_data = true);
    let target = first_connections_only(server.address(Transport::Dot), 400);
    let job = job_with_tls(target, Transport::Dot).with(|load| {
        load.clients = 400;
        open(load, 400.0);
        load.duration = Duration::from_secs(3);
        load.workers = Some(1);
        load.timeout = Duration::from_millis(700);
        exact_quota(load, 1);
        load.connect = Connect::OnDemand;
    });
    let tls = job.tls.clone().map(|tls| tls.with_early_data(true));
    let result = apply(&Job { tls, ..job });
    let counters = both(&result);
    assert!(counters.outcomes.answered > 0, "{counters:?}");
    assert!(counters.outcomes.connection_lost > 0, "no early data was sent: {counters:?}");
    // From the 401st on none opens, and each is given up after a time-out.
    let connections = counters.connections;
    assert!(connections.failed > 300, "{connections:?}");
    assert!(connections.attempted > 900, "{connections:?}");
    assert_eq!(last_end(&result), "cannot connect: timed out");
}

/// Passes the first `count` connections on to a server, and holds all others without a word.
fn first_connections_only(server: SocketAddr, count: usize) -> SocketAddr {
    let whole = relay(server, Fault::EndAfter(usize::MAX, crate::relay::End::Fin));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for (number, client) in listener.incoming().enumerate() {
            let mut client = client.unwrap();
            if number >= count {
                kept.push(client);
                continue;
            }
            let mut server = TcpStream::connect(whole).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || {
                std::io::copy(&mut from, &mut to).ok();
                to.shutdown(std::net::Shutdown::Write).ok();
            });
            thread::spawn(move || std::io::copy(&mut server, &mut client).ok());
        }
    });
    address
}

#[test]
fn a_server_that_stops_reading_leaves_queries_unsent_and_memory_bounded() {
    let name = "stuck::a_server_that_stops_reading_leaves_queries_unsent_and_memory_bounded";
    alone(&[], name, || {
        let target = tcp_server(|stream| {
            thread::sleep(Duration::from_secs(30));
            drop(stream);
        });
        let before = status_kib("VmRSS");
        let result = apply(&job(target, Transport::Tcp).with(|load| {
            load.duration = Duration::from_secs(2);
            open(load, 1e6);
        }));
        let grown = status_kib("VmHWM").saturating_sub(before);
        let outcomes = both(&result).outcomes;
        assert_eq!(outcomes.answered, 0);
        assert!(outcomes.not_sent > 0 && outcomes.timed_out > 0, "{outcomes:?}");
        println!("found: {outcomes:?}, {grown} KiB");
        // A query waits for 150 ms at most, in 24 octets; a busy machine lets more of them wait.
        assert!(grown < 96 * 1024, "{grown} KiB for what waits");
    });
}

#[test]
fn a_server_that_stops_reading_and_goes_on() {
    let server = Responder::start(|_| {});
    for transport in [Transport::Tcp, Transport::Dot, Transport::Doh2] {
        let pause = Duration::from_millis(600);
        let target = relay(server.address(transport), Fault::StopReading(20_000, pause));
        let result = apply(&job_with_tls(target, transport).with(|load| {
            open(load, 8_000.0);
            load.duration = Duration::from_secs(2);
            load.timeout = Duration::from_millis(300);
        }));
        let counters = both(&result);
        let outcomes = counters.outcomes;
        assert!(outcomes.answered > 0, "{transport}: {outcomes:?}");
        assert!(outcomes.timed_out + outcomes.not_sent > 0, "{transport}: {outcomes:?}");
        // The connections last, and what had waited in them was answered too late. Over HTTP/2 the streams of
        // such queries are reset in the meantime.
        if transport == Transport::Doh2 {
            // The server may take many of them for an attack (CVE-2023-44487).
            let announced = last_end(&result) == "the server announced the end of the connection";
            assert_eq!(announced, counters.connections.lost > 0, "{}", last_end(&result));
        } else {
            assert_eq!(counters.connections.lost, 0, "{transport}: {}", last_end(&result));
            assert!(counters.answers.late > 0, "{transport}: {:?}", counters.answers);
        }
        let last = result.measured.intervals.iter().rev().take(8);
        assert!(last.map(|interval| interval.answered).sum::<u64>() > 0, "{transport}");
    }
}
