//! pcap, pcapng and frame streams, plain and compressed.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::made::*;
use crate::{CaptureError, CaptureOptions, CaptureReader, CaptureWriter, Captured, Reason};

#[test]
fn pcap_is_read_in_both_orders_and_both_units() {
    let packet = udp(client(0), server(), &query(1));
    for is_big in [false, true] {
        for (magic, at_ns) in [(0xa1b2_c3d4, 5_000_007_000), (0xa1b2_3c4d, 5_000_000_007)] {
            let mut capture = pcap_header(magic, 101, is_big);
            for number in [5, 7, packet.len() as u32, packet.len() as u32] {
                capture.extend(ordered(number, is_big));
            }
            capture.extend(&packet);
            let (seen, counts) = read(&capture);
            assert_eq!((seen.len(), seen[0].at_ns), (1, at_ns));
            assert_eq!((seen[0].client, seen[0].server), (client(0), server()));
            assert_eq!(seen[0].message, query(1));
            assert_eq!((counts.packets, counts.queries, counts.all_skipped()), (1, 1, 0));
        }
    }
}

/// Of a block of pcapng.
fn option(is_big: bool, code: u16, value: &[u8]) -> Vec<u8> {
    let number = |number: u16| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let mut option = [number(code), number(value.len() as u16)].concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

#[test]
fn pcapng_has_sections_interfaces_and_blocks_that_are_skipped() {
    let packet = udp(client(0), server(), &query(1));
    for is_big in [false, true] {
        let offset = 1_700_000_000_i64;
        let offset = if is_big { offset.to_be_bytes() } else { offset.to_le_bytes() };
        let length = packet.len() as u32;
        // As long as the snap length.
        let padded = [&packet[..], &[0; 60]].concat()[..60].to_vec();
        let nanoseconds = [
            option(is_big, 2, b"eth0"),
            option(is_big, 9, b"\x09"),
            option(is_big, 14, &offset),
            option(is_big, 0, b""),
        ];
        let old = {
            // Interface 1 and a number of packets that were lost.
            let first = if is_big { [0, 1, 0, 9] } else { [1, 0, 9, 0] };
            let numbers = [0, 250, length, length].map(|number| ordered(number, is_big)).concat();
            block(2, &[&first, &numbers[..], &packet].concat(), is_big)
        };
        let capture = [
            section(is_big),
            interface(101, 0, b"", is_big),
            interface(1, 0, &nanoseconds.concat(), is_big),
            // Names, statistics, secrets and what nobody knows, one of them longer than what is read at once.
            block(4, b"names", is_big),
            block(0x0bad, &vec![7; 700_000], is_big),
            block(0x8000_0001, b"", is_big),
            enhanced(0, 3_000_000, &packet, is_big),
            enhanced(1, 250, &ethernet(&packet), is_big),
            // Its link type is that of interface 1, so this is no IP.
            old,
            section(!is_big),
            interface(101, 60, b"", !is_big),
            block(3, &[&ordered(length, !is_big)[..], &packet].concat(), !is_big),
            enhanced(0, 9_000_000, &packet, !is_big),
            block(3, &[&ordered(length, !is_big)[..], &packet].concat(), !is_big),
            block(3, &[&ordered(9_999, !is_big)[..], &padded].concat(), !is_big),
        ]
        .concat();
        let (seen, counts) = read(&capture);
        let times: Vec<u64> = seen.iter().map(|query| query.at_ns).collect();
        // A simple packet has the time of the packet before it.
        let second = 1_700_000_000_000_000_250;
        assert_eq!(
            times,
            [3_000_000_000, second, second, 9_000_000_000, 9_000_000_000, 9_000_000_000]
        );
        assert!(seen.iter().all(|seen| seen.message == query(1)));
        assert_eq!(counts.packets, 7);
        assert_eq!(counts.reasons().collect::<Vec<_>>(), [(Reason::NotIp, 1)]);
    }
}

/// A capture of 40 queries in each container.
fn each_container() -> Vec<(&'static str, Vec<u8>)> {
    let packets: Vec<_> = (0..40).map(|number| udp(client(0), server(), &query(number))).collect();
    let mut blocks = [section(false), interface(101, 0, b"", false)].concat();
    let mut dnstap = CaptureWriter::dnstap(Vec::new()).unwrap();
    for (number, packet) in packets.iter().enumerate() {
        blocks.extend(enhanced(0, number as u64, packet, false));
        let message = &query(number as u32);
        let (client, server) = (client(0), server());
        let transport = dnslab_wire::Transport::Dot;
        dnstap.write(&Captured { at_ns: 5, client, server, transport, message }).unwrap();
    }
    vec![("pcap", pcap(&packets)), ("pcapng", blocks), ("dnstap", dnstap.finish().unwrap())]
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(octets).unwrap();
    encoder.finish().unwrap()
}

fn zstd(octets: &[u8]) -> Vec<u8> {
    compress_to_vec(octets, CompressionLevel::Fastest)
}

fn forty() -> Vec<Vec<u8>> {
    (0..40).map(query).collect()
}

#[test]
fn each_container_is_read_compressed_also_in_pieces() {
    for (name, capture) in each_container() {
        let (first, second) = capture.split_at(capture.len() / 3);
        let skippable = b"\x53\x2a\x4d\x18\x05\0\0\0hello".to_vec();
        for (how, octets) in [
            ("plain", capture.clone()),
            ("gzip", gzip(&capture)),
            ("gzip members", [gzip(first), gzip(b""), gzip(second)].concat()),
            ("zstd", zstd(&capture)),
            ("zstd frames", [zstd(first), skippable.clone(), zstd(b""), zstd(second)].concat()),
            ("zstd skippable", [skippable, zstd(&capture)].concat()),
        ] {
            let (seen, counts) = read(&octets);
            assert_eq!(messages(&seen), forty(), "{name} {how}");
            assert_eq!(counts.packets, 40);
        }
    }
}

/// Reads a part of a capture, which gives the first queries and says that it was cut.
#[track_caller]
fn check_cut(part: &[u8], what: &str) -> usize {
    let (seen, counts, end) = read_with(part, CaptureOptions::default());
    assert_eq!(messages(&seen), forty()[..seen.len()], "{what}");
    match end {
        Ok(()) | Err(CaptureError::Empty) => {}
        Err(CaptureError::Cut { packets, offset, .. }) => {
            assert_eq!(packets, counts.packets);
            assert!(offset <= 100_000);
        }
        Err(CaptureError::Unknown { first }) => assert!(first.len() < 4, "{what}"),
        Err(error) => panic!("{what}: {error}"),
    }
    seen.len()
}

#[test]
fn a_cut_capture_gives_all_packets_before() {
    for (name, capture) in each_container() {
        let mut most = 0;
        for length in 0..capture.len() {
            let seen = check_cut(&capture[..length], &format!("{name} {length}"));
            assert!(seen >= most);
            most = seen;
        }
        // dnstap ends with STOP.
        assert_eq!(most, if name == "dnstap" { 40 } else { 39 });
        for (how, octets) in [("gzip", gzip(&capture)), ("zstd", zstd(&capture))] {
            for length in 0..octets.len() {
                let part = &octets[..length];
                let seen = check_cut(part, &format!("{name} {how} {length}"));
                let (_, _, end) = read_with(part, CaptureOptions::default());
                assert!(end.is_err(), "{name} {how} {length}: {seen} were read");
            }
        }
    }
}

#[test]
fn a_cut_capture_says_where() {
    let capture = pcap(&[udp(client(0), server(), &query(1)), udp(client(0), server(), &query(2))]);
    let error = read_with(&capture[..capture.len() - 1], CaptureOptions::default()).2.unwrap_err();
    let second = 24 + 16 + udp(client(0), server(), &query(1)).len();
    let expected = format!(
        "the capture ends at octet {second}, after 1 packets, where a whole packet was expected: it was cut, or \
         somebody is still writing it"
    );
    assert_eq!(error.to_string(), expected);
}

#[track_caller]
fn check_error(capture: &[u8], expected: &str) {
    let error = read_with(capture, CaptureOptions::default()).2.unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn what_is_no_capture_is_named() {
    check_error(b"", "the capture is empty");
    check_error(
        b"abc",
        "it begins with `abc`; pcap, pcapng and dnstap are read, plain or compressed",
    );
    check_error(b"www.example A\n", "it begins with `www.`");
    check_error(
        b"\xfd7zXZ\0rest",
        "it is compressed with xz: decompress it first (`xz -dc FILE > OTHER`)",
    );
    check_error(b"\x04\x22\x4d\x18rest", "lz4: decompress it first (`lz4 -dc FILE > OTHER`)");
    check_error(b"\x83\x65C-DNSrest", "it is C-DNS");
    check_error(b"\xa1\xb2\xcd\x34rest", "it is a modified pcap");
    check_error(&pcap_header(0xa1b2_c34d, 1, true), "it begins with");
    check_error(&[0; 40], "has no START frame of dnstap");
    check_error(b"\0\0\0\0\0\0\0\x04\0\0\0\x04", "begins with a handshake (READY)");
    let mut other = Vec::new();
    crate::frame_streams::push_control(&mut other, 2, Some(b"protobuf:other"));
    check_error(&other, "carries `protobuf:other`, not `protobuf:dnstap.Dnstap`");
    check_error(&gzip(b"hello"), "it begins with `hell`");
}

#[test]
fn damage_is_named_with_its_place() {
    let packet = udp(client(0), server(), &query(1));
    let good = pcap(std::slice::from_ref(&packet));
    let mut long = good.clone();
    long.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0x20, 0]);
    check_error(
        &long,
        &format!(
            "damaged at octet {}, after 1 packets: a packet of 2097152 octets is announced",
            good.len()
        ),
    );
    let start = [section(false), interface(101, 0, b"", false)].concat();
    let check =
        |rest: &[u8], expected| check_error(&[start.clone(), rest.to_vec()].concat(), expected);
    check(&enhanced(7, 0, &packet, false), "from interface 7, and its section has only 1");
    check(
        &[6, 0, 0, 0, 33, 0, 0, 0, 0, 0, 0, 0],
        "has a length of 33, which must be a multiple of 4",
    );
    check(&[9, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0], "a block of type 0x9 has a length of 8");
    check(&[6, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0], "a block of 1073741824 octets is announced");
    check(&[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 1, 1, 1], "no byte-order magic");
    let mut wrong = enhanced(0, 0, &packet, false);
    let end = wrong.len() - 4;
    wrong[end] = 1;
    check(&wrong, "before it and 1 behind it");
    let mut wrong = block(0x0bad, b"abcd", false);
    wrong[12] = 99;
    check(&wrong, "the length of a block is 16 before it and 99 behind it");
    let mut beyond = enhanced(0, 0, &packet, false);
    beyond[20] = 200;
    check(&beyond, "a packet of 200 octets is in a block that has room for");
    let mut frames = Vec::new();
    crate::frame_streams::push_control(&mut frames, 2, None);
    check_error(&[&frames[..], b"\0\x20\0\0"].concat(), "a frame of 2097152 octets is announced");
    let mut again = frames.clone();
    crate::frame_streams::push_control(&mut again, 4, None);
    check_error(&again, "a control frame of type 4 and 4 octets stands among the frames");
}

