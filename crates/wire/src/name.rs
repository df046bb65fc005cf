//! Where names in messages end (RFC 1035, sections 3.1 and 4.1.4).

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

    proptest! {
        #[test]
        fn both_agree_where_there_is_no_pointer(octets in prop::collection::vec(0u8..0xc0, 0..300)) {
            prop_assert_eq!(after_name(&octets, 0), uncompressed_length(&octets));
        }
    }
}
