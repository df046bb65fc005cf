//! Figures that the kernel keeps per socket.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Index of the drop count among the figures of `SO_MEMINFO` (`linux/sock_diag.h`).
const SK_MEMINFO_DROPS: usize = 8;

/// How many figures `SO_MEMINFO` gives.
const SK_MEMINFO_VARS: usize = 9;

/// Datagrams that the kernel dropped at this socket, because its buffer was full, since it was
/// opened; 0 where the kernel does not say.
pub(crate) fn socket_drops(socket: BorrowedFd<'_>) -> u64 {
    let mut figures = [0u32; SK_MEMINFO_VARS];
    let mut length = std::mem::size_of_val(&figures) as libc::socklen_t;
    // SAFETY: the pointer and the length describe `figures`, which outlives the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { u64::from(figures[SK_MEMINFO_DROPS]) } else { 0 }
}

/// The round trip to the peer as the kernel has measured it, nanoseconds (`TCP_INFO`, tcp(7)): right after
/// connecting that of the SYN. `None` where the kernel does not say.
pub(crate) fn round_trip(socket: BorrowedFd<'_>) -> Option<u64> {
    // SAFETY: `tcp_info` consists of integers, for which zero is a value.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = std::mem::size_of_val(&info) as libc::socklen_t;
    // SAFETY: the pointer and the length describe `info`, which outlives the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    (result == 0 && info.tcpi_rtt > 0).then(|| u64::from(info.tcpi_rtt) * 1_000)
}

/// Leaves the choice of the port to connect(2), where it need only be free towards the peer
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)): a source address then has as many connections as ports to
/// each server, and ports in TIME-WAIT can be used again as without bind(2).
///
/// # Errors
/// Before Linux 4.2.
pub(crate) fn bind_address_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    // The option is one of both address families.
    switch_on(socket, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT)
}

/// Switches a socket option on whose value is an `int`.
///
/// # Errors
/// Where the kernel does not know the option.
pub(super) fn switch_on(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer and the length describe `on`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            std::mem::size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
