//! Field sections (RFC 9204) that do not use the dynamic table, whose size is zero here.

use std::borrow::Cow;

use crate::primitives::{Text, Unreadable, push_number, take_number};

/// A field that HTTP for DNS looks at, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Method,
    Path,
    Status,
    ContentType,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) name: Name,
    pub(super) value: Cow<'a, [u8]>,
}

/// The beginning of a section that refers to no dynamic table (section 4.5.1).
const PREFIX: [u8; 2] = [0, 0];

/// Entries of the static table (RFC 9204, appendix A), as far as their names matter.
fn static_entry(index: usize) -> Result<(Name, &'static [u8]), Unreadable> {
    /// Values of `:method`, from 15 on.
    const METHODS: [&[u8]; 7] =
        [b"CONNECT", b"DELETE", b"GET", b"HEAD", b"OPTIONS", b"POST", b"PUT"];
    /// Values of `:status`, from 24 on.
    const STATUSES: [&[u8]; 5] = [b"103", b"200", b"304", b"404", b"503"];
    /// Values of `content-type`, from 44 on.
    const TYPES: [&[u8]; 11] = [
        b"application/dns-message",
        b"application/javascript",
        b"application/json",
        b"application/x-www-form-urlencoded",
        b"image/gif",
        b"image/jpeg",
        b"image/png",
        b"text/css",
        b"text/html; charset=utf-8",
        b"text/plain",
        b"text/plain;charset=utf-8",
    ];
    /// Values of `:status`, from 63 on.
    const MORE_STATUSES: [&[u8]; 9] =
        [b"100", b"204", b"206", b"302", b"400", b"403", b"421", b"425", b"500"];
    Ok(match index {
        1 => (Name::Path, b"/"),
        15..=21 => (Name::Method, METHODS[index - 15]),
        24..=28 => (Name::Status, STATUSES[index - 24]),
        44..=54 => (Name::ContentType, TYPES[index - 44]),
        63..=71 => (Name::Status, MORE_STATUSES[index - 63]),
        0..=98 => (Name::Other, b""),
        _ => return Err(Unreadable),
    })
}

/// Reads the fields of a section, in order.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Begins to read a section; fails if it needs the dynamic table.
    pub(super) fn new(section: &'a [u8]) -> Result<Self, Unreadable> {
        let mut rest = section;
        let (required, _) = (take_number(&mut rest, 8)?, take_number(&mut rest, 7)?);
        if required == 0 { Ok(Self { rest }) } else { Err(Unreadable) }
    }

    /// The next field; fails if the line is broken, or refers to the dynamic table.
    pub(super) fn take(&mut self) -> Result<Option<Field<'a>>, Unreadable> {
        let Some(first) = self.rest.first().copied() else { return Ok(None) };
        let rest = &mut self.rest;
        let field = match first {
            // Indexed in the static table (section 4.5.2).
            0b1100_0000.. => {
                let (name, value) = static_entry(take_number(rest, 6)?)?;
                Field { name, value: Cow::Borrowed(value) }
            }
            // With a name of the static table (section 4.5.4).
            0b0101_0000..0b0110_0000 | 0b0111_0000..0b1000_0000 => {
                let (name, _) = static_entry(take_number(rest, 4)?)?;
                Field { name, value: Text::take(rest, 7)?.decode()? }
            }
            // With a name of its own (section 4.5.6).
            0b0010_0000..0b0100_0000 => {
                let name = match Text::take(rest, 3)?.decode()?.as_ref() {
                    b":method" => Name::Method,
                    b":path" => Name::Path,
                    b":status" => Name::Status,
                    b"content-type" => Name::ContentType,
                    _ => Name::Other,
                };
                Field { name, value: Text::take(rest, 7)?.decode()? }
            }
            _ => return Err(Unreadable),
        };
        Ok(Some(field))
    }
}

pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&PREFIX);
}

/// Appends a field of the static table.
pub(super) fn push_indexed(out: &mut Vec<u8>, index: usize) {
    push_number(out, 0b1100_0000, 6, index);
}

/// Appends a field with a name of the static table. Its value is not Huffman-coded: that would take a fifth
/// off the octets of a name, and cost more than sending them.
pub(super) fn push_named(out: &mut Vec<u8>, index: usize, value: &[u8]) {
    push_value_head(out, index, value.len());
    out.extend_from_slice(value);
}

/// Appends a field whose name is not in the static table (section 4.5.6).
pub(super) fn push_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    push_number(out, 0b0010_0000, 3, name.len());
    out.extend_from_slice(name);
    push_number(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

/// Appends the name of a field and the length of its value, which follows.
pub(super) fn push_value_head(out: &mut Vec<u8>, index: usize, length: usize) {
    push_number(out, 0b0101_0000, 4, index);
    push_number(out, 0, 7, length);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(section: &[u8]) -> Result<Vec<(Name, Vec<u8>)>, Unreadable> {
        let (mut fields, mut read) = (Fields::new(section)?, Vec::new());
        while let Some(field) = fields.take()? {
            read.push((field.name, field.value.into_owned()));
        }
        Ok(read)
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 9204, appendix B.1: `:path = /index.html`.
        let expected = (Name::Path, b"/index.html".to_vec());
        assert_eq!(read(b"\0\0\x51\x0b/index.html"), Ok(vec![expected]));
    }

    #[test]
    fn other_forms_are_read() {
        let status = |text: &str| Ok(vec![(Name::Status, text.as_bytes().to_vec())]);
        assert_eq!(read(b"\0\0\xd9"), status("200"));
        assert_eq!(read(b"\0\0\xff\x08"), status("500"));
        // `:status` by name, its value Huffman-coded, and never to be indexed.
        assert_eq!(read(b"\0\0\x7f\x09\x82\x64\x02"), status("302"));
        assert_eq!(read(b"\0\0\x27\x00:status\x03415"), status("415"));
        assert_eq!(read(b"\0\0\x23abc\x01d"), Ok(vec![(Name::Other, b"d".to_vec())]));
        for broken in [
            b"\0".as_slice(),
            b"\x01\0",
            b"\0\0\x80",
            b"\0\0\xff\x24",
            b"\0\0\x51\x0b/",
            b"\0\0\x10",
        ] {
            assert_eq!(read(broken), Err(Unreadable), "{broken:x?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut section = Vec::new();
            begin(&mut section);
            push_indexed(&mut section, 20);
            push_named(&mut section, 1, &value);
            push_named(&mut section, 44, b"text/plain");
            let expected = vec![
                (Name::Method, b"POST".to_vec()),
                (Name::Path, value),
                (Name::ContentType, b"text/plain".to_vec()),
            ];
            prop_assert_eq!(read(&section), Ok(expected));
        }

        #[test]
        fn no_octets_panic(section in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = read(&section);
        }
    }
}
