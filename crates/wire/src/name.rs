//! Names in wire form: where they end, their labels, their order (RFC 1035, sections 3.1 and 4.1.4).

use std::cmp::Ordering;

/// The place after the name at `at`: after its root label or its compression pointer. `None` if the message
/// ends before, or a label has an unknown type.
#[inline]
#[must_use]
pub fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
    }
}

/// The length of the name at the start of `octets`. It has no pointer, as the first name of a message: there
/// is nothing before it to point to. `None` as for [`after_name`], and for a pointer. The limit of 255 is not
/// checked.
#[inline]
#[must_use]
pub fn uncompressed_length(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match usize::from(*octets.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            _ => return None,
        }
    }
}

/// Where the labels of a wire name begin, the root's last.
pub struct Labels<'n> {
    name: &'n [u8],
    starts: [u8; 128],
    count: usize,
}

/// The labels of a wire name of at most 255 octets without pointers.
#[must_use]
pub fn labels(name: &[u8]) -> Labels<'_> {
    let (mut starts, mut count, mut at) = ([0; 128], 0, 0);
    while let Some(length @ 1..) = name.get(at).map(|length| usize::from(*length)) {
        if count == 127 {
            break;
        }
        starts[count] = at as u8;
        count += 1;
        at += 1 + length;
    }
    starts[count] = at.min(254) as u8;
    Labels { name, starts, count }
}

impl<'n> Labels<'n> {
    /// The number of labels without the root's.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The label at this place from the root: 0 is the top-level domain.
    ///
    /// # Panics
    /// When the name has no such label.
    #[must_use]
    pub fn under_root(&self, place: usize) -> &'n [u8] {
        let at = usize::from(self.starts[self.count - 1 - place]);
        let length = usize::from(self.name[at]);
        &self.name[at + 1..at + 1 + length]
    }

    /// Where the ancestor of so many labels begins; 0 labels is the root.
    ///
    /// # Panics
    /// When the name has fewer labels.
    #[must_use]
    pub fn start_of(&self, labels: usize) -> usize {
        usize::from(self.starts[self.count - labels])
    }

    /// The labels from the first one on, without the root's.
    pub fn iter(&self) -> impl Iterator<Item = &'n [u8]> {
        (0..self.count).rev().map(|place| self.under_root(place))
    }
}

/// The canonical order of two lower-cased wire names (RFC 4034, section 6.1).
#[must_use]
pub fn canonical_cmp(one: &[u8], other: &[u8]) -> Ordering {
    let (one, other) = (labels(one), labels(other));
    for place in 0..one.count().min(other.count()) {
        match one.under_root(place).cmp(other.under_root(place)) {
            Ordering::Equal => {}
            different => return different,
        }
    }
    one.count().cmp(&other.count())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_end_at_the_root_or_at_a_pointer() {
        let check = |octets: &[u8], after, length| {
            let found = (after_name(octets, 0), uncompressed_length(octets));
            assert_eq!(found, (after, length), "{octets:x?}");
        };
        check(b"\0", Some(1), Some(1));
        check(b"\x01a\x02bc\0rest", Some(6), Some(6));
        check(b"\xc0\x0c", Some(2), None);
        check(b"\x01a\xff\xff", Some(4), None);
        // Cut names, and label types that were never used (RFC 6891, section 5).
        for broken in [b"".as_slice(), b"\x01a", b"\x03ab", b"\x40", b"\x80"] {
            check(broken, None, None);
        }
        assert_eq!(after_name(b"head\x01a\0", 4), Some(7));
        assert_eq!(after_name(b"head", usize::MAX), None);
    }

    #[test]
    fn the_longest_names_have_labels() {
        let name: Vec<u8> = b"\x01a".repeat(127).into_iter().chain([0]).collect();
        let all = labels(&name);
        assert_eq!((name.len(), all.count(), all.start_of(0)), (255, 127, 254));
    }

    proptest! {
        #[test]
        fn both_agree_where_there_is_no_pointer(octets in prop::collection::vec(0u8..0xc0, 0..300)) {
            prop_assert_eq!(after_name(&octets, 0), uncompressed_length(&octets));
        }
    }
}
