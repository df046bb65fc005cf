//! Clients that ask, open no window for the answers, and go on asking.

use super::*;

const STREAMS: u32 = 64;

/// The longest answers of these tests, octets.
const LONG: usize = 60_000;

fn server(window: u32) -> Server {
    let mut server = Server::with_streams("/dns-query", STREAMS);
    server.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    server.receive(&frame(SETTINGS, 0, 0, &[&[0, 4], &window.to_be_bytes()[..]].concat()));
    // The connection's window never holds an answer back.
    server.receive(&frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()));
    server
}

const WINDOW_UPDATE: u8 = 8;

/// A GET on a stream: `:method`, `:scheme`, `:path` and `:authority` (RFC 7541, section 6.2.2), with so many
/// letters of base64url as the message: 100 at most.
fn get(stream: u32, letters: usize) -> Vec<u8> {
    let path = format!("/dns-query?dns={}", "A".repeat(letters));
    let mut block = vec![0x82, 0x87, 0x04, path.len() as u8];
    block.extend_from_slice(path.as_bytes());
    block.extend_from_slice(b"\x01\x09localhost");
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &u32::from(Reason::CANCEL).to_be_bytes())
}

/// The server reads this, and answers what it hands out with `length` octets; gives how many it answered.
fn say(server: &mut Server, octets: &[u8], length: usize) -> usize {
    server.receive(octets);
    server.poll(&mut Vec::new()).unwrap();
    let mut answered = 0;
    while let Some(request) = server.next_request() {
        answered += usize::from(server.answer(request.id, &vec![0; length]));
    }
    server.poll(&mut Vec::new()).unwrap();
    answered
}

fn streams(from: u32, count: u32) -> impl Iterator<Item = u32> {
    (from..from + count).map(|number| 2 * number + 1)
}

/// "Rapid reset" (CVE-2023-44487) behind a closed window: requests that wait for their turn are
/// forgotten when their client gives them up, whatever their length.
#[test]
fn requests_that_are_given_up_while_answers_are_kept_back() {
    for letters in [0, 16, 100] {
        let mut server = server(0);
        let first: Vec<u8> = streams(0, 10).flat_map(|stream| get(stream, letters)).collect();
        // 256 KiB are kept back, and the answer that crossed the line.
        assert_eq!(say(&mut server, &first, LONG), 5);
        let kept = server.memory();
        let mut most = 0;
        for round in 1..2000 {
            let octets: Vec<u8> = streams(round * 10, 10)
                .flat_map(|stream| [get(stream, letters), reset(stream)].concat())
                .collect();
            assert_eq!(say(&mut server, &octets, LONG), 0);
            most = most.max(server.memory() - kept);
        }
        assert!(most < 256 * 1024, "{letters}: {} KiB", most >> 10);
        // What was not given up is answered when the windows are opened.
        let open = frame(SETTINGS, 0, 0, &[0, 4, 0, 16, 0, 0]);
        assert_eq!(say(&mut server, &open, LONG), 5);
        assert_eq!(say(&mut server, &[], LONG), 0);
        assert!(!server.is_waiting() && server.memory() < 4096, "{}", server.memory());
    }
}

#[test]
fn answers_that_are_given_up_while_they_are_kept_back() {
    let mut server = server(0);
    for round in 0..200 {
        let asked: Vec<u8> = streams(round * 10, 10).flat_map(|stream| get(stream, 16)).collect();
        assert_eq!(say(&mut server, &asked, LONG), 5, "{round}");
        let given_up: Vec<u8> = streams(round * 10, 10).flat_map(reset).collect();
        assert_eq!(say(&mut server, &given_up, LONG), 0, "{round}");
        assert!(server.memory() < 256 * 1024, "{round}: {}", server.memory());
    }
}

/// A window that leaves a few octets of each answer behind: the whole answer stays in memory.
#[test]
fn windows_that_open_almost() {
    let mut server = server(LONG as u32 - 10);
    let asked: Vec<u8> = streams(0, STREAMS).flat_map(|stream| get(stream, 16)).collect();
    assert_eq!(say(&mut server, &asked, LONG), 5);
    assert_eq!(say(&mut server, &[], LONG), 0);
    let open = frame(SETTINGS, 0, 0, &[0, 4, 0, 16, 0, 0]);
    assert_eq!(say(&mut server, &open, LONG), STREAMS as usize - 5);
    assert!(!server.is_waiting() && server.memory() < 4096, "{}", server.memory());
}
