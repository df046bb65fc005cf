//! Peers that break the rules, or use them to the full, and networks that do anything.

use std::time::{Duration, Instant};

use dnslab_carrier::quic::{QuicServer, Reaction};
use proptest::prelude::*;
use quinn_proto::{Connection, StreamId, VarInt};

use crate::raw_server::{converse, finish, reset, write};
use crate::simulation::{
    CLIENT, Link, Outcome, Protocol, World, client_tls, connect, query, server,
};

/// A DNS message on a stream of DNS over QUIC: its length, and a header.
const DOQ: &[u8] = b"\0\x0c\0\0\x81\0\0\0\0\0\0\0\0\0";

/// The same as a response of HTTP/3: `:status 200`, `content-type application/dns-message`.
const HTTP3: &[u8] = b"\x01\x04\0\0\xd9\xec\0\x0c\0\0\x81\0\0\0\0\0\0\0\0\0";

/// A control stream with empty settings.
const CONTROL: &[u8] = b"\0\x04\0";

fn nothing(_: &mut Connection, _: StreamId) {}

fn settings(connection: &mut Connection, id: StreamId) {
    write(connection, id, CONTROL);
}

/// The answer in both constants, to this request.
fn answered(request: u16) -> Outcome {
    let mut message = DOQ[2..].to_vec();
    message[..2].copy_from_slice(&request.to_be_bytes());
    Outcome::Answer(request, message)
}

/// What comes of one request when the server does this on its stream.
#[track_caller]
fn check(protocol: Protocol, answer: impl Fn(&mut Connection, StreamId), expected: &Outcome) {
    let begin = if protocol == Protocol::Doq { nothing } else { settings };
    let (outcomes, end, client) = converse(protocol, 1, &begin, &answer);
    assert!(end.is_none(), "{end:?}");
    assert_eq!(outcomes, std::slice::from_ref(expected));
    assert!(client.is_open());
}

/// The connection must end with these words when the server does this.
#[track_caller]
fn check_end(
    protocol: Protocol,
    begin: impl Fn(&mut Connection, StreamId),
    answer: impl Fn(&mut Connection, StreamId),
    expected: &str,
) {
    let (_, end, client) = converse(protocol, 1, &begin, &answer);
    let end = end.map_or("no end".to_owned(), |end| end.to_string());
    assert!(end.contains(expected), "{end} in place of {expected}");
    assert!(!client.is_open());
}

#[test]
fn answers_over_quic_in_every_form() {
    let doq = |answer: &dyn Fn(&mut Connection, StreamId), expected| {
        check(Protocol::Doq, answer, expected);
    };
    let right = &answered(0);
    let refused = &Outcome::Refused(0, 0);
    doq(&|connection, id| finish(connection, id, DOQ), right);
    // The end must come, but the answer is there without it.
    doq(&|connection, id| write(connection, id, DOQ), right);
    for wrong in [&DOQ[..13], b"", b"\0", b"\0\0", &[DOQ, b"x"].concat(), &[DOQ, DOQ].concat()] {
        doq(&|connection, id| finish(connection, id, wrong), refused);
    }
    doq(&|connection, id| write(connection, id, &[DOQ, b"x"].concat()), refused);
    let mut with_id = DOQ.to_vec();
    with_id[3] = 1;
    doq(&|connection, id| finish(connection, id, &with_id), refused);
    doq(&|connection, id| reset(connection, id, 1), refused);
}

