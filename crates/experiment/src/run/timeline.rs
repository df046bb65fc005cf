//! How long the loads of a round take together, and how they take turns.

use std::time::Duration;

use dnslab_settings::Load;
use dnslab_traffic::{SlicePlan, Timeline};

/// Samples reach beyond both ends of a load, so that nothing is extrapolated there.
pub(crate) const SAMPLES_AROUND: Duration = Duration::from_millis(120);

/// The uncounted end of an open loop's turn.
///
/// An answer may wait for the next query of its connection, 40 ms at most (delayed acknowledgements). The
/// last answer of each connection would always wait.
const OPEN_LOOP_TAIL: Duration = Duration::from_millis(45);

/// The timeline that the loads of a round share: the longest that any of them asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundTimeline {
    /// How the loads take turns; `None` for one that is alone.
    pub(crate) turns: Option<SlicePlan>,
    /// Each load has a single turn.
    pub(crate) is_in_one_turn: bool,
    /// Until the measured window begins; in one turn that of each load.
    pub(crate) warm_up: Duration,
    /// Until the last load ends.
    pub(crate) length: Duration,
}

impl RoundTimeline {
    /// Of a round of `count` loads, which alternate in slices as `slices` says. Of one that cannot be made nothing is
    /// among `loads`.
    pub(crate) fn of<'a>(
        count: usize,
        loads: impl Iterator<Item = &'a Load> + Clone,
        slices: SlicePlan,
    ) -> Self {
        let longest =
            |length: fn(&Load) -> Duration| loads.clone().map(length).max().unwrap_or_default();
        let (warm_up, duration) = (longest(|load| load.warm_up), longest(|load| load.duration));
        if count < 2 || loads.clone().any(|load| !load.mode.is_closed()) {
            return Self::in_one_turn(count, warm_up, duration);
        }
        let warm_up = slices.length(count, warm_up);
        let length = warm_up.saturating_add(slices.length(count, duration));
        Self { turns: Some(slices), is_in_one_turn: false, warm_up, length }
    }

    /// Of open loops: each has its whole load in one turn, with the warm-up first.
    ///
    /// After a pause longer than its retransmission time-out the kernel acknowledges some segments of a
    /// connection at once. In short slices hardly any answer would wait as it does for clients that keep asking.
    pub(crate) fn in_one_turn(count: usize, warm_up: Duration, duration: Duration) -> Self {
        if count < 2 {
            let length = warm_up.saturating_add(duration);
            return Self { turns: None, is_in_one_turn: false, warm_up, length };
        }
        let turns = SlicePlan {
            slice: warm_up + duration + OPEN_LOOP_TAIL,
            lead: warm_up,
            tail: OPEN_LOOP_TAIL,
            mirrored: false,
        };
        Self { turns: Some(turns), is_in_one_turn: true, warm_up, length: turns.block(count) }
    }

    /// The timeline of each of the loads, in turns drawn from `seed`; none if they take no turns.
    pub(crate) fn of_loads(&self, count: usize, seed: u64) -> Vec<Timeline> {
        let Some(plan) = self.turns else { return Vec::new() };
        let turns = plan.turns(count, self.length, seed).into_iter();
        let timeline = turns.map(|turns| match turns.first_counted(0) {
            // What is measured of one turn is that turn, without its warm-up.
            Some(first_ns) if self.is_in_one_turn => {
                let first = Duration::from_nanos(first_ns);
                Timeline::in_turns(first, first + plan.slice - plan.lead, turns)
            }
            _ => Timeline::in_turns(self.warm_up, self.length, turns),
        });
        timeline.collect()
    }
}

/// Slices in which half of the answers come soon enough, where they took `needed` instead: as much longer as it
/// takes, twice over, with as large a part that does not count. No longer than half of `duration`, so that each load
/// has turns in both directions.
pub(crate) fn lengthened(slices: SlicePlan, needed: Duration, duration: Duration) -> SlicePlan {
    let slice = (2 * needed).min(duration / 2).max(slices.slice);
    let factor = slice.as_secs_f64() / slices.slice.as_secs_f64();
    SlicePlan { slice, lead: slices.lead.mul_f64(factor), ..slices }
}

#[cfg(test)]
mod tests {
    use dnslab_settings::Mode;

    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn slices() -> SlicePlan {
        SlicePlan { slice: ms(50), lead: ms(10), tail: Duration::ZERO, mirrored: true }
    }

    #[test]
    fn slices_become_as_long_as_answers_take() {
        let longer = lengthened(slices(), ms(200), ms(2_000));
        assert_eq!((longer.slice, longer.lead), (ms(400), ms(80)));
        assert_eq!(lengthened(slices(), ms(200), ms(300)).slice, ms(150));
        assert_eq!(lengthened(slices(), ms(1), ms(300)), slices());
        assert_eq!(lengthened(slices(), ms(200), ms(10)), slices());
    }

    #[test]
    fn a_timeline_is_that_of_the_longest_load() {
        let load = |duration| Load { warm_up: ms(100), duration: ms(duration), ..Load::default() };
        let closed = [load(200), load(1_000)];
        let timeline = RoundTimeline::of(2, closed.iter(), slices());
        assert_eq!((timeline.warm_up, timeline.length), (ms(200), ms(2_200)));
        let alone = RoundTimeline::of(1, closed[..1].iter(), slices());
        assert_eq!((alone.turns, alone.length), (None, ms(300)));
        let open = [Load { mode: Mode::constant(10.0), ..load(200) }, load(1_000)];
        let open = RoundTimeline::of(2, open.iter(), slices());
        assert_eq!((open.is_in_one_turn, open.length), (true, 2 * ms(1_145)));
        assert_eq!(open, RoundTimeline::in_one_turn(2, ms(100), ms(1_000)));
    }
}
