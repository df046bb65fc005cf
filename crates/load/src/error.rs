//! Why a load did not begin, or cannot be trusted.

use std::io;

use dnslab_figures::Unbalanced;
use dnslab_wire::units::{raised_file_limit, raised_thread_limit};

/// Why a load did not begin, or cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is nothing to ask.
    #[error("the query list is empty: name a query file with at least one query")]
    NoQueries,
    /// Clients that are played were not given, or others were.
    #[error(
        "the clients of this load are those of a capture or a population, and they were not given"
    )]
    NoClients,
    /// An encrypted transport without TLS settings.
    #[error("transport {0} needs TLS settings: name an authority, or switch verification off")]
    NoTls(dnslab_wire::Transport),
    /// More sockets than the process may open.
    #[error(
        "the clients may have {sockets} sockets open at once, but this process may open {limit} \
         files: use fewer clients or connections, let clients connect on demand and close what is \
         idle (`load.connect = \"on-demand\"` and `load.idle`; in an open loop no more stay open \
         than become busy within that time and the time-out), or {}", raised_file_limit(*needed)
    )]
    TooManySockets {
        /// Sockets that may be open at once.
        sockets: u64,
        /// Files that the process must be able to open for them.
        needed: u64,
        /// The limit on open files.
        limit: u64,
    },
    /// What the queries were told cannot be written.
    #[error("cannot write what the queries were told, for the comparison of answers: {0}")]
    Told(#[source] io::Error),
    /// The clients' own queries cannot be read.
    #[error("cannot read {clients}: {source}")]
    Clients {
        /// Where they come from.
        clients: String,
        /// What the kernel or the reader says.
        source: std::io::Error,
    },
    /// The clients' own queries could not be read to their end, so what was measured is not the load that was asked
    /// for.
    #[error("the clients' queries could not be read to their end: {reason}")]
    ClientsLost {
        /// What the reader says, with the name of the source.
        reason: String,
    },
    /// A worker could not begin.
    #[error("cannot start a load worker: {0}")]
    Worker(#[source] io::Error),
    /// The system gives the load no thread for each of its workers.
    #[error(
        "cannot start {workers} threads for the load: {source}; use fewer workers, {}",
        raised_thread_limit()
    )]
    Threads {
        /// Workers of all loads together.
        workers: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The load was given up before its timeline began.
    #[error("the load was given up before it began")]
    NotBegun,
    /// A CPU cannot be used.
    #[error(
        "cannot pin a load worker to CPU {cpu}: {source}; `dnslab doctor` lists the usable CPUs"
    )]
    Pin {
        /// The CPU.
        cpu: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The outcomes do not add up. That is a fault of the engine, and the run is worthless.
    #[error("the sums of this run do not hold: {0}; please report this fault")]
    Sums(#[from] Unbalanced),
}
