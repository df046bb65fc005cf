//! The client against single frames (RFC 9113, sections 4 to 6).

use super::*;

const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// Settings (section 6.5.2).
const HEADER_TABLE_SIZE: u16 = 1;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;

fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = values
        .iter()
        .flat_map(|(name, value)| [name.to_be_bytes().as_slice(), &value.to_be_bytes()].concat())
        .collect();
    frame(SETTINGS, 0, 0, &payload)
}

fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

fn greeted(method: Method, values: &[(u16, u32)]) -> Client {
    let mut client = client(method, "/dns-query");
    say(&mut client, &settings(values)).unwrap();
    client
}

fn say(client: &mut Client, octets: &[u8]) -> Result<(Vec<u8>, Vec<Told>), Http2Error> {
    let (mut out, mut outcomes) = (Vec::new(), Vec::new());
    client.receive(octets);
    client.poll(&mut out, &mut |exchange| outcomes.push(exchange.into()))?;
    Ok((out, outcomes))
}

/// The frames in these octets: kind, flags, stream, payload.
fn frames(mut octets: &[u8]) -> Vec<(u8, u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let [a, b, c, kind, flags, d, e, f, g, rest @ ..] = octets {
        let (payload, rest) = rest.split_at(u32::from_be_bytes([0, *a, *b, *c]) as usize);
        frames.push((*kind, *flags, u32::from_be_bytes([*d, *e, *f, *g]), payload.to_vec()));
        octets = rest;
    }
    assert!(octets.is_empty(), "{octets:?}");
    frames
}

#[test]
fn settings_and_pings_are_answered() {
    let mut client = greeted(Method::Post, &[]);
    let (out, _) = say(&mut client, &frame(PING, 0, 0, b"12345678")).unwrap();
    assert_eq!(frames(&out), [(PING, ACK, 0, b"12345678".to_vec())]);
    let (out, _) = say(&mut client, &settings(&[(MAX_CONCURRENT_STREAMS, 2)])).unwrap();
    assert_eq!(frames(&out), [(SETTINGS, ACK, 0, Vec::new())]);
    assert_eq!(client.room(), 2);
    for silent in
        [frame(PING, ACK, 0, b"12345678"), frame(SETTINGS, ACK, 0, &[]), frame(99, 3, 7, b"x")]
    {
        assert_eq!(say(&mut client, &silent).unwrap(), (Vec::new(), Vec::new()));
    }
}

/// A server that names no limit has none (section 6.5.2).
#[test]
fn streams_that_no_setting_limits() {
    let mut client = client(Method::Get, "/dns-query");
    assert_eq!(client.room(), 100);
    say(&mut client, &settings(&[(INITIAL_WINDOW_SIZE, 1 << 20)])).unwrap();
    assert_eq!(client.room(), 1 << 16);
    // Later settings change what they name, and nothing else (section 6.5.3).
    say(&mut client, &settings(&[(MAX_CONCURRENT_STREAMS, 7)])).unwrap();
    say(&mut client, &settings(&[(INITIAL_WINDOW_SIZE, 1 << 10)])).unwrap();
    assert_eq!(client.room(), 7);
    for (limit, room) in [(0, 0), (1 << 20, 1 << 16), (u32::MAX, 1 << 16)] {
        assert_eq!(greeted(Method::Get, &[(MAX_CONCURRENT_STREAMS, limit)]).room(), room);
    }
    let (mut asking, mut outcomes) = (greeted(Method::Get, &[]), Vec::new());
    (0..101).for_each(|number| assert!(asking.send(number, &query(number)), "{number}"));
    for number in 0..101 {
        let answer = [dns_head(2 * number + 1), frame(DATA, END_STREAM, 2 * number + 1, b"\0\0")];
        outcomes.extend(say(&mut asking, &answer.concat()).unwrap().1);
    }
    assert_eq!((outcomes.len(), asking.in_flight()), (101, 0));
}

