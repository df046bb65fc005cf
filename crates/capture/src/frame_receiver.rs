//! Frame Streams from a sender that connects to a socket.

use crate::frame_streams::{
    ACCEPT, CONTENT_TYPE, ContentTypes, ESCAPE, FINISH, MAX_CONTROL, READY, START, STOP, content,
    push_control, word,
};
use crate::packet::MAX_PACKET;

/// One connection of a server that sends dnstap: octets go in, frames and replies come out.
///
/// The sender begins with READY and waits for ACCEPT, or begins with START and wants no answer. A frame that is not
/// whole yet is held, so memory is at most 2 MiB and what came last.
#[derive(Debug, Default)]
pub struct FrameReceiver {
    state: State,
    partial: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Begin,
    /// READY was answered.
    Greeted,
    Frames {
        /// It waits for FINISH after its STOP.
        wants_finish: bool,
    },
    Over,
}

/// A sender does not speak as one of dnstap. Nothing further is read from it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenderFault {
    /// It begins with something else than READY or START.
    #[error("it does not speak Frame Streams: it begins with `{}`", first.escape_ascii())]
    NotFrameStreams {
        /// Its first octets.
        first: [u8; 12],
    },
    /// It has other content.
    #[error("it offers `{}`, not `protobuf:dnstap.Dnstap`", offered.join("`, `"))]
    ContentType {
        /// What it offers.
        offered: Vec<String>,
    },
    /// A control frame stands where it must not.
    #[error("it sends a control frame of type {kind} and {length} octets out of place")]
    OutOfPlace {
        /// The type of the control frame.
        kind: u32,
        /// Its length.
        length: u32,
    },
    /// A frame is longer than any of dnstap.
    #[error("it announces a frame of {length} octets, and none can have more than {MAX_PACKET}")]
    TooLong {
        /// What it announces.
        length: u32,
    },
}

impl FrameReceiver {
    /// Takes octets that came, and gives each whole frame of dnstap to `frame`. Returns what is to be sent back,
    /// which is mostly nothing.
    ///
    /// # Errors
    /// When the sender does not speak as one of dnstap. Frames before were given.
    pub fn receive(
        &mut self,
        octets: &[u8],
        frame: &mut dyn FnMut(&[u8]),
    ) -> Result<Vec<u8>, SenderFault> {
        let mut reply = Vec::new();
        let mut partial = std::mem::take(&mut self.partial);
        let is_new = partial.is_empty();
        if !is_new {
            partial.extend_from_slice(octets);
        }
        let all = if is_new { octets } else { &partial };
        let mut taken = 0;
        while let Some(more) = self.step(&all[taken..], frame, &mut reply)? {
            taken += more;
        }
        if is_new {
            partial.extend_from_slice(&octets[taken..]);
        } else {
            partial.drain(..taken);
        }
        // The memory of a long frame is given back when it has been taken.
        if !partial.is_empty() && self.state != State::Over {
            self.partial = partial;
        }
        Ok(reply)
    }

    /// It has begun to send frames.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        matches!(self.state, State::Frames { .. } | State::Over)
    }

    /// It has sent STOP: no frame follows.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// A frame was begun and is not whole.
    #[must_use]
    pub fn is_within_frame(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Takes what is first in `rest`, and says how many octets it had; `None` if it is not whole.
    fn step(
        &mut self,
        rest: &[u8],
        frame: &mut dyn FnMut(&[u8]),
        reply: &mut Vec<u8>,
    ) -> Result<Option<usize>, SenderFault> {
        if self.state == State::Over || rest.len() < 4 {
            return Ok(None);
        }
        let length = word(rest, 0);
        if length == 0 {
            return self.control(rest, reply);
        }
        if !matches!(self.state, State::Frames { .. }) {
            return match rest.first_chunk() {
                Some(first) => Err(SenderFault::NotFrameStreams { first: *first }),
                None => Ok(None),
            };
        }
        let whole = 4 + length as usize;
        if whole - 4 > MAX_PACKET {
            return Err(SenderFault::TooLong { length });
        }
        let Some(octets) = rest.get(4..whole) else { return Ok(None) };
        frame(octets);
        Ok(Some(whole))
    }

    fn control(&mut self, rest: &[u8], reply: &mut Vec<u8>) -> Result<Option<usize>, SenderFault> {
        let Some(first) = rest.first_chunk::<{ ESCAPE + 4 }>() else { return Ok(None) };
        let (length, kind) = (word(rest, 4), word(rest, 8));
        let is_beginning = matches!(kind, READY | START);
        if self.state == State::Begin && !is_beginning {
            return Err(SenderFault::NotFrameStreams { first: *first });
        }
        let out_of_place = SenderFault::OutOfPlace { kind, length };
        let whole = ESCAPE + length as usize;
        if !(4..=MAX_CONTROL).contains(&(whole - ESCAPE)) {
            return Err(out_of_place);
        }
        let Some(fields) = rest.get(ESCAPE + 4..whole) else { return Ok(None) };
        self.state = match (self.state, kind) {
            (State::Begin, READY) => {
                check_content(fields)?;
                push_control(reply, ACCEPT, Some(CONTENT_TYPE));
                State::Greeted
            }
            (State::Begin | State::Greeted, START) => {
                check_content(fields)?;
                State::Frames { wants_finish: self.state == State::Greeted }
            }
            (State::Frames { wants_finish }, STOP) => {
                if wants_finish {
                    push_control(reply, FINISH, None);
                }
                State::Over
            }
            (_, ACCEPT | START | STOP | READY | FINISH) => return Err(out_of_place),
            // Others are for later versions, and mean nothing for the frames.
            (state, _) => state,
        };
        Ok(Some(whole))
    }
}

