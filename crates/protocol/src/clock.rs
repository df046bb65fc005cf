//! How the clocks of two hosts lie to each other, from exchanges between them.
//!
//! Each host has a clock that only ever goes forward, from an instant of its own. An exchange has four stamps (RFC 5905,
//! section 8): sent and came back by the one clock, received and answered by the other. The true offset lies within half
//! of the time that the exchange was on its way, around the middle of it. Of several exchanges the fastest says most.

use serde::{Deserialize, Serialize};

/// Exchanges one after the other that an estimate is made from: the best of so many was within 17 us over ssh, idle and
/// loaded. With pauses between them they are biased by 50 us, since an idle CPU wakes late.
pub const EXCHANGES: usize = 16;

/// One exchange, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// When the question was sent, by this clock.
    pub sent_ns: i64,
    /// When it was received, by the other clock.
    pub received_ns: i64,
    /// When the answer was sent, by the other clock.
    pub answered_ns: i64,
    /// When the answer came, by this clock.
    pub came_ns: i64,
}

/// How much the other clock is ahead of this one at an instant, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The instant, by this clock.
    pub at_ns: i64,
    /// The other clock less this one.
    pub ahead_ns: i64,
    /// The true value is within this.
    pub bound_ns: u64,
}

impl Exchange {
    /// The estimate of one exchange; `None` if the stamps contradict each other.
    fn offset(self) -> Option<Offset> {
        let Self { sent_ns, received_ns, answered_ns, came_ns } = self;
        let there = answered_ns.checked_sub(received_ns).filter(|ns| *ns >= 0)?;
        let whole = came_ns.checked_sub(sent_ns).filter(|ns| *ns >= 0)?;
        let on_the_way = u64::try_from(whole.checked_sub(there)?).ok()?;
        let middle = |one: i64, other: i64| (i128::from(one) + i128::from(other)) / 2;
        let at = middle(sent_ns, came_ns);
        let ahead = middle(received_ns, answered_ns) - at;
        Some(Offset {
            at_ns: i64::try_from(at).ok()?,
            ahead_ns: i64::try_from(ahead).ok()?,
            bound_ns: on_the_way.div_ceil(2),
        })
    }
}

/// The estimate of the fastest of these exchanges; `None` without one whose stamps agree.
#[must_use]
pub fn best(exchanges: &[Exchange]) -> Option<Offset> {
    exchanges.iter().filter_map(|exchange| exchange.offset()).min_by_key(|offset| offset.bound_ns)
}

/// More than the oscillators of two computers drift apart in a nanosecond, nanoseconds (RFC 5905, appendix A.5.5.6, has
/// 500 parts in a million for one that cannot be disciplined).
const MAX_DRIFT: f64 = 0.000_5;

/// The offset at an instant of this clock, on the line through an estimate before it and one after it. Its bound is the
/// larger of the two. A difference of them that no oscillator makes is a jump, at an instant that is not known: then it
/// is the bound.
#[must_use]
pub fn between(before: Offset, after: Offset, at_ns: i64) -> Offset {
    let over = i128::from(after.at_ns) - i128::from(before.at_ns);
    let drift = i128::from(after.ahead_ns) - i128::from(before.ahead_ns);
    let since = i128::from(at_ns) - i128::from(before.at_ns);
    let moved = if over > 0 { drift * since / over } else { 0 };
    let ahead = i128::from(before.ahead_ns) + moved;
    let explained = MAX_DRIFT * over as f64 + before.bound_ns as f64 + after.bound_ns as f64;
    let jump = u64::try_from(drift.unsigned_abs()).unwrap_or(u64::MAX);
    let jump = if jump as f64 > explained { jump } else { 0 };
    Offset {
        at_ns,
        ahead_ns: i64::try_from(ahead).unwrap_or(before.ahead_ns),
        bound_ns: before.bound_ns.max(after.bound_ns).max(jump),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// An exchange whose ways took these times, with a clock that is ahead by so much.
    fn exchange(sent_ns: i64, (there, answering, back): (i64, i64, i64), ahead: i64) -> Exchange {
        let received_ns = sent_ns + there + ahead;
        Exchange {
            sent_ns,
            received_ns,
            answered_ns: received_ns + answering,
            came_ns: sent_ns + there + answering + back,
        }
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            ways in vec((0_i64..2_000_000, 0_i64..100_000, 0_i64..2_000_000), 1..20),
            ahead in -2_000_000_000_000_i64..2_000_000_000_000,
        ) {
            let exchanges: Vec<Exchange> =
                (0..).zip(&ways).map(|(nth, ways)| exchange(nth * 5_000_000, *ways, ahead)).collect();
            let found = best(&exchanges).unwrap();
            prop_assert!(found.ahead_ns.abs_diff(ahead) <= found.bound_ns + 1);
            let least = ways.iter().map(|(there, _, back)| there + back).min().unwrap();
            prop_assert_eq!(found.bound_ns, (least as u64).div_ceil(2));
        }
    }

    #[test]
    fn drift_is_taken_out() {
        let offset = |at_ns, ahead_ns, bound_ns| Offset { at_ns, ahead_ns, bound_ns };
        let (before, after) = (offset(1_000, 500, 3), offset(3_000, 510, 9));
        assert_eq!(between(before, after, 2_000), offset(2_000, 505, 9));
        assert_eq!(between(before, after, 0), offset(0, 495, 9));
        // A second later it may have drifted by 500 us, and not by a second.
        let late = |ahead_ns| offset(1_000_001_000, ahead_ns, 9);
        assert_eq!(between(before, late(400_500), 1_000).bound_ns, 9);
        assert_eq!(between(before, late(1_000_000_500), 1_000).bound_ns, 1_000_000_000);
        assert_eq!(between(before, before, 9_000).ahead_ns, 500);
    }

    #[test]
    fn stamps_that_contradict_each_other_say_nothing() {
        let good = exchange(0, (10, 5, 10), 100);
        assert_eq!(best(&[Exchange { came_ns: -1, ..good }]), None);
        assert_eq!(best(&[Exchange { answered_ns: 0, ..good }]), None);
        assert_eq!(
            best(&[Exchange { answered_ns: i64::MAX, received_ns: i64::MIN, ..good }]),
            None
        );
        assert_eq!(best(&[good, Exchange { came_ns: -1, ..good }]).unwrap().ahead_ns, 100);
    }
}
