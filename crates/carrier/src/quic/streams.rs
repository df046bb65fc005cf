//! What DNS over QUIC and HTTP/3 do alike with a stream: read what is there, write a message and
//! the end.

use std::collections::BTreeSet;

use bytes::{Buf as _, Bytes};
use quinn_proto::{Connection, ReadError, StreamId, WriteError};
use rustc_hash::FxHashMap;

/// How far a stream has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// More may come.
    Open,
    /// The peer has sent its last octet; the stream is forgotten.
    Finished,
    /// The peer gave the stream up, with this code; the stream is forgotten.
    Reset(u64),
    /// There is no such stream any more.
    Gone,
}

/// Hands all octets that have come on a stream to `take`, in order.
pub(crate) fn read(
    connection: &mut Connection,
    id: StreamId,
    mut take: impl FnMut(&[u8]),
) -> Reading {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return Reading::Gone };
    let reading = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => take(&chunk.bytes),
            Ok(None) => break Reading::Finished,
            Err(ReadError::Blocked) => break Reading::Open,
            Err(ReadError::Reset(code)) => break Reading::Reset(code.into_inner()),
        }
    };
    // Whether credit must be sent is found out when the next packets are made.
    let _ = chunks.finalize();
    reading
}

/// Octets that flow control has kept back, by stream; each is followed by the stream's end.
#[derive(Default)]
pub(crate) struct Unwritten {
    /// What is left of each stream.
    rests: FxHashMap<StreamId, Bytes>,
    /// Octets of all of them.
    octets: usize,
}

/// Octets that flow control may keep back on a server's connection; beyond them no query is read.
const MOST_UNWRITTEN: usize = 1 << 20;

/// Octets of queries that have not come whole, on a server's connection; a client that sends more
/// has no use for answers.
pub(crate) const MOST_UNFINISHED: usize = 1 << 20;

impl Unwritten {
    /// A part of this stream is kept back.
    pub(crate) fn keeps(&self, id: StreamId) -> bool {
        self.rests.contains_key(&id)
    }

    /// Nothing is kept back.
    pub(crate) fn is_empty(&self) -> bool {
        self.rests.is_empty()
    }

    /// The peer must read before it is read from again.
    pub(crate) fn is_full(&self) -> bool {
        self.octets >= MOST_UNWRITTEN
    }

    /// Writes octets and the end of the stream, as far as flow control allows; the rest when it
    /// does. False if the peer does not want them (STOP_SENDING), or the stream is gone.
    pub(crate) fn finish(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        octets: Bytes,
    ) -> bool {
        let mut rest = [octets];
        let mut stream = connection.send_stream(id);
        while rest[0].has_remaining() {
            match stream.write_chunks(&mut rest) {
                Ok(_) => {}
                Err(WriteError::Blocked) => {
                    let [rest] = rest;
                    self.octets += rest.len();
                    self.rests.insert(id, rest);
                    return true;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return false,
            }
        }
        stream.finish().is_ok()
    }

    /// Goes on with a stream that may be written to again.
    pub(crate) fn resume(&mut self, connection: &mut Connection, id: StreamId) {
        if let Some(rest) = self.rests.remove(&id) {
            self.octets -= rest.len();
            self.finish(connection, id, rest);
        }
    }

    /// Forgets what is left of a stream.
    pub(crate) fn forget(&mut self, id: StreamId) {
        if !self.rests.is_empty()
            && let Some(rest) = self.rests.remove(&id)
        {
            self.octets -= rest.len();
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.rests.clear();
        self.octets = 0;
    }
}

/// Streams with queries that are not read while the client does not read its answers. What has come
/// on them counts against the flow control of the connection, so they cannot hold much.
#[derive(Default)]
pub(crate) struct Postponed(BTreeSet<StreamId>);

impl Postponed {
    /// Keeps a stream for later.
    pub(crate) fn add(&mut self, id: StreamId) {
        self.0.insert(id);
    }

    /// The oldest stream, if the client has read enough meanwhile.
    pub(crate) fn next(&mut self, unwritten: &Unwritten) -> Option<StreamId> {
        if unwritten.is_full() { None } else { self.0.pop_first() }
    }
}
