//! Whatever datagrams reach a server of DNS over QUIC or HTTP/3 before it knows anybody, it says at most
//! three times what it got to an address that has not been proven (RFC 9000, section 8.1), keeps no
//! more connections than it may, and nothing panics.
//!
//! quinn-proto sends a full datagram as long as any of that budget is left, so a connection may go up to one
//! datagram beyond it (quinn-rs/quinn#1082). It began with one that was as long, at least.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use dnslab_transport::quic::{QuicServer, QuicServerSettings, Reaction};
use libfuzzer_sys::fuzz_target;

/// Settings of both protocols with a certificate that is made once.
static SETTINGS: LazyLock<[QuicServerSettings; 2]> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("the name is one");
    let tls = |alpn: &[u8]| {
        let key = made.signing_key.serialize_der().try_into().expect("the key was just made");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("certificate and key belong together");
        config.alpn_protocols = vec![alpn.to_vec()];
        Arc::new(config)
    };
    let doq = QuicServerSettings::doq(tls(b"doq"));
    let doh3 = QuicServerSettings::http3(tls(b"h3"), "/q");
    [doq, doh3].map(|settings| {
        let mut settings = settings.expect("the TLS settings are those of QUIC");
        settings.seed = Some([7; 32]);
        settings.connections = 4;
        settings
    })
});

fuzz_target!(|octets: &[u8]| {
    // The first octet says which protocol; each datagram follows its length.
    let Some((first, mut rest)) = octets.split_first() else { return };
    let mut server = QuicServer::new(&SETTINGS[usize::from(first & 1)]);
    let (peer, mut now) = ("192.0.2.2:1853".parse().expect("it is an address"), Instant::now());
    let (mut received, mut sent, mut out) = (0, 0, Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (datagram, behind) = behind.split_at(length);
        rest = behind;
        received += datagram.len();
        server.receive(now, peer, None, datagram, datagram.len().max(1));
        server.poll(now, &mut |_, _, _| Reaction::NoQuery);
        // As a caller must, for the length of the packets is reckoned from an empty buffer.
        while server.transmit(now, &mut out).is_some() {
            sent += out.len();
            out.clear();
        }
        assert!(sent <= 4 * received, "{sent} octets for {received}");
        assert!(server.connections() <= 4);
        now += Duration::from_millis(100);
        if server.next_timeout().is_some_and(|due| due <= now) {
            server.handle_timeouts(now);
        }
    }
});
