//! Messages over TCP.

use dnslab_wire::Transport;
use proptest::prelude::*;

use crate::made::*;
use crate::{Counts, Reason};

const FIRST: u32 = 1_000;

fn segment(sequence: u32, data: &[u8]) -> Vec<u8> {
    tcp(client(0), server(), sequence, ACK, data)
}

fn syn() -> Vec<u8> {
    tcp(client(0), server(), FIRST - 1, SYN, b"")
}

fn fin(sequence: u32) -> Vec<u8> {
    tcp(client(0), server(), sequence, FIN | ACK, b"")
}

/// Reads segments and gives the numbers of the queries.
#[track_caller]
fn check(packets: &[Vec<u8>], expected: &[u32]) -> Counts {
    let (seen, counts) = read(&pcap(packets));
    let expected: Vec<_> = expected.iter().map(|number| query(*number)).collect();
    assert_eq!(messages(&seen), expected, "{counts:?}");
    assert!(seen.iter().all(|seen| seen.transport == Transport::Tcp));
    counts
}

#[test]
fn a_connection_gives_its_messages() {
    let data = stream(&[query(1), query(22), query(333)]);
    let end = FIRST + data.len() as u32;
    for split in 0..data.len() {
        let (first, second) = data.split_at(split);
        let packets = [
            syn(),
            tcp(server(), client(0), 5, SYN | ACK, b""),
            segment(FIRST, b""),
            segment(FIRST, first),
            segment(FIRST + split as u32, second),
            fin(end),
        ];
        let counts = check(&packets, &[1, 22, 333]);
        assert_eq!((counts.packets, counts.carriers, counts.stream_messages), (6, 5, 3));
        assert_eq!((counts.connections, counts.connections_without_start, counts.gaps), (1, 0, 0));
        assert_eq!(counts.reasons().collect::<Vec<_>>(), [(Reason::Response, 1)]);
    }
}

#[test]
fn a_query_has_the_time_of_its_last_octet() {
    let data = stream(&[query(1)]);
    let packets = [syn(), segment(FIRST, &data[..9]), segment(FIRST + 9, &data[9..])];
    assert_eq!(read(&pcap(&packets)).0[0].at_ns, ms(2));
}

#[test]
fn data_may_come_with_syn_and_with_fin() {
    let first = stream(&[query(1)]);
    let second = stream(&[query(2)]);
    let at = FIRST + first.len() as u32;
    let packets = [
        tcp(client(0), server(), FIRST - 1, SYN, &first),
        tcp(client(0), server(), FIRST - 1, SYN, &first),
        tcp(client(0), server(), at, FIN | ACK, &second),
        tcp(client(0), server(), at, FIN | ACK, &second),
        segment(at + second.len() as u32 + 1, b""),
    ];
    let counts = check(&packets, &[1, 2]);
    assert_eq!((counts.carriers, counts.connections, counts.all_skipped()), (5, 1, 0));
}

#[test]
fn a_port_may_be_used_again() {
    let data = stream(&[query(1)]);
    let cut = &data[..5];
    let packets = [
        syn(),
        segment(FIRST, cut),
        tcp(client(0), server(), 77, SYN, b""),
        segment(78, &data),
        tcp(client(0), server(), 78 + data.len() as u32, RST, b""),
        tcp(client(0), server(), 900, SYN, b""),
        segment(901, &data),
    ];
    let counts = check(&packets, &[1, 1]);
    assert_eq!((counts.connections, counts.skipped(Reason::StreamCut)), (3, 1));
}

#[test]
fn a_port_that_is_used_again_without_a_beginning_has_its_queries() {
    let (first, second) = (stream(&[query(1)]), stream(&[query(2)]));
    let end = FIRST + first.len() as u32;
    for again in [FIRST.wrapping_sub(3_000_000), FIRST + 3_000_000] {
        let packets = [syn(), segment(FIRST, &first), fin(end), segment(again, &second)];
        let counts = check(&packets, &[1, 2]);
        assert_eq!((counts.connections_without_start, counts.resumed), (1, 1));
        // What is no whole query there is counted.
        let packets = [syn(), segment(FIRST, &first), fin(end), segment(again, &second[3..])];
        assert_eq!(check(&packets, &[1]).skipped(Reason::StreamStart), 1);
    }
    // Sent again.
    let packets = [syn(), segment(FIRST, &first), fin(end), segment(FIRST, &first)];
    assert_eq!(check(&packets, &[1]).all_skipped(), 0);
}

