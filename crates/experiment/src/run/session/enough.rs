//! When the rounds say enough.

use dnslab_analysis::Summary;
use dnslab_record::{RunRecord, Session};

/// Whether what answers the question is known to within `until` (a relative difference) of each pair that was
/// compared.
pub(super) fn is_enough(facts: &Session, records: &[RunRecord], until: f64) -> bool {
    let summary = Summary::of(facts, records);
    let answering = summary.answering_comparisons();
    let is_narrow = |half: f64| half <= until;
    !answering.is_empty()
        && answering.iter().all(|found| found.difference.half_width().is_some_and(is_narrow))
}
