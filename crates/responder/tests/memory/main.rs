//! Clients that want the server's memory, one after the other, and how much of it they get.
//!
//! The server runs in this process, so the peak of the process is an upper bound for the server. Each attack
//! sends or asks for several times what may be kept.

mod http2;
mod many;
mod quic;
mod streams;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dnslab_responder::{
    CertificateFiles, Config, Counters, CountersHandle, ResponderError, Server, StopHandle, Zone,
};
use dnslab_wire::{Query, QueryOptions, Response, Transport, push_frame};
use domain::base::Name;
use domain::base::iana::Rtype;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A read that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Octets of the answer to `big.example. TXT`, and some more.
const BIG: usize = 60_000;

/// One attack at a time: they share what is measured.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In octets.
fn status(name: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kib = line.trim_start_matches(':').trim().trim_end_matches("kB").trim();
    kib.parse::<usize>().unwrap() * 1024
}

/// The most octets that the process held during `attack` above those before it.
fn growth(attack: impl FnOnce()) -> usize {
    // This resets the peak (proc(5), clear_refs).
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    attack();
    status("VmHWM").saturating_sub(before)
}

/// The attack must not get `most` octets out of the server, and another client is answered after it.
#[track_caller]
fn check(server: &Victim, most: usize, attack: impl FnOnce()) {
    let grown = growth(attack);
    assert!(grown < most, "{} MiB, {} MiB are allowed", grown >> 20, most >> 20);
    server.check_served();
}

struct Victim {
    address: SocketAddr,
    dot: SocketAddr,
    doh2: SocketAddr,
    doq: SocketAddr,
    doh3: SocketAddr,
    roots: Arc<RootCertStore>,
    stop: StopHandle,
    counters: CountersHandle,
    thread: Option<JoinHandle<Result<Counters, ResponderError>>>,
    _directory: tempfile::TempDir,
}

impl Victim {
    /// The answer to `big.example. TXT` has [`BIG`] octets.
    fn start(change: impl FnOnce(&mut Config)) -> Self {
        let mut text = "$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\n\
                        ns A 192.0.2.53\nwww A 192.0.2.1\n"
            .to_owned();
        for number in 0..BIG / 212 {
            text += &format!("big TXT \"{number:0>199}\"\n");
        }
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (chain, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
        fs::write(&chain, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let mut config = Config::new(Zone::parse(text.as_bytes(), None).unwrap());
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        config.listen.push(any);
        config.dot_listen.push(any);
        config.doh2_listen.push(any);
        config.doq_listen.push(any);
        config.doh3_listen.push(any);
        config.certificate = Some(CertificateFiles { chain, key });
        config.idle_timeout = PATIENCE;
        change(&mut config);
        let server = Server::bind(config).unwrap();
        Self {
            address: server.addresses()[0],
            dot: server.dot_addresses()[0],
            doh2: server.doh2_addresses()[0],
            doq: server.doq_addresses()[0],
            doh3: server.doh3_addresses()[0],
            roots: Arc::new(roots),
            stop: server.stop_handle(),
            counters: server.counters_handle(),
            thread: Some(std::thread::spawn(|| server.run())),
            _directory: directory,
        }
    }

    fn tls_config(&self, alpn: &[u8]) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        config
    }

    fn tls(&self, address: SocketAddr, alpn: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(Arc::new(self.tls_config(alpn)), name).unwrap();
        StreamOwned::new(session, connect(address))
    }

    fn check_served(&self) {
        let mut stream = connect(self.address);
        let mut frame = Vec::new();
        push_frame(&mut frame, &query("www.example.", Rtype::A));
        stream.write_all(&frame).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message).unwrap();
        assert_eq!(Response::parse(&message).unwrap().answers, 1);
    }

    fn stop(mut self) -> Counters {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection that gives up after [`PATIENCE`].
fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// The id is 0.
fn query(qname: &str, qtype: Rtype) -> Vec<u8> {
    let name: Name<Vec<u8>> = qname.parse().unwrap();
    let query = Query::new(&name, qtype, &QueryOptions::default()).unwrap();
    let mut octets = query.octets().to_vec();
    octets[..2].fill(0);
    octets
}

/// Writes until the other side takes no more for half a second, or is gone, or `most` octets are written.
fn flood(stream: &mut impl Write, socket: &TcpStream, part: &[u8], most: usize) {
    socket.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut written = 0;
    while written < most && stream.write_all(part).and_then(|()| stream.flush()).is_ok() {
        written += part.len();
    }
}

fn answered(counters: &Counters, transport: Transport) -> u64 {
    counters.messages(transport).answered
}
