//! DNS over HTTPS with HTTP/2: frames that no client would send.

use std::io::{Read, Write};

use domain::base::iana::Rtype;

use crate::running::Running;
use crate::{alone, check, flood, query, start};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let mut octets = vec![a, b, c, kind, flags];
    octets.extend_from_slice(&stream.to_be_bytes());
    octets.extend_from_slice(payload);
    octets
}

pub(crate) fn preface(window: u32) -> Vec<u8> {
    let mut octets = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let payload = [[0, 4].as_slice(), &window.to_be_bytes()].concat();
    octets.extend(frame(SETTINGS, 0, 0, &payload));
    octets
}

/// The head of a POST, without indexing (RFC 7541, section 6.2.2).
fn head() -> Vec<u8> {
    let mut block = b"\x83\x87\x04\x0a/dns-query\x01\x09localhost".to_vec();
    block.extend_from_slice(b"\x0f\x10\x17application/dns-message");
    block
}

pub(crate) fn post(stream: u32, message: &[u8]) -> Vec<u8> {
    let mut octets = frame(HEADERS, END_HEADERS, stream, &head());
    octets.extend(frame(DATA, END_STREAM, stream, message));
    octets
}

pub(crate) fn streams(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| 2 * number + 1)
}

/// Sends these octets on a new connection, and lets the server look at them.
fn send(server: &Running, window: u32, octets: &[u8]) -> impl Read + Write + use<> {
    let mut stream = server.tls(server.doh2_address, b"h2");
    let socket = stream.sock.try_clone().unwrap();
    stream.write_all(&preface(window)).unwrap();
    for part in octets.chunks(1 << 20) {
        flood(&mut stream, &socket, part, part.len());
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    stream
}

/// Heads that never end, on twelve connections: one field of a megabyte and a half, CONTINUATION frames
/// without anything in them, and many small fields.
#[test]
fn heads_without_an_end() {
    let _alone = alone();
    let server = start(|_| {});
    let mut octets = frame(HEADERS, 0, 1, &head());
    // A literal field whose value claims to have 16 MB.
    octets.extend(frame(CONTINUATION, 0, 1, b"\0\x01a\x7f\xff\xff\xff\x07"));
    (0..90).for_each(|_| octets.extend(frame(CONTINUATION, 0, 1, &[b'a'; 16_384])));
    let mut empty = frame(HEADERS, 0, 1, &head());
    (0..100_000).for_each(|_| empty.extend(frame(CONTINUATION, 0, 1, b"")));
    // Many small fields: 32 octets each as a list, one on the wire.
    let mut small = frame(HEADERS, 0, 1, &head());
    (0..90).for_each(|_| small.extend(frame(CONTINUATION, 0, 1, &[0x90; 16_384])));
    check(&server, 8 << 20, || {
        let open: Vec<_> = (0..4)
            .flat_map(|_| [&octets, &empty, &small])
            .map(|octets| send(&server, 65_535, octets))
            .collect();
        drop(open);
    });
    assert_eq!(server.stop().doh2.received, 0);
}

#[test]
fn bodies_without_an_end() {
    let _alone = alone();
    let server = start(|_| {});
    let mut octets = Vec::new();
    for stream in streams(1000) {
        octets.extend(frame(HEADERS, END_HEADERS, stream, &head()));
        (0..4).for_each(|_| octets.extend(frame(DATA, 0, stream, &[0; 15_000])));
    }
    check(&server, 24 << 20, || drop(send(&server, 65_535, &octets)));
    server.stop();
}

/// A thousand answers of 60 KB for a client that opens no window; then it does, and gets them all.
#[test]
fn windows_that_stay_closed() {
    const REQUESTS: u32 = 1000;
    let _alone = alone();
    let server = start(|_| {});
    let message = query("big.example.", Rtype::TXT);
    let octets: Vec<u8> = streams(REQUESTS).flat_map(|stream| post(stream, &message)).collect();
    let mut open = None;
    check(&server, 16 << 20, || open = Some(send(&server, 0, &octets)));
    let mut open = open.unwrap();
    let mut windows = frame(SETTINGS, 0, 0, &[0, 4, 0, 16, 0, 0]);
    windows.extend(frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()));
    open.write_all(&windows).unwrap();
    let (mut answers, mut head) = (0, [0; 9]);
    while answers < REQUESTS {
        open.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        open.read_exact(&mut payload).unwrap();
        assert_ne!(head[3], RST_STREAM, "{payload:?}");
        answers += u32::from(head[3] == DATA && head[4] & END_STREAM != 0);
    }
    assert_eq!(server.stop().doh2.answered, u64::from(REQUESTS));
}

/// With wide open windows, and a client that does not read.
#[test]
fn unread_answers() {
    let _alone = alone();
    let server = start(|_| {});
    let message = query("big.example.", Rtype::TXT);
    let octets: Vec<u8> = streams(1000).flat_map(|stream| post(stream, &message)).collect();
    let window = frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
    let octets = [window, octets].concat();
    check(&server, 24 << 20, || drop(send(&server, 1 << 20, &octets)));
    server.stop();
}

#[test]
fn streams_that_are_given_up() {
    let _alone = alone();
    let message = query("big.example.", Rtype::TXT);
    let mut octets = Vec::new();
    for stream in streams(200_000) {
        octets.extend(post(stream, &message));
        octets.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
    }
    for is_lost in [true, false] {
        let server = start(|config| match is_lost {
            true => config.program.loss = "100%".parse().unwrap(),
            false => config.program.delay = "60s".parse().unwrap(),
        });
        let grown = crate::growth(|| drop(send(&server, 65_535, &octets)));
        assert!(grown < 24 << 20, "{is_lost}: {} MiB", grown >> 20);
        assert!(server.stop().doh2.received > 0);
    }
}
