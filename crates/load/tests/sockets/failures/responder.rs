//! Our responder with the zone of the queries, on a thread or as a process.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use dnslab_responder::{Config, Counters, ResponderError, Server, StopHandle, Zone};
use dnslab_wire::Transport;

use crate::failures::applied::zone;

/// The zone of the queries, as a responder serves it.
pub(crate) fn served() -> Zone {
    let mut text = Vec::new();
    zone().write_to(&mut text).unwrap();
    Zone::parse(&text[..], None).unwrap()
}

/// A responder that runs until it is dropped.
pub(crate) struct Responder {
    /// Over UDP and TCP.
    pub(crate) address: SocketAddr,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Counters, ResponderError>>>,
}

impl Responder {
    /// Starts it on `127.0.0.1`, changed as wanted.
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(served());
        config.listen.push("127.0.0.1:0".parse().unwrap());
        change(&mut config);
        let server = Server::bind(config).unwrap();
        let (address, stop) = (server.addresses(Transport::Udp)[0], server.stop_handle());
        Self { address, stop, thread: Some(std::thread::spawn(|| server.run())) }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
