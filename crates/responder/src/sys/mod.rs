//! System calls that carry many datagrams, and socket options that no safe crate has.
#![expect(unsafe_code, reason = "recvmmsg, sendmmsg and SO_MEMINFO exist in libc only")]

mod datagrams;
mod groups;

pub(crate) use datagrams::{BATCH, DatagramBatch, Peer};
pub(crate) use groups::{GroupInbox, SLOTS, enable_receive_groups, send_group};

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Asks for a receive buffer of this many octets, past `net.core.rmem_max` if the process may.
///
/// # Errors
/// When the kernel takes neither option.
pub(crate) fn enlarge_receive_buffer(socket: BorrowedFd<'_>, octets: i32) -> io::Result<()> {
    // Forcing needs CAP_NET_ADMIN; without it the kernel cuts the wish to what everybody may have.
    set_option(socket, libc::SO_RCVBUFFORCE, octets)
        .or_else(|_| set_option(socket, libc::SO_RCVBUF, octets))
}

/// Sets a socket option whose value is an `int`.
fn set_option(socket: BorrowedFd<'_>, option: libc::c_int, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    let value: *const i32 = &value;
    // SAFETY: the pointer and length describe a live `i32`.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value.cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Asks the kernel to say for each datagram to which local address it came, so that the answer can
/// leave from there. Needed on sockets that are bound to all addresses.
///
/// # Errors
/// When the kernel refuses the option.
pub(crate) fn report_local_address(socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<()> {
    let (level, option) = if ipv6 {
        (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)
    } else {
        (libc::IPPROTO_IP, libc::IP_PKTINFO)
    };
    let (on, length) = (1_i32, size_of::<i32>() as libc::socklen_t);
    let on: *const i32 = &on;
    // SAFETY: the pointer and length describe a live `i32`.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, on.cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Datagrams that the kernel dropped because the socket's receive buffer was full
/// (`SK_MEMINFO_DROPS`, `include/uapi/linux/sock_diag.h`). `None` before Linux 4.13.
pub(crate) fn receive_drops(socket: BorrowedFd<'_>) -> Option<u64> {
    /// Place of the drops in the array, and the length of the array.
    const DROPS: usize = 8;
    let mut figures = [0_u32; DROPS + 1];
    let mut length = size_of_val(&figures) as libc::socklen_t;
    // SAFETY: pointer and length describe a live array, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (result == 0 && length as usize == size_of_val(&figures)).then(|| u64::from(figures[DROPS]))
}
