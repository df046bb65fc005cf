//! DoQ or HTTP/3 client against server in memory, for a profile: `quic_exchange [doq|get|post]
//! [BATCHES] [QUERIES]` exchanges so many batches of so many queries, 100. Under callgrind,
//! `--toggle-collect='*client_turn*'` counts the client's part alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dnslab_transport::quic::{
    QuicClient, QuicClientSettings, QuicServer, QuicServerSettings, Reaction,
};
use dnslab_transport::{ALPN_DOQ, ALPN_H3, Method, Target};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Where the server is, as far as packets in memory are anywhere.
const SERVER: &str = "192.0.2.1:853";

/// Packets end to end, each group with the length of all but its last.
type Packets = Vec<(Vec<u8>, usize)>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let protocol = arguments.first().map_or("doq", String::as_str);
    let batches = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let queries = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(100);
    let mut now = Instant::now();
    let (mut client, mut server) = make(protocol, now);
    let (mut answered, mut batch, mut to_client) = (0, 0, Packets::new());
    while batch < batches {
        now += Duration::from_micros(100);
        let sends = client.is_open();
        batch += u32::from(sends);
        let to_server;
        let sends = if sends { queries } else { 0 };
        (answered, to_server) = client_turn(&mut client, now, to_client, sends, answered);
        to_client = server_turn(&mut server, now, &to_server);
    }
    println!("{answered} answered");
}

/// A client and a server that trust each other.
fn make(protocol: &str, now: Instant) -> (QuicClient, QuicServer) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    let made = made.expect("the name is one");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("the certificate is one");
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let key = made.signing_key.serialize_der().try_into().expect("the key is one");
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("key and certificate belong together");
    let alpn = vec![if protocol == "doq" { ALPN_DOQ } else { ALPN_H3 }.to_vec()];
    client.alpn_protocols.clone_from(&alpn);
    server.alpn_protocols = alpn;
    let settings = QuicClientSettings::new(Arc::new(client)).expect("TLS 1.3 is there");
    let address = SERVER.parse().expect("it is an address");
    let (client, server) = if protocol == "doq" {
        let client = QuicClient::doq(&settings, address, "localhost", now);
        (client, QuicServerSettings::doq(Arc::new(server)))
    } else {
        let method = if protocol == "get" { Method::Get } else { Method::Post };
        let (authority, path) = ("localhost".to_owned(), "/dns-query".to_owned());
        let target = Arc::new(Target { authority, path, method });
        let client = QuicClient::http3(&settings, address, "localhost", target, now);
        (client, QuicServerSettings::http3(Arc::new(server), "/dns-query"))
    };
    let server = QuicServer::new(&server.expect("TLS 1.3 is there"));
    (client.expect("name and address are good"), server)
}

/// Reads the answers to the last batch and sends the next.
#[inline(never)]
fn client_turn(
    client: &mut QuicClient,
    now: Instant,
    read: Packets,
    sends: u16,
    mut answered: u64,
) -> (u64, Packets) {
    for (octets, segment) in &read {
        client.receive(now, octets, *segment);
    }
    if client.next_timeout().is_some_and(|due| due <= now) {
        client.handle_timeout(now);
    }
    client.poll(now, &mut |_| answered += 1).expect("the server goes on");
    let mut query = [7; 40];
    for id in 0..sends {
        query[3] = id as u8;
        assert!(client.send(id, &query), "the server allows enough streams");
    }
    let (mut packets, mut out) = (Packets::new(), Vec::new());
    while let Some(segment) = client.transmit(now, &mut out) {
        packets.push((std::mem::take(&mut out), segment));
    }
    (answered, packets)
}

/// Answers what has come.
#[inline(never)]
fn server_turn(server: &mut QuicServer, now: Instant, read: &Packets) -> Packets {
    let peer = "192.0.2.2:1853".parse().expect("it is an address");
    for (octets, segment) in read {
        server.receive(now, peer, None, octets, *segment);
    }
    server.handle_timeouts(now);
    server.poll(now, &mut |_, query, out| {
        out.extend_from_slice(query);
        out.extend_from_slice(&[9; 16]);
        Reaction::Answered
    });
    let (mut packets, mut out) = (Packets::new(), Vec::new());
    while let Some(outgoing) = server.transmit(now, &mut out) {
        packets.push((std::mem::take(&mut out), outgoing.segment));
    }
    packets
}
