//! Packets that were captured twice: at two interfaces of a host (`tcpdump -i any` on a bridge), or at two ports of a
//! switch that mirrors both.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::net::SocketAddr;

use crate::generations::Generations;

/// A packet that comes again within this time was captured twice, in nanoseconds of the capture. From one interface of
/// a host to the next it takes microseconds; no client asks again so soon.
const WITHIN_NS: u64 = 1_000_000;

/// How long packets are remembered, at least, in nanoseconds of the capture. Interfaces hand over what they captured in
/// turn, so that the second packet may stand far behind the first.
const REMEMBERED_NS: u64 = 2_000_000_000;

/// The most packets of one generation. Both together take 18 MiB.
const MAX_ENTRIES: usize = 1 << 18;

/// The queries over UDP that were seen last, each with the instant of its first packet.
#[derive(Debug)]
pub(crate) struct Duplicates {
    seen: Generations<u64, u64>,
    turned_at: u64,
}

impl Duplicates {
    pub(crate) fn new() -> Self {
        Self { seen: Generations::new(), turned_at: 0 }
    }

    /// Takes a query. True if it was captured before: from and to the same addresses and ports, with the same
    /// identification of IPv4, and equal octets, within a millisecond.
    pub(crate) fn is_duplicate(
        &mut self,
        at_ns: u64,
        ends: (SocketAddr, SocketAddr),
        ip_id: u32,
        message: &[u8],
    ) -> bool {
        // That two packets differ and have the same number is as good as impossible, and then costs a query.
        let mut hasher = DefaultHasher::new();
        (ends, ip_id).hash(&mut hasher);
        hasher.write(message);
        let key = hasher.finish();
        let is_old = at_ns.saturating_sub(self.turned_at) > REMEMBERED_NS;
        if is_old || self.seen.young() >= MAX_ENTRIES {
            drop(self.seen.turn());
            self.turned_at = at_ns;
        }
        match self.seen.get(&key) {
            Some(first_ns) if first_ns.abs_diff(at_ns) <= WITHIN_NS => return true,
            Some(first_ns) => *first_ns = at_ns,
            None => self.seen.insert(key, at_ns),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{client, query, server};

    const MS: u64 = 1_000_000;

    #[test]
    fn a_packet_is_the_same_within_a_millisecond() {
        let mut duplicates = Duplicates::new();
        let mut check = |at_ns, number, ip_id, expected| {
            let ends = (client(number), server());
            let found = duplicates.is_duplicate(at_ns, ends, ip_id, &query(1));
            assert_eq!(found, expected, "{at_ns} {number} {ip_id}");
        };
        check(5 * MS, 0, 7, false);
        check(5 * MS + 3_000, 0, 7, true);
        // Clocks of two interfaces need not agree.
        check(4 * MS + 1, 0, 7, true);
        check(6 * MS, 0, 7, true);
        // Another port, and another packet of the same client.
        check(5 * MS, 1, 7, false);
        check(5 * MS, 0, 8, false);
        // A client that asks again, and that packet once more.
        check(6 * MS + 1, 0, 7, false);
        check(6 * MS + 2, 0, 7, true);
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let mut duplicates = Duplicates::new();
        let ends = (client(0), server());
        let mut is_duplicate =
            |number: u32| duplicates.is_duplicate(MS, ends, number, &query(number));
        assert!((0..2 * MAX_ENTRIES as u32 + 10).all(|number| !is_duplicate(number)));
        assert!(!is_duplicate(1));
        assert!(is_duplicate(2 * MAX_ENTRIES as u32 + 9));
        assert!(duplicates.seen.young() <= MAX_ENTRIES);
    }
}
