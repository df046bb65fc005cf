//! Zstandard (RFC 8878): frames one after the other, and skippable ones between them.

use std::io::{self, BufRead as _, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::window::Window;

/// An empty last block (section 3.1.1.2), and a checksum that nobody looks at.
const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// The octets of all frames of a stream. A window is 128 MiB at most, as that of `zstd -d` without `--long=31`.
pub(crate) struct ZstdFrames<R: Read> {
    source: Window<R>,
    decoder: FrameDecoder,
    state: State,
}

enum State {
    /// A frame may begin here.
    Between,
    InFrame,
    /// The frame came to no end. What was decoded before is given first.
    Broken(Option<io::Error>),
}

impl<R: Read> ZstdFrames<R> {
    pub(crate) fn new(source: Window<R>) -> Self {
        Self { source, decoder: FrameDecoder::new(), state: State::Between }
    }

    pub(crate) fn source(&mut self) -> &mut Window<R> {
        &mut self.source
    }

    /// Begins the next frame that holds data; false at the end of the stream.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(error) => match skippable(&error) {
                    Some(length) => self.skip(length)?,
                    None => return Err(io::Error::other(error)),
                },
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Decodes until there is something to give, or the frame ends.
    fn decode(&mut self) {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            if let Err(error) = self.decoder.decode_blocks(&mut self.source, one) {
                // The decoder keeps what later blocks may refer to, unless the frame ends.
                self.decoder.decode_blocks(&END[..], BlockDecodingStrategy::All).ok();
                self.state = State::Broken(Some(io::Error::other(error)));
                return;
            }
        }
    }

    /// The frame has ended, and all of it was given.
    fn check(&self) -> io::Result<()> {
        let written = self.decoder.get_checksum_from_data();
        match written.is_none_or(|sum| Some(sum) == self.decoder.get_calculated_checksum()) {
            true => Ok(()),
            false => Err(io::Error::other("the checksum of a frame is another one")),
        }
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state {
                State::Between => match self.begin()? {
                    true => self.state = State::InFrame,
                    false => return Ok(0),
                },
                State::InFrame => self.decode(),
                State::Broken(_) => {}
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(to);
            }
            if let State::Broken(error) = &mut self.state {
                let again = || io::Error::other("the frame before came to no end");
                return Err(error.take().unwrap_or_else(again));
            }
            if self.decoder.is_finished() {
                self.check()?;
                self.state = State::Between;
            }
        }
    }
}

/// The length of a skippable frame (section 3.1.2), if that is why no other one began.
fn skippable(error: &FrameDecoderError) -> Option<u64> {
    match error {
        FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
            length, ..
        }) => Some(u64::from(*length)),
        _ => None,
    }
}
