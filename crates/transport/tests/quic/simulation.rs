//! A client, a server, and the link between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dnslab_transport::quic::{
    QuicClient, QuicClientSettings, QuicError, QuicServer, QuicServerSettings, Reaction, RequestId,
};
use dnslab_transport::{ALPN_DOQ, ALPN_H3, Exchange, Method, Target};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Doq,
    Get,
    Post,
}

impl Protocol {
    pub(crate) const ALL: [Self; 3] = [Self::Doq, Self::Get, Self::Post];

    fn alpn(self) -> Vec<Vec<u8>> {
        vec![if self == Self::Doq { ALPN_DOQ } else { ALPN_H3 }.to_vec()]
    }
}

/// Shares of datagrams, in percent, and delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) lost: u32,
    pub(crate) doubled: u32,
    /// A datagram takes between these times, so that later ones may be earlier.
    pub(crate) delay: (Duration, Duration),
}

impl Link {
    pub(crate) const QUIET: Self = Self {
        lost: 0,
        doubled: 0,
        delay: (Duration::from_micros(100), Duration::from_micros(100)),
    };
    pub(crate) const BAD: Self =
        Self { lost: 10, doubled: 10, delay: (Duration::from_millis(1), Duration::from_millis(9)) };
}

/// The server's certificate, made once for all tests.
fn certificate() -> &'static (rcgen::CertifiedKey<rcgen::KeyPair>, RootCertStore) {
    static MADE: OnceLock<(rcgen::CertifiedKey<rcgen::KeyPair>, RootCertStore)> = OnceLock::new();
    MADE.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        (made, roots)
    })
}

pub(crate) fn client_tls(protocol: Protocol) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(certificate().1.clone())
        .with_no_client_auth();
    config.alpn_protocols = protocol.alpn();
    config.enable_early_data = true;
    config
}

pub(crate) fn server_tls(protocol: Protocol, early_data: bool) -> ServerConfig {
    let key = certificate().0.signing_key.serialize_der();
    let mut config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate().0.cert.der().clone()], key.try_into().unwrap())
            .unwrap();
    config.alpn_protocols = protocol.alpn();
    config.max_early_data_size = if early_data { u32::MAX } else { 0 };
    config
}

pub(crate) fn server(protocol: Protocol, seed: u64) -> QuicServerSettings {
    let tls = Arc::new(server_tls(protocol, true));
    let mut settings = match protocol {
        Protocol::Doq => QuicServerSettings::doq(tls),
        Protocol::Get | Protocol::Post => QuicServerSettings::http3(tls, "/dns-query"),
    }
    .unwrap();
    settings.seed = Some([seed as u8; 32]);
    settings
}

pub(crate) const SERVER: &str = "192.0.2.1:853";
pub(crate) const CLIENT: &str = "192.0.2.2:1853";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answer(u16, Vec<u8>),
    Refused(u16, u16),
    NotProcessed(u16),
}

impl From<Exchange<'_>> for Outcome {
    fn from(exchange: Exchange<'_>) -> Self {
        match exchange {
            Exchange::Answer { request, message } => Self::Answer(request, message.to_vec()),
            Exchange::Refused { request, status } => Self::Refused(request, status),
            Exchange::NotProcessed { request } => Self::NotProcessed(request),
        }
    }
}

impl Outcome {
    pub(crate) fn request(&self) -> u16 {
        match self {
            Self::Answer(request, _) | Self::Refused(request, _) | Self::NotProcessed(request) => {
                *request
            }
        }
    }
}

type Flying = Reverse<(Instant, u64, bool, Vec<u8>)>;

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) client: QuicClient,
    pub(crate) server: QuicServer,
    pub(crate) outcomes: Vec<Outcome>,
    /// How the client's connection ended.
    pub(crate) end: Option<QuicError>,
    /// What the server makes of the n-th query.
    pub(crate) reaction: Box<dyn FnMut(u64) -> Reaction>,
    /// Queries that the server holds back, with their answers.
    pub(crate) held: Vec<(RequestId, Vec<u8>)>,
    /// Queries that came to the server.
    pub(crate) asked: u64,
    pub(crate) datagrams: u64,
    pub(crate) link: Link,
    random: Xoshiro256PlusPlus,
    flying: BinaryHeap<Flying>,
}

impl World {
    pub(crate) fn new(protocol: Protocol, link: Link, seed: u64) -> Self {
        Self::with(protocol, link, seed, &server(protocol, seed), client_tls(protocol))
    }

    pub(crate) fn with(
        protocol: Protocol,
        link: Link,
        seed: u64,
        server: &QuicServerSettings,
        tls: ClientConfig,
    ) -> Self {
        let now = Instant::now();
        let client = connect(protocol, tls, seed, now);
        Self {
            now,
            client,
            server: QuicServer::new(server),
            outcomes: Vec::new(),
            end: None,
            reaction: Box::new(|_| Reaction::Answered),
            held: Vec::new(),
            asked: 0,
            datagrams: 0,
            link,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            flying: BinaryHeap::new(),
        }
    }

    pub(crate) fn reconnect(&mut self, protocol: Protocol, tls: ClientConfig) {
        self.flush();
        self.client = connect(protocol, tls, self.random.random(), self.now);
        self.end = None;
        self.outcomes.clear();
    }