#[test]
fn messages_that_are_no_queries_have_their_reasons() {
    let mut response = query(1);
    response[2] |= 0x80;
    let mut notify = query(1);
    notify[2] |= 4 << 3;
    let data = stream(&[response, query(1), notify, Vec::new(), query(2)]);
    let counts = check(
        &[syn(), segment(FIRST, &data), segment(FIRST + data.len() as u32, b"\0\x09ab")],
        &[1, 2],
    );
    let reasons = [
        (Reason::Response, 1),
        (Reason::MalformedMessage, 1),
        (Reason::OtherOpcode, 1),
        (Reason::StreamCut, 1),
    ];
    assert_eq!(counts.reasons().collect::<Vec<_>>(), reasons);
    assert_eq!((counts.stream_messages, counts.carriers), (6, 3));
}

#[test]
fn numbers_of_octets_begin_again_at_zero() {
    let data = stream(&[query(1), query(2), query(3)]);
    let mut packets = vec![tcp(client(0), server(), u32::MAX - 20, SYN, b"")];
    let parts: Vec<_> = data.chunks(10).enumerate().collect();
    for (number, part) in &parts {
        packets.push(segment((u32::MAX - 19).wrapping_add(*number as u32 * 10), part));
    }
    check(&packets, &[1, 2, 3]);
    packets.swap(2, 4);
    packets.swap(1, 5);
    check(&packets, &[1, 2, 3]);
}

#[test]
fn a_connection_from_its_middle_is_read_where_a_segment_is_whole_messages() {
    let whole = stream(&[query(1), query(2)]);
    let counts = check(
        &[
            segment(5, &whole[7..]),
            segment(500, &whole),
            segment(500 + whole.len() as u32, &whole[..9]),
        ],
        &[1, 2],
    );
    assert_eq!((counts.connections, counts.connections_without_start, counts.resumed), (0, 1, 1));
    let reasons = [(Reason::StreamStart, 1), (Reason::StreamCut, 1)];
    assert_eq!(counts.reasons().collect::<Vec<_>>(), reasons);
    // What only looks nearly like it is not.
    let mut response = query(1);
    response[2] |= 0x80;
    let counts = check(&[segment(5, &stream(&[query(1), response])), segment(500, b"\0")], &[]);
    assert_eq!(counts.skipped(Reason::StreamStart), 2);
}

#[test]
fn after_a_gap_the_stream_is_read_where_a_segment_is_whole_messages() {
    let parts: Vec<_> = (0..6).map(|number| stream(&[query(number), query(number + 10)])).collect();
    let mut at = FIRST;
    let mut packets = vec![syn()];
    for part in &parts {
        packets.push(segment(at, part));
        at += part.len() as u32;
    }
    packets.push(fin(at));
    packets.remove(3);
    let counts = check(&packets, &[0, 10, 1, 11, 3, 13, 4, 14, 5, 15]);
    assert_eq!((counts.gaps, counts.resumed, counts.all_skipped()), (1, 1, 0));
    // The gap begins inside of a message, and the next segment is not the start of one.
    let data = parts.concat();
    let packets = [
        syn(),
        segment(FIRST, &data[..9]),
        segment(FIRST + 50, &data[50..60]),
        segment(FIRST + 60, &data[60..70]),
    ];
    let counts = check(&packets, &[]);
    // One message and two segments.
    assert_eq!((counts.gaps, counts.skipped(Reason::StreamGap)), (1, 3));
}

