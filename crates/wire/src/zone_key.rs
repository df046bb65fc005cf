//! Keys of zones, and signatures by them (RFC 4034).

use ring::digest;
use ring::error::KeyRejected;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};

use crate::name::labels;
use crate::{RrSet, rtype};

/// Zone Key and Secure Entry Point (RFC 4034, section 2.1.1).
const FLAGS: [u8; 2] = [1, 1];

/// The value that the protocol of every key has (RFC 4034, section 2.1.2).
const PROTOCOL: u8 = 3;

/// ECDSAP256SHA256 (RFC 6605, section 3).
const ECDSA_P256: u8 = 13;

/// Ed25519 (RFC 8080, section 5).
const ED25519: u8 = 15;

/// SHA-256 as the digest of a DS record (RFC 4509).
const SHA256: u8 = 2;

/// Octets of a signature of both algorithms (RFC 6605, section 4; RFC 8080, section 4).
const SIGNATURE: usize = 64;

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
        let dnskey = dnskey(ED25519, pair.public_key().as_ref());
        Self::new(Pair::Ed25519(pair), dnskey)
    }

    /// A key of ECDSA with the curve P-256 and SHA-256 (RFC 6605), by its private and its public half. Each signature
    /// takes random octets.
    ///
    /// # Errors
    /// When the halves are not of one key.
    pub fn ecdsa_p256(
        private: &[u8],
        public: &[u8],
        random: SystemRandom,
    ) -> Result<Self, KeyRejected> {
        // The uncompressed form of a point; DNSKEY records leave its first octet out (RFC 6605, section 4).
        let point = [&[4], public].concat();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair =
            EcdsaKeyPair::from_private_key_and_public_key(algorithm, private, &point, &random)?;
        Ok(Self::new(Pair::EcdsaP256(pair, random), dnskey(ECDSA_P256, public)))
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

    /// The signature of octets.
    ///
    /// # Panics
    /// When the key is of ECDSA, and the system has no random octets.
    #[must_use]
    pub fn signature(&self, octets: &[u8]) -> [u8; SIGNATURE] {
        let signature = match &self.pair {
            Pair::Ed25519(pair) => pair.sign(octets),
            Pair::EcdsaP256(pair, random) => {
                pair.sign(random, octets).expect("the system has random octets")
            }
        };
        *signature.as_ref().first_chunk().expect("signatures of both algorithms have 64 octets")
    }

    /// Fills a set with the RRSIG record of these records, whose signature `sign` makes of the key and what is signed:
    /// [`ZoneKey::signature`], or one that is kept. `scratch` keeps its memory.
    pub fn fill_rrsig(
        &self,
        unsigned: Unsigned<'_>,
        sign: impl FnOnce(&Self, &[u8]) -> [u8; SIGNATURE],
        scratch: &mut Vec<u8>,
        rrsig: &mut RrSet,
    ) {
        scratch.clear();
        let end = self.push_signed_data(unsigned, scratch);
        let signature = sign(self, scratch);
        rrsig.begin(rtype::RRSIG, unsigned.set.ttl);
        rrsig.push(|octets| {
            octets.extend_from_slice(&scratch[..end]);
            octets.extend_from_slice(&signature);
        });
    }
}

/// The data of a DNSKEY record (RFC 4034, section 2.1).
fn dnskey(algorithm: u8, public: &[u8]) -> Vec<u8> {
    [&FLAGS, &[PROTOCOL, algorithm], public].concat()
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
