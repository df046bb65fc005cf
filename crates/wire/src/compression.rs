//! Compression of names (RFC 1035, section 4.1.4).

use crate::header::HEADER;
use crate::prebuilt::{POINTER_END, pointer};
use crate::{
    Full, Request, ResponseHeader, ResponseWriter, RrSet, Section, rtype, uncompressed_length,
};

/// The most names that pointers lead to. More would cost time for little room.
const MAX_NAMES: usize = 40;

/// Where a message has a name.
#[derive(Clone, Copy, Default)]
struct WrittenName {
    at: u16,
    /// Octets without compression.
    length: u8,
}

/// A response whose names are compressed while they are written.
pub struct CompressingWriter<'o> {
    writer: ResponseWriter<'o>,
    /// The name of the question is the first.
    names: [WrittenName; MAX_NAMES],
    name_count: usize,
}

impl<'o> CompressingWriter<'o> {
    /// Goes on with a response that has its question and no record.
    #[must_use]
    pub fn new(request: &Request<'_>, writer: ResponseWriter<'o>) -> Self {
        let mut own = Self { writer, names: [WrittenName::default(); MAX_NAMES], name_count: 0 };
        own.note_name(HEADER, request.qname().len());
        own
    }

    /// Writes all records of a set, or none. The owner is a wire name without pointers.
    ///
    /// # Errors
    /// When they do not fit.
    pub fn push_set(&mut self, section: Section, owner: &[u8], set: &RrSet) -> Result<(), Full> {
        let (end, name_count) = (self.writer.end(), self.name_count);
        let written = set.data().try_for_each(|data| self.push(owner, set, data));
        match written {
            Ok(()) => self.writer.count(section, set.data().len() as u16),
            Err(Full) => {
                self.writer.take_back(end);
                self.name_count = name_count;
            }
        }
        written
    }

    /// Writes the OPT record and the header; returns the length of the message.
    #[must_use]
    pub fn finish(self, query: &[u8], header: ResponseHeader) -> usize {
        self.writer.finish(query, header)
    }

    fn push(&mut self, owner: &[u8], set: &RrSet, data: &[u8]) -> Result<(), Full> {
        self.push_name(owner)?;
        let [a, b] = set.rtype.to_be_bytes();
        let [c, d, e, f] = set.ttl.to_be_bytes();
        self.writer.push_octets(&[a, b, 0, 1, c, d, e, f, 0, 0])?;
        let start = self.writer.end();
        // Names in the data of these types may be compressed (RFC 3597, section 4).
        match set.rtype {
            rtype::NS | rtype::CNAME | rtype::PTR => self.push_name(data)?,
            rtype::MX => {
                self.writer.push_octets(&data[..2])?;
                self.push_name(&data[2..])?;
            }
            rtype::SOA => {
                let name = uncompressed_length(data).unwrap_or(0);
                self.push_name(&data[..name])?;
                self.push_name(&data[name..data.len() - 20])?;
                self.writer.push_octets(&data[data.len() - 20..])?;
            }
            _ => self.writer.push_octets(data)?,
        }
        self.writer.set_data_length(start);
        Ok(())
    }

    /// Writes a wire name, with a pointer for the longest ancestor that is there already.
    fn push_name(&mut self, name: &[u8]) -> Result<(), Full> {
        let (start, mut from) = (self.writer.end(), 0);
        while name[from] != 0 {
            if let Some(at) = self.find(&name[from..]) {
                self.writer.push_octets(&pointer(at))?;
                self.note_labels(start, name, from);
                return Ok(());
            }
            let end = from + 1 + usize::from(name[from]);
            self.writer.push_octets(&name[from..end])?;
            from = end;
        }
        self.writer.push_octets(&[0])?;
        self.note_labels(start, name, from);
        Ok(())
    }

    /// Notes the suffixes whose first labels were written: those before `end` of the name.
    fn note_labels(&mut self, start: usize, name: &[u8], end: usize) {
        let mut from = 0;
        while from < end {
            self.note_name(start + from, name.len() - from);
            from += 1 + usize::from(name[from]);
        }
    }

