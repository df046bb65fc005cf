//! Any octets are read as a response, and cut into frames, without panic, and inside their bounds.
#![no_main]

use dnslab_wire::{Frames, Response};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    if let Ok(response) = Response::parse(octets) {
        assert!(12 + response.question.len() <= octets.len());
        assert_eq!(Response::id_of(octets), Some(response.id));
    }
    let mut frames = Frames::new(octets);
    let length: usize = frames.by_ref().map(|message| message.len() + 2).sum();
    assert_eq!(length + frames.rest().len(), octets.len());
});
