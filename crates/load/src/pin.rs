//! The CPUs of a thread.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

/// Keeps the thread on these CPUs; an empty list changes nothing.
///
/// # Errors
/// When there is no such CPU, or the process may not use it.
pub(crate) fn pin_to(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        set.set(*cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}
