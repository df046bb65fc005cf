//! Loads over encrypted transports, and what their servers serve.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_load::{Expected, Job, LoadResult, TlsSettings, Verification, run};
use dnslab_settings::{Load, Mode, QuotaKind, RightCodes};
use dnslab_traffic::QueryList;
use dnslab_wire::{Method, QueryOptions, Transport};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// The zone `example.`, as a file has it. One answer is longer than any packet.
pub(crate) fn zone() -> String {
    let mut text = "$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\n\
                    ns A 192.0.2.53\n"
        .to_owned();
    for number in 0..100 {
        writeln!(text, "host{number} A 192.0.2.{number}").unwrap();
        writeln!(text, "big TXT \"record number {number} of a large set\"").unwrap();
    }
    text
}

/// Every name of the zone, and one whose answer is large.
fn queries() -> Arc<QueryList> {
    let mut text = "big.example TXT\n".to_owned();
    for number in 0..100 {
        writeln!(text, "host{number}.example A").unwrap();
    }
    let queries = QueryList::from_text(text.as_bytes(), "the test", &QueryOptions::default());
    Arc::new(queries.unwrap())
}

/// A certificate for `localhost`, in a folder of its own.
pub(crate) struct Identity {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) folder: tempfile::TempDir,
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

    /// Settings of clients that verify it.
    pub(crate) fn settings(&self) -> TlsSettings {
        TlsSettings::new("localhost", &Verification::Authority(self.chain.clone())).unwrap()
    }
}

/// A short closed loop of three clients in two threads, whose answers must be right.
pub(crate) fn job(target: SocketAddr, transport: Transport, tls: TlsSettings) -> Job {
    let settings = Load {
        transport,
        clients: 3,
        mode: Mode::Closed { outstanding: 20 },
        duration: Duration::from_millis(400),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(5),
        workers: Some(2),
        ..Load::default()
    };
    let expected = Some(Expected { codes: RightCodes::One(0), answers: 1 });
    Job { expected, tls: Some(tls), ..Job::new(settings, target, queries()) }
}

/// Exactly so many queries for each connection.
pub(crate) fn with_quota(job: Job, queries: u32) -> Job {
    job.with(|load| {
        load.queries_per_connection = Some(queries);
        load.connection_quota = QuotaKind::Exact;
    })
}

/// HTTP requests of this method.
pub(crate) fn with_method(job: Job, method: Method) -> Job {
    job.with(|load| load.http_method = method)
}

/// Applies a load; the engine asserts its sums.
pub(crate) fn go(job: &Job) -> LoadResult {
    run(job, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// Applies a load whose queries must all be answered rightly.
#[track_caller]
pub(crate) fn go_well(job: &Job) -> LoadResult {
    let result = go(job);
    let counters = &result.measured.counters;
    let outcomes = &counters.outcomes;
    let transport = job.settings.transport;
    let shown = format!("{transport} {outcomes:?} {:?}", result.last_connection_end);
    assert!(outcomes.answered > 0, "{shown}");
    assert_eq!(outcomes.answered, outcomes.due, "{shown}");
    assert_eq!(counters.answers.wrong, 0, "{shown} {:?}", result.wrong_example);
    assert_eq!((counters.answers.unexpected, counters.answers.duplicate), (0, 0), "{shown}");
    result
}
