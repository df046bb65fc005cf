//! The server: sockets and threads around [`crate::answer`].

mod bind;
mod busy;
mod clock;
mod connections;
mod delayed;
mod doh2;
mod published;
mod quic;
mod respond;
mod stream;
mod tls;
mod token;
mod udp;
mod worker;

pub use published::CountersHandle;
pub use tls::{CertificateFiles, TlsError};

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU64, NonZeroUsize};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dnslab_internet::Network;
use dnslab_wire::Transport;
use dnslab_wire::units::raised_thread_limit;
use rustix::event::{EventfdFlags, eventfd};

use self::bind::WorkerSockets;
use self::busy::Busy;
use self::quic::QuicSettings;
use self::tls::{Resumption, TlsConfigs};
use self::worker::Worker;
use crate::content::Content;
use crate::counters::Counters;
use crate::program::{Player, Program};

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
}

impl Config {
    /// The encrypted transports with an address to listen on, each with its first one.
    fn encrypted(&self) -> Vec<(Transport, SocketAddr)> {
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

/// The server cannot start or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ResponderError {
    /// There is nowhere to listen.
    #[error("no address to listen on: give one for UDP and TCP, or for an encrypted transport")]
    NoAddress,
    /// An encrypted transport has no certificate.
    #[error("{transport} on {address} needs a certificate: give a chain and a key as PEM files")]
    NoCertificate {
        /// The transport.
        transport: Transport,
        /// Its first address.
        address: SocketAddr,
    },
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The certificate cannot be used for QUIC.
    #[error(transparent)]
    Quic(#[from] dnslab_transport::quic::QuicError),
    /// A socket cannot be bound.
    #[error("cannot listen on {address} ({transport}): {source}; {remedy}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The transport.
        transport: Transport,
        /// Why.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The addresses of an internet's servers are not addresses of this host.
    #[error(
        "{address} of {network} is not an address of this host; as root, in its network namespace: {command}"
    )]
    NotLocal {
        /// The network of the servers.
        network: Network,
        /// One of its addresses.
        address: IpAddr,
        /// What makes all of them addresses of this host.
        command: String,
    },
    /// A system call failed that cannot with right arguments, or the machine is out of resources.
    #[error("the responder's event loop failed: {0}")]
    EventLoop(#[source] io::Error),
    /// The system gives no thread for each of the workers.
    #[error("cannot start the responder's threads: {source}; {}", raised_thread_limit())]
    Threads {
        /// What the system said.
        source: io::Error,
    },
}

impl ResponderError {
    fn bind(address: SocketAddr, transport: Transport, source: io::Error) -> Self {
        let remedy = bind::remedy(address, &source);
        Self::Bind { address, transport, source, remedy }
    }
}

/// Stops a running server, from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    state: Arc<StopState>,
}

#[derive(Debug)]
struct StopState {
    is_set: AtomicBool,
    /// An eventfd that every worker watches and nobody reads: one write wakes all.
    wake: OwnedFd,
}