#[test]
fn compressed_damage_is_named() {
    for (name, octets) in
        [("gzip", gzip(&each_container()[0].1)), ("zstd", zstd(&each_container()[0].1))]
    {
        let mut changed = octets.clone();
        // In the checksum at the end; gzip has the length behind it.
        let at = changed.len() - if name == "gzip" { 8 } else { 4 };
        changed[at] ^= 1;
        let (_, _, end) = read_with(&changed, CaptureOptions::default());
        let Err(CaptureError::Compressed { compression, .. }) = end else { panic!("{end:?}") };
        assert_eq!(compression, name);
        let behind = [&octets[..], b"garbage that is as long as a header is"].concat();
        let (seen, _, end) = read_with(&behind, CaptureOptions::default());
        assert!(matches!(end, Err(CaptureError::Compressed { .. })), "{end:?}");
        assert_eq!(messages(&seen), forty());
    }
}

#[test]
fn a_reader_that_fails_says_so_also_below_a_decoder() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    for capture in [pcap(&[]), gzip(&pcap(&[])), zstd(&pcap(&[]))] {
        // gzip and zstd have at least eight octets behind the data.
        let part = if capture.len() == 24 { &capture[..] } else { &capture[..capture.len() - 4] };
        let mut reader = CaptureReader::new(part.chain(Broken), CaptureOptions::default()).unwrap();
        let error = reader.next().unwrap_err().to_string();
        assert_eq!(error, "cannot read the capture after 0 packets: the disk is gone");
    }
}

