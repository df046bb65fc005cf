//! How many queries a connection may carry, and how far it is on its way out.

use std::num::NonZeroU64;
use std::time::Duration;

/// How long a client may take to close its side too; then it is cut. Real servers wait at most some seconds
/// (nginx's `lingering_timeout` is 5 s).
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// How far a connection is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Queries are taken.
    Open,
    /// HTTP/2 has said its last; only octets to be written are left.
    Spoken,
    /// The server's side is closed. If the client has sent anything that was not read, closing the socket now
    /// would reset the connection, and a reset may overtake answers (RFC 9112, section 9.6). So what it sends
    /// is read and dropped until it closes its side.
    Lingering,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    /// The connection is closed after this many.
    most: Option<NonZeroU64>,
    pub(super) taken: u64,
    pub(super) stage: Stage,
}

impl Quota {
    pub(super) fn new(most: Option<NonZeroU64>) -> Self {
        Self { most, taken: 0, stage: Stage::Open }
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.most.is_some_and(|most| self.taken >= most.get())
    }
}
