//! Packets that leave in one system call (`UDP_SEGMENT`).

/// Octets that a kernel cuts into segments at most: 65,535 less the headers of IPv6 and UDP.
const MAX_GROUP: usize = 65_535 - 48;

/// Segments of one group at most; what older kernels take (`UDP_MAX_SEGMENTS`, linux/udp.h).
const MAX_SEGMENTS: usize = 64;

/// How many packets of this length one group may hold.
pub(super) fn segments_of(mtu: u16) -> usize {
    (MAX_GROUP / usize::from(mtu)).clamp(1, MAX_SEGMENTS)
}
