//! Header blocks of responses (HPACK, RFC 7541), as far as an answer depends on them. Our side has
//! no dynamic table, and says so in its settings; so nothing here is remembered between blocks.

use super::message::{MEDIA_TYPE, is_media_type};
use crate::primitives::{Text, Unreadable, take_number, take_string};

/// What a header block says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// `:status`, if there is one; 100 to 999.
    pub(super) status: Option<u16>,
    /// The content type is that of a DNS message.
    pub(super) carries_message: bool,
    /// It is no header of a response (RFC 9113, section 8.3): a pseudo-header that is not `:status`,
    /// or comes twice, late, or without three digits.
    pub(super) is_malformed: bool,
}

/// The media type of a DNS message, Huffman-coded: it is compared, and not decoded for each answer.
const CODED_MEDIA_TYPE: &[u8] = b"\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x49\x52\x16\xa4\xa8\x40\xe6\x2f";

/// Entries of the static table (RFC 7541, appendix A).
const STATIC_ENTRIES: usize = 61;

/// The statuses of the static table, from index 8 on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// The name of a field, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// `:status`
    Status,
    /// `content-type`
    ContentType,
    /// Another that begins with a colon: those of requests.
    Pseudo,
    /// Any other.
    Other,
}

impl Name {
    /// The name at an index of the static table.
    fn at(index: usize) -> Result<Self, Unreadable> {
        match index {
            1..=7 => Ok(Self::Pseudo),
            8..=14 => Ok(Self::Status),
            31 => Ok(Self::ContentType),
            15..=STATIC_ENTRIES => Ok(Self::Other),
            _ => Err(Unreadable),
        }
    }

    /// The name that is written out.
    fn of(name: &[u8]) -> Self {
        match name {
            b":status" => Self::Status,
            b"content-type" => Self::ContentType,
            [b':', ..] => Self::Pseudo,
            _ => Self::Other,
        }
    }

    /// Takes a name whose index has so many bits in the first octet; 0 for one that is written out.
    fn take(block: &mut &[u8], bits: u32) -> Result<Self, Unreadable> {
        match take_number(block, bits)? {
            0 => Ok(Self::of(&take_string(block, 7)?)),
            index => Self::at(index),
        }
    }
}

/// Reads a whole block.
///
/// # Errors
/// When it is broken, or refers to the dynamic table: the connection cannot go on.
pub(super) fn read(block: &[u8]) -> Result<Fields, Unreadable> {
    let (mut rest, mut fields, mut is_past_pseudo) = (block, Fields::default(), false);
    // Changes of the size of the dynamic table come first (section 4.2); ours is always 0.
    while matches!(rest.first(), Some(0b0010_0000..0b0100_0000)) {
        if take_number(&mut rest, 5)? != 0 {
            return Err(Unreadable);
        }
    }
    while let Some(first) = rest.first() {
        let name = match first {
            // Indexed (section 6.1).
            0b1000_0000.. => {
                let index = take_number(&mut rest, 7)?;
                let name = Name::at(index)?;
                if name == Name::Status {
                    fields.set_status(Some(STATUSES[index - 8]));
                }
                name
            }
            // With incremental indexing, for which there is no room (sections 4.4 and 6.2.1).
            0b0100_0000..0b1000_0000 => take_literal(&mut rest, 6, &mut fields)?,
            0b0010_0000..0b0100_0000 => return Err(Unreadable),
            // Without indexing, now or ever (sections 6.2.2 and 6.2.3).
            ..0b0010_0000 => take_literal(&mut rest, 4, &mut fields)?,
        };
        match name {
            Name::Pseudo => fields.is_malformed = true,
            Name::Status => fields.is_malformed |= is_past_pseudo,
            Name::ContentType | Name::Other => is_past_pseudo = true,
        }
    }
    Ok(fields)
}

