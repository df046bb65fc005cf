//! A port that is free for UDP and for TCP.

use std::net::{TcpListener, UdpSocket};

/// Binds both on one free port of this address. Other tests take ports by the thousand, so the one that is
/// free for TCP may be taken for UDP; then another is tried.
pub(crate) fn bind(address: &str) -> (TcpListener, UdpSocket) {
    for _ in 0..100 {
        let listener = TcpListener::bind(format!("{address}:0")).unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()) {
            return (listener, socket);
        }
    }
    panic!("no port of {address} is free for both UDP and TCP");
}
