//! NSEC records (RFC 4034, section 4).

/// Appends the data of an NSEC record (RFC 4034, section 4.1). Types are in ascending order.
pub fn push_nsec(next: &[u8], types: impl IntoIterator<Item = u16>, octets: &mut Vec<u8>) {
    octets.extend_from_slice(next);
    push_type_bitmap(types, octets);
}

/// Appends a bitmap of types, which are in ascending order (RFC 4034, section 4.1.2).
pub fn push_type_bitmap(types: impl IntoIterator<Item = u16>, octets: &mut Vec<u8>) {
    // Where the octets of the last window begin; before them are its number and their count.
    let (mut bits_at, mut last) = (None, None);
    for rtype in types {
        debug_assert!(last.replace(rtype) < Some(rtype), "types in ascending order");
        let [window, place] = rtype.to_be_bytes();
        let at = match bits_at.filter(|at| octets[at - 2] == window) {
            Some(at) => at,
            None => {
                octets.extend_from_slice(&[window, 0]);
                *bits_at.insert(octets.len())
            }
        };
        let octet = at + usize::from(place / 8);
        if octets.len() <= octet {
            octets.resize(octet + 1, 0);
            octets[at - 1] = place / 8 + 1;
        }
        octets[octet] |= 0x80 >> (place % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bitmaps_are_those_of_rfc_4034() {
        let check = |types: &[u16], expected: &[u8]| {
            let mut octets = Vec::new();
            push_type_bitmap(types.iter().copied(), &mut octets);
            assert_eq!(octets, expected, "{types:?}");
        };
        check(&[1, 15, 46, 47], &[0, 6, 0x40, 1, 0, 0, 0, 3]);
        check(&[2, 257], &[0, 1, 0x20, 1, 1, 0x40]);
        // The example of section 4.3.
        let mut example = [&[0, 6, 0x40, 1, 0, 0, 0, 3, 4, 27][..], &[0; 26], &[0x20]].concat();
        check(&[1, 15, 46, 47, 1234], &example);
        example.truncate(8);
        check(&[], &[]);
    }
}
