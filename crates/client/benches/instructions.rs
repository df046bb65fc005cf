//! Instructions that a worker spends on one query outside the kernel, counted by callgrind.
//!
//! Each function does its work [`TIMES`] times, so that a count divided by [`TIMES`] is that of one query.
//! `checks/instructions` holds the counts against the accepted ones.

#![expect(missing_docs, reason = "the macros make public items, which cannot have docstrings")]

use std::hint::black_box;
use std::str::FromStr as _;
use std::time::{Duration, Instant};

use dnslab_client::bench::{Counted, Counts, Reading, Round, Window};
use dnslab_traffic::{Pace, QueryList, Rate, Schedule, SyntheticZone, TypeMix};
use dnslab_wire::{Cookie, Edns, QueryOptions, Transport};
use domain::base::Name;
use gungraun::{library_benchmark, library_benchmark_group, main};

/// How often each function does its work.
const TIMES: u32 = 1_000;

#[library_benchmark]
#[bench::outstanding_200(Window::new(200))]
fn in_flight_turn(mut window: Window) -> Window {
    window.turn(TIMES);
    window
}

#[library_benchmark]
#[bench::outstanding_200(Window::new(200))]
fn in_flight_expire(mut window: Window) -> Window {
    window.scan(TIMES);
    window
}

/// Counts that have their memory and some content.
fn counts() -> Counts {
    let mut counts = Counts::default();
    counts.sent(TIMES);
    counts.answered(TIMES);
    counts
}

#[library_benchmark]
#[bench::open_loop(counts())]
fn recorder_answered(mut counts: Counts) -> Counts {
    counts.answered(TIMES);
    counts
}

#[library_benchmark]
#[bench::open_loop(counts())]
fn recorder_due_and_sent(mut counts: Counts) -> Counts {
    counts.sent(TIMES);
    counts
}

/// A schedule that has begun.
fn schedule(rate: &str, pace: Pace) -> Schedule {
    let rate = Rate::from_str(rate).expect("the rate is legal");
    let mut schedule = Schedule::new(&rate, pace, 1, 0, 2);
    assert!(schedule.next().is_some());
    schedule
}

#[library_benchmark]
#[bench::constant(schedule("50000", Pace::Constant))]
#[bench::poisson(schedule("50000", Pace::Poisson))]
#[bench::steps(schedule("steps:10000,20000,40000/5s", Pace::Constant))]
#[bench::ramp(schedule("ramp:1000..100000/30s", Pace::Constant))]
#[bench::ramp_poisson(schedule("ramp:1000..100000/30s", Pace::Poisson))]
fn schedule_next(mut schedule: Schedule) -> Schedule {
    for _ in 0..TIMES {
        black_box(schedule.next());
    }
    schedule
}

fn queries(edns: Option<Edns>) -> QueryList {
    let origin = Name::from_str("example.test").expect("the name is legal");
    let zone = SyntheticZone::new(origin, TIMES, Duration::from_secs(1));
    let options = QueryOptions { edns, ..QueryOptions::default() };
    QueryList::from_zone(&zone.expect("the zone is legal"), &TypeMix::default(), 1, &options)
}

/// An A record whose owner is the question's name.
const ADDRESS: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x01\0\x04\xc0\0\x02\x01";

/// An OPT record with a COOKIE option: the client's half and the server's, 24 octets.
const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\0\0\0\x1c\0\x0a\0\x18a client16 octets of it.";

/// Octets of the OPT record of a query that has the client's half alone.
const OPT_OF_QUERY: usize = OPT.len() - 16;

/// Turns a query without an OPT record into its answer, with one A record.
fn answer(mut query: Vec<u8>) -> Vec<u8> {
    query[2] |= 0x84;
    query[7] = 1;
    query.extend(ADDRESS);
    query
}

/// Turns a query with a cookie into its answer, with the server's cookie.
fn answer_with_cookie(mut query: Vec<u8>) -> Vec<u8> {
    query.truncate(query.len() - OPT_OF_QUERY);
    let mut answer = answer(query);
    answer.extend(OPT);
    answer
}

/// Turns a query into an answer to another question.
fn answer_to_another(mut query: Vec<u8>) -> Vec<u8> {
    query[13] = b'x';
    answer(query)
}

fn good() -> Reading {
    Reading::new(queries(None), None, answer)
}

/// Good answers, with the OPT records of a client and a server that know cookies.
fn with_cookie() -> Reading {
    let cookie = Cookie::new(*b"a client");
    Reading::new(queries(Some(Edns::default())), Some(cookie), answer_with_cookie)
}

/// Answers with the right ids, but other questions.
fn unexpected() -> Reading {
    Reading::new(queries(None), None, answer_to_another)
}

/// What `make` gives, after another such reading counted this.
fn checked(make: fn() -> Reading, counted: Counted) -> Reading {
    let mut reading = make();
    reading.receive();
    assert_eq!(reading.into_counted(), counted);
    make()
}

#[library_benchmark]
#[bench::good(checked(good, Counted { answered: 1_000, ..Counted::default() }))]
#[bench::cookie(checked(with_cookie, Counted { answered: 1_000, ..Counted::default() }))]
#[bench::unexpected(checked(unexpected, Counted { unexpected: 1_000, ..Counted::default() }))]
fn matcher_receive(mut reading: Reading) -> Reading {
    reading.receive();
    reading
}

// A worker from its first query to its last, without kernel and server. It asks 50 times as many queries as
// the other functions, so that what is done once weighs little.
#[library_benchmark]
#[bench::udp_100_x_1(round(Transport::Udp, 1))]
#[bench::udp_100_x_10(round(Transport::Udp, 10))]
#[bench::tcp_100_x_1(round(Transport::Tcp, 1))]
#[bench::tcp_100_x_10(round(Transport::Tcp, 10))]
fn fifty_queries((round, origin): (Round, Instant)) -> u64 {
    let answered = round.run(origin);
    assert_eq!(answered, ROUND);
    answered
}

const ROUND: u64 = 50 * TIMES as u64;

fn round(transport: Transport, outstanding: u32) -> (Round, Instant) {
    (Round::new(transport, outstanding, ROUND, queries(None)), Instant::now())
}

library_benchmark_group!(
    name = client;
    benchmarks =
        in_flight_turn,
        in_flight_expire,
        recorder_due_and_sent,
        recorder_answered,
        schedule_next,
        matcher_receive,
        fifty_queries,
);

main!(library_benchmark_groups = client);
