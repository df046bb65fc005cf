//! A socket that servers send dnstap to, and the file of what came.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dnslab_capture::{
    CaptureOptions, Counts, FrameCounter, FrameReceiver, FrameWriter, Reason, SenderFault,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::users;

/// Connections at once. A server has one, dnsdist one for each thread that is told to log. Each may hold a frame that
/// is not whole.
const MAX_CONNECTIONS: usize = 32;

/// A sender that has not begun its frames for so long is sent away.
const PATIENCE: Duration = Duration::from_secs(5);

/// What came is in the file after so long, and an interrupt is noticed.
const TICK: Duration = Duration::from_millis(100);

/// Connections that wait to be accepted, at most: more than a server has threads.
const BACKLOG: i32 = 128;

/// Octets that are read at once.
const CHUNK: usize = 64 * 1024;

/// Reads from one connection after each other, so that one that sends without end leaves the others their turn.
const READS: usize = 16;

/// Where servers send dnstap to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DnstapAddress {
    /// A socket in the file system.
    Unix(PathBuf),
    /// Address and port.
    Tcp(SocketAddr),
}

/// A text that names no socket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no socket: {reason}; write `unix:/run/named/dnstap.sock`, `tcp:6000` for this machine alone, or \
     `tcp:ADDRESS:PORT`"
)]
pub struct NoDnstapAddress {
    text: String,
    reason: String,
}

impl DnstapAddress {
    /// True if a text is to name a socket, not a file.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("unix:") || text.starts_with("tcp:")
    }
}

impl FromStr for DnstapAddress {
    type Err = NoDnstapAddress;

    /// A port without an address is one of 127.0.0.1. A host name is looked up.
    fn from_str(text: &str) -> Result<Self, NoDnstapAddress> {
        let wrong = |reason: &str| {
            let (text, reason) = (text.to_owned(), reason.to_owned());
            Err(NoDnstapAddress { text, reason })
        };
        match text.split_once(':') {
            Some(("unix", "")) => wrong("it has no path"),
            Some(("unix", path)) => Ok(Self::Unix(PathBuf::from(path))),
            Some(("tcp", place)) => {
                if let Ok(port) = place.parse::<u16>() {
                    return Ok(Self::Tcp((Ipv4Addr::LOCALHOST, port).into()));
                }
                match place.to_socket_addrs().map(|mut found| found.next()) {
                    Ok(Some(address)) => Ok(Self::Tcp(address)),
                    Ok(None) => wrong("the name has no address"),
                    Err(error) => wrong(&error.to_string()),
                }
            }
            _ => wrong("it begins neither with `unix:` nor with `tcp:`"),
        }
    }
}

impl fmt::Display for DnstapAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp(address) => write!(formatter, "tcp:{address}"),
        }
    }
}

/// Who may connect to a socket in the file system. Linux wants the right to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketAccess {
    /// Its user and its group; if it is `None`, those of its folder if root makes it, otherwise of this process.
    pub owner: Option<SocketOwner>,
    /// Its mode.
    pub mode: u32,
}

impl SocketAccess {
    /// Its user and its group may connect.
    pub const MODE: u32 = 0o660;
}

/// A user and a group, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOwner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl FromStr for SocketOwner {
    type Err = NoSuchOwner;

    /// `USER` with the user's first group, or `USER:GROUP`; both by name or number.
    fn from_str(text: &str) -> Result<Self, NoSuchOwner> {
        let (user, group) = match text.split_once(':') {
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let none = |what, name: &str| NoSuchOwner { what, name: name.to_owned() };
        let user = users::find(user).ok_or_else(|| none("user", user))?;
        let gid = match group {
            None => user.gid,
            Some(group) => users::find_group(group).ok_or_else(|| none("group", group))?,
        };
        Ok(Self { uid: user.uid, gid })
    }
}

/// This system has no such user or group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no {what} `{name}`: write a name that this system has, or a number up to 4294967294"
)]
pub struct NoSuchOwner {
    /// `user` or `group`.
    what: &'static str,
    name: String,
}

