//! Captures that are made octet by octet, through the whole reader.

mod containers;
mod packets;
mod streams;
mod writer;

use proptest::prelude::*;

use crate::made::{client, pcap, query, read_with, server, udp};
use crate::{CaptureOptions, DnstapKind, DnstapSource};

/// Any octets behind the beginnings of all formats.
fn nearly_captures() -> impl Strategy<Value = Vec<u8>> {
    let beginnings = prop::sample::select(vec![
        Vec::new(),
        crate::made::pcap_header(0xa1b2_c3d4, 1, true),
        crate::made::pcap_header(0xa1b2_3c4d, 101, false),
        [crate::made::section(true), crate::made::interface(101, 0, b"", true)].concat(),
        [crate::made::section(false), crate::made::interface(1, 96, b"\x09\0\x01\0\x83", false)]
            .concat(),
        b"\0\0\0\0\0\0\0\x04\0\0\0\x02".to_vec(),
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec(),
        b"\x28\xb5\x2f\xfd".to_vec(),
    ]);
    (beginnings, prop::collection::vec(any::<u8>(), 0..300))
        .prop_map(|(beginning, rest)| [beginning, rest].concat())
}

proptest! {
    #[test]
    fn any_octets_are_read_or_refused(capture in nearly_captures()) {
        for dnstap_source in DnstapSource::ALL {
            let options = CaptureOptions {
                ports: (0..=u16::MAX).collect(),
                servers: None,
                dnstap_kinds: DnstapKind::ALL.to_vec(),
                dnstap_source,
                skips_repeats: true,
            };
            let (_, _, end) = read_with(&capture, options);
            let _ = end.map_err(|error| error.to_string());
        }
    }

    #[test]
    fn any_changes_to_packets_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let data = crate::made::stream(&[query(3), query(4)]);
        let whole = udp(client(1), server(), &crate::made::long_query(2, 600));
        let mut packets = vec![
            udp(client(0), server(), &query(1)),
            crate::made::tcp(client(2), server(), 99, crate::made::SYN, b""),
            crate::made::tcp(client(2), server(), 100, 0, &data),
            udp(crate::made::client6(0), crate::made::server6(), &query(5)),
        ];
        packets.extend(crate::made::fragments(&whole, 5, 200));
        let mut capture = pcap(&packets);
        let header = 24;
        for (index, octet) in changes {
            let at = header + index.index(capture.len() - header);
            capture[at] = octet;
        }
        let _ = read_with(&capture, CaptureOptions::default());
    }
}
