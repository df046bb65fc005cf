//! What the clients of a load ask of the world outside: the time, sockets, and sleep.
//!
//! A worker and its connections have no other effects. In a load the kernel answers (`kernel.rs`). In the
//! simulation (`simulation/`) a seeded network and a clock of its own answer, so a seed repeats what a worker
//! does.

use std::io;
use std::net::{IpAddr, SocketAddr};

use dnslab_figures::Histogram;
use dnslab_wire::MessageBatch;

use crate::recorder::IntervalRecord;
use crate::time::{Nanos, ThreadTime, Timeline};

/// The time, sockets, and sleep.
pub trait Runtime: 'static {
    /// A socket of TCP.
    type Stream: StreamSocket;
    /// A socket of UDP.
    type Datagrams: DatagramSocket;

    /// Converts between the load's timeline and the standard library's instants.
    fn timeline(&self) -> Timeline;

    /// Now, on the load's timeline.
    fn now(&self) -> Nanos;

    /// Nanoseconds since 1970 in UTC.
    fn wall_clock(&self) -> u64;

    /// CPU time of the worker's thread so far.
    fn cpu_time(&self) -> Nanos;

    /// CPU time of the worker's thread so far, and how long it waited for its CPU, which takes longer to read.
    fn thread_time(&self) -> ThreadTime;

    /// Begins to connect.
    ///
    /// # Errors
    /// When no socket is to be had, or the address cannot be reached at all.
    fn connect(&mut self, path: Path) -> io::Result<Self::Stream>;

    /// Opens a socket that sends to the target of the path and receives from it alone.
    ///
    /// # Errors
    /// As for [`Runtime::connect`].
    fn bind(&mut self, path: Path, options: DatagramOptions) -> io::Result<Self::Datagrams>;

    /// Opens a socket for many clients, each with an address of its own of this host.
    ///
    /// # Errors
    /// As for [`Runtime::connect`].
    fn bind_shared(
        &mut self,
        target: SocketAddr,
        options: DatagramOptions,
    ) -> io::Result<Self::Datagrams>;

    /// Has [`Runtime::wait`] tell when a socket can be read, and with `writing` also when it can be written.
    /// A socket that is dropped is no longer watched.
    ///
    /// # Errors
    /// When the kernel has no memory for it, or the user's watches are used up (epoll(7),
    /// `max_user_watches`).
    fn watch(&mut self, socket: Watched<'_, Self>, slot: u32, watch: Watch) -> io::Result<()>;

    /// Waits until a socket is ready, at most until this instant. The slots of ready sockets are in `ready`.
    ///
    /// # Errors
    /// When the kernel does not know `epoll_pwait2`, which came with Linux 5.11.
    fn wait(&mut self, until: Nanos, ready: &mut Vec<u32>) -> io::Result<()>;

    /// Does nothing for so long.
    fn sleep(&mut self, duration: Nanos);

    /// Takes an interval that has ended.
    fn report(&mut self, interval: IntervalRecord);

    /// Takes what queries were told, for [`crate::records_of`].
    fn told(&mut self, block: Vec<u8>) {
        drop(block);
    }

    /// An empty histogram for the next interval.
    fn spare(&mut self) -> Histogram {
        Histogram::default()
    }
}

/// From where to where.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The server.
    pub target: SocketAddr,
    /// The client's own address, if it is not the kernel's to choose.
    pub source: Option<IpAddr>,
}

/// Options of a socket for datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct DatagramOptions {
    /// The kernel says when a datagram came.
    pub stamps: bool,
    /// No datagram is fragmented, and the kernel's knowledge of the path is ignored (`IP_PMTUDISC_PROBE`,
    /// ip(7)): QUIC finds out how large packets may be (RFC 9000, section 14.2).
    pub probes_mtu: bool,
}

/// A socket to be watched.
pub enum Watched<'a, R: Runtime + ?Sized> {
    /// One of TCP.
    Stream(&'a R::Stream),
    /// One of UDP.
    Datagrams(&'a R::Datagrams),
}

/// How a socket is watched.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Also for the instant at which it can be written.
    pub writing: bool,
    /// It is already watched, in another way or for another slot.
    pub again: bool,
}

