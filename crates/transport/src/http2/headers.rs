//! Header blocks of responses (HPACK, RFC 7541), as far as an answer depends on them.
//!
//! This reader is our own: it runs for each answer, and the crates for it keep and hand out whole names and
//! values.

use super::dynamic_table::DynamicTable;
use super::field::Field;
use crate::doh::{MEDIA_TYPE, is_media_type, status};
use crate::primitives::{Text, Unreadable, take_number};

/// What a header block says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// `:status`, if there is one; 100 to 999.
    pub(super) status: Option<u16>,
    /// The content type is that of a DNS message.
    pub(super) carries_message: bool,
    /// It is no header of a response (RFC 9113, section 8.3): a pseudo-header that is not `:status`, or comes
    /// twice, late, or without three digits.
    pub(super) is_malformed: bool,
}

/// The media type of a DNS message, Huffman-coded: it is compared, not decoded for each answer.
const CODED_MEDIA_TYPE: &[u8] = b"\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x49\x52\x16\xa4\xa8\x40\xe6\x2f";

/// Entries of the static table (RFC 7541, appendix A).
const STATIC_ENTRIES: usize = 61;

/// The names of the static table (RFC 7541, appendix A), from index 1 on.
#[rustfmt::skip]
const STATIC_NAMES: [&str; STATIC_ENTRIES] = [
    ":authority", ":method", ":method", ":path", ":path", ":scheme", ":scheme", ":status", ":status",
    ":status", ":status", ":status", ":status", ":status", "accept-charset", "accept-encoding",
    "accept-language", "accept-ranges", "accept", "access-control-allow-origin", "age", "allow",
    "authorization", "cache-control", "content-disposition", "content-encoding", "content-language",
    "content-length", "content-location", "content-range", "content-type", "cookie", "date", "etag",
    "expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match", "if-range",
    "if-unmodified-since", "last-modified", "link", "location", "max-forwards", "proxy-authenticate",
    "proxy-authorization", "range", "referer", "refresh", "retry-after", "server", "set-cookie",
    "strict-transport-security", "transfer-encoding", "user-agent", "vary", "via", "www-authenticate",
];

/// The statuses of the static table, from index 8 on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

impl Field {
    fn of(name: &[u8], value: Text<'_>) -> Result<Self, Unreadable> {
        Ok(match name {
            b":status" => Self::Status(status(&value.decode()?)),
            b"content-type" => Self::ContentType(carries_message(value)?),
            [b':', ..] => Self::Pseudo,
            // Nobody looks at the value, so nobody pays for decoding it.
            _ => Self::Other,
        })
    }

    /// The field of the same name with this value.
    fn with(self, value: Text<'_>) -> Result<Self, Unreadable> {
        Ok(match self {
            Self::Status(_) => Self::Status(status(&value.decode()?)),
            Self::ContentType(_) => Self::ContentType(carries_message(value)?),
            Self::Pseudo | Self::Other => self,
        })
    }
}

/// The field at an index: the static table first, then the dynamic one (section 2.3.3).
fn field_at(index: usize, table: &DynamicTable) -> Result<Field, Unreadable> {
    match index {
        0 => Err(Unreadable),
        1..=7 => Ok(Field::Pseudo),
        8..=14 => Ok(Field::Status(Some(STATUSES[index - 8]))),
        // The static table has this name with an empty value.
        31 => Ok(Field::ContentType(false)),
        15..=STATIC_ENTRIES => Ok(Field::Other),
        _ => table.get(index - STATIC_ENTRIES - 1).map(|entry| entry.field),
    }
}

