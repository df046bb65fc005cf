//! The client's end of a connection.

use h2::Reason;

use super::dynamic_table::DynamicTable;
use super::error::{Announced, Http2Error};
use super::frame::{Fault, PREFACE, kind, push_go_away, push_number, push_settings, setting};
use super::message::TargetError;
use super::request::Requests;
use super::sending::Sending;
use super::streams::Streams;
use crate::doh::MAX_MESSAGE;
use crate::{Exchange, Target};

/// One connection, from the side that asks. Queries may be sent before the server's first octet.
///
/// Octets to write come out of [`Client::poll`] alone: call it after each batch of
/// [`Client::send`] and after each [`Client::receive`].
#[derive(Debug)]
pub struct Client {
    pub(super) requests: Requests,
    pub(super) streams: Streams,
    pub(super) sending: Sending,
    pub(super) next_stream: u32,
    /// Streams that the server allows at once: [`STREAMS_AT_FIRST`], then what its settings say, and
    /// [`MAX_STREAMS`] where they name no limit.
    pub(super) max_streams: usize,
    pub(super) out: Vec<u8>,
    pub(super) input: Vec<u8>,
    /// The other side will send nothing more.
    pub(super) has_ended: bool,
    /// The server's settings have come, with which it begins (RFC 9113, section 3.4).
    pub(super) is_greeted: bool,
    /// What the server's header blocks refer to.
    pub(super) table: DynamicTable,
    /// A header block that goes on in the next frame.
    pub(super) unfinished: Option<Unfinished>,
    /// Octets that flow control has counted since we last said that we have read them.
    pub(super) unacknowledged: usize,
    /// The server has announced its end (GOAWAY), or stream ids are used up.
    pub(super) draining: bool,
    /// The error with which the server has announced it.
    pub(super) announced: Option<Announced>,
    pub(super) fault: Option<Fault>,
}

/// A header block without its end.
#[derive(Debug)]
pub(super) struct Unfinished {
    pub(super) stream: u32,
    pub(super) ends_stream: bool,
    pub(super) block: Vec<u8>,
}

/// Octets that the server may send on the whole connection before we say that we have read them. Everything
/// is read at once, so this only bounds how often we say so.
pub(super) const CONNECTION_WINDOW: usize = 16 << 20;

/// The default window of a connection (RFC 9113, section 6.9.2), octets.
const USUAL_WINDOW: usize = 65_535;

/// Octets that the server may send of one answer: the longest message, and as much padding.
pub(super) const STREAM_WINDOW: usize = 2 * (MAX_MESSAGE + 1);

/// Streams taken to be allowed until the server's settings come: what RFC 9113, section 6.5.2,
/// recommends not to go below. A server that allows fewer refuses the rest unprocessed.
const STREAMS_AT_FIRST: usize = 100;

/// More streams than this are not used, whatever the server allows.
pub(super) const MAX_STREAMS: usize = 1 << 16;

/// The highest number of a stream (RFC 9113, section 5.1.1).
pub(super) const LAST_STREAM: u32 = 0x7fff_ffff;

/// Octets of memory that an idle connection keeps at most, for what it reads and for what it writes.
pub(super) const KEPT: usize = 4096;

impl Client {
    /// A new connection to a target.
    ///
    /// # Errors
    /// When no request can be made of the target.
    pub fn new(target: &Target) -> Result<Self, TargetError> {
        let requests = Requests::new(target)?;
        let mut out = PREFACE.to_vec();
        let settings =
            [(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, STREAM_WINDOW as u32)];
        push_settings(&mut out, &settings);
        let more = (CONNECTION_WINDOW - USUAL_WINDOW) as u32;
        push_number(&mut out, kind::WINDOW_UPDATE, 0, more);
        Ok(Self {
            requests,
            streams: Streams::default(),
            sending: Sending::default(),
            next_stream: 1,
            max_streams: STREAMS_AT_FIRST,
            out,
            input: Vec::new(),
            has_ended: false,
            is_greeted: false,
            table: DynamicTable::default(),
            unfinished: None,
            unacknowledged: 0,
            draining: false,
            announced: None,
            fault: None,
        })
    }

    /// Sends a message as the request of this number, which no other open request must have. The message's id
    /// is sent as zero (RFC 8484, section 4.1). False if no stream is free now, or none will be because the
    /// connection is draining.
    pub fn send(&mut self, request: u16, message: &[u8]) -> bool {
        if self.room() == 0 {
            return false;
        }
        let stream = self.next_stream;
        self.draining = stream == LAST_STREAM;
        self.next_stream = stream.saturating_add(2);
        self.streams.open(stream, request);
        if self.requests.push(stream, message, &mut self.out) {
            self.sending.push(stream, message, &mut self.out);
        }
        true
    }

    /// Requests that can be sent now.
    #[must_use]
    pub fn room(&self) -> usize {
        if self.draining { 0 } else { self.max_streams.saturating_sub(self.in_flight()) }
    }

    /// Requests that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.streams.len()
    }

    /// True when nothing more can be sent, but answers may come.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// The error with which the server has announced its end, if there was one.
    #[must_use]
    pub fn announced(&self) -> Option<&Announced> {
        self.announced.as_ref()
    }

    /// Gives a request up. The next [`Client::poll`] resets its stream (CANCEL), and nothing is delivered for
    /// it any more.
    pub fn cancel(&mut self, request: u16) {
        if let Some(place) = self.streams.find_request(request) {
            self.reset(place, Reason::CANCEL);
        }
    }

    /// Takes octets that came from the server.
    pub fn receive(&mut self, octets: &[u8]) {
        self.input.extend_from_slice(octets);
    }

    /// The server has closed its side of the stream.
    pub fn end(&mut self) {
        self.has_ended = true;
    }

    /// Appends what must be written to `out`, and delivers what has come.
    ///
    /// # Errors
    /// When the connection is over. What came before its end has been delivered; requests that are still open
    /// have no answer.
    pub fn poll(
        &mut self,
        out: &mut Vec<u8>,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), Http2Error> {
        if self.fault.is_none()
            && let Err(fault) = self.read(deliver)
        {
            push_go_away(&mut self.out, fault.reason);
            self.fault = Some(fault);
        }
        self.flush(out)
    }

    /// Appends what must be written to `out`. What has come waits for [`Client::poll`].
    ///
    /// # Errors
    /// When the connection is over.
    pub fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), Http2Error> {
        out.append(&mut self.out);
        if self.out.capacity() > KEPT {
            self.out = Vec::new();
        }
        let end = match (self.fault, &self.announced) {
            (Some(Fault { reason, what }), _) => Http2Error::Protocol(format!("{what} ({reason})")),
            (None, _) if !self.has_ended => return Ok(()),
            (None, Some(announced)) => Http2Error::Remote(announced.clone()),
            (None, None) => Http2Error::Closed,
        };
        self.draining = true;
        Err(end)
    }

    /// Gives all requests up and appends a GOAWAY with NO_ERROR to `out`. Nothing more can be done with the
    /// connection.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        self.streams = Streams::default();
        self.draining = true;
        push_go_away(&mut self.out, Reason::NO_ERROR);
        out.append(&mut self.out);
    }
}
