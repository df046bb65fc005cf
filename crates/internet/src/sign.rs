//! Keys and signatures (RFC 4034), made when they are asked for.
//!
//! The algorithm is Ed25519 (RFC 8080): its signatures follow from key and data alone, so that two runs give
//! equal octets. A zone has one key, for the zone and for itself (flags 257).

use dnslab_wire::rtype;
use ring::digest;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::data::{Set, types};
use crate::draw::{About, mix};
use crate::model::{Internet, Zone};
use crate::name::label_count;

/// Ed25519 (RFC 8080, section 5).
const ALGORITHM: u8 = 15;

/// SHA-256 (RFC 4509).
const DIGEST: u8 = 2;

/// Signatures are valid from here, seconds since 1970: 2024-01-01. The same in every run, so that the seed
/// alone decides the octets.
const INCEPTION: u32 = 1_704_067_200;

/// 2038-01-01. Serial numbers reach further (RFC 4034, section 3.1.5), but ldns takes a time after 2038-01-19 for one
/// before 1970.
const EXPIRATION: u32 = 2_145_916_800;

/// Expired signatures were valid until here: a month after [`INCEPTION`].
const EXPIRED: u32 = INCEPTION + 30 * 86_400;

/// Keys that are kept. To make one takes some 20 us.
const KEYS: usize = 1 << 13;

/// Signatures that are kept; each takes 80 octets. To make one takes some 20 us.
const SIGNATURES: usize = 1 << 17;

/// Keys and signatures that were made, in tables of a fixed size: a later one takes the place of an earlier
/// one. What is kept changes the time of an answer, never its octets. The tables are made when the first zone
/// that is signed is asked for.
#[derive(Debug, Default)]
pub(crate) struct Signer {
    keys: Vec<Option<(u64, Key)>>,
    /// The words of what was signed, and the signature.
    signatures: Vec<([u64; 2], [u8; 64])>,
    /// What is to be signed.
    octets: Vec<u8>,
}

#[derive(Debug)]
struct Key {
    pair: Ed25519KeyPair,
    public: [u8; 32],
    tag: u16,
}

impl Internet {
    /// Fills a set with the key of a zone.
    pub(crate) fn fill_dnskey(&self, zone: Zone, signer: &mut Signer, set: &mut Set) {
        set.begin(types::DNSKEY, self.key_ttl(zone));
        let public = signer.key(self, zone).public;
        set.push(|octets| push_dnskey(&public, octets));
    }

    /// Fills a set with the DS record of a signed zone.
    pub(crate) fn fill_ds(&self, zone: Zone, signer: &mut Signer, set: &mut Set) {
        set.begin(rtype::DS, self.description.top_level.ds_ttl.0);
        let key = signer.key(self, zone);
        let (tag, public) = (key.tag, key.public);
        let mut hashed = Vec::with_capacity(128);
        self.push_apex(zone, &mut hashed);
        push_dnskey(&public, &mut hashed);
        let digest = digest::digest(&digest::SHA256, &hashed);
        set.push(|octets| {
            octets.extend_from_slice(&tag.to_be_bytes());
            octets.extend_from_slice(&[ALGORITHM, DIGEST]);
            octets.extend_from_slice(digest.as_ref());
        });
    }
}

/// Appends the data of a DNSKEY record (RFC 4034, section 2.1).
fn push_dnskey(public: &[u8; 32], octets: &mut Vec<u8>) {
    // A zone key that is a secure entry point; the protocol is always 3.
    octets.extend_from_slice(&[1, 1, 3, ALGORITHM]);
    octets.extend_from_slice(public);
}

impl Signer {
    fn key(&mut self, internet: &Internet, zone: Zone) -> &Key {
        if self.keys.is_empty() {
            self.keys.resize_with(KEYS, || None);
        }
        let word = internet.zone_word(zone);
        let place = &mut self.keys[word as usize % KEYS];
        let is_it = place.as_ref().is_some_and(|(kept, _)| *kept == word);
        if !is_it {
            *place = Some((word, Key::new(internet, word)));
        }
        let (_, key) = place.as_ref().expect("a key was put there");
        key
    }

