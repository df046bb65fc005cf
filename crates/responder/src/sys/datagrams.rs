//! Batches of queries in, batches of answers out.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::answer::MAX_DATAGRAM;

/// Datagrams that one system call carries. At 64 the call itself is already below a twentieth of
/// what the kernel spends on the datagrams.
pub(crate) const BATCH: usize = 64;

/// Octets kept of a query. Longer ones are cut, and so found broken; with an OPT record and padding
/// (RFC 8467) queries stay far below.
const QUERY_SPACE: usize = 2048;

/// Room for one `IP_PKTINFO` or `IPV6_PKTINFO` message with its header: 16 + 20 octets at most,
/// padded.
const CONTROL_SPACE: usize = 40;

/// Where an answer goes, and from which local address.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    /// The client's address, as the kernel wrote it.
    address: libc::sockaddr_in6,
    /// Octets of the address; an IPv4 address takes the first 16.
    address_length: libc::socklen_t,
    /// The kernel's word on the local address; given back as it came, it sets the answer's source
    /// (ip(7), `IP_PKTINFO`: `ipi_spec_dst`; RFC 3542, section 6.2).
    control: Control,
    /// Octets of it; 0 if the socket does not report it.
    control_length: usize,
}

/// A control message, aligned as its header wants.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_SPACE]);

/// The buffers of one worker, used for each of its sockets in turn: slot `n` holds the n-th query
/// received and the answer to it.
pub(crate) struct DatagramBatch {
    /// Received octets.
    queries: Vec<[u8; QUERY_SPACE]>,
    /// Octets to send.
    answers: Vec<[u8; MAX_DATAGRAM]>,
    /// Whom they came from, and to whom they go.
    peers: Vec<Peer>,
    /// Lengths of the received queries.
    lengths: [usize; BATCH],
    /// Slots with an answer to be sent, each with the answer's length.
    queued: Vec<(usize, usize)>,
}

/// What became of a batch of answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Taken by the kernel.
    pub(crate) sent: u64,
    /// Refused by the kernel: no buffer space, or no route back.
    pub(crate) refused: u64,
}

impl DatagramBatch {
    /// Makes the buffers, about 220 KiB.
    pub(crate) fn new() -> Self {
        // SAFETY: `sockaddr_in6` is a C structure of integers, for which zero is a value.
        let address: libc::sockaddr_in6 = unsafe { MaybeUninit::zeroed().assume_init() };
        let peer = Peer {
            address,
            address_length: 0,
            control: Control([0; CONTROL_SPACE]),
            control_length: 0,
        };
        Self {
            queries: vec![[0; QUERY_SPACE]; BATCH],
            answers: vec![[0; MAX_DATAGRAM]; BATCH],
            peers: vec![peer; BATCH],
            lengths: [0; BATCH],
            queued: Vec::with_capacity(BATCH),
        }
    }

