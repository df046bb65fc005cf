//! Keys and signatures (RFC 4034), made when they are asked for.
//!
//! The algorithm is Ed25519 (RFC 8080): its signatures follow from key and data alone, so that two runs give
//! equal octets. A zone has one key.

use dnslab_wire::{RrSet, Unsigned, Validity, ZoneKey, rtype};

use crate::draw::{About, mix};
use crate::model::{Internet, Zone};

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
    keys: Keys,
    signatures: Signatures,
    /// The apex of a zone.
    apex: Vec<u8>,
    /// What is to be signed.
    octets: Vec<u8>,
}

#[derive(Debug, Default)]
struct Keys(Vec<Option<KeptKey>>);

#[derive(Debug)]
struct KeptKey {
    zone_word: u64,
    key: ZoneKey,
}

#[derive(Debug, Default)]
struct Signatures(Vec<KeptSignature>);

#[derive(Clone, Debug)]
struct KeptSignature {
    /// They stand for what was signed.
    words: [u64; 2],
    signature: [u8; 64],
}

impl Internet {
    /// Fills a set with the key of a zone.
    pub(crate) fn fill_dnskey(&self, zone: Zone, signer: &mut Signer, set: &mut RrSet) {
        set.begin(rtype::DNSKEY, self.key_ttl(zone));
        let key = signer.keys.get(self, zone);
        set.push(|octets| octets.extend_from_slice(key.dnskey()));
    }

    /// Fills a set with the DS record of a signed zone.
    pub(crate) fn fill_ds(&self, zone: Zone, signer: &mut Signer, set: &mut RrSet) {
        set.begin(rtype::DS, self.description.top_level.ds_ttl.0);
        signer.apex.clear();
        self.push_apex(zone, &mut signer.apex);
        let key = signer.keys.get(self, zone);
        set.push(|octets| key.push_ds(&signer.apex, octets));
    }

    fn make_key(&self, zone_word: u64) -> ZoneKey {
        let mut seed = [0; 32];
        for (part, octets) in (0..).zip(seed.chunks_exact_mut(8)) {
            let word = self.draws.of_part(About::Key, zone_word, part);
            octets.copy_from_slice(&word.to_be_bytes());
        }
        ZoneKey::ed25519(&seed)
    }
}

impl Signer {
    /// Fills `signature` with the RRSIG record of a set that is not empty, whose owner is in lower case.
    pub(crate) fn sign(
        &mut self,
        internet: &Internet,
        zone: Zone,
        owner: &[u8],
        set: &RrSet,
        signature: &mut RrSet,
    ) {
        let Self { keys, signatures, apex, octets } = self;
        apex.clear();
        internet.push_apex(zone, apex);
        let expiration = if internet.is_expired(zone) { EXPIRED } else { EXPIRATION };
        let validity = Validity { inception: INCEPTION, expiration };
        let unsigned = Unsigned { apex, owner, set, validity };
        let zone_word = internet.zone_word(zone);
        let sign = |key: &ZoneKey, octets: &[u8]| signatures.get(zone_word, key, octets);
        keys.get(internet, zone).fill_rrsig(unsigned, sign, octets, signature);
    }
}

impl Keys {
    /// The key of a zone, as it was kept or made now.
    fn get(&mut self, internet: &Internet, zone: Zone) -> &ZoneKey {
        if self.0.is_empty() {
            self.0.resize_with(KEYS, || None);
        }
        let zone_word = internet.zone_word(zone);
        let place = &mut self.0[zone_word as usize % KEYS];
        if place.as_ref().is_none_or(|kept| kept.zone_word != zone_word) {
            *place = None;
        }
        &place.get_or_insert_with(|| KeptKey { zone_word, key: internet.make_key(zone_word) }).key
    }
}

impl Signatures {
    /// The signature of octets by the key of a zone, as it was kept or made now.
    fn get(&mut self, zone_word: u64, key: &ZoneKey, octets: &[u8]) -> [u8; 64] {
        if self.0.is_empty() {
            self.0 = vec![KeptSignature { words: [0; 2], signature: [0; 64] }; SIGNATURES];
        }
        let words = words_of(zone_word, octets);
        let place = &mut self.0[words[0] as usize % SIGNATURES];
        if place.words != words {
            *place = KeptSignature { words, signature: key.signature(octets) };
        }
        place.signature
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