#[test]
fn a_body_waits_for_the_windows() {
    let body = |client: &mut Client, octets: &[u8]| {
        let written = frames(&say(client, octets).unwrap().0);
        let data = written.iter().filter(|(kind, ..)| *kind == DATA);
        data.map(|(_, flags, stream, part)| (*flags, *stream, part.len())).collect::<Vec<_>>()
    };
    let mut client = greeted(Method::Post, &[(INITIAL_WINDOW_SIZE, 5)]);
    let length = query(1).len();
    assert!(client.send(1, &query(1)) && client.send(2, &query(1)));
    assert_eq!(body(&mut client, &[]), [(0, 1, 5), (0, 3, 5)]);
    assert_eq!(body(&mut client, &window_update(3, 1)), [(0, 3, 1)]);
    // The settings change the windows of open streams by as much: 1 for the first, and 1 for the
    // second, which had one octet more.
    assert_eq!(body(&mut client, &settings(&[(INITIAL_WINDOW_SIZE, 6)])), [(0, 1, 1), (0, 3, 1)]);
    // Below zero it is in debt.
    assert_eq!(body(&mut client, &settings(&[(INITIAL_WINDOW_SIZE, 0)])), []);
    assert_eq!(body(&mut client, &window_update(1, 6)), []);
    let rest = (length - 6) as u32;
    assert_eq!(body(&mut client, &window_update(1, rest)), [(END_STREAM, 1, rest as usize)]);
    // The other one is given up, and its body forgotten.
    client.cancel(2);
    assert_eq!(body(&mut client, &window_update(3, 1000)), []);
    assert!(!client.is_draining());
}

#[test]
fn a_body_waits_for_the_window_of_the_connection() {
    let mut client = greeted(Method::Post, &[(INITIAL_WINDOW_SIZE, 1 << 20)]);
    let long = vec![7; 65_535];
    assert!(client.send(1, &long) && client.send(2, &query(2)));
    let data = |octets: &[u8]| -> Vec<(u8, u32, usize)> {
        let all = frames(octets).into_iter().filter(|(kind, ..)| *kind == DATA);
        all.map(|(_, flags, stream, part)| (flags, stream, part.len())).collect()
    };
    let (out, _) = say(&mut client, &[]).unwrap();
    // In frames that are no larger than they may be; nothing is left for the second.
    let sizes: Vec<usize> = data(&out).iter().map(|(.., size)| *size).collect();
    assert_eq!(sizes, [16_384, 16_384, 16_384, 16_383]);
    let (out, _) = say(&mut client, &window_update(0, 1000)).unwrap();
    assert_eq!(data(&out), [(END_STREAM, 3, query(2).len())]);
}

#[test]
fn the_server_is_told_that_its_octets_were_read() {
    let mut client = greeted(Method::Get, &[]);
    let mut window = 0;
    for number in 0..600u32 {
        assert!(client.send(1, &query(1)));
        say(&mut client, &dns_head(2 * number + 1)).unwrap();
        let body = vec![0; 16_384];
        let (out, answer) =
            say(&mut client, &frame(DATA, END_STREAM, 2 * number + 1, &body)).unwrap();
        assert_eq!(answer.len(), 1);
        for (kind, _, stream, by) in frames(&out) {
            assert_eq!((kind, stream), (WINDOW_UPDATE, 0));
            window += u32::from_be_bytes(by.try_into().unwrap());
        }
    }
    assert!(window > 8 << 20 && window <= 600 * 16_384, "{window}");
}

#[test]
fn heads_in_every_shape() {
    let answer = || vec![Told::Answer(1, b"\0\x01 right".to_vec())];
    let body = || frame(DATA, END_STREAM, 1, b"\0\0 right");
    let whole = dns_head(1);
    let block = &whole[9..];
    let padded = |kind, flags, content: &[u8]| {
        let payload = [&[3], content, b"pad".as_slice()].concat();
        frame(kind, flags | PADDED, 1, &payload)
    };
    let prioritised = [[0, 0, 0, 0, 16].as_slice(), block].concat();
    let interim = frame(HEADERS, END_HEADERS, 1, b"\x08\x03103");
    for said in [
        [padded(HEADERS, END_HEADERS, block), body()],
        [frame(HEADERS, END_HEADERS | PRIORITY, 1, &prioritised), body()],
        [whole.clone(), padded(DATA, END_STREAM, b"\0\0 right")],
        [[interim, whole.clone()].concat(), body()],
        [
            [
                frame(HEADERS, 0, 1, &block[..1]),
                frame(CONTINUATION, 0, 1, &block[1..9]),
                frame(CONTINUATION, END_HEADERS, 1, &block[9..]),
            ]
            .concat(),
            body(),
        ],
        // Fields after the body.
        [
            [whole.clone(), frame(DATA, 0, 1, b"\0\0 right")].concat(),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x00\x01a\x01b"),
        ],
    ] {
        let mut client = greeted(Method::Post, &[]);
        assert!(client.send(1, &query(1)));
        let (_, outcomes) = say(&mut client, &said.concat()).unwrap();
        assert_eq!(outcomes, answer(), "{said:?}");
        assert_eq!(client.in_flight(), 0);
    }
}

