//! Many clients, each of which takes as much as one may.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::time::Duration;

use dnslab_wire::Transport;
use domain::base::iana::Rtype;
use socket2::{Domain, Socket, Type};

use crate::http2;
use crate::quic::RawClient;
use crate::running::{PATIENCE, Running, connect};
use crate::{alone, check, flood, frames, query};

/// Octets that all of them may make the server hold.
const MAX_COUNT: usize = 16 << 20;

fn start() -> Running {
    crate::start(|config| config.memory_per_thread = NonZeroUsize::new(MAX_COUNT).unwrap())
}

/// At least `cut` of the clients must be cut while all are open. The process also has the memory of resting
/// connections and of the clients.
#[track_caller]
fn attack<T>(server: &Running, clients: usize, cut: usize, client: impl Fn(usize) -> T) {
    let ended = || {
        let life = server.counters.read(PATIENCE).connections;
        (life.broken + life.failed_handshakes) as usize
    };
    let (mut open, before) = (Vec::new(), ended());
    check(server, MAX_COUNT + (40 << 20), || open.extend((0..clients).map(client)));
    let after = ended();
    assert!(after - before >= cut, "{before} {after}");
    let life = server.counters.read(PATIENCE).connections;
    assert_eq!(life.queries.connections, life.accepted, "{life:?}");
}

/// The kernel keeps little for this connection, so the server must.
fn narrow(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.into()
}

/// True if the server has ended the connection, not if it only stopped writing.
fn is_over(stream: &mut impl Read) -> bool {
    let mut octets = vec![0; 1 << 20];
    loop {
        match stream.read(&mut octets) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

/// Clients ask for megabytes and read nothing. Those that hold most are cut; the first client, which rests,
/// is still served.
#[test]
fn unread_answers_of_many_clients() {
    let _alone = alone();
    let server = start();
    let queries = frames(200, "big.example.", Rtype::TXT);
    let mut resting = connect(server.address);
    // 256 KiB and an answer each: 16 MiB hold that of some fifty.
    attack(&server, 250, 150, |_| {
        let mut client = narrow(server.address);
        client.write_all(&queries).unwrap();
        client
    });
    resting.write_all(&frames(1, "www.example.", Rtype::A)).unwrap();
    resting.read_exact(&mut [0; 12]).unwrap();
    server.stop();
}

/// Messages that never end: 60 KB from each client, over TCP, over TLS, and of a TLS handshake.
#[test]
fn input_without_an_end_of_many_clients() {
    let _alone = alone();
    let server = start();
    // A message of 65,535 octets; a record with a handshake message of 65,535 octets.
    let message = [&[0xff, 0xff][..], &[0; 60_000]].concat();
    let mut records = vec![22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff];
    records.extend_from_slice(&[0; 0x4000 - 4]);
    for _ in 0..2 {
        records.extend_from_slice(&[22, 3, 1, 0x40, 0]);
        records.extend_from_slice(&[0; 0x4000]);
    }
    // 16 MiB hold the input of some 250, and that of some 350 handshakes.
    for (address, octets) in [(server.address, &message), (server.dot_address, &records)] {
        attack(&server, 600, 100, |_| {
            let mut client = connect(address);
            client.write_all(octets).unwrap();
            client
        });
    }
    attack(&server, 400, 100, |_| {
        let mut client = server.tls(server.dot_address, b"dot");
        let socket = client.sock.try_clone().unwrap();
        flood(&mut client, &socket, &message, message.len());
        client
    });
    server.stop();
}

/// Clients of DNS over HTTPS open no window, and those of DNS over QUIC let ten octets of each answer
/// through: a quarter of a megabyte of answers for each of the first, a whole one for each of the others.
#[test]
fn closed_windows_of_many_clients() {
    let _alone = alone();
    let server = start();
    let message = query("big.example.", Rtype::TXT);
    let mut octets = http2::preface(0);
    http2::streams(20).for_each(|stream| octets.extend(http2::post(stream, &message)));
    attack(&server, 250, 150, |_| {
        let mut client = server.tls(server.doh2_address, b"h2");
        client.write_all(&octets).unwrap();
        client
    });
    attack(&server, 40, 20, |_| {
        let mut client = RawClient::connect(&server, server.doq_address, b"doq", 10);
        for _ in 0..20 {
            client.write(&frames(1, "big.example.", Rtype::TXT), true);
        }
        client.wait(Duration::from_millis(20));
        client
    });
    server.stop();
}

/// Clients that read share the memory, and none is cut: a hundred queries each, at once.
#[test]
fn many_clients_that_read() {
    let _alone = alone();
    let server = start();
    let queries = frames(100, "www.example.", Rtype::A);
    let mut open: Vec<_> = (0..800).map(|_| connect(server.address)).collect();
    for _ in 0..3 {
        open.iter_mut().for_each(|client| client.write_all(&queries).unwrap());
        for client in &mut open {
            for _ in 0..100 {
                let mut length = [0; 2];
                client.read_exact(&mut length).unwrap();
                let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
                client.read_exact(&mut message).unwrap();
            }
        }
    }
    for client in &mut open {
        client.set_nonblocking(true).unwrap();
        assert!(!is_over(client));
        client.set_nonblocking(false).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    drop(open);
    let counters = server.stop();
    assert_eq!((counters.connections.broken, counters.tcp.answered), (0, 240_000));
    assert_eq!(counters.messages(Transport::Tcp).unsent, 0);
}
