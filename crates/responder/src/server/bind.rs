//! Sockets are bound before any thread starts, so that the caller sees the first fault.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::time::Duration;

use dnslab_internet::{Internet, Network};
use dnslab_socket::{
    allow_any_source, enable_gro, enable_pktinfo, set_pmtu_probe, set_receive_buffer,
};
use dnslab_wire::Transport;
use socket2::{Domain, Protocol, Socket, Type};

use super::error::ResponderError;

#[derive(Default)]
pub(super) struct WorkerSockets {
    pub(super) datagrams: Vec<UdpSocket>,
    /// TCP, for plain DNS or for TLS.
    pub(super) listeners: Vec<(TcpListener, Transport)>,
    pub(super) quic: Vec<(UdpSocket, Transport)>,
}

/// Octets of a UDP receive buffer: for a stall of 100 ms at 100 k queries a second, of which the kernel books
/// 768 octets each.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// Connections that may wait to be accepted; the kernel cuts this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// How long a datagram to this host itself may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Attempts to find a port that is free for both UDP and TCP.
const PORT_ATTEMPTS: usize = 32;

/// Binds a transport for every worker, and with UDP also TCP. Port 0 becomes a free one. Returns the address
/// with its port.
pub(super) fn bind(
    address: SocketAddr,
    transport: Transport,
    workers: &mut [WorkerSockets],
) -> Result<SocketAddr, ResponderError> {
    match transport {
        Transport::Udp => bind_plain(address, workers),
        transport if transport.is_quic() => bind_datagrams(address, transport, workers),
        _ => bind_stream(address, transport, workers),
    }
}

/// Binds UDP and TCP on the same port.
fn bind_plain(
    address: SocketAddr,
    workers: &mut [WorkerSockets],
) -> Result<SocketAddr, ResponderError> {
    let mut attempts = if address.port() == 0 { PORT_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let bound = bind_datagrams(address, Transport::Udp, workers)?;
        match bind_stream(bound, Transport::Tcp, workers) {
            Ok(_) => return Ok(bound),
            Err(error) if attempts == 0 => return Err(error),
            // Another process has the TCP port that goes with this UDP port: try another.
            Err(_) => workers.iter_mut().for_each(|worker| {
                worker.datagrams.pop();
            }),
        }
    }
}

fn bind_datagrams(
    address: SocketAddr,
    transport: Transport,
    workers: &mut [WorkerSockets],
) -> Result<SocketAddr, ResponderError> {
    let mut made = Vec::new();
    let bound = bind_all(address, transport, workers.len(), &mut made)?;
    for socket in &made {
        let fault = |source| ResponderError::bind(bound, transport, source);
        // A smaller buffer only shortens the stall that it can bridge.
        let _ = set_receive_buffer(socket.as_fd(), RECEIVE_BUFFER);
        if bound.ip().is_unspecified() {
            enable_pktinfo(socket.as_fd(), bound.is_ipv6()).map_err(fault)?;
            // Without it only addresses of interfaces can be the source, not those of a local route.
            let _ = allow_any_source(socket.as_fd(), bound.is_ipv6());
        }
    }
    for (socket, worker) in made.into_iter().zip(workers) {
        if transport.is_quic() {
            // If the kernel does not know groups, datagrams come one by one.
            let _ = enable_gro(socket.as_fd());
            worker.quic.push((socket.into(), transport));
        } else {
            worker.datagrams.push(socket.into());
        }
    }
    Ok(bound)
}

fn bind_stream(
    address: SocketAddr,
    transport: Transport,
    workers: &mut [WorkerSockets],
) -> Result<SocketAddr, ResponderError> {
    let mut made = Vec::new();
    let bound = bind_all(address, transport, workers.len(), &mut made)?;
    for socket in &made {
        socket.listen(BACKLOG).map_err(|source| ResponderError::bind(bound, transport, source))?;
    }
    for (socket, worker) in made.into_iter().zip(workers) {
        worker.listeners.push((socket.into(), transport));
    }
    Ok(bound)
}