#[test]
fn waiting_for_a_gap_ends_with_time_and_with_memory() {
    let whole = stream(&[query(1)]);
    let timed = [
        (ms(0), syn()),
        (ms(1), segment(FIRST + 500, &whole)),
        (ms(6_000), segment(FIRST + 500 + whole.len() as u32, &whole)),
        (ms(6_001), segment(FIRST + 500 + 2 * whole.len() as u32, &whole)),
    ];
    let (seen, counts) = read(&pcap_at(&timed));
    // As soon as nobody waits any more, with the times at which they came.
    let times: Vec<_> = seen.iter().map(|seen| seen.at_ns).collect();
    assert_eq!(times, [ms(1), ms(6_000), ms(6_001)]);
    assert_eq!(counts.gaps, 1);
    let large = stream(&[long_query(1, 30_000)]);
    let mut packets = vec![syn()];
    let mut at = FIRST + 1;
    for _ in 0..20 {
        packets.push(segment(at, &large));
        at += large.len() as u32;
    }
    let (seen, counts) = read(&pcap(&packets));
    assert_eq!((seen.len(), counts.gaps, counts.resumed), (20, 1, 1));
    assert!(seen[19].at_ns == ms(20));
    // A number far ahead is not waited for.
    let packets = [syn(), segment(FIRST + (2 << 20), &whole), segment(FIRST, &whole)];
    let counts = check(&packets, &[1]);
    assert_eq!(counts.reasons().collect::<Vec<_>>(), [(Reason::StreamGap, 1)]);
}

#[test]
fn connections_do_not_mix() {
    let data = stream(&[query(1)]);
    let other = |sequence, flags, data: &[u8]| tcp(client6(0), server6(), sequence, flags, data);
    let packets = [
        syn(),
        other(FIRST - 1, SYN, b""),
        segment(FIRST, &data[..8]),
        other(FIRST, ACK, &data[..3]),
        segment(FIRST + 8, &data[8..]),
        other(FIRST + 3, ACK, &data[3..]),
    ];
    let (seen, _) = read(&pcap(&packets));
    let clients: Vec<_> = seen.iter().map(|seen| (seen.client, seen.server)).collect();
    assert_eq!(clients, [(client(0), server()), (client6(0), server6())]);
}

proptest! {
    /// A stream in segments that overlap, come again, and come out of order within a window.
    #[test]
    fn any_segments_give_the_messages(
        lengths in prop::collection::vec(30usize..2_000, 1..30),
        cuts in prop::collection::vec((1usize..1_500, 0usize..300, any::<bool>()), 1..40),
        order in any::<u64>(),
        window in 1usize..8,
        first in any::<u32>(),
    ) {
        let sent: Vec<_> = lengths.iter().enumerate().map(|(number, length)| long_query(number as u32, *length)).collect();
        let data = stream(&sent);
        let mut segments = Vec::new();
        let (mut at, mut cuts) = (0, cuts.iter().cycle());
        while at < data.len() {
            let (length, overlap, is_repeated) = *cuts.next().unwrap();
            let from = at.saturating_sub(overlap);
            let to = (at + length).min(data.len());
            let part = segment(first.wrapping_add(1 + from as u32), &data[from..to]);
            if is_repeated {
                segments.push(part.clone());
            }
            segments.push(part);
            at = to;
        }
        for part in segments.chunks_mut(window) {
            super::packets::shuffle(part, order);
        }
        segments.insert(0, tcp(client(0), server(), first, SYN, b""));
        let (seen, counts) = read(&pcap(&segments));
        prop_assert_eq!(messages(&seen), sent);
        prop_assert_eq!((counts.carriers, counts.all_skipped()), (counts.packets, 0));
    }

    /// Whatever is lost, what is read was sent, in order.
    #[test]
    fn lost_segments_cost_messages_and_nothing_else(
        parts in prop::collection::vec((1usize..4, any::<bool>()), 1..60),
        cut in 1usize..100,
    ) {
        let mut sent = Vec::new();
        let (mut at, mut segments) = (FIRST, vec![syn()]);
        for (messages, is_lost) in parts {
            let new: Vec<_> = (0..messages).map(|number| query((sent.len() + number) as u32)).collect();
            let data = stream(&new);
            // Some messages are in two segments.
            for part in data.chunks(data.len().div_ceil(1 + usize::from(data.len() < cut))) {
                if !is_lost {
                    segments.push(segment(at, part));
                }
                at = at.wrapping_add(part.len() as u32);
            }
            sent.extend(new);
        }
        let (seen, _) = read(&pcap(&segments));
        let mut rest = sent.iter();
        for message in messages(&seen) {
            prop_assert!(rest.any(|rest| *rest == message));
        }
    }
}
