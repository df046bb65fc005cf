//! Writes a response: the question, records by section, the OPT record, the header (RFC 1035, section 4.1).

use std::ops::Range;

use crate::edns::{
    COOKIE, OPT_FIXED, OPTION_HEADER, PADDING, opt_record, option_header, padding_length,
};
use crate::header::HEADER;
use crate::prebuilt::{POINTER_END, pointer, prebuilt_records};
use crate::request::{OPCODE, Request, Unanswerable};
use crate::{Section, rcode};

/// A response has no room for what was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// What the header of a response says (RFC 1035, section 4.1.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseHeader {
    /// The response code, with the four bits of the header and the eight of the OPT record (RFC 6891, section 6.1.3).
    pub rcode: u16,
    /// AA: the data of the first owner are the server's own.
    pub is_authoritative: bool,
    /// TC: something that had to be there did not fit.
    pub is_truncated: bool,
    /// RA, AD and CD, where the fourth octet of the header has them (RFC 4035, section 3.1.6).
    pub recursion_bits: u8,
}

impl ResponseHeader {
    /// A response that says nothing but this code.
    #[must_use]
    pub fn code(rcode: u16) -> Self {
        Self { rcode, ..Self::default() }
    }
}

/// The OPT record of a response (RFC 6891, section 6.1).
#[derive(Clone, Copy, Debug)]
pub struct ResponseOpt {
    /// The largest datagram that the server takes, octets.
    pub payload_size: u16,
    /// DO, as the client set it (RFC 3225, section 3).
    pub dnssec_ok: bool,
    /// The cookies of the client and of the server (RFC 7873, section 4).
    pub cookies: Option<[u8; COOKIES]>,
    /// The response is padded to a multiple of this many octets, if the message has room for that (RFC 7830); 0 is no
    /// padding.
    pub padding_block: u16,
}

/// Octets of a client's cookie and a server's one of 8 octets.
const COOKIES: usize = 16;

impl ResponseOpt {
    /// Octets of the record without padding.
    #[inline]
    fn length(&self) -> usize {
        OPT_FIXED + if self.cookies.is_some() { OPTION_HEADER + COOKIES } else { 0 }
    }
}

/// A response while it is written. Records come in the order of the sections.
///
/// ```
/// use dnslab_wire::{Request, ResponseHeader, ResponseWriter, Section, push_prebuilt, rtype};
///
/// let query = b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
/// let request = Request::parse(query).unwrap();
/// let (mut record, mut out) = (Vec::new(), [0; 512]);
/// push_prebuilt(&mut record, rtype::A, 60, &[192, 0, 2, 1]);
/// let mut writer = ResponseWriter::new(&request, 512, None, &mut out);
/// writer.push_prebuilt(Section::Answer, &record, 1, 12).unwrap();
/// let length = writer.finish(query, ResponseHeader::default());
/// assert_eq!(length, query.len() + record.len());
/// assert_eq!(out[4..8], [0, 1, 0, 1]);
/// ```
pub struct ResponseWriter<'o> {
    out: &'o mut [u8],
    /// Octets written.
    at: usize,
    /// Octets that may be written, without those of the OPT record.
    limit: usize,
    /// Records in the answer, authority and additional section, without the OPT record.
    counts: [u16; 3],
    opt: Option<ResponseOpt>,
}

impl<'o> ResponseWriter<'o> {
    /// Begins with the question as it came, in the client's case. The response has at most `limit` octets, and `out`
    /// bounds it too; both are at least
    /// [`CLASSIC_DATAGRAM`](crate::CLASSIC_DATAGRAM).
    #[inline]
    #[must_use]
    pub fn new(
        request: &Request<'_>,
        limit: usize,
        opt: Option<ResponseOpt>,
        out: &'o mut [u8],
    ) -> Self {
        let limit = limit.min(out.len()) - opt.as_ref().map_or(0, ResponseOpt::length);
        // At most 12 + 259 octets.
        let at = HEADER + request.question.len();
        out[HEADER..at].copy_from_slice(request.question);
        Self { out, at, limit, counts: [0; 3], opt }
    }

    /// Where the next record begins.
    #[inline]
    #[must_use]
    pub fn end(&self) -> usize {
        self.at
    }

