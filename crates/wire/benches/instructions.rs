//! Instructions that the octets of queries and answers cost, counted by callgrind.
//!
//! Each function does its work [`TIMES`] times, for names that differ, so that a count divided by [`TIMES`]
//! is that of one query. `checks/instructions` compares the counts with the accepted ones.

#![expect(missing_docs, reason = "the macros make public items, which cannot have docstrings")]

use std::hint::black_box;
use std::str::FromStr as _;

use dnslab_wire::{
    Additions, ClientSubnet, Cookie, Edns, Frames, Query, QueryOptions, Response, ResponseOptions,
    push_frame,
};
use domain::base::Name;
use domain::base::iana::Rtype;
use gungraun::{library_benchmark, library_benchmark_group, main};

const TIMES: u16 = 1_000;

/// An A record whose owner is the question's name (RFC 1035, section 4.1.4: a pointer to octet 12), with a
/// TTL of 1 s.
const ADDRESS: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x01\0\x04\xc0\0\x02\x01";

/// An OPT record (RFC 6891) that takes 1,232 octets, with a COOKIE option: both halves, 24 octets.
const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\0\0\0\x1c\0\x0a\0\x18a client16 octets of it.";

fn queries(edns: Option<Edns>) -> Vec<Query> {
    let options = QueryOptions { edns, ..QueryOptions::default() };
    let query = |number| {
        let name = Name::<Vec<u8>>::from_str(&format!("host-{number:06}.example.test."));
        Query::new(&name.expect("the name is legal"), Rtype::A, &options)
    };
    (0..TIMES).map(|number| query(number).expect("the query is short")).collect()
}

fn responses(rcode: u8, records: &[u8], answers: u8, additional: u8) -> Vec<Vec<u8>> {
    let head = [0x84, rcode, 0, 1, 0, answers, 0, 0, 0, additional];
    let respond = |(id, query): (u16, Query)| {
        [&id.to_be_bytes()[..], &head, query.question(), records].concat()
    };
    (0..).zip(queries(None)).map(respond).collect()
}

fn good_answers() -> Vec<Vec<u8>> {
    let messages = responses(0, ADDRESS, 1, 0);
    assert!(messages.iter().all(|message| Response::parse(message).is_ok()));
    messages
}

fn denials() -> Vec<Vec<u8>> {
    let messages = responses(3, &[], 0, 0);
    assert!(
        messages
            .iter()
            .all(|message| Response::parse(message).is_ok_and(|response| response.rcode == 3))
    );
    messages
}

/// Responses that end within their question.
fn cut_answers() -> Vec<Vec<u8>> {
    let mut messages = good_answers();
    messages.iter_mut().for_each(|message| message.truncate(30));
    assert!(messages.iter().all(|message| Response::parse(message).is_err()));
    messages
}

#[library_benchmark]
#[bench::noerror(good_answers())]
#[bench::nxdomain(denials())]
#[bench::malformed(cut_answers())]
fn response_parse(messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for message in &messages {
        black_box(Response::parse(message)).ok();
    }
    messages
}

fn answers_with_cookie() -> Vec<Vec<u8>> {
    let messages = responses(0, &[ADDRESS, OPT].concat(), 1, 1);
    let cookie = |message| ResponseOptions::read(message).and_then(|options| options.cookie);
    assert!(
        messages.iter().all(|message| cookie(message).is_some_and(|cookie| cookie.len() == 24))
    );
    messages
}

#[library_benchmark]
#[bench::no_opt(good_answers())]
#[bench::cookie(answers_with_cookie())]
fn response_options_read(messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    for message in &messages {
        black_box(ResponseOptions::read(message));
    }
    messages
}

/// So long that appending allocates nothing.
fn outbox() -> Vec<u8> {
    Vec::with_capacity(usize::from(u16::MAX))
}

#[library_benchmark]
#[bench::plain(queries(None), outbox())]
#[bench::edns(queries(Some(Edns::default())), outbox())]
fn query_append_to(queries: Vec<Query>, mut out: Vec<u8>) -> (Vec<Query>, Vec<u8>) {
    for (id, query) in (0..).zip(&queries) {
        out.clear();
        query.append_to(id, &Additions::default(), black_box(&mut out));
    }
    (queries, out)
}

fn client() -> (Cookie, ClientSubnet) {
    let mut cookie = Cookie::new(*b"a client");
    let answers = answers_with_cookie();
    cookie.learn(&ResponseOptions::read(&answers[0]).expect("the answer has an OPT record"));
    assert_eq!(cookie.server(), b"16 octets of it.");
    (cookie, ClientSubnet::from_str("192.0.2.0/24").expect("the network is legal"))
}

#[library_benchmark]
#[bench::cookie_and_subnet(queries(Some(Edns::default())), client(), outbox())]
fn query_append_to_with_additions(
    queries: Vec<Query>,
    client: (Cookie, ClientSubnet),
    mut out: Vec<u8>,
) -> (Vec<Query>, Vec<u8>) {
    let additions = Additions { cookie: Some(&client.0), subnet: Some(&client.1), padding: 0 };
    for (id, query) in (0..).zip(&queries) {
        out.clear();
        query.append_to(id, black_box(&additions), black_box(&mut out));
    }
    (queries, out)
}

fn large_read() -> Vec<u8> {
    let mut stream = Vec::new();
    good_answers().iter().for_each(|message| push_frame(&mut stream, message));
    assert_eq!(Frames::new(&stream).count(), usize::from(TIMES));
    stream
}

#[library_benchmark]
#[bench::large_read(large_read())]
fn frames(stream: Vec<u8>) -> Vec<u8> {
    for message in Frames::new(&stream) {
        black_box(message);
    }
    stream
}

library_benchmark_group!(
    name = wire;
    benchmarks =
        response_parse,
        response_options_read,
        query_append_to,
        query_append_to_with_additions,
        frames,
);

main!(library_benchmark_groups = wire);