#[test]
fn a_frame_stream_may_have_other_control_frames_and_others_may_follow_it() {
    let dnstap = &each_container()[2].1;
    let mut unknown = Vec::new();
    crate::frame_streams::push_control(&mut unknown, 99, Some(b"whatever"));
    let start = 12 + 8 + 22;
    let capture = [&dnstap[..start], &unknown, &dnstap[start..]].concat();
    assert_eq!(messages(&read(&capture).0), forty());
    // As `cat` joins files, also where the first has no STOP because its writer was killed.
    let eighty = [forty(), forty()].concat();
    assert_eq!(messages(&read(&[&dnstap[..], dnstap].concat()).0), eighty);
    let killed = &dnstap[..dnstap.len() - 12];
    assert_eq!(messages(&read(&[killed, dnstap].concat()).0), eighty);
    assert_eq!(messages(&read(&[gzip(dnstap), gzip(dnstap)].concat()).0), eighty);
    for behind in [&b"what is behind is no other stream"[..], &[0; 64]] {
        let (seen, _, end) = read_with(&[&dnstap[..], behind].concat(), CaptureOptions::default());
        assert_eq!(messages(&seen), forty());
        let error = end.unwrap_err().to_string();
        assert!(error.contains("what follows the last stream is no START frame"), "{error}");
    }
    let mut other = Vec::new();
    crate::frame_streams::push_control(&mut other, 2, Some(b"protobuf:other"));
    check_error(&[&dnstap[..], &other].concat(), "carries `protobuf:other`");
    // A sender need not say what it carries.
    let mut silent = Vec::new();
    crate::frame_streams::push_control(&mut silent, 2, None);
    assert_eq!(messages(&read(&[&silent, &dnstap[start..]].concat()).0), forty());
}

