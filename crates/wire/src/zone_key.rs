//! Keys of zones, and signatures by them (RFC 4034).

use domain::utils::base64;
use ring::digest;
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair,
};

use crate::name::labels;
use crate::trust_anchor::TRUST_ANCHOR_DNSKEY;
use crate::{RrSet, rtype};

/// Zone Key and Secure Entry Point (RFC 4034, section 2.1.1).
const FLAGS: [u8; 2] = [1, 1];

/// The value that the protocol of every key has (RFC 4034, section 2.1.2).
const PROTOCOL: u8 = 3;

/// SHA-256 as the digest of a DS record (RFC 4509).
const SHA256: u8 = 2;

/// The private half of [`TRUST_ANCHOR_DNSKEY`]. A laboratory key: everybody has it.
const ECDSA_PRIVATE: &str = "T34FLQlZFWjQ/l6NM0ubcr/R1ndqhfJ4ewSh4lOEoYU=";

/// Both halves of a key of 2,048 bits, as PKCS #8. A laboratory key: everybody has it.
const RSA_2048: &[u8] = include_bytes!("rsa_2048.der");

/// A DNSSEC algorithm that keys here have, by its number ("DNS Security Algorithm Numbers" of IANA).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ZoneAlgorithm {
    /// RSA with 2,048 bits and SHA-256 (RFC 5702).
    RsaSha256 = 8,
    /// ECDSA with the curve P-256 and SHA-256 (RFC 6605).
    EcdsaP256Sha256 = 13,
    /// Ed25519 (RFC 8080).
    Ed25519 = 15,
}

impl ZoneAlgorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RsaSha256, Self::EcdsaP256Sha256, Self::Ed25519];

    /// That with this number; `None` if keys here do not have it.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| *algorithm as u8 == number)
    }
}

/// The one key of a zone, which signs its records and itself (flags 257; RFC 4034, section 2.1.1).
#[derive(Debug)]
pub struct ZoneKey {
    pair: Pair,
    /// The data of its DNSKEY record.
    dnskey: Vec<u8>,
    tag: u16,
}

#[derive(Debug)]
enum Pair {
    Ed25519(Ed25519KeyPair),
    EcdsaP256(EcdsaKeyPair, SystemRandom),
    Rsa(RsaKeyPair, SystemRandom),
}

/// When signatures are valid: seconds since 1970 as serial numbers (RFC 4034, section 3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From here on.
    pub inception: u32,
    /// Until here.
    pub expiration: u32,
}

/// Records that a zone's key signs. Names are in wire form and in lower case.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned<'a> {
    /// The apex of the zone.
    pub apex: &'a [u8],
    /// The owner of the records.
    pub owner: &'a [u8],
    /// The records, one at least.
    pub set: &'a RrSet,
    /// When the signature is valid.
    pub validity: Validity,
}

impl ZoneKey {
    /// A key of Ed25519 (RFC 8080). Its signatures follow from the key and the data alone.
    ///
    /// # Panics
    /// Never: any 32 octets are a seed.
    #[must_use]
    pub fn ed25519(seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("any 32 octets are a seed");
        let dnskey = dnskey(ZoneAlgorithm::Ed25519, pair.public_key().as_ref());
        Self::new(Pair::Ed25519(pair), dnskey)
    }

