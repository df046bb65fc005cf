//! Which NSEC records of a signed zone prove that something is not there (RFC 4035, section 3.1.3).

use std::cmp::Ordering;

use domain::base::{Name, ToName as _};

use super::data::{Node, Zone, suffixes};

impl Zone {
    /// True if the zone has NSEC records, and so can prove what it does not have.
    pub(crate) fn is_signed(&self) -> bool {
        !self.chain.is_empty()
    }

    /// The owner and the node of the NSEC record that covers a name of this zone: that of the name itself, or
    /// the last one before it. `None` if the zone is not signed.
    pub(crate) fn covering(&self, name: &[u8]) -> Option<(&[u8], Node<'_>)> {
        let is_before = |at: &u32| {
            let (owner, _) = self.node_at(*at as usize);
            canonical_cmp(owner, name) != Ordering::Greater
        };
        let next = self.chain.partition_point(is_before);
        Some(self.node_at(*self.chain.get(next.checked_sub(1)?)? as usize))
    }

    /// Writes the wildcard that would stand for a name that does not exist: `*` at its closest encloser (RFC
    /// 4592, section 3.3.1). Returns its length.
    pub(crate) fn source_of_synthesis(&self, name: &[u8], out: &mut [u8; 255]) -> Option<usize> {
        let encloser = suffixes(name).skip(1).find(|suffix| self.node(suffix).is_some())?;
        let length = 2 + encloser.len();
        out[..2].copy_from_slice(b"\x01*");
        // It replaces at least one label, of at least one octet, so it is no longer than the name.
        out.get_mut(2..length)?.copy_from_slice(encloser);
        Some(length)
    }
}

/// The canonical order of two lower-cased wire names (RFC 4034, section 6.1).
pub(super) fn canonical_cmp(left: &[u8], right: &[u8]) -> Ordering {
    match (Name::from_octets(left), Name::from_octets(right)) {
        (Ok(left), Ok(right)) => left.name_cmp(&right),
        // Names of a zone are well formed, and so is a QNAME that has been read.
        _ => left.cmp(right),
    }
}
