//! How a connection ends.

use std::fmt;

/// The connection is over.
#[derive(Debug, thiserror::Error)]
pub enum Http2Error {
    /// The other side closed it, or announced the end (GOAWAY with NO_ERROR) and then closed.
    #[error("the other side closed the HTTP/2 connection")]
    Closed,
    /// The other side closed it with an error of its own (RFC 9113, section 7).
    #[error("the other side closed the HTTP/2 connection: {0}")]
    Remote(Announced),
    /// The other side broke the protocol, or its octets are no HTTP/2.
    #[error("HTTP/2: {0}")]
    Protocol(String),
}

/// An error with which the other side announced the end (GOAWAY: RFC 9113, section 6.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The error code.
    pub reason: h2::Reason,
    /// What the other side said about it, in one line; often empty.
    pub said: String,
}

impl Announced {
    /// Characters of the other side's text that are kept.
    const MAX_LENGTH: usize = 200;

    /// An error code with additional debug data, which is text in practice.
    pub(super) fn new(reason: h2::Reason, data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let said =
            text.chars().filter(|letter| !letter.is_control()).take(Self::MAX_LENGTH).collect();
        Self { reason, said }
    }
}

impl fmt::Display for Announced {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.reason)?;
        if self.said.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.said) }
    }
}

impl Http2Error {
    /// The end of a connection as `h2` reports it.
    pub(super) fn of(error: h2::Error) -> Self {
        match error.reason() {
            _ if error.is_io() => Self::Closed,
            Some(h2::Reason::NO_ERROR) if error.is_remote() => Self::Closed,
            Some(reason) if error.is_remote() => {
                Self::Remote(Announced { reason, said: String::new() })
            }
            _ => Self::Protocol(error.to_string()),
        }
    }
}
