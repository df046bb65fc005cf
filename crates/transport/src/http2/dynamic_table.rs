//! The dynamic table of header blocks (HPACK, RFC 7541, sections 2.3.2 and 4): what a server's earlier
//! blocks put there for its later ones.

use std::collections::VecDeque;

use super::field::Field;
use crate::primitives::Unreadable;

/// Octets that a table may hold: the default, which we do not change (RFC 9113, section 6.5.2). Some servers
/// (h2o in dnsdist 1.7) use a table of that size whatever the client says.
const LIMIT: usize = 4096;

/// What an entry counts in addition to its name and value, octets (RFC 7541, section 4.1).
const OVERHEAD: usize = 32;

/// The table. It keeps what its fields say, and not their octets. With an overhead of 32 octets for each it
/// has 128 entries at most; without any it has no memory.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// The newest first.
    entries: VecDeque<Entry>,
    /// The sum of their sizes, octets.
    size: usize,
    /// Its limit, as the server has said last.
    most: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) field: Field,
    /// Octets of its name; at most [`LIMIT`].
    name_length: u16,
    /// Octets that it counts (RFC 7541, section 4.1); at most [`LIMIT`].
    size: u16,
}

impl Entry {
    pub(super) fn name_length(self) -> usize {
        usize::from(self.name_length)
    }
}

impl Default for DynamicTable {
    fn default() -> Self {
        Self { entries: VecDeque::new(), size: 0, most: LIMIT }
    }
}

impl DynamicTable {
    /// The entry that was put in as the last but so many; fails if there is none.
    pub(super) fn get(&self, age: usize) -> Result<Entry, Unreadable> {
        self.entries.get(age).copied().ok_or(Unreadable)
    }

    /// Puts in a field with name and value of so many octets. One that is larger than the table empties it
    /// (section 4.4).
    pub(super) fn insert(&mut self, field: Field, name_length: usize, value_length: usize) {
        let size = name_length + value_length + OVERHEAD;
        if size > self.most {
            self.evict(0);
            return;
        }
        self.evict(self.most - size);
        self.size += size;
        let (name_length, size) = (name_length as u16, size as u16);
        self.entries.push_front(Entry { field, name_length, size });
    }

    /// The server makes it larger or smaller (section 6.3); fails if it makes it larger than [`LIMIT`].
    pub(super) fn resize(&mut self, most: usize) -> Result<(), Unreadable> {
        if most > LIMIT {
            return Err(Unreadable);
        }
        self.most = most;
        self.evict(most);
        Ok(())
    }

