//! Signs made-up zones (RFC 4034, RFC 4035), with one key for all of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use dnslab_wire::TRUST_ANCHOR_DNSKEY;
use domain::base::iana::{DigestAlgorithm, Rtype, SecurityAlgorithm};
use domain::base::rdata::ComposeRecordData as _;
use domain::base::{Name, Record};
use domain::crypto::common::{DigestBuilder, DigestType};
use domain::crypto::sign::{KeyPair, SecretKeyBytes, SignError, SignRaw, Signature};
use domain::dnssec::common::parse_from_bind;
use domain::dnssec::sign::denial::nsec::{GenerateNsecConfig, generate_nsecs};
use domain::dnssec::sign::keys::SigningKey;
use domain::dnssec::sign::records::SortedRecords;
use domain::dnssec::sign::signatures::rrsigs::{
    GenerateRrsigConfig, sign_rrset, sign_sorted_zone_records,
};
use domain::rdata::dnssec::Timestamp;
use domain::rdata::{Dnskey, Ds, ZoneRecordData};

pub(super) type MadeRecord = Record<Name<Bytes>, ZoneRecordData<Bytes, Name<Bytes>>>;

/// Whether made-up zones are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// No keys, no signatures, no proofs.
    Unsigned,
    /// Signed at this instant: each zone has DNSKEY, RRSIG and NSEC records, and a DS record at its parent.
    /// Signatures are valid for 30 days, from an hour before the instant.
    At(SystemTime),
}

/// The private half of [`TRUST_ANCHOR_DNSKEY`], in BIND's form. A laboratory key: everybody has it.
const PRIVATE_KEY: &str = "Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\n\
                           PrivateKey: T34FLQlZFWjQ/l6NM0ubcr/R1ndqhfJ4ewSh4lOEoYU=\n";

/// A clock that is behind by this much finds the signatures valid.
const BEFORE: Duration = Duration::from_secs(60 * 60);

/// Longer than any measurement, and as long as many real ones.
const VALIDITY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Made once and shared by all zones.
pub(super) struct Signer {
    /// When signatures begin to be valid, and when they end.
    validity: GenerateRrsigConfig,
    dnskey: Dnskey<Bytes>,
    pair: KeyPair,
}

/// The one key pair, lent to the signing of a zone.
#[derive(Debug)]
struct Lent<'k>(&'k KeyPair);

impl Signer {
    pub(super) fn new(now: SystemTime) -> Self {
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let from = since_1970.saturating_sub(BEFORE);
        // Serial arithmetic over 32 bits (RFC 4034, section 3.1.5), so the upper bits are dropped.
        let timestamp = |since: Duration| Timestamp::from(since.as_secs() as u32);
        Self {
            validity: GenerateRrsigConfig::new(timestamp(from), timestamp(from + VALIDITY)),
            dnskey: public_key(),
            pair: key_pair(),
        }
    }

    pub(super) fn dnskey(&self) -> Dnskey<Bytes> {
        self.dnskey.clone()
    }

    /// The delegation signer of a zone, for its parent (RFC 4034, section 5.1.4; RFC 4509).
    pub(super) fn ds(&self, apex: &Name<Bytes>) -> Ds<Bytes> {
        let mut hashed = apex.as_slice().to_vec();
        self.dnskey.compose_rdata(&mut hashed).expect("a vector takes what it is given");
        let mut digest = DigestBuilder::new(DigestType::Sha256);
        digest.update(&hashed);
        let digest = Bytes::copy_from_slice(digest.finish().as_ref());
        let (tag, algorithm) = (self.dnskey.key_tag(), self.dnskey.algorithm());
        Ds::new(tag, algorithm, DigestAlgorithm::SHA256, digest).expect("a digest has 32 octets")
    }

    /// Adds the NSEC and RRSIG records of a whole zone. Its DNSKEY record must be there already.
    pub(super) fn sign(&self, apex: &Name<Bytes>, records: Vec<MadeRecord>) -> Vec<MadeRecord> {
        /// Names, types and times of zones made here are right, and `ring` signs what it is given.
        const SOUND: &str = "a zone that was made here can be signed";
        let key = SigningKey::new(apex.clone(), self.dnskey.flags(), Lent(&self.pair));
        let mut sorted: SortedRecords<_, _> = records.into_iter().collect();
        let with_dnskey = GenerateNsecConfig::new().without_assuming_dnskeys_will_be_added();
        let nsecs = generate_nsecs(apex, sorted.owner_rrs(), &with_dnskey).expect(SOUND);
        sorted.extend(nsecs.into_iter().map(as_made));
        let signatures =
            sign_sorted_zone_records(apex, sorted.owner_rrs(), &[&key], &self.validity);
        let mut signatures = signatures.expect(SOUND);
        // `domain` leaves the signature of the keys to the caller, who may have several kinds of them.
        let keys = sorted.find_apex_rtype(apex, Rtype::DNSKEY).expect(SOUND);
        let GenerateRrsigConfig { inception, expiration } = self.validity;
        signatures.push(sign_rrset(&key, &keys, inception, expiration).expect(SOUND));
        let mut signed = sorted.into_inner();
        signed.extend(signatures.into_iter().map(as_made));
        signed
    }
}

impl SignRaw for Lent<'_> {
    fn algorithm(&self) -> SecurityAlgorithm {
        self.0.algorithm()
    }

    fn dnskey(&self) -> Dnskey<Vec<u8>> {
        self.0.dnskey()
    }

    fn sign_raw(&self, data: &[u8]) -> Result<Signature, SignError> {
        self.0.sign_raw(data)
    }
}

fn as_made<D: Into<ZoneRecordData<Bytes, Name<Bytes>>>>(
    record: Record<Name<Bytes>, D>,
) -> MadeRecord {
    let (class, ttl) = (record.class(), record.ttl());
    let (owner, data) = record.into_owner_and_data();
    Record::new(owner, class, ttl, data.into())
}

fn public_key() -> Dnskey<Bytes> {
    let record: Record<_, Dnskey<Bytes>> =
        parse_from_bind(TRUST_ANCHOR_DNSKEY).expect("the trust anchor is a DNSKEY record");
    record.into_data()
}

fn key_pair() -> KeyPair {
    let secret = SecretKeyBytes::parse_from_bind(PRIVATE_KEY).expect("the key has BIND's form");
    KeyPair::from_bytes(&secret, &public_key()).expect("both halves are of one key")
}
