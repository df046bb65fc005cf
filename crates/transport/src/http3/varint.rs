//! Numbers of variable length (RFC 9000, section 16).

use bytes::BufMut;

/// Takes a number from the front; `None` if it is not all there.
pub(super) fn take(octets: &mut &[u8]) -> Option<u64> {
    let length = 1 << (octets.first()? >> 6);
    let (number, rest) = octets.split_at_checked(length)?;
    *octets = rest;
    let first = u64::from(number[0] & 0x3f);
    Some(number[1..].iter().fold(first, |value, octet| value << 8 | u64::from(*octet)))
}

/// Appends a number in its shortest form. Panics at 2^62 or more: no length or stream number is so large.
pub(super) fn push(out: &mut impl BufMut, number: u64) {
    match number {
        0..0x40 => out.put_u8(number as u8),
        0x40..0x4000 => out.put_u16(number as u16 | 0x4000),
        0x4000..0x4000_0000 => out.put_u32(number as u32 | 0x8000_0000),
        _ => {
            assert!(number < 1 << 62, "{number} is too large for the form");
            out.put_u64(number | 0xc000_0000_0000_0000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(octets: &[u8], number: u64) {
        let mut rest = octets;
        assert_eq!(take(&mut rest), Some(number));
        assert!(rest.is_empty());
        let mut out = Vec::new();
        push(&mut out, number);
        assert_eq!(out, octets);
        for length in 0..octets.len() {
            assert_eq!(take(&mut &octets[..length]), None);
        }
    }

    #[test]
    fn the_examples_of_the_rfc() {
        check(&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652);
        check(&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333);
        check(&[0x7b, 0xbd], 15_293);
        check(&[0x25], 37);
        assert_eq!(take(&mut [0x40, 0x25].as_slice()), Some(37));
    }
}
