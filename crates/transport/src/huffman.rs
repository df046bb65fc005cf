//! Decoding of Huffman-coded strings (RFC 7541, section 5.2 and appendix B).

/// Bits of the code of each octet. The code is canonical: codes of one length count up with the octets, so
/// the lengths say all. The last one is that of the end-of-string symbol, whose beginning pads strings.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Bits of the longest code.
const MAX_LENGTH: usize = 30;

/// The code, arranged by length.
struct Code {
    /// For each length: its first code, how many there are, and the place of its first symbol.
    rows: [(u32, u32, usize); MAX_LENGTH + 1],
    /// All symbols, by length and then by value.
    symbols: [u16; 257],
}

static CODE: Code = arrange();

const fn arrange() -> Code {
    let mut code = Code { rows: [(0, 0, 0); MAX_LENGTH + 1], symbols: [0; 257] };
    let (mut length, mut next, mut place) = (1, 0_u32, 0);
    while length <= MAX_LENGTH {
        next <<= 1;
        code.rows[length] = (next, 0, place);
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code.symbols[place] = symbol as u16;
                code.rows[length].1 += 1;
                next += 1;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    code
}

/// Appends what was coded. False if it was coded wrongly: the end-of-string symbol, or padding that is not
/// its beginning.
pub(crate) fn decode(coded: &[u8], out: &mut Vec<u8>) -> bool {
    each_octet(coded, |octet| out.push(octet))
}

/// Octets that were coded; `None` where [`decode`] says false.
pub(crate) fn decoded_length(coded: &[u8]) -> Option<usize> {
    let mut length = 0;
    each_octet(coded, |_| length += 1).then_some(length)
}

/// Hands each octet that was coded to `take`; false where [`decode`] says so.
fn each_octet(coded: &[u8], mut take: impl FnMut(u8)) -> bool {
    let (mut bits, mut length) = (0_u32, 0);
    for octet in coded {
        for shift in (0..8).rev() {
            bits = bits << 1 | u32::from(octet >> shift & 1);
            length += 1;
            let (first, count, place) = CODE.rows[length];
            if let Some(number) = bits.checked_sub(first)
                && number < count
            {
                let symbol = CODE.symbols[place + number as usize];
                let Ok(octet) = u8::try_from(symbol) else { return false };
                take(octet);
                (bits, length) = (0, 0);
            }
        }
    }
    // At most seven bits, all ones.
    length < 8 && bits + 1 == 1 << length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(octets: &[u8]) -> Vec<u8> {
        let mut coded = String::new();
        for octet in octets {
            let length = usize::from(LENGTHS[usize::from(*octet)]);
            let (first, _, place) = CODE.rows[length];
            let number =
                CODE.symbols[place..].iter().position(|symbol| *symbol == u16::from(*octet));
            coded += &format!("{:0length$b}", first + number.unwrap() as u32);
        }
        while !coded.len().is_multiple_of(8) {
            coded.push('1');
        }
        let octet = |bits: &[u8]| u8::from_str_radix(std::str::from_utf8(bits).unwrap(), 2);
        coded.as_bytes().chunks(8).map(|bits| octet(bits).unwrap()).collect()
    }

    fn check(coded: &[u8], expected: Option<&[u8]>) {
        let mut out = Vec::new();
        let is_well_coded = decode(coded, &mut out);
        assert_eq!(is_well_coded.then_some(out.as_slice()), expected, "{coded:x?}");
        assert_eq!(decoded_length(coded), expected.map(<[u8]>::len), "{coded:x?}");
    }

    #[test]
    fn strings_are_decoded() {
        // RFC 7541, appendix C.4.1, C.4.2 and C.6.1.
        const NAME: &[u8] = b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        check(NAME, Some(b"www.example.com"));
        check(b"\xa8\xeb\x10\x64\x9c\xbf", Some(b"no-cache"));
        check(b"\x64\x02", Some(b"302"));
        let all: Vec<u8> = (0..=255).collect();
        check(&encode(&all), Some(&all));
        check(b"", Some(b""));
        check(b"\xff", None);
        check(b"\xa8\xeb\x10\x64\x9c\xbe", None);
        check(b"\xff\xff\xff\xff", None);
    }
}
