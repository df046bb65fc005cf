//! Tokens that a server gives a client for its later connections (RFC 9000, section 8.1.3).

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use quinn_proto::TokenStore;

/// Where a client keeps the tokens of a server between its connections. All is done by the thread that a
/// connection is on, for the client whose it is.
pub trait AddressTokens: Send + Sync {
    /// Keeps one.
    fn keep(&self, token: Vec<u8>);

    /// Takes one: it is used once.
    fn take(&self) -> Option<Vec<u8>>;

    /// A handshake that began with one came to its end.
    fn confirm(&self);

    /// A handshake that began with one came to nothing. Some servers take such a token for that of a Retry
    /// packet, and no handshake with one ever comes to its end (Knot DNS 3.4).
    fn refuse(&self);
}

/// The tokens of one connection: the one that it begins with, and those that it is given.
pub(super) struct ConnectionTokens {
    first: Mutex<Option<Bytes>>,
    later: Option<Arc<dyn AddressTokens>>,
}

impl ConnectionTokens {
    /// For a connection that begins with one of these, if there is any.
    pub(super) fn new(tokens: Option<&Arc<dyn AddressTokens>>) -> Self {
        let first = tokens.and_then(|tokens| tokens.take()).map(Bytes::from);
        Self { first: Mutex::new(first), later: tokens.cloned() }
    }

    /// There is one to begin with.
    pub(super) fn has_one(&self) -> bool {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl TokenStore for ConnectionTokens {
    fn insert(&self, _: &str, token: Bytes) {
        if let Some(later) = &self.later {
            later.keep(token.into());
        }
    }

    fn take(&self, _: &str) -> Option<Bytes> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
