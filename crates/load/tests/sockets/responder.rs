//! Our responder on a thread.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use dnslab_responder::{
    CertificateFiles, Config, Counters, ResponderError, Server, StopHandle, Zone,
};
use dnslab_wire::Transport;

use crate::encrypted::{Identity, zone};

/// A responder with all transports: DoH2 on IPv6, DoQ and DoH3 on both families, the others on IPv4.
pub(crate) struct Responder {
    pub(crate) identity: Identity,
    pub(crate) dot: SocketAddr,
    pub(crate) doh2: SocketAddr,
    addresses: [(Transport, Vec<SocketAddr>); 6],
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Counters, ResponderError>>>,
}

impl Responder {
    /// Starts it, changed as wanted.
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        let identity = Identity::new();
        let mut config = Config::new(Zone::parse(zone().as_bytes(), None).unwrap());
        config.listen.push("127.0.0.1:0".parse().unwrap());
        config.dot_listen.push("127.0.0.1:0".parse().unwrap());
        config.doh2_listen.push("[::1]:0".parse().unwrap());
        let any = || ["127.0.0.1:0", "[::1]:0"].map(|address| address.parse().unwrap()).to_vec();
        (config.doq_listen, config.doh3_listen) = (any(), any());
        let (chain, key) = (identity.chain.clone(), identity.key.clone());
        config.certificate = Some(CertificateFiles { chain, key });
        change(&mut config);
        let server = Server::bind(config).unwrap();
        Self {
            identity,
            dot: server.addresses(Transport::Dot)[0],
            doh2: server.addresses(Transport::Doh2)[0],
            addresses: Transport::ALL.map(|transport| (transport, server.addresses(transport))),
            stop: server.stop_handle(),
            thread: Some(std::thread::spawn(|| server.run())),
        }
    }

    pub(crate) fn addresses(&self, transport: Transport) -> &[SocketAddr] {
        let is_asked = |(its, _): &&(Transport, Vec<SocketAddr>)| *its == transport;
        self.addresses.iter().find(is_asked).map_or(&[], |(_, addresses)| addresses)
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
