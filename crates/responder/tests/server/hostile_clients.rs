//! Clients that misbehave, next to one that does not.

use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::time::Duration;

use dnslab_transport::Method;
use dnslab_wire::{Response, push_frame};
use domain::base::iana::Rtype;

use crate::running::{ASKED, Running, exchange, query, read_message};

fn check_served(server: &Running) {
    for transport in ASKED {
        let octets = server.ask(transport, &query(9, "www.example.", Rtype::A));
        assert_eq!(Response::parse(&octets).unwrap().answers, 1, "{transport}");
    }
}

/// True if the server closes the connection without sending anything.
fn is_closed(mut stream: impl Read) -> bool {
    !matches!(stream.read(&mut [0; 64]), Ok(1..))
}

#[test]
fn garbage_is_dropped() {
    let server = Running::start(|_| {});
    let garbage: Vec<u8> =
        (0..4096_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let client = server.udp();
    for length in [0, 1, 11, 12, 13, 40, 512, 4096] {
        client.send(&garbage[..length]).unwrap();
    }
    check_served(&server);

    let mut too_short = server.tcp();
    too_short.write_all(b"\0\x05abcde").unwrap();
    assert!(is_closed(too_short));
    let mut a_response = server.tcp();
    let mut frame = Vec::new();
    push_frame(&mut frame, b"\x12\x34\x81\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01");
    a_response.write_all(&frame).unwrap();
    assert!(is_closed(a_response));
    let mut no_tls = std::net::TcpStream::connect(server.dot_address).unwrap();
    no_tls.write_all(&garbage).unwrap();
    // An alert may come before the end.
    assert!(no_tls.read_to_end(&mut Vec::new()).map_or(true, |count| count < 64));
    let mut inside_tls = server.tls(server.dot_address, b"dot");
    inside_tls.write_all(b"\0\x05abcde").unwrap();
    assert!(is_closed(inside_tls));
    for no_query in [b"abcde".as_slice(), b"\x12\x34\x81\0\0\0\0\0\0\0\0\0"] {
        assert_eq!(server.doh2(Method::Get, no_query), Err(400));
        assert_eq!(server.doh2(Method::Post, no_query), Err(400));
    }
    let mut no_http = server.tls(server.doh2_address, b"h2");
    no_http.write_all(&garbage).unwrap();
    let mut said = Vec::new();
    // GOAWAY at most, after the settings.
    assert!(no_http.read_to_end(&mut said).map_or(true, |count| count < 200), "{said:?}");
    // Left open in the middle of a message.
    let mut unfinished = server.tcp();
    unfinished.write_all(b"\xff\xff\0").unwrap();
    check_served(&server);
    let counters = server.stop();
    assert_eq!(counters.connections.failed_handshakes, 1);
    for transport in ASKED {
        let messages = counters.messages(transport);
        assert!(messages.ignored > 0, "{transport}");
        assert_eq!(messages.received, messages.answered + messages.ignored, "{transport}");
    }
}

/// A client asks for 45 MB of answers and does not read. The server stops reading from it, serves the others,
/// and gives all answers once they are read.
#[test]
fn a_slow_reader_waits_for_itself_only() {
    const QUERIES: u16 = 5000;
    let mut frames = Vec::new();
    for id in 0..QUERIES {
        push_frame(&mut frames, &query(id, "big.example.", Rtype::TXT));
    }
    for reads_later in [false, true] {
        let server = Running::start(|_| {});
        let mut slow = server.tcp();
        let mut writer = slow.try_clone().unwrap();
        let frames = frames.clone();
        // The kernel may not take all of the queries: write on another thread.
        let writing = std::thread::spawn(move || writer.write_all(&frames));
        check_served(&server);
        // Long enough for the server to answer everything, if it were not bounded.
        std::thread::sleep(Duration::from_millis(300));
        check_served(&server);
        if reads_later {
            for id in 0..QUERIES {
                let message = read_message(&mut slow);
                let response = Response::parse(&message).unwrap();
                assert_eq!((response.id, response.answers), (id, 200));
            }
            writing.join().unwrap().unwrap();
            assert_eq!(server.stop().tcp.answered, u64::from(QUERIES) + 2);
        } else {
            // The sockets' buffers hold some 10 MB, and the server a quarter of one.
            let answered = server.stop().tcp.answered;
            assert!(answered < u64::from(QUERIES) / 2, "{answered} answers nobody read");
            // This may fail: the server may not have read all queries.
            let _ = writing.join().unwrap();
        }
    }
}

#[test]
fn idle_and_surplus_connections() {
    let server = Running::start(|config| {
        config.idle_timeout = Duration::from_millis(400);
        config.max_connections = NonZeroUsize::new(2).unwrap();
    });
    let question = query(1, "www.example.", Rtype::A);
    let mut open = [server.tcp(), server.tcp()];
    for stream in &mut open {
        exchange(stream, &question);
    }
    // The third waits in the kernel's queue until the others have idled away.
    let mut third = server.tcp();
    exchange(&mut third, &question);
    for stream in open {
        assert!(is_closed(stream));
    }
    let connections = server.stop().connections;
    assert_eq!(connections.accepted, 3);
    assert!(connections.timed_out >= 1 && connections.accept_pauses >= 1, "{connections:?}");
}
