//! Our responder with the zone of the queries, on every transport, on a thread or as a process.

use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

use dnslab_load::{Job, TlsSettings, Verification};
use dnslab_responder::{
    CertificateFiles, Config, Counters, ResponderError, Server, StopHandle, Zone,
};
use dnslab_wire::Transport;

use crate::applied::{job, zone};

/// A responder that runs until it is dropped.
pub(crate) struct Responder {
    addresses: [(Transport, SocketAddr); 6],
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Counters, ResponderError>>>,
}

impl Responder {
    /// Starts it on `127.0.0.1`, changed as wanted.
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut text = Vec::new();
        zone().write_to(&mut text).unwrap();
        let mut config = Config::new(Zone::parse(&text[..], None).unwrap());
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        config.listen.push(any);
        config.dot_listen.push(any);
        config.doh2_listen.push(any);
        config.doq_listen.push(any);
        config.doh3_listen.push(any);
        config.certificate = Some(CertificateFiles { chain, key });
        change(&mut config);
        let server = Server::bind(config).unwrap();
        let address = |transport| (transport, server.addresses(transport)[0]);
        let addresses = Transport::ALL.map(address);
        let stop = server.stop_handle();
        Self { addresses, stop, thread: Some(std::thread::spawn(|| server.run())) }
    }

    /// Where it serves a transport.
    pub(crate) fn address(&self, transport: Transport) -> SocketAddr {
        let is_asked = |(its, _): &&(Transport, SocketAddr)| *its == transport;
        self.addresses.iter().find(is_asked).expect("the transport is served").1
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

/// The load of [`job`], with TLS that trusts any certificate.
pub(crate) fn job_with_tls(target: SocketAddr, transport: Transport) -> Job {
    let tls = TlsSettings::new("localhost", &Verification::Off).unwrap();
    // A handshake of a debug build takes its time on a busy machine.
    let job = job(target, transport).with(|load| load.timeout = Duration::from_secs(1));
    Job { tls: Some(tls), ..job }
}
