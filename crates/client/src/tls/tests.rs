//! Sessions against a server in memory: tickets of each client apart, early data taken, refused, and too much
//! of it.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use dnslab_settings::{Load, TlsVersions};
use dnslab_wire::Transport;
use rustls::server::ServerSessionMemoryCache;
use rustls::{ServerConfig, ServerConnection};
use rustls_pki_types::PrivateKeyDer;

use super::{ClientTls, TlsSession, TlsSettings, Verification};
use crate::connection::{ConnectionEnd, HandshakeKind};

/// A server that takes so much early data, octets.
fn server(early_data: u32) -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(vec!["ns.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.session_storage = ServerSessionMemoryCache::new(1024);
    config.max_early_data_size = early_data;
    config.alpn_protocols = vec![b"dot".to_vec()];
    Arc::new(config)
}

fn clients(change: impl Fn(TlsSettings) -> TlsSettings) -> ClientTls {
    let settings = TlsSettings::new("ns.example", &Verification::Off).unwrap();
    ClientTls::new(&change(settings), Transport::Dot)
}

struct Talk {
    kind: HandshakeKind,
    read: Vec<u8>,
    answer: Vec<u8>,
}

/// Opens a connection, writes `plain` as soon as possible, and reads the answer `pong`.
fn talk(mut session: TlsSession, config: &Arc<ServerConfig>, plain: &[&[u8]]) -> Talk {
    let mut server = ServerConnection::new(Arc::clone(config)).unwrap();
    let (mut to_server, mut answer, mut read) = (Vec::new(), Vec::new(), Vec::new());
    session.begin(&mut to_server);
    let mut plain = plain.iter();
    for round in 0..6 {
        while session.may_write()
            && let Some(part) = plain.next()
        {
            session.write(part, &mut to_server).unwrap();
        }
        let mut rest = to_server.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().unwrap();
            if let Some(mut early) = server.early_data() {
                early.read_to_end(&mut read).unwrap();
            }
            // Ends with "would block", after what is there.
            let _ = server.reader().read_to_end(&mut read);
        }
        to_server.clear();
        if round == 3 {
            server.writer().write_all(b"pong").unwrap();
        }
        let mut to_client = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut to_client).unwrap();
        }
        session.read(&to_client, &mut answer, &mut to_server).unwrap();
    }
    assert!(session.is_established() && plain.next().is_none());
    Talk { kind: session.handshake(0).kind, read, answer }
}

#[test]
fn each_client_has_its_own_tickets() {
    let server = server(0);
    for versions in [TlsVersions::V12, TlsVersions::V13] {
        let tls = clients(|settings| {
            settings.of_load(&Load { tls_versions: versions, ..Load::default() })
        });
        for (client, kind, tickets) in [
            (7, HandshakeKind::Full, 1),
            (8, HandshakeKind::Full, 2),
            (7, HandshakeKind::Resumed, 2),
            (7, HandshakeKind::Resumed, 2),
            (8, HandshakeKind::Resumed, 2),
        ] {
            let session = TlsSession::new(&tls, client).unwrap();
            assert_eq!(talk(session, &server, &[b"ping"]).kind, kind);
            assert_eq!(tls.tickets().len(), tickets);
        }
    }
}

/// Tickets of TLS 1.3 are used once; a client keeps two.
#[test]
fn tickets_are_few_and_used_once() {
    let server = server(0);
    let tls = clients(|settings| settings);
    talk(TlsSession::new(&tls, 1).unwrap(), &server, &[b"ping"]);
    // Three connections begin before any of them brings new tickets.
    let sessions = [(); 3].map(|()| TlsSession::new(&tls, 1).unwrap());
    assert_eq!(tls.tickets().len(), 0);
    let kinds = sessions.map(|session| talk(session, &server, &[b"ping"]).kind);
    assert_eq!(kinds, [HandshakeKind::Resumed, HandshakeKind::Resumed, HandshakeKind::Full]);

    let tls = clients(|settings| settings.of_load(&Load { resumption: false, ..Load::default() }));
    talk(TlsSession::new(&tls, 1).unwrap(), &server, &[b"ping"]);
    assert_eq!(tls.tickets().len(), 0);
}

#[test]
fn early_data_is_never_lost_and_never_doubled() {
    use HandshakeKind::{EarlyData, Full, Resumed};
    let parts: Vec<Vec<u8>> = (0..40).map(|number| vec![number; 100]).collect();
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    // What the server does not take is kept for after the handshake.
    for (taken, kind) in [(16_384, EarlyData), (1_050, EarlyData), (0, Resumed)] {
        let config = server(taken);
        let tls =
            clients(|settings| settings.of_load(&Load { early_data: true, ..Load::default() }));
        for expected in [Full, kind] {
            let talk = talk(TlsSession::new(&tls, 1).unwrap(), &config, &parts);
            assert_eq!(talk.kind, expected);
            assert_eq!(talk.read, parts.concat(), "{taken}");
            assert_eq!(talk.answer, b"pong");
        }
    }
    // A server that has forgotten its sessions accepts neither the ticket nor the data.
    let tls = clients(|settings| settings.of_load(&Load { early_data: true, ..Load::default() }));
    assert_eq!(talk(TlsSession::new(&tls, 1).unwrap(), &server(16_384), &parts).kind, Full);
    let forgetful = server(16_384);
    let talk = talk(TlsSession::new(&tls, 1).unwrap(), &forgetful, &parts);
    assert_eq!((talk.kind, talk.read), (Full, parts.concat()));
}

#[test]
fn octets_that_are_no_tls_end_the_connection() {
    let tls = clients(|settings| settings);
    let mut session = TlsSession::new(&tls, 1).unwrap();
    let (mut plain, mut write) = (Vec::new(), Vec::new());
    session.begin(&mut write);
    let end = session.read(b"HTTP/1.1 400 Bad Request\r\n", &mut plain, &mut write).unwrap_err();
    assert!(matches!(end, ConnectionEnd::Tls(_)), "{end}");
    assert!(plain.is_empty());
}

#[test]
fn versions_are_read_back() {
    for versions in TlsVersions::ALL {
        assert_eq!(versions.to_string().parse(), Ok(versions));
    }
    let error = "1.1".parse::<TlsVersions>().unwrap_err().to_string();
    assert!(error.contains("`1.1`"), "{error}");
}
