//! gzip (RFC 1952) and Zstandard (RFC 8878), found by their magic octets.

use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;

use crate::window::Window;
use crate::zstd_frames::ZstdFrames;

/// Octets that are read at once.
const CAPACITY: usize = 64 * 1024;

/// The octets of a capture as they were before they were compressed.
pub(crate) enum Decoder<R: Read> {
    Plain(Window<R>),
    Gzip(Box<MultiGzDecoder<Window<R>>>),
    Zstd(Box<ZstdFrames<R>>),
}

/// Octets as they were before they were compressed, whatever they are. Those that are not compressed stay as they are.
pub struct Decompressed<R: Read>(Decoder<R>);

impl<R: Read> Decompressed<R> {
    /// Reads the first octets, which say how they were compressed.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn new(reader: R) -> io::Result<Self> {
        Decoder::new(reader).map(Self)
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to)
    }
}

/// Compressed octets that cannot be decompressed.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {reason}")]
pub(crate) struct Corrupt {
    pub(crate) name: &'static str,
    pub(crate) reason: String,
}

impl<R: Read> Decoder<R> {
    /// Looks at the first octets and chooses.
    pub(crate) fn new(reader: R) -> io::Result<Self> {
        let mut source = Window::new(reader, CAPACITY);
        source.fill(4)?;
        Ok(match *source.data() {
            [0x1f, 0x8b, ..] => Self::Gzip(Box::new(MultiGzDecoder::new(source))),
            // The second is a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                Self::Zstd(Box::new(ZstdFrames::new(source)))
            }
            _ => Self::Plain(source),
        })
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => match source.read(to) {
                Err(error) => Err(source.take_failure().unwrap_or(error)),
                read => read,
            },
            Self::Gzip(decoder) => match decoder.read(to) {
                Err(error) => Err(fault(decoder.get_mut(), "gzip", &error)),
                read => read,
            },
            Self::Zstd(decoder) => match decoder.read(to) {
                Err(error) => Err(fault(decoder.source(), "zstd", &error)),
                read => read,
            },
        }
    }
}

/// What an error of a decoder is in truth: one of the reader, an end too early, or octets that are wrong.
fn fault<R: Read>(source: &mut Window<R>, name: &'static str, error: &io::Error) -> io::Error {
    if let Some(failure) = source.take_failure() {
        failure
    } else if source.was_asked_beyond_end() {
        io::ErrorKind::UnexpectedEof.into()
    } else {
        io::Error::new(io::ErrorKind::InvalidData, Corrupt { name, reason: error.to_string() })
    }
}
