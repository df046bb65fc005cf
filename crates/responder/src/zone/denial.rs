//! Which NSEC records of a signed zone prove that something is not there (RFC 4035, section 3.1.3).

use std::cmp::Ordering;

use dnslab_wire::canonical_cmp;

use super::data::{NamedNode, Zone, suffixes};

impl Zone {
    /// True if the zone has NSEC records, and so can prove what it does not have.
    pub(crate) fn is_signed(&self) -> bool {
        !self.chain.is_empty()
    }

    /// The node of the NSEC record that covers a name of this zone: that of the name itself, or
    /// the last one before it. `None` if the zone is not signed.
    pub(crate) fn covering(&self, name: &[u8]) -> Option<NamedNode<'_>> {
        let is_before =
            |at: &u32| canonical_cmp(self.node_at(*at as usize).name, name) != Ordering::Greater;
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
