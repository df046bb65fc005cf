//! Client against server in memory, and against octets that no server should send.

mod frames;
mod kept_back;

use std::collections::BTreeSet;

use h2::Reason;
use proptest::prelude::*;

use super::{Client, Http2Error, RequestId, Server};
use crate::{Exchange, Method, Target};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Answer(u16, Vec<u8>),
    Refused(u16, u16),
    NotProcessed(u16),
}

impl From<Exchange<'_>> for Told {
    fn from(exchange: Exchange<'_>) -> Self {
        match exchange {
            Exchange::Answer { request, message } => Self::Answer(request, message.to_vec()),
            Exchange::Refused { request, status } => Self::Refused(request, status),
            Exchange::NotProcessed { request } => Self::NotProcessed(request),
        }
    }
}

fn client(method: Method, path: &str) -> Client {
    let target = Target { authority: "ns.example:8443".to_owned(), path: path.to_owned(), method };
    Client::new(&target).unwrap()
}

/// The query with this number; its length differs from that of its neighbours.
fn query(number: u16) -> Vec<u8> {
    let mut query = number.to_be_bytes().to_vec();
    query.resize(12 + usize::from(number) % 50, number as u8);
    query
}

/// Octets on their way, cut at these places.
struct Wire<'a> {
    octets: Vec<u8>,
    cuts: std::iter::Cycle<std::slice::Iter<'a, usize>>,
}

impl<'a> Wire<'a> {
    fn new(cuts: &'a [usize]) -> Self {
        Self { octets: Vec::new(), cuts: cuts.iter().cycle() }
    }

    fn next(&mut self) -> Vec<u8> {
        let count = (*self.cuts.next().unwrap()).min(self.octets.len());
        self.octets.drain(..count).collect()
    }
}

/// Asks `queries` over a server that allows so many streams and answers each with itself. Gives what the
/// client was told in the end; what was not processed is asked again.
fn exchange(method: Method, queries: u16, streams: u32, cuts: &[usize]) -> Vec<Told> {
    let mut client = client(method, "/dns-query");
    let mut server = Server::with_streams("/dns-query", streams);
    let (mut to_server, mut to_client) = (Wire::new(cuts), Wire::new(cuts));
    let mut left: Vec<u16> = (0..queries).rev().collect();
    let mut outcomes = Vec::new();
    let mut rounds = 0;
    while outcomes.len() < usize::from(queries) {
        rounds += 1;
        assert!(rounds < 1_000_000, "only {outcomes:?}");
        while let Some(number) = left.last()
            && client.send(*number, &query(*number))
        {
            left.pop();
        }
        client
            .poll(&mut to_server.octets, &mut |exchange| match exchange.into() {
                Told::NotProcessed(request) => left.push(request),
                other => outcomes.push(other),
            })
            .unwrap();
        if rounds > 100_000 / cuts.iter().min().unwrap() {
            // The server's settings have come long ago.
            assert!(client.in_flight() <= streams as usize);
        }
        server.receive(&to_server.next());
        server.poll(&mut to_client.octets).unwrap();
        while let Some(request) = server.next_request() {
            assert_eq!(request.message[..2], [0, 0]);
            assert!(server.answer(request.id, &request.message));
        }
        server.poll(&mut to_client.octets).unwrap();
        client.receive(&to_client.next());
    }
    assert_eq!((client.in_flight(), server.is_waiting()), (0, false));
    outcomes
}

