//! Unidirectional streams: control, QPACK, and those that are passed over (RFC 9114, section 6.2).

use bytes::Bytes;
use quinn_proto::{Connection, Dir, StreamId};
use rustc_hash::FxHashMap;

use super::frames::{self, Frame, Kind};
use super::message::FIELD_SECTION;
use super::varint;
use crate::quic::{QuicError, Reading, read};

/// The unidirectional streams of one connection.
#[derive(Default)]
pub(super) struct Control {
    /// This side's control stream.
    own: Option<StreamId>,
    streams: FxHashMap<StreamId, Stream>,
    has_settings: bool,
    has_control: bool,
    gaps: u64,
}

/// A stream of the peer.
enum Stream {
    /// Its type has not come yet; these octets of it have.
    Unknown(Vec<u8>),
    /// The control stream, with the octets of a frame whose rest has not come yet.
    Control(Vec<u8>),
    /// QPACK's, whose end would be an error. With a dynamic table of no octets, its instructions and
    /// acknowledgements say nothing (RFC 9204, section 3.2.3).
    Qpack,
    /// Of no meaning here.
    Other,
}

/// Longest frame that is taken on a control stream, octets; settings have a few dozen.
const MAX_FRAME: usize = 4096;

/// Types of streams (RFC 9114, section 6.2; RFC 9204, section 4.2).
const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const ENCODER: u64 = 0x2;
const DECODER: u64 = 0x3;

/// The setting that limits a field section (RFC 9114, section 7.2.4.1). The limits of a dynamic
/// table stay at their default, which is zero (RFC 9204, section 5).
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;

impl Control {
    /// Opens this side's control stream and sends the settings; fails if the peer does not allow the stream.
    pub(super) fn begin(&mut self, connection: &mut Connection) -> Result<(), QuicError> {
        if self.own.is_some() {
            return Ok(());
        }
        let id = connection.streams().open(Dir::Uni);
        let id = id.ok_or(QuicError::Protocol("no unidirectional stream is allowed"))?;
        let mut settings = Vec::new();
        varint::push(&mut settings, MAX_FIELD_SECTION_SIZE);
        varint::push(&mut settings, FIELD_SECTION as u64);
        let mut octets = Vec::new();
        varint::push(&mut octets, CONTROL);
        frames::push_head(&mut octets, frames::SETTINGS, settings.len());
        octets.extend_from_slice(&settings);
        self.own = Some(id);
        self.write(connection, octets)
    }

    /// How often something came that could not be read, since what stands before it was missing or it had
    /// been read already.
    pub(super) fn gaps(&self) -> u64 {
        self.gaps
    }

    /// The connection has begun again, without this side's control stream.
    pub(super) fn forget(&mut self) {
        self.own = None;
    }

    /// Says that no request from this stream on is looked at; fails if the peer closed the control stream.
    pub(super) fn go_away(
        &mut self,
        connection: &mut Connection,
        stream: u64,
    ) -> Result<(), QuicError> {
        let (mut payload, mut octets) = (Vec::new(), Vec::new());
        varint::push(&mut payload, stream);
        frames::push_head(&mut octets, frames::GOAWAY, payload.len());
        octets.extend_from_slice(&payload);
        self.write(connection, octets)
    }

    /// Writes to this side's control stream. What is said there is far shorter than any peer's limit.
    fn write(&self, connection: &mut Connection, octets: Vec<u8>) -> Result<(), QuicError> {
        let Some(id) = self.own else { return Ok(()) };
        let length = octets.len();
        match connection.send_stream(id).write_chunks(&mut [Bytes::from(octets)]) {
            Ok(written) if written.bytes == length => Ok(()),
            _ => Err(QuicError::Protocol("the control stream takes nothing")),
        }
    }

    /// Takes note of streams that the peer has opened; fails like [`Control::read`].
    pub(super) fn accept(
        &mut self,
        connection: &mut Connection,
        go_away: &mut dyn FnMut(u64),
    ) -> Result<(), QuicError> {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.streams.insert(id, Stream::Unknown(Vec::new()));
            self.read(connection, id, go_away)?;
        }
        Ok(())
    }

    /// Reads a stream of the peer, hands over the number of each GOAWAY; fails if the peer broke the rules.
    pub(super) fn read(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        go_away: &mut dyn FnMut(u64),
    ) -> Result<(), QuicError> {
        let Some(mut stream) = self.streams.remove(&id) else { return Ok(()) };
        let mut octets = match &mut stream {
            Stream::Unknown(before) | Stream::Control(before) => std::mem::take(before),
            Stream::Qpack | Stream::Other => Vec::new(),
        };
        let before = octets.len();
        let reading = read(connection, id, |more| octets.extend_from_slice(more));
        self.gaps += u64::from(reading == Reading::Open && octets.len() == before);
        let mut rest = octets.as_slice();
        if matches!(stream, Stream::Unknown(_))
            && let Some(kind) = varint::take(&mut rest)
        {
            stream = self.stream_of(kind)?;
        }
        let is_critical = matches!(stream, Stream::Control(_) | Stream::Qpack);
        if let Stream::Control(_) = stream {
            while let Some(frame) = frames::take(&mut rest)? {
                self.frame(frame, go_away)?;
            }
            if rest.len() > MAX_FRAME {
                return Err(QuicError::Protocol("a frame of that length on the control stream"));
            }
        }
        if reading != Reading::Open {
            let error = QuicError::Protocol("the end of a control stream");
            return if is_critical && reading != Reading::Gone { Err(error) } else { Ok(()) };
        }
        if let Stream::Unknown(before) | Stream::Control(before) = &mut stream {
            *before = rest.to_vec();
        }
        self.streams.insert(id, stream);
        Ok(())
    }

    fn stream_of(&mut self, kind: u64) -> Result<Stream, QuicError> {
        match kind {
            CONTROL if std::mem::replace(&mut self.has_control, true) => {
                Err(QuicError::Protocol("a second control stream"))
            }
            CONTROL => Ok(Stream::Control(Vec::new())),
            PUSH => Err(QuicError::Protocol("a push stream that nobody asked for")),
            ENCODER | DECODER => Ok(Stream::Qpack),
            _ => Ok(Stream::Other),
        }
    }

    fn frame(&mut self, frame: Frame<'_>, go_away: &mut dyn FnMut(u64)) -> Result<(), QuicError> {
        match frame {
            Frame::Settings(_) if self.has_settings => {
                return Err(QuicError::Protocol("settings sent twice"));
            }
            Frame::Settings(_) => self.has_settings = true,
            _ if !self.has_settings => {
                return Err(QuicError::Protocol("a control stream without settings"));
            }
            Frame::GoAway(id) => go_away(id),
            Frame::Data(_) | Frame::Headers(_) | Frame::Other(Kind::OfHttp2) => {
                return Err(QuicError::Protocol("a frame that the control stream must not have"));
            }
            Frame::Other(Kind::Push | Kind::Unknown) => {}
        }
        Ok(())
    }
}
