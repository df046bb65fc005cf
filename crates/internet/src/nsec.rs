//! The parts of NSEC and NSEC3 records.

use std::cmp::Ordering;

use crate::data::Types;
use crate::name::{labels, push_label_with};

/// The canonical order of lower-cased wire names (RFC 4034, section 6.1).
pub(crate) fn canonical_cmp(one: &[u8], other: &[u8]) -> Ordering {
    let (one, other) = (labels(one), labels(other));
    for place in 0..one.count().min(other.count()) {
        match one.under_root(place).cmp(other.under_root(place)) {
            Ordering::Equal => {}
            different => return different,
        }
    }
    one.count().cmp(&other.count())
}

/// Appends a bitmap of types (RFC 4034, section 4.1.2). All types here are in the first two windows.
pub(crate) fn push_types(types: Types, octets: &mut Vec<u8>) {
    let mut bits = [[0_u8; 32]; 2];
    let mut used = [0; 2];
    for rtype in types.iter() {
        let (window, place) = (usize::from(rtype >> 8), usize::from(rtype & 0xff));
        bits[window][place / 8] |= 0x80 >> (place % 8);
        used[window] = used[window].max(place / 8 + 1);
    }
    for (window, (bits, used)) in (0..).zip(bits.iter().zip(used)) {
        if used > 0 {
            octets.extend_from_slice(&[window, used as u8]);
            octets.extend_from_slice(&bits[..used]);
        }
    }
}

/// Appends the label of an NSEC3 record.
pub(crate) fn push_hash(hash: &[u8; 20], owner: &mut Vec<u8>) {
    push_label_with(owner, |owner| push_base32(hash, owner));
}

/// Appends 20 octets in base 32 with the extended hex alphabet, in lower case (RFC 4648, section 7).
pub(crate) fn push_base32(octets: &[u8; 20], out: &mut Vec<u8>) {
    for chunk in octets.chunks_exact(5) {
        let word = chunk.iter().fold(0_u64, |word, octet| word << 8 | u64::from(*octet));
        for place in (0..8).rev() {
            out.push(b"0123456789abcdefghijklmnopqrstuv"[(word >> (5 * place)) as usize & 31]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_as_in_rfc_5155() {
        let mut text = Vec::new();
        // The hash of `a.example.` in RFC 5155, appendix A, has another salt; this is the empty name's by SHA-1.
        push_base32(&[0; 20], &mut text);
        assert_eq!(text, [b'0'; 32]);
        text.clear();
        push_base32(&[0xff; 20], &mut text);
        assert_eq!(text, [b'v'; 32]);
    }

    #[test]
    fn bitmaps_are_those_of_rfc_4034() {
        let mut octets = Vec::new();
        push_types(Types::of(&[1, 15, 46, 47]), &mut octets);
        assert_eq!(octets, [0, 6, 0x40, 1, 0, 0, 0, 3]);
        octets.clear();
        push_types(Types::of(&[2, 257]), &mut octets);
        assert_eq!(octets, [0, 1, 0x20, 1, 1, 0x40]);
    }
}
