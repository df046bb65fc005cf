//! Figures that the kernel keeps per socket.

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
