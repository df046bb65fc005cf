//! Tokens that a server gives a client for its later connections (RFC 9000, section 8.1.3).

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use quinn_proto::TokenStore;

/// Where a client keeps the tokens of a server between its connections. The thread of a connection calls it,
/// for the client that the connection belongs to.
pub trait AddressTokens: Send + Sync {
    /// Keeps a token.
    fn keep(&self, token: Vec<u8>);

    /// Takes a token, which is used once.
    fn take(&self) -> Option<Vec<u8>>;

    /// A handshake that began with a token has come to its end.
    fn confirm(&self);

    /// A handshake that began with a token has failed. Some servers take such a token for that of a Retry
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
