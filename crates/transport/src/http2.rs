//! DNS over HTTPS (RFC 8484) on HTTP/2 (RFC 9113): both ends of a connection as state machines. Octets go in
//! and octets come out: no runtime, no socket, and no task that waits.
//!
//! The client is our own, since a load generator spends its time in it. The server is the crate `h2`, polled
//! over memory, so the client's tests have a peer that others wrote.
//!
//! ```
//! use dnslab_transport::http2::{Client, Server};
//! use dnslab_transport::{Exchange, Method, Target};
//!
//! let (authority, path) = ("ns.example".to_owned(), "/dns-query".to_owned());
//! let mut client = Client::new(&Target { authority, path: path.clone(), method: Method::Post })?;
//! let mut server = Server::new(&path);
//!
//! assert!(client.send(7, b"\0\x07 some query"));
//! let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
//! client.poll(&mut to_server, &mut |_| {})?;
//! server.receive(&to_server);
//! server.poll(&mut to_client)?;
//! let request = server.next_request().expect("one was sent");
//! assert_eq!(&request.message[..], b"\0\0 some query");
//! server.answer(request.id, b"\0\0 its answer");
//! server.poll(&mut to_client)?;
//!
//! let mut answers = Vec::new();
//! client.receive(&to_client);
//! client.poll(&mut to_server, &mut |exchange| {
//!     if let Exchange::Answer { request, message } = exchange {
//!         answers.push((request, message.to_vec()));
//!     }
//! })?;
//! assert_eq!(answers, [(7, b"\0\x07 its answer".to_vec())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answers;
mod client;
mod dynamic_table;
mod field;
mod frame;
mod headers;
mod message;
mod pipe;
mod receiving;
mod request;
mod sending;
mod server;
mod streams;
#[cfg(test)]
mod tests;

use std::fmt;

pub use client::Client;
pub use message::TargetError;
pub use server::{Request, RequestId, Server};

/// The name of HTTP/2 over TLS in ALPN (RFC 9113, section 3.2).
pub const ALPN: &[u8] = b"h2";

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
    fn new(reason: h2::Reason, data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data);
        let said = text.chars().filter(|one| !one.is_control()).take(Self::MAX_LENGTH).collect();
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
    /// The end of a connection as `h2` reports it; no error is an orderly end.
    fn of(error: Option<h2::Error>) -> Self {
        let Some(error) = error else { return Self::Closed };
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
