//! Packets and files that are made for tests, octet by octet.

use std::net::{IpAddr, SocketAddr};

use dnslab_wire::{Transport, push_frame};

use crate::{CaptureError, CaptureOptions, CaptureReader, Counts};

/// A query for `www.N.example`, which is as long as N is.
pub(crate) fn query(number: u32) -> Vec<u8> {
    let label = number.to_string();
    let mut message = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www".to_vec();
    message[..2].copy_from_slice(&(number as u16).to_be_bytes());
    message.push(label.len() as u8);
    message.extend(label.as_bytes());
    message.extend(b"\x07example\0\0\x01\0\x01");
    message
}

/// A query of at least `length` octets, by an option of padding.
pub(crate) fn long_query(number: u32, length: usize) -> Vec<u8> {
    let mut message = query(number);
    message[11] = 1;
    let padding = length.saturating_sub(message.len() + 15);
    message.extend(b"\0\0\x29\x04\xd0\0\0\0\0");
    message.extend((padding as u16 + 4).to_be_bytes());
    message.extend(b"\0\x0c");
    message.extend((padding as u16).to_be_bytes());
    message.resize(message.len() + padding, 0);
    message
}

pub(crate) fn client(number: u16) -> SocketAddr {
    (IpAddr::from([192, 0, 2, 1]), 40_000 + number).into()
}

pub(crate) fn client6(number: u16) -> SocketAddr {
    let address = "2001:db8::1".parse::<IpAddr>().unwrap();
    (address, 40_000 + number).into()
}

pub(crate) fn server() -> SocketAddr {
    "198.51.100.53:53".parse().unwrap()
}

pub(crate) fn server6() -> SocketAddr {
    "[2001:db8::53]:53".parse().unwrap()
}

pub(crate) fn udp(from: SocketAddr, to: SocketAddr, message: &[u8]) -> Vec<u8> {
    ip(from, to, 17, &udp_payload(from, to, message))
}

pub(crate) fn udp_payload(from: SocketAddr, to: SocketAddr, message: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    for number in [from.port(), to.port(), 8 + message.len() as u16, 0] {
        payload.extend(number.to_be_bytes());
    }
    payload.extend(message);
    payload
}

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

/// A segment with an option.
pub(crate) fn tcp(
    from: SocketAddr,
    to: SocketAddr,
    sequence: u32,
    flags: u8,
    data: &[u8],
) -> Vec<u8> {
    let mut payload = Vec::new();
    for port in [from.port(), to.port()] {
        payload.extend(port.to_be_bytes());
    }
    payload.extend(sequence.to_be_bytes());
    payload.extend([0, 0, 0, 7, 0x60, flags, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    payload.extend(data);
    ip(from, to, 6, &payload)
}

/// A packet of the family of the first address.
pub(crate) fn ip(from: SocketAddr, to: SocketAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut packet = vec![0x45, 0];
            packet.extend((20 + payload.len() as u16).to_be_bytes());
            packet.extend([0, 7, 0, 0, 64, protocol, 0, 0]);
            packet.extend([from.octets(), to.octets()].concat());
            packet.extend(payload);
            packet
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut packet = vec![0x60, 0, 0, 0];
            packet.extend((payload.len() as u16).to_be_bytes());
            packet.extend([protocol, 64]);
            packet.extend([from.octets(), to.octets()].concat());
            packet.extend(payload);
            packet
        }
        families => panic!("{families:?}"),
    }
}

/// Cuts the payload of a packet that `ip` made into fragments of `step` octets, a multiple of 8.
pub(crate) fn fragments(packet: &[u8], id: u16, step: usize) -> Vec<Vec<u8>> {
    let is_v4 = packet[0] >> 4 == 4;
    let (header, payload) = packet.split_at(if is_v4 { 20 } else { 40 });
    let last = payload.len().div_ceil(step) - 1;
    let mut fragments = Vec::new();
    for (number, octets) in payload.chunks(step).enumerate() {
        let offset = (number * step) as u16;
        let mut made = header.to_vec();
        if is_v4 {
            made[2..4].copy_from_slice(&(20 + octets.len() as u16).to_be_bytes());
            made[4..6].copy_from_slice(&id.to_be_bytes());
            let more = if number < last { 0x2000 } else { 0 };
            made[6..8].copy_from_slice(&((offset / 8) | more).to_be_bytes());
        } else {
            made[4..6].copy_from_slice(&(8 + octets.len() as u16).to_be_bytes());
            made[6] = 44;
            made.extend([header[6], 0]);
            made.extend((offset | u16::from(number < last)).to_be_bytes());
            made.extend(u32::from(id).to_be_bytes());
        }
        made.extend(octets);
        fragments.push(made);
    }
    fragments
}

