//! The only place of this crate that reads the clock or sleeps.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// In nanoseconds of the monotonic clock.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock counts up from the start of the machine, so neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// This is the monotonic clock too.
pub(super) fn now() -> Instant {
    Instant::now()
}

/// CPU time of this thread, in nanoseconds: other threads and processes do not count.
pub(super) fn thread_cpu_ns() -> u64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    // Neither part of a time that was used is negative.
    used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64
}

pub(super) fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// A descriptor that becomes readable at an instant. Its timer is the kernel's high-resolution one: unlike a
/// time-out of `epoll_wait` it is neither rounded to milliseconds nor delayed by the thread's timer slack (50
/// us; prctl(2)).
pub(super) struct Timer {
    descriptor: OwnedFd,
    /// In nanoseconds of the monotonic clock.
    armed_ns: Option<u64>,
}

impl Timer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { descriptor, armed_ns: None })
    }

    /// Lets it go off at this instant, or not at all. Setting it again also makes it unreadable.
    pub(super) fn set(&mut self, at_ns: Option<u64>) -> io::Result<()> {
        if self.armed_ns == at_ns {
            return Ok(());
        }
        // Zero would disarm; the machine's first nanosecond is past anyway.
        let at = at_ns.map_or(0, |at_ns| at_ns.max(1));
        let value =
            Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as _ };
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.armed_ns = at_ns;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