/// Who offers nothing takes anything.
fn check_content(fields: &[u8]) -> Result<(), SenderFault> {
    let mut types = ContentTypes::of(fields);
    if fields.is_empty() || types.any(|offered| offered == CONTENT_TYPE) {
        return Ok(());
    }
    Err(SenderFault::ContentType { offered: ContentTypes::of(fields).map(content).collect() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a sender says, and what becomes of it when it comes in pieces.
    fn received(said: &[u8], piece: usize) -> (Vec<Vec<u8>>, Vec<u8>, Result<bool, SenderFault>) {
        let mut receiver = FrameReceiver::default();
        let (mut frames, mut replies) = (Vec::new(), Vec::new());
        for octets in said.chunks(piece.max(1)) {
            match receiver.receive(octets, &mut |frame| frames.push(frame.to_vec())) {
                Ok(reply) => replies.extend(reply),
                Err(fault) => return (frames, replies, Err(fault)),
            }
        }
        (frames, replies, Ok(receiver.is_over()))
    }

    fn control(kind: u32, content_type: Option<&[u8]>) -> Vec<u8> {
        let mut octets = Vec::new();
        push_control(&mut octets, kind, content_type);
        octets
    }

    fn frame(octets: &[u8]) -> Vec<u8> {
        [&(octets.len() as u32).to_be_bytes(), octets].concat()
    }

    const DNSTAP: Option<&[u8]> = Some(CONTENT_TYPE);

    #[test]
    fn a_sender_is_greeted_and_its_end_confirmed() {
        let said = [
            control(READY, DNSTAP),
            control(START, DNSTAP),
            frame(b"one"),
            // A control frame of a later version.
            control(9, None),
            frame(&[7; 3_000]),
            control(STOP, None),
            b"and whatever follows".to_vec(),
        ]
        .concat();
        for piece in [1, 2, 3, 5, 40, 4_096] {
            let (frames, replies, end) = received(&said, piece);
            assert_eq!(frames, [b"one".to_vec(), vec![7; 3_000]], "{piece}");
            let expected =
                b"\0\0\0\0\0\0\0\x22\0\0\0\x01\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap\
                             \0\0\0\0\0\0\0\x04\0\0\0\x05";
            assert_eq!(replies, expected, "{piece}");
            assert_eq!(end, Ok(true));
        }
    }

    #[test]
    fn a_sender_that_wants_no_answer_gets_none() {
        let said = [control(START, None), frame(b"one"), control(STOP, None)].concat();
        assert_eq!(received(&said, 7), (vec![b"one".to_vec()], vec![], Ok(true)));
        let cut = &said[..said.len() - 13];
        let (frames, _, end) = received(cut, 100);
        assert_eq!((frames.len(), end), (0, Ok(false)));
    }

    #[test]
    fn one_of_several_types_is_enough_and_none_is_any() {
        let mut ready = control(READY, Some(b"other"));
        ready.extend(&control(READY, DNSTAP)[12..]);
        ready[7] = (ready.len() - 8) as u8;
        assert_eq!(received(&ready, 3).2, Ok(false));
        assert!(received(&ready, 3).1.len() > 8);
        assert_eq!(received(&control(READY, None), 3).2, Ok(false));
    }

    fn check_refused(said: &[u8], expected: &str) {
        for piece in [1, 1_000] {
            let fault = received(said, piece).2.unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn strangers_are_refused() {
        let (ready, start) = (control(READY, DNSTAP), control(START, DNSTAP));
        check_refused(
            &control(READY, Some(b"json")),
            "offers `json`, not `protobuf:dnstap.Dnstap`",
        );
        check_refused(&control(START, Some(b"json")), "offers `json`");
        check_refused(b"GET / HTTP/1.1\r\n\r\n", "begins with `GET / HTTP/1`");
        check_refused(&control(ACCEPT, DNSTAP), "does not speak Frame Streams");
        check_refused(b"\0\0\0\0\xff\xff\xff\xff\0\0\0\x04", "type 4 and 4294967295 octets");
        check_refused(b"\0\0\0\0\0\0\0\x0c\0\0\0\x04\0\0\0\x01\xff\xff\xff\xff", "offers ``");
        check_refused(&[&ready[..], &ready].concat(), "type 4 and 34 octets out of place");
        check_refused(&[&ready[..], &start, &ready].concat(), "type 4 and 34 octets out of place");
        check_refused(
            &[&ready[..], &frame(b"early frames")].concat(),
            "does not speak Frame Streams",
        );
        let long = [&start[..], &(MAX_PACKET as u32 + 1).to_be_bytes()].concat();
        check_refused(&long, "announces a frame of 1048577 octets");
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 0..8),
            tail in prop::collection::vec(any::<u8>(), 0..40),
            piece in 1usize..50,
        ) {
            let mut said = [control(READY, DNSTAP), control(START, DNSTAP)].concat();
            frames.iter().for_each(|octets| said.extend(frame(octets)));
            said.extend(&tail);
            let whole = received(&said, said.len());
            let in_pieces = received(&said, piece);
            prop_assert_eq!((&in_pieces.0, &in_pieces.2), (&whole.0, &whole.2));
            // Nobody needs a reply who is refused.
            prop_assert!(whole.2.is_err() || in_pieces.1 == whole.1);
            prop_assert!(whole.0.starts_with(&frames));
        }
    }
}
