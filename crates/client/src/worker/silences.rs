//! How long clients wait for an answer before they are answered again.

use crate::time::Nanos;

/// What happens to one of all clients in less than this share of loads is no accident.
const CHANCE: f64 = 1e-4;

/// The silences of a worker's clients that have ended: times without an answer in which queries timed out.
#[derive(Default)]
pub(super) struct Silences {
    longest: Nanos,
    count: u64,
    /// Queries that timed out in them.
    timed_out: u64,
}

impl Silences {
    /// A client is answered again after so long, in which so many of its queries timed out.
    pub(super) fn note(&mut self, lasted: Nanos, timed_out: u32) {
        self.longest = self.longest.max(lasted);
        self.count += 1;
        self.timed_out += u64::from(timed_out);
    }

    /// The longest of them.
    pub(super) fn longest(&self) -> Nanos {
        self.longest
    }

    /// How many queries of a client time out in a row at most by chance, if `lost` is the share of all queries
    /// that were lost. If it is larger, the chance of a loss is the share among the queries that followed a lost
    /// one, of clients that were answered again.
    pub(super) fn in_a_row_by_chance(&self, lost: f64, clients: u32) -> f64 {
        let followed = self.timed_out - self.count;
        let lost_again = followed as f64 / self.timed_out.max(1) as f64;
        let loss = lost.max(lost_again);
        ((CHANCE / f64::from(clients)).ln() / loss.ln()).ceil().max(1.0)
    }
}
