use domain::base::Message;
use domain::base::iana::Rtype;
use domain::base::opt::{Cookie, ExtendedError, TcpKeepalive};
use proptest::prelude::*;

use super::*;

/// A response to `a. A`, whose record `last` is in the additional section.
fn message(rcode: u8, answers: &[u8], answer_count: u8, last: &[u8]) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 0x84, rcode, 0, 1, 0, answer_count, 0, 0, 0, 1];
    message.extend(b"\x01a\0\0\x01\0\x01");
    message.extend(answers);
    message.extend(last);
    message
}

fn opt(extended: u8, options: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0, 41, 4, 0xd0, extended, 0, 0x80, 0];
    record.extend((options.len() as u16).to_be_bytes());
    record.extend(options);
    record
}

#[track_caller]
fn check(rcode: u8, extended: u8, options: &[u8], expected: ResponseOptions<'_>) {
    // One A record with a compressed name.
    let answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04\xc0\0\x02\x01";
    let message = message(rcode, answer, 1, &opt(extended, options));
    assert_eq!(ResponseOptions::read(&message), Some(expected));
}

#[test]
fn options_are_read() {
    let plain =
        ResponseOptions { payload_size: 1232, dnssec_ok: true, ..ResponseOptions::default() };
    check(0, 0, &[], plain);
    check(7, 1, &[], ResponseOptions { rcode: crate::BADCOOKIE, ..plain });
    check(15, 255, &[], ResponseOptions { rcode: 4095, ..plain });
    let cookie = b"\0\x0a\0\x10clientxxserverxx";
    check(0, 0, cookie, ResponseOptions { cookie: Some(b"clientxxserverxx"), ..plain });
    check(0, 0, b"\0\x0a\0\0", ResponseOptions { cookie: Some(b""), ..plain });
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    check(0, 0, b"\0\x0b\0\x02\x01\x2c", ResponseOptions { keepalive: seconds(30), ..plain });
    check(0, 0, b"\0\x0b\0\0", plain);
    // Of two time-outs the first.
    let twice = b"\0\x0b\0\x02\x01\x2c\0\x0b\0\x02\x00\x00";
    check(0, 0, twice, ResponseOptions { keepalive: seconds(30), ..plain });
    let error = b"\0\x0c\0\x03\0\0\0\0\x0f\0\x04\0\x16no";
    check(2, 0, error, ResponseOptions { rcode: 2, extended_error: Some(22), ..plain });
    // An option that is longer than the record ends the reading, not what was read before.
    let broken = b"\0\x0b\0\x02\x01\x2c\0\x0a\0\x09a cookie";
    check(0, 0, broken, ResponseOptions { keepalive: seconds(30), ..plain });
}

#[test]
fn without_a_record_there_is_nothing() {
    let check = |message: &[u8]| assert_eq!(ResponseOptions::read(message), None);
    check(b"");
    check(b"\x12\x34\x84\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01");
    let good = message(0, &[], 0, &opt(0, b"\0\x0b\0\x02\x01\x2c"));
    assert!(ResponseOptions::read(&good).is_some());
    for length in 0..good.len() {
        check(&good[..length]);
    }
    // In another section, or with another owner than the root.
    check(&[&message(0, &opt(0, &[]), 1, &[])[..11], &[0], &good[12..]].concat());
    let mut named = opt(0, &[]);
    named.splice(0..1, *b"\x01a\0");
    check(&message(0, &[], 0, &named));
    // A label of a kind that does not exist.
    check(&message(0, b"\x80a\0\0\x01\0\x01\0\0\0\x05\0\0", 1, &opt(0, &[])));
}

const RECORDS: &[&[u8]] = &[
    b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04\xc0\0\x02\x01",
    b"\x03www\xc0\x0c\0\x10\0\x01\0\0\0\x05\0\x03\x02hi",
    b"\0\0\x02\0\x01\0\0\0\x05\0\x02\xc0\x0c",
    // An OPT record where none may be.
    b"\0\0\x29\x04\xd0\0\0\0\0\0\0",
];

