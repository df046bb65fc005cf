//! What takes long with files, and can be given up.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Reads and writes until `stop` is set; from then on every call fails.
pub(super) struct Stoppable<'a, T> {
    pub(super) inner: T,
    pub(super) stop: &'a AtomicBool,
}

impl<T> Stoppable<'_, T> {
    fn check(&self) -> io::Result<()> {
        // Whoever reads or writes would try again what was only `Interrupted`.
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::Error::other("interrupted")),
            false => Ok(()),
        }
    }
}

impl<T: Write> Write for Stoppable<'_, T> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Stoppable<'_, T> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        self.inner.read(octets)
    }
}
