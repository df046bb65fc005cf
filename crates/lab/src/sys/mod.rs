//! The two system calls of the laboratory that no safe interface has.
#![expect(unsafe_code, reason = "TUNSETIFF and sched_setscheduler exist in libc only")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;

/// Opens one end of a TUN device in the network namespace of this thread. A read returns a packet that the
/// host sends into the device; a write makes the host receive one. Packets have no header before them
/// (`IFF_NO_PI`; Documentation/networking/tuntap.rst). Fails if there is no device of this name, another
/// process has it, or this user may not.
pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the device's name is too long"));
    }
    // SAFETY: all-zero octets are a valid ifreq: it has integers and arrays of them only.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, octet) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = octet.cast_signed();
    }
    request.ifr_ifru.ifru_flags =
        i16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).expect("both flags are in the low 15 bits");
    // SAFETY: TUNSETIFF reads one ifreq, which lives until the call returns.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

/// Lets this thread run before every ordinary one (`SCHED_FIFO`, sched(7)). Fails if this user may not (it
/// takes CAP_SYS_NICE).
pub(crate) fn run_first() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel reads one sched_param, which lives until the call returns.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
