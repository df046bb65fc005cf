//! The frames of a stream (RFC 9114, section 7).

use bytes::BufMut;

use super::varint;
use crate::quic::QuicError;

/// A frame, as far as this side uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A part of a body.
    Data(&'a [u8]),
    /// A field section, compressed.
    Headers(&'a [u8]),
    Settings(&'a [u8]),
    /// The peer is about to end the connection. A server does not look at requests from this stream on.
    GoAway(u64),
    /// Of a kind that only matters elsewhere, or not at all.
    Other(Kind),
}

/// Kinds of frames that are passed over, or forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// About pushed responses, which this side never asks for.
    Push,
    /// Reserved: HTTP/2 has it and HTTP/3 has not (section 7.2.8).
    OfHttp2,
    /// Unknown, to be passed over (section 9).
    Unknown,
}

/// Types of frames (section 7.2).
pub(super) const DATA: u64 = 0x0;
pub(super) const HEADERS: u64 = 0x1;
pub(super) const SETTINGS: u64 = 0x4;
pub(super) const GOAWAY: u64 = 0x7;

/// Takes the next frame from the front; `None` if it is not all there. Fails if the payload is wrong.
pub(super) fn take<'a>(octets: &mut &'a [u8]) -> Result<Option<Frame<'a>>, QuicError> {
    let mut rest = *octets;
    let (Some(kind), Some(length)) = (varint::take(&mut rest), varint::take(&mut rest)) else {
        return Ok(None);
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some((mut payload, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    *octets = rest;
    Ok(Some(match kind {
        DATA => Frame::Data(payload),
        HEADERS => Frame::Headers(payload),
        SETTINGS => Frame::Settings(payload),
        GOAWAY => match (varint::take(&mut payload), payload) {
            (Some(id), []) => Frame::GoAway(id),
            _ => return Err(QuicError::Protocol("a GOAWAY frame without a stream")),
        },
        0x3 | 0x5 | 0xd => Frame::Other(Kind::Push),
        0x2 | 0x6 | 0x8 | 0x9 => Frame::Other(Kind::OfHttp2),
        _ => Frame::Other(Kind::Unknown),
    }))
}

/// Appends type and length of a frame; the payload follows.
pub(super) fn push_head(out: &mut impl BufMut, kind: u64, length: usize) {
    varint::push(out, kind);
    varint::push(out, length as u64);
}