#[test]
fn responses_over_http_in_every_form() {
    let http = |octets: &[u8], expected: &Outcome| {
        for protocol in [Protocol::Get, Protocol::Post] {
            check(protocol, |connection, id| finish(connection, id, octets), expected);
        }
    };
    let right = &answered(0);
    http(HTTP3, right);
    let (head, data) = HTTP3.split_at(6);
    // An interim response, frames of reserved types, a body in pieces, trailers.
    http(&[b"\x01\x03\0\0\xd8", HTTP3].concat(), right);
    http(&[b"\x21\x02ab", head, b"\x40\x21\0", data, b"\x40\x5f\x01x"].concat(), right);
    let pieces = [head, b"\0\x03\0\0\x81\0\0\0\x09", &data[5..]].concat();
    http(&pieces, right);
    http(&[HTTP3, b"\x01\x05\0\0\x21a\0"].concat(), right);
    let refused = |status| Outcome::Refused(0, status);
    http(b"\x01\x03\0\0\xdb", &refused(404));
    http(b"\x01\x08\0\0\x5f\x09\x03500", &refused(500));
    http(b"\x01\x08\0\0\x5f\x09\x03999\0\x02ab", &refused(999));
    // A page, no body, a message id.
    http(b"\x01\x04\0\0\xd9\xf4\0\x02ab", &refused(200));
    http(head, &refused(200));
    http(b"\x01\x04\0\0\xd9\xec\0\x02\x01\x02", &refused(200));
    // Nothing, a cut frame, no status.
    http(b"", &refused(0));
    http(&HTTP3[..10], &refused(0));
    http(b"\x01\x03\0\0\xec", &refused(0));
    for (code, expected) in [(0x10b, Outcome::NotProcessed(0)), (0x10c, refused(0))] {
        check(Protocol::Get, |connection, id| reset(connection, id, code), &expected);
    }
}

#[test]
fn broken_rules_end_the_connection() {
    let doq = |answer: &dyn Fn(&mut Connection, StreamId), expected| {
        check_end(Protocol::Doq, nothing, answer, expected);
    };
    doq(&|connection, _| close(connection, 4), "DOQ_EXCESSIVE_LOAD (0x4): enough");
    doq(&|connection, _| close(connection, 0), "the peer closed the connection");
    let http = |octets: &[u8], expected| {
        let answer = |connection: &mut Connection, id| finish(connection, id, octets);
        check_end(Protocol::Post, settings, answer, expected);
    };
    http(b"\0\x02ab", "a body before its head");
    http(b"\x04\0", "must not have");
    http(b"\x08\0", "must not have");
    http(b"\x05\0", "pushed");
    http(b"\x01\x03\0\0\x80", "decompressed");
    http(b"\x01\x03\x01\0\xd9", "decompressed");
    http(b"\x01\x03\0\0\xff", "decompressed");
    let answer = |connection: &mut Connection, _| close(connection, 0x10d);
    check_end(Protocol::Get, settings, answer, "H3_REQUEST_INCOMPLETE (0x10d): enough");
    let control = |octets: &[u8], expected| {
        let begin = |connection: &mut Connection, id| write(connection, id, octets);
        check_end(Protocol::Get, begin, nothing, expected);
    };
    control(b"\0\x07\x01\0", "without settings");
    control(b"\0\x04\0\x04\0", "settings sent twice");
    control(b"\0\x04\0\0\x01a", "must not have");
    control(b"\0\x04\0\x07\x01\x01", "GOAWAY");
    control(b"\0\x04\0\x07\0", "GOAWAY");
    control(b"\0\x04\0\x07\x01\x04\x07\x01\x08", "GOAWAY");
    control(&[b"\0\x04\x80\x01\0\0".as_slice(), &[0; 5000]].concat(), "a frame of that length");
    control(b"\x01", "push");
    let begin = |connection: &mut Connection, id| finish(connection, id, CONTROL);
    check_end(Protocol::Get, begin, nothing, "the end of a control stream");
}

fn close(connection: &mut Connection, code: u32) {
    connection.close(Instant::now(), VarInt::from_u32(code), "enough".into());
}

/// The server announces its end: what it did not look at may be sent again.
#[test]
fn requests_after_a_goaway_are_not_processed() {
    // Request 2 has stream 8.
    let begin = |connection: &mut Connection, id| write(connection, id, b"\0\x04\0\x07\x01\x08");
    let answer = |connection: &mut Connection, id: StreamId| {
        if u64::from(id) < 8 {
            finish(connection, id, HTTP3);
        }
    };
    let (mut outcomes, end, client) = converse(Protocol::Get, 5, &begin, &answer);
    assert!(end.is_none());
    outcomes.sort_by_key(Outcome::request);
    let mut expected = vec![answered(0), answered(1)];
    expected.extend((2..5).map(Outcome::NotProcessed));
    assert_eq!(outcomes, expected);
    assert!(client.is_draining() && !client.is_open());
}

