//! Any octets are read as a response, parsed in full, digested, shown, and cut into frames, without panic, and inside
//! their bounds.
#![no_main]

use dnslab_wire::{AnswerDigest, AnswerFault, Frames, Response, check_answer, message_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let read = Response::parse(octets);
    if let Ok(response) = read {
        assert!(12 + response.question.len() <= octets.len());
        assert_eq!(Response::id_of(octets), Some(response.id));
    }
    check(octets, read.is_ok_and(|response| response.truncated));
    assert_eq!(AnswerDigest::of(octets, &mut Vec::new()).is_ok(), check_answer(octets).is_ok());
    assert!(!message_text(octets).is_empty());
    let mut frames = Frames::new(octets);
    let length: usize = frames.by_ref().map(|message| message.len() + 2).sum();
    assert_eq!(length + frames.rest().len(), octets.len());
});

/// Of a message that is whole no octet can be missing, and none can be added.
fn check(octets: &[u8], is_truncated: bool) {
    let checked = check_answer(octets);
    if let (Ok(()), false) = (checked, is_truncated) {
        assert!(check_answer(&octets[..octets.len() - 1]).is_err());
        let longer = [octets, &[0]].concat();
        assert_eq!(check_answer(&longer), Err(AnswerFault::Trailing(1)));
    }
    if let Err(fault) = checked {
        assert!(!fault.to_string().is_empty());
    }
}