/// What went wrong with a socket for dnstap, or with the file of what came.
#[derive(Debug, thiserror::Error)]
pub enum DnstapSocketError {
    /// Something is in the place of the socket.
    #[error("{} is there and is no socket, so it is left as it is: name another path", path.display())]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// Another process has the socket.
    #[error("another process listens at {address}: end it, or name another socket")]
    Taken {
        /// The socket.
        address: DnstapAddress,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The socket.
        address: DnstapAddress,
        /// What the system said.
        source: io::Error,
    },
    /// Its owner or mode cannot be set.
    #[error("cannot set owner and mode of {}: {source}", path.display())]
    Access {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The socket cannot be waited for.
    #[error("cannot wait for dnstap: {0}")]
    Wait(#[source] io::Error),
    /// The file cannot be written. What is in it can be read up to there.
    #[error("cannot write what came, after {octets} octets: {source}")]
    Write {
        /// Octets that are in the file for certain.
        octets: u64,
        /// What the system said.
        source: io::Error,
    },
}

/// A socket that servers may connect to. Its file is removed with it, unless it is no longer its own.
#[derive(Debug)]
pub struct DnstapSocket {
    listener: OwnedFd,
    address: DnstapAddress,
    file: Option<SocketFile>,
    patience: Duration,
}

/// The file of a socket.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    owner: SocketOwner,
    mode: u32,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = |facts: fs::Metadata| (facts.dev(), facts.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            // A socket that stays is found to be stale the next time.
            fs::remove_file(&self.path).ok();
        }
    }
}

/// When to stop receiving. Both may be absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveUntil {
    /// So long after the first frame.
    pub duration: Option<Duration>,
    /// After so many queries.
    pub queries: Option<u64>,
}

/// What came.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// What the frames were. Those that are no dnstap are not in the file.
    pub counts: Counts,
    /// Length of the file, octets.
    pub octets: u64,
    /// Connections that sent frames, or may have.
    pub connections: u64,
    /// Those that ended without STOP.
    pub without_end: u64,
    /// Those that were sent away, each reason with its first example.
    pub refused: Vec<Refused>,
    /// Since the first frame; zero without one.
    pub lasted: Duration,
}

/// Connections that were sent away for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The first.
    pub example: Refusal,
    /// How many.
    pub count: u64,
}

/// Why a connection was sent away.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It does not speak as a sender of dnstap.
    #[error("{0}")]
    Fault(SenderFault),
    /// It says nothing.
    #[error("it says nothing, or not all of its handshake, for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// There are others.
    #[error("there are {MAX_CONNECTIONS} connections already")]
    TooMany,
}

impl Refusal {
    fn is_like(&self, other: &Self) -> bool {
        use std::mem::discriminant;
        match (self, other) {
            (Self::Fault(one), Self::Fault(other)) => discriminant(one) == discriminant(other),
            _ => discriminant(self) == discriminant(other),
        }
    }
}

