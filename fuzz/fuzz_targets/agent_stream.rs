//! Any octets are read as what an agent says, and as what its coordinator says, without panic and in bounded memory;
//! messages that are accepted can be written and read again. What was changed in a frame is not read at all, so octets
//! are also taken as bodies.
#![no_main]

use std::alloc::System;
use std::sync::Arc;

use cap::Cap;
use dnslab_protocol::{
    FrameReader, FromAgent, GreetingReader, PackedQueries, SentJob, SentQueries, ToAgent, body_of, message_of,
};
use dnslab_traffic::QueryList;
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 256 << 20);

fuzz_target!(|octets: &[u8]| {
    GreetingReader::default().push(octets).ok();
    let mut frames = FrameReader::default();
    for piece in octets.chunks(61) {
        frames.push(piece);
        while let Ok(Some(body)) = frames.next_body() {
            read(body);
        }
    }
    read(octets);
});

fn read(body: &[u8]) {
    if let Ok(message) = message_of::<FromAgent>(body) {
        let written = body_of(&message).expect("what was read can be written");
        assert!(message_of::<FromAgent>(&written).is_ok());
    }
    if let Ok(message) = message_of::<ToAgent>(body) {
        let written = body_of(&message).expect("what was read can be written");
        assert_eq!(message_of::<ToAgent>(&written).ok(), Some(message));
    }
    if let Ok(job) = message_of::<SentJob>(body) {
        let none = QueryList::from_queries(Vec::new(), String::new());
        job.with_queries(Arc::new(none)).ok();
    }
    if let Ok(part) = message_of::<SentQueries>(body) {
        part.queries(1).ok();
    }
    if let Ok(packed) = message_of::<PackedQueries>(body) {
        packed.queries().ok();
    }
}
