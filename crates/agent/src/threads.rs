//! Threads, and what a user does who has no more of them.

use std::io;
use std::thread::{self, JoinHandle};

use dnslab_wire::units::raised_thread_limit;

/// Starts a thread.
pub(crate) fn start<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().spawn(act).map_err(none_left)
}

/// The system has none left.
pub(crate) fn none_left(error: io::Error) -> io::Error {
    let reason = format!("cannot start another thread: {error}; {}", raised_thread_limit());
    io::Error::new(error.kind(), reason)
}
