//! Writes a message: sections, compressed names, bounds.

use dnslab_wire::{HEADER, rtype};

use crate::data::{Set, types};

/// The message has no room for what was to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full;

/// A section, as an index of [`Writer::counts`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Section {
    Answer,
    Authority,
    Additional,
}

/// The most names that pointers lead to. More would cost time for little room.
const MAX_NAMES: usize = 40;

pub(crate) struct Writer<'o> {
    out: &'o mut [u8],
    at: usize,
    limit: usize,
    /// Records in the answer, authority and additional section.
    pub(crate) counts: [u16; 3],
    /// Where names are in the message, and their lengths without compression.
    names: [(u16, u8); MAX_NAMES],
    name_count: usize,
}

impl<'o> Writer<'o> {
    /// A message with this question, at most `limit` octets long. `out` has room for these, and for the
    /// question.
    pub(crate) fn new(out: &'o mut [u8], question: &[u8], limit: usize) -> Self {
        let at = HEADER + question.len();
        out[HEADER..at].copy_from_slice(question);
        let mut own =
            Self { out, at, limit, counts: [0; 3], names: [(0, 0); MAX_NAMES], name_count: 0 };
        own.note_name(HEADER, question.len() - 4);
        own
    }

    /// Octets so far.
    pub(crate) fn len(&self) -> usize {
        self.at
    }

    pub(crate) fn octets_mut(&mut self) -> &mut [u8] {
        self.out
    }

    /// Gives the octets that were held back.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Writes all records of a set, or none.
    pub(crate) fn push_set(
        &mut self,
        section: Section,
        owner: &[u8],
        set: &Set,
    ) -> Result<(), Full> {
        let (at, name_count) = (self.at, self.name_count);
        let written = set.data().try_for_each(|data| self.push(owner, set.rtype, set.ttl, data));
        match written {
            Ok(()) => self.counts[section as usize] += set.data().count() as u16,
            Err(Full) => (self.at, self.name_count) = (at, name_count),
        }
        written
    }

    fn push(&mut self, owner: &[u8], rtype: u16, ttl: u32, data: &[u8]) -> Result<(), Full> {
        self.push_name(owner)?;
        let [a, b] = rtype.to_be_bytes();
        let [c, d, e, f] = ttl.to_be_bytes();
        self.push_octets(&[a, b, 0, 1, c, d, e, f, 0, 0])?;
        let start = self.at;
        // Names in the data of these types may be compressed (RFC 3597, section 4).
        match rtype {
            rtype::NS | rtype::CNAME | types::PTR => self.push_name(data)?,
            types::MX => {
                self.push_octets(&data[..2])?;
                self.push_name(&data[2..])?;
            }
            rtype::SOA => {
                let name = dnslab_wire::uncompressed_length(data).unwrap_or(0);
                self.push_name(&data[..name])?;
                self.push_name(&data[name..data.len() - 20])?;
                self.push_octets(&data[data.len() - 20..])?;
            }
            _ => self.push_octets(data)?,
        }
        let length = ((self.at - start) as u16).to_be_bytes();
        self.out[start - 2..start].copy_from_slice(&length);
        Ok(())
    }

    #[inline]
    pub(crate) fn push_octets(&mut self, octets: &[u8]) -> Result<(), Full> {
        let end = self.at + octets.len();
        if end > self.limit {
            return Err(Full);
        }
        self.out[self.at..end].copy_from_slice(octets);
        self.at = end;
        Ok(())
    }

    /// Writes a wire name, with a pointer for the longest ancestor that is there already.
    fn push_name(&mut self, name: &[u8]) -> Result<(), Full> {
        let (start, mut from) = (self.at, 0);
        while name[from] != 0 {
            if let Some(at) = self.find(&name[from..]) {
                self.push_octets(&(0xc000 | at).to_be_bytes())?;
                self.note_labels(start, name, from);
                return Ok(());
            }
            let end = from + 1 + usize::from(name[from]);
            self.push_octets(&name[from..end])?;
            from = end;
        }
        self.push_octets(&[0])?;
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
        // Pointers have 14 bits.
        if length > 1 && at < 0x4000 && self.name_count < MAX_NAMES {
            self.names[self.name_count] = (at as u16, length as u8);
            self.name_count += 1;
        }
    }

    fn find(&self, name: &[u8]) -> Option<u16> {
        let mut names = self.names[..self.name_count].iter();
        // The question's name is noted only as a whole; its ancestors are found here.
        let of_question = self.names.first().filter(|_| self.name_count > 0);
        if let Some((at, length)) = of_question
            && name.len() < usize::from(*length)
        {
            let start = usize::from(*at) + usize::from(*length) - name.len();
            let own = &self.out[usize::from(*at)..usize::from(*at) + usize::from(*length)];
            if is_suffix_start(own, name.len())
                && own[own.len() - name.len()..].eq_ignore_ascii_case(name)
            {
                return Some(start as u16);
            }
        }
        let is_it = |(at, length): &&(u16, u8)| {
            usize::from(*length) == name.len() && self.is_at(usize::from(*at), name)
        };
        names.find(is_it).map(|(at, _)| *at)
    }

    /// True if the message has this name here. Lengths of labels are below `A`.
    fn is_at(&self, mut at: usize, name: &[u8]) -> bool {
        let mut from = 0;
        loop {
            let length = self.out[at];
            if length >= 0xc0 {
                at = usize::from(length & 0x3f) << 8 | usize::from(self.out[at + 1]);
                continue;
            }
            let end = 1 + usize::from(length);
            let Some(label) = name.get(from..from + end) else { return false };
            if !self.out[at..at + end].eq_ignore_ascii_case(label) {
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

/// True if a label begins where the last `length` octets of a wire name do.
fn is_suffix_start(name: &[u8], length: usize) -> bool {
    let (mut at, wanted) = (0, name.len() - length);
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
        let question = b"\x03wWw\x07example\x03com\0\0\x01\0\x01";
        let mut out = [0; 200];
        let mut writer = Writer::new(&mut out, question, 200);
        let mut set = Set::default();
        set.begin(rtype::NS, 60);
        for label in [b"a", b"b"] {
            set.push(|octets| {
                octets.extend_from_slice(b"\x01");
                octets.extend_from_slice(label);
                octets.extend_from_slice(b"\x02ns\x03com\0");
            });
        }
        writer.push_set(Section::Authority, b"\x07example\x03com\0", &set).unwrap();
        let at = writer.len();
        // The second has pointers to the first name's `ns.com`.
        let second = &writer.octets_mut()[at - 4..at].to_vec();
        assert_eq!(second[..2], *b"\x01b");
        assert_eq!(second[2] & 0xc0, 0xc0);
        let first = &writer.octets_mut()[HEADER + question.len()..][..2];
        assert_eq!(first, [0xc0, 16]);
        assert_eq!(writer.counts, [0, 2, 0]);
        writer.set_limit(at + 20);
        assert!(
            writer.push_set(Section::Additional, b"\x03www\x07example\x03com\0", &set).is_err()
        );
        assert_eq!((writer.len(), writer.counts), (at, [0, 2, 0]));
    }
}
