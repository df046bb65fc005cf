//! Frame Streams: frames of one content type, with or without a handshake.
//!
//! The format is described in `fstrm/control.h` of libfstrm, which servers write dnstap with.

use std::io::{self, Read, Write};
use std::ops::Range;

use crate::container::{MAX_PACKET, end_or_cut};
use crate::error::Fault;
use crate::window::Window;

/// What a stream of dnstap says it carries.
pub(crate) const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";

// Control frames.
const ACCEPT: u32 = 1;
pub(crate) const START: u32 = 2;
pub(crate) const STOP: u32 = 3;
const READY: u32 = 4;
const FINISH: u32 = 5;

/// The only field of a control frame.
const CONTENT_TYPE_FIELD: u32 = 1;

/// The longest control frame, octets.
const MAX_CONTROL: usize = 512;

/// Octets before the type of a control frame: an empty frame and a length.
const ESCAPE: usize = 8;

/// A stream in one direction, as it is in a file, or on a socket after the handshake.
#[derive(Debug)]
pub(crate) struct FrameStream {
    is_over: bool,
}

impl FrameStream {
    /// Reads the START frame; `None` if something else is there.
    pub(crate) fn open<R: Read>(window: &mut Window<R>) -> Result<Option<Self>, Fault> {
        const EXPECTED: &str = "the START frame of a frame stream";
        if !window.fill(ESCAPE + 4)? {
            return Err(Fault::Cut(EXPECTED));
        }
        let (length, kind) = (word(window.data(), 4) as usize, word(window.data(), 8));
        if kind == READY && length <= MAX_CONTROL {
            let what = "the stream begins with a handshake (READY), which wants an answer: it comes from a socket";
            return Err(Fault::Damaged(what.to_owned()));
        }
        if kind != START || !(4..=MAX_CONTROL).contains(&length) {
            return Ok(None);
        }
        if !window.fill(ESCAPE + length)? {
            return Err(Fault::Cut(EXPECTED));
        }
        let fields = &window.data()[ESCAPE + 4..ESCAPE + length];
        let mut types = ContentTypes { fields };
        match types.next() {
            // The sender says nothing about it: dnstap is what is read here.
            None if fields.is_empty() => {}
            Some(CONTENT_TYPE) => {}
            found => {
                let found = String::from_utf8_lossy(found.unwrap_or_default()).into_owned();
                return Err(Fault::ContentType(found));
            }
        }
        window.consume(ESCAPE + length);
        Ok(Some(Self { is_over: false }))
    }

    /// The next data frame; `None` after STOP.
    pub(crate) fn next<R: Read>(
        &mut self,
        window: &mut Window<R>,
    ) -> Result<Option<Range<usize>>, Fault> {
        while !self.is_over {
            if !window.fill(4)? {
                end_or_cut(window, "a frame")?;
                return Err(Fault::Cut("a frame, or STOP"));
            }
            let length = word(window.data(), 0) as usize;
            if length > MAX_PACKET {
                return Err(Fault::Damaged(format!(
                    "a frame of {length} octets is announced, and none can have more than {MAX_PACKET}"
                )));
            }
            if length > 0 {
                if !window.fill(4 + length)? {
                    return Err(Fault::Cut("a whole frame"));
                }
                let from = window.start() + 4;
                window.consume(4 + length);
                return Ok(Some(from..from + length));
            }
            self.control(window)?;
        }
        Ok(None)
    }

    fn control<R: Read>(&mut self, window: &mut Window<R>) -> Result<(), Fault> {
        const EXPECTED: &str = "a whole control frame";
        if !window.fill(ESCAPE + 4)? {
            return Err(Fault::Cut(EXPECTED));
        }
        let (length, kind) = (word(window.data(), 4) as usize, word(window.data(), 8));
        let is_known = matches!(kind, ACCEPT | START | READY | FINISH);
        if is_known || !(4..=MAX_CONTROL).contains(&length) {
            return Err(Fault::Damaged(format!(
                "a control frame of type {kind} and {length} octets stands among the frames, where only STOP may be"
            )));
        }
        if !window.fill(ESCAPE + length)? {
            return Err(Fault::Cut(EXPECTED));
        }
        window.consume(ESCAPE + length);
        // Others are for later versions, and mean nothing for the frames.
        self.is_over = kind == STOP;
        Ok(())
    }
}

/// The sender of a frame stream does not greet as one of dnstap.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The stream begins with something else than READY.
    #[error(
        "the sender of dnstap does not begin with READY but with `{}`: it must speak Frame Streams in both directions",
        first.escape_ascii()
    )]
    NotReady {
        /// The first octets.
        first: [u8; 12],
    },
    /// The sender has other content.
    #[error("the sender offers `{}`, not `protobuf:dnstap.Dnstap`", offered.join("`, `"))]
    ContentType {
        /// What it offers.
        offered: Vec<String>,
    },
    /// The stream failed, or ended in the handshake.
    #[error("the handshake with the sender of dnstap failed: {0}")]
    Stream(#[from] io::Error),
}

