//! Any octets of a sender of dnstap are understood or refused, in pieces as in one, without panic and in bounded
//! memory; a file that is made of its frames has them all.
//!
//! The first octet says how long the pieces are.
#![no_main]

use std::alloc::System;

use cap::Cap;
use dnslab_capture::{
    CaptureOptions, CaptureReader, FrameCounter, FrameReceiver, FrameWriter, SenderFault,
};
use libfuzzer_sys::fuzz_target;

/// An allocation beyond it ends the process, which is found.
#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, 448 << 20);

/// Frames, replies, and how it ended.
type Received = (Vec<Vec<u8>>, Vec<u8>, Result<bool, SenderFault>);

fn received(said: &[u8], piece: usize) -> Received {
    let mut receiver = FrameReceiver::default();
    let (mut frames, mut replies) = (Vec::new(), Vec::new());
    for octets in said.chunks(piece) {
        match receiver.receive(octets, &mut |frame| frames.push(frame.to_vec())) {
            Ok(reply) => replies.extend(reply),
            Err(fault) => return (frames, replies, Err(fault)),
        }
    }
    (frames, replies, Ok(receiver.is_over()))
}

fuzz_target!(|octets: &[u8]| {
    let Some((piece, said)) = octets.split_first() else { return };
    let whole = received(said, said.len().max(1));
    let (frames, replies, end) = &whole;
    // ACCEPT and FINISH.
    assert!(replies.len() <= 42 + 12);
    let in_pieces = received(said, usize::from(*piece).max(1));
    assert_eq!((&in_pieces.0, &in_pieces.2), (frames, end));
    // Nobody needs a reply who is refused.
    assert!(end.is_err() || in_pieces.1 == *replies);
    let mut counter = FrameCounter::new(CaptureOptions::default());
    let mut writer = FrameWriter::new(Vec::new()).expect("a vector grows");
    for frame in frames {
        let _ = counter.count(frame);
        writer.write(frame).expect("a vector grows");
    }
    let file = writer.finish().expect("a vector grows");
    let mut reader = CaptureReader::new(&file[..], CaptureOptions::default()).expect("it has START");
    while reader.next().expect("it is whole").is_some() {}
    assert_eq!(reader.counts(), counter.counts());
});
