//! Signs made-up zones (RFC 4034, RFC 4035), with one key for all of them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dnslab_wire::{RrSet, Unsigned, Validity, ZoneKey};

/// Whether made-up zones are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// No keys, no signatures, no proofs.
    Unsigned,
    /// Signed at this instant: each zone has DNSKEY, RRSIG and NSEC records, and a DS record at its parent.
    /// Signatures are valid for 30 days, from an hour before the instant.
    At(SystemTime),
}

/// A clock that is behind by this much finds the signatures valid.
const BEFORE: Duration = Duration::from_secs(60 * 60);

/// Longer than any measurement, and as long as many real ones.
const VALIDITY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Made once and shared by all zones.
pub(super) struct Signer {
    pub(super) key: ZoneKey,
    validity: Validity,
}

impl Signer {
    pub(super) fn new(now: SystemTime) -> Self {
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let from = since_1970.saturating_sub(BEFORE);
        Self {
            key: ZoneKey::laboratory_ecdsa(),
            // Serial arithmetic over 32 bits (RFC 4034, section 3.1.5), so the upper bits are dropped.
            validity: Validity {
                inception: from.as_secs() as u32,
                expiration: (from + VALIDITY).as_secs() as u32,
            },
        }
    }

    /// Fills `rrsig` with the signature of a set.
    pub(super) fn sign(&self, apex: &[u8], owner: &[u8], set: &RrSet, rrsig: &mut RrSet) {
        let unsigned = Unsigned { apex, owner, set, validity: self.validity };
        self.key.fill_rrsig(unsigned, ZoneKey::signature, &mut Vec::new(), rrsig);
    }
}
