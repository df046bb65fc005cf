//! What is in packets: link types, IP, UDP and fragments.

use proptest::prelude::*;

use crate::made::*;
use crate::{CaptureOptions, Counts, Reason, Tunnel};

/// One packet of a link type, of which so many octets were captured.
fn one(link_type: u32, packet: &[u8], captured: usize) -> (Vec<Seen>, Counts) {
    let mut capture = pcap_header(0xa1b2_c3d4, link_type, false);
    for number in [1, 0, captured as u32, packet.len() as u32] {
        capture.extend(ordered(number, false));
    }
    capture.extend(&packet[..captured]);
    read(&capture)
}

#[track_caller]
fn check(link_type: u32, packet: &[u8]) {
    let (seen, counts) = one(link_type, packet, packet.len());
    assert_eq!(messages(&seen), [query(1)], "{counts:?}");
}

#[track_caller]
fn check_skipped(link_type: u32, packet: &[u8], reason: Reason) {
    let (seen, counts) = one(link_type, packet, packet.len());
    assert_eq!(seen, []);
    assert_eq!(counts.reasons().collect::<Vec<_>>(), [(reason, 1)]);
}

#[test]
fn every_link_type_is_read() {
    for packet in [udp(client(0), server(), &query(1)), udp(client6(0), server6(), &query(1))] {
        let framed = ethernet(&packet);
        let kind = &framed[12..14];
        let tagged = [&framed[..12], b"\x81\0\0\x07", &framed[12..]].concat();
        let twice = [&framed[..12], b"\x88\xa8\0\x08\x81\0\0\x07", &framed[12..]].concat();
        check(1, &framed);
        check(1, &tagged);
        check(1, &twice);
        // What is behind the IP packet, as the padding of a short frame and its checksum, does not count.
        check(1, &[&framed[..], b"padding"].concat());
        check(113, &[&[0; 14], kind, &packet].concat());
        check(276, &[kind, &[0; 18], &packet].concat());
        check(
            0,
            &[if packet[0] >> 4 == 4 { b"\x02\0\0\0" } else { b"\x1e\0\0\0" }, &packet[..]]
                .concat(),
        );
        check(
            108,
            &[if packet[0] >> 4 == 4 { b"\0\0\0\x02" } else { b"\0\0\0\x18" }, &packet[..]]
                .concat(),
        );
        check(101, &packet);
        let (labelled, session): (&[u8], &[u8]) = match kind {
            b"\x08\0" => (b"\x88\x47\0\x06\x41\x40", b"\x88\x64\x11\0\0\x01\0\x3a\0\x21"),
            _ => (b"\x88\x47\0\x06\x41\x40", b"\x88\x64\x11\0\0\x01\0\x3a\0\x57"),
        };
        check(1, &[&framed[..12], labelled, &packet].concat());
        check(1, &[&framed[..12], session, &packet].concat());
        let family = if packet[0] >> 4 == 4 { 2 } else { 10 };
        check(239, &[&[family, 0, 0, 0, 0x3c, 0, 9, 0], &packet[..]].concat());
        check_skipped(147, &packet, Reason::UnknownLinkType);
    }
    check_skipped(1, b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x08\x06\0\x01", Reason::NotIp);
}

#[test]
fn the_upper_bits_of_a_link_type_say_something_else() {
    let packet = ethernet(&udp(client(0), server(), &query(1)));
    // The checksum behind the packet, its length, and bits that mean nothing yet.
    for bits in [0x0400_0000, 0x2400_0000, 0xf000_0000, 0x0001_0000, 0xffff_0000] {
        check(bits | 1, &[&packet[..], b"fcs!"].concat());
    }
}

#[test]
fn what_is_not_read_is_named_by_its_number_or_its_kind() {
    let packet = udp(client(0), server(), &query(1));
    let named = [interface(147, 0, b"", false), interface(105, 0, b"", false)].concat();
    let packets = [0, 1, 1].map(|interface| enhanced(interface, 0, &packet, false)).concat();
    let (_, counts) = read(&[section(false), named, packets].concat());
    let expected =
        [("unknown-link-type 147".to_owned(), 1), ("unknown-link-type 105".to_owned(), 2)];
    assert_eq!(counts.left_out(), expected);
    assert_eq!(counts.skipped(Reason::UnknownLinkType), 3);
    // Somebody plays with the numbers.
    let interfaces: Vec<u8> =
        (0..40).flat_map(|number| interface(1_000 + number, 0, b"", false)).collect();
    let packets: Vec<u8> = (0..40).flat_map(|number| enhanced(number, 0, &packet, false)).collect();
    let (_, counts) = read(&[section(false), interfaces, packets].concat());
    assert_eq!(counts.unknown_link_types().len(), 16);
    assert_eq!(counts.left_out().iter().map(|(_, count)| count).sum::<u64>(), 40);
}

/// What is before a packet of IPv4 in each kind of tunnel, from the outer addresses on.
fn in_tunnel(tunnel: Tunnel, packet: &[u8]) -> Vec<u8> {
    let ends = ("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:4789".parse().unwrap());
    let framed = ethernet(packet);
    let carried = |protocol, parts: &[&[u8]]| ip(ends.0, ends.1, protocol, &parts.concat());
    match tunnel {
        Tunnel::IpInIp => carried(4, &[packet]),
        Tunnel::Gre => carried(47, &[b"\0\0\x08\0", packet]),
        Tunnel::Erspan => carried(47, &[b"\x10\0\x88\xbe\0\0\0\0\x10\0\0\0\0\0\0\0", &framed]),
        Tunnel::Vxlan => udp(ends.0, ends.1, &[b"\x08\0\0\0\0\0\x2a\0", &framed[..]].concat()),
        Tunnel::Geneve => {
            let to = "10.0.0.2:6081".parse().unwrap();
            udp(ends.0, to, &[b"\x01\0\x65\x58\0\0\x2a\0opts", &framed[..]].concat())
        }
    }
}

#[test]
fn tunnels_are_entered_and_counted() {
    let packet = udp(client(0), server(), &query(1));
    for tunnel in Tunnel::ALL {
        let (seen, counts) =
            one(101, &in_tunnel(tunnel, &packet), in_tunnel(tunnel, &packet).len());
        assert_eq!(
            (seen.len(), seen[0].client, seen[0].server),
            (1, client(0), server()),
            "{tunnel}"
        );
        assert_eq!(seen[0].message, query(1));
        assert_eq!(counts.tunnels().collect::<Vec<_>>(), [(tunnel, 1)]);
        assert_eq!((counts.packets, counts.all_skipped()), (1, 0));
        // Each part of it has its reason.
        let whole = in_tunnel(tunnel, &packet);
        for captured in 0..whole.len() {
            let (seen, counts) = one(101, &whole, captured);
            assert_eq!(
                (seen.len(), counts.skipped(Reason::SnapLength)),
                (0, 1),
                "{tunnel} {captured}"
            );
        }
        // An inner packet that is too short for its datagram, and what is no IP.
        let mut wrong = whole.clone();
        let inner = whole.len() - packet.len();
        wrong[inner + 3] -= 1;
        check_skipped(101, &wrong, Reason::MalformedPacket);
        wrong[inner] = 0;
        check_skipped(101, &wrong, Reason::MalformedPacket);
    }
    check_skipped(101, &ip(client(0), server(), 47, b"\x20\x01\x88\x0b\0\0\0\0"), Reason::NotIp);
    check_skipped(101, &ip(client(0), server(), 50, b"encrypted"), Reason::OtherProtocol);
}

#[test]
fn tunnels_are_in_tunnels_up_to_a_limit() {
    let mut packet = udp(client(0), server(), &query(1));
    for depth in 0..=9 {
        let (seen, counts) = one(101, &packet, packet.len());
        assert_eq!(seen.len(), usize::from(depth <= 8), "{depth}");
        assert_eq!(counts.skipped(Reason::NestedTunnels), u64::from(depth > 8));
        packet = in_tunnel(Tunnel::ALL[depth % 5], &packet);
    }
}

#[test]
fn fragments_are_put_together_inside_and_outside_of_tunnels() {
    let packet = udp(client(0), server(), &long_query(1, 3_000));
    let inner: Vec<_> =
        fragments(&packet, 7, 1_200).iter().map(|part| in_tunnel(Tunnel::Gre, part)).collect();
    let outer = fragments(&in_tunnel(Tunnel::Vxlan, &packet), 7, 1_200);
    let last = fragments(inner.last().unwrap(), 9, 200);
    let both = [&inner[..2], &last[..]].concat();
    for (what, parts) in [("inner", inner), ("outer", outer), ("both", both)] {
        let (seen, counts) = read(&pcap(&parts));
        assert_eq!(messages(&seen), [long_query(1, 3_000)], "{what}");
        assert_eq!((counts.carriers, counts.all_skipped()), (parts.len() as u64 - 1, 0), "{what}");
    }
}

/// What a replay reads.
#[track_caller]
fn read_for_replay(capture: &[u8]) -> (Vec<Seen>, Counts) {
    let options = CaptureOptions { skips_repeats: true, ..CaptureOptions::default() };
    let (seen, counts, end) = read_with(capture, options);
    end.unwrap();
    (seen, counts)
}

#[test]
fn packets_that_were_captured_twice_are_one_query() {
    let same = udp(client(0), server(), &query(1));
    // Its identification of IP is its own.
    let mut again = same.clone();
    again[5] = 8;
    let inner = in_tunnel(Tunnel::Vxlan, &udp(client(0), server(), &query(3)));
    let packets = [
        (ms(0), same.clone()),
        (ms(0) + 3_000, same.clone()),
        (ms(1), udp(client(1), server(), &query(1))),
        // The same message of the same socket, but another packet.
        (ms(1), again),
        // A client that did not get an answer.
        (ms(100), same.clone()),
        (ms(100) + 20_000, same),
        (ms(200), udp(client6(0), server6(), &query(2))),
        (ms(200) + 2_000, udp(client6(0), server6(), &query(2))),
        // In its tunnel, and behind it.
        (ms(300), inner),
        (ms(300) + 9_000, udp(client(0), server(), &query(3))),
    ];
    let capture = pcap_at(&packets);
    assert_eq!(read(&capture).0.len(), 10);
    let (seen, counts) = read_for_replay(&capture);
    let times: Vec<_> = seen.iter().map(|query| query.at_ns).collect();
    assert_eq!(times, [ms(0), ms(1), ms(1), ms(100), ms(200), ms(300)]);
    assert_eq!(counts.reasons().collect::<Vec<_>>(), [(Reason::Duplicate, 4)]);
    assert_eq!(counts.left_out(), [("duplicate".to_owned(), 4)]);
}

#[test]
fn datagrams_with_several_queries_of_one_length_are_taken_apart() {
    let data = [query(101), query(102), query(103), query(4)].concat();
    let whole = udp(client(0), server(), &data);
    let packets =
        [vec![whole.clone()], vec![udp(client(0), server(), &query(5))], fragments(&whole, 9, 40)]
            .concat();
    let capture = pcap(&packets);
    let (seen, counts) = read(&capture);
    let four = [query(101), query(102), query(103), query(4)];
    assert_eq!(messages(&seen), [&four[..], &[query(5)], &four].concat());
    assert!(seen.iter().all(|query| query.client == client(0)));
    assert_eq!((counts.segmented, counts.segments, counts.queries), (2, 6, 9));
    assert_eq!(counts.packets, packets.len() as u64);
    // One of them came twice.
    let timed = [(ms(0), whole.clone()), (ms(0) + 1, whole)];
    let (seen, counts) = read_for_replay(&pcap_at(&timed));
    assert_eq!(messages(&seen), four);
    assert_eq!((counts.segmented, counts.segments, counts.skipped(Reason::Duplicate)), (2, 6, 4));
}

#[test]
fn octets_behind_a_query_stay_with_it() {
    for behind in [&b"\0"[..], &[0; 200], &query(2)[..20], b"\x12\x34\x81\0\0\x01\0\0\0\0\0\0"] {
        let message = [&query(1)[..], behind].concat();
        let (seen, counts) = read(&pcap(&[udp(client(0), server(), &message)]));
        assert_eq!(messages(&seen), [message]);
        assert_eq!(counts.segmented, 0);
    }
}

#[test]
fn headers_of_ip_are_followed() {
    let datagram = udp_payload(client6(0), server6(), &query(1));
    let v6 = |first: u8, headers: &[u8]| {
        ip(client6(0), server6(), first, &[headers, &datagram].concat())
    };
    check(101, &v6(17, b""));
    // Hop-by-hop options, destination options, routing, and a fragment header without fragments.
    check(101, &v6(0, b"\x3c\0\0\0\0\0\0\0\x2b\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x2c\0\0\0\0\0\0\0\x11\0\0\0\0\0\0\x09"));
    // Authentication, whose length is counted otherwise.
    check(101, &v6(51, b"\x11\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
    check_skipped(101, &v6(50, b""), Reason::OtherProtocol);
    check_skipped(101, &ip(client6(0), server6(), 0, b"\x3c"), Reason::MalformedPacket);
    check_skipped(
        101,
        &ip(client6(0), server6(), 0, b"\x3c\xff\0\0\0\0\0\0"),
        Reason::MalformedPacket,
    );
    // Options of IPv4.
    let mut packet = udp(client(0), server(), &query(1));
    packet.splice(20..20, [1; 8]);
    packet[0] = 0x47;
    packet[3] += 8;
    check(101, &packet);
    packet[0] = 0x4f;
    check_skipped(101, &packet[..58], Reason::MalformedPacket);
    packet[0] = 0x44;
    check_skipped(101, &packet, Reason::MalformedPacket);
    packet[0] = 0x57;
    check_skipped(101, &packet, Reason::MalformedPacket);
    check_skipped(101, b"", Reason::MalformedPacket);
    check_skipped(
        101,
        &ip(client(0), server(), 1, b"ping, which is no UDP"),
        Reason::OtherProtocol,
    );
    // A length of 0 is that of what was captured.
    let mut packet = udp(client(0), server(), &query(1));
    packet[2..4].fill(0);
    check(101, &packet);
    let mut packet = udp(client6(0), server6(), &query(1));
    packet[4..6].fill(0);
    check(101, &packet);
}

#[test]
fn each_packet_that_is_no_query_has_its_reason() {
    let check = |packet: Vec<u8>, reason| check_skipped(101, &packet, reason);
    let other = "198.51.100.53:5353".parse().unwrap();
    check(udp(server(), client(0), &query(1)), Reason::Response);
    check(udp(client(0), other, &query(1)), Reason::OtherPort);
    check(tcp(server(), client(0), 1, ACK, b"data"), Reason::Response);
    check(tcp(client(0), other, 1, ACK, b"data"), Reason::OtherPort);
    // Between two DNS ports the QR bit says it.
    let mut response = query(1);
    response[2] |= 0x80;
    check(udp(server(), "192.0.2.7:53".parse().unwrap(), &response), Reason::Response);
    let mut notify = query(1);
    notify[2] |= 4 << 3;
    check(udp(client(0), server(), &notify), Reason::OtherOpcode);
    let mut two = query(1);
    two[5] = 2;
    check(udp(client(0), server(), &two), Reason::QuestionCount);
    check(udp(client(0), server(), &query(1)[..20]), Reason::MalformedMessage);
    check(udp(client(0), server(), b""), Reason::MalformedMessage);
    let mut short = udp(client(0), server(), &query(1));
    short[25] = 7;
    check(short.clone(), Reason::MalformedPacket);
    short[25] = 200;
    check(short, Reason::MalformedPacket);
    check(ip(client(0), server(), 17, b"\0\x01\0"), Reason::MalformedPacket);
    let mut header = tcp(client(0), server(), 1, ACK, b"data");
    header[20 + 12] = 0x40;
    check(header.clone(), Reason::MalformedPacket);
    header[20 + 12] = 0xf0;
    check(header, Reason::MalformedPacket);
}

#[test]
fn ports_are_those_that_are_asked_for() {
    let other = "198.51.100.53:5353".parse().unwrap();
    let capture = pcap(&[udp(client(0), server(), &query(1)), udp(client(0), other, &query(2))]);
    for (ports, expected) in [(vec![53], 1), (vec![5353], 1), (vec![53, 5353], 2), (vec![], 0)] {
        let options = CaptureOptions { ports, ..CaptureOptions::default() };
        assert_eq!(read_with(&capture, options).0.len(), expected);
    }
}

#[test]
fn an_ipv4_mapped_address_stays_one() {
    let mapped = "[::ffff:192.0.2.1]:40000".parse().unwrap();
    let (seen, _) = read(&pcap(&[udp(mapped, server6(), &query(1))]));
    assert_eq!(seen[0].client, mapped);
}

#[test]
fn what_the_snap_length_took_is_counted() {
    for packet in [
        ethernet(&udp(client(0), server(), &query(1))),
        ethernet(&udp(client6(0), server6(), &query(1))),
        ethernet(&tcp(client(0), server(), 1, ACK, b"data")),
        ethernet(&fragments(&udp(client(0), server(), &long_query(1, 100)), 1, 64)[0]),
    ] {
        for captured in 0..packet.len() {
            let (seen, counts) = one(1, &packet, captured);
            assert_eq!(seen, [], "{captured}");
            assert_eq!(
                counts.reasons().collect::<Vec<_>>(),
                [(Reason::SnapLength, 1)],
                "{captured}"
            );
        }
    }
    // Only what is behind the packet is missing.
    let padded = [ethernet(&udp(client(0), server(), &query(1))), vec![0; 20]].concat();
    assert_eq!(one(1, &padded, padded.len() - 5).1.queries, 1);
}

#[test]
fn fragments_are_put_together() {
    for packet in [
        udp(client(0), server(), &long_query(1, 3_000)),
        udp(client6(0), server6(), &long_query(1, 3_000)),
    ] {
        let (seen, counts) = read(&pcap(&fragments(&packet, 7, 1_200)));
        assert_eq!(messages(&seen), [long_query(1, 3_000)]);
        // It came with its last fragment.
        assert_eq!(seen[0].at_ns, ms(2));
        assert_eq!((counts.packets, counts.carriers, counts.queries), (3, 2, 1));
    }
    let packet = tcp(client(0), server(), 5, SYN, &stream(&[long_query(1, 2_000)]));
    let (seen, counts) = read(&pcap(&fragments(&packet, 7, 1_200)));
    assert_eq!(messages(&seen), [long_query(1, 2_000)]);
    assert_eq!((counts.packets, counts.carriers, counts.stream_messages), (2, 2, 1));
}

#[test]
fn fragments_that_never_become_whole_are_counted() {
    let packet = udp(client(0), server(), &long_query(1, 3_000));
    let parts = fragments(&packet, 7, 600);
    for lost in 0..parts.len() {
        let mut some = parts.clone();
        some.remove(lost);
        let (seen, counts) = read(&pcap(&some));
        assert_eq!(seen, []);
        assert_eq!(counts.skipped(Reason::Fragment), some.len() as u64);
    }
    // The last one comes too late, and then alone.
    let last = parts.len() - 1;
    let mut timed: Vec<_> = parts.iter().map(|part| (ms(0), part.clone())).collect();
    timed[last].0 = ms(61_000);
    // Others keep the time going.
    timed.insert(last, (ms(31_000), fragments(&packet, 8, 600)[0].clone()));
    let (seen, counts) = read(&pcap_at(&timed));
    assert_eq!(seen, []);
    assert_eq!(counts.skipped(Reason::Fragment), timed.len() as u64);
}

#[test]
fn fragments_that_overlap_are_refused_as_a_whole() {
    let packet = udp(client(0), server(), &long_query(1, 3_000));
    let mut parts = fragments(&packet, 7, 1_200);
    let other = fragments(&packet, 7, 800)[1].clone();
    parts.insert(1, other);
    let (seen, counts) = read(&pcap(&parts));
    assert_eq!(seen, []);
    assert_eq!(counts.reasons().collect::<Vec<_>>(), [(Reason::Fragment, 4)]);
    // Two ends.
    let mut parts = fragments(&packet, 7, 1_200);
    let short = fragments(&udp(client(0), server(), &long_query(1, 2_000)), 7, 1_200);
    parts.insert(2, short[1].clone());
    parts.remove(0);
    parts.push(fragments(&packet, 7, 1_200)[0].clone());
    let (seen, counts) = read(&pcap(&parts));
    assert_eq!(seen, []);
    assert_eq!(counts.reasons().collect::<Vec<_>>(), [(Reason::Fragment, 4)]);
}

#[test]
fn fragments_that_cannot_be_are_malformed() {
    let packet = udp(client(0), server(), &long_query(1, 3_000));
    let parts = fragments(&packet, 7, 1_200);
    let mut beyond = parts[2].clone();
    beyond[6..8].copy_from_slice(&0x1fff_u16.to_be_bytes());
    let mut uneven = parts[0].clone();
    uneven.pop();
    uneven[3] -= 1;
    let mut empty = parts[0][..20].to_vec();
    empty[2..4].copy_from_slice(&20_u16.to_be_bytes());
    for wrong in [beyond, uneven, empty] {
        check_skipped(101, &wrong, Reason::MalformedPacket);
    }
}

proptest! {
    /// Datagrams of both families whose fragments come in any order, some of them twice.
    #[test]
    fn fragments_come_in_any_order(
        sizes in prop::collection::vec((1_000usize..9_000, 8usize..200), 1..6),
        order in any::<u64>(),
        twice in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut parts = Vec::new();
        for (number, (size, step)) in sizes.iter().enumerate() {
            let message = long_query(number as u32, *size);
            let packet = if number % 2 == 0 {
                udp(client(0), server(), &message)
            } else {
                udp(client6(0), server6(), &message)
            };
            // At most 256 fragments.
            parts.extend(fragments(&packet, number as u16, (step * 8).max(64)));
        }
        for index in &twice {
            parts.push(parts[index.index(parts.len())].clone());
        }
        shuffle(&mut parts, order);
        let (seen, counts) = read(&pcap(&parts));
        let mut seen = messages(&seen);
        seen.sort();
        // All fragments of a datagram may have come again after it was whole.
        seen.dedup();
        let mut expected: Vec<_> =
            sizes.iter().enumerate().map(|(number, (size, _))| long_query(number as u32, *size)).collect();
        expected.sort();
        prop_assert_eq!(seen, expected);
        // What came again after the whole may be left over.
        prop_assert!(counts.all_skipped() <= twice.len() as u64);
    }
}

/// Brings items into an order that follows from a number.
pub(super) fn shuffle<T>(items: &mut [T], mut order: u64) {
    for last in (1..items.len()).rev() {
        order =
            order.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(last, (order >> 33) as usize % (last + 1));
    }
}

#[test]
fn only_queries_to_these_servers_count() {
    let at = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
    let resolver = at("192.0.2.53:53");
    let stream = stream(&[query(4)]);
    let packets = [
        udp(client(0), resolver, &query(1)),
        // What the resolver asks, and is told.
        udp(at("192.0.2.53:40000"), server(), &query(2)),
        udp(server(), at("192.0.2.53:40000"), &query(2)),
        tcp(client(1), server(), 99, SYN, b""),
        tcp(client(1), server(), 100, 0, &stream),
        tcp(client(1), resolver, 99, SYN, b""),
        tcp(client(1), resolver, 100, 0, &stream),
        udp(client(2), at("198.51.100.9:5353"), &query(5)),
        udp(client(2), at("198.51.100.9:53"), &query(6)),
    ];
    let options = CaptureOptions {
        ports: vec![53, 5353],
        servers: Some("192.0.2.0/24, 198.51.100.9:5353".parse().unwrap()),
        ..CaptureOptions::default()
    };
    let (seen, counts, _) = read_with(&pcap(&packets), options);
    assert_eq!(messages(&seen), [query(1), query(4), query(5)]);
    assert_eq!(counts.skipped(Reason::OtherServer), 4);
    assert_eq!(counts.skipped(Reason::Response), 1);
    assert!(counts.add_up());
}

#[test]
fn what_is_asked_again_over_tcp_is_left_out_if_that_is_wanted() {
    let truncated = |number| {
        let mut response = query(number);
        response[2] |= 0x82;
        response
    };
    let other_id = |number| {
        let mut query = query(number);
        query[0] ^= 1;
        query
    };
    let connection = stream(&[other_id(1), query(2), query(3), other_id(4)]);
    let packets = [
        // Truncated, and asked again with another id; no answer, and the same id.
        udp(client(0), server(), &query(1)),
        udp(server(), client(0), &truncated(1)),
        udp(client(0), server(), &query(2)),
        // Never asked over UDP; asked with another id, and no answer.
        udp(client(0), server(), &query(4)),
        tcp(client(9), server(), 99, SYN, b""),
        tcp(client(9), server(), 100, 0, &connection),
    ];
    let capture = pcap(&packets);
    let (seen, counts) = read(&capture);
    assert_eq!((seen.len(), counts.skipped(Reason::RepeatedOverTcp)), (7, 0));
    let options = CaptureOptions { skips_repeats: true, ..CaptureOptions::default() };
    let (seen, counts, _) = read_with(&capture, options);
    let expected = [query(1), query(2), query(4), query(3), other_id(4)];
    assert_eq!(messages(&seen), expected);
    assert_eq!(counts.skipped(Reason::RepeatedOverTcp), 2);
    assert!(counts.add_up());
}
