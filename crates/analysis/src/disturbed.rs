//! Whether others used the machine so much that no difference is certain.

use dnslab_record::{Caveat, RunRecord};

/// Whether others held up this run: their programs made the load or a server wait for a CPU, or the
/// hypervisor kept time from it, in either of its loads. Programs that used other CPUs made nobody wait. Where it
/// is not known how long the server waited, they count as if they had.
#[must_use]
pub fn is_disturbed(record: &RunRecord) -> bool {
    let knows_waits = record.measured.as_ref().is_some_and(|measured| {
        let behind = record.watched.chain.iter().map(|part| &part.resources);
        let mut servers = std::iter::once(&record.watched.resources).chain(behind);
        servers.all(|series| measured.waited_share_of(series).is_some())
    });
    record.all_caveats().iter().any(|caveat| match caveat {
        Caveat::OtherProcesses { .. } => !knows_waits,
        caveat => caveat.is_of_others(),
    })
}

/// Whether others held up half of these runs, or more. Runs of one hour are held up together, so their spread does
/// not show it.
pub(crate) fn are_disturbed<'a>(runs: impl Iterator<Item = &'a RunRecord>) -> bool {
    let held: Vec<bool> = runs.map(is_disturbed).collect();
    let count = held.iter().filter(|is_held| **is_held).count();
    count > 0 && 2 * count >= held.len()
}
