//! Peers that break the rules, or use them to the full, and networks that do anything.

use std::time::{Duration, Instant};

use dnslab_transport::quic::{QuicError, QuicServer, Reaction};
use proptest::prelude::*;
use quinn_proto::{Connection, ConnectionError, Dir, StreamId, VarInt};

use crate::raw_server::{Talk, converse, converse_about, finish, reset, write};
use crate::simulation::{
    CLIENT, Link, Outcome, Protocol, World, client_tls, connect, query, server,
};

/// A DNS message on a stream of DNS over QUIC: its length, and a header.
const DOQ: &[u8] = b"\0\x0c\0\0\x81\0\0\0\0\0\0\0\0\0";

/// That message as a response of HTTP/3: `:status 200`, `content-type application/dns-message`.
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
    let talk = converse(protocol, 1, &begin, &answer);
    assert!(talk.end.is_none(), "{:?}", talk.end);
    assert_eq!(talk.outcomes, std::slice::from_ref(expected));
    assert!(talk.client.is_open());
}

/// The connection must end with these words when the server does this. The server must be told so with the
/// code of the protocol's error, unless it was the one that closed.
#[track_caller]
fn check_end(
    protocol: Protocol,
    begin: impl Fn(&mut Connection, StreamId),
    answer: impl Fn(&mut Connection, StreamId),
    expected: &str,
) {
    let talk = converse(protocol, 1, &begin, &answer);
    let end = talk.end.as_ref().map_or("no end".to_owned(), |end| end.to_string());
    assert!(end.contains(expected), "{end} in place of {expected}");
    assert!(!talk.client.is_open());
    if let Some(QuicError::Protocol(_)) = talk.end {
        check_told(protocol, talk.servers_end);
    }
}

/// The server must have been told DOQ_PROTOCOL_ERROR (RFC 9250, section 8.4), or
/// H3_GENERAL_PROTOCOL_ERROR (RFC 9114, section 8.1).
#[track_caller]
fn check_told(protocol: Protocol, end: Option<ConnectionError>) {
    let Some(ConnectionError::ApplicationClosed(close)) = end else { panic!("told {end:?}") };
    let code = if protocol == Protocol::Doq { 2 } else { 0x101 };
    assert_eq!(close.error_code, VarInt::from_u32(code));
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
    // DOQ_INTERNAL_ERROR: this query alone cannot be answered (RFC 9250, section 4.3.2).
    doq(&|connection, id| reset(connection, id, 1), refused);
    let cut = |connection: &mut Connection, id| {
        write(connection, id, &DOQ[..5]);
        reset(connection, id, 1);
    };
    doq(&cut, refused);
}

/// What was read of one response is not taken for what another says.
#[test]
fn responses_that_are_alike_in_part() {
    // The head of the second differs in its status alone, from the third the content type is missing.
    let responses = [
        HTTP3.to_vec(),
        [b"\x01\x04\0\0\xdb\xec", &HTTP3[6..]].concat(),
        [b"\x01\x03\0\0\xd9", &HTTP3[6..]].concat(),
        HTTP3.to_vec(),
    ];
    let answer = |connection: &mut Connection, id: StreamId| {
        finish(connection, id, &responses[id.index() as usize]);
    };
    let mut talk = converse(Protocol::Get, 4, &settings, &answer);
    talk.outcomes.sort_by_key(Outcome::request);
    let expected = [answered(0), Outcome::Refused(1, 404), Outcome::Refused(2, 200), answered(3)];
    assert_eq!(talk.outcomes, expected);
}

/// Each of these is the end of the connection (RFC 9250, section 4.3.3).
#[test]
fn broken_rules_of_dns_over_quic() {
    let check = |answer: &dyn Fn(&mut Connection, StreamId), expected| {
        check_end(Protocol::Doq, nothing, answer, expected);
    };
    let early = "the end of a stream before that of its message";
    for cut in [&DOQ[..13], b"", b"\0", b"\0\0", &DOQ[..2]] {
        let expected = if cut == b"\0\0" { "a message id" } else { early };
        check(&|connection, id| finish(connection, id, cut), expected);
    }
    for more in [[DOQ, b"x"].concat(), [DOQ, DOQ].concat()] {
        check(&|connection, id| finish(connection, id, &more), "a second message");
        check(&|connection, id| write(connection, id, &more), "a second message");
    }
    let mut with_id = DOQ.to_vec();
    with_id[3] = 1;
    check(&|connection, id| finish(connection, id, &with_id), "a message id other than 0");
    check(&|connection, id| write(connection, id, &with_id), "a message id other than 0");
}