/// Reads a whole block, and changes the dynamic table as it says. Fails if the block is broken, or refers to
/// what the dynamic table does not hold: the connection cannot go on then.
pub(super) fn read(block: &[u8], table: &mut DynamicTable) -> Result<Fields, Unreadable> {
    let (mut rest, mut fields, mut is_past_pseudo) = (block, Fields::default(), false);
    // Changes of the size of the dynamic table come first (section 4.2).
    while matches!(rest.first(), Some(0b0010_0000..0b0100_0000)) {
        table.resize(take_number(&mut rest, 5)?)?;
    }
    while let Some(first) = rest.first() {
        let field = match first {
            // Indexed (section 6.1).
            0b1000_0000.. => field_at(take_number(&mut rest, 7)?, table)?,
            // With incremental indexing (section 6.2.1).
            0b0100_0000..0b1000_0000 => {
                let (field, name_length, value) = take_literal(&mut rest, 6, table)?;
                table.insert(field, name_length, value.length()?);
                field
            }
            0b0010_0000..0b0100_0000 => return Err(Unreadable),
            // Without indexing, now or ever (sections 6.2.2 and 6.2.3).
            ..0b0010_0000 => take_literal(&mut rest, 4, table)?.0,
        };
        match field {
            Field::Pseudo => fields.is_malformed = true,
            Field::Status(status) => {
                fields.is_malformed |=
                    is_past_pseudo || fields.status.is_some() || status.is_none();
                fields.status = status;
            }
            Field::ContentType(carries_message) => {
                fields.carries_message = carries_message;
                is_past_pseudo = true;
            }
            Field::Other => is_past_pseudo = true,
        }
    }
    Ok(fields)
}

/// Takes a field whose value is written out: what it is, the length of its name in octets, its value.
fn take_literal<'a>(
    rest: &mut &'a [u8],
    bits: u32,
    table: &DynamicTable,
) -> Result<(Field, usize, Text<'a>), Unreadable> {
    let index = take_number(rest, bits)?;
    if index == 0 {
        let name = Text::take(rest, 7)?.decode()?;
        let value = Text::take(rest, 7)?;
        return Ok((Field::of(&name, value)?, name.len(), value));
    }
    let field = field_at(index, table)?;
    let name_length = match STATIC_NAMES.get(index - 1) {
        Some(name) => name.len(),
        None => table.get(index - STATIC_ENTRIES - 1)?.name_length(),
    };
    let value = Text::take(rest, 7)?;
    Ok((field.with(value)?, name_length, value))
}

fn carries_message(value: Text<'_>) -> Result<bool, Unreadable> {
    Ok(match value {
        Text::Plain(value) if value == MEDIA_TYPE.as_bytes() => true,
        Text::Coded(CODED_MEDIA_TYPE) => true,
        value => is_media_type(&value.decode()?),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::huffman;

    fn first(block: &[u8]) -> Result<Fields, Unreadable> {
        read(block, &mut DynamicTable::default())
    }

    fn check(block: &[u8], status: Option<u16>, carries_message: bool) {
        let expected = Fields { status, carries_message, is_malformed: false };
        assert_eq!(first(block), Ok(expected), "{block:x?}");
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
        assert_eq!(first(b"\x48\x03307\xc1\xc0\xbf"), Err(Unreadable));
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
            b"\xbe",                             // 62: the dynamic table, which is empty
            b"\x7f\x00\0",                       // 63 as a name
            b"\x88\x20",                         // a size that comes late
            b"\x3f\xe2\x1f\x88",                 // a size of 4097
            b"\x54\x81\xff",                     // a coded value that is indexed, badly padded
            b"\x5f\x0atext",                     // a string that is cut
            b"\x48\x81\xff",                     // padding longer than seven bits
            b"\xff\xff\xff\xff\xff\xff\xff\x0f", // a number that is none
        ] {
            assert_eq!(first(block), Err(Unreadable), "{block:x?}");
        }
        for block in
            [b"\x88\x88".as_slice(), b"\x54\0\x88", b"\x82", b"\x48\x0220", b"\x00\x02:x\0"]
        {
            assert!(first(block).unwrap().is_malformed, "{block:x?}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_panic(block in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = first(&block);
        }
    }
}
