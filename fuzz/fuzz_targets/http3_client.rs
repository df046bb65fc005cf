//! Whatever a server sends over HTTP/3, on its control stream and on the streams of requests, no request is
//! told of twice, and nothing panics.
//!
//! The first octet says how long the part is that the server's own stream has; the second, which method is
//! used and how a response ends. The rest is cut into as many responses as there are requests.
#![no_main]

#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../crates/transport/tests/quic/raw_server.rs"]
mod raw_server;
#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../crates/transport/tests/quic/simulation.rs"]
mod simulation;

use libfuzzer_sys::fuzz_target;
use quinn_proto::{Connection, StreamId};
use raw_server::{converse, finish, reset, write};
use simulation::{Outcome, Protocol};

/// Requests of one conversation.
const REQUESTS: u16 = 3;

fuzz_target!(|octets: &[u8]| {
    let [own, how, rest @ ..] = octets else { return };
    let (control, responses) = rest.split_at(rest.len().min((*own).into()));
    let protocol = if how & 1 == 0 { Protocol::Get } else { Protocol::Post };
    let length = responses.len().div_ceil(REQUESTS.into()).max(1);
    let begin = |connection: &mut Connection, id: StreamId| write(connection, id, control);
    let answer = |connection: &mut Connection, id: StreamId| {
        let response = responses.chunks(length).nth(id.index() as usize).unwrap_or_default();
        match how >> 1 & 3 {
            0 => write(connection, id, response),
            1 => {
                write(connection, id, response);
                reset(connection, id, 0x10b);
            }
            _ => finish(connection, id, response),
        }
    };
    let talk = converse(protocol, REQUESTS, &begin, &answer);
    let mut numbers: Vec<u16> = talk.outcomes.iter().map(Outcome::request).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), talk.outcomes.len(), "a request was told of twice");
    assert!(numbers.iter().all(|number| *number < REQUESTS));
});