    /// The laboratory's key of ECDSA with the curve P-256 and SHA-256 (RFC 6605), that of [`TRUST_ANCHOR_DNSKEY`]. Each
    /// signature has a random part.
    ///
    /// # Panics
    /// Never: its halves are in the source.
    #[must_use]
    pub fn laboratory_ecdsa() -> Self {
        let public = TRUST_ANCHOR_DNSKEY.rsplit(' ').next().unwrap_or_default();
        let [private, public] = [ECDSA_PRIVATE, public]
            .map(|half| base64::decode::<Vec<u8>>(half).expect("both halves are base64"));
        // The uncompressed form of a point; DNSKEY records leave its first octet out (RFC 6605, section 4).
        let point = [&[4], &public[..]].concat();
        let (curve, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pair = EcdsaKeyPair::from_private_key_and_public_key(curve, &private, &point, &random);
        let pair = pair.expect("the halves are of one key");
        let dnskey = dnskey(ZoneAlgorithm::EcdsaP256Sha256, &public);
        Self::new(Pair::EcdsaP256(pair, random), dnskey)
    }

    /// The laboratory's key of RSA with 2,048 bits and SHA-256 (RFC 5702). Its signatures follow from the data alone.
    ///
    /// # Panics
    /// Never: it is in the source.
    #[must_use]
    pub fn laboratory_rsa() -> Self {
        let pair = RsaKeyPair::from_pkcs8(RSA_2048).expect("it is a key of RSA");
        let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(pair.public());
        // RFC 3110, section 2: the octets of the exponent, the exponent, the modulus.
        let public = [&[e.len() as u8], &e[..], &n].concat();
        let dnskey = dnskey(ZoneAlgorithm::RsaSha256, &public);
        Self::new(Pair::Rsa(pair, SystemRandom::new()), dnskey)
    }

    fn new(pair: Pair, dnskey: Vec<u8>) -> Self {
        let tag = key_tag(&dnskey);
        Self { pair, dnskey, tag }
    }

    /// The data of the DNSKEY record (RFC 4034, section 2.1).
    #[must_use]
    pub fn dnskey(&self) -> &[u8] {
        &self.dnskey
    }

    fn algorithm(&self) -> u8 {
        self.dnskey[3]
    }

    /// Appends the data of the DS record of a zone that has this key, by SHA-256 (RFC 4034, section 5.1; RFC 4509).
    pub fn push_ds(&self, apex: &[u8], octets: &mut Vec<u8>) {
        let digest = digest::digest(&digest::SHA256, &[apex, &self.dnskey].concat());
        octets.extend_from_slice(&self.tag.to_be_bytes());
        octets.extend_from_slice(&[self.algorithm(), SHA256]);
        octets.extend_from_slice(digest.as_ref());
    }

    /// Appends what is signed: the data of the RRSIG record without the signature, and the records in their canonical
    /// form and order (RFC 4034, sections 3.1.8.1 and 6). Returns where the former end.
    fn push_signed_data(&self, unsigned: Unsigned<'_>, octets: &mut Vec<u8>) -> usize {
        let Unsigned { apex, owner, set, validity } = unsigned;
        octets.extend_from_slice(&set.rtype.to_be_bytes());
        octets.extend_from_slice(&[self.algorithm(), signed_labels(owner)]);
        octets.extend_from_slice(&set.ttl.to_be_bytes());
        octets.extend_from_slice(&validity.expiration.to_be_bytes());
        octets.extend_from_slice(&validity.inception.to_be_bytes());
        octets.extend_from_slice(&self.tag.to_be_bytes());
        octets.extend_from_slice(apex);
        let end = octets.len();
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
        end
    }

    /// The signature of octets: 64 of them, or as many as a modulus of RSA has.
    ///
    /// # Panics
    /// When the key is not of Ed25519, and the system has no random octets.
    #[must_use]
    pub fn signature(&self, octets: &[u8]) -> Vec<u8> {
        const RANDOM: &str = "the system has random octets";
        match &self.pair {
            Pair::Ed25519(pair) => pair.sign(octets).as_ref().to_vec(),
            Pair::EcdsaP256(pair, random) => {
                pair.sign(random, octets).expect(RANDOM).as_ref().to_vec()
            }
            Pair::Rsa(pair, random) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, random, octets, &mut signature).expect(RANDOM);
                signature
            }
        }
    }

    /// Fills a set with the RRSIG record of these records, whose signature `sign` makes of the key and what is signed:
    /// [`ZoneKey::signature`], or one that is kept. `scratch` keeps its memory.
    pub fn fill_rrsig<S: AsRef<[u8]>>(
        &self,
        unsigned: Unsigned<'_>,
        sign: impl FnOnce(&Self, &[u8]) -> S,
        scratch: &mut Vec<u8>,
        rrsig: &mut RrSet,
    ) {
        scratch.clear();
        let end = self.push_signed_data(unsigned, scratch);
        let signature = sign(self, scratch);
        rrsig.begin(rtype::RRSIG, unsigned.set.ttl);
        rrsig.push(|octets| {
            octets.extend_from_slice(&scratch[..end]);
            octets.extend_from_slice(signature.as_ref());
        });
    }
}

/// The data of a DNSKEY record (RFC 4034, section 2.1).
fn dnskey(algorithm: ZoneAlgorithm, public: &[u8]) -> Vec<u8> {
    [&FLAGS, &[PROTOCOL, algorithm as u8], public].concat()
}

/// The key tag of a DNSKEY record (RFC 4034, appendix B).
fn key_tag(dnskey: &[u8]) -> u16 {
    let words = dnskey
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let sum: u32 = words.sum();
    (sum + (sum >> 16)) as u16
}

/// The labels that an RRSIG record counts: not the root's, and not the asterisk of a wildcard (RFC 4034, section 3.1.3).
fn signed_labels(owner: &[u8]) -> u8 {
    labels(owner).count() as u8 - u8::from(owner.starts_with(b"\x01*"))
}

#[cfg(test)]
mod tests {
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
        UnparsedPublicKey,
    };

    use super::*;

    /// Each algorithm by its number, and what verifies its signatures by the public key of a DNSKEY record.
    #[test]
    fn keys_sign_as_their_records_say() {
        let said = b"what is signed";
        for (key, number, octets) in [
            (ZoneKey::laboratory_rsa(), 8, 256),
            (ZoneKey::laboratory_ecdsa(), 13, 64),
            (ZoneKey::ed25519(&[7; 32]), 15, 64),
        ] {
            let signature = key.signature(said);
            let public = &key.dnskey()[4..];
            let verified = match number {
                8 => {
                    assert_eq!(public[..4], [3, 1, 0, 1], "an exponent of three octets, 65,537");
                    let key = RsaPublicKeyComponents { e: &public[1..4], n: &public[4..] };
                    key.verify(&RSA_PKCS1_2048_8192_SHA256, said, &signature)
                }
                13 => {
                    let point = [&[4], public].concat();
                    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(said, &signature)
                }
                _ => UnparsedPublicKey::new(&ED25519, public).verify(said, &signature),
            };
            assert_eq!((key.algorithm(), signature.len(), verified), (number, octets, Ok(())));
        }
    }
}