    /// Fills `signature` with the RRSIG record of a set that is not empty, whose owner is in lower case.
    pub(crate) fn sign(
        &mut self,
        internet: &Internet,
        zone: Zone,
        owner: &[u8],
        set: &Set,
        signature: &mut Set,
    ) {
        let tag = self.key(internet, zone).tag;
        let expiration = if internet.is_expired(zone) { EXPIRED } else { EXPIRATION };
        let octets = &mut self.octets;
        octets.clear();
        octets.extend_from_slice(&set.rtype.to_be_bytes());
        octets.extend_from_slice(&[ALGORITHM, label_count(owner)]);
        octets.extend_from_slice(&set.ttl.to_be_bytes());
        octets.extend_from_slice(&expiration.to_be_bytes());
        octets.extend_from_slice(&INCEPTION.to_be_bytes());
        octets.extend_from_slice(&tag.to_be_bytes());
        internet.push_apex(zone, octets);
        let data_end = octets.len();
        // The records in canonical order (RFC 4034, section 6.3).
        let mut data: Vec<&[u8]> = set.data().collect();
        data.sort_unstable();
        for data in data {
            octets.extend_from_slice(owner);
            octets.extend_from_slice(&set.rtype.to_be_bytes());
            octets.extend_from_slice(&[0, 1]);
            octets.extend_from_slice(&set.ttl.to_be_bytes());
            octets.extend_from_slice(&(data.len() as u16).to_be_bytes());
            octets.extend_from_slice(data);
        }
        let signed = self.signature_of_octets(internet, zone);
        let octets = &self.octets;
        signature.begin(rtype::RRSIG, set.ttl);
        signature.push(|out| {
            out.extend_from_slice(&octets[..data_end]);
            out.extend_from_slice(&signed);
        });
    }

    fn signature_of_octets(&mut self, internet: &Internet, zone: Zone) -> [u8; 64] {
        if self.signatures.is_empty() {
            self.signatures = vec![([0; 2], [0; 64]); SIGNATURES];
        }
        let words = words_of(internet.zone_word(zone), &self.octets);
        let place = words[0] as usize % SIGNATURES;
        if self.signatures[place].0 == words {
            return self.signatures[place].1;
        }
        let octets = std::mem::take(&mut self.octets);
        let signed = self.key(internet, zone).pair.sign(&octets);
        self.octets = octets;
        let signed = *signed.as_ref().first_chunk().expect("such a signature has 64 octets");
        self.signatures[place] = (words, signed);
        signed
    }
}

impl Key {
    fn new(internet: &Internet, zone: u64) -> Self {
        let mut seed = [0; 32];
        for (part, octets) in (0..).zip(seed.chunks_exact_mut(8)) {
            let word = internet.draws.of_part(About::Key, zone, part);
            octets.copy_from_slice(&word.to_be_bytes());
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).expect("any 32 octets are a seed");
        let public = *pair.public_key().as_ref().first_chunk().expect("the key has 32 octets");
        let mut data = Vec::with_capacity(36);
        push_dnskey(&public, &mut data);
        // RFC 4034, appendix B.
        let words =
            data.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let sum: u32 = words.sum();
        Self { pair, public, tag: (sum + (sum >> 16)) as u16 }
    }
}

/// Two words that stand for a zone and octets. Nobody chooses the octets to find two with the same words: an
/// internet is its own only enemy.
fn words_of(zone: u64, octets: &[u8]) -> [u64; 2] {
    let [mut one, mut other] = [zone, !zone];
    for chunk in octets.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        one = mix(one ^ word);
        other = (other ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(29);
    }
    [one, mix(other ^ octets.len() as u64)]
}
