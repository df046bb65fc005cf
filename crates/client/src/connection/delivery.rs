//! What comes from a server.

use dnslab_transport::Exchange;

use crate::time::Nanos;

/// A message from the server.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The message.
    pub octets: &'a [u8],
    /// When it was read from the kernel.
    pub at: Nanos,
}

/// What the server did with a query.
#[derive(Clone, Copy, Debug)]
pub enum Delivery<'a> {
    /// A message, to be matched by id and question.
    Message(Received<'a>),
    /// The server refused this query alone, without a DNS message: by an HTTP status other than 200, or by
    /// resetting its stream.
    Refused {
        /// The id that the query was sent with.
        id: u16,
        /// When it was read from the kernel.
        at: Nanos,
        /// The HTTP status. 200 if its content was no DNS message, 0 if there was none.
        status: u16,
    },
    /// The server said that it did not look at this query (GOAWAY). It may be asked again on the next
    /// connection and is no loss.
    NotProcessed {
        /// The id that the query was sent with.
        id: u16,
    },
    /// The server did not want to look at this query because it came as early data (status 425; RFC 8470,
    /// section 5.2). It is to be asked again after the handshake.
    TooEarly {
        /// The id that the query was sent with.
        id: u16,
    },
}

const TOO_EARLY: u16 = 425;

impl<'a> Delivery<'a> {
    /// The result of an HTTP request that came in at `at`.
    pub fn of(exchange: Exchange<'a>, at: Nanos) -> Self {
        match exchange {
            Exchange::Answer { message, .. } => Self::Message(Received { octets: message, at }),
            Exchange::Refused { request, status: TOO_EARLY } => Self::TooEarly { id: request },
            Exchange::Refused { request, status } => Self::Refused { id: request, at, status },
            Exchange::NotProcessed { request } => Self::NotProcessed { id: request },
        }
    }
}
