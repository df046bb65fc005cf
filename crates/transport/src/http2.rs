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
mod error;
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

pub use client::Client;
pub use error::{Announced, Http2Error};
pub use message::TargetError;
pub use server::{Request, RequestId, Server};

/// The name of HTTP/2 over TLS in ALPN (RFC 9113, section 3.2).
pub const ALPN: &[u8] = b"h2";
