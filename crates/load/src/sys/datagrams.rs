//! Many datagrams in one system call: sendmmsg and recvmmsg, with segmentation offload where the
//! kernel has it (`UDP_SEGMENT` and `UDP_GRO`, udp(7)). One large datagram then goes through the
//! kernel's layers once and is cut, or was put together, at their lower end.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::outbox::{BATCH, Outbox, Run};
use super::socket::switch_on;

/// Datagrams, or groups of them, received in one call at most.
const SLOTS: usize = 32;

/// Room for one received group, octets: the largest that there is. Only the pages that are written
/// to cost memory.
const SLOT: usize = 64 * 1024;

/// Room for two control messages, one with a length and one with a time (24 and 32 octets), aligned
/// as the kernel wants them.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 56]);

/// A received datagram, or a group of them, in its slot.
#[derive(Clone, Copy, Default)]
struct Filled {
    /// Octets of all of them.
    length: usize,
    /// Octets of each but the last.
    segment: usize,
    /// When the kernel had the first of them, nanoseconds since 1970, if it was asked to say.
    stamp: Option<u64>,
}

/// Buffers and headers to receive a batch into; one per worker, reused by all its sockets.
pub(crate) struct Inbox {
    octets: Box<[u8]>,
    filled: [Filled; SLOTS],
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            octets: vec![0; SLOTS * SLOT].into_boxed_slice(),
            filled: [Filled::default(); SLOTS],
        }
    }
}

impl Inbox {
    /// The datagrams in the first `slots` slots.
    #[cfg(test)]
    pub(crate) fn datagrams(&self, slots: usize) -> impl Iterator<Item = &[u8]> {
        self.stamped(slots).map(|(octets, _)| octets)
    }

    /// The groups in the first `slots` slots, each with the length of its datagrams; the last may be
    /// shorter.
    pub(crate) fn groups(&self, slots: usize) -> impl Iterator<Item = (&[u8], usize)> {
        let filled = self.octets.chunks(SLOT).zip(self.filled).take(slots);
        filled.map(|(octets, filled)| (&octets[..filled.length.min(SLOT)], filled.segment))
    }

    /// The datagrams in the first `slots` slots, each with the time at which the kernel had the
    /// first of its group, in nanoseconds since 1970, if [`enable_stamps`] was called before.
    pub(crate) fn stamped(&self, slots: usize) -> impl Iterator<Item = (&[u8], Option<u64>)> {
        self.octets.chunks(SLOT).zip(self.filled).take(slots).flat_map(|(octets, filled)| {
            let Filled { length, segment, stamp } = filled;
            let octets = &octets[..length.min(SLOT)];
            // An empty datagram is one too, though it has no chunk.
            let empty = octets.is_empty().then_some(octets);
            let datagrams = empty.into_iter().chain(octets.chunks(segment.max(1)));
            datagrams.map(move |octets| (octets, stamp))
        })
    }
}

/// Asks the kernel to hand over groups of datagrams; false where it does not.
pub(crate) fn enable_receive_groups(socket: BorrowedFd<'_>) -> bool {
    switch_on(socket, libc::SOL_UDP, libc::UDP_GRO).is_ok()
}

/// Asks the kernel to say when each datagram came (`SO_TIMESTAMPNS`, socket(7)); false where it
/// does not.
pub(crate) fn enable_stamps(socket: BorrowedFd<'_>) -> bool {
    switch_on(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS).is_ok()
}

/// Receives without waiting into at most 32 slots of `inbox`; how many were filled. True beside it
/// if all were, so that more may wait.
///
/// # Errors
/// As recvmmsg(2); `WouldBlock` when nothing is there.
pub(crate) fn receive_batch(
    socket: BorrowedFd<'_>,
    inbox: &mut Inbox,
) -> io::Result<(usize, bool)> {
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; SLOTS];
    let mut controls = [Control([0; 56]); SLOTS];
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut headers: [libc::mmsghdr; SLOTS] = unsafe { zeroed() };
    let slots = inbox.octets.chunks_mut(SLOT);
    for (((slot, part), control), header) in
        slots.zip(&mut parts).zip(&mut controls).zip(&mut headers)
    {
        part.iov_base = slot.as_mut_ptr().cast();
        part.iov_len = slot.len();
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_control = (&raw mut *control).cast();
        header.msg_hdr.msg_controllen = size_of::<Control>();
    }
    // SAFETY: every header points to one part and one control buffer, and every part to its own
    // slot of `inbox`; all of them outlive the call.
    let count = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            SLOTS as libc::c_uint,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
        )
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    for (filled, header) in inbox.filled.iter_mut().zip(&headers[..count]) {
        let length = header.msg_len as usize;
        *filled = Filled { length, segment: length, stamp: None };
        read_controls(&header.msg_hdr, filled);
    }
    Ok((count, count == SLOTS))
}

/// Takes what the kernel says beside a received group: the length of the datagrams in it, and when
/// it came.
fn read_controls(header: &libc::msghdr, filled: &mut Filled) {
    // SAFETY: the kernel has filled the control buffer that the header points to, and the macros
    // stay inside of it; each value is read as what its type says it is.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = next.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let value = data.cast::<libc::c_int>().read_unaligned();
                    filled.segment = usize::try_from(value).unwrap_or(filled.length);
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    let stamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                    filled.stamp = Some(stamp);
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, control);
        }
    }
}

