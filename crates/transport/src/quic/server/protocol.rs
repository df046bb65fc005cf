//! The interface between an end point and the protocol on its streams.

use quinn_proto::{Connection, StreamEvent, StreamId};

use crate::quic::error::{ErrorCodes, QuicError};

/// Makes the answer to a query. It gets the query's name and octets, and appends the answer to the buffer or
/// says why it does not.
pub(crate) type Answer<'a, Name> = &'a mut dyn FnMut(Name, &[u8], &mut Vec<u8>) -> Reaction;

/// What a protocol above QUIC does for a server, on one connection.
pub(crate) trait ServerProtocol {
    fn codes(&self) -> &'static ErrorCodes;

    /// Streams can be opened; fails if the client does not allow those that the protocol cannot be without.
    fn begin(&mut self, connection: &mut Connection) -> Result<(), QuicError>;

    /// Takes note of what happened to a stream, and asks for the answers to whole queries; fails if the
    /// client broke the protocol.
    fn stream_event(
        &mut self,
        connection: &mut Connection,
        event: StreamEvent,
        answer: Answer<'_, StreamId>,
    ) -> Result<(), QuicError>;

    /// True if the protocol can say that no further requests are looked at.
    fn goes_away(&self) -> bool {
        false
    }

    /// Says that no further requests are looked at, where the protocol can.
    fn go_away(&mut self, _connection: &mut Connection) {}

    /// Octets of memory of queries that have not come whole, and of answers that have not arrived.
    fn memory(&self) -> usize;

    /// Streams of queries of which more is to come, or to be read.
    fn unread(&self) -> usize;

    /// How often something came on a stream without a query, and could not be read since what stands before
    /// it is missing.
    fn gaps(&self) -> u64 {
        0
    }

    /// Sends an answer that was held back; false if the client does not want it any more.
    fn answer(&mut self, connection: &mut Connection, id: StreamId, message: &[u8]) -> bool;
}

/// What is made of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// It is answered with what was appended to the buffer.
    Answered,
    /// [`QuicServer::answer`](super::QuicServer::answer) will answer it.
    Later,
    /// It is never answered: its stream stays open until the client gives up.
    Never,
    /// It is no query.
    NoQuery,
}