/// Binds `count` sockets to one address; the kernel spreads the clients over them (`SO_REUSEPORT`,
/// socket(7)).
fn bind_all(
    address: SocketAddr,
    transport: Transport,
    count: usize,
    made: &mut Vec<Socket>,
) -> Result<SocketAddr, ResponderError> {
    let fault = |source| ResponderError::bind(address, transport, source);
    let shared = count > 1;
    if shared && address.port() != 0 {
        // With SO_REUSEPORT a second server of the same user would bind without an error and take half of the
        // clients. A socket without the option notices it.
        bind_one(address, transport, false).map_err(fault)?;
    }
    let mut bound = address;
    for _ in 0..count {
        let socket = bind_one(bound, transport, shared).map_err(fault)?;
        bound = socket.local_addr().map_err(fault)?.as_socket().unwrap_or(address);
        made.push(socket);
    }
    Ok(bound)
}

fn bind_one(address: SocketAddr, transport: Transport, shared: bool) -> io::Result<Socket> {
    let (kind, protocol) = match transport {
        transport if transport.runs_over_tcp() => (Type::STREAM, Protocol::TCP),
        _ => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        // `[::]` and `0.0.0.0` can then be used side by side.
        socket.set_only_v6(true)?;
    }
    if transport.runs_over_tcp() {
        // A server that was just stopped leaves connections in TIME-WAIT.
        socket.set_reuse_address(true)?;
    }
    if shared {
        socket.set_reuse_port(true)?;
    }
    if transport.is_quic() {
        set_pmtu_probe(socket.as_fd(), address.is_ipv6())?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Checks that the first and the last server of an internet have addresses that the kernel takes for its own.
pub(super) fn check_local(network: Network, internet: &Internet) -> Result<(), ResponderError> {
    for place in [1, internet.server_count()] {
        let address = network.at(place);
        if !is_local(address) {
            let family = if address.is_ipv6() { "-6 " } else { "" };
            let command = format!("ip {family}route add local {network} dev lo");
            return Err(ResponderError::NotLocal { network, address, command });
        }
    }
    Ok(())
}

/// True if datagrams to this address stay on this host: what a socket sends to itself there comes back.
///
/// Whether an address can be bound says less. With IPv6 a local route alone does not allow it (ip-route(8)), and
/// with IPv4 everything can be bound in a network namespace without routes.
fn is_local(address: IpAddr) -> bool {
    send_to_itself(address).is_ok()
}

/// Waits for a datagram that a socket sends to itself at this address; fails if it does not come.
fn send_to_itself(address: IpAddr) -> io::Result<()> {
    let any = match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let at = SocketAddr::new(any, 0);
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&at.into())?;
    // If the address is elsewhere, the datagram ends at the first router.
    match address {
        IpAddr::V4(_) => socket.set_ttl_v4(1)?,
        IpAddr::V6(_) => socket.set_unicast_hops_v6(1)?,
    }
    socket.set_read_timeout(Some(PATIENCE))?;
    let socket = UdpSocket::from(socket);
    socket.send_to(&[], (address, socket.local_addr()?.port()))?;
    socket.recv(&mut []).map(drop)
}

pub(super) fn for_workers(threads: NonZeroUsize) -> Vec<WorkerSockets> {
    std::iter::repeat_with(WorkerSockets::default).take(threads.get()).collect()
}

impl ResponderError {
    fn bind(address: SocketAddr, transport: Transport, source: io::Error) -> Self {
        let remedy = remedy(address, &source);
        Self::Bind { address, transport, source, remedy }
    }
}

fn remedy(address: SocketAddr, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "another process owns it: `ss -lntup` names it, or choose another port"
        }
        io::ErrorKind::PermissionDenied if address.port() < 1024 => {
            "ports below 1024 are for root or CAP_NET_BIND_SERVICE: choose another port"
        }
        io::ErrorKind::AddrNotAvailable => match address.ip() {
            IpAddr::V4(_) => "no interface has this address: `ip -4 address` lists them",
            IpAddr::V6(_) => "no interface has this address: `ip -6 address` lists them",
        },
        _ if source.raw_os_error() == Some(libc::EMFILE) => {
            "the process may not open more files: raise `ulimit -n`"
        }
        _ if source.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            "the kernel does not speak this address family here"
        }
        _ => "check the address",
    }
}