impl StopState {
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

impl StopHandle {
    /// Makes [`Server::run`] return soon. It stores a flag and writes eight octets, so a signal handler may
    /// call it (signal-safety(7)).
    pub fn stop(&self) {
        self.state.is_set.store(true, Ordering::Relaxed);
        // Fails only when the counter is full, and then everybody is awake already.
        let _ = rustix::io::write(&self.state.wake, &1_u64.to_ne_bytes());
    }
}

/// What all workers have in common.
struct Shared {
    content: Content,
    /// With the ticket keys, so that a client can resume at another worker.
    tls: TlsConfigs,
    http_path: String,
    pack_answers: bool,
    quic: QuicSettings,
    idle_timeout: Duration,
    /// Each worker's part of [`Config::max_connections`].
    connections_per_worker: usize,
    memory_per_worker: usize,
    queries_per_connection: Option<NonZeroU64>,
    /// Where workers leave copies of their counters.
    published: CountersHandle,
    stop: Arc<StopState>,
    /// When the first query came, in nanoseconds of the monotonic clock; only if a stall is programmed.
    first_query_ns: OnceLock<u64>,
}

/// A server whose sockets are bound. Queries that come before [`Server::run`] wait in the kernel.
pub struct Server {
    shared: Shared,
    workers: Vec<WorkerSockets>,
    program: Program,
    busy: Busy,
    seed: u64,
    /// Where each transport is served; TCP, where UDP is.
    addresses: Vec<(Transport, SocketAddr)>,
}

impl Server {
    /// Reads the certificate and binds all sockets.
    ///
    /// # Errors
    /// When there is no address, an address cannot be had, or the certificate cannot be used.
    pub fn bind(config: Config) -> Result<Self, ResponderError> {
        let encrypted = config.encrypted();
        if config.listen.is_empty() && encrypted.is_empty() {
            return Err(ResponderError::NoAddress);
        }
        let resumption = Resumption { tickets: config.tickets, early_data: config.early_data };
        let tls = match (encrypted.first(), &config.certificate) {
            (None, _) => TlsConfigs::default(),
            (Some(_), Some(files)) => {
                let transports = encrypted.iter().map(|(transport, _)| *transport);
                TlsConfigs::new(files, transports, resumption)?
            }
            (Some(&(transport, address)), None) => {
                return Err(ResponderError::NoCertificate { transport, address });
            }
        };
        if let Content::Internet(internet) = &config.content {
            internet.networks().try_for_each(|network| bind::check_local(network, internet))?;
        }
        let mut workers = bind::for_workers(config.threads);
        let mut addresses = Vec::new();
        for (transport, wanted) in [
            (Transport::Udp, &config.listen),
            (Transport::Dot, &config.dot_listen),
            (Transport::Doq, &config.doq_listen),
            (Transport::Doh3, &config.doh3_listen),
            (Transport::Doh2, &config.doh2_listen),
        ] {
            for address in wanted {
                addresses.push((transport, bind::bind(*address, transport, &mut workers)?));
            }
        }
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| ResponderError::EventLoop(error.into()))?;
        let connections_per_worker = config.max_connections.get().div_ceil(config.threads.get());
        let published = CountersHandle::new(config.threads.get())
            .map_err(|error| ResponderError::EventLoop(error.into()))?;
        let shared = Shared {
            quic: QuicSettings::new(&tls, &config, connections_per_worker)?,
            content: config.content,
            tls,
            http_path: config.http_path,
            pack_answers: config.pack_answers,
            idle_timeout: config.idle_timeout,
            connections_per_worker,
            memory_per_worker: config.memory_per_thread.get(),
            queries_per_connection: config.queries_per_connection,
            published,
            stop: Arc::new(StopState { is_set: AtomicBool::new(false), wake }),
            first_query_ns: OnceLock::new(),
        };
        let (program, seed) = (config.program, config.seed);
        let busy = Busy::calibrate(program.busy);
        Ok(Self { shared, workers, program, busy, seed, addresses })
    }

    /// Addresses bound for a transport, with their ports, in the order of the configuration. Those for UDP
    /// and TCP are the same.
    #[must_use]
    pub fn addresses(&self, transport: Transport) -> Vec<SocketAddr> {
        let kept = if transport == Transport::Tcp { Transport::Udp } else { transport };
        let of_it = self.addresses.iter().filter(|(its, _)| *its == kept);
        of_it.map(|(_, address)| *address).collect()
    }

    /// Steps of the loop of [`Program::busy`] for each answer; 0 if nothing is programmed.
    #[must_use]
    pub fn busy_steps(&self) -> u64 {
        self.busy.steps()
    }

    /// A handle that stops this server.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle { state: Arc::clone(&self.shared.stop) }
    }

    /// A handle that reads what this server counts while it runs.
    #[must_use]
    pub fn counters_handle(&self) -> CountersHandle {
        self.shared.published.clone()
    }

    /// Serves until the stop handle is used, and returns what was counted. Answers that are still held back
    /// are not sent.
    ///
    /// # Errors
    /// When the process has no descriptors left for the event loops, or no threads for the workers.
    ///
    /// # Panics
    /// When a worker does, which is a fault of this crate.
    pub fn run(self) -> Result<Counters, ResponderError> {
        let Self { shared, workers, program, busy, seed, .. } = self;
        let shared = &shared;
        let work = |number: usize, sockets: WorkerSockets| {
            let player = Player::new(program.clone(), seed, number);
            let slot = shared.published.slot(number);
            let outcome = Worker::new(shared, slot, sockets, (player, busy)).and_then(Worker::run);
            if outcome.is_err() {
                // The others must not go on alone: whoever started the server would not notice.
                StopHandle { state: Arc::clone(&shared.stop) }.stop();
            }
            outcome
        };
        std::thread::scope(|scope| {
            let threads = workers.into_iter().enumerate().map(|(number, sockets)| {
                let work = &work;
                std::thread::Builder::new().spawn_scoped(scope, move || work(number, sockets))
            });
            let threads: io::Result<Vec<_>> = threads.collect();
            let threads = threads.map_err(|source| {
                // Those that run would serve without the others.
                StopHandle { state: Arc::clone(&shared.stop) }.stop();
                ResponderError::Threads { source }
            })?;
            let mut counters = Counters::default();
            for thread in threads {
                let outcome = thread.join().expect("a worker does not panic");
                counters.merge(&outcome.map_err(ResponderError::EventLoop)?);
            }
            Ok(counters)
        })
    }
}
