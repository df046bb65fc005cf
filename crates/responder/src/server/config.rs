//! The settings of a server.

use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use dnslab_wire::Transport;

use super::tls::CertificateFiles;
use crate::content::Content;
use crate::program::Program;

/// What is served, where and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// What is answered from, and how.
    pub content: Content,
    /// Addresses for UDP and TCP. Port 0 becomes a free one, the same for both.
    pub listen: Vec<SocketAddr>,
    /// Addresses for DNS over TLS; they need a certificate.
    pub dot_listen: Vec<SocketAddr>,
    /// Addresses for DNS over HTTPS with HTTP/2; they need a certificate.
    pub doh2_listen: Vec<SocketAddr>,
    /// Addresses for DNS over QUIC; they need a certificate.
    pub doq_listen: Vec<SocketAddr>,
    /// Addresses for DNS over HTTPS with HTTP/3; they need a certificate.
    pub doh3_listen: Vec<SocketAddr>,
    /// The path of DNS over HTTPS (RFC 8484); any other is not found (404).
    pub http_path: String,
    /// The certificate for the encrypted transports.
    pub certificate: Option<CertificateFiles>,
    /// Answers share TLS records when several are ready to be written. Otherwise each has its own, as from
    /// BIND, NSD, Unbound and Knot DNS: clients that look at one answer of a record lose the others.
    pub pack_answers: bool,
    /// Clients get tickets to resume their TLS sessions with.
    pub tickets: bool,
    /// Queries in the first packet of a resumed connection are answered (RFC 8446, section 2.3). Needs
    /// tickets. Sessions are then remembered here instead of in the tickets, and each can be resumed once.
    pub early_data: bool,
    /// What happens to the answers.
    pub program: Program,
    /// Event loops, each on its own thread with its own sockets.
    pub threads: NonZeroUsize,
    /// Decides every draw of the program, together with the number of the thread.
    pub seed: u64,
    /// A connection is closed after this long without activity (RFC 7766, section 6.2.3).
    pub idle_timeout: Duration,
    /// Connections over all threads; further ones wait in the kernel's queue. Over QUIC each address has this
    /// many for itself, and further ones are refused.
    pub max_connections: NonZeroUsize,
    /// Octets of memory that all clients together can make each thread hold, by what they send and do not
    /// end, and by answers that they ask for and do not read. Beyond it the connections that hold most are
    /// closed until an eighth is free. Not counted are what a resting connection needs and what
    /// [`Program::delay`] holds back.
    pub memory_per_thread: NonZeroUsize,
    /// A connection that has carried this many queries is closed in order: all of them are answered first.
    /// Further queries are ignored. Over HTTP the client is told to send no more (GOAWAY), and what it sent
    /// before it knew is answered too. `None`: never.
    pub queries_per_connection: Option<NonZeroU64>,
}

impl Config {
    /// One thread, no program, no addresses, connections idle for at most 10 s (BIND's default is 30 s,
    /// Knot's 10 s), 10,000 of them, 512 MiB for what they hold: 26 KiB for each of 20,000 clients, some
    /// hundred answers of a usual size. Tickets, no early data, the path `/dns-query`.
    #[must_use]
    pub fn new(content: impl Into<Content>) -> Self {
        Self {
            content: content.into(),
            listen: Vec::new(),
            dot_listen: Vec::new(),
            doh2_listen: Vec::new(),
            doq_listen: Vec::new(),
            doh3_listen: Vec::new(),
            http_path: "/dns-query".to_owned(),
            certificate: None,
            pack_answers: false,
            tickets: true,
            early_data: false,
            program: Program::default(),
            threads: NonZeroUsize::MIN,
            seed: 1,
            idle_timeout: Duration::from_secs(10),
            max_connections: const { NonZeroUsize::new(10_000).expect("it is not zero") },
            memory_per_thread: const { NonZeroUsize::new(512 << 20).expect("it is not zero") },
            queries_per_connection: None,
        }
    }

    /// The encrypted transports with an address to listen on, each with its first one.
    pub(super) fn encrypted(&self) -> Vec<(Transport, SocketAddr)> {
        [
            (Transport::Dot, &self.dot_listen),
            (Transport::Doh2, &self.doh2_listen),
            (Transport::Doq, &self.doq_listen),
            (Transport::Doh3, &self.doh3_listen),
        ]
        .into_iter()
        .filter_map(|(transport, addresses)| Some((transport, *addresses.first()?)))
        .collect()
    }
}