    fn note_name(&mut self, at: usize, length: usize) {
        if length > 1 && at < POINTER_END && self.name_count < MAX_NAMES {
            self.names[self.name_count] = WrittenName { at: at as u16, length: length as u8 };
            self.name_count += 1;
        }
    }

    fn find(&self, name: &[u8]) -> Option<usize> {
        let mut names = self.names[..self.name_count].iter();
        // The question's name is noted only as a whole; its ancestors are found here.
        if let Some(question) = names.as_slice().first()
            && name.len() < usize::from(question.length)
        {
            let start = usize::from(question.at);
            let qname = &self.writer.octets()[start..start + usize::from(question.length)];
            let before = qname.len() - name.len();
            if is_label_start(qname, before) && qname[before..].eq_ignore_ascii_case(name) {
                return Some(start + before);
            }
        }
        let found = names.find(|written| {
            usize::from(written.length) == name.len() && self.is_at(usize::from(written.at), name)
        });
        found.map(|written| usize::from(written.at))
    }

    /// True if the message has this name here. Lengths of labels are below `A`.
    fn is_at(&self, mut at: usize, name: &[u8]) -> bool {
        let (octets, mut from) = (self.writer.octets(), 0);
        loop {
            let length = octets[at];
            if length >= 0xc0 {
                at = usize::from(length & 0x3f) << 8 | usize::from(octets[at + 1]);
                continue;
            }
            let end = 1 + usize::from(length);
            let Some(label) = name.get(from..from + end) else { return false };
            if !octets[at..at + end].eq_ignore_ascii_case(label) {
                return false;
            }
            if length == 0 {
                return true;
            }
            at += end;
            from += end;
        }
    }
}

/// True if a label of a wire name begins after so many octets.
fn is_label_start(name: &[u8], wanted: usize) -> bool {
    let mut at = 0;
    while at < wanted {
        at += 1 + usize::from(name[at]);
    }
    at == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compressed_and_bounded() {
        let query = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x03wWw\x07example\x03com\0\0\x01\0\x01";
        let request = Request::parse(query).unwrap();
        let mut set = RrSet::default();
        set.begin(rtype::NS, 60);
        for label in [b"\x01a", b"\x01b"] {
            set.push(|octets| {
                octets.extend_from_slice(label);
                octets.extend_from_slice(b"\x02ns\x03com\0");
            });
        }
        let owner = b"\x07example\x03com\0";
        // The question ends at 33. The first record of a set refers to the question, as far as it can, and the second to
        // the first one's `ns.com`; in the second set both do.
        let first = b"\xc0\x10\0\x02\0\x01\0\0\0\x3c\0\x07\x01a\x02ns\xc0\x18";
        let second = b"\xc0\x10\0\x02\0\x01\0\0\0\x3c\0\x04\x01b\xc0\x2f";
        let third = b"\xc0\x10\0\x02\0\x01\0\0\0\x3c\0\x02\xc0\x2d";
        let fourth = b"\xc0\x10\0\x02\0\x01\0\0\0\x3c\0\x02\xc0\x40";
        let (one, both) =
            ([&first[..], second].concat(), [&first[..], second, third, fourth].concat());
        let enough = query.len() + both.len();
        for (limit, expected) in [(512, &both), (enough, &both), (enough - 1, &one)] {
            let mut out = [0; 512];
            let writer = ResponseWriter::new(&request, limit, None, &mut out);
            let mut writer = CompressingWriter::new(&request, writer);
            writer.push_set(Section::Authority, owner, &set).unwrap();
            let second = writer.push_set(Section::Authority, owner, &set);
            assert_eq!(second.is_ok(), expected.len() > one.len(), "{limit}");
            let length = writer.finish(query, ResponseHeader::default());
            assert_eq!(&out[query.len()..length], expected, "{limit}");
        }
    }
}
