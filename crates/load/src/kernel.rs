//! The kernel's sockets and clocks, for the workers of a load.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use dnslab_client::runtime::{
    DatagramOptions, DatagramSocket, Ends, Group, Inbox, Path, Runtime, StreamSocket, Watch,
    Watched,
};
use dnslab_client::{IntervalRecord, Nanos, ThreadTime, Timeline};
use dnslab_figures::Histogram;
use dnslab_socket::{
    EventFlags, MAX_GROUP, Poller, ReceiveBatch, bind_address_without_port, enable_gro,
    enable_pktinfo, enable_timestamps, receive_drops, round_trip, send_batch, send_batch_from,
    send_segments, set_pmtu_probe,
};
use dnslab_wire::MessageBatch;
use rustix::net::sockopt::set_tcp_quickack;
use socket2::{Domain, Protocol, Socket, Type};

use crate::aggregator::Reports;
use crate::clock::{Clock, cpu_time, thread_time, wall_clock};
use crate::told::Teller;

/// Events taken from epoll in one call.
const EVENTS: usize = 512;

/// Socket buffers asked for, octets. The kernel grants at most `net.core.rmem_max`, often 208 KiB. Answers of
/// a burst that does not fit are counted as dropped.
const SOCKET_BUFFER: usize = 4 * 1024 * 1024;

pub(crate) struct Kernel {
    clock: Clock,
    poller: Poller,
    /// Where intervals go; `None` where a single query is asked.
    reports: Option<Reports>,
    /// Where what queries are told goes, if anybody wants to know.
    teller: Option<Teller>,
}

impl Kernel {
    /// # Errors
    /// When there is no file descriptor left for epoll.
    pub(crate) fn new(clock: Clock, reports: Option<Reports>) -> io::Result<Self> {
        Ok(Self { clock, poller: Poller::new(EVENTS)?, reports, teller: None })
    }

    /// Sets the zero of the timeline. Nothing that knows the old one may be open.
    pub(crate) fn starts_at(&mut self, clock: Clock) {
        self.clock = clock;
    }

    /// Passes on what queries are told.
    pub(crate) fn telling(self, teller: Option<Teller>) -> Self {
        Self { teller, ..self }
    }
}

pub(crate) struct Stream(TcpStream);

pub(crate) struct Datagrams(Socket);

pub(crate) fn descriptor<'a>(socket: Watched<'a, Kernel>) -> BorrowedFd<'a> {
    match socket {
        Watched::Stream(Stream(socket)) => socket.as_fd(),
        Watched::Datagrams(Datagrams(socket)) => socket.as_fd(),
    }
}

impl Runtime for Kernel {
    type Stream = Stream;
    type Datagrams = Datagrams;