fn dnstap_frame(kind: i32, socket_protocol: i32, number: u32, id: u8) -> Vec<u8> {
    use crate::dnstap::{Dnstap, MESSAGE, Message};
    use prost::Message as _;
    let mut octets = query(number);
    octets[0] = id;
    let mut message = Message {
        kind,
        socket_family: 1,
        socket_protocol,
        query_address: vec![192, 0, 2, 1],
        query_port: 40_000,
        query_time_sec: 5,
        ..Message::default()
    };
    if kind == 6 {
        octets[2] |= 0x82;
        message.response_message = octets;
    } else {
        message.query_message = octets;
    }
    Dnstap { message, kind: MESSAGE }.encode_to_vec()
}

#[test]
fn dnstap_says_which_answers_were_truncated() {
    let mut writer = crate::FrameWriter::new(Vec::new()).unwrap();
    // A query over UDP, its truncated answer, and the query over TCP; then one without an answer.
    for frame in [
        dnstap_frame(5, 1, 1, 7),
        dnstap_frame(6, 1, 1, 7),
        dnstap_frame(5, 2, 1, 8),
        dnstap_frame(5, 1, 2, 7),
        dnstap_frame(5, 2, 2, 8),
    ] {
        writer.write(&frame).unwrap();
    }
    let options = CaptureOptions { skips_repeats: true, ..CaptureOptions::default() };
    let (seen, counts, _) = read_with(&writer.finish().unwrap(), options);
    assert_eq!(seen.len(), 3);
    assert_eq!(counts.skipped(Reason::RepeatedOverTcp), 1);
    assert_eq!(counts.skipped(Reason::DnstapKind), 1);
    let left_out =
        ["repeated-over-tcp", "dnstap-kind client responses"].map(|name| (name.to_owned(), 1));
    assert_eq!(counts.left_out(), left_out);
}
