//! The server: sockets and threads around [`crate::answer`].

mod bind;
mod busy;
mod clock;
mod config;
mod connections;
mod delayed;
mod doh2;
mod error;
mod hold;
mod published;
mod quic;
mod respond;
mod shared;
mod stream;
mod tls;
mod token;
mod udp;
mod worker;

pub use config::Config;
pub use error::ResponderError;
pub use published::CountersHandle;
pub use shared::StopHandle;
pub use tls::{CertificateFiles, TlsError};

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use dnslab_wire::Transport;
use rustix::event::{EventfdFlags, eventfd};

use self::bind::WorkerSockets;
use self::busy::Busy;
use self::hold::Hold;
use self::quic::QuicSettings;
use self::respond::Responder;
use self::shared::{Shared, StopState};
use self::tls::{Resumption, TlsConfigs};
use self::worker::Worker;
use crate::content::Content;
use crate::counters::Counters;
use crate::program::{Player, Program};

/// A server whose sockets are bound. Queries that come before [`Server::run`] wait in the kernel.
pub struct Server {
    shared: Shared,
    workers: Vec<WorkerSockets>,
    program: Program,
    busy: Busy,
    hold: Hold,
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
        let (busy, hold) = (Busy::calibrate(program.busy), Hold::new(&program));
        Ok(Self { shared, workers, program, busy, hold, seed, addresses })
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
    pub fn run(mut self) -> Result<Counters, ResponderError> {
        let workers = std::mem::take(&mut self.workers);
        let server = &self;
        std::thread::scope(|scope| {
            let threads = workers.into_iter().enumerate().map(|(number, sockets)| {
                let work = move || server.work(number, sockets);
                std::thread::Builder::new().spawn_scoped(scope, work)
            });
            let threads: io::Result<Vec<_>> = threads.collect();
            let threads = threads.map_err(|source| {
                // Those that run would serve without the others.
                server.stop_handle().stop();
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

    /// What one worker does until the server stops.
    fn work(&self, number: usize, sockets: WorkerSockets) -> io::Result<Counters> {
        let shared = &self.shared;
        let player = Player::new(self.program.clone(), self.seed, number);
        let slot = shared.published.slot(number);
        let responder =
            Responder::new(shared.content.clone(), player, self.busy, self.hold.clone());
        let outcome = Worker::new(shared, slot, sockets, responder).and_then(Worker::run);
        if outcome.is_err() {
            // The others must not go on alone: whoever started the server would not notice.
            self.stop_handle().stop();
        }
        outcome
    }
}