    /// The message, of which the octets before [`ResponseWriter::end`] are written, but for the header.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        self.out
    }

    /// The next octets, so many of them, which are for the caller to fill.
    ///
    /// # Errors
    /// When there are not so many left.
    #[inline]
    pub fn next_octets(&mut self, count: usize) -> Result<&mut [u8], Full> {
        let (start, end) = (self.at, self.at + count);
        if end > self.limit {
            return Err(Full);
        }
        self.at = end;
        Ok(&mut self.out[start..end])
    }

    /// Writes octets of a record.
    ///
    /// # Errors
    /// When they do not fit.
    #[inline]
    pub fn push_octets(&mut self, octets: &[u8]) -> Result<(), Full> {
        self.next_octets(octets.len())?.copy_from_slice(octets);
        Ok(())
    }

    /// Copies octets of the message to a place before [`ResponseWriter::end`], over what was written there.
    #[inline]
    pub fn repeat(&mut self, octets: Range<usize>, at: usize) {
        self.out.copy_within(octets, at);
    }

    /// Counts records that were written.
    #[inline]
    pub fn count(&mut self, section: Section, records: u16) {
        self.counts[section as usize] += records;
    }

    /// Sets the length of the data of a record, which begin here and end where the message ends.
    #[inline]
    pub(crate) fn set_data_length(&mut self, start: usize) {
        let length = ((self.at - start) as u16).to_be_bytes();
        self.out[start - 2..start].copy_from_slice(&length);
    }

    /// Takes back what was written after this place.
    #[inline]
    pub(crate) fn take_back(&mut self, end: usize) {
        self.at = end;
    }

    /// Writes prebuilt records whose owner is in the message at `owner_at`; returns where they begin.
    ///
    /// # Errors
    /// When they do not fit, or no pointer reaches their owner.
    #[inline]
    pub fn push_prebuilt(
        &mut self,
        section: Section,
        records: &[u8],
        count: u16,
        owner_at: usize,
    ) -> Result<usize, Full> {
        let start = self.at;
        let owner = self.pointer_to(owner_at)?;
        self.push_octets(records)?;
        if owner_at != HEADER {
            let mut at = start;
            for record in prebuilt_records(records) {
                self.out[at..at + 2].copy_from_slice(&owner);
                at += record.len();
            }
        }
        self.count(section, count);
        Ok(start)
    }

    /// The compression pointer to a place of the message (RFC 1035, section 4.1.4).
    ///
    /// # Errors
    /// When no pointer reaches it.
    #[inline]
    pub fn pointer_to(&self, at: usize) -> Result<[u8; 2], Full> {
        if at < POINTER_END { Ok(pointer(at)) } else { Err(Full) }
    }

    /// Writes the OPT record and the header; returns the length of the message.
    #[inline]
    #[must_use]
    pub fn finish(self, query: &[u8], header: ResponseHeader) -> usize {
        let Self { out, at: mut end, counts: [answers, authorities, mut additionals], opt, .. } =
            self;
        if let Some(opt) = opt {
            end = write_opt(out, end, &opt, header.rcode);
            additionals += 1;
        }
        write_header(query, header, out);
        for (place, count) in [1, answers, authorities, additionals].into_iter().enumerate() {
            out[4 + 2 * place..6 + 2 * place].copy_from_slice(&count.to_be_bytes());
        }
        end
    }
}

/// Writes the first four octets of a response: id, opcode and RD are those of the query (RFC 1035, section 4.1.1).
#[inline]
fn write_header(query: &[u8], header: ResponseHeader, out: &mut [u8]) {
    out[..2].copy_from_slice(&query[..2]);
    out[2] = 0x80 | query[2] & (OPCODE | 0x01);
    out[2] |= if header.is_authoritative { 0x04 } else { 0 };
    out[2] |= if header.is_truncated { 0x02 } else { 0 };
    out[3] = (header.rcode & 0x0f) as u8 | header.recursion_bits;
}

/// Writes the OPT record where the message ends; returns the new end. Its octets were held back, but for the padding.
#[inline]
fn write_opt(out: &mut [u8], at: usize, opt: &ResponseOpt, rcode: u16) -> usize {
    let mut end = at + OPT_FIXED;
    out[at..end].copy_from_slice(&opt_record(opt.payload_size, rcode, opt.dnssec_ok));
    if let Some(cookies) = &opt.cookies {
        out[end..end + OPTION_HEADER].copy_from_slice(&option_header(COOKIE, COOKIES as u16));
        out[end + OPTION_HEADER..][..COOKIES].copy_from_slice(cookies);
        end += OPTION_HEADER + COOKIES;
    }
    if opt.padding_block > 0 {
        let padding = padding_length(end, opt.padding_block);
        let padded = end + OPTION_HEADER + padding;
        // A message without room for a whole number of blocks stays as it is.
        if padded <= out.len() {
            out[end..end + OPTION_HEADER].copy_from_slice(&option_header(PADDING, padding as u16));
            out[end + OPTION_HEADER..padded].fill(0);
            end = padded;
        }
    }
    let options = ((end - at - OPT_FIXED) as u16).to_be_bytes();
    out[at + OPT_FIXED - 2..at + OPT_FIXED].copy_from_slice(&options);
    end
}

/// Writes the response to a message that is no query which can be answered: a header alone, as the question cannot be
/// given back. Returns its length; `None` if nothing is to be sent.
#[must_use]
pub fn reject(message: &[u8], reason: Unanswerable, out: &mut [u8]) -> Option<usize> {
    let rcode = match reason {
        Unanswerable::Silent => return None,
        Unanswerable::FormatError => rcode::FORMERR,
        Unanswerable::NotImplemented => rcode::NOTIMP,
    };
    out[..HEADER].fill(0);
    write_header(message, ResponseHeader::code(rcode), out);
    Some(HEADER)
}
