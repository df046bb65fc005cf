//! What an answer says, in a few octets, so that the answers of two servers can be compared.

use std::convert::Infallible;
use std::hash::Hasher as _;

use domain::base::iana::Rtype;
use domain::base::opt::{Opt, UnknownOptData};
use domain::base::rdata::ComposeRecordData as _;
use domain::base::{Message, ParsedName, ParsedRecord, ToName as _};
use domain::rdata::AllRecordData;
use fnv::FnvHasher;

use crate::edns::{COOKIE, EXTENDED_ERROR, KEEPALIVE, OPTION_HEADER, PADDING};
use crate::header::HEADER;
use crate::{AnswerFault, Malformed, Query, read_answer};

/// NSID (RFC 5001, section 2.3): it names the server, which differs by intention.
const NSID: u16 = 3;

/// What an answer says. Two answers that say the same have equal digests.
///
/// The order of records, TTLs, the case of letters in names, and how names are compressed do not matter. Any
/// other change of a record changes the digest but in one of 2^32 cases. It is no protection against somebody
/// who looks for such a case.
///
/// ```
/// use dnslab_wire::AnswerDigest;
///
/// let header = b"\x12\x34\x84\x03\0\x01\0\0\0\0\0\0";
/// let of = |name: &[u8]| {
///     let message = [header, name, b"\0\x01\0\x01"].concat();
///     AnswerDigest::of(&message, &mut Vec::new()).unwrap()
/// };
/// assert_eq!(of(b"\x01a\0"), of(b"\x01A\0"));
/// assert_eq!(of(b"\x01a\0").rcode, 3);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerDigest {
    /// The whole response code, with the bits of the OPT record (RFC 6891, section 6.1.3).
    pub rcode: u16,
    /// The flags of the header from bit 6 on: AA, TC, RD, RA, the reserved one, AD, CD.
    pub flags: u8,
    /// The answer section without RRSIG records. Of a truncated answer it is 0, as are the other sections: what
    /// is left of them is the server's choice, and is not to be used (RFC 2181, section 9).
    pub answer: u32,
    /// The authority section without RRSIG records.
    pub authority: u32,
    /// The additional section without RRSIG, OPT and TSIG records.
    pub additional: u32,
    /// The RRSIG records of all sections. Servers that sign by themselves make different ones.
    pub signatures: u32,
    /// The OPT record: that there is one, its version, its flags and options. Left out are what is the
    /// server's own and not the answer's: the payload size, cookie, keep-alive, padding, NSID, and the text
    /// of an extended error (RFC 8914), which is for people.
    pub edns: u32,
}

impl AnswerDigest {
    /// The digest of an answer that is whole. `scratch` is for names and data; it keeps its memory.
    ///
    /// # Errors
    /// When [`read_answer`] finds a fault.
    pub fn of(message: &[u8], scratch: &mut Vec<u8>) -> Result<Self, AnswerFault> {
        let content = read_answer(message)?;
        // `read_answer` has checked the length.
        let parsed = Message::from_slice(message).map_err(|_| Malformed::Short(message.len()))?;
        let mut digest = Self {
            rcode: u16::from(message[3] & 0x0f),
            flags: (message[2] & 0x07) << 4 | message[3] >> 4,
            ..Self::default()
        };
        let mut sections = [0u64; 3];
        let (mut signatures, mut edns) = (0u64, 0u64);
        let mut records = parsed.answer().map_err(|_| Malformed::Question)?;
        for (number, section) in (1u8..).zip(&mut sections) {
            // A truncated message may end within its records.
            for record in records.by_ref().map_while(Result::ok) {
                if record.rtype() == Rtype::OPT {
                    // Extended code, version and flags are in the place of the TTL.
                    digest.rcode |= ((record.ttl().as_secs() >> 24) as u16) << 4;
                    edns = edns.wrapping_add(of_opt(&record));
                    continue;
                }
                if record.rtype() == Rtype::TSIG || content.truncated {
                    continue;
                }
                let Ok(whole) = record.to_any_record::<AllRecordData<_, ParsedName<_>>>() else {
                    continue;
                };
                scratch.clear();
                let is_signature = record.rtype() == Rtype::RRSIG;
                if is_signature {
                    scratch.push(number);
                }
                infallible(record.owner().compose_canonical(scratch));
                scratch.extend_from_slice(&record.class().to_int().to_be_bytes());
                scratch.extend_from_slice(&record.rtype().to_int().to_be_bytes());
                infallible(whole.data().compose_canonical_rdata(scratch));
                let sum = if is_signature { &mut signatures } else { &mut *section };
                *sum = sum.wrapping_add(hash(scratch));
            }
            match records.next_section() {
                Ok(Some(next)) => records = next,
                _ => break,
            }
        }
        [digest.answer, digest.authority, digest.additional] = sections.map(folded);
        (digest.signatures, digest.edns) = (folded(signatures), folded(edns));
        Ok(digest)
    }
}