fn check_exchange(method: Method, queries: u16, streams: u32, cuts: &[usize]) {
    let outcomes = exchange(method, queries, streams, cuts);
    let answers: BTreeSet<_> = outcomes
        .iter()
        .map(|outcomes| match outcomes {
            Told::Answer(request, message) => {
                assert_eq!(*message, query(*request));
                *request
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(answers.len(), usize::from(queries));
}

#[test]
fn streams_that_the_server_allows() {
    for method in [Method::Get, Method::Post] {
        for streams in [1, 2, 100, 1000] {
            check_exchange(method, 300, streams, &[65_536]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_cut_gives_the_same_answers(
        is_get in any::<bool>(),
        cuts in prop::collection::vec(prop_oneof![1usize..20, 1usize..3000], 1..20),
        streams in 1u32..50,
    ) {
        let method = if is_get { Method::Get } else { Method::Post };
        check_exchange(method, 40, streams, &cuts);
    }

    /// Octets that are no HTTP/2 end a connection at most.
    #[test]
    fn any_octets(
        greets in any::<bool>(),
        octets in prop::collection::vec(any::<u8>(), 0..400),
        kind in any::<u8>(),
    ) {
        let mut out = Vec::new();
        let mut asking = client(Method::Post, "/dns-query");
        asking.send(1, &query(1));
        asking.poll(&mut out, &mut |_| {}).unwrap();
        let mut server = Server::new("/dns-query");
        if greets {
            server.receive(&out);
            asking.receive(&frame(SETTINGS, 0, 0, &[]));
        }
        // Some of it has the shape of a frame.
        let mut shaped = frame(kind % 10, kind, u32::from(kind & 3), &octets);
        shaped.extend_from_slice(&octets);
        server.receive(&shaped);
        asking.receive(&shaped);
        while server.poll(&mut out).is_ok() && server.next_request().is_some() {}
        let _ = asking.poll(&mut out, &mut |_| {});
    }
}

/// Frame types (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// Flags: the last frame of a stream, and all of a header in one frame.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// `:status`, from the static table (RFC 7541, appendix A), and the content type.
fn head(stream: u32, status: u16, content_type: &str, flags: u8) -> Vec<u8> {
    let index = match status {
        200 => 8,
        404 => 13,
        _ => 14,
    };
    let mut fields = vec![0x80 | index, 0x0f, 31 - 15, content_type.len() as u8];
    fields.extend_from_slice(content_type.as_bytes());
    frame(HEADERS, END_HEADERS | flags, stream, &fields)
}

fn dns_head(stream: u32) -> Vec<u8> {
    head(stream, 200, "application/dns-message", 0)
}

/// Asks queries 1 to 3, on the streams 1, 3 and 5, of a server that says this and then closes.
fn check_said(parts: &[Vec<u8>], expected: &[Told], expected_end: &str) {
    let mut client = client(Method::Post, "/dns-query");
    let (mut out, mut outcomes) = (Vec::new(), Vec::<Told>::new());
    for number in 1..=3 {
        assert!(client.send(number, &query(number)));
    }
    client.poll(&mut out, &mut |_| {}).unwrap();
    client.receive(&frame(SETTINGS, 0, 0, &[]));
    client.receive(&parts.concat());
    let mut deliver = |exchange: Exchange<'_>| outcomes.push(exchange.into());
    let end = client.poll(&mut out, &mut deliver).and_then(|()| {
        client.end();
        client.poll(&mut out, &mut deliver)
    });
    let by_request = |outcomes: &Told| match outcomes {
        Told::Answer(request, _) | Told::Refused(request, _) | Told::NotProcessed(request) => {
            *request
        }
    };
    outcomes.sort_by_key(by_request);
    assert_eq!(outcomes, expected);
    let end = end.unwrap_err().to_string();
    assert!(end.contains(expected_end), "{end}");
    assert!(client.is_draining() && !client.send(4, &query(4)));
}

#[test]
fn what_servers_say() {
    let answer = || Told::Answer(1, b"\0\x01 right".to_vec());
    let body = |stream, message: &[u8]| frame(DATA, END_STREAM, stream, message);
    let right = || [dns_head(1), body(1, b"\0\0 right")].concat();
    let reset =
        |stream, reason: Reason| frame(RST_STREAM, 0, stream, &u32::from(reason).to_be_bytes());
    let go_away = |last: u32, reason: Reason| {
        let payload = [last.to_be_bytes(), u32::from(reason).to_be_bytes()].concat();
        frame(GOAWAY, 0, 0, &payload)
    };
    let closed = "closed the HTTP/2 connection";
    check_said(&[right()], &[answer()], closed);
    check_said(
        &[dns_head(1), frame(DATA, 0, 1, b"\0"), frame(DATA, 0, 1, b"\0 ri"), body(1, b"ght")],
        &[answer()],
        closed,
    );
    check_said(&[head(1, 500, "text/html", END_STREAM)], &[Told::Refused(1, 500)], closed);
    check_said(
        &[head(3, 404, "text/html", 0), right()],
        &[answer(), Told::Refused(2, 404)],
        closed,
    );
    let other_type = [head(1, 200, "text/html", 0), body(1, b"\0\0<html>")];
    check_said(&other_type, &[Told::Refused(1, 200)], closed);
    check_said(&[dns_head(1), body(1, b"\x01\0 id")], &[Told::Refused(1, 200)], closed);
    check_said(&[dns_head(1), body(1, b"\0")], &[Told::Refused(1, 200)], closed);
    check_said(&[reset(1, Reason::INTERNAL_ERROR)], &[Told::Refused(1, 0)], closed);
    check_said(&[reset(5, Reason::REFUSED_STREAM)], &[Told::NotProcessed(3)], closed);
    check_said(
        &[go_away(1, Reason::NO_ERROR), right()],
        &[answer(), Told::NotProcessed(2), Told::NotProcessed(3)],
        closed,
    );
    // A second GOAWAY lowers the last stream (RFC 9113, section 6.8).
    check_said(
        &[go_away(0x7fff_ffff, Reason::NO_ERROR), right(), go_away(1, Reason::NO_ERROR)],
        &[answer(), Told::NotProcessed(2), Told::NotProcessed(3)],
        closed,
    );
    // An answer to a stream that nobody opened, octets that are no frame, a frame in no place.
    check_said(&[right(), dns_head(9)], &[answer()], "HTTP/2: ");
    check_said(&[right(), b"HTTP/1.1 400 Bad Request\r\n".to_vec()], &[answer()], "HTTP/2: ");
    check_said(&[right(), body(3, b"\0\0")], &[answer()], "HTTP/2: ");
}

/// An answer longer than any DNS message is refused, whatever the window; one as long is taken.
#[test]
fn the_longest_answer() {
    for (length, expected) in [(65_535, None), (65_536, Some(Told::Refused(1, 200)))] {
        let mut client = client(Method::Get, "/dns-query");
        let (mut out, mut outcomes) = (Vec::new(), Vec::<Told>::new());
        assert!(client.send(1, &query(1)));
        client.poll(&mut out, &mut |_| {}).unwrap();
        client.receive(&frame(SETTINGS, 0, 0, &[]));
        client.receive(&dns_head(1));
        let body = vec![0; length];
        for (number, part) in body.chunks(16_384).enumerate() {
            let flags = if (number + 1) * 16_384 >= length { END_STREAM } else { 0 };
            client.receive(&frame(DATA, flags, 1, part));
            client.poll(&mut out, &mut |exchange| outcomes.push(exchange.into())).unwrap();
        }
        let mut message = body;
        message[1] = 1;
        assert_eq!(outcomes, [expected.unwrap_or(Told::Answer(1, message))]);
    }
}

#[test]
fn all_streams_are_given_up_at_once() {
    let mut client = client(Method::Post, "/dns-query");
    let mut server = Server::with_streams("/dns-query", 3);
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    for round in 0..10 {
        // The first round is for the settings.
        for number in 0..if round > 0 { 3 } else { 0 } {
            assert!(client.send(number, &query(number)), "{round} {number}");
        }
        client.flush(&mut to_server).unwrap();
        server.receive(&std::mem::take(&mut to_server));
        server.poll(&mut to_client).unwrap();
        assert_eq!(std::iter::from_fn(|| server.next_request()).count(), client.in_flight());
        client.receive(&std::mem::take(&mut to_client));
        client.poll(&mut to_server, &mut |exchange| panic!("{exchange:?}")).unwrap();
        (0..3).for_each(|number| client.cancel(number));
    }
}

#[test]
fn a_request_that_is_given_up_frees_its_stream() {
    let mut client = client(Method::Post, "/dns-query");
    let mut server = Server::with_streams("/dns-query", 1);
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut lost = None;
    for number in 0..5 {
        // The first round is for the settings.
        if number > 0 {
            assert!(client.send(number, &query(number)), "{number}");
            assert!(!client.send(99, &query(99)));
        }
        client.poll(&mut to_server, &mut |exchange| panic!("{exchange:?}")).unwrap();
        server.receive(&std::mem::take(&mut to_server));
        server.poll(&mut to_client).unwrap();
        lost = server.next_request().map(|request| request.id).or(lost);
        client.receive(&std::mem::take(&mut to_client));
        client.poll(&mut to_server, &mut |exchange| panic!("{exchange:?}")).unwrap();
        client.cancel(number);
        client.cancel(number);
    }
    assert_eq!((client.in_flight(), lost), (0, Some(RequestId(7))));
    // An answer that comes too late goes nowhere.
    client.poll(&mut to_server, &mut |_| {}).unwrap();
    server.receive(&to_server);
    server.poll(&mut to_client).unwrap();
    assert!(!server.answer(RequestId(7), b"\0\0 late"));
}

/// Thousands of late answers, and thousands of requests that are read together with their resets, leave the
/// connection whole.
#[test]
fn giving_up_and_answering_cross_on_the_way() {
    let mut client = client(Method::Post, "/dns-query");
    let mut server = Server::with_streams("/dns-query", 1000);
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    for round in 0..40 {
        for number in 0..100 {
            assert!(client.send(number, &query(number)), "{round} {number}");
        }
        client.flush(&mut to_server).unwrap();
        let is_read_before_the_resets = round % 2 == 0;
        if is_read_before_the_resets {
            server.receive(&std::mem::take(&mut to_server));
            server.poll(&mut to_client).unwrap();
            while let Some(request) = server.next_request() {
                assert!(server.answer(request.id, &request.message));
            }
            server.poll(&mut to_client).unwrap();
        }
        (0..100).for_each(|number| client.cancel(number));
        client.receive(&std::mem::take(&mut to_client));
        client.poll(&mut to_server, &mut |exchange| panic!("{exchange:?}")).unwrap();
        server.receive(&std::mem::take(&mut to_server));
        server.poll(&mut to_client).unwrap();
        while let Some(request) = server.next_request() {
            assert!(!server.answer(request.id, &request.message), "it was given up");
        }
        server.poll(&mut to_client).unwrap();
    }
    assert!(client.send(7, &query(7)));
    client.receive(&to_client);
    client.poll(&mut to_server, &mut |exchange| panic!("{exchange:?}")).unwrap();
    server.receive(&to_server);
    server.poll(&mut Vec::new()).unwrap();
    assert_eq!(server.next_request().unwrap().message[2..], query(7)[2..]);
}

#[test]
fn both_sides_can_say_good_bye() {
    let mut client = client(Method::Post, "/dns-query");
    let mut server = Server::new("/dns-query");
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    client.send(1, &query(1));
    client.poll(&mut to_server, &mut |_| {}).unwrap();
    client.close(&mut to_server);
    assert!(!client.send(2, &query(2)));
    server.receive(&to_server);
    let end = (0..4).find_map(|_| server.poll(&mut to_client).err());
    assert!(end.is_none_or(|end| matches!(end, Http2Error::Closed)));
    assert!(to_server.windows(4).any(|octets| octets == [GOAWAY, 0, 0, 0]), "{to_server:?}");
}

#[test]
fn targets_that_are_none() {
    for (authority, path, expected) in [
        ("ns example", "/", "`ns example` is no host"),
        ("ns.example", "dns-query", "`dns-query` is no path"),
        ("ns.example", "/dns query", "`/dns query` is no path"),
    ] {
        let (authority, path) = (authority.to_owned(), path.to_owned());
        let target = Target { authority, path, method: Method::Get };
        let error = Client::new(&target).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