/// And so does ours.
#[test]
fn our_server_announces_its_end() {
    for protocol in [Protocol::Get, Protocol::Post] {
        let mut world = World::new(protocol, Link::QUIET, 3);
        world.reaction = Box::new(|_| Reaction::Later);
        world.until(|world| world.client.is_open());
        (0..10).for_each(|number| assert!(world.client.send(number, &query(number))));
        world.until(|world| world.held.len() == 10);
        world.server.go_away();
        (10..20).for_each(|number| assert!(world.client.send(number, &query(number))));
        world.until(|world| world.outcomes.len() == 10);
        let expected: Vec<Outcome> = (10..20).map(Outcome::NotProcessed).collect();
        let mut outcomes = world.outcomes.clone();
        outcomes.sort_by_key(Outcome::request);
        assert_eq!(outcomes, expected);
        assert!(world.client.is_draining());
        assert_eq!(world.release(), 10);
        world.until(|world| world.outcomes.len() == 20);
        assert!(world.outcomes[10..].iter().all(|outcome| outcome.request() < 10));
    }
}

/// What a server refuses, it refuses with the status that is due.
#[test]
fn our_server_says_what_is_wrong() {
    let mut world = World::new(Protocol::Get, Link::QUIET, 3);
    world.reaction = Box::new(|_| Reaction::NoQuery);
    world.until(|world| world.client.send(0, &query(0)));
    world.until(|world| !world.outcomes.is_empty());
    assert_eq!(world.outcomes, [Outcome::Refused(0, 400)]);
    let mut world = World::new(Protocol::Doq, Link::QUIET, 3);
    world.reaction = Box::new(|_| Reaction::NoQuery);
    world.until(|world| world.client.send(0, &query(0)));
    world.until(|world| world.end.is_some());
    let end = world.end.unwrap().to_string();
    assert!(end.contains("DOQ_PROTOCOL_ERROR"), "{end}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a server says, each request has at most one outcome, and nothing panics.
    #[test]
    fn any_octets_on_the_streams(
        begin in prop::collection::vec(any::<u8>(), 0..40),
        answer in prop::collection::vec(any::<u8>(), 0..80),
        start in prop::sample::select(vec![b"".as_slice(), CONTROL, HTTP3, &HTTP3[..6], &DOQ[..4]]),
        ends in any::<bool>(),
    ) {
        for protocol in [Protocol::Doq, Protocol::Get] {
            let begin = |connection: &mut Connection, id| {
                write(connection, id, &[CONTROL, &begin].concat());
            };
            let answer = |connection: &mut Connection, id| {
                write(connection, id, &[start, &answer].concat());
                if ends {
                    finish(connection, id, b"");
                }
            };
            let (outcomes, end, _) = converse(protocol, 3, &begin, &answer);
            let mut numbers: Vec<u16> = outcomes.iter().map(Outcome::request).collect();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), outcomes.len());
            prop_assert!(!ends || end.is_some() || outcomes.len() == 3);
        }
    }

    /// Whatever datagrams come, in whatever pieces, nothing panics, and nothing is taken for an
    /// answer.
    #[test]
    fn any_datagrams(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1500), 1..8),
        segment in 0_usize..1500,
    ) {
        for protocol in [Protocol::Doq, Protocol::Get] {
            let now = Instant::now();
            let mut client = connect(protocol, client_tls(protocol), 1, now);
            let mut settings = server(protocol, 1);
            settings.connections = 2;
            let (mut server, mut out) = (QuicServer::new(&settings), Vec::new());
            let _ = client.transmit(now, &mut out);
            for datagram in &datagrams {
                // Some have a head that belongs here.
                let mut mixed = out.clone();
                mixed.truncate(datagram.len().max(60));
                mixed.extend_from_slice(datagram);
                for octets in [datagram, &mixed] {
                    client.receive(now, octets, segment);
                    server.receive(now, CLIENT.parse().unwrap(), None, octets, segment);
                }
                let _ = client.poll(now, &mut |_| panic!("an answer out of nothing"));
                server.poll(now, &mut |_, _, _| Reaction::Never);
                while server.transmit(now, &mut Vec::new()).is_some() {}
                server.handle_timeouts(now + Duration::from_secs(1));
            }
            prop_assert!(server.connections() <= 2);
        }
    }
}
