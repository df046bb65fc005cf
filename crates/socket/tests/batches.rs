//! What is sent in batches is received in batches, over the loopback device.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dnslab_socket::{
    MAX_GROUP, Peer, ReceiveBatch, SendBatch, enable_gro, enable_pktinfo, enable_timestamps,
    receive_drops, send_batch, send_segments,
};
use dnslab_wire::{MAX_BATCH, MessageBatch};

fn pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind("[::1]:0").unwrap(), UdpSocket::bind("[::1]:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    (a, b)
}

fn datagrams(batch: &ReceiveBatch) -> Vec<Vec<u8>> {
    batch.groups().flat_map(|group| group.datagrams()).map(<[u8]>::to_vec).collect()
}

/// A batch of messages, each filled with its number.
fn messages(lengths: &[usize]) -> MessageBatch {
    let mut batch = MessageBatch::default();
    for (number, length) in lengths.iter().enumerate() {
        batch.push_with(|octets| octets.resize(octets.len() + length, number as u8));
    }
    batch
}

#[track_caller]
fn assert_nothing_left(batch: &mut ReceiveBatch, socket: &UdpSocket) {
    let error = batch.receive(socket.as_fd()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(batch.groups().count(), 0);
}

#[track_caller]
fn check_order(lengths: &[usize], max_segments: usize, gro: bool) {
    let (a, b) = pair();
    assert!(!gro || enable_gro(b.as_fd()).is_ok());
    let sent = messages(lengths);
    let mut taken = 0;
    while taken < sent.len() {
        taken += send_batch(a.as_fd(), &sent, taken, max_segments).unwrap();
    }
    let mut received = ReceiveBatch::connected(32, MAX_GROUP);
    let mut seen = Vec::new();
    while seen.len() < lengths.len() {
        let more = received.receive(b.as_fd()).unwrap();
        assert_eq!(more, received.groups().count() == 32);
        seen.extend(datagrams(&received));
    }
    assert_eq!(seen, sent.messages().map(<[u8]>::to_vec).collect::<Vec<_>>());
    assert_nothing_left(&mut received, &b);
}

#[test]
fn what_is_sent_is_received_in_order() {
    let one_length = [40; MAX_BATCH];
    let mixed: Vec<usize> = (0..MAX_BATCH).map(|number| 20 + number / 5 % 3).collect();
    let all_different: Vec<usize> = (0..MAX_BATCH).map(|number| 2 + number).collect();
    for lengths in [&one_length[..], &mixed, &all_different, &[1_400; 40], &[17]] {
        for max_segments in [1, 64, MAX_BATCH] {
            check_order(lengths, max_segments, false);
            check_order(lengths, max_segments, true);
        }
    }
}

#[track_caller]
fn check_segments(server: &str, length: usize, segment: usize) {
    let server = UdpSocket::bind(server).unwrap();
    let client = UdpSocket::bind((server.local_addr().unwrap().ip(), 0)).unwrap();
    enable_gro(server.as_fd()).unwrap();
    let address = server.local_addr().unwrap();
    enable_pktinfo(server.as_fd(), address.is_ipv6()).unwrap();
    let octets: Vec<u8> = (0..length).map(|number| (number / segment) as u8).collect();
    let peer = Peer::new(address, Some(address.ip()));
    send_segments(client.as_fd(), &octets, segment, Some(&peer)).unwrap();
    let (mut received, mut seen) = (ReceiveBatch::unconnected(16, MAX_GROUP), Vec::new());
    while seen.len() < length.div_ceil(segment) {
        received.receive(server.as_fd()).unwrap();
        for group in received.groups() {
            assert_eq!(group.peer.address(), client.local_addr().unwrap());
            assert_eq!(group.peer.local(), Some(address.ip()));
        }
        seen.extend(datagrams(&received));
    }
    assert_eq!(seen, octets.chunks(segment).map(<[u8]>::to_vec).collect::<Vec<_>>());
    assert_nothing_left(&mut received, &server);
}

#[test]
fn groups_arrive_whole() {
    for server in ["127.0.0.1:0", "[::1]:0"] {
        check_segments(server, 30, 30);
        check_segments(server, 1200 * 20, 1200);
        check_segments(server, 1452 * 40 + 17, 1452);
    }
}

#[track_caller]
fn check_reply(bound: &str, asked: &str) {
    let server = UdpSocket::bind(bound).unwrap();
    enable_pktinfo(server.as_fd(), server.local_addr().unwrap().is_ipv6()).unwrap();
    let asked: IpAddr = asked.parse().unwrap();
    let asked = SocketAddr::new(asked, server.local_addr().unwrap().port());
    let clients: Vec<UdpSocket> = (0_u8..3)
        .map(|number| {
            let client = UdpSocket::bind(SocketAddr::new(asked.ip(), 0)).unwrap();
            client.connect(asked).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            client.send(&[number]).unwrap();
            client
        })
        .collect();
    let (mut queries, mut answers) = (ReceiveBatch::unconnected(8, 512), SendBatch::default());
    assert!(!queries.receive(server.as_fd()).unwrap());
    for group in queries.groups() {
        assert_eq!(group.peer.local(), Some(asked.ip()));
        answers.push_to(group.peer, &[group.octets, b"!"].concat());
    }
    assert_eq!(answers.send(server.as_fd(), 0).unwrap(), 3);
    for (number, client) in (0..).zip(&clients) {
        let mut answer = [0; 8];
        let length = client.recv(&mut answer).unwrap();
        assert_eq!(answer[..length], [number, b'!']);
    }
}

#[test]
fn answers_leave_from_where_queries_came_to() {
    check_reply("0.0.0.0:0", "127.0.0.2");
    check_reply("127.0.0.1:0", "127.0.0.1");
    check_reply("[::]:0", "::1");
}

#[test]
fn a_message_that_is_refused_stops_the_batch_before_it() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let good = Peer::new(server.local_addr().unwrap(), None);
    // Port 0 is nobody's.
    let bad = Peer::new(([127, 0, 0, 1], 0).into(), None);
    let mut batch = SendBatch::default();
    for (number, peer) in [good, good, bad, good].into_iter().enumerate() {
        batch.push_to(peer, &[number as u8]);
    }
    assert_eq!(batch.send(server.as_fd(), 0).unwrap(), 2);
    assert_eq!(batch.send(server.as_fd(), 2).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(batch.send(server.as_fd(), 3).unwrap(), 1);
    let mut received = ReceiveBatch::unconnected(8, 512);
    received.receive(server.as_fd()).unwrap();
    assert_eq!(datagrams(&received), [[0], [1], [3]]);
}

#[test]
fn an_empty_datagram_is_one() {
    let (a, b) = pair();
    a.send(&[]).unwrap();
    let mut received = ReceiveBatch::connected(32, MAX_GROUP);
    received.receive(b.as_fd()).unwrap();
    assert_eq!(datagrams(&received), [&[]]);
}

#[test]
fn long_datagrams_are_cut_and_the_room_is_there_again() {
    let (a, b) = pair();
    let mut received = ReceiveBatch::connected(2, 100);
    for _ in 0..3 {
        let sent = messages(&[300, 7]);
        assert_eq!(send_batch(a.as_fd(), &sent, 0, 1).unwrap(), 2);
        assert!(received.receive(b.as_fd()).unwrap());
        assert_eq!(datagrams(&received), [vec![0; 100], vec![1; 7]]);
    }
}

#[test]
fn the_kernel_says_when_datagrams_came() {
    let (a, b) = pair();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    enable_gro(b.as_fd()).unwrap();
    enable_timestamps(b.as_fd()).unwrap();
    let before = now();
    assert_eq!(send_batch(a.as_fd(), &messages(&[30; 3]), 0, 64).unwrap(), 3);
    let mut received = ReceiveBatch::connected(32, MAX_GROUP);
    received.receive(b.as_fd()).unwrap();
    assert_eq!(datagrams(&received).len(), 3);
    for group in received.groups() {
        assert!(group.timestamp.is_some_and(|stamp| (before..=now()).contains(&stamp)));
    }
}

#[test]
fn drops_are_counted() {
    let (a, b) = pair();
    let full = 4_000;
    for _ in 0..full {
        a.send(&[0; 1_000]).unwrap();
    }
    let mut count = 0;
    let mut received = ReceiveBatch::connected(32, MAX_GROUP);
    while received.receive(b.as_fd()).is_ok() {
        count += received.groups().count();
    }
    assert_eq!(receive_drops(b.as_fd()), (full - count) as u64);
    assert!(count < full, "a socket's buffer does not hold four megaoctets by default");
}
