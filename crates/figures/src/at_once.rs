//! Answers that come at once after a later query of their connection: they waited for it in the server.

/// An answer that waits for a query comes this much later than a round trip after it: the server
/// wakes up, takes the acknowledgement in, and the client wakes up; some 20 us on an idle machine.
const AT_ONCE_NS: u64 = 300_000;

/// An answer took long from so many times on what counts as at once; so do gaps between queries.
pub const LONG: u64 = 4;

/// How long after a query an answer comes that waited for that query, at most, over a path with this
/// round trip; both in nanoseconds.
#[must_use]
pub fn at_once_ns(round_trip_ns: u64) -> u64 {
    round_trip_ns.saturating_add(AT_ONCE_NS)
}
