//! Servers over plain UDP and TCP that do what a closure says.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

/// A UDP server that answers each query with the datagrams that `answers` makes of it and of its number.
pub(crate) fn udp_server(
    mut answers: impl FnMut(u64, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        for number in 0.. {
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            for answer in answers(number, &buffer[..length]) {
                socket.send_to(&answer, client).ok();
            }
        }
    });
    address
}

/// A TCP server that does `serve` for each connection, in a thread of its own.
pub(crate) fn tcp_server(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

/// The next query on a TCP connection; `None` at its end.
pub(crate) fn read_query(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut query).ok()?;
    Some(query)
}

/// A message with its length before it.
pub(crate) fn frame(message: &[u8]) -> Vec<u8> {
    let mut frame = (message.len() as u16).to_be_bytes().to_vec();
    frame.extend_from_slice(message);
    frame
}

/// Sends a message over TCP; false if the client is gone.
pub(crate) fn send(stream: &mut TcpStream, message: &[u8]) -> bool {
    stream.write_all(&frame(message)).is_ok()
}

/// The query sent back as an answer with this code and no record.
pub(crate) fn answer(query: &[u8], rcode: u8) -> Vec<u8> {
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer[3] = rcode;
    answer
}
