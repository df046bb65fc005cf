//! How fast captures are read and written: `reading_rate [PACKETS]` makes captures in memory, a million packets if it
//! is not said, and reads each of them for some times. It prints the rate of the last time, on one core.

use std::io::Write;
use std::time::Instant;

use dnslab_capture::{CaptureOptions, CaptureReader, CaptureWriter, Captured};
use dnslab_wire::Transport;
use flate2::Compression;
use flate2::write::GzEncoder;

/// How often each capture is read.
const TIMES: u32 = 5;

fn main() {
    let packets = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let pcap = write("pcap", CaptureWriter::pcap(Vec::new()).expect("a vector grows"), packets);
    let dnstap =
        write("dnstap", CaptureWriter::dnstap(Vec::new()).expect("a vector grows"), packets);
    read("pcap", &pcap, packets);
    // As a replay reads it.
    let options = CaptureOptions { skips_repeats: true, ..CaptureOptions::default() };
    read_with("pcap, repeats", &pcap, packets, &options);
    read("pcapng", &pcapng(&pcap), packets);
    read("dnstap", &dnstap, packets);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&pcap).expect("a vector grows");
    read("pcap, gzip", &encoder.finish().expect("a vector grows"), packets);
    let compressed =
        ruzstd::encoding::compress_to_vec(&pcap[..], ruzstd::encoding::CompressionLevel::Fastest);
    read("pcap, zstd", &compressed, packets);
}

/// Queries of a thousand clients for names of some lengths, every third over IPv6.
fn write(form: &str, mut writer: CaptureWriter<Vec<u8>>, packets: u32) -> Vec<u8> {
    let mut message = Vec::new();
    let begin = Instant::now();
    for number in 0..packets {
        message.clear();
        message.extend_from_slice(&(number as u16).to_be_bytes());
        message.extend_from_slice(b"\x01\0\0\x01\0\0\0\0\0\x01\x03www");
        let label = &b"abcdefghijklmnopqrstuvwxyz"[..1 + number as usize * 7 % 26];
        message.push(label.len() as u8);
        message.extend_from_slice(label);
        message.extend_from_slice(b"\x07example\x03com\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0");
        let port = (1_024 + number % 60_000) as u16;
        let (client, server) = if number % 3 == 0 {
            let host = (number % 1_000) as u16;
            (
                ([0x2001, 0xdb8, 0, 0, 0, 0, 1, host], port).into(),
                ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 53], 53).into(),
            )
        } else {
            let [high, low] = ((number % 1_000) as u16).to_be_bytes();
            (([10, 0, high, low], port).into(), ([192, 0, 2, 53], 53).into())
        };
        let at_ns = 1_700_000_000_000_000_000 + u64::from(number) * 1_000;
        let query =
            Captured { at_ns, client, server, transport: Transport::Udp, message: &message };
        writer.write(&query).expect("it fits");
    }
    let capture = writer.finish().expect("a vector grows");
    print(&format!("{form} written"), capture.len(), packets, begin);
    capture
}

fn push_block(blocks: &mut Vec<u8>, words: &[u32], octets: &[u8], kind: u32) {
    let length = (12 + 4 * words.len() + octets.len().next_multiple_of(4)) as u32;
    for word in [kind, length].iter().chain(words) {
        blocks.extend_from_slice(&word.to_le_bytes());
    }
    blocks.extend_from_slice(octets);
    blocks.resize(blocks.len().next_multiple_of(4), 0);
    blocks.extend_from_slice(&length.to_le_bytes());
}

/// The packets of this capture, in blocks.
fn pcapng(pcap: &[u8]) -> Vec<u8> {
    let mut blocks = Vec::with_capacity(pcap.len() * 5 / 4);
    push_block(&mut blocks, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX], b"", 0x0a0d_0d0a);
    push_block(&mut blocks, &[1, 0, 0x0001_0009, 9, 0], b"", 1);
    let mut rest = &pcap[24..];
    while let Some((header, behind)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let at_ns = u64::from(word(0)) * 1_000_000_000 + u64::from(word(4));
        let (packet, behind) = behind.split_at(word(8) as usize);
        push_block(
            &mut blocks,
            &[0, (at_ns >> 32) as u32, at_ns as u32, word(8), word(12)],
            packet,
            6,
        );
        rest = behind;
    }
    blocks
}

fn read(form: &str, capture: &[u8], packets: u32) {
    read_with(form, capture, packets, &CaptureOptions::default());
}

fn read_with(form: &str, capture: &[u8], packets: u32, options: &CaptureOptions) {
    for time in 0..TIMES {
        let begin = Instant::now();
        let mut reader = CaptureReader::new(capture, options.clone()).expect("it is one");
        let mut octets = 0;
        while let Some(query) = reader.next().expect("it is whole") {
            octets += query.message.len();
        }
        assert_eq!(reader.counts().queries, u64::from(packets));
        assert!(octets > 0);
        if time == TIMES - 1 {
            print(&format!("{form} read"), capture.len(), packets, begin);
        }
    }
}

fn print(what: &str, octets: usize, packets: u32, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{what:18} {:6.1} MB {:7.2} M packets/s {:7.0} ns each",
        octets as f64 / 1e6,
        f64::from(packets) / seconds / 1e6,
        seconds * 1e9 / f64::from(packets),
    );
}
