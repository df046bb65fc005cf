//! Our responder and BIND with the same zone and certificate.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dnslab_responder::{
    CertificateFiles, Config, Counters, ResponderError, Server, StopHandle, Zone,
};
use dnslab_test_support::free_addresses;
use dnslab_wire::Transport;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Patience with things that take milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The zone `example.`, as a file has it.
fn zone() -> String {
    let mut text = "$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\n\
                    ns A 192.0.2.53\n"
        .to_owned();
    for number in 0..100 {
        writeln!(text, "host{number} A 192.0.2.{number}").unwrap();
        writeln!(text, "big TXT \"record number {number} of a large set\"").unwrap();
    }
    text
}

/// A certificate for `localhost`, in a folder of its own.
pub(crate) struct Identity {
    pub(crate) chain: PathBuf,
    key: PathBuf,
    folder: tempfile::TempDir,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        Self { chain, key, folder }
    }

    /// Of a TLS server that a test writes itself, with one protocol (ALPN).
    pub(crate) fn server_config(&self, alpn: &str) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_file(&self.chain).unwrap()],
                PrivateKeyDer::from_pem_file(&self.key).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        config
    }
}

/// Our responder on a thread.
pub(crate) struct Responder {
    pub(crate) identity: Identity,
    pub(crate) dot: SocketAddr,
    pub(crate) doh2: SocketAddr,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Counters, ResponderError>>>,
}

impl Responder {
    /// Starts it, changed as wanted.
    pub(crate) fn start(change: impl FnOnce(&mut Config)) -> Self {
        let identity = Identity::new();
        let mut config = Config::new(Zone::parse(zone().as_bytes(), None).unwrap());
        config.dot_listen.push("127.0.0.1:0".parse().unwrap());
        config.doh2_listen.push("[::1]:0".parse().unwrap());
        let (chain, key) = (identity.chain.clone(), identity.key.clone());
        config.certificate = Some(CertificateFiles { chain, key });
        change(&mut config);
        let server = Server::bind(config).unwrap();
        Self {
            identity,
            dot: server.addresses(Transport::Dot)[0],
            doh2: server.addresses(Transport::Doh2)[0],
            stop: server.stop_handle(),
            thread: Some(std::thread::spawn(|| server.run())),
        }
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

pub(crate) struct Bind {
    pub(crate) identity: Identity,
    pub(crate) dot: SocketAddr,
    pub(crate) doh2: SocketAddr,
    process: Child,
}

impl Bind {
    /// Starts it with these statements in `tls`, and with so many HTTP/2 streams in a connection.
    pub(crate) fn start(tls: &str, streams: u32) -> Self {
        let identity = Identity::new();
        let folder = identity.folder.path();
        let [dot, doh2] = free_addresses([127, 0, 0, 1].into());
        let (chain, key) = (identity.chain.display(), identity.key.display());
        let configuration = format!(
            r#"
tls local-tls {{ cert-file "{chain}"; key-file "{key}"; {tls} }};
http local {{
    endpoints {{ "/dns-query"; }}; streams-per-connection {streams}; listener-clients 5000;
}};
options {{
    directory "{folder}"; pid-file "named.pid"; session-keyfile "session.key";
    managed-keys-directory "."; recursion no; dnssec-validation no; notify no;
    listen-on-v6 {{ none; }};
    listen-on port {dot} tls local-tls {{ 127.0.0.1; }};
    listen-on port {doh2} tls local-tls http local {{ 127.0.0.1; }};
    interface-interval 0; tcp-clients 5000; tcp-listen-queue 1024;
}};
controls {{ }};
zone "example" {{ type primary; file "example.zone"; }};
"#,
            folder = folder.display(),
            dot = dot.port(),
            doh2 = doh2.port(),
        );
        std::fs::write(folder.join("example.zone"), zone()).unwrap();
        std::fs::write(folder.join("named.conf"), configuration).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let process = Command::new("named")
            .args(["-g", "-n", "1", "-c"])
            .arg(folder.join("named.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run named: {error}; install bind9"));
        let mut server = Self { identity, dot, doh2, process };
        server.wait();
        server
    }

    fn wait(&mut self) {
        let until = Instant::now() + PATIENCE;
        while [self.dot, self.doh2].iter().any(|address| TcpStream::connect(address).is_err()) {
            let log = || std::fs::read_to_string(self.identity.folder.path().join("log")).unwrap();
            assert!(Instant::now() < until, "named is not ready: {}", log());
            assert!(self.process.try_wait().unwrap().is_none(), "named ended: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Bind {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