    /// Receives up to [`BATCH`] datagrams without waiting and returns how many came.
    ///
    /// # Errors
    /// Of the kind `WouldBlock` when there is none; otherwise a fault of the socket.
    pub(crate) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|slot| libc::iovec {
            iov_base: self.queries[slot].as_mut_ptr().cast(),
            iov_len: QUERY_SPACE,
        });
        let vectors = vectors.as_mut_ptr();
        let mut headers: [libc::mmsghdr; BATCH] = std::array::from_fn(|slot| {
            let peer = &mut self.peers[slot];
            libc::mmsghdr {
                msg_hdr: libc::msghdr {
                    msg_name: (&raw mut peer.address).cast(),
                    msg_namelen: size_of::<libc::sockaddr_in6>() as libc::socklen_t,
                    // In bounds: both arrays have `BATCH` places.
                    msg_iov: vectors.wrapping_add(slot),
                    msg_iovlen: 1,
                    msg_control: (&raw mut peer.control).cast(),
                    msg_controllen: CONTROL_SPACE,
                    msg_flags: 0,
                },
                msg_len: 0,
            }
        });
        // SAFETY: every header points to buffers that live in `self` or on this stack until after
        // the call, each with its own length, and no two share octets.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (slot, header) in headers.iter().enumerate().take(count) {
            self.lengths[slot] = (header.msg_len as usize).min(QUERY_SPACE);
            self.peers[slot].address_length = header.msg_hdr.msg_namelen;
            self.peers[slot].control_length = header.msg_hdr.msg_controllen;
        }
        Ok(count)
    }

    /// The received query of a slot, and the space for its answer.
    pub(crate) fn exchange(&mut self, slot: usize) -> (&[u8], &mut [u8]) {
        (&self.queries[slot][..self.lengths[slot]], &mut self.answers[slot])
    }

    /// The first octets of a slot's answer space.
    pub(crate) fn answer(&self, slot: usize, length: usize) -> &[u8] {
        &self.answers[slot][..length]
    }

    /// Whom the slot's query came from.
    pub(crate) fn peer(&self, slot: usize) -> Peer {
        self.peers[slot]
    }

    /// Lets the slot's answer be sent.
    pub(crate) fn queue(&mut self, slot: usize, length: usize) {
        self.queued.push((slot, length));
    }

    /// Lets an answer be sent that was kept elsewhere. Only between two calls of
    /// [`DatagramBatch::receive`] whose answers have left.
    pub(crate) fn queue_kept(&mut self, peer: &Peer, answer: &[u8]) {
        let slot = self.queued.len();
        self.peers[slot] = *peer;
        self.answers[slot][..answer.len()].copy_from_slice(answer);
        self.queued.push((slot, answer.len()));
    }

    /// True if no further answer can be queued.
    pub(crate) fn is_full(&self) -> bool {
        self.queued.len() == BATCH
    }

    /// Sends what was queued. What the kernel refuses is counted and not tried again: the client
    /// sees it as lost, as it would on the network.
    pub(crate) fn send(&mut self, socket: BorrowedFd<'_>) -> Sent {
        let mut outcome = Sent::default();
        let count = self.queued.len();
        if count == 0 {
            return outcome;
        }
        let answers = self.answers.as_mut_ptr();
        let queued = &self.queued;
        let mut vectors: [libc::iovec; BATCH] = std::array::from_fn(|place| {
            let (slot, length) = queued.get(place).copied().unwrap_or((0, 0));
            libc::iovec { iov_base: answers.wrapping_add(slot).cast(), iov_len: length }
        });
        let vectors = vectors.as_mut_ptr();
        let peers = self.peers.as_mut_ptr();
        let mut headers: [libc::mmsghdr; BATCH] = std::array::from_fn(|place| {
            let (slot, _) = queued.get(place).copied().unwrap_or((0, 0));
            let Peer { address_length, control_length, .. } = self.peers[slot];
            let peer = peers.wrapping_add(slot);
            // SAFETY: `slot` was given out by `receive` or `queue_kept` and lies in the vector.
            let (address, control) =
                unsafe { (&raw mut (*peer).address, &raw mut (*peer).control) };
            libc::mmsghdr {
                msg_hdr: libc::msghdr {
                    msg_name: address.cast(),
                    msg_namelen: address_length,
                    msg_iov: vectors.wrapping_add(place),
                    msg_iovlen: 1,
                    msg_control: if control_length > 0 { control.cast() } else { ptr::null_mut() },
                    msg_controllen: control_length,
                    msg_flags: 0,
                },
                msg_len: 0,
            }
        });
        let mut first = 0;
        while first < count {
            // SAFETY: the headers from `first` to `count` point to buffers that live in `self` or
            // on this stack until after the call; the kernel only reads them.
            let sent = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    headers.as_mut_ptr().add(first),
                    (count - first) as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            };
            match usize::try_from(sent) {
                Ok(sent) if sent > 0 => {
                    outcome.sent += sent as u64;
                    first += sent;
                }
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                // The error is that of the first datagram left.
                _ => {
                    outcome.refused += 1;
                    first += 1;
                }
            }
        }
        self.queued.clear();
        outcome
    }
}
