//! The formats of files, told apart by their first octets.

use std::io::Read;
use std::ops::Range;

use crate::error::Fault;
use crate::frame_streams::FrameStream;
use crate::packet::Packet;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::window::Window;

/// A file that is read.
pub(crate) enum Container {
    Pcap(Pcap),
    Pcapng(Pcapng),
    FrameStream(FrameStream),
}

/// What is read next. The ranges are places in [`Window::buffer`].
#[derive(Debug)]
pub(crate) enum Item {
    Packet(Packet),
    /// A data frame of dnstap.
    Frame(Range<usize>),
}

impl Container {
    /// Reads the first octets and says what they are; `None` if they are nothing known.
    pub(crate) fn open<R: Read>(window: &mut Window<R>) -> Result<Option<Self>, Fault> {
        window.fill(4)?;
        Ok(match *window.data() {
            [0xa1, 0xb2, 0xc3 | 0x3c, 0xd4 | 0x4d, ..]
            | [0xd4 | 0x4d, 0xc3 | 0x3c, 0xb2, 0xa1, ..] => Pcap::open(window)?.map(Self::Pcap),
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Some(Self::Pcapng(Pcapng::default())),
            [0, 0, 0, 0, ..] => FrameStream::open(window)?.map(Self::FrameStream),
            _ => None,
        })
    }

    /// The next packet or frame; `None` at the end.
    #[inline]
    pub(crate) fn next<R: Read>(&mut self, window: &mut Window<R>) -> Result<Option<Item>, Fault> {
        match self {
            Self::Pcap(pcap) => Ok(pcap.next(window)?.map(Item::Packet)),
            Self::Pcapng(pcapng) => Ok(pcapng.next(window)?.map(Item::Packet)),
            Self::FrameStream(stream) => Ok(stream.next(window)?.map(Item::Frame)),
        }
    }
}
