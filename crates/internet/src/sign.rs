//! Keys and signatures (RFC 4034), made when they are asked for.
//!
//! A zone has one key. Zones with Ed25519 have each their own, which the seed gives. All with RSA have one key, and all
//! with ECDSA another, as those of one operator may: neither can be made of a seed by `ring`. Signatures follow from key
//! and data alone, but for a part of those of ECDSA, which is random.

use dnslab_wire::{RrSet, Unsigned, Validity, ZoneAlgorithm, ZoneKey, rtype};

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

/// Keys of Ed25519 that are kept. To make one takes some 20 us.
const KEYS: usize = 1 << 13;

/// Signatures that are kept; each takes 100 octets, of RSA 290. To make one takes some 20 us, of RSA some 600 us.
const SIGNATURES: usize = 1 << 17;

/// Keys and signatures that were made, in tables of a fixed size: a later one takes the place of an earlier
/// one. What is kept changes the time of an answer, never what it says. The tables are made when the first zone
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
struct Keys {
    /// Those of Ed25519.
    kept: Vec<Option<KeptKey>>,
    rsa: Option<ZoneKey>,
    ecdsa: Option<ZoneKey>,
}

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
    signature: Box<[u8]>,
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
        keys.get(internet, zone).fill_rrsig(
            unsigned,
            move |key, octets| signatures.get(zone_word, key, octets),
            octets,
            signature,
        );
    }
}

impl Keys {
    /// The key of a zone, as it was kept or made now.
    fn get(&mut self, internet: &Internet, zone: Zone) -> &ZoneKey {
        match internet.algorithm(zone) {
            ZoneAlgorithm::RsaSha256 => self.rsa.get_or_insert_with(ZoneKey::laboratory_rsa),
            ZoneAlgorithm::EcdsaP256Sha256 => {
                self.ecdsa.get_or_insert_with(ZoneKey::laboratory_ecdsa)
            }
            ZoneAlgorithm::Ed25519 => self.own(internet, internet.zone_word(zone)),
        }
    }

    fn own(&mut self, internet: &Internet, zone_word: u64) -> &ZoneKey {
        if self.kept.is_empty() {
            self.kept.resize_with(KEYS, || None);
        }
        let place = &mut self.kept[zone_word as usize % KEYS];
        if place.as_ref().is_none_or(|kept| kept.zone_word != zone_word) {
            *place = None;
        }
        &place.get_or_insert_with(|| KeptKey { zone_word, key: internet.make_key(zone_word) }).key
    }
}

impl Signatures {
    /// The signature of octets by the key of a zone, as it was kept or made now.
    fn get(&mut self, zone_word: u64, key: &ZoneKey, octets: &[u8]) -> &[u8] {
        if self.0.is_empty() {
            self.0 = vec![KeptSignature { words: [0; 2], signature: Box::default() }; SIGNATURES];
        }
        let words = words_of(zone_word, octets);
        let place = &mut self.0[words[0] as usize % SIGNATURES];
        if place.words != words {
            *place = KeptSignature { words, signature: key.signature(octets).into() };
        }
        &place.signature
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
