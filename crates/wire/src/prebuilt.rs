//! Records that are encoded once, and copied into each response.
//!
//! The owner of a prebuilt record is a compression pointer to the question (RFC 1035, section 4.1.4). Its data have no
//! pointers.

use domain::base::iana::Class;

use crate::header::HEADER;

/// Octets of a prebuilt record before its data: a compression pointer, type, class, TTL, length.
pub const PREBUILT_HEADER: usize = 12;

/// A compression pointer reaches the octets before this one, because it has 14 bits (RFC 1035, section 4.1.4).
pub(crate) const POINTER_END: usize = 0x4000;

/// The compression pointer to this octet of a message, which is before [`POINTER_END`].
#[inline]
pub(crate) fn pointer(at: usize) -> [u8; 2] {
    (0xc000 | at as u16).to_be_bytes()
}

/// Appends a prebuilt record.
///
/// # Panics
/// When the data have more than 65,535 octets.
pub fn push_prebuilt(octets: &mut Vec<u8>, rtype: u16, ttl: u32, data: &[u8]) {
    let length = u16::try_from(data.len()).expect("record data have at most 65,535 octets");
    octets.extend_from_slice(&pointer(HEADER));
    octets.extend_from_slice(&rtype.to_be_bytes());
    octets.extend_from_slice(&Class::IN.to_int().to_be_bytes());
    octets.extend_from_slice(&ttl.to_be_bytes());
    octets.extend_from_slice(&length.to_be_bytes());
    octets.extend_from_slice(data);
}

/// Prebuilt records that follow each other, one by one.
#[inline]
pub fn prebuilt_records(mut records: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = records.get(PREBUILT_HEADER - 2..PREBUILT_HEADER)?;
        let length = PREBUILT_HEADER + usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (record, rest) = records.split_at_checked(length)?;
        records = rest;
        Some(record)
    })
}
