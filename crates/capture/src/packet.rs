//! A packet of a file, whatever its format.

use std::io::Read;
use std::ops::Range;

use crate::error::Fault;
use crate::link::LinkType;
use crate::window::Window;

/// The longest packet or frame, octets. A packet of Linux has at most 512 KiB (BIG TCP), a frame of dnstap two
/// messages of 64 KiB.
pub(crate) const MAX_PACKET: usize = 1 << 20;

/// A packet as it was captured.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Nanoseconds since 1970.
    pub(crate) at_ns: u64,
    pub(crate) link_type: LinkType,
    pub(crate) octets: Range<usize>,
    /// True if it was longer on the line.
    pub(crate) is_snapped: bool,
}

/// Where a header was expected: the end of the file if nothing is there.
pub(crate) fn end_or_cut<R: Read>(window: &Window<R>, expected: &'static str) -> Result<(), Fault> {
    if window.data().is_empty() && !window.is_cut() { Ok(()) } else { Err(Fault::Cut(expected)) }
}

pub(crate) fn too_long(length: usize) -> String {
    format!("a packet of {length} octets is announced, and none can have more than {MAX_PACKET}")
}
