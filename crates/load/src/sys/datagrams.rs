//! Many datagrams in one system call.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Datagrams in one call at most. More gains nothing (measured: 32 and 64 are alike) and would
/// delay the first of the batch.
pub(crate) const BATCH: usize = 64;

/// Room for one received datagram, octets. A longer one is cut, but its true length is known.
const DATAGRAM: usize = 4096;

/// Buffers and headers to receive a batch into; one per worker, reused by all its sockets.
pub(crate) struct Inbox {
    octets: Box<[u8]>,
    lengths: [usize; BATCH],
}

/// Messages to send as one batch, end to end in one buffer.
#[derive(Default)]
pub(crate) struct Outbox {
    octets: Vec<u8>,
    ends: Vec<u32>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { octets: vec![0; BATCH * DATAGRAM].into_boxed_slice(), lengths: [0; BATCH] }
    }
}

impl Inbox {
    /// The first `count` datagrams of the last receive, each with its true length in octets.
    pub(crate) fn datagrams(&self, count: usize) -> impl Iterator<Item = (&[u8], usize)> {
        self.octets
            .chunks(DATAGRAM)
            .zip(self.lengths)
            .take(count)
            .map(|(octets, length)| (&octets[..length.min(DATAGRAM)], length))
    }
}

impl Outbox {
    /// Forgets the messages.
    pub(crate) fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
    }

    /// Adds a message with its first two octets, the id, replaced.
    #[inline]
    pub(crate) fn push(&mut self, id: u16, message: &[u8]) {
        self.octets.extend_from_slice(&id.to_be_bytes());
        self.octets.extend_from_slice(&message[2..]);
        self.ends.push(self.octets.len() as u32);
    }

    /// How many messages.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The messages in order.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.octets[start as usize..*end as usize])
    }
}

/// Receives up to [`BATCH`] datagrams without waiting; how many came. Zero octets long ones count.
///
/// # Errors
/// As recvmmsg(2); `WouldBlock` when none is there.
pub(crate) fn receive_batch(socket: BorrowedFd<'_>, inbox: &mut Inbox) -> io::Result<usize> {
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    for (slot, (part, header)) in
        inbox.octets.chunks_mut(DATAGRAM).zip(parts.iter_mut().zip(&mut headers))
    {
        part.iov_base = slot.as_mut_ptr().cast();
        part.iov_len = slot.len();
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
    }
    // MSG_TRUNC: the length is that of the datagram, even when it was longer than its slot.
    // SAFETY: every header points to one part, and every part to its own slot of `inbox`.
    let count = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            BATCH as libc::c_uint,
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            std::ptr::null_mut(),
        )
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    for (length, header) in inbox.lengths.iter_mut().zip(&headers[..count]) {
        *length = header.msg_len as usize;
    }
    Ok(count)
}

/// Sends the messages of `outbox` from number `first` on, at most [`BATCH`], as one datagram each to
/// the connected peer without waiting; how many the kernel took.
///
/// # Errors
/// As sendmmsg(2), when it took none.
pub(crate) fn send_batch(
    socket: BorrowedFd<'_>,
    outbox: &Outbox,
    first: usize,
) -> io::Result<usize> {
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH];
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    let messages = outbox.messages().skip(first);
    for (message, (part, header)) in messages.zip(parts.iter_mut().zip(&mut headers)) {
        part.iov_base = message.as_ptr().cast_mut().cast();
        part.iov_len = message.len();
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: `count` headers point to one part each, which points into `outbox`; the kernel only
    // reads from them.
    let taken = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count, libc::MSG_DONTWAIT)
    };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
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

    #[test]
    fn what_is_sent_is_received_in_order() {
        let (a, b) = pair();
        let mut outbox = Outbox::default();
        let messages: Vec<Vec<u8>> =
            (0..BATCH).map(|n| vec![0, 0].into_iter().chain(vec![7; n]).collect()).collect();
        for (id, message) in messages.iter().enumerate() {
            outbox.push(id as u16, message);
        }
        assert_eq!(send_batch(a.as_fd(), &outbox, 0).unwrap(), BATCH);
        let mut inbox = Inbox::default();
        let mut seen = 0;
        while seen < BATCH {
            let count = receive_batch(b.as_fd(), &mut inbox).unwrap();
            for (octets, length) in inbox.datagrams(count) {
                assert_eq!(length, messages[seen].len());
                assert_eq!(octets[..2], (seen as u16).to_be_bytes());
                assert_eq!(octets[2..], messages[seen][2..]);
                seen += 1;
            }
        }
        let error = receive_batch(b.as_fd(), &mut inbox).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_longer_datagram_keeps_its_true_length() {
        let (a, b) = pair();
        a.send(&vec![1; 9_000]).unwrap();
        let mut inbox = Inbox::default();
        assert_eq!(receive_batch(b.as_fd(), &mut inbox).unwrap(), 1);
        let (octets, length) = inbox.datagrams(1).next().unwrap();
        assert_eq!((octets.len(), length), (DATAGRAM, 9_000));
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
        while let Ok(count) = receive_batch(b.as_fd(), &mut inbox) {
            received += count;
        }
        assert_eq!(super::super::socket_drops(b.as_fd()), (full - received) as u64);
        assert!(received < full, "a socket's buffer does not hold four megaoctets by default");
    }
}