    fn timeline(&self) -> Timeline {
        self.clock.timeline()
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn wall_clock(&self) -> u64 {
        wall_clock()
    }

    fn cpu_time(&self) -> Nanos {
        cpu_time()
    }

    fn thread_time(&self) -> ThreadTime {
        thread_time()
    }

    fn connect(&mut self, path: Path) -> io::Result<Stream> {
        let family = Domain::for_address(path.target);
        let socket = Socket::new(family, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        // Batches are made above; the kernel must not hold back a small last one.
        socket.set_tcp_nodelay(true)?;
        if path.source.is_some() {
            // The port is chosen at connecting, so it need only be free towards the target.
            bind_address_without_port(socket.as_fd()).ok();
            socket.bind(&source(path).into())?;
        }
        match socket.connect(&path.target.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Stream(TcpStream::from(socket))),
        }
    }

    fn bind(&mut self, path: Path, options: DatagramOptions) -> io::Result<Datagrams> {
        let socket = unbound(path.target)?;
        socket.bind(&source(path).into())?;
        socket.connect(&path.target.into())?;
        set_up(&socket, path.target, options);
        Ok(Datagrams(socket))
    }

    fn bind_shared(
        &mut self,
        target: SocketAddr,
        options: DatagramOptions,
    ) -> io::Result<Datagrams> {
        let socket = unbound(target)?;
        enable_pktinfo(socket.as_fd(), target.is_ipv6())?;
        // An address that is the host's by a route alone may be sent from, too.
        socket.bind(&source(Path { target, source: None }).into())?;
        set_up(&socket, target, options);
        Ok(Datagrams(socket))
    }

    fn watch(&mut self, socket: Watched<'_, Self>, slot: u32, watch: Watch) -> io::Result<()> {
        let mut flags = EventFlags::IN;
        flags.set(EventFlags::OUT, watch.writing);
        if watch.again {
            self.poller.modify(descriptor(socket), slot, flags)
        } else {
            self.poller.add(descriptor(socket), slot, flags)
        }
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<u32>) -> io::Result<()> {
        let left = until.saturating_sub(self.now());
        self.poller.wait(Some(Duration::from_nanos(left)))?;
        ready.clear();
        ready.extend(
            (0..).map_while(|number| self.poller.ready(number)).map(|(slot, _)| slot as u32),
        );
        Ok(())
    }

    fn sleep(&mut self, duration: Nanos) {
        std::thread::sleep(Duration::from_nanos(duration));
    }

    fn report(&mut self, interval: IntervalRecord) {
        if let Some(reports) = &self.reports {
            reports.send(interval);
        }
    }

    fn told(&mut self, block: Vec<u8>) {
        if let Some(teller) = &self.teller {
            teller.tell(block);
        }
    }

    fn spare(&mut self) -> Histogram {
        self.reports.as_ref().and_then(Reports::spare).unwrap_or_default()
    }
}

/// A socket for datagrams of the target's family.
fn unbound(target: SocketAddr) -> io::Result<Socket> {
    let family = Domain::for_address(target);
    let socket = Socket::new(family, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    // Refusal is no error: the kernel grants what it allows, and drops are counted.
    socket.set_recv_buffer_size(SOCKET_BUFFER).ok();
    socket.set_send_buffer_size(SOCKET_BUFFER).ok();
    Ok(socket)
}

fn set_up(socket: &Socket, target: SocketAddr, options: DatagramOptions) {
    // If the kernel does not know groups, datagrams come one by one.
    enable_gro(socket.as_fd()).ok();
    if options.stamps {
        // If the kernel gives no stamps, our clock does.
        enable_timestamps(socket.as_fd()).ok();
    }
    if options.probes_mtu {
        // A kernel that does not know the option decides by itself, which works on most paths.
        set_pmtu_probe(socket.as_fd(), target.is_ipv6()).ok();
    }
}

/// What a socket is bound to before it connects: the client's address, and any port.
fn source(path: Path) -> SocketAddr {
    let any: IpAddr = match path.target {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut source = SocketAddr::new(path.source.unwrap_or(any), 0);
    // The link of a link-local address is that on which the server is.
    if let (SocketAddr::V6(source), SocketAddr::V6(target)) = (&mut source, path.target)
        && source.ip().is_unicast_link_local()
    {
        source.set_scope_id(target.scope_id());
    }
    source
}

impl StreamSocket for Stream {
    fn is_connected(&self) -> io::Result<bool> {
        if let Some(error) = self.0.take_error()? {
            return Err(error);
        }
        match self.0.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }

    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.write(octets)
    }

    fn acknowledge(&self) -> io::Result<()> {
        Ok(set_tcp_quickack(&self.0, true)?)
    }

    fn round_trip(&self) -> Option<Nanos> {
        round_trip(self.0.as_fd())
    }
}

impl DatagramSocket for Datagrams {
    type Inbox = Received;

    fn send_batch(
        &self,
        batch: &MessageBatch,
        first: usize,
        max_segments: usize,
    ) -> io::Result<usize> {
        send_batch(self.0.as_fd(), batch, first, max_segments)
    }

    fn send_from(
        &self,
        batch: &MessageBatch,
        sources: &[IpAddr],
        target: SocketAddr,
        first: usize,
    ) -> io::Result<usize> {
        send_batch_from(self.0.as_fd(), batch, sources, target, first)
    }

    fn send_segments(&self, octets: &[u8], segment: usize) -> io::Result<()> {
        send_segments(self.0.as_fd(), octets, segment, None)
    }

    fn receive(&self, inbox: &mut Received) -> io::Result<bool> {
        inbox.batch.receive(self.0.as_fd())
    }

    fn drops(&self) -> u64 {
        receive_drops(self.0.as_fd())
    }
}

pub(crate) struct Received {
    batch: ReceiveBatch,
    is_shared: bool,
}

impl Inbox for Received {
    fn new() -> Self {
        /// Datagrams, or groups of them, received in one call at most.
        const SLOTS: usize = 32;
        Self { batch: ReceiveBatch::connected(SLOTS, MAX_GROUP), is_shared: false }
    }

    fn shared() -> Self {
        /// Each datagram has another address, so the kernel makes no groups of them. As long as UDP allows.
        const SLOTS: usize = 256;
        Self { batch: ReceiveBatch::unconnected(SLOTS, MAX_GROUP), is_shared: true }
    }

    fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        self.batch.groups().map(|group| Group {
            octets: group.octets,
            segment: group.segment,
            timestamp: group.timestamp,
            ends: match self.is_shared {
                true => group.peer.local().map(|to| Ends { from: group.peer.address(), to }),
                false => None,
            },
        })
    }
}