/// Takes a field whose value is written out; its name.
fn take_literal(rest: &mut &[u8], bits: u32, fields: &mut Fields) -> Result<Name, Unreadable> {
    let name = Name::take(rest, bits)?;
    let value = Text::take(rest, 7)?;
    match name {
        Name::Status => fields.set_status(status(&value.decode()?)),
        Name::ContentType => {
            fields.carries_message = match value {
                Text::Plain(value) if value == MEDIA_TYPE.as_bytes() => true,
                Text::Coded(CODED_MEDIA_TYPE) => true,
                value => is_media_type(&value.decode()?),
            }
        }
        // Nobody looks at the value, so nobody pays for decoding it.
        Name::Pseudo | Name::Other => {}
    }
    Ok(name)
}

/// A status of three digits (RFC 9110, section 15).
fn status(digits: &[u8]) -> Option<u16> {
    let is_one = digits.len() == 3 && digits.iter().all(u8::is_ascii_digit) && digits[0] > b'0';
    is_one.then(|| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}

impl Fields {
    /// Takes note of the one status.
    fn set_status(&mut self, status: Option<u16>) {
        self.is_malformed |= self.status.is_some() || status.is_none();
        self.status = status;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::huffman;

    fn check(block: &[u8], status: Option<u16>, carries_message: bool) {
        let expected = Fields { status, carries_message, is_malformed: false };
        assert_eq!(read(block), Ok(expected), "{block:x?}");
    }

    #[test]
    fn the_coded_media_type_is_the_media_type() {
        let mut decoded = Vec::new();
        assert!(huffman::decode(CODED_MEDIA_TYPE, &mut decoded));
        assert_eq!(decoded, MEDIA_TYPE.as_bytes());
    }

    #[test]
    fn examples_of_the_rfc() {
        // RFC 7541, appendix C.5.1 and C.6.1, plain and Huffman-coded.
        check(
            b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\
              \x6e\x17https://www.example.com",
            Some(302),
            false,
        );
        check(
            b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\
              \xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\
              \x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
            Some(302),
            false,
        );
        // C.2.1 and C.2.3: literals with and without indexing, names written out.
        check(b"\x40\x0acustom-key\x0dcustom-header", None, false);
        check(b"\x10\x08password\x06secret", None, false);
        // C.5.2 refers to what C.5.1 left in the dynamic table.
        assert_eq!(read(b"\x48\x03307\xc1\xc0\xbf"), Err(Unreadable));
    }

    #[test]
    fn forms_of_an_answer() {
        let media_type = [&[23], MEDIA_TYPE.as_bytes()].concat();
        let coded = [&[0x80 | 16], CODED_MEDIA_TYPE].concat();
        for value in [&media_type, &coded] {
            for field in [b"\x0f\x10".as_slice(), b"\x1f\x10", b"\x5f", b"\x00\x0ccontent-type"] {
                check(&[b"\x88", field, value].concat(), Some(200), true);
                check(&[b"\x20\x20\x88", field, value, b"\x54\0"].concat(), Some(200), true);
            }
        }
        check(b"\x88\x5f\x0atext/plain", Some(200), false);
        check(b"\x88\x5f\x26Application/DNS-message; charset=utf-8", Some(200), true);
        check(b"\x08\x03415", Some(415), false);
        check(b"", None, false);
    }

    #[test]
    fn blocks_that_are_wrong() {
        for block in [
            b"\x80".as_slice(),                  // index 0
            b"\xbe",                             // 62: the dynamic table
            b"\x7f\x00",                         // 63 as a name
            b"\x88\x20",                         // a size that comes late
            b"\x3f\xe1\x1f\x88",                 // a size of 4096
            b"\x5f\x0atext",                     // a string that is cut
            b"\x48\x81\xff",                     // padding longer than seven bits
            b"\xff\xff\xff\xff\xff\xff\xff\x0f", // a number that is none
        ] {
            assert_eq!(read(block), Err(Unreadable), "{block:x?}");
        }
        for block in
            [b"\x88\x88".as_slice(), b"\x54\0\x88", b"\x82", b"\x48\x0220", b"\x00\x02:x\0"]
        {
            assert!(read(block).unwrap().is_malformed, "{block:x?}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_panic(block in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&block);
        }
    }
}