/// Greets a server that sends dnstap to a socket: waits for READY and answers ACCEPT. No octet behind READY is
/// read. Then give the stream to a [`crate::CaptureReader`]. It ends after STOP, or is cut. In the first case
/// [`finish_frame_stream`] says that all was read.
///
/// # Errors
/// When the sender does not offer dnstap, or the stream fails.
pub fn accept_frame_stream(stream: &mut (impl Read + Write)) -> Result<(), HandshakeError> {
    let mut first = [0; ESCAPE + 4];
    stream.read_exact(&mut first)?;
    let length = word(&first, 4) as usize;
    if word(&first, 0) != 0 || word(&first, 8) != READY || !(4..=MAX_CONTROL).contains(&length) {
        return Err(HandshakeError::NotReady { first });
    }
    let mut fields = vec![0; length - 4];
    stream.read_exact(&mut fields)?;
    let types = || ContentTypes { fields: &fields };
    // Who offers nothing takes anything.
    if !fields.is_empty() && !types().any(|offered| offered == CONTENT_TYPE) {
        let offered = types().map(|it| String::from_utf8_lossy(it).into_owned()).collect();
        return Err(HandshakeError::ContentType { offered });
    }
    let mut accept = Vec::new();
    push_control(&mut accept, ACCEPT, Some(CONTENT_TYPE));
    stream.write_all(&accept)?;
    stream.flush()?;
    Ok(())
}

/// Says that everything up to STOP was read.
///
/// # Errors
/// When the stream fails. All frames were read before, so a caller may ignore it: Unbound closes the stream at once.
pub fn finish_frame_stream(stream: &mut impl Write) -> io::Result<()> {
    let mut finish = Vec::new();
    push_control(&mut finish, FINISH, None);
    stream.write_all(&finish)?;
    stream.flush()
}

/// Appends a control frame.
pub(crate) fn push_control(to: &mut Vec<u8>, kind: u32, content_type: Option<&[u8]>) {
    let field = content_type.map_or(0, |it| 8 + it.len());
    for word in [0, 4 + field as u32, kind] {
        to.extend(word.to_be_bytes());
    }
    if let Some(content_type) = content_type {
        to.extend(CONTENT_TYPE_FIELD.to_be_bytes());
        to.extend((content_type.len() as u32).to_be_bytes());
        to.extend(content_type);
    }
}

/// The content types in the fields of a control frame, up to the first field that is broken.
struct ContentTypes<'a> {
    fields: &'a [u8],
}

impl<'a> Iterator for ContentTypes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (header, rest) = self.fields.split_at_checked(8)?;
        let (value, rest) = rest.split_at_checked(word(header, 4) as usize)?;
        self.fields = rest;
        (word(header, 0) == CONTENT_TYPE_FIELD).then_some(value)
    }
}

/// The number at `at`, which is there.
fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A sender: what it says, and what it is told.
    struct Sender(Cursor<Vec<u8>>, Vec<u8>);

    impl Read for Sender {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            // Octet by octet, as a socket may.
            let count = to.len().min(1);
            self.0.read(&mut to[..count])
        }
    }

    impl Write for Sender {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.1.write(octets)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn greet(said: Vec<u8>) -> (Result<(), HandshakeError>, Sender) {
        let mut sender = Sender(Cursor::new(said), Vec::new());
        (accept_frame_stream(&mut sender), sender)
    }

    #[test]
    fn dnstap_is_accepted_and_nothing_behind_is_read() {
        let mut said = Vec::new();
        push_control(&mut said, READY, Some(CONTENT_TYPE));
        let ready = said.len() as u64;
        push_control(&mut said, START, Some(CONTENT_TYPE));
        let (greeted, mut sender) = greet(said);
        greeted.unwrap();
        assert_eq!(sender.0.position(), ready);
        let expected = b"\0\0\0\0\0\0\0\x22\0\0\0\x01\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";
        assert_eq!(sender.1, expected);
        sender.1.clear();
        finish_frame_stream(&mut sender).unwrap();
        assert_eq!(sender.1, b"\0\0\0\0\0\0\0\x04\0\0\0\x05");
    }

    #[test]
    fn one_of_several_types_is_enough_and_none_is_any() {
        let mut said = Vec::new();
        push_control(&mut said, READY, Some(b"other"));
        let mut second = Vec::new();
        push_control(&mut second, READY, Some(CONTENT_TYPE));
        said.extend(&second[12..]);
        said[7] = (said.len() - 8) as u8;
        greet(said).0.unwrap();
        let mut said = Vec::new();
        push_control(&mut said, READY, None);
        greet(said).0.unwrap();
    }

    #[test]
    fn strangers_are_refused() {
        let check = |said: &[u8], expected: &str| {
            let error = greet(said.to_vec()).0.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        let mut said = Vec::new();
        push_control(&mut said, READY, Some(b"json"));
        check(&said, "offers `json`, not `protobuf:dnstap.Dnstap`");
        check(&said[..20], "failed to fill whole buffer");
        said.clear();
        push_control(&mut said, START, Some(CONTENT_TYPE));
        check(&said, "does not begin with READY but with");
        check(b"GET / HTTP/1.1\r\n\r\n", "`GET / HTTP/1`");
        check(b"\0\0\0\0\xff\xff\xff\xff\0\0\0\x04", "does not begin with READY");
        check(b"\0\0\0\0\0\0\0\x0c\0\0\0\x04\0\0\0\x01\xff\xff\xff\xff", "offers ``");
    }
}
