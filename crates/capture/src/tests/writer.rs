//! What the writer writes, the reader reads.

use dnslab_wire::Transport;
use proptest::prelude::*;

use crate::made::*;
use crate::{
    CaptureOptions, CaptureWriter, Captured, FrameCounter, FrameReceiver, FrameWriter, Reason,
    WriteError,
};

fn addresses() -> impl Strategy<Value = (std::net::SocketAddr, std::net::SocketAddr)> {
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>())
        .prop_map(|(client, server, port)| ((client, port).into(), (server, 53).into()));
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u16>())
        .prop_map(|(client, server, port)| ((client, port).into(), (server, 53).into()));
    prop_oneof![v4, v6]
}

proptest! {
    #[test]
    fn queries_come_back(
        queries in prop::collection::vec((addresses(), 0u64..4_000_000_000_000_000_000, 30usize..3_000), 0..20),
        transport in prop::sample::select(Transport::ALL.to_vec()),
        is_dnstap in any::<bool>(),
    ) {
        let transport = if is_dnstap { transport } else { Transport::Udp };
        let mut writer = if is_dnstap { CaptureWriter::dnstap(Vec::new()) } else { CaptureWriter::pcap(Vec::new()) }.unwrap();
        let mut expected = Vec::new();
        for (number, ((client, server), at_ns, length)) in queries.into_iter().enumerate() {
            let message = long_query(number as u32, length);
            writer.write(&Captured { at_ns, client, server, transport, message: &message }).unwrap();
            expected.push(Seen { at_ns, client, server, transport, message });
        }
        let (seen, counts) = read(&writer.finish().unwrap());
        prop_assert_eq!(seen, expected);
        prop_assert_eq!(counts.all_skipped(), 0);
    }
}

#[test]
fn what_has_no_place_in_a_packet_is_refused_and_not_written() {
    let message = &query(1)[..];
    let good = Captured {
        at_ns: 1,
        client: client(0),
        server: server(),
        transport: Transport::Udp,
        message,
    };
    let mut writer = CaptureWriter::pcap(Vec::new()).unwrap();
    let long = vec![0; 65_508];
    for (wrong, expected) in [
        (
            Captured { transport: Transport::Dot, ..good },
            "a query over dot cannot be written into pcap",
        ),
        (Captured { client: client6(0), ..good }, "they are of different families"),
        (
            Captured { message: &long, ..good },
            "a message of 65508 octets does not fit into a packet, which carries 65507",
        ),
        (Captured { at_ns: u64::MAX, ..good }, "is after the end of pcap's time in 2106"),
    ] {
        let error = writer.write(&wrong).unwrap_err();
        assert!(!matches!(error, WriteError::Write(_)));
        assert!(error.to_string().contains(expected), "{error}");
    }
    writer.write(&good).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).0.len(), 1);
    let mut writer = CaptureWriter::pcap(Vec::new()).unwrap();
    let fits = long_query(1, 65_507);
    writer.write(&Captured { message: &fits, ..good }).unwrap();
    assert_eq!(messages(&read(&writer.finish().unwrap()).0), [fits]);
}

#[test]
fn frames_are_written_as_they_came_and_counted() {
    let query = query(1);
    let captured = Captured {
        at_ns: 5,
        client: client(0),
        server: server(),
        transport: Transport::Tcp,
        message: &query,
    };
    let mut writer = CaptureWriter::dnstap(Vec::new()).unwrap();
    for _ in 0..3 {
        writer.write(&captured).unwrap();
    }
    let capture = writer.finish().unwrap();
    let mut receiver = FrameReceiver::default();
    let mut writer = FrameWriter::new(Vec::new()).unwrap();
    let mut counter = FrameCounter::new(CaptureOptions::default());
    let mut take = |frame: &[u8]| {
        assert_eq!(counter.count(frame), Ok(()));
        writer.write(frame).unwrap();
    };
    receiver.receive(&capture, &mut take).unwrap();
    assert_eq!(counter.count(b"\xff"), Err(Reason::DnstapMalformed));
    assert!(receiver.is_over() && counter.counts().add_up());
    assert_eq!((counter.counts().packets, counter.counts().queries), (4, 3));
    // STOP is not written yet.
    assert_eq!(writer.octets(), capture.len() as u64 - 12);
    assert_eq!(writer.finish().unwrap(), capture);
}
