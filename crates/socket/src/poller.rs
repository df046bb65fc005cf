//! Which descriptor is ready: epoll(7), level-triggered.

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData};
use rustix::io::Errno;

pub use rustix::event::epoll::EventFlags;

/// The kernel cannot wait for parts of a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelTooOld;

impl fmt::Display for KernelTooOld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("dnslab needs Linux 5.11 or later (epoll_pwait2)")
    }
}

impl Error for KernelTooOld {}

/// Whether [`Poller::wait`] can work here.
///
/// # Errors
/// Before Linux 5.11, which brought `epoll_pwait2`, and where a filter of system calls does not know it (ENOSYS, or
/// EPERM in older containers).
pub fn check_kernel() -> Result<(), KernelTooOld> {
    // Whoever has no descriptor left is told so later.
    let Ok(mut poller) = Poller::new(1) else { return Ok(()) };
    let waited = poller.wait(Some(Duration::ZERO)).map_err(|error| error.raw_os_error());
    let missing = [Errno::NOSYS, Errno::PERM].map(|error| Some(error.raw_os_error()));
    match waited {
        Err(error) if missing.contains(&error) => Err(KernelTooOld),
        _ => Ok(()),
    }
}

/// One thread's epoll instance.
pub struct Poller {
    epoll: OwnedFd,
    /// Of the last wait.
    events: Vec<Event>,
}

impl Poller {
    /// An instance that takes this many events at once. The others are left for the next wait, which returns
    /// at once.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn new(events: usize) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(events) })
    }

    /// Watches a descriptor until it is closed. Its events come with `token`.
    ///
    /// # Errors
    /// When the kernel has no memory, or the user's limit of watches is reached (epoll(7),
    /// `max_user_watches`).
    pub fn add(
        &self,
        source: impl AsFd,
        token: impl Into<u64>,
        interest: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token.into()), interest)?)
    }

    /// Changes what a descriptor is watched for, or its token.
    ///
    /// # Errors
    /// When the descriptor is not watched.
    pub fn modify(
        &self,
        source: impl AsFd,
        token: impl Into<u64>,
        interest: EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token.into()), interest)?)
    }

    /// Waits until something is ready, for `longest` at most; `None` is forever. A signal ends the wait too.
    ///
    /// # Errors
    /// Where [`check_kernel`] has one.
    pub fn wait(&mut self, longest: Option<Duration>) -> io::Result<()> {
        let longest = longest.map(|longest| Timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: longest.subsec_nanos().into(),
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), longest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The token of the n-th ready descriptor of the last wait, and what it is ready for.
    #[inline]
    #[must_use]
    pub fn ready(&self, number: usize) -> Option<(u64, EventFlags)> {
        let event = self.events.get(number)?;
        let (data, flags) = (event.data, event.flags);
        Some((data.u64(), flags))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_ready_comes_with_its_token() {
        let mut poller = Poller::new(4).unwrap();
        let (a, b) = UnixStream::pair().unwrap();
        poller.add(&a, u64::MAX, EventFlags::IN).unwrap();
        poller.add(&b, 7_u32, EventFlags::empty()).unwrap();
        poller.wait(Some(Duration::from_nanos(1))).unwrap();
        assert_eq!(poller.ready(0), None);
        poller.modify(&b, 8_u32, EventFlags::OUT).unwrap();
        poller.wait(None).unwrap();
        assert_eq!((poller.ready(0), poller.ready(1)), (Some((8, EventFlags::OUT)), None));
        drop(b);
        poller.wait(None).unwrap();
        let (token, flags) = poller.ready(0).unwrap();
        assert_eq!((token, flags.contains(EventFlags::HUP)), (u64::MAX, true));
    }
}
