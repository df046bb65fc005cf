//! Socket options, what the kernel counts for a socket, and a thread's scheduling policy.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use libc::c_int;

/// Receives neighbours of one sender and one length as a group (`UDP_GRO`, udp(7)).
///
/// # Errors
/// Before Linux 5.0; then each datagram comes by itself.
pub fn enable_gro(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Reports when each datagram came (`SO_TIMESTAMPNS`, socket(7)).
///
/// # Errors
/// Where the kernel cannot.
pub fn enable_timestamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Reports the address of this host that each datagram came to, so that the answer can leave from there
/// (`IP_PKTINFO`, ip(7); RFC 3542, section 6.1). Sockets that are bound to all addresses need it.
///
/// # Errors
/// When the socket is of the other family.
pub fn enable_pktinfo(socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<()> {
    match ipv6 {
        false => set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
        true => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
    }
}

/// Lets datagrams leave from any address, also from one that only a local route makes this host's own
/// (`IPV6_FREEBIND`, `IP_FREEBIND`, ip(7)).
///
/// # Errors
/// When the socket is of the other family.
pub fn allow_any_source(socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<()> {
    match ipv6 {
        false => set_option(socket, libc::IPPROTO_IP, libc::IP_FREEBIND, 1),
        true => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_FREEBIND, 1),
    }
}

/// Leaves packet sizes to QUIC (RFC 9000, section 14.2): no packet is fragmented, and what the kernel knows
/// of the path is not used (`IP_PMTUDISC_PROBE`, ip(7)).
///
/// # Errors
/// When the socket is of the other family.
pub fn set_pmtu_probe(socket: BorrowedFd<'_>, ipv6: bool) -> io::Result<()> {
    let (level, option, probe) = match ipv6 {
        false => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        true => (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE),
    };
    set_option(socket, level, option, probe)
}

/// Asks for a receive buffer of this many octets, beyond `net.core.rmem_max` if the process may
/// (CAP_NET_ADMIN). Otherwise the kernel cuts the size to that limit.
///
/// # Errors
/// When the kernel takes neither option.
pub fn set_receive_buffer(socket: BorrowedFd<'_>, octets: i32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, octets)
        .or_else(|_| set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, octets))
}

/// Leaves the choice of the port to connect(2), where it need only be free towards the peer
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)). A source address can then have as many connections to each server as
/// it has ports, and ports in TIME-WAIT can be used again as without bind(2).
///
/// # Errors
/// Before Linux 4.2.
pub fn bind_address_without_port(socket: BorrowedFd<'_>) -> io::Result<()> {
    // Both address families have this option.
    set_option(socket, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Datagrams that the kernel dropped at this socket since it was opened, because its buffer was full
/// (`SK_MEMINFO_DROPS`, `include/uapi/linux/sock_diag.h`); 0 before Linux 4.13.
#[must_use]
pub fn receive_drops(socket: BorrowedFd<'_>) -> u64 {
    const DROPS: usize = 8;
    let figures = option::<{ DROPS + 1 }>(socket, libc::SOL_SOCKET, libc::SO_MEMINFO);
    figures.map_or(0, |figures| figures[DROPS].into())
}

/// The round trip to the peer as the kernel measured it, nanoseconds (`TCP_INFO`, tcp(7)); right after
/// connecting, that of the SYN. `None` if the kernel does not say.
#[must_use]
pub fn round_trip(socket: BorrowedFd<'_>) -> Option<u64> {
    const RTT: usize = offset_of!(libc::tcp_info, tcpi_rtt) / size_of::<u32>();
    let micros = option::<{ RTT + 1 }>(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?[RTT];
    (micros > 0).then(|| u64::from(micros) * 1_000)
}

/// From now on the calling thread runs only when no other has work for its CPU, and leaves at once when one
/// has (`SCHED_IDLE`, sched(7)). An unprivileged thread cannot undo that. On a CPU that is never free it
/// still gets some thousandths. If the kernel refuses, nothing changes.
pub fn set_idle_policy() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call, which reads it and writes nothing; 0 is the calling
    // thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}

/// Undoes [`set_idle_policy`] for a thread of this process, as root may. If the kernel refuses, nothing changes.
pub fn set_usual_policy(thread: rustix::process::Pid) {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameters` lives through the call, which reads it and writes nothing.
    unsafe {
        libc::sched_setscheduler(
            thread.as_raw_nonzero().get(),
            libc::SCHED_OTHER,
            &raw const parameters,
        )
    };
}

fn set_option(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    let length = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first words of a socket option; `None` if the kernel gives fewer.
fn option<const N: usize>(socket: BorrowedFd<'_>, level: c_int, option: c_int) -> Option<[u32; N]> {
    let mut words = [0; N];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the pointer and the length describe `words`, which outlive the call, and for which any octets
    // are a value; the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            option,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (result == 0 && length as usize == size_of_val(&words)).then_some(words)
}
