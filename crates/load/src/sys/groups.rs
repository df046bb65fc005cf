//! Octets that go out as many datagrams of one length in one system call (`UDP_SEGMENT`, udp(7)):
//! QUIC makes its packets end to end.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Room for one control message with a 16 bit value, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 24]);

/// Sends octets to the connected peer without waiting, cut into datagrams of `segment` octets; the
/// last may be shorter.
///
/// # Errors
/// As sendmsg(2); then nothing was sent.
pub(crate) fn send_group(socket: BorrowedFd<'_>, octets: &[u8], segment: usize) -> io::Result<()> {
    let mut part =
        libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
    let mut control = Control([0; 24]);
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if octets.len() > segment {
        header.msg_control = (&raw mut control).cast();
        // SAFETY: the control buffer has room for one message with two octets of data (24 octets
        // in all), and the macros stay inside of it.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as libc::c_uint) as usize;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_UDP;
            (*first).cmsg_type = libc::UDP_SEGMENT;
            (*first).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as libc::c_uint) as usize;
            libc::CMSG_DATA(first).cast::<u16>().write_unaligned(segment as u16);
        }
    }
    // SAFETY: the header points to one part and one control buffer; the kernel only reads from
    // them, and all outlive the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
