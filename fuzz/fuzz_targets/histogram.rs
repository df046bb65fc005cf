//! Any octets are read as a compressed histogram without panic and in bounded memory; what is accepted has
//! the same values when it is written and read again, and merges.
//!
//! The first octet says what the others are: the encoding as it is in a record, or what it is before it is
//! compressed, which hardly any change to compressed octets would reach.
#![no_main]

use std::alloc::System;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cap::Cap;
use dnslab_figures::Histogram;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 256 << 20);

/// How HdrHistogram's compressed V2 encoding begins.
const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

fuzz_target!(|octets: &[u8]| {
    let Some((first, rest)) = octets.split_first() else { return };
    let encoded = if first % 2 == 0 { rest.to_vec() } else { compressed(rest) };
    let Ok(read) = Histogram::from_base64(&BASE64.encode(encoded)) else { return };
    let again = Histogram::from_base64(&read.to_base64()).expect("what was written can be read");
    assert_eq!(again, read);
    let mut sum = Histogram::new();
    sum.merge(&read);
    assert_eq!(sum.is_empty(), read.is_empty());
    assert!(read.quantile_ns(0.5) <= read.max_ns());
});

/// The octets compressed, behind their head.
fn compressed(octets: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(octets).expect("a vector takes any octets");
    let deflated = encoder.finish().expect("a vector takes any octets");
    let length = (deflated.len() as u32).to_be_bytes();
    [COMPRESSED.as_slice(), &length, &deflated].concat()
}