const OPTIONS: &[&[u8]] = &[
    b"\0\x0a\0\x08clientxx",
    b"\0\x0a\0\x18clientxxserverxxserverxx",
    b"\0\x0b\0\x02\x01\x2c",
    b"\0\x0b\0\x00",
    b"\0\x0f\0\x02\0\x16",
    b"\0\x0c\0\x05\0\0\0\0\0",
    b"\xfd\xe9\0\x01x",
];

proptest! {
    #[test]
    fn any_octets_are_read_or_not(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(read) = ResponseOptions::read(&octets) {
            prop_assert!(read.rcode < 4096);
            prop_assert!(read.cookie.is_none_or(|cookie| cookie.len() < octets.len()));
        }
    }

    #[test]
    fn it_reads_what_domain_reads(
        rcode in 0u8..16,
        extended in any::<u8>(),
        answers in prop::collection::vec(prop::sample::select(RECORDS), 0..4),
        options in prop::collection::vec(prop::sample::select(OPTIONS), 0..5),
        cut in 0usize..20,
    ) {
        let opt = opt(extended, &options.concat());
        let octets = message(rcode, &answers.concat(), answers.len() as u8, &opt);
        // Half of the messages are cut short.
        let octets = &octets[..octets.len() - cut.saturating_sub(10)];
        let read = ResponseOptions::read(octets);
        let theirs = Message::from_octets(octets).unwrap();
        let last = theirs.additional().ok().and_then(|mut section| section.next()?.ok());
        let is_whole = last.is_some_and(|record| record.rtype() == Rtype::OPT);
        prop_assert_eq!(read.is_some(), is_whole);
        let (Some(read), Some(opt)) = (read, theirs.opt()) else { return Ok(()) };
        prop_assert_eq!(read.rcode, opt.rcode(theirs.header()).to_int());
        prop_assert_eq!(read.payload_size, opt.udp_payload_size());
        prop_assert_eq!(read.version, opt.version());
        let cookie = opt.opt().first::<Cookie>().map(|cookie| cookie.server().is_some());
        prop_assert_eq!(read.cookie.map(|cookie| cookie.len() > 8), cookie);
        let error = opt.opt().first::<ExtendedError<_>>().map(|error| error.code().to_int());
        prop_assert_eq!(read.extended_error, error);
        let keepalives = opt.opt().iter::<TcpKeepalive>().filter_map(Result::ok);
        let timeout = keepalives.filter_map(|keepalive| keepalive.timeout()).next();
        prop_assert_eq!(read.keepalive, timeout.map(Duration::from));
    }
}

/// What BIND 9.18.49, which wants cookies, answered to a client: over UDP without its cookie, and over TCP
/// with it.
#[test]
fn bind_is_understood() {
    const QUESTION: &str = "03777777076578616d706c650000010001";
    const COOKIE: &str = "000a00186120636c69656e74010000006b00ec2b9d8b51bbd91c15de";
    const RECORDS: &str = "c00c00010001000000050004c0000201c01000020001000000050005026e73c010c039\
                           00010001000000050004c0000235";
    let octets = |parts: &[&str]| -> Vec<u8> {
        let hex = parts.concat();
        let octet = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(octet).collect()
    };
    let refusal = octets(&["000180070001000000000001", QUESTION, "00002904d001000000001c", COOKIE]);
    let read = ResponseOptions::read(&refusal).unwrap();
    assert_eq!(crate::rcode_name(read.rcode), "BADCOOKIE");
    let mut cookie = crate::Cookie::new(*b"a client");
    assert_eq!(cookie.learn(&read), crate::CookieFinding::Learned);
    assert_eq!(cookie.server().len(), 16);
    assert_eq!(
        crate::Cookie::new(*b"somebody").learn(&read),
        crate::CookieFinding::WrongClientCookie
    );

    let answer = octets(&[
        "000384000001000100010002",
        QUESTION,
        RECORDS,
        "00002904d0000000000022",
        COOKIE,
        "000b0002012c",
    ]);
    let read = ResponseOptions::read(&answer).unwrap();
    assert_eq!((read.rcode, read.keepalive), (0, Some(Duration::from_secs(30))));
    let known = cookie;
    assert_eq!(cookie.learn(&read), crate::CookieFinding::Learned);
    assert!(cookie == known);
}
