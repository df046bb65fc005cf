//! What DNS over QUIC and HTTP/3 do alike with a stream: read what is there, write a message and the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf as _, Bytes};
use quinn_proto::{Connection, ReadError, StreamId, WriteError};
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
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
    rests: FxHashMap<StreamId, Rest>,
    /// Octets of memory that all of them hold.
    octets: usize,
}

struct Rest {
    octets: Bytes,
    /// Octets of the whole message, which stays in memory until the last of them has left.
    length: usize,
}

/// Octets that flow control may keep back on a server's connection; beyond them no query is read.
const MAX_UNWRITTEN: usize = 1 << 20;

/// Octets of queries that have not come whole, on a server's connection. A client that sends more does not
/// want answers.
pub(crate) const MAX_UNFINISHED: usize = 1 << 20;

impl Unwritten {
    /// A part of this stream is kept back.
    pub(crate) fn keeps(&self, id: StreamId) -> bool {
        self.rests.contains_key(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rests.is_empty()
    }

    /// The peer must read before it is read from again.
    pub(crate) fn is_full(&self) -> bool {
        self.octets >= MAX_UNWRITTEN
    }

    /// Writes octets and the end of the stream as far as flow control allows, and the rest later. False if
    /// the peer does not want them (STOP_SENDING), or the stream is gone.
    pub(crate) fn finish(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        octets: Bytes,
    ) -> bool {
        let length = octets.len();
        self.go_on(connection, id, Rest { octets, length })
    }

    fn go_on(&mut self, connection: &mut Connection, id: StreamId, rest: Rest) -> bool {
        let Rest { octets, length } = rest;
        let mut rest = [octets];
        let mut stream = connection.send_stream(id);
        while rest[0].has_remaining() {
            match stream.write_chunks(&mut rest) {
                Ok(_) => {}
                Err(WriteError::Blocked) => {
                    let [octets] = rest;
                    self.octets += length;
                    self.rests.insert(id, Rest { octets, length });
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
            self.octets -= rest.length;
            self.go_on(connection, id, rest);
        }
    }

    pub(crate) fn forget(&mut self, id: StreamId) {
        if !self.rests.is_empty()
            && let Some(rest) = self.rests.remove(&id)
        {
            self.octets -= rest.length;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.rests.clear();
        self.octets = 0;
    }
}

/// Octets of the answers of a server's connection, from when they are made until the client has
/// acknowledged the last octet of each, or nobody sends it any more.
#[derive(Default)]
pub(crate) struct AnswerMemory(Arc<AtomicUsize>);

struct CountedAnswer {
    octets: Vec<u8>,
    sum: Arc<AtomicUsize>,
}

impl AnswerMemory {
    pub(crate) fn octets(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts an answer for as long as a part of it is in memory.
    pub(crate) fn count(&self, octets: Vec<u8>) -> Bytes {
        self.0.fetch_add(octets.capacity(), Ordering::Relaxed);
        Bytes::from_owner(CountedAnswer { octets, sum: Arc::clone(&self.0) })
    }
}

impl AsRef<[u8]> for CountedAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

impl Drop for CountedAnswer {
    fn drop(&mut self) {
        self.sum.fetch_sub(self.octets.capacity(), Ordering::Relaxed);
    }
}

/// Streams with queries that are not read while the client does not read its answers. They cannot hold much:
/// what has come on them counts against the flow control of the connection.
#[derive(Default)]
pub(crate) struct Postponed(BTreeSet<StreamId>);

impl Postponed {
    pub(crate) fn add(&mut self, id: StreamId) {
        self.0.insert(id);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The oldest stream, if the client has read enough meanwhile.
    pub(crate) fn next(&mut self, unwritten: &Unwritten) -> Option<StreamId> {
        if unwritten.is_full() { None } else { self.0.pop_first() }
    }
}
