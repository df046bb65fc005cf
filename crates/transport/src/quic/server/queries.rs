//! The queries of one connection of a server: how many it has taken, and whether all are done, so that it can
//! be closed without a loss.

use std::num::NonZeroU64;

use quinn_proto::StreamId;
use rustc_hash::FxHashSet;

use super::protocol::Reaction;

/// A request of a server's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(super) place: u32,
    /// The connection's serial number.
    pub(super) serial: u64,
    pub(super) stream: StreamId,
}

#[derive(Default)]
pub(super) struct Queries {
    /// After so many no further ones are taken.
    quota: Option<NonZeroU64>,
    taken: u64,
    /// Streams of those that are to be answered and whose answer has not arrived. Kept only under a
    /// quota: nobody else asks.
    open: FxHashSet<StreamId>,
    /// The client has been told that no further ones are looked at.
    pub(super) is_leaving: bool,
}

impl Queries {
    pub(super) fn new(quota: Option<NonZeroU64>) -> Self {
        Self { quota, ..Self::default() }
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn are_used_up(&self) -> bool {
        self.quota.is_some_and(|quota| self.taken >= quota.get())
    }

    /// The quota is used up, and every answer has arrived.
    pub(super) fn are_done(&self) -> bool {
        self.are_used_up() && self.open.is_empty()
    }

    pub(super) fn take(&mut self, stream: StreamId, reaction: Reaction) {
        if reaction == Reaction::NoQuery {
            return;
        }
        self.taken += 1;
        if self.quota.is_some() && matches!(reaction, Reaction::Answered | Reaction::Later) {
            self.open.insert(stream);
        }
    }

    /// Takes note of a stream whose answer has arrived, or is not wanted any more.
    pub(super) fn end(&mut self, stream: StreamId) {
        if self.quota.is_some() {
            self.open.remove(&stream);
        }
    }
}
