//! Nothing of a capture is lost or changed in silence: small captures with one oddity each, through `dnslab replay` and
//! `dnslab profile`.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use dnslab_capture::FrameWriter;
use dnslab_figures::Counters;
use dnslab_record::RunRecord;
use dnslab_wire::{Additions, Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;

use crate::evidence::{measured, valid_records};
use crate::room::Room;
use crate::running_server::{RunningBind, serve};

const SECOND_NS: u64 = 1_000_000_000;
const BEGIN_NS: u64 = 1_700_000_000 * SECOND_NS;
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

// Link types.
const ETHERNET: u32 = 1;
const COOKED: u32 = 113;

/// A query for a host of the tests' zone. Those with numbers of as many digits are of one length.
fn message(id: u16) -> Vec<u8> {
    let name: Name<Vec<u8>> = format!("host{}.example.test", id % 10).parse().unwrap();
    let options = QueryOptions { recursion_desired: true, edns: None };
    let query = Query::new(&name, Rtype::A, &options).unwrap();
    let mut message = Vec::new();
    query.append_to(id, &Additions::default(), &mut message);
    message
}

/// A packet of IPv4 from the client to the server.
fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 7, 0, 0, 64, protocol, 0, 0]);
    packet.extend([CLIENT.octets(), SERVER.octets()].concat());
    packet.extend(payload);
    packet
}

