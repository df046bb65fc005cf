//! A server on a thread, and clients of each transport.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use dnslab_responder::{
    CertificateFiles, Config, Counters, CountersHandle, ResponderError, Server, StopHandle, Zone,
};
use dnslab_transport::http2::Client;
use dnslab_transport::{Exchange, Method, Target};
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A read that takes longer has failed. It is long enough for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const ASKED: [Transport; 4] =
    [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];

/// Hosts `host0` to `host999`, and one RRset that no datagram holds.
pub(crate) fn zone() -> Zone {
    let mut text = "$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\n\
                    ns A 192.0.2.53\nwww A 192.0.2.1\nalias CNAME www\n"
        .to_owned();
    for number in 0..1000 {
        text += &format!("host{number} A 192.0.{}.{}\n", 2 + number / 256, number % 256);
        if number < 200 {
            text += &format!("big TXT \"record number {number} of a large set\"\n");
        }
    }
    Zone::parse(text.as_bytes(), None).unwrap()
}

/// It runs until it is stopped or dropped.
pub(crate) struct Running {
    /// For UDP and TCP.
    pub(crate) address: SocketAddr,
    pub(crate) dot_address: SocketAddr,
    pub(crate) doh2_address: SocketAddr,
    pub(crate) doq_address: SocketAddr,
    pub(crate) doh3_address: SocketAddr,
    /// The server's own certificate is the only one.
    pub(crate) roots: Arc<RootCertStore>,
    pub(crate) chain: PathBuf,
    pub(crate) certificate: CertificateFiles,
    pub(crate) busy_steps: u64,
    pub(crate) counters: CountersHandle,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Counters, ResponderError>>>,
    _directory: tempfile::TempDir,
}

impl Running {
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        Self::start_on("127.0.0.1:0", change)
    }

    /// On free ports of an address.
    pub(crate) fn start_on(address: &str, change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (chain, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();

        let mut config = Config::new(zone());
        let address: SocketAddr = address.parse().unwrap();
        config.listen.push(address);
        config.dot_listen.push(address);
        config.doh2_listen.push(address);
        config.doq_listen.push(address);
        config.doh3_listen.push(address);
        let certificate = CertificateFiles { chain: chain.clone(), key };
        config.certificate = Some(certificate.clone());
        config.idle_timeout = PATIENCE;
        change(&mut config);
        let server = Server::bind(config).unwrap();
        let address = |transport| server.addresses(transport)[0];
        Self {
            address: address(Transport::Udp),
            dot_address: address(Transport::Dot),
            doh2_address: address(Transport::Doh2),
            doq_address: address(Transport::Doq),
            doh3_address: address(Transport::Doh3),
            roots: Arc::new(roots),
            chain,
            certificate,
            busy_steps: server.busy_steps(),
            counters: server.counters_handle(),
            stop: server.stop_handle(),
            thread: Some(std::thread::spawn(|| server.run())),
            _directory: directory,
        }
    }

    pub(crate) fn stop(mut self) -> Counters {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap().unwrap()
    }

    pub(crate) fn udp(&self) -> UdpSocket {
        let any = if self.address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).unwrap();
        socket.connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    pub(crate) fn tcp(&self) -> TcpStream {
        connect(self.address)
    }

    /// With one store of tickets.
    pub(crate) fn tls_config(&self, alpn: &[u8]) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        config
    }

    pub(crate) fn dot(
        &self,
        config: &Arc<ClientConfig>,
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(Arc::clone(config), name).unwrap();
        StreamOwned::new(session, connect(self.dot_address))
    }

    pub(crate) fn tls(
        &self,
        address: SocketAddr,
        alpn: &[u8],
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let name = "localhost".try_into().unwrap();
        let session = ClientConnection::new(Arc::new(self.tls_config(alpn)), name).unwrap();
        StreamOwned::new(session, connect(address))
    }

    /// Asks one question over HTTP/2, with the id put back as a client does. The error is the status if that
    /// is not 200, 0 if the stream was reset.
    pub(crate) fn doh2(&self, method: Method, query: &[u8]) -> Result<Vec<u8>, u16> {
        self.doh2_at("/dns-query", method, query)
    }

    pub(crate) fn doh2_at(&self, path: &str, method: Method, query: &[u8]) -> Result<Vec<u8>, u16> {
        let mut stream = self.tls(self.doh2_address, b"h2");
        let (authority, path) = ("localhost".to_owned(), path.to_owned());
        let mut http = Client::new(&Target { authority, path, method }).unwrap();
        let id = u16::from_be_bytes([query[0], query[1]]);
        assert!(http.send(id, query));
        let (mut out, mut outcome, mut buffer) = (Vec::new(), None, [0; 16_384]);
        loop {
            let polled = http.poll(&mut out, &mut |exchange| {
                outcome = Some(match exchange {
                    Exchange::Answer { request, message } if request == id => Ok(message.to_vec()),
                    Exchange::Refused { status, .. } => Err(status),
                    other => panic!("{other:?}"),
                });
            });
            if let Some(outcome) = outcome {
                return outcome;
            }
            polled.unwrap();
            stream.write_all(&out).unwrap();
            stream.flush().unwrap();
            out.clear();
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "the server closed the connection");
            http.receive(&buffer[..count]);
        }
    }

    pub(crate) fn ask(&self, transport: Transport, query: &[u8]) -> Vec<u8> {
        match transport {
            Transport::Doh2 => self.doh2(Method::Post, query).unwrap(),
            Transport::Doq | Transport::Doh3 => panic!("{transport} is not asked here"),
            Transport::Udp => {
                let (socket, mut buffer) = (self.udp(), vec![0; 65_535]);
                socket.send(query).unwrap();
                let length = socket.recv(&mut buffer).unwrap();
                buffer.truncate(length);
                buffer
            }
            Transport::Tcp => exchange(&mut self.tcp(), query),
            Transport::Dot => exchange(&mut self.tls(self.dot_address, b"dot"), query),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection that gives up after [`PATIENCE`].
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

pub(crate) fn query(id: u16, qname: &str, qtype: Rtype) -> Vec<u8> {
    let name: Name<Vec<u8>> = qname.parse().unwrap();
    let query = Query::new(&name, qtype, &QueryOptions::default()).unwrap();
    let mut octets = query.octets().to_vec();
    octets[..2].copy_from_slice(&id.to_be_bytes());
    octets
}

pub(crate) fn exchange(stream: &mut (impl Read + Write), query: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    dnslab_wire::push_frame(&mut frame, query);
    stream.write_all(&frame).unwrap();
    stream.flush().unwrap();
    read_message(stream)
}

pub(crate) fn read_message(stream: &mut impl Read) -> Vec<u8> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).unwrap();
    message
}