/// The hash of an OPT record.
fn of_opt(record: &ParsedRecord<'_, [u8]>) -> u64 {
    let mut sum = hash(&(record.ttl().as_secs() & 0x00ff_ffff).to_be_bytes());
    let Ok(Some(opt)) = record.to_record::<Opt<_>>() else { return sum };
    for option in opt.data().iter::<UnknownOptData<_>>().map_while(Result::ok) {
        let (code, data) = (option.code().to_int(), option.as_slice());
        let data = match code {
            COOKIE | KEEPALIVE | PADDING | NSID => continue,
            EXTENDED_ERROR => &data[..data.len().min(2)],
            _ => data,
        };
        let mut hasher = FnvHasher::default();
        hasher.write(&code.to_be_bytes());
        hasher.write(data);
        sum = sum.wrapping_add(mixed(hasher.finish()));
    }
    sum
}

impl Query {
    /// A digest of what is asked: flags, question, the flags of the OPT record and its options. The case of
    /// letters in the name does not matter, nor does what follows from the transport: payload size, cookie,
    /// keep-alive and padding. Equal for no two questions but in one of 2^32 cases.
    #[must_use]
    pub fn digest(&self) -> u32 {
        let (octets, question) = (self.octets(), self.question());
        let mut hasher = FnvHasher::default();
        hasher.write(&octets[2..4]);
        question.iter().for_each(|octet| hasher.write(&[octet.to_ascii_lowercase()]));
        // Behind the root name and the type are payload size, flags and the length of the options.
        if let Some((fixed, mut options)) = octets[HEADER + question.len()..].split_at_checked(11) {
            hasher.write(&fixed[5..9]);
            while let Some((header, behind)) = options.split_first_chunk::<OPTION_HEADER>() {
                let code = u16::from_be_bytes([header[0], header[1]]);
                let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
                let Some((data, behind)) = behind.split_at_checked(length) else { break };
                if !matches!(code, COOKIE | KEEPALIVE | PADDING) {
                    hasher.write(header);
                    hasher.write(data);
                }
                options = behind;
            }
        }
        folded(mixed(hasher.finish()))
    }
}

fn hash(octets: &[u8]) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(octets);
    mixed(hasher.finish())
}

/// Each bit of the hash depends on each bit of the sum (the last step of MurmurHash3, which is a bijection).
/// Sums of what FNV alone gives for similar records would fall together.
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

fn folded(sum: u64) -> u32 {
    (sum ^ sum >> 32) as u32
}

/// Memory that grows takes all that is written.
fn infallible(result: Result<(), Infallible>) {
    let Ok(()) = result;
}

/// A message as text, as dig(1) shows it, for people. Names and data are escaped as in zone files; control
/// characters of other texts are not.
///
/// A message that cannot be read is shown in hexadecimal.
#[must_use]
pub fn message_text(message: &[u8]) -> String {
    /// Octets that say enough of a message that nobody can read.
    const SHOWN: usize = 64;
    match (read_answer(message), Message::from_octets(message)) {
        (Ok(_), Ok(parsed)) => parsed.display_dig_style().to_string(),
        (Err(fault), _) => {
            let octets = message.iter().take(SHOWN).map(|octet| format!("{octet:02x}"));
            let more = if message.len() > SHOWN { "..." } else { "" };
            let shown = octets.collect::<String>();
            format!(";; malformed: {fault}\n;; {} octets: {shown}{more}\n", message.len())
        }
        (Ok(_), Err(_)) => String::new(),
    }
}

#[cfg(test)]
mod tests;
