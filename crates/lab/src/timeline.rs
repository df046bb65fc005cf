//! Instants on the timeline of a load.

use std::time::{Duration, Instant};

/// `at` relative to `origin`, nanoseconds: negative before it, saturated at `i64::MAX` either way.
pub fn signed_ns(at: Instant, origin: Instant) -> i64 {
    let ns = |length: Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
    match at.checked_duration_since(origin) {
        Some(after) => ns(after),
        None => -ns(origin.duration_since(at)),
    }
}
