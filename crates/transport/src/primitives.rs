//! Numbers and strings as HPACK and QPACK write them (RFC 7541, section 5; RFC 9204, section 4.1).

use std::borrow::Cow;

use crate::huffman;

/// The block or section is broken, or refers to what the dynamic table does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// Takes a number whose lowest bits are in the first octet (RFC 7541, section 5.1). One larger than any
/// length or index here is refused.
pub(crate) fn take_number(octets: &mut &[u8], bits: u32) -> Result<usize, Unreadable> {
    /// Above any length of a section that is taken.
    const MAX_SIZE: usize = 1 << 24;
    let (first, mut rest) = octets.split_first().ok_or(Unreadable)?;
    let most = (1_usize << bits) - 1;
    let mut number = usize::from(*first) & most;
    let mut shift = 0;
    while number >= most {
        let (next, after) = rest.split_first().ok_or(Unreadable)?;
        rest = after;
        number += usize::from(next & 0x7f) << shift;
        shift += 7;
        if number > MAX_SIZE || shift > 28 {
            return Err(Unreadable);
        }
        if next & 0x80 == 0 {
            break;
        }
    }
    *octets = rest;
    Ok(number)
}

/// A string as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    Plain(&'a [u8]),
    /// Huffman-coded (RFC 7541, section 5.2).
    Coded(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Takes a string (RFC 7541, section 5.2). Its first octet has so many bits of the length, and before
    /// them the bit for Huffman coding.
    pub(crate) fn take(octets: &mut &'a [u8], bits: u32) -> Result<Self, Unreadable> {
        let is_coded = octets.first().ok_or(Unreadable)? >> bits & 1 == 1;
        let length = take_number(octets, bits)?;
        let (string, rest) = octets.split_at_checked(length).ok_or(Unreadable)?;
        *octets = rest;
        Ok(if is_coded { Self::Coded(string) } else { Self::Plain(string) })
    }

    /// Octets when decoded.
    pub(crate) fn length(self) -> Result<usize, Unreadable> {
        match self {
            Self::Plain(string) => Ok(string.len()),
            Self::Coded(coded) => huffman::decoded_length(coded).ok_or(Unreadable),
        }
    }

    pub(crate) fn decode(self) -> Result<Cow<'a, [u8]>, Unreadable> {
        let coded = match self {
            Self::Plain(string) => return Ok(Cow::Borrowed(string)),
            Self::Coded(coded) => coded,
        };
        let mut decoded = Vec::with_capacity(2 * coded.len());
        if huffman::decode(coded, &mut decoded) { Ok(Cow::Owned(decoded)) } else { Err(Unreadable) }
    }
}

/// Appends a number whose lowest bits are in the first octet, under `flags`.
pub(crate) fn push_number(out: &mut Vec<u8>, flags: u8, bits: u32, number: usize) {
    let most = (1 << bits) - 1;
    if number < most {
        out.push(flags | number as u8);
        return;
    }
    out.push(flags | most as u8);
    let mut rest = number - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_rfc() {
        // RFC 7541, appendix C.1.
        for (bits, number, written) in
            [(5, 10, b"\x0a".as_slice()), (5, 1337, b"\x1f\x9a\x0a"), (8, 42, b"\x2a")]
        {
            let mut out = Vec::new();
            push_number(&mut out, 0, bits, number);
            assert_eq!(out, written);
            let mut rest = written;
            assert_eq!((take_number(&mut rest, bits), rest), (Ok(number), &[][..]));
        }
        for broken in [b"".as_slice(), b"\x1f", b"\x1f\x9a", b"\x1f\xff\xff\xff\xff\xff\x0f"] {
            assert_eq!(take_number(&mut &broken[..], 5), Err(Unreadable), "{broken:x?}");
        }
    }
}