/// A TCP connection. Nothing here waits.
pub trait StreamSocket {
    /// The connection is there.
    ///
    /// # Errors
    /// When it did not come about.
    fn is_connected(&self) -> io::Result<bool>;

    /// As read(2): 0 when the server has closed.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is there.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// As write(2).
    ///
    /// # Errors
    /// `WouldBlock` where nothing is taken.
    fn write(&mut self, octets: &[u8]) -> io::Result<usize>;

    /// Sends the acknowledgement that the kernel holds back for the next query to carry. The option is not
    /// permanent (tcp(7)): after the next query the kernel holds acknowledgements back again.
    ///
    /// # Errors
    /// When the connection broke.
    fn acknowledge(&self) -> io::Result<()>;

    /// The round trip to the server, if it was measured.
    fn round_trip(&self) -> Option<Nanos>;
}

/// A socket for datagrams to and from one server, of one client or of many ([`Runtime::bind_shared`]). Nothing
/// here waits.
pub trait DatagramSocket {
    /// Room for what it receives.
    type Inbox: Inbox;

    /// Sends messages from number `first` on, one datagram each, and returns how many were taken. The kernel
    /// may cut up to `max_segments` neighbours of one length from one datagram (`UDP_SEGMENT`, udp(7)).
    ///
    /// # Errors
    /// As sendmmsg(2) for the first message, when none was taken.
    fn send_batch(
        &self,
        batch: &MessageBatch,
        first: usize,
        max_segments: usize,
    ) -> io::Result<usize>;

    /// Sends messages from number `first` on to the target, one datagram each, and returns how many were
    /// taken. Message `n` comes from the address number `n` of `sources`.
    ///
    /// # Errors
    /// As sendmmsg(2) for the first message, when none was taken.
    fn send_from(
        &self,
        batch: &MessageBatch,
        sources: &[IpAddr],
        target: SocketAddr,
        first: usize,
    ) -> io::Result<usize>;

    /// Sends octets, cut into datagrams of `segment` octets, of which the last may be shorter.
    ///
    /// # Errors
    /// As sendmsg(2), and nothing was sent.
    fn send_segments(&self, octets: &[u8], segment: usize) -> io::Result<()>;

    /// Receives as many datagrams as there are and fit, in place of those before. True if more may be there.
    ///
    /// # Errors
    /// As recvmmsg(2): `WouldBlock` where nothing is there.
    fn receive(&self, inbox: &mut Self::Inbox) -> io::Result<bool>;

    /// Datagrams that were dropped at this socket because its buffer was full.
    fn drops(&self) -> u64;
}

/// Datagrams that were received.
pub trait Inbox {
    /// Room for what one call receives.
    fn new() -> Self;

    /// Room for what one call receives at a socket of many clients.
    fn shared() -> Self;

    /// What the last call has received, in order.
    fn groups(&self) -> impl Iterator<Item = Group<'_>>;
}

/// A datagram, or several of one length.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The datagrams end to end.
    pub octets: &'a [u8],
    /// Octets of each but the last, which may be shorter.
    pub segment: usize,
    /// When the kernel had the first of them, nanoseconds since 1970; `None` if it was not asked.
    pub timestamp: Option<u64>,
    /// From where to where they went; `None` at a socket of one client.
    pub ends: Option<Ends>,
}

/// The two ends of a datagram at a socket of many clients.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Who sent it.
    pub from: SocketAddr,
    /// The client's address that it came to.
    pub to: IpAddr,
}

/// Brings the kernel's time stamps, which are times of day, onto the timeline. The distance of the two clocks
/// is read once for each batch, so a step of the time of day does little harm.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    /// The time of day, nanoseconds since 1970, at the instant that the batch was read.
    wall: Option<u64>,
}

impl Stamps {
    /// The instant of a stamp, in nanoseconds since 1970, in a batch that was read at `now`.
    pub(crate) fn on_timeline(&mut self, runtime: &impl Runtime, now: Nanos, stamp: u64) -> Nanos {
        let wall = *self.wall.get_or_insert_with(|| {
            // The time of day is read after `now`, so subtract what passed between them.
            runtime.wall_clock().saturating_sub(runtime.now().saturating_sub(now))
        });
        now.saturating_sub(wall.saturating_sub(stamp))
    }
}
