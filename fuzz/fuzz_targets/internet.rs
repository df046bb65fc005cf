//! Any octets that come to any server of an internet are answered by a message, or not at all, without panic and
//! inside their bounds. The first octets choose the server and how the query came; the rest is the query.
#![no_main]

use std::cell::RefCell;
use std::sync::LazyLock;

use dnslab_internet::{Carrier, Internet, Scratch};
use dnslab_wire::{Frames, Response};
use libfuzzer_sys::fuzz_target;

/// Small, signed, and with everything that names can be.
static INTERNET: LazyLock<Internet> = LazyLock::new(|| {
    let text = "domains = 1_000\n[operators]\ncount = 4\nservers = 2\nown_names = 0.5\n\
                [names]\nper_domain = 40\ndeep = 0.5\ncut = 0.5\nalias = 0.5\n[dnssec]\ndomains = 0.5\n\
                [top_level]\ncount = 20\n";
    Internet::parse(text).expect("the description is right")
});

thread_local! {
    static KEPT: RefCell<(Scratch, Vec<u8>)> = RefCell::new((Scratch::default(), vec![0; 65_535]));
}

fuzz_target!(|octets: &[u8]| {
    let Some((&[high, low, flags], rest)) = octets.split_first_chunk::<3>() else { return };
    let network = INTERNET.networks().next().expect("there is one of IPv4");
    let place = u64::from(u16::from_be_bytes([high, low])) % (INTERNET.server_count() + 2);
    let carrier = if flags & 1 == 0 { Carrier::Datagram } else { Carrier::Stream };
    // A name of the internet in the place of the query's own octets reaches what random ones do not.
    let mut query = rest.to_vec();
    if flags & 2 != 0 && rest.len() >= 20 {
        let i = u64::from_be_bytes(rest[..8].try_into().expect("there are 20"));
        query = rest[8..20].to_vec();
        query[2] &= 0x7f;
        query[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
        let name = INTERNET.name(i % 50_000);
        let mut labels = rest[20..].first().map_or(0, |octet| octet & 3);
        let mut octets = name.octets();
        while labels > 0 && octets[0] != 0 {
            octets = &octets[1 + usize::from(octets[0])..];
            labels -= 1;
        }
        query.extend_from_slice(octets);
        query.extend_from_slice(rest.get(21..25).unwrap_or(&[0, 1, 0, 1]));
    }
    KEPT.with_borrow_mut(|(scratch, out)| {
        let address = network.at(place);
        let Some(length) = INTERNET.answer(address, &query, carrier, scratch, out) else { return };
        let answer = &out[..length];
        if length > 12 {
            let response = Response::parse(answer).expect("an answer can be read");
            assert_eq!(response.question, &query[12..12 + response.question.len()]);
        }
        assert!(carrier == Carrier::Stream || length <= 4096);
        let _ = Frames::new(answer).count();
    });
});