    /// Lets both sides say what they have to say now.
    pub(crate) fn flush(&mut self) {
        if self.end.is_none() {
            let outcomes = &mut self.outcomes;
            let ended = self.client.poll(self.now, &mut |exchange| {
                outcomes.push(Outcome::from(exchange));
            });
            self.end = ended.err();
        }
        let (held, asked, reaction) = (&mut self.held, &mut self.asked, &mut self.reaction);
        self.server.poll(self.now, &mut |request, query, out| {
            let answer = answer(query);
            let reaction = reaction(*asked);
            *asked += 1;
            match reaction {
                Reaction::Answered => out.extend_from_slice(&answer),
                Reaction::Later => held.push((request, answer)),
                Reaction::Never | Reaction::NoQuery => {}
            }
            reaction
        });
        let mut out = Vec::new();
        while let Some(segment) = self.client.transmit(self.now, &mut out) {
            self.send(true, &std::mem::take(&mut out), segment);
        }
        while let Some(outgoing) = self.server.transmit(self.now, &mut out) {
            assert_eq!(outgoing.peer, CLIENT.parse().unwrap());
            self.send(false, &std::mem::take(&mut out), outgoing.segment);
        }
    }

    fn send(&mut self, to_server: bool, octets: &[u8], segment: usize) {
        for datagram in octets.chunks(segment) {
            self.datagrams += 1;
            let copies = match self.random.random_range(0..100) {
                draw if draw < self.link.lost => 0,
                draw if draw < self.link.lost + self.link.doubled => 2,
                _ => 1,
            };
            for _ in 0..copies {
                let (from, to) = self.link.delay;
                let at = self.now + self.random.random_range(from..=to);
                let datagram = datagram.to_vec();
                self.flying.push(Reverse((at, self.random.random(), to_server, datagram)));
            }
        }
    }

    /// Goes to the next instant at which something happens; false if there is none within `longest`.
    pub(crate) fn step(&mut self, longest: Duration) -> bool {
        self.flush();
        let flying = self.flying.peek().map(|Reverse((at, ..))| *at);
        let timers = [self.client.next_timeout(), self.server.next_timeout(), flying];
        let Some(next) = timers.into_iter().flatten().min() else { return false };
        if next > self.now + longest {
            return false;
        }
        self.now = self.now.max(next);
        while let Some(Reverse((at, ..))) = self.flying.peek()
            && *at <= self.now
        {
            let Some(Reverse((_, _, to_server, octets))) = self.flying.pop() else { break };
            if to_server {
                let client = CLIENT.parse().unwrap();
                self.server.receive(self.now, client, None, &octets, octets.len());
            } else {
                self.client.receive(self.now, &octets, octets.len());
            }
        }
        if self.client.next_timeout().is_some_and(|due| due <= self.now) {
            self.client.handle_timeout(self.now);
        }
        self.server.handle_timeouts(self.now);
        true
    }

    /// Goes on until this holds; panics if it does not within a simulated minute or two.
    #[track_caller]
    pub(crate) fn until(&mut self, mut holds: impl FnMut(&mut Self) -> bool) {
        let give_up = self.now + Duration::from_secs(100);
        while !holds(self) {
            let goes_on = self.step(Duration::from_secs(100)) && self.now < give_up;
            assert!(goes_on, "it stands still: {:?}, {:?}", self.end, self.outcomes.len());
        }
    }

    pub(crate) fn release(&mut self) -> usize {
        let held = std::mem::take(&mut self.held);
        held.iter().filter(|(request, answer)| self.server.answer(*request, answer)).count()
    }
}

pub(crate) fn connect(
    protocol: Protocol,
    tls: ClientConfig,
    seed: u64,
    now: Instant,
) -> QuicClient {
    connect_with(protocol, &client_settings(tls, seed), now)
}

pub(crate) fn client_settings(tls: ClientConfig, seed: u64) -> QuicClientSettings {
    QuicClientSettings::new(Arc::new(tls)).unwrap().with_seed([seed as u8; 32])
}

pub(crate) fn connect_with(
    protocol: Protocol,
    settings: &QuicClientSettings,
    now: Instant,
) -> QuicClient {
    let server: SocketAddr = SERVER.parse().unwrap();
    let method = if protocol == Protocol::Get { Method::Get } else { Method::Post };
    let target =
        Target { authority: "localhost".to_owned(), path: "/dns-query".to_owned(), method };
    match protocol {
        Protocol::Doq => QuicClient::doq(settings, server, "localhost", now),
        _ => QuicClient::http3(settings, server, "localhost", Arc::new(target), now),
    }
    .unwrap()
}

/// A message that differs from those of other numbers, in length too.
pub(crate) fn query(number: u16) -> Vec<u8> {
    let mut query = vec![0xff; 12 + usize::from(number % 37)];
    query[..2].copy_from_slice(&number.to_be_bytes());
    query[2] = 1;
    query[4..6].copy_from_slice(&number.to_be_bytes());
    query
}

/// The answer to it, longer.
fn answer(query: &[u8]) -> Vec<u8> {
    assert_eq!(query[..2], [0, 0], "the message id on the wire");
    let mut answer = query.to_vec();
    answer[2] |= 0x80;
    answer.extend_from_slice(&[7; 40]);
    // Some are longer than any packet.
    if query[5] == 3 {
        answer.resize(60_000, 8);
    }
    answer
}

/// What must come of a request that asked this.
pub(crate) fn answered(request: u16, query: &[u8]) -> Outcome {
    let mut query = query.to_vec();
    query[..2].fill(0);
    let mut answer = answer(&query);
    answer[..2].copy_from_slice(&request.to_be_bytes());
    Outcome::Answer(request, answer)
}
