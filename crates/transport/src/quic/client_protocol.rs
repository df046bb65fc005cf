//! The interface between a client and the protocol on its streams.

use quinn_proto::{Connection, StreamEvent, StreamId};

use super::error::{ErrorCodes, QuicError};
use crate::Exchange;

/// What a protocol above QUIC does for a client.
pub(crate) trait ClientProtocol {
    fn codes(&self) -> &'static ErrorCodes;

    /// Streams can be opened: for the first time, or again after the server has refused early data, which
    /// then counts as never sent (RFC 9001, section 4.6.2). Fails if the server does not allow the streams
    /// that the protocol cannot be without.
    fn begin(&mut self, connection: &mut Connection) -> Result<(), QuicError>;

    /// The server has taken what was sent before, so that a request may be sent.
    fn may_send(&self) -> bool;

    /// Requests whose stream has not ended.
    fn in_flight(&self) -> usize;

    /// Sends a request on a stream that was opened for it.
    fn send(&mut self, connection: &mut Connection, id: StreamId, request: u16, message: &[u8]);

    fn give_up(&mut self, connection: &mut Connection, request: u16);

    /// Takes note of what happened to a stream; fails if the server broke the protocol.
    fn stream_event(
        &mut self,
        connection: &mut Connection,
        event: StreamEvent,
        deliver: &mut dyn FnMut(Exchange<'_>),
    ) -> Result<(), QuicError>;

    /// The server takes no further requests.
    fn is_draining(&self) -> bool {
        false
    }
}
