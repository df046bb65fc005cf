//! Writes a capture of queries over UDP: `make_capture FILE QUERIES CLIENTS QPS`. Each query comes from any of the
//! clients with equal chance, and all names are different.

use std::fs::File;
use std::io::{BufWriter, Error};

use dnslab_capture::{CaptureWriter, Captured};
use dnslab_wire::Transport;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, queries, clients, qps] = words.as_slice() else {
        return Err(Error::other("make_capture FILE QUERIES CLIENTS QPS").into());
    };
    let (queries, clients, qps): (u64, u32, f64) =
        (queries.parse()?, clients.parse()?, qps.parse()?);
    let mut writer = CaptureWriter::pcap(BufWriter::new(File::create(path)?))?;
    let mut message = Vec::new();
    for number in 0..queries {
        message.clear();
        message.extend_from_slice(&[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 11]);
        message.extend_from_slice(format!("host-{:06}", number % 1_000 + 1).as_bytes());
        message.extend_from_slice(b"\x07example\x04test\0\0\x01\0\x01");
        // A multiplier that is prime to any number of clients below 2^32 but its own multiples.
        let client = (number.wrapping_mul(2_654_435_761) >> 7) % u64::from(clients);
        let client = std::net::Ipv4Addr::from_bits(0x0a00_0000 + client as u32);
        let query = Captured {
            at_ns: 1_700_000_000_000_000_000 + (number as f64 / qps * 1e9) as u64,
            client: (client, 1_024 + (number % 60_000) as u16).into(),
            server: ([192, 0, 2, 53], 53).into(),
            transport: Transport::Udp,
            message: &message,
        };
        writer.write(&query)?;
    }
    writer.finish()?;
    Ok(())
}
