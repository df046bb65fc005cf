//! Frame Streams in a file: frames of one content type in one direction, in one stream or in several one after another.
//!
//! The format is described in `fstrm/control.h` of libfstrm, which servers write dnstap with.

use std::io::Read;
use std::ops::Range;

use crate::error::Fault;
use crate::packet::{MAX_PACKET, end_or_cut};
use crate::window::Window;

/// What a stream of dnstap says it carries.
pub(crate) const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";

// Control frames.
pub(crate) const ACCEPT: u32 = 1;
pub(crate) const START: u32 = 2;
pub(crate) const STOP: u32 = 3;
pub(crate) const READY: u32 = 4;
pub(crate) const FINISH: u32 = 5;

/// The only field of a control frame.
const CONTENT_TYPE_FIELD: u32 = 1;

/// The longest control frame, octets.
pub(crate) const MAX_CONTROL: usize = 512;

/// Octets before the type of a control frame: an empty frame and a length.
pub(crate) const ESCAPE: usize = 8;

/// The streams of a file, each in one direction, as on a socket after the handshake.
#[derive(Debug)]
pub(crate) struct FrameStream {
    /// STOP came last.
    is_over: bool,
}

impl FrameStream {
    /// Reads the START frame; `None` if something else is there.
    pub(crate) fn open<R: Read>(window: &mut Window<R>) -> Result<Option<Self>, Fault> {
        const EXPECTED: &str = "the START frame of a frame stream";
        if !window.fill(ESCAPE + 4)? {
            return Err(Fault::Cut(EXPECTED));
        }
        let [escape, length, kind] = [0, 4, 8].map(|at| word(window.data(), at));
        let length = length as usize;
        if kind == READY && length <= MAX_CONTROL {
            let what = "the stream begins with a handshake (READY), which wants an answer: it comes from a socket";
            return Err(Fault::Damaged(what.to_owned()));
        }
        if escape != 0 || kind != START || !(4..=MAX_CONTROL).contains(&length) {
            return Ok(None);
        }
        if !window.fill(ESCAPE + length)? {
            return Err(Fault::Cut(EXPECTED));
        }
        let fields = &window.data()[ESCAPE + 4..ESCAPE + length];
        let mut types = ContentTypes::of(fields);
        match types.next() {
            // The sender says nothing about it: dnstap is what is read here.
            None if fields.is_empty() => {}
            Some(CONTENT_TYPE) => {}
            found => {
                return Err(Fault::ContentType(content(found.unwrap_or_default())));
            }
        }
        window.consume(ESCAPE + length);
        Ok(Some(Self { is_over: false }))
    }

    /// The next data frame; `None` at the end of the file, after STOP. Another stream may follow, as in files that
    /// somebody joined.
    pub(crate) fn next<R: Read>(
        &mut self,
        window: &mut Window<R>,
    ) -> Result<Option<Range<usize>>, Fault> {
        loop {
            if self.is_over {
                if !window.fill(1)? {
                    return end_or_cut(window, "the end of the compressed octets").map(|()| None);
                }
                self.begin_again(window)?;
            }
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
    }

    /// Reads the START frame of another stream.
    fn begin_again<R: Read>(&mut self, window: &mut Window<R>) -> Result<(), Fault> {
        let what = "what follows the last stream is no START frame of another one";
        *self = Self::open(window)?.ok_or_else(|| Fault::Damaged(what.to_owned()))?;
        Ok(())
    }

    fn control<R: Read>(&mut self, window: &mut Window<R>) -> Result<(), Fault> {
        const EXPECTED: &str = "a whole control frame";
        if !window.fill(ESCAPE + 4)? {
            return Err(Fault::Cut(EXPECTED));
        }
        let (length, kind) = (word(window.data(), 4) as usize, word(window.data(), 8));
        if kind == START {
            // The stream before has lost its STOP, for example because its writer was killed.
            return self.begin_again(window);
        }
        let is_known = matches!(kind, ACCEPT | READY | FINISH);
        if is_known || !(4..=MAX_CONTROL).contains(&length) {
            return Err(Fault::Damaged(format!(
                "a control frame of type {kind} and {length} octets stands among the frames, where only STOP and START may be"
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

/// Appends a control frame.
pub(crate) fn push_control(to: &mut Vec<u8>, kind: u32, content_type: Option<&[u8]>) {
    let field = content_type.map_or(0, |octets| 8 + octets.len());
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
pub(crate) struct ContentTypes<'a> {
    fields: &'a [u8],
}

impl<'a> ContentTypes<'a> {
    pub(crate) fn of(fields: &'a [u8]) -> Self {
        Self { fields }
    }
}

/// A content type for people.
pub(crate) fn content(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
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
pub(crate) fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}
