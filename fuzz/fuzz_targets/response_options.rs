//! Any octets are searched for an OPT record without panic; a client learns of a cookie only what it
//! may send back.
#![no_main]

use dnslab_wire::{Cookie, CookieFinding, ResponseOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let Some(read) = ResponseOptions::read(octets) else { return };
    assert_eq!(read.rcode & 0x0f, u16::from(octets[3] & 0x0f));
    let Some(option) = read.cookie else { return };
    // The cookie of a client to which this is an answer.
    let Some(client) = option.first_chunk() else { return };
    let mut cookie = Cookie::new(*client);
    match cookie.learn(&read) {
        CookieFinding::Learned => assert_eq!(cookie.server(), &option[8..]),
        CookieFinding::None => assert!(option.len() == 8 && cookie.server().is_empty()),
        CookieFinding::WrongClientCookie => assert!(!matches!(option.len(), 8 | 16..=40)),
    }
});
