//! Network namespaces (network_namespaces(7)) as the place where a thread opens its sockets.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// This thread is in another network until this is dropped. Sockets stay in the namespace in which they were
/// opened, and threads and processes begin in that of the thread that starts them.
#[derive(Debug)]
pub struct Visit {
    home: File,
    /// Not `Send`: the way back is this thread's own.
    _stays: std::marker::PhantomData<*const ()>,
}

impl Visit {
    /// Moves this thread into the namespace at `path`, e.g. `/proc/17/ns/net`.
    ///
    /// # Errors
    /// When the namespace is gone, or this user may not enter it (it takes CAP_SYS_ADMIN).
    pub fn to(path: &Path) -> io::Result<Self> {
        let home = File::open("/proc/thread-self/ns/net")?;
        move_into(&File::open(path)?)?;
        Ok(Self { home, _stays: std::marker::PhantomData })
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        // It was open before, so the way back cannot be missing.
        move_into(&self.home).expect("a thread may return to the namespace that it came from");
    }
}

fn move_into(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}