fn length_of_head(client: &mut Client, number: u16) -> usize {
    assert!(client.send(number, &query(1)));
    let (out, _) = say(client, &[]).unwrap();
    let head = frames(&out).into_iter().find(|(kind, ..)| *kind == HEADERS);
    head.unwrap().3.len()
}

#[test]
fn requests_refer_to_the_servers_table_only_while_there_is_one() {
    let mut client = greeted(Method::Post, &[]);
    let (first, second) = (length_of_head(&mut client, 1), length_of_head(&mut client, 2));
    assert!(second < 15 && first > 80, "{first} {second}");
    say(&mut client, &settings(&[(HEADER_TABLE_SIZE, 0)])).unwrap();
    assert!(length_of_head(&mut client, 3) > 80);
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    let go_away = |reason: Reason| {
        let payload = [[0; 4], u32::from(reason).to_be_bytes()].concat();
        (GOAWAY, 0, 0, payload)
    };
    for (said, reason) in [
        (frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 5]), Reason::PROTOCOL_ERROR),
        (frame(PING, 0, 0, b"1234"), Reason::FRAME_SIZE_ERROR),
        (frame(PING, 0, 1, b"12345678"), Reason::PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, b"12345"), Reason::FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 1, &[]), Reason::PROTOCOL_ERROR),
        (settings(&[(INITIAL_WINDOW_SIZE, 1 << 31)]), Reason::FLOW_CONTROL_ERROR),
        (window_update(0, 0), Reason::PROTOCOL_ERROR),
        (window_update(0, 0x7fff_ffff), Reason::FLOW_CONTROL_ERROR),
        (window_update(9, 1), Reason::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 0, &[0; 4]), Reason::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 1, &[0; 3]), Reason::FRAME_SIZE_ERROR),
        (frame(GOAWAY, 0, 0, &[0; 7]), Reason::FRAME_SIZE_ERROR),
        (frame(DATA, 0, 0, b"x"), Reason::PROTOCOL_ERROR),
        (frame(DATA, PADDED, 1, b"\x09x"), Reason::PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 2, b"\x88"), Reason::PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 1, b"\xbe"), Reason::COMPRESSION_ERROR),
        (frame(CONTINUATION, END_HEADERS, 1, b"\x88"), Reason::PROTOCOL_ERROR),
        (
            [frame(HEADERS, 0, 1, b"\x88"), frame(PING, 0, 0, b"12345678")].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [frame(HEADERS, 0, 1, b""), frame(CONTINUATION, 0, 1, &[0; 16_384]).repeat(5)].concat(),
            Reason::ENHANCE_YOUR_CALM,
        ),
    ] {
        let mut client = greeted(Method::Post, &[]);
        assert!(client.send(1, &query(1)));
        say(&mut client, &[]).unwrap();
        let mut out = Vec::new();
        client.receive(&said);
        let end = client.poll(&mut out, &mut |_| {}).unwrap_err();
        assert!(matches!(end, Http2Error::Protocol(_)), "{end} {said:?}");
        assert_eq!(frames(&out).last(), Some(&go_away(reason)), "{said:?}");
        // It stays over, and nothing more is read.
        client.receive(&dns_head(1));
        assert!(client.poll(&mut out, &mut |exchange| panic!("{exchange:?}")).is_err());
    }
    // A server that does not begin with its settings.
    let mut client = client(Method::Post, "/dns-query");
    assert!(say(&mut client, &frame(PING, 0, 0, b"12345678")).is_err());
}

#[test]
fn a_good_bye_with_an_error_is_the_reason_of_the_end() {
    let mut client = greeted(Method::Post, &[]);
    assert!(client.send(1, &query(1)));
    let payload = [0_u32.to_be_bytes(), u32::from(Reason::INADEQUATE_SECURITY).to_be_bytes()];
    let payload = [&payload.concat()[..], b"no\n cipher here"].concat();
    let (_, outcomes) = say(&mut client, &frame(GOAWAY, 0, 0, &payload)).unwrap();
    assert_eq!(outcomes, [Told::NotProcessed(1)]);
    assert!(client.is_draining() && !client.send(2, &query(2)));
    client.end();
    let end = say(&mut client, &[]).unwrap_err();
    let Http2Error::Remote(announced) = &end else { panic!("{end}") };
    assert_eq!(announced.reason, Reason::INADEQUATE_SECURITY);
    assert!(end.to_string().ends_with(": no cipher here"), "{end}");
}
