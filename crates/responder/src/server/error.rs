//! Why a server cannot start or go on.

use std::io;
use std::net::{IpAddr, SocketAddr};

use dnslab_internet::Network;
use dnslab_wire::Transport;
use dnslab_wire::units::raised_thread_limit;

use super::tls::TlsError;

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