/// A datagram to this port.
fn udp(port: u16, data: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    for number in [40_000, port, 8 + data.len() as u16, 0] {
        payload.extend(number.to_be_bytes());
    }
    payload.extend(data);
    packet(17, &payload)
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    [b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\0", packet].concat()
}

/// What `tcpdump -i any` writes, with the kind of a packet: 4 for one that was sent.
fn cooked(kind: u8, packet: &[u8]) -> Vec<u8> {
    [&[0, kind, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], packet].concat()
}

/// Writes a capture of frames with their times.
fn capture(room: &Room, link_type: u32, frames: &[(u64, Vec<u8>)]) {
    let mut file = Vec::new();
    for number in [0xa1b2_3c4d, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend(u32::to_le_bytes(number));
    }
    for (at_ns, frame) in frames {
        let length = frame.len() as u64;
        for number in [at_ns / SECOND_NS, at_ns % SECOND_NS, length, length] {
            file.extend((number as u32).to_le_bytes());
        }
        file.extend(frame);
    }
    fs::write(room.path().join("capture.pcap"), file).unwrap();
}

/// Queries ten milliseconds apart, each as this frame.
fn every_ten_ms(count: u16, frame: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<(u64, Vec<u8>)> {
    (0..count)
        .map(|id| (BEGIN_NS + u64::from(id) * 10_000_000, frame(udp(53, &message(id)))))
        .collect()
}

fn framed(packet: Vec<u8>) -> Vec<u8> {
    ethernet(&packet)
}

/// Plays the capture against the embedded server.
#[track_caller]
fn replay(room: &Room, further: &[&str]) -> RunRecord {
    let (_running, at) = serve(room, "127.0.0.1", &[]);
    replay_against(room, &at(Transport::Udp).to_string(), further)
}

#[track_caller]
fn replay_against(room: &Room, target: &str, further: &[&str]) -> RunRecord {
    let words = ["replay", "capture.pcap", target];
    room.dnslab(&[&words[..], further].concat()).exits_with(0);
    valid_records(&room.results(), 1).remove(0)
}

#[track_caller]
fn answered(record: &RunRecord, expected: u64) -> &Counters {
    let counters = &measured(record).counters;
    let outcomes = &counters.outcomes;
    assert_eq!((outcomes.due, outcomes.answered), (expected, expected), "{}", record.load.queries);
    counters
}

#[track_caller]
fn says(record: &RunRecord, expected: &str) {
    assert!(record.load.queries.contains(expected), "{}", record.load.queries);
}

#[test]
fn packets_that_were_captured_twice_are_played_once() {
    let room = Room::with_load();
    let mut frames = Vec::new();
    for (at_ns, frame) in every_ten_ms(120, |packet| packet) {
        // Each once at a port and once at the bridge.
        frames.push((at_ns, cooked(0, &frame)));
        frames.push((at_ns + 3_000, cooked(2, &frame)));
    }
    // A client that did not get an answer in time.
    let again = frames[0].1.clone();
    frames.push((BEGIN_NS + 1_500_000_000, again));
    capture(&room, COOKED, &frames);
    let record = replay(&room, &[]);
    answered(&record, 121);
    says(&record, "121 queries of 1 client in ");
    says(&record, "left out: 120 (duplicate)");
    let profile = room.dnslab(&["profile", "capture.pcap"]).exits_with(0);
    profile
        .complains("found from 120 queries of 1 client")
        .complains("note: not read: 120 (duplicate)");
}

#[test]
fn octets_behind_a_query_are_sent_as_they_were() {
    let room = Room::with_load();
    let frames = every_ten_ms(150, |packet| {
        let data = &packet[28..];
        ethernet(&udp(53, &[data, &[0; 200]].concat()))
    });
    capture(&room, ETHERNET, &frames);
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let record = replay_against(&room, &bind.target("udp"), &[]);
    let counters = answered(&record, 150);
    assert_eq!(counters.answers.rcodes.get("NOERROR"), Some(&150), "{counters:?}");
    assert_eq!(counters.sent_octets, 150 * (message(0).len() as u64 + 200));
    room.dnslab(&["profile", "capture.pcap"]).exits_with(0).complains("found from 150 queries");
}

#[test]
fn segmented_datagrams_are_taken_apart() {
    let room = Room::with_load();
    let frames: Vec<_> = (0..60_u16)
        .map(|number| {
            let data = [0, 1, 2].map(|part| message(number * 3 + part)).concat();
            (BEGIN_NS + u64::from(number) * 20_000_000, ethernet(&udp(53, &data)))
        })
        .collect();
    capture(&room, ETHERNET, &frames);
    let record = replay(&room, &[]);
    answered(&record, 180);
    says(&record, "taken apart: 60 datagrams with 180 queries");
    room.dnslab(&["profile", "capture.pcap"])
        .exits_with(0)
        .complains("found from 180 queries")
        .complains("note: taken apart: 60 datagrams with 180 queries");
}

#[test]
fn tunnels_are_unpacked_and_said() {
    let room = Room::with_load();
    let frames = every_ten_ms(120, |packet| {
        let inner = [b"\x08\0\0\0\0\0\x2a\0", &ethernet(&packet)[..]].concat();
        ethernet(&udp(4789, &inner))
    });
    capture(&room, ETHERNET, &frames);
    let record = replay(&room, &[]);
    answered(&record, 120);
    says(&record, "unpacked: 120 packets of vxlan");
}

#[test]
fn one_wrong_clock_is_left_out() {
    let right = every_ten_ms(300, framed);
    let wrong = ethernet(&udp(53, &message(999)));
    let before = [&[(5 * SECOND_NS, wrong.clone())][..], &right].concat();
    let days_later = BEGIN_NS + 40 * 86_400 * SECOND_NS;
    let after = [&right[..], &[(days_later, wrong.clone())]].concat();
    let within = [&right[..150], &[(days_later, wrong)], &right[150..]].concat();
    for frames in [before, after, within] {
        let room = Room::with_load();
        capture(&room, ETHERNET, &frames);
        let record = replay(&room, &[]);
        answered(&record, 300);
        says(&record, "300 queries of 1 client in 2.99 s");
        says(&record, "left out: 1 (out-of-time)");
        let done = room.dnslab(&["profile", "capture.pcap"]).exits_with(0);
        done.complains("100 queries per second").complains("note: not read: 1 (out-of-time)");
    }
}

#[test]
fn silence_is_a_part_of_a_capture() {
    let room = Room::with_load();
    let at_ms = [0, 100, 200, 2_000, 5_000];
    let frames: Vec<_> = (0..)
        .zip(at_ms)
        .map(|(id, at)| (BEGIN_NS + at * 1_000_000, ethernet(&udp(53, &message(id)))))
        .collect();
    capture(&room, ETHERNET, &frames);
    let record = replay(&room, &["--duration", "1500ms"]);
    answered(&record, 3);
    let long = ["replay", "capture.pcap", "127.0.0.1:1", "--duration", "9s"];
    room.dnslab(&long)
        .exits_with(2)
        .complains("is 5.00 s long, too short for a load of 9.00 s of it");
}

#[test]
fn what_a_profile_lacks_is_said() {
    let room = Room::quiet();
    let mut frames = every_ten_ms(41, framed);
    frames.last_mut().unwrap().0 = BEGIN_NS + 85 * SECOND_NS;
    frames
        .push((BEGIN_NS + 86 * SECOND_NS, b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\x06arp".to_vec()));
    capture(&room, ETHERNET, &frames);
    let path = room.path().join("capture.pcap");
    let profile = || room.dnslab(&["profile", "capture.pcap"]).exits_with(2);
    profile().complains(
        "has only 41 queries in 85 s: at least 100 queries over at least 1 s are needed; left out: 1 (not-ip)",
    );
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    profile().complains("are needed; the capture ends at octet ").complains("it was cut");
    capture(&room, ETHERNET, &every_ten_ms(100, framed));
    profile().complains("has only 100 queries in 990 ms: at least 100 queries over at least 1 s");
    capture(&room, ETHERNET, &every_ten_ms(1, framed));
    profile().complains("has only 1 query in ");
}

#[test]
fn a_link_type_that_is_not_read_is_named_by_its_number() {
    let room = Room::quiet();
    capture(&room, 105, &every_ten_ms(4, framed));
    for words in [&["profile", "capture.pcap"][..], &["replay", "capture.pcap", "127.0.0.1:1"]] {
        let done = room.dnslab(words).exits_with(2);
        done.complains("it has: 4 (unknown-link-type 105): docs/REPLAY.md names the link types");
    }
}

/// A frame about a response over UDP to the query with this id.
fn dnstap_response(id: u16) -> Vec<u8> {
    let at_ns = BEGIN_NS + u64::from(id) * 10_000_000;
    let mut response = message(id);
    response[2] |= 0x80;
    // CLIENT_RESPONSE over IPv4 and UDP, with the client, its port, the instant and the message.
    let mut fields = vec![0x08, 6, 0x10, 1, 0x18, 1, 0x22, 4];
    fields.extend(CLIENT.octets());
    fields.extend(
        [&[0x30][..], &varint(40_000), &[0x60], &varint(at_ns / SECOND_NS), &[0x6d]].concat(),
    );
    fields.extend(((at_ns % SECOND_NS) as u32).to_le_bytes());
    fields.extend([&[0x72][..], &varint(response.len() as u64), &response].concat());
    [&[0x72][..], &varint(fields.len() as u64), &fields, &[0x78, 1]].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut octets = Vec::new();
    while number >= 0x80 {
        octets.push(number as u8 | 0x80);
        number >>= 7;
    }
    octets.push(number as u8);
    octets
}

#[test]
fn dnstap_without_what_is_asked_for_says_how_to_get_it() {
    let room = Room::with_load();
    let mut writer = FrameWriter::new(Vec::new()).unwrap();
    (0..150).for_each(|id| writer.write(&dnstap_response(id)).unwrap());
    let once = writer.finish().unwrap();
    let path = room.path().join("capture.pcap");
    fs::write(&path, &once).unwrap();
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target: SocketAddr = at(Transport::Udp);
    let target = target.to_string();
    let done = room.dnslab(&["replay", "capture.pcap", &target]).exits_with(2);
    let done = done.complains(
        "no DNS query in messages about queries of the kinds client, auth; it has: 150 (dnstap-kind client responses)",
    );
    assert!(!done.stderr.contains("port 53"), "{done}");
    let remedy = done.stderr.split('`').find(|part| part.starts_with("--")).unwrap().to_owned();
    assert_eq!(remedy, "--dnstap-source responses");
    let remedy: Vec<&str> = remedy.split(' ').collect();
    let record = replay_against(&room, &target, &remedy);
    answered(&record, 150);
    // Only what servers ask others is there.
    let words =
        [&["profile", "capture.pcap", "--dnstap-messages", "resolver"][..], &remedy].concat();
    let done = room.dnslab(&words).exits_with(2);
    done.complains("`--dnstap-messages client` takes them");
    // Two files that somebody joined: the second has the same queries again.
    fs::write(&path, [&once[..], &once].concat()).unwrap();
    let words = [&["profile", "capture.pcap"][..], &remedy].concat();
    room.dnslab(&words).exits_with(0).complains("50.0 % were repetitions");
}
