//! What reading costs in memory, counted by the allocator in the thread of the test, whatever a capture holds.

use std::io::{self, Read};

use dnslab_capture::{CaptureOptions, CaptureReader, Reason};

/// A pcap file that is made while it is read: raw IP packets, a millisecond apart.
struct Endless<F> {
    packet: F,
    number: u32,
    packets: u32,
    octets: Vec<u8>,
    read: usize,
}

impl<F: Fn(u32) -> Vec<u8>> Endless<F> {
    fn new(packets: u32, packet: F) -> Self {
        let mut octets = Vec::new();
        for number in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            octets.extend(number.to_le_bytes());
        }
        Self { packet, number: 0, packets, octets, read: 0 }
    }
}

impl<F: Fn(u32) -> Vec<u8>> Read for Endless<F> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.read == self.octets.len() && self.number < self.packets {
            let packet = (self.packet)(self.number);
            self.octets.clear();
            let length = packet.len() as u32;
            for number in [self.number / 1_000, self.number % 1_000 * 1_000, length, length] {
                self.octets.extend(number.to_le_bytes());
            }
            self.octets.extend(packet);
            self.number += 1;
            self.read = 0;
        }
        let count = to.len().min(self.octets.len() - self.read);
        to[..count].copy_from_slice(&self.octets[self.read..][..count]);
        self.read += count;
        Ok(count)
    }
}

/// An IPv4 packet from a client of this number.
fn ip(client: u32, part: u16, id: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend(part.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(client.to_be_bytes());
    packet.extend([192, 0, 2, 53]);
    packet.extend(payload);
    packet
}

fn tcp(client: u32, sequence: u32, flags: u8, data: &[u8]) -> Vec<u8> {
    let mut payload = vec![0x9c, 0x40, 0, 53];
    payload.extend(sequence.to_be_bytes());
    payload.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    payload.extend(data);
    ip(client, 0, 0, 6, &payload)
}

const SYN: u8 = 2;
const MIB: usize = 1 << 20;

/// Reads so many packets and compares the most memory that was in use, octets, with a bound.
#[track_caller]
fn check(what: &str, packets: u32, bound: usize, packet: impl Fn(u32) -> Vec<u8>) -> [u64; 3] {
    let endless = Endless::new(packets, packet);
    let mut reader = None;
    let memory = allocation_counter::measure(|| {
        let reader = reader.insert(CaptureReader::new(endless, CaptureOptions::default()).unwrap());
        while reader.next().unwrap().is_some() {}
    });
    let most = memory.bytes_max as usize;
    let reader = reader.unwrap();
    let counts = reader.counts();
    assert!(counts.add_up());
    assert_eq!(counts.packets, u64::from(packets));
    println!("{what}: {} KiB at most", most / 1024);
    assert!(most <= bound, "{what}: {most} octets were in use, {bound} may be");
    [counts.queries, counts.skipped(Reason::Fragment), counts.skipped(Reason::StreamCut)]
}

#[test]
fn memory_has_a_bound_whatever_is_read() {
    let query = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
    let usual = check("queries", 300_000, MIB, |number| {
        let mut payload = vec![0x9c, 0x40, 0, 53, 0, 8 + query.len() as u8, 0, 0];
        payload.extend(query);
        ip(number, 0, 0, 17, &payload)
    });
    assert_eq!(usual, [300_000, 0, 0]);
    let lost =
        check("fragments of datagrams that never become whole", 60_000, 24 * MIB, |number| {
            ip(number, 0x2000, number as u16, 17, &[7; 1_400])
        });
    assert_eq!(lost, [0, 60_000, 0]);
    let lost =
        check("small fragments at the ends of large datagrams", 20_000, 24 * MIB, |number| {
            ip(number, 0x2000 | 8_000, number as u16, 17, &[7; 8])
        });
    assert_eq!(lost, [0, 20_000, 0]);
    check("connections that begin", 400_000, 48 * MIB, |number| tcp(number, 7, SYN, b""));
    let cut =
        check("connections with a part of a message", 400_000, 56 * MIB, |number| {
            match number % 2 {
                0 => tcp(number / 2, 7, SYN, b""),
                _ => tcp(number / 2, 8, 0, b"\0\x20part"),
            }
        });
    assert_eq!(cut, [0, 0, 200_000]);
    check("connections whose segments wait", 300_000, 112 * MIB, |number| match number % 3 {
        0 => tcp(number / 3, 7, SYN, b""),
        _ => tcp(number / 3, 1_000 + 1_400 * (number % 3), 0, &[7; 1_400]),
    });
}
