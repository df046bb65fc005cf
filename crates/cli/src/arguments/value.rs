//! Values that several commands take.

use std::time::Duration;

use dnslab_wire::units::{duration, number};

/// A duration between 1 ms and a week.
pub(super) fn a_while(text: &str) -> Result<Duration, String> {
    let reason = || "write a duration between 1ms and a week, e.g. 60s".to_owned();
    let possible = Duration::from_millis(1)..=Duration::from_secs(7 * 24 * 3_600);
    duration::read(text).ok().filter(|length| possible.contains(length)).ok_or_else(reason)
}

/// In queries per second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let no_number = || "it is no number of queries per second".to_owned();
    let rate = number::read(text).ok_or_else(no_number)?;
    let possible = 0.1..=100e6;
    let reason = || "a rate lies between 0.1 and 100000000 queries per second".to_owned();
    possible.contains(&rate).then_some(rate).ok_or_else(reason)
}
