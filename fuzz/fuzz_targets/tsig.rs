//! Whatever comes as the response to a signed query is verified without panic; and what is not the response
//! that the server signed is not taken for it.
#![no_main]

use dnslab_wire::{Additions, Edns, Query, QueryOptions, TsigKey};
use domain::base::Name;
use domain::base::iana::Rtype;
use libfuzzer_sys::fuzz_target;

/// The key that signed the seeds, which are BIND's (crates/wire/src/tsig/tests.rs).
const KEY: &str = "hmac-sha256:loadgen.example:bGFib3JhdG9yeSBzZWNyZXQgb2YgMzIgb2N0ZXRzISE=";

/// When it did, seconds since 1970.
const NOW: u64 = 1_795_221_891;

/// What BIND answered.
const RESPONSE: &[u8] = include_bytes!("../seeds/tsig/good");

fuzz_target!(|octets: &[u8]| {
    let key: TsigKey = KEY.parse().expect("the text is a key");
    let name: Name<Vec<u8>> = "www.example".parse().expect("the text is a name");
    let options = QueryOptions { recursion_desired: false, edns: Some(Edns::default()) };
    let query = Query::new(&name, Rtype::A, &options).expect("the query is short");
    let mut message = Vec::new();
    query.append_to(0x1234, &Additions::default(), &mut message);
    let signed = key.sign(&mut message, NOW);
    match signed.verify(octets, NOW) {
        // Neither the id nor the case of the record's names is signed, nor its class and TTL.
        Ok(()) => assert_eq!(octets.len(), RESPONSE.len()),
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
    if let Ok(text) = std::str::from_utf8(octets)
        && let Ok(key) = text.parse::<TsigKey>()
    {
        let mut message = vec![0; 12];
        key.sign(&mut message, NOW);
        assert!(message.len() > 12);
    }
});