    /// Drops the oldest until all others have no more than so many octets.
    fn evict(&mut self, most: usize) {
        while self.size > most
            && let Some(entry) = self.entries.pop_back()
        {
            self.size -= usize::from(entry.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::headers::{self, Fields};
    use super::*;

    #[track_caller]
    fn check(most: usize, blocks: &[(&[u8], u16, usize)]) {
        let mut table = DynamicTable::default();
        table.resize(most).unwrap();
        for (block, status, size) in blocks {
            let expected = Fields { status: Some(*status), ..Fields::default() };
            assert_eq!(headers::read(block, &mut table), Ok(expected), "{block:x?}");
            assert_eq!(table.size, *size, "{block:x?}");
        }
    }

    #[test]
    fn responses_of_the_rfc_with_eviction() {
        // RFC 7541, appendix C.5: plain, in a table of 256 octets.
        let cookie = b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
        let third = [
            b"\x88\xc1\x61\x1dMon, 21 Oct 2013 20:13:22 GMT\xc0\x5a\x04gzip\x77\x38".as_slice(),
            cookie,
        ];
        check(
            256,
            &[
                (
                    b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\
                      \x6e\x17https://www.example.com",
                    302,
                    222,
                ),
                (b"\x48\x03307\xc1\xc0\xbf", 307, 222),
                (&third.concat(), 200, 215),
            ],
        );
        // Appendix C.6: the same, Huffman-coded.
        check(
            256,
            &[
                (
                    b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\
                      \xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\
                      \x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
                    302,
                    222,
                ),
                (b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf", 307, 222),
                (
                    b"\x88\xc1\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\
                      \x66\xe0\x84\xa6\x2d\x1b\xff\xc0\x5a\x83\x9b\xd9\xab\x77\xad\x94\xe7\x82\x1d\
                      \xd7\xf2\xe6\xc7\xb3\x35\xdf\xdf\xcd\x5b\x39\x60\xd5\xaf\x27\x08\x7f\x36\x72\
                      \xc1\xab\x27\x0f\xb5\x29\x1f\x95\x87\x31\x60\x65\xc0\x03\xed\x4e\xe5\xb1\x06\
                      \x3d\x50\x07",
                    200,
                    215,
                ),
            ],
        );
    }

    #[test]
    fn sizes_change_and_large_fields_empty_the_table() {
        let mut table = DynamicTable::default();
        let mut block = |block: &[u8]| headers::read(block, &mut table).map(|fields| fields.status);
        // Status 302 twice, then by index: a table of 84 octets has room for two, one of 83 for one.
        assert_eq!(block(b"\x48\x03302"), Ok(Some(302)));
        assert_eq!(block(b"\x3f\x35\x48\x03307"), Ok(Some(307)));
        assert_eq!((block(b"\xbe"), block(b"\xbf")), (Ok(Some(307)), Ok(Some(302))));
        assert_eq!(block(b"\x3f\x34\xbe"), Ok(Some(307)));
        assert_eq!(block(b"\xbf"), Err(Unreadable));
        // Down to nothing and up again in one block (section 4.2).
        assert_eq!(block(b"\x20\x3f\xe1\x1f\x88"), Ok(Some(200)));
        assert_eq!(block(b"\xbe"), Err(Unreadable));
        // A field of 4,096 octets has room alone; one more octet, and it has none (section 4.4).
        for (length, is_kept) in [(4096 - 7 - 32, true), (4096 - 7 - 31, false)] {
            assert_eq!(block(b"\x48\x03302"), Ok(Some(302)));
            let mut large = b"\x40\x07x-large\x7f".to_vec();
            let (low, high) = ((length - 127) % 128 + 128, (length - 127) / 128);
            large.extend_from_slice(&[low as u8, high as u8]);
            large.resize(large.len() + length, b'x');
            assert_eq!(block(&large), Ok(None));
            assert_eq!(block(b"\xbe").is_ok(), is_kept, "{length}");
            assert_eq!(block(b"\xbf"), Err(Unreadable), "{length}");
        }
    }

    /// A field as a server may write it: one of the table's, or a literal with name and value.
    #[derive(Clone, Debug)]
    enum Written {
        Indexed(usize),
        Literal { name: Option<usize>, status: u16, padding: usize, is_indexed: bool },
        Resize(usize),
    }

    fn written() -> impl Strategy<Value = Written> {
        let literal = (prop::option::of(0usize..40), 100u16..1000, 0usize..900, any::<bool>());
        prop_oneof![
            (0usize..40).prop_map(Written::Indexed),
            literal.prop_map(|(name, status, padding, is_indexed)| Written::Literal {
                name,
                status,
                padding,
                is_indexed
            }),
            (0usize..=LIMIT).prop_map(Written::Resize),
        ]
    }

    proptest! {
        #[test]
        fn a_table_of_whole_fields_says_the_same(all in prop::collection::vec(written(), 1..200)) {
            use crate::primitives::push_number;
            let mut table = DynamicTable::default();
            let (mut model, mut most) = (VecDeque::<(String, String)>::new(), LIMIT);
            for one in all {
                let mut block = Vec::new();
                let expected = match one {
                    Written::Resize(size) => {
                        push_number(&mut block, 0x20, 5, size);
                        most = size;
                        None
                    }
                    Written::Indexed(index) => {
                        push_number(&mut block, 0x80, 7, 62 + index);
                        model.get(index).cloned()
                    }
                    Written::Literal { name, status, padding, is_indexed } => {
                        let name = name.filter(|index| *index < model.len());
                        let (flags, bits) = if is_indexed { (0x40, 6) } else { (0, 4) };
                        push_number(&mut block, flags, bits, name.map_or(0, |index| 62 + index));
                        let text = match name {
                            Some(index) => model[index].0.clone(),
                            // An odd one of them is a status, the others are of no interest.
                            None if padding % 2 == 1 => ":status".to_owned(),
                            None => "x".repeat(1 + padding / 2),
                        };
                        if name.is_none() {
                            push_number(&mut block, 0, 7, text.len());
                            block.extend_from_slice(text.as_bytes());
                        }
                        let is_status = text == ":status";
                        let value =
                            if is_status { status.to_string() } else { "y".repeat(padding) };
                        push_number(&mut block, 0, 7, value.len());
                        block.extend_from_slice(value.as_bytes());
                        if is_indexed {
                            model.push_front((text.clone(), value.clone()));
                        }
                        Some((text, value))
                    }
                };
                let size = |model: &VecDeque<(String, String)>| {
                    model.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>()
                };
                while size(&model) > most {
                    model.pop_back();
                }
                let read = headers::read(&block, &mut table);
                match (&one, expected) {
                    (Written::Indexed(_), None) => prop_assert_eq!(read, Err(Unreadable)),
                    (_, None) => prop_assert_eq!(read, Ok(Fields::default())),
                    (_, Some((name, value))) => {
                        let status = (name == ":status").then(|| value.parse().unwrap());
                        prop_assert_eq!(read, Ok(Fields { status, ..Fields::default() }));
                    }
                }
                prop_assert_eq!(table.entries.len(), model.len());
                prop_assert_eq!(table.size, size(&model));
            }
        }
    }
}
