//! A field of a header block, as far as an answer depends on it.

/// A field, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// `None` if it has not three digits.
    Status(Option<u16>),
    /// True if it is that of a DNS message.
    ContentType(bool),
    /// Another that begins with a colon: those of requests.
    Pseudo,
    Other,
}
