//! One query, one answer: to find out whether a server is ready and what it says.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use dnslab_wire::{Query, Response, Transport, push_frame};
use rustls::{ClientConnection, StreamOwned};

use crate::TlsSettings;

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The exchange failed or took too long.
    #[error("{transport} to {target}: {source}")]
    Exchange {
        /// How the query travelled.
        transport: Transport,
        /// Where it went.
        target: SocketAddr,
        /// What happened.
        source: io::Error,
    },
    /// What came back is no answer to the query.
    #[error("{transport} to {target}: the message that came back does not answer {query}")]
    Mismatch {
        /// How the query travelled.
        transport: Transport,
        /// Where it went.
        target: SocketAddr,
        /// What was asked.
        query: String,
    },
}

/// Asks one query and gives back the whole answer. Waits for `timeout` at each step (connect,
/// handshake, answer).
///
/// # Errors
/// When there is no answer in time, or one to another question.
pub fn ask(
    target: SocketAddr,
    transport: Transport,
    query: &Query,
    tls: Option<&TlsSettings>,
    timeout: Duration,
) -> Result<Vec<u8>, AskError> {
    let exchange = match transport {
        Transport::Udp => over_udp(target, query, timeout),
        Transport::Tcp => connect(target, timeout).and_then(|stream| over_stream(stream, query)),
        Transport::Dot => connect(target, timeout).and_then(|stream| over_tls(stream, query, tls)),
    };
    let answer = exchange.map_err(|source| AskError::Exchange { transport, target, source })?;
    match Response::parse(&answer) {
        Ok(response) if response.id == ID && query.asks_the_same(response.question) => Ok(answer),
        _ => Err(AskError::Mismatch { transport, target, query: query.to_string() }),
    }
}

/// The message id; one query per socket needs no other.
const ID: u16 = 0x1ab1;

fn patched(query: &Query) -> Vec<u8> {
    let mut message = query.octets().to_vec();
    message[..2].copy_from_slice(&ID.to_be_bytes());
    message
}

fn over_udp(target: SocketAddr, query: &Query, timeout: Duration) -> io::Result<Vec<u8>> {
    let any = if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(target)?;
    socket.set_read_timeout(Some(timeout))?;
    socket.send(&patched(query))?;
    let mut answer = vec![0; usize::from(u16::MAX)];
    let length = socket.recv(&mut answer)?;
    answer.truncate(length);
    Ok(answer)
}

fn connect(target: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    Ok(stream)
}

fn over_tls(stream: TcpStream, query: &Query, tls: Option<&TlsSettings>) -> io::Result<Vec<u8>> {
    let tls = tls.ok_or_else(|| io::Error::other("no TLS settings are given"))?;
    let connection = ClientConnection::new(Arc::new(tls.config.clone()), tls.server_name.clone())
        .map_err(io::Error::other)?;
    over_stream(StreamOwned::new(connection, stream), query)
}

fn over_stream(mut stream: impl Read + Write, query: &Query) -> io::Result<Vec<u8>> {
    let mut frame = Vec::new();
    push_frame(&mut frame, &patched(query));
    stream.write_all(&frame)?;
    stream.flush()?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer)?;
    Ok(answer)
}