/// Sends the messages of `outbox` from number `first` on, at most [`BATCH`] groups, as one datagram
/// each to the connected peer without waiting; how many the kernel took. Up to `longest` neighbours
/// of one length go down as one group.
///
/// # Errors
/// As sendmmsg(2), when it took none.
pub(crate) fn send_batch(
    socket: BorrowedFd<'_>,
    outbox: &Outbox,
    first: usize,
    longest: usize,
) -> io::Result<usize> {
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
    let mut controls = [Control([0; 56]); BATCH];
    let mut counts = [0; BATCH];
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    let mut used = 0;
    for (number, run) in outbox.runs(first, longest).take(BATCH).enumerate() {
        parts[number].iov_base = run.octets.as_ptr().cast_mut().cast();
        parts[number].iov_len = run.octets.len();
        let header = &mut headers[number].msg_hdr;
        header.msg_iov = &raw mut parts[number];
        header.msg_iovlen = 1;
        if run.count > 1 {
            ask_for_segments(header, &mut controls[number], &run);
        }
        counts[number] = run.count;
        used += 1;
    }
    // SAFETY: `used` headers point to one part each, which points into `outbox`, and to control
    // buffers; the kernel only reads from them, and all outlive the call.
    let taken = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), used, libc::MSG_DONTWAIT)
    };
    let taken = usize::try_from(taken).map_err(|_| io::Error::last_os_error())?;
    Ok(counts[..taken].iter().sum())
}

/// Adds the control message that makes the kernel cut the datagram into segments.
fn ask_for_segments(header: &mut libc::msghdr, control: &mut Control, run: &Run<'_>) {
    header.msg_control = (&raw mut *control).cast();
    // SAFETY: the control buffer has room for one message with two octets of data (24 octets in
    // all), and the macros stay inside of it.
    unsafe {
        header.msg_controllen = libc::CMSG_SPACE(size_of::<u16>() as libc::c_uint) as usize;
        let first = libc::CMSG_FIRSTHDR(header);
        (*first).cmsg_level = libc::SOL_UDP;
        (*first).cmsg_type = libc::UDP_SEGMENT;
        (*first).cmsg_len = libc::CMSG_LEN(size_of::<u16>() as libc::c_uint) as usize;
        libc::CMSG_DATA(first).cast::<u16>().write_unaligned(run.length as u16);
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let (a, b) = (UdpSocket::bind("[::1]:0").unwrap(), UdpSocket::bind("[::1]:0").unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        (a, b)
    }

    /// Whatever is grouped on the way, the same messages arrive in the same order.
    #[track_caller]
    fn check(lengths: &[usize], longest: usize, receive_groups: bool) {
        let (a, b) = pair();
        assert!(!receive_groups || enable_receive_groups(b.as_fd()));
        let mut outbox = Outbox::default();
        for (number, length) in lengths.iter().enumerate() {
            outbox.push_with(|octets| octets.resize(octets.len() + length, number as u8));
        }
        let mut sent = 0;
        while sent < lengths.len() {
            sent += send_batch(a.as_fd(), &outbox, sent, longest).unwrap();
        }
        let mut inbox = Inbox::default();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        while seen.len() < lengths.len() {
            let (slots, _) = receive_batch(b.as_fd(), &mut inbox).unwrap();
            seen.extend(inbox.datagrams(slots).map(<[u8]>::to_vec));
        }
        let expected: Vec<Vec<u8>> = outbox.messages().map(<[u8]>::to_vec).collect();
        assert_eq!(seen, expected);
        let error = receive_batch(b.as_fd(), &mut inbox).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_is_sent_is_received_in_order() {
        let one_length = [40; BATCH];
        let mixed: Vec<usize> = (0..BATCH).map(|number| 20 + number / 5 % 3).collect();
        let all_different: Vec<usize> = (0..BATCH).map(|number| 2 + number).collect();
        for lengths in [&one_length[..], &mixed, &all_different, &[1_400; 40], &[17]] {
            for longest in [1, 64, BATCH] {
                check(lengths, longest, false);
                check(lengths, longest, true);
            }
        }
    }

    #[test]
    fn empty_datagrams_are_seen() {
        let (a, b) = pair();
        a.send(&[]).unwrap();
        let mut inbox = Inbox::default();
        let (slots, _) = receive_batch(b.as_fd(), &mut inbox).unwrap();
        assert_eq!(inbox.datagrams(slots).collect::<Vec<_>>(), [&[] as &[u8]]);
    }

    #[test]
    fn the_kernel_says_when_datagrams_came() {
        let (a, b) = pair();
        let now = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.unwrap().as_nanos() as u64
        };
        enable_receive_groups(b.as_fd());
        assert!(enable_stamps(b.as_fd()));
        let before = now();
        let mut outbox = Outbox::default();
        for _ in 0..3 {
            outbox.push_with(|octets| octets.resize(octets.len() + 30, 1));
        }
        assert_eq!(send_batch(a.as_fd(), &outbox, 0, 64).unwrap(), 3);
        let mut inbox = Inbox::default();
        let (slots, _) = receive_batch(b.as_fd(), &mut inbox).unwrap();
        let stamps: Vec<u64> = inbox.stamped(slots).filter_map(|(_, stamp)| stamp).collect();
        assert_eq!(stamps.len(), 3);
        assert!(stamps.iter().all(|stamp| (before..=now()).contains(stamp)), "{stamps:?}");
    }

    #[test]
    fn drops_are_counted() {
        let (a, b) = pair();
        let full = 4_000;
        for _ in 0..full {
            a.send(&[0; 1_000]).unwrap();
        }
        let mut received = 0;
        let mut inbox = Inbox::default();
        while let Ok((slots, _)) = receive_batch(b.as_fd(), &mut inbox) {
            received += inbox.datagrams(slots).count();
        }
        assert_eq!(super::super::socket_drops(b.as_fd()), (full - received) as u64);
        assert!(received < full, "a socket's buffer does not hold four megaoctets by default");
    }
}
