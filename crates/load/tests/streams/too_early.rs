//! A server that takes early data but does not want to look at requests in it (RFC 8470, section
//! 5.2).

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use dnslab_carrier::Method;
use dnslab_carrier::http2::Server;
use dnslab_load::LoadSpec;
use dnslab_wire::Transport;
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::load::{go_well, settings, spec, with_method, with_quota};
use crate::servers::Identity;

/// Answers requests over HTTP/2, but those that came as early data with 425, which are counted.
fn server(identity: &Identity) -> (SocketAddr, Arc<AtomicU64>) {
    let (chain, key) = identity.files();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(chain).unwrap()],
            PrivateKeyDer::from_pem_file(key).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    config.max_early_data_size = 16_384;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, refused) = (listener.local_addr().unwrap(), Arc::<AtomicU64>::default());
    let count = Arc::clone(&refused);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let count = Arc::clone(&count);
            // A client that has gone is none of the test's business.
            thread::spawn(move || drop(serve(session, stream.unwrap(), &count)));
        }
    });
    (address, refused)
}

/// Serves one connection until the client closes it.
fn serve(mut tls: ServerConnection, mut socket: TcpStream, refused: &AtomicU64) -> io::Result<()> {
    let (mut http, mut out) = (Server::new("/dns-query"), Vec::new());
    while tls.read_tls(&mut socket)? > 0 {
        let state = tls.process_new_packets().map_err(io::Error::other)?;
        let mut early = Vec::new();
        if let Some(mut reader) = tls.early_data() {
            reader.read_to_end(&mut early)?;
        }
        http.receive(&early);
        http.poll(&mut out).map_err(io::Error::other)?;
        while let Some(request) = http.next_request() {
            refused.fetch_add(1, Ordering::Relaxed);
            http.refuse(request.id, 425);
        }
        let mut plain = vec![0; state.plaintext_bytes_to_read()];
        tls.reader().read_exact(&mut plain)?;
        http.receive(&plain);
        http.poll(&mut out).map_err(io::Error::other)?;
        while let Some(request) = http.next_request() {
            let mut answer = request.message.to_vec();
            answer[2] |= 0x80;
            http.answer(request.id, &answer);
        }
        http.poll(&mut out).map_err(io::Error::other)?;
        tls.writer().write_all(&std::mem::take(&mut out))?;
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
    }
    Ok(())
}

/// What is refused with 425 is asked again after the handshake, and not refused.
#[test]
fn requests_that_were_too_early() {
    let identity = Identity::new();
    let (target, refused) = server(&identity);
    let tls = settings(&identity).with_early_data(true);
    let spec = with_quota(spec(target, Transport::Doh2, tls), 40);
    let result = go_well(&with_method(LoadSpec { expected: None, ..spec }, Method::Get));
    let counters = &result.measured.counters;
    let refused = refused.load(Ordering::Relaxed);
    assert!(refused > 0 && counters.connections.early_data > 0, "{counters:?}");
    assert_eq!(counters.outcomes.refused, 0, "{counters:?}");
    assert_eq!(counters.asked_again, refused, "{counters:?}");
    assert_eq!(counters.connections.not_processed, 0, "{counters:?}");
}
