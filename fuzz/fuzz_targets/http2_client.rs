//! Whatever a server sends over HTTP/2, no request is told of twice, and nothing panics.
#![no_main]

use std::collections::HashSet;

use dnslab_transport::http2::Client;
use dnslab_transport::{Exchange, Method, Target};
use libfuzzer_sys::fuzz_target;

/// A SETTINGS frame without settings, so that the rest is not refused for the lack of one.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

fuzz_target!(|octets: &[u8]| {
    let (authority, path) = ("ns.example".to_owned(), "/dns-query".to_owned());
    let target = Target { authority, path, method: Method::Post };
    let mut client = Client::new(&target).expect("the target is one");
    let (mut out, mut open) = (Vec::new(), HashSet::new());
    client.receive(&SETTINGS);
    for (number, part) in (0_u16..).zip(octets.chunks(97)) {
        if client.send(number, &[0; 20]) {
            open.insert(number);
        }
        client.receive(part);
        let polled = client.poll(&mut out, &mut |exchange| {
            let (Exchange::Answer { request, .. }
            | Exchange::Refused { request, .. }
            | Exchange::NotProcessed { request }) = exchange;
            assert!(open.remove(&request), "request {request} was told of twice, or never sent");
        });
        if polled.is_err() {
            break;
        }
        assert_eq!(client.in_flight(), open.len());
    }
});