pub(crate) fn ethernet(packet: &[u8]) -> Vec<u8> {
    let kind: &[u8] = if packet[0] >> 4 == 4 { b"\x08\0" } else { b"\x86\xdd" };
    [b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01", kind, packet].concat()
}

/// A pcap file of raw IP packets, one each millisecond from second 1.
pub(crate) fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let timed = packets.iter().enumerate();
    pcap_at(&timed.map(|(number, packet)| (ms(number), packet.clone())).collect::<Vec<_>>())
}

/// The time of the packet with this number in [`pcap`].
pub(crate) fn ms(number: usize) -> u64 {
    1_000_000_000 + number as u64 * 1_000_000
}

/// A pcap file of raw IP packets with their times in nanoseconds.
pub(crate) fn pcap_at(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = pcap_header(0xa1b2_3c4d, 101, false);
    for (at_ns, packet) in packets {
        let (seconds, rest_ns) = (at_ns / 1_000_000_000, at_ns % 1_000_000_000);
        let length = packet.len() as u32;
        for number in [seconds as u32, rest_ns as u32, length, length] {
            file.extend(number.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

pub(crate) fn pcap_header(magic: u32, link_type: u32, is_big: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let mut push = |number: u32| file.extend(ordered(number, is_big));
    push(magic);
    push(if is_big { 0x0002_0004 } else { 0x0004_0002 });
    for number in [0, 0, 65_535, link_type] {
        push(number);
    }
    file
}

pub(crate) fn ordered(number: u32, is_big: bool) -> [u8; 4] {
    if is_big { number.to_be_bytes() } else { number.to_le_bytes() }
}

/// A block of pcapng, padded.
pub(crate) fn block(kind: u32, body: &[u8], is_big: bool) -> Vec<u8> {
    let length = 12 + body.len().next_multiple_of(4);
    let mut made = [ordered(kind, is_big), ordered(length as u32, is_big)].concat();
    made.extend(body);
    made.resize(length - 4, 0);
    made.extend(ordered(length as u32, is_big));
    made
}

/// The start of a section.
pub(crate) fn section(is_big: bool) -> Vec<u8> {
    let version = if is_big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
    block(0x0a0d_0d0a, &[&ordered(0x1a2b_3c4d, is_big)[..], &version, &[0xff; 8]].concat(), is_big)
}

/// An interface with its options.
pub(crate) fn interface(link_type: u16, snap_length: u32, options: &[u8], is_big: bool) -> Vec<u8> {
    let link_type = if is_big { link_type.to_be_bytes() } else { link_type.to_le_bytes() };
    let snap_length = ordered(snap_length, is_big);
    block(1, &[&link_type, &[0, 0], &snap_length[..], options].concat(), is_big)
}

/// An enhanced packet block.
pub(crate) fn enhanced(interface: u32, ticks: u64, packet: &[u8], is_big: bool) -> Vec<u8> {
    let length = packet.len() as u32;
    let numbers = [interface, (ticks >> 32) as u32, ticks as u32, length, length];
    let mut body: Vec<u8> = numbers.iter().flat_map(|number| ordered(*number, is_big)).collect();
    body.extend(packet);
    block(6, &body, is_big)
}

/// Messages as they are in a stream.
pub(crate) fn stream(messages: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = Vec::new();
    for message in messages {
        push_frame(&mut stream, message);
    }
    stream
}

/// A query that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) at_ns: u64,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) transport: Transport,
    pub(crate) message: Vec<u8>,
}

/// All queries of a capture, what became of the rest, and how it ended. The counts add up at each query.
pub(crate) fn read_with(
    capture: &[u8],
    options: CaptureOptions,
) -> (Vec<Seen>, Counts, Result<(), CaptureError>) {
    let mut seen = Vec::new();
    let mut reader = match CaptureReader::new(capture, options) {
        Ok(reader) => reader,
        Err(error) => return (seen, Counts::default(), Err(error)),
    };
    let end = loop {
        match reader.next() {
            Ok(Some(query)) => seen.push(Seen {
                at_ns: query.at_ns,
                client: query.client,
                server: query.server,
                transport: query.transport,
                message: query.message.to_vec(),
            }),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        assert!(reader.counts().add_up(), "{:?}", reader.counts());
    };
    let counts = reader.counts().clone();
    assert!(counts.add_up(), "{counts:?}");
    assert_eq!(counts.queries, seen.len() as u64);
    assert!(matches!(reader.next(), Ok(None)), "there is nothing after the end");
    (seen, counts, end)
}

/// What is in a capture that is read to its end.
#[track_caller]
pub(crate) fn read(capture: &[u8]) -> (Vec<Seen>, Counts) {
    let (seen, counts, end) = read_with(capture, CaptureOptions::default());
    end.unwrap();
    (seen, counts)
}

/// The messages of what was read.
pub(crate) fn messages(seen: &[Seen]) -> Vec<Vec<u8>> {
    seen.iter().map(|seen| seen.message.clone()).collect()
}
