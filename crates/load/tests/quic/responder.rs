//! Our responder on a thread.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use dnslab_responder::{
    CertificateFiles, Config, Counters, ResponderError, Server, StopHandle, Zone,
};
use dnslab_wire::Transport;

use crate::load::{Identity, zone};

/// A responder with DoQ and DoH3, each on IPv4 and IPv6.
pub(crate) struct Responder {
    pub(crate) identity: Identity,
    doq: Vec<SocketAddr>,
    doh3: Vec<SocketAddr>,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Counters, ResponderError>>>,
}

impl Responder {
    /// Starts it, changed as wanted.
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        let identity = Identity::new();
        let mut config = Config::new(Zone::parse(zone().as_bytes(), None).unwrap());
        let any = || ["127.0.0.1:0", "[::1]:0"].map(|address| address.parse().unwrap()).to_vec();
        (config.doq_listen, config.doh3_listen) = (any(), any());
        let (chain, key) = (identity.chain.clone(), identity.key.clone());
        config.certificate = Some(CertificateFiles { chain, key });
        change(&mut config);
        let server = Server::bind(config).unwrap();
        Self {
            identity,
            doq: server.addresses(Transport::Doq),
            doh3: server.addresses(Transport::Doh3),
            stop: server.stop_handle(),
            thread: Some(std::thread::spawn(|| server.run())),
        }
    }

    pub(crate) fn addresses(&self, transport: Transport) -> &[SocketAddr] {
        if transport == Transport::Doq { &self.doq } else { &self.doh3 }
    }

    pub(crate) fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Stops it and reads its counters.
    pub(crate) fn stop(mut self) -> Counters {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap().unwrap()
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
