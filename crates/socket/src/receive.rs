//! Receives many datagrams, or groups of them, in one system call: `recvmmsg`, with `UDP_GRO` if a socket
//! asks for it.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr;

use crate::cmsg::{Ancillary, Control};
use crate::peer::{Peer, UNNAMED};

/// Octets of the largest possible group.
pub const MAX_GROUP: usize = 64 * 1024;

/// Buffers to receive into with one call. A worker has one, for all of its sockets in turn.
///
/// The headers are made once. They point into the other vectors, which never grow.
pub struct ReceiveBatch {
    headers: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_in6>,
    controls: Vec<Control>,
    octets: Vec<u8>,
    /// Octets of a slot.
    space: usize,
    /// Slots that the last call filled.
    filled: usize,
}

/// A received datagram, or several of one length and one sender.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The datagrams end to end.
    pub octets: &'a [u8],
    /// Octets of each but the last, which may be shorter.
    pub segment: usize,
    /// When the kernel had the first of them, nanoseconds since 1970, if
    /// [`enable_timestamps`](crate::enable_timestamps) was called.
    pub timestamp: Option<u64>,
    /// Whom they came from; unspecified if the batch is for connected sockets.
    pub peer: Peer,
}

impl ReceiveBatch {
    /// Room for `slots` groups of at most `space` octets, for connected sockets. Longer datagrams are cut.
    /// Only pages that are written to cost memory.
    #[must_use]
    pub fn connected(slots: usize, space: usize) -> Self {
        let mut batch = Self {
            // SAFETY: all-zero is a value of this C structure of integers and pointers.
            headers: vec![unsafe { zeroed() }; slots],
            parts: vec![libc::iovec { iov_base: ptr::null_mut(), iov_len: space }; slots],
            names: vec![UNNAMED; slots],
            controls: vec![Control::EMPTY; slots],
            octets: vec![0; slots * space],
            space,
            filled: 0,
        };
        let octets = batch.octets.as_mut_ptr();
        for (slot, part) in batch.parts.iter_mut().enumerate() {
            part.iov_base = octets.wrapping_add(slot * space).cast();
        }
        let (parts, controls) = (batch.parts.as_mut_ptr(), batch.controls.as_mut_ptr());
        for (slot, header) in batch.headers.iter_mut().enumerate() {
            header.msg_hdr.msg_iov = parts.wrapping_add(slot);
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = controls.wrapping_add(slot).cast();
            give_room(header);
        }
        batch
    }

    /// As [`ReceiveBatch::connected`], for unconnected sockets: a group then has its peer.
    #[must_use]
    pub fn unconnected(slots: usize, space: usize) -> Self {
        let mut batch = Self::connected(slots, space);
        let names = batch.names.as_mut_ptr();
        for (slot, header) in batch.headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = names.wrapping_add(slot).cast();
        }
        batch
    }

    /// Receives without waiting, in place of what was received before. True if all slots were filled, so that
    /// more may wait.
    ///
    /// # Errors
    /// As recvmmsg(2): `WouldBlock` when nothing is there.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        // The last call wrote how much room it used.
        self.headers[..self.filled].iter_mut().for_each(give_room);
        self.filled = 0;
        // SAFETY: each header leads to a part, a name and a control buffer of its own, and each part to
        // octets of its own, in vectors that live as long as `self`, do not grow, and are of the lengths that
        // the header states.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        self.filled = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        Ok(self.filled == self.headers.len())
    }

    /// What the last call has received, in order.
    #[inline]
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let slots = self.octets.chunks(self.space).zip(&self.controls).zip(&self.names);
        self.headers[..self.filled].iter().zip(slots).map(|(header, ((octets, control), name))| {
            let octets = &octets[..(header.msg_len as usize).min(octets.len())];
            let Ancillary { segment, timestamp, local } =
                Ancillary::read(&control.octets[..header.msg_hdr.msg_controllen]);
            let segment = segment.unwrap_or(octets.len());
            Group { octets, segment, timestamp, peer: Peer { name: *name, local } }
        })
    }
}

/// Lets the kernel use all the room for a name and control messages.
fn give_room(header: &mut libc::mmsghdr) {
    header.msg_hdr.msg_namelen = size_of_val(&UNNAMED) as libc::socklen_t;
    header.msg_hdr.msg_controllen = size_of_val(&Control::EMPTY.octets);
}

impl<'a> Group<'a> {
    /// The datagrams one by one.
    #[inline]
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        dnslab_wire::datagrams(self.octets, self.segment)
    }
}
