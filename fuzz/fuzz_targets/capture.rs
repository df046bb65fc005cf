//! Any octets are read as a capture without panic and in bounded memory; what was read adds up, every query that is
//! given is one, and after the end or an error there is nothing more.
//!
//! The first octet says where dnstap queries come from, and whether the servers are
//! restricted and repetitions over TCP left out.
#![no_main]

use std::alloc::System;

use cap::Cap;
use dnslab_capture::{CaptureOptions, CaptureReader, DnstapKind, DnstapSource};
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found. 128 MiB are a window of Zstandard.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 448 << 20);

fuzz_target!(|octets: &[u8]| {
    let Some((first, capture)) = octets.split_first() else { return };
    let options = CaptureOptions {
        ports: vec![53, 5353],
        servers: (first & 2 > 0).then(|| "192.0.2.0/24".parse().expect("it is a network")),
        dnstap_kinds: DnstapKind::ALL.to_vec(),
        dnstap_source: DnstapSource::ALL[usize::from(first & 1)],
        skips_repeats: first & 4 > 0,
    };
    let mut reader = match CaptureReader::new(capture, options) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let mut queries = 0;
    let end = loop {
        match reader.next() {
            Ok(Some(query)) => {
                queries += 1;
                assert!(query.message.len() >= 17);
                assert_eq!(query.message[2] & 0xf8, 0);
            }
            end => break end.map(|_| ()).map_err(|error| error.to_string()),
        }
        // A small compressed capture may hold very many packets.
        if queries > 1_000_000 {
            return;
        }
    };
    assert!(reader.counts().add_up(), "{:?} {end:?}", reader.counts());
    assert_eq!(reader.counts().queries, queries);
    assert!(matches!(reader.next(), Ok(None)));
});
