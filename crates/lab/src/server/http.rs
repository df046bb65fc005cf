//! As much of HTTP/1.0 (RFC 1945) as it takes to read a server's statistics.

#![expect(clippy::disallowed_types, reason = "asks a server for what it counted")]

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::control::{PATIENCE, read_answer};

/// The statistics of a server: the body of `path` at the HTTP server `address`. Fails with half a sentence if no
/// answer comes in time, or one with another status than 200.
pub(super) fn get(address: SocketAddr, path: &str) -> Result<String, String> {
    body(address, path).map_err(|error| format!("its statistics at {error}"))
}

/// The body of `path`, or the address and why it does not give one.
pub(crate) fn body(address: SocketAddr, path: &str) -> Result<String, String> {
    let text =
        exchange(address, path).map_err(|error| format!("http://{address}{path}: {error}"))?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        return Ok(body.to_owned());
    }
    Err(format!("http://{address}{path}: the answer is `{status}`"))
}

/// Returns all that comes until the server closes the connection, as it does with HTTP/1.0.
fn exchange(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    // One write, so that it is one segment: some servers read only the first segment for the first line.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    read_answer(socket, |_| false)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    fn got(answer: &'static str) -> Result<String, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = socket.read(&mut request).unwrap();
            socket.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let result = get(address, "/metrics");
        assert!(server.join().unwrap().starts_with("GET /metrics HTTP/1.0\r\nHost: 127."));
        result
    }

    #[test]
    fn a_body_or_the_status() {
        assert_eq!(got("HTTP/1.1 200 OK\r\nA: b\r\n\r\nx 1\n").as_deref(), Ok("x 1\n"));
        let error = got("HTTP/1.0 401 Unauthorized\r\n\r\nno").unwrap_err();
        assert!(error.ends_with("the answer is `HTTP/1.0 401 Unauthorized`"), "{error}");
        assert!(got("").unwrap_err().ends_with("the answer is ``"));
    }
}
