//! Sends many datagrams in one system call: `sendmmsg`, with segmentation offload where the kernel has it
//! (`UDP_SEGMENT`, udp(7)). One large datagram then passes the kernel's layers once and is cut at their lower
//! end.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use dnslab_wire::{MAX_BATCH, MessageBatch, Run};

use crate::cmsg::Control;
use crate::peer::Peer;

/// Messages, each with the peer that it goes to.
#[derive(Default)]
pub struct SendBatch {
    messages: MessageBatch,
    peers: Vec<Peer>,
}

impl SendBatch {
    /// Removes all messages.
    pub fn clear(&mut self) {
        self.messages.clear();
        self.peers.clear();
    }

    /// Adds a message for this peer.
    #[inline]
    pub fn push_to(&mut self, peer: Peer, message: &[u8]) {
        self.messages.push_with(|octets| octets.extend_from_slice(message));
        self.peers.push(peer);
    }

    /// How many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// True without messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Octets of each message, in order.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.messages.lengths()
    }

    /// Sends the messages from number `first` on without waiting, one datagram each, in at most
    /// [`MAX_BATCH`]; how many the kernel took.
    ///
    /// # Errors
    /// As sendmmsg(2) for the first message, when it took none.
    pub fn send(&self, socket: BorrowedFd<'_>, first: usize) -> io::Result<usize> {
        let peers = self.peers.get(first..).unwrap_or_default();
        send(socket, self.messages.runs(first, 1).zip(peers.iter().map(Some)))
    }
}

/// Sends messages from number `first` on to the peer of a connected socket, without waiting, in at most
/// [`MAX_BATCH`] groups; how many messages the kernel took. Up to `max_segments` neighbours of one length go
/// down as one group.
///
/// # Errors
/// As sendmmsg(2) for the first message, when it took none: see [`refuses_segmentation`].
pub fn send_batch(
    socket: BorrowedFd<'_>,
    messages: &MessageBatch,
    first: usize,
    max_segments: usize,
) -> io::Result<usize> {
    send(socket, messages.runs(first, max_segments).map(|run| (run, None)))
}

#[inline]
fn send<'a>(
    socket: BorrowedFd<'_>,
    runs: impl Iterator<Item = (Run<'a>, Option<&'a Peer>)>,
) -> io::Result<usize> {
    // Only what is used is written to.
    let mut slots = [const { MaybeUninit::uninit() }; MAX_BATCH];
    let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
    let mut counts = [0_u32; MAX_BATCH];
    let mut used = 0;
    let places = slots.iter_mut().zip(&mut headers).zip(&mut counts);
    for (((slot, place), count), (run, peer)) in places.zip(runs) {
        let segment = (run.count > 1).then_some(run.length);
        let msg_hdr = header(slot, run.octets, segment, peer);
        place.write(libc::mmsghdr { msg_hdr, msg_len: 0 });
        *count = run.count as u32;
        used += 1;
    }
    // SAFETY: so many headers were written; what they lead to lies in `slots` and in the messages and peers,
    // which outlive the call, and the kernel only reads it.
    let taken = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr().cast(),
            used,
            libc::MSG_DONTWAIT as _,
        )
    };
    let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
    Ok(counts[..taken].iter().sum::<u32>() as usize)
}

/// Sends messages from number `first` on to `target` without waiting, one datagram each, in at most
/// [`MAX_BATCH`]; how many the kernel took. Message `n` comes from the address number `n` of this host in
/// `sources`.
///
/// # Errors
/// As sendmmsg(2) for the first message, when it took none.
pub fn send_batch_from(
    socket: BorrowedFd<'_>,
    messages: &MessageBatch,
    sources: &[IpAddr],
    target: SocketAddr,
    first: usize,
) -> io::Result<usize> {
    let sources = sources.get(first..).unwrap_or_default();
    let mut peers = [Peer::new(target, None); MAX_BATCH];
    for (peer, source) in peers.iter_mut().zip(sources) {
        peer.local = Some((*source).into());
    }
    let peers = peers.iter().take(sources.len());
    send(socket, messages.runs(first, 1).zip(peers.map(Some)))
}

/// Sends octets without waiting, cut into datagrams of `segment` octets (the last may be shorter), to `peer`
/// or to that of a connected socket.
///
/// # Errors
/// As sendmsg(2), and nothing was sent: see [`refuses_segmentation`].
pub fn send_segments(
    socket: BorrowedFd<'_>,
    octets: &[u8],
    segment: usize,
    peer: Option<&Peer>,
) -> io::Result<()> {
    let segment = (octets.len() > segment).then_some(segment);
    let mut slot = MaybeUninit::uninit();
    let header = header(&mut slot, octets, segment, peer);
    // SAFETY: what the header leads to outlives the call, and the kernel only reads it.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// True if the kernel does not know segments (`EINVAL`, before 4.18) or not so many, or if the device has no
/// checksum offload and so cannot make them (`EIO`). Send fewer at once, in the end one by one.
#[must_use]
pub fn refuses_segmentation(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO))
}

/// What a header points to, without the octets and the peer.
struct Slot {
    part: libc::iovec,
    /// Written only if there are control messages.
    control: MaybeUninit<Control>,
}

/// A header that sends octets, cut into segments of this length if one is given. It points into `slot` and to
/// the octets and the peer, which must outlive its use.
#[inline]
fn header(
    slot: &mut MaybeUninit<Slot>,
    octets: &[u8],
    segment: Option<usize>,
    peer: Option<&Peer>,
) -> libc::msghdr {
    let part = libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
    let slot = slot.write(Slot { part, control: MaybeUninit::uninit() });
    // SAFETY: all-zero is a value of this C structure of integers and pointers.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut slot.part;
    header.msg_iovlen = 1;
    if let Some(peer) = peer {
        header.msg_name = (&raw const peer.name).cast_mut().cast();
        header.msg_namelen = peer.name_length();
    }
    let local = peer.and_then(|peer| peer.local.as_ref());
    if segment.is_some() || local.is_some() {
        let control = slot.control.write(Control::EMPTY);
        if let Some(segment) = segment {
            control.push_segment(segment);
        }
        if let Some(local) = local {
            control.push_local(local);
        }
        header.msg_controllen = control.used;
        header.msg_control = (&raw mut control.octets).cast();
    }
    header
}
