//! Frames (RFC 9113, sections 4 and 6).

use std::ops::Range;

use h2::Reason;

/// What a client says first (section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Octets of the head of a frame (section 4.1).
pub(super) const HEAD: usize = 9;

/// Octets of a payload at most, in both directions: what every endpoint must take. Neither side is told that
/// it may send more (section 4.2).
pub(super) const MAX_PAYLOAD: usize = 16_384;

/// The largest flow-control window, octets (section 6.9.1).
pub(super) const MAX_WINDOW: i64 = 0x7fff_ffff;

/// Types of frames (section 6).
pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames (section 6).
pub(super) mod flag {
    /// SETTINGS and PING: it answers one of ours.
    pub(crate) const ACK: u8 = 0x1;
    /// DATA and HEADERS: the last of its stream.
    pub(crate) const END_STREAM: u8 = 0x1;
    /// HEADERS and CONTINUATION: the header block ends here.
    pub(crate) const END_HEADERS: u8 = 0x4;
    /// DATA and HEADERS: the first octet counts the padding.
    pub(crate) const PADDED: u8 = 0x8;
    /// HEADERS: five octets of priority come before the header block.
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Settings (section 6.5.2).
pub(super) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
}

/// The other side broke the protocol: the connection ends (section 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// What it is told in a GOAWAY.
    pub(super) reason: Reason,
    /// What it did.
    pub(super) what: &'static str,
}

impl Fault {
    /// A frame in a wrong place, or with what may not be said.
    pub(super) fn protocol(what: &'static str) -> Self {
        Self { reason: Reason::PROTOCOL_ERROR, what }
    }

    pub(super) fn size(what: &'static str) -> Self {
        Self { reason: Reason::FRAME_SIZE_ERROR, what }
    }

    /// More than a window allows, or a window that cannot be.
    pub(super) fn flow_control(what: &'static str) -> Self {
        Self { reason: Reason::FLOW_CONTROL_ERROR, what }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Octets of the payload.
    pub(super) length: usize,
    /// One of [`kind`], or another, which means nothing.
    pub(super) kind: u8,
    /// Bits of [`flag`].
    pub(super) flags: u8,
    /// The stream; 0 for the connection.
    pub(super) stream: u32,
}

impl Head {
    /// Reads a head; `None` if it has not come whole.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; HEAD] = octets.first_chunk()?;
        let [a, b, c, kind, flags, stream @ ..] = *octets;
        Some(Self {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        })
    }

    /// True if it has all of these flags.
    pub(super) fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Where the content of a payload is that may be padded, or begin with a priority (sections 6.1 and 6.2).
    /// Fails if the payload is too short for what its flags say.
    pub(super) fn content(&self, payload: &[u8]) -> Result<Range<usize>, Fault> {
        let (mut begin, mut end) = (0, payload.len());
        if self.has(flag::PADDED) {
            let padding = *payload.first().ok_or(Fault::size("padding without a length"))?;
            begin = 1;
            end = end.saturating_sub(usize::from(padding));
        }
        if self.kind == kind::HEADERS && self.has(flag::PRIORITY) {
            begin += 5;
        }
        if begin <= end {
            Ok(begin..end)
        } else {
            Err(Fault::protocol("more padding or priority than a frame has octets"))
        }
    }
}

pub(super) fn head(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEAD] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [s, t, u, v] = stream.to_be_bytes();
    [a, b, c, kind, flags, s, t, u, v]
}

pub(super) fn push(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&head(payload.len(), kind, flags, stream));
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is one number: RST_STREAM or WINDOW_UPDATE.
pub(super) fn push_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    push(out, kind, 0, stream, &number.to_be_bytes());
}

/// Appends a GOAWAY. Servers open no streams, so its last stream is none.
pub(super) fn push_go_away(out: &mut Vec<u8>, reason: Reason) {
    let mut payload = [0; 8];
    payload[4..].copy_from_slice(&u32::from(reason).to_be_bytes());
    push(out, kind::GOAWAY, 0, 0, &payload);
}

pub(super) fn push_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    out.extend_from_slice(&head(settings.len() * 6, kind::SETTINGS, 0, 0));
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The settings in a payload whose length is a multiple of six.
pub(super) fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.as_chunks().0.iter().map(|[a, b, value @ ..]: &[u8; 6]| {
        (u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value))
    })
}

/// The number in a payload of four octets; fails if it has more or fewer.
pub(super) fn number(payload: &[u8]) -> Result<u32, Fault> {
    let octets =
        payload.try_into().map_err(|_| Fault::size("not four octets where a number is"))?;
    Ok(u32::from_be_bytes(octets))
}
