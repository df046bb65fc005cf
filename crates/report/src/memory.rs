//! The memory of servers in words: the same in all tables.

use dnslab_analysis::VariantSummary;
use dnslab_record::{Caveat, Metric};

use crate::number;

/// What stands for the memory that a server had kept from earlier loads.
pub(crate) const NOT_KNOWN: &str = "not known";

/// Whether what a variant needs is not known, since its server ran before.
pub(crate) fn is_kept(variant: &VariantSummary) -> bool {
    variant.caveats.iter().any(|caveat| caveat.worst == Caveat::MemoryKept)
}

/// The largest memory of its servers; `None` if nobody watched them.
pub(crate) fn peak(variant: &VariantSummary) -> Option<String> {
    let kept = || is_kept(variant).then(|| NOT_KNOWN.to_owned());
    variant.peak_memory_octets.map(number::octets).or_else(kept)
}

/// [`peak`] of a server that ran before, whose memory is never compared.
pub(crate) fn of_running(variant: &VariantSummary) -> Option<String> {
    peak(variant).filter(|_| !variant.metrics.contains_key(&Metric::PeakMemory))
}

/// What its server needs for each connection; `None` without connections, or if nobody watched it.
pub(crate) fn per_connection(variant: &VariantSummary) -> Option<String> {
    let has_connections = variant.connections.counts.opened > 0;
    let kept = || (is_kept(variant) && has_connections).then(|| NOT_KNOWN.to_owned());
    variant.memory_per_connection_octets.map(|octets| number::octets(octets as u64)).or_else(kept)
}