/// STOP_SENDING on the stream of a query, as soon as its first octets have come.
fn stop(connection: &mut Connection, id: StreamId) {
    let _ = connection.recv_stream(id).stop(VarInt::from_u32(5));
}

/// A server reads what it is asked: STOP_SENDING is the end too (RFC 9250, section 4.3.3). It comes while
/// flow control keeps a part of the query back.
#[test]
fn a_server_that_does_not_want_the_query() {
    let requests = [vec![0; 65_000]];
    let talk = converse_about(Protocol::Doq, 10_000, &requests, &nothing, &stop, &nothing);
    let end = talk.end.map_or("no end".to_owned(), |end| end.to_string());
    assert!(end.contains("STOP_SENDING"), "{end}");
    check_told(Protocol::Doq, talk.servers_end);
    // In HTTP a server may (RFC 9114, section 4.1).
    let requests = [vec![0; 65_000], query(1)];
    let talk = converse_about(Protocol::Post, 10_000, &requests, &settings, &stop, &nothing);
    assert!(talk.end.is_none(), "{:?}", talk.end);
}

fn stop_and_leave_one(connection: &mut Connection, id: StreamId) {
    stop(connection, id);
    if id.index() != 1 {
        finish(connection, id, DOQ);
    }
}

/// A server that has the whole query may drop the stream without having read its end, as quinn does with a
/// `RecvStream` that is dropped. That comes before the end was acknowledged, and says nothing about the
/// query, which is answered. The longest one is answered only where it came whole.
#[test]
fn a_server_that_has_read_the_query_and_not_its_end() {
    let requests = [query(0), vec![0; 65_000], query(2)];
    let talk =
        converse_about(Protocol::Doq, 100_000, &requests, &nothing, &stop_and_leave_one, &nothing);
    assert!(talk.end.is_none(), "{:?}", talk.end);
    assert_eq!(talk.outcomes, [answered(0), answered(2)]);
    assert!(talk.client.is_open());
    // RFC 9000, section 3.5: what was not sent yet is not sent any more.
    assert!(talk.received < 65_000, "{}", talk.received);
}

fn opened_streams(connection: &mut Connection) -> usize {
    let bidirectional = connection.streams().open(Dir::Bi);
    assert_eq!(bidirectional, None);
    let unidirectional = std::iter::from_fn(|| connection.streams().open(Dir::Uni));
    unidirectional.count()
}

/// A server cannot open streams where it has none (RFC 9250, section 4.3.3); HTTP/3 needs some.
#[test]
fn streams_of_the_server() {
    let count = std::cell::Cell::new(0);
    let open = |connection: &mut Connection, _| count.set(opened_streams(connection));
    converse(Protocol::Doq, 1, &nothing, &open);
    assert_eq!(count.get(), 0);
    converse(Protocol::Get, 1, &settings, &open);
    assert!(count.get() >= 2, "{} beside the control stream", count.get());
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
    doq(&|connection, _| close(connection, 0), "with DOQ_NO_ERROR (0x0): enough");
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

#[test]
fn requests_after_a_goaway_are_not_processed() {
    // Request 2 has stream 8.
    let begin = |connection: &mut Connection, id| write(connection, id, b"\0\x04\0\x07\x01\x08");
    let answer = |connection: &mut Connection, id: StreamId| {
        if u64::from(id) < 8 {
            finish(connection, id, HTTP3);
        }
    };
    let Talk { mut outcomes, end, client, .. } = converse(Protocol::Get, 5, &begin, &answer);
    assert!(end.is_none());
    outcomes.sort_by_key(Outcome::request);
    let mut expected = vec![answered(0), answered(1)];
    expected.extend((2..5).map(Outcome::NotProcessed));
    assert_eq!(outcomes, expected);
    assert!(client.is_draining() && !client.is_open());
}

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
            let octets = [start, &answer].concat();
            let answer = |connection: &mut Connection, id| match ends {
                true => finish(connection, id, &octets),
                false => write(connection, id, &octets),
            };
            let Talk { outcomes, end, .. } = converse(protocol, 3, &begin, &answer);
            let mut numbers: Vec<u16> = outcomes.iter().map(Outcome::request).collect();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), outcomes.len());
            prop_assert!(!ends || end.is_some() || outcomes.len() == 3);
        }
    }

    /// Whatever datagrams come, nothing panics, and nothing is taken for an answer.
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
