//! What a load tells while it runs.

use dnslab_record::LiveInterval;

/// What a load tells while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress<'a> {
    /// Some time has passed, at most 50 ms since the last word.
    Tick,
    /// All workers have finished this interval.
    Interval(&'a LiveInterval),
}