/// What is told while it is received.
#[derive(Clone, Copy, Debug)]
pub enum Reception<'a> {
    /// A server has begun a stream.
    Begins,
    /// A stream has ended; with its own end or without.
    Ends {
        /// True if the server said that it is the end.
        in_order: bool,
    },
    /// A connection was sent away.
    Refused(&'a Refusal),
    /// Some time has passed.
    Tick(&'a Received),
}

impl DnstapSocket {
    /// Makes the socket. A socket in the file system that nobody listens at is replaced.
    ///
    /// # Errors
    /// When something else is in its place, or it cannot be made.
    pub fn listen(
        address: &DnstapAddress,
        access: SocketAccess,
    ) -> Result<Self, DnstapSocketError> {
        let refused = |source| DnstapSocketError::Listen { address: address.clone(), source };
        let (listener, address, file) = match address {
            DnstapAddress::Tcp(place) => {
                #[expect(
                    clippy::disallowed_types,
                    reason = "senders of dnstap are no clients of DNS: neither load nor responder has them"
                )]
                let listener =
                    std::net::TcpListener::bind(place).map_err(|source| match source.kind() {
                        io::ErrorKind::AddrInUse => {
                            DnstapSocketError::Taken { address: address.clone() }
                        }
                        _ => refused(source),
                    })?;
                let bound = listener.local_addr().map_err(refused)?;
                (OwnedFd::from(listener), DnstapAddress::Tcp(bound), None)
            }
            DnstapAddress::Unix(path) => {
                make_way(path, address)?;
                let listener = bind_closed(path).map_err(refused)?;
                let file = SocketFile::open(path, access)?;
                rustix::net::listen(&listener, BACKLOG).map_err(|error| refused(error.into()))?;
                (listener, address.clone(), Some(file))
            }
        };
        rustix::io::ioctl_fionbio(&listener, true)
            .map_err(|error| DnstapSocketError::Wait(error.into()))?;
        Ok(Self { listener, address, file, patience: PATIENCE })
    }

    /// Where it is. A port that was left to the system is known here.
    #[must_use]
    pub fn address(&self) -> &DnstapAddress {
        &self.address
    }

    /// Who may connect, in words.
    #[must_use]
    pub fn who_may_connect(&self) -> String {
        match (&self.file, &self.address) {
            (Some(SocketFile { owner, mode, .. }), _) => {
                let mut who = vec!["root".to_owned()];
                if mode & 0o200 != 0 && owner.uid != 0 {
                    who.push(format!("the user {}", users::described(owner.uid)));
                }
                if mode & 0o020 != 0 {
                    who.push(format!("the group {}", users::group_described(owner.gid)));
                }
                if mode & 0o002 != 0 {
                    who = vec!["everybody on this machine".to_owned()];
                }
                who.join(" and ")
            }
            (None, DnstapAddress::Tcp(place)) if !place.ip().is_loopback() => {
                "everybody who can reach it".to_owned()
            }
            (None, _) => "everybody on this machine".to_owned(),
        }
    }

    /// Receives frames of dnstap from any number of servers, one after another and at once, and writes them into
    /// `file` as they come. When it ends, the file is whole. Until then it has what came until 0.1 s before.
    ///
    /// `options` say which of the frames count as queries; all that are dnstap are written. `stop` ends it. `observe`
    /// is told what happens.
    ///
    /// # Errors
    /// When the file cannot be written, or the socket fails.
    pub fn receive(
        &self,
        file: File,
        (until, options): (ReceiveUntil, CaptureOptions),
        stop: &AtomicBool,
        observe: &mut dyn FnMut(Reception<'_>),
    ) -> Result<Received, DnstapSocketError> {
        let broken = |source| DnstapSocketError::Write { octets: 0, source };
        let writer = FrameWriter::new(file).map_err(broken)?;
        let mut sink = Sink {
            writer,
            counter: FrameCounter::new(options),
            queries: until.queries.unwrap_or(u64::MAX),
            safe: 0,
            failure: None,
            first: None,
        };
        let mut senders: Vec<Sender> = Vec::new();
        let mut received = Received::default();
        let mut chunk = vec![0; CHUNK];
        let (mut flushed, mut observed) = (Instant::now(), Instant::now());
        loop {
            let now = Instant::now();
            let end = sink.first.zip(until.duration).map(|(first, length)| first + length);
            let is_over =
                sink.is_full() || stop.load(Ordering::Relaxed) || end.is_some_and(|end| now >= end);
            // What has come already belongs to the file.
            let wait = match end {
                _ if is_over => Duration::ZERO,
                Some(end) => TICK.min(end - now),
                None => TICK,
            };
            self.wait(&mut senders, wait)?;
            self.accept(&mut senders, &mut received, observe)?;
            for sender in &mut senders {
                sender.read(&mut chunk, &mut sink, observe);
            }
            self.dismiss(&mut senders, &mut received, observe);
            let now = Instant::now();
            if is_over || now >= flushed + TICK {
                sink.flush();
                flushed = now;
            }
            if let Some(source) = sink.failure {
                return Err(DnstapSocketError::Write { octets: sink.safe, source });
            }
            received.counts = sink.counter.counts().clone();
            received.octets = sink.writer.octets();
            received.lasted = sink.first.map_or(Duration::ZERO, |first| now - first);
            if is_over {
                break;
            }
            if now >= observed + TICK {
                observe(Reception::Tick(&received));
                observed = now;
            }
        }
        received.connections +=
            senders.iter().filter(|sender| sender.receiver.has_begun()).count() as u64;
        let octets = sink.safe;
        let written = |source| DnstapSocketError::Write { octets, source };
        let file = sink.writer.finish().map_err(written)?;
        let facts = file.metadata().ok().filter(|facts| facts.is_file());
        // Pipes and devices cannot be synchronised.
        if let Some(facts) = facts {
            file.sync_all().map_err(written)?;
            received.octets = facts.len();
        }
        Ok(received)
    }

    /// Waits until somebody connects or sends.
    fn wait(&self, senders: &mut [Sender], most: Duration) -> Result<(), DnstapSocketError> {
        let mut all = vec![PollFd::new(&self.listener, PollFlags::IN)];
        all.extend(senders.iter().map(|sender| PollFd::new(&sender.stream, PollFlags::IN)));
        let most = Timespec::try_from(most).unwrap_or_default();
        match poll(&mut all, Some(&most)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(DnstapSocketError::Wait(error.into())),
        }
        let is_ready: Vec<bool> =
            all[1..].iter().map(|polled| !polled.revents().is_empty()).collect();
        for (sender, is_ready) in senders.iter_mut().zip(is_ready) {
            sender.is_ready = is_ready;
        }
        Ok(())
    }

    fn accept(
        &self,
        senders: &mut Vec<Sender>,
        received: &mut Received,
        observe: &mut dyn FnMut(Reception<'_>),
    ) -> Result<(), DnstapSocketError> {
        // One who connects without end leaves the others their turn, too.
        for _ in 0..MAX_CONNECTIONS {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(&self.listener, flags) {
                Ok(stream) if senders.len() < MAX_CONNECTIONS => senders.push(Sender::new(stream)),
                Ok(_) => received.refuse(Refusal::TooMany, observe),
                Err(Errno::AGAIN) => break,
                // The other side gave up, or there are too many open files for now.
                Err(Errno::INTR | Errno::CONNABORTED | Errno::MFILE | Errno::NFILE) => break,
                Err(error) => return Err(DnstapSocketError::Wait(error.into())),
            }
        }
        Ok(())
    }

    /// Lets go of connections that have ended or are refused.
    fn dismiss(
        &self,
        senders: &mut Vec<Sender>,
        received: &mut Received,
        observe: &mut dyn FnMut(Reception<'_>),
    ) {
        senders.retain_mut(|sender| {
            let refusal = match sender.end.take() {
                Some(End::Refused(fault)) => Refusal::Fault(fault),
                Some(End::Over { in_order }) => {
                    if sender.receiver.has_begun() {
                        received.connections += 1;
                        received.without_end += u64::from(!in_order);
                        observe(Reception::Ends { in_order });
                        return false;
                    }
                    Refusal::Silent(sender.since.elapsed())
                }
                None if !sender.receiver.has_begun() && sender.since.elapsed() > self.patience => {
                    Refusal::Silent(self.patience)
                }
                None => return true,
            };
            received.refuse(refusal, observe);
            false
        });
    }
}

impl Received {
    fn refuse(&mut self, refusal: Refusal, observe: &mut dyn FnMut(Reception<'_>)) {
        observe(Reception::Refused(&refusal));
        match self.refused.iter_mut().find(|known| known.example.is_like(&refusal)) {
            Some(known) => known.count += 1,
            None => self.refused.push(Refused { example: refusal, count: 1 }),
        }
    }
}

/// Where frames go.
struct Sink {
    writer: FrameWriter<File>,
    counter: FrameCounter,
    /// So many are wanted.
    queries: u64,
    /// Octets that were written for certain.
    safe: u64,
    failure: Option<io::Error>,
    /// When the first frame came.
    first: Option<Instant>,
}

impl Sink {
    fn is_full(&self) -> bool {
        self.counter.counts().queries >= self.queries
    }

    fn take(&mut self, frame: &[u8]) {
        if self.is_full() || self.failure.is_some() {
            return;
        }
        if self.counter.count(frame) == Err(Reason::DnstapMalformed) {
            return;
        }
        self.first.get_or_insert_with(Instant::now);
        self.failure = self.writer.write(frame).err();
    }

    fn flush(&mut self) {
        match self.writer.flush() {
            Ok(()) => self.safe = self.writer.octets(),
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }
}

/// A connection.
struct Sender {
    stream: OwnedFd,
    receiver: FrameReceiver,
    since: Instant,
    is_ready: bool,
    end: Option<End>,
}

enum End {
    Refused(SenderFault),
    Over { in_order: bool },
}

impl Sender {
    fn new(stream: OwnedFd) -> Self {
        let receiver = FrameReceiver::default();
        Self { stream, receiver, since: Instant::now(), is_ready: true, end: None }
    }

    fn read(&mut self, chunk: &mut [u8], sink: &mut Sink, observe: &mut dyn FnMut(Reception<'_>)) {
        if !self.is_ready {
            return;
        }
        for _ in 0..READS {
            let count = match rustix::io::read(&self.stream, &mut *chunk) {
                Ok(count) => count,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                // A reset.
                Err(_) => 0,
            };
            if count == 0 {
                self.end = Some(End::Over { in_order: false });
                return;
            }
            let had_begun = self.receiver.has_begun();
            let answer = self.receiver.receive(&chunk[..count], &mut |frame| sink.take(frame));
            if self.receiver.has_begun() && !had_begun {
                observe(Reception::Begins);
            }
            match answer {
                Ok(reply) if reply.is_empty() => {}
                Ok(reply) => {
                    // It fits into an empty buffer. Some senders do not wait for FINISH.
                    rustix::net::send(&self.stream, &reply, SendFlags::NOSIGNAL).ok();
                }
                Err(fault) => {
                    self.end = Some(End::Refused(fault));
                    return;
                }
            }
            if self.receiver.is_over() {
                self.end = Some(End::Over { in_order: true });
                return;
            }
        }
    }
}

/// Makes a socket in the file system, to which nobody but its owner may connect, and nobody can before it listens.
fn bind_closed(path: &Path) -> io::Result<OwnedFd> {
    let place = SocketAddrUnix::new(path)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "senders of dnstap are no clients of DNS: neither load nor responder has them"
    )]
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // Linux makes the file with the mode of the socket (`unix_bind_bsd` in net/unix/af_unix.c). The umask would do it
    // too, but all threads share that.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &place)?;
    Ok(socket)
}

/// Removes a socket that nobody listens at.
fn make_way(path: &Path, address: &DnstapAddress) -> Result<(), DnstapSocketError> {
    let refused = |source| DnstapSocketError::Listen { address: address.clone(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(refused(error)),
        Ok(facts) if !facts.file_type().is_socket() => {
            return Err(DnstapSocketError::NoSocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "senders of dnstap are no clients of DNS: neither load nor responder has them"
    )]
    let probe = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        None,
    );
    let place = SocketAddrUnix::new(path).map_err(|error| refused(error.into()))?;
    let probe = probe.map_err(|error| refused(error.into()))?;
    match rustix::net::connect(&probe, &place) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(refused),
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => {
            Err(DnstapSocketError::Taken { address: address.clone() })
        }
        Err(error) => Err(refused(error.into())),
    }
}

impl SocketFile {
    /// Gives the file of a socket that was just made its owner and mode. The user whose folder it is in may put
    /// something else in its place meanwhile: nothing but a socket is changed.
    fn open(path: &Path, access: SocketAccess) -> Result<Self, DnstapSocketError> {
        let refused =
            |source: io::Error| DnstapSocketError::Access { path: path.to_owned(), source };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let opened = opened.map_err(|error| refused(error.into()))?;
        // The way of an open file that cannot be written or read (open(2), `O_PATH`).
        let way = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let facts = fs::metadata(&way).map_err(refused)?;
        if !facts.file_type().is_socket() {
            return Err(DnstapSocketError::NoSocket { path: path.to_owned() });
        }
        let own = SocketOwner { uid: facts.uid(), gid: facts.gid() };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let owner = match access.owner {
            Some(owner) => owner,
            None if users::own() == 0 => {
                let facts = fs::metadata(folder.unwrap_or(Path::new("."))).map_err(refused)?;
                SocketOwner { uid: facts.uid(), gid: facts.gid() }
            }
            None => own,
        };
        let file = Self {
            path: path.to_owned(),
            identity: (facts.dev(), facts.ino()),
            owner,
            mode: access.mode,
        };
        if owner != own {
            let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
            let flags = AtFlags::EMPTY_PATH;
            rustix::fs::chownat(opened.as_fd(), "", Some(uid), Some(gid), flags)
                .map_err(|error| refused(error.into()))?;
        }
        rustix::fs::chmod(&way, Mode::from_raw_mode(access.mode))
            .map_err(|error| refused(error.into()))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{IpAddr, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    use dnslab_capture::{CaptureReader, CaptureWriter, Captured};
    use dnslab_wire::Transport;
    use tempfile::TempDir;

    use super::*;

    const ACCESS: SocketAccess = SocketAccess { owner: None, mode: SocketAccess::MODE };

    const READY: &[u8] = b"\0\0\0\0\0\0\0\x22\0\0\0\x04\0\0\0\x01\0\0\0\x16protobuf:dnstap.Dnstap";

    /// A stream of so many queries, with START and STOP.
    fn stream(queries: u16) -> Vec<u8> {
        let mut writer = CaptureWriter::dnstap(Vec::new()).unwrap();
        for number in 0..queries {
            let mut message =
                b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01".to_vec();
            message[..2].copy_from_slice(&number.to_be_bytes());
            let captured = Captured {
                at_ns: u64::from(number),
                client: (IpAddr::from([192, 0, 2, 1]), 40_000).into(),
                server: (IpAddr::from([192, 0, 2, 53]), 53).into(),
                transport: Transport::Udp,
                message: &message,
            };
            writer.write(&captured).unwrap();
        }
        writer.finish().unwrap()
    }

    /// A socket in a folder of its own, and a file for what comes.
    fn listen(folder: &TempDir) -> DnstapSocket {
        let address = DnstapAddress::Unix(folder.path().join("socket"));
        DnstapSocket::listen(&address, ACCESS).unwrap()
    }

    /// Receives what `send` sends to the socket, which it is given, until it ends by itself. The queries in the file
    /// are those that were counted.
    fn receive(
        socket: &DnstapSocket,
        until: ReceiveUntil,
        send: impl FnOnce(&DnstapAddress) + Send,
    ) -> Received {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stop = AtomicBool::new(false);
        let writer = file.reopen().unwrap();
        let received = thread::scope(|scope| {
            scope.spawn(|| {
                send(socket.address());
                if until == ReceiveUntil::default() {
                    stop.store(true, Ordering::Relaxed);
                }
            });
            let options = CaptureOptions::default();
            socket.receive(writer, (until, options), &stop, &mut |_| {}).unwrap()
        });
        let mut reader =
            CaptureReader::new(file.reopen().unwrap(), CaptureOptions::default()).unwrap();
        // An error would be a file that is not whole.
        while reader.next().unwrap().is_some() {}
        assert_eq!(reader.counts().queries, received.counts.queries);
        assert_eq!(file.path().metadata().unwrap().len(), received.octets);
        received
    }

    fn connect(address: &DnstapAddress) -> UnixStream {
        let DnstapAddress::Unix(path) = address else { panic!("{address}") };
        UnixStream::connect(path).unwrap()
    }

    /// Sends octets, and waits for the end of the connection.
    fn send(mut stream: impl io::Read + io::Write, octets: &[u8]) -> Vec<u8> {
        // One who is refused may not get rid of all.
        let _ = stream.write_all(octets);
        let mut replies = Vec::new();
        let _ = stream.read_to_end(&mut replies);
        replies
    }

    #[test]
    fn servers_come_one_after_another_and_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let socket = listen(&folder);
        let received = receive(&socket, ReceiveUntil::default(), |address| {
            let replies = send(connect(address), &[READY, &stream(500)].concat());
            // ACCEPT, FINISH.
            assert_eq!(replies.len(), 42 + 12);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| send(connect(address), &[READY, &stream(2_000)].concat()));
                }
            });
            // One that wants no answer, and one that does not end its stream.
            assert_eq!(send(connect(address), &stream(10)), b"");
            let mut cut = connect(address);
            let whole = stream(3);
            cut.write_all(&whole[..whole.len() - 14]).unwrap();
        });
        assert_eq!(received.counts.queries, 500 + 8 * 2_000 + 10 + 2);
        assert_eq!((received.connections, received.without_end), (11, 1));
        assert_eq!(received.refused, []);
        let DnstapAddress::Unix(path) = socket.address().clone() else { panic!() };
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_number_of_queries_or_a_time_is_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let socket = listen(&folder);
        let until = ReceiveUntil { queries: Some(70), duration: None };
        let received = receive(&socket, until, |address| {
            connect(address).write_all(&stream(100)).unwrap();
        });
        assert_eq!(received.counts.queries, 70);
        // It goes on without a sender until its time is over.
        let length = Duration::from_millis(300);
        let until = ReceiveUntil { queries: None, duration: Some(length) };
        let received = receive(&socket, until, |address| {
            connect(address).write_all(&stream(100)).unwrap();
        });
        assert_eq!(received.counts.queries, 100);
        assert!(received.lasted >= length);
    }

    #[test]
    fn tcp_is_for_this_machine_unless_another_address_is_named() {
        let address: DnstapAddress = "tcp:0".parse().unwrap();
        let socket = DnstapSocket::listen(&address, ACCESS).unwrap();
        let DnstapAddress::Tcp(place) = *socket.address() else { panic!() };
        assert!(place.ip().is_loopback() && place.port() > 0);
        let taken = DnstapSocket::listen(socket.address(), ACCESS).unwrap_err().to_string();
        assert!(taken.contains("another process listens"), "{taken}");
        let received = receive(&socket, ReceiveUntil::default(), |_| {
            send(TcpStream::connect(place).unwrap(), &[READY, &stream(9)].concat());
        });
        assert_eq!(received.counts.queries, 9);
    }

    #[test]
    fn who_does_not_speak_dnstap_is_sent_away() {
        let folder = tempfile::tempdir().unwrap();
        let mut socket = listen(&folder);
        socket.patience = Duration::from_millis(200);
        let begun = [READY, &stream(0)[..42]].concat();
        let received = receive(&socket, ReceiveUntil::default(), |address| {
            for octets in [
                &b"GET / HTTP/1.1\r\n\r\n"[..],
                b"\0\0\0\0\0\0\0\x10\0\0\0\x04\0\0\0\x01\0\0\0\x04json",
                &[&begun[..], READY].concat(),
                &[&begun[..], b"\x7f\xff\xff\xff"].concat(),
                // It says nothing, or half of it.
                b"",
                &READY[..20],
            ] {
                send(connect(address), octets);
            }
            // What is no dnstap is not written.
            let frames = [&begun[..], b"\0\0\0\x03abc", &stream(5)[42..]].concat();
            send(connect(address), &frames);
        });
        let refused: Vec<(u64, String)> = received
            .refused
            .iter()
            .map(|refused| (refused.count, refused.example.to_string()))
            .collect();
        let expected = [
            "(1, \"it does not speak Frame Streams: it begins with `GET / HTTP/1`\")",
            "(1, \"it offers `json`, not `protobuf:dnstap.Dnstap`\")",
            "(1, \"it sends a control frame of type 4 and 34 octets out of place\")",
            "(1, \"it announces a frame of 2147483647 octets, and none can have more than 1048576\")",
            "(2, \"it says nothing, or not all of its handshake, for 0.2 s\")",
        ];
        assert_eq!(
            refused.iter().map(|refused| format!("{refused:?}")).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(received.counts.queries, 5);
        assert_eq!(received.counts.skipped(Reason::DnstapMalformed), 1);
    }

    #[test]
    fn a_crowd_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let socket = listen(&folder);
        let received = receive(&socket, ReceiveUntil::default(), |address| {
            let all: Vec<UnixStream> = (0..MAX_CONNECTIONS).map(|_| connect(address)).collect();
            assert_eq!(send(connect(address), b""), b"");
            drop(all);
        });
        let too_many = received.refused.iter().find(|refused| refused.example == Refusal::TooMany);
        assert_eq!(too_many.map(|refused| refused.count), Some(1), "{:?}", received.refused);
    }

    #[test]
    fn only_a_stale_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let address = DnstapAddress::Unix(path.clone());
        let refused = || DnstapSocket::listen(&address, ACCESS).unwrap_err().to_string();
        fs::write(&path, "precious").unwrap();
        assert!(refused().contains("is no socket, so it is left as it is"), "{}", refused());
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(refused().contains("is no socket"), "{}", refused());
        fs::remove_file(&path).unwrap();
        // The file of a socket stays when its process is killed.
        drop(UnixListener::bind(&path).unwrap());
        let socket = DnstapSocket::listen(&address, ACCESS).unwrap();
        assert!(refused().contains("another process listens at unix:"), "{}", refused());
        // What another has put in its place is not removed.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(socket);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        let nowhere = DnstapAddress::Unix(folder.path().join("no/socket"));
        let error = DnstapSocket::listen(&nowhere, ACCESS).unwrap_err().to_string();
        assert!(error.contains("cannot listen at unix:"), "{error}");
    }

    #[test]
    fn nobody_else_may_connect_before_the_mode_is_set() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = bind_closed(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o077, 0);
        let early = UnixStream::connect(&path).unwrap_err();
        assert_eq!(early.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn owner_and_mode_are_as_asked() {
        let folder = tempfile::tempdir().unwrap();
        let socket = listen(&folder);
        let DnstapAddress::Unix(path) = socket.address().clone() else { panic!() };
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        drop(socket);
        let address = DnstapAddress::Unix(path.clone());
        let everybody = SocketAccess { owner: None, mode: 0o666 };
        let socket = DnstapSocket::listen(&address, everybody).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666);
        assert_eq!(socket.who_may_connect(), "everybody on this machine");
        drop(socket);
        if users::own() != 0 {
            return;
        }
        let owner = Some("65534:12345".parse().unwrap());
        let socket = DnstapSocket::listen(&address, SocketAccess { owner, ..ACCESS }).unwrap();
        let facts = fs::metadata(&path).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (65_534, 12_345));
        assert!(socket.who_may_connect().ends_with("and the group 12345"));
        drop(socket);
        // By default it is as its folder.
        std::os::unix::fs::chown(folder.path(), Some(54_321), Some(12_345)).unwrap();
        let _socket = listen(&folder);
        let facts = fs::metadata(&path).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (54_321, 12_345));
    }

    #[test]
    fn texts_name_sockets() {
        let read = |text: &str| text.parse::<DnstapAddress>();
        assert_eq!(read("unix:/run/x").unwrap().to_string(), "unix:/run/x");
        assert_eq!(read("tcp:6000").unwrap().to_string(), "tcp:127.0.0.1:6000");
        assert_eq!(read("tcp:[::1]:6000").unwrap().to_string(), "tcp:[::1]:6000");
        for (wrong, expected) in [
            ("unix:", "it has no path"),
            ("tcp:x", "names no socket"),
            ("/run/x", "begins neither"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!("root".parse::<SocketOwner>().is_ok());
        assert_eq!("nobody-of-this-name".parse::<SocketOwner>().ok(), None);
        assert_eq!("root:no-such-group".parse::<SocketOwner>().ok(), None);
        assert_eq!("7:8".parse(), Ok(SocketOwner { uid: 7, gid: 8 }));
        for nobody in ["4294967295", "7:4294967295"] {
            let error = nobody.parse::<SocketOwner>().unwrap_err().to_string();
            assert!(error.contains("or a number up to 4294967294"), "{error}");
        }
    }
}
