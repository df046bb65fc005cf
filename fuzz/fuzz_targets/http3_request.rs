//! Any octets are read as a request of HTTP/3, as a server reads those of a stream that has ended,
//! without panic; what is accepted is no longer than a DNS message may be.
#![no_main]

use dnslab_transport::read_http3_request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Ok(message) = read_http3_request(octets, "/q") {
        assert!(message.len() <= 65_535);
    }
});
