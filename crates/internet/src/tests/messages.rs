//! No octets make a server panic, and what it sends is a message.

use domain::base::Message;
use proptest::prelude::*;

use super::internet;
use crate::{Carrier, Internet, Scratch};

fn check(internet: &Internet, place: u64, query: &[u8], carrier: Carrier) {
    let network = internet.networks().next().unwrap();
    let mut out = vec![0; 65_535];
    let mut scratch = Scratch::default();
    let address = network.at(place);
    let Some(length) = internet.answer(address, query, carrier, &mut scratch, &mut out) else {
        return;
    };
    let message = Message::from_octets(&out[..length]).unwrap();
    assert!(message.header().qr());
    for section in [message.answer(), message.authority(), message.additional()] {
        for record in section.unwrap() {
            record.unwrap();
        }
    }
    let first = out[..length].to_vec();
    // What was made before changes nothing.
    let again = internet.answer(address, query, carrier, &mut scratch, &mut out).unwrap();
    assert_eq!(first, &out[..again]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_octets_are_answered(octets: Vec<u8>, place in 0_u64..50_000) {
        check(&internet("[operators]\ncount = 100"), place, &octets, Carrier::Datagram);
    }

    #[test]
    fn any_question_is_answered(
        prefix in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..4),
        i: u64,
        keeps in 0_usize..5,
        rtype in prop::sample::select(vec![1_u16, 2, 5, 6, 15, 16, 28, 43, 46, 47, 48, 50, 255, 65, 9999]),
        place in 0_u64..600,
        flags: [u8; 2],
        edns: Option<(u16, bool)>,
        is_stream: bool,
    ) {
        let internet = internet("[operators]\ncount = 20\n[dnssec]\ndomains = 0.5\n[names]\ndeep = 0.5\n");
        let name = internet.name(i % (1 << 40));
        let mut octets = vec![1, 2, flags[0] & 0x01, flags[1], 0, 1, 0, 0, 0, 0, 0, 0];
        for label in &prefix {
            octets.push(label.len() as u8);
            octets.extend_from_slice(label);
        }
        // The name without some of its labels.
        let mut rest = name.octets();
        for _ in 0..keeps {
            let length = usize::from(rest[0]);
            if length > 0 {
                rest = &rest[length + 1..];
            }
        }
        octets.extend_from_slice(rest);
        octets.extend_from_slice(&[(rtype >> 8) as u8, rtype as u8, 0, 1]);
        if let Some((payload, dnssec_ok)) = edns {
            octets[11] = 1;
            let [high, low] = payload.to_be_bytes();
            let flags = if dnssec_ok { 0x80 } else { 0 };
            octets.extend_from_slice(&[0, 0, 41, high, low, 0, 0, flags, 0, 0, 0]);
        }
        let carrier = if is_stream { Carrier::Stream } else { Carrier::Datagram };
        check(&internet, place, &octets, carrier);
    }
}
