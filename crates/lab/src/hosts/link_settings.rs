//! What a link does to packets.

use serde::{Deserialize, Serialize};

/// What a link does to packets, alike in both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSettings {
    /// How long a packet takes from one end to the other, nanoseconds.
    pub delay_ns: u64,
    /// By how much that varies to either side, uniformly, nanoseconds; at most the delay. Each packet has its
    /// own jitter, so packets closer than this overtake each other. TCP copes with that as in reality: it may
    /// take late packets for lost (RFC 8985, section 3.3.2).
    pub jitter_ns: u64,
    /// Share of the packets that are lost, in [0, 1], independently of each other.
    pub loss: f64,
    /// Bits per second; `None` without a bound.
    pub rate_bps: Option<u64>,
}

impl LinkSettings {
    /// True if packets just pass.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}
