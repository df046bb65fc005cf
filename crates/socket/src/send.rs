//! Sends many datagrams in one system call: `sendmmsg`, with segmentation offload where the kernel has it
//! (`UDP_SEGMENT`, udp(7)). One large datagram then passes the kernel's layers once and is cut at their lower
//! end.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::cmsg::Control;
use crate::peer::Peer;

/// The most datagrams, or groups of them, that one call sends. The kernel cuts one datagram into as many
/// (`UDP_MAX_SEGMENTS` in `include/linux/udp.h`).
pub const MAX_BATCH: usize = 128;

/// The most octets of a run. A group of segments is one datagram until it is cut, and a datagram has at most
/// 65,507 octets (RFC 768 and RFC 791).
const MAX_RUN: usize = 60_000;

/// Messages to send, end to end in one buffer.
#[derive(Default)]
pub struct SendBatch {
    octets: Vec<u8>,
    /// Where each message ends.
    ends: Vec<u32>,
    /// Empty if the socket is connected.
    peers: Vec<Peer>,
}

/// Neighbours of one length.
struct Run<'a> {
    /// End to end.
    octets: &'a [u8],
    count: usize,
    /// Octets of each message.
    length: usize,
    peer: Option<&'a Peer>,
}

impl SendBatch {
    /// Forgets the messages.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
        self.peers.clear();
    }

    /// Adds the message that `write` appends to the buffer, for the peer of a connected socket.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.octets);
        self.ends.push(self.octets.len() as u32);
    }

    /// Adds a message for this peer. A batch has a peer for every message or for none.
    #[inline]
    pub fn push_to(&mut self, peer: Peer, message: &[u8]) {
        self.push_with(|octets| octets.extend_from_slice(message));
        self.peers.push(peer);
    }

    /// How many messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True without messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Octets of each message, in order.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|number| self.end(number) - self.start(number))
    }

    /// The messages in order.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| &self.octets[self.start(number)..self.end(number)])
    }

    /// Sends the messages from number `first` on without waiting, one datagram each, in at most [`MAX_BATCH`]
    /// groups. Returns how many messages the kernel took. Up to `max_segments` neighbours of one length are
    /// one group; it must be 1 if messages have peers.
    ///
    /// # Errors
    /// As sendmmsg(2) for the first message, if none was taken: see [`refuses_segmentation`].
    pub fn send(
        &self,
        socket: BorrowedFd<'_>,
        first: usize,
        max_segments: usize,
    ) -> io::Result<usize> {
        // Only the used part is written.
        let mut slots = [const { MaybeUninit::uninit() }; MAX_BATCH];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_BATCH];
        let mut counts = [0_u32; MAX_BATCH];
        let mut used = 0;
        let places = slots.iter_mut().zip(&mut headers).zip(&mut counts);
        for (((slot, place), count), run) in places.zip(self.runs(first, max_segments)) {
            let segment = (run.count > 1).then_some(run.length);
            let msg_hdr = header(slot, run.octets, segment, run.peer);
            place.write(libc::mmsghdr { msg_hdr, msg_len: 0 });
            *count = run.count as u32;
            used += 1;
        }
        // SAFETY: so many headers were written; what they lead to lies in `slots` and `self`, which outlive
        // the call, and the kernel only reads it.
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

    /// The messages from number `first` on; neighbours of one length are together, at most `longest` in a
    /// run.
    fn runs(&self, first: usize, longest: usize) -> impl Iterator<Item = Run<'_>> {
        let (mut start, mut ends) = (self.start(first), self.ends.get(first..).unwrap_or_default());
        let mut peers = self.peers.get(first..).unwrap_or_default().iter();
        std::iter::from_fn(move || {
            let mut end = *ends.first()? as usize;
            let (length, mut count) = (end - start, 1);
            while count < longest
                && end + length <= start + MAX_RUN
                && ends.get(count).is_some_and(|next| *next as usize == end + length)
            {
                end += length;
                count += 1;
            }
            let octets = &self.octets[start..end];
            (start, ends) = (end, &ends[count..]);
            Some(Run { octets, count, length, peer: peers.next() })
        })
    }

    fn start(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.end(before))
    }

    fn end(&self, number: usize) -> usize {
        self.ends[number] as usize
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_length_are_together() {
        let of = |lengths: &[usize]| {
            let mut batch = SendBatch::default();
            for length in lengths {
                batch.push_with(|octets| octets.resize(octets.len() + length, 9));
            }
            batch
        };
        let batch = of(&[12, 12, 12, 15, 12, 12]);
        let runs = |first, longest| -> Vec<(usize, usize)> {
            batch.runs(first, longest).map(|run| (run.count, run.length)).collect()
        };
        assert_eq!(runs(0, 64), [(3, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(1, 64), [(2, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(0, 2), [(2, 12), (1, 12), (1, 15), (2, 12)]);
        assert_eq!(runs(6, 64), []);
        let counts: Vec<usize> = of(&[1_232; 100]).runs(0, 128).map(|run| run.count).collect();
        assert_eq!(counts, [48, 48, 4]);
        assert_eq!(batch.messages().map(<[u8]>::len).sum::<usize>(), 75);
        assert_eq!(batch.runs(4, 64).next().unwrap().octets[..3], [9, 9, 9]);
    }
}
