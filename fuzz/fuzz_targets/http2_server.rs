//! Whatever a client sends over HTTP/2, no request is handed out twice at one time, what is handed out
//! fits in its bounds, and nothing panics.
#![no_main]

use dnslab_transport::http2::Server;
use libfuzzer_sys::fuzz_target;

/// What a client says first, so that the rest is not refused for the lack of it (RFC 9113, section
/// 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fuzz_target!(|octets: &[u8]| {
    let (mut server, mut out, mut held) = (Server::with_streams("/q", 8), Vec::new(), Vec::new());
    server.receive(PREFACE);
    for part in octets.chunks(97) {
        server.receive(part);
        let is_over = server.poll(&mut out).is_err();
        while let Some(request) = server.next_request() {
            assert!(request.message.len() <= 65_535);
            assert!(!held.contains(&request.id), "{:?} was handed out twice", request.id);
            // The content decides what becomes of it: an answer, a refusal, or an answer later.
            match request.message.len() % 3 {
                // Its client may have given it up already.
                0 => {
                    let _ = server.answer(request.id, &[0; 700]);
                }
                1 => server.refuse(request.id, 400),
                _ => held.push(request.id),
            }
        }
        if held.len() > 4 {
            for id in held.drain(..) {
                // Its client may have given it up meanwhile.
                let _ = server.answer(id, &[0; 60_000]);
            }
        }
        if is_over || server.poll(&mut out).is_err() {
            break;
        }
        out.clear();
    }
});
