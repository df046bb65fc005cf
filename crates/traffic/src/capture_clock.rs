//! Queries of a capture whose clock was right.

use std::collections::VecDeque;
use std::time::Duration;

/// A day, nanoseconds.
const DAY_NS: u64 = 24 * 3_600 * 1_000_000_000;

const DISORDER_NS: u64 = CaptureClock::<()>::DISORDER.as_nanos() as u64;

/// Leaves out what has a wrong time among the queries of a capture: a clock that was not set yet, or was set back, or a
/// broken header.
///
/// A query is looked at beside the 15 that follow it, for a capture is nearly in order of time. It is left out if
/// - it is before the beginning: the earliest instant within a day of which most of the first 16 are;
/// - it is ahead: most of those that follow, and are not left out for being behind, are more than
///   [`CaptureClock::DISORDER`] before it;
/// - it is behind by more than that: one that was not left out stands before it;
/// - it is more than a day after all before it, and not followed by 15 others. Silence of a day or less is silence.
#[derive(Clone, Debug)]
pub struct CaptureClock<T> {
    waiting: VecDeque<(u64, T)>,
    begin_ns: Option<u64>,
    newest_ns: u64,
    left_out: u64,
}

impl<T> CaptureClock<T> {
    /// A capture may have a query so much later than one that was sent after it. Where there is more, so much is put in
    /// order at most: the threads of Unbound, or several servers, send their dnstap up to a second later than each
    /// other, and what stands after a gap in a TCP stream waits for 5 seconds. All queries of that time are in memory.
    pub const DISORDER: Duration = Duration::from_secs(6);

    /// Queries that are looked at together.
    const TOGETHER: usize = 16;

    /// One that has seen nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { waiting: VecDeque::new(), begin_ns: None, newest_ns: 0, left_out: 0 }
    }

    /// Takes the next query of the capture with its time in nanoseconds. Gives one that was taken before, as soon as its
    /// time is known to be right.
    pub fn push(&mut self, at_ns: u64, query: T) -> Option<(u64, T)> {
        self.waiting.push_back((at_ns, query));
        if self.waiting.len() < Self::TOGETHER { None } else { self.decide() }
    }

    /// Gives one of the last queries when no other comes; `None` if there is no more.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        while !self.waiting.is_empty() {
            let decided = self.decide();
            if decided.is_some() {
                return decided;
            }
        }
        None
    }

    /// The instant at which the capture begins; 0 as long as no query was given.
    #[must_use]
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns.unwrap_or(0)
    }

    /// How many were left out.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Gives the first query that waits, or leaves it out.
    fn decide(&mut self) -> Option<(u64, T)> {
        let begin_ns = match self.begin_ns {
            Some(begin_ns) => begin_ns,
            None => *self.begin_ns.insert(beginning(self.waiting.iter().map(|(at_ns, _)| *at_ns))),
        };
        let (at_ns, query) = self.waiting.pop_front()?;
        let newest_ns = self.newest_ns.max(begin_ns);
        let is_before =
            |other_ns: u64, this_ns: u64| other_ns.saturating_add(DISORDER_NS) < this_ns;
        let is_behind = |this_ns: u64| this_ns < begin_ns || is_before(this_ns, newest_ns);
        let following = self.waiting.iter().map(|(other_ns, _)| *other_ns);
        let credible = following.filter(|other_ns| !is_behind(*other_ns));
        let earlier = credible.clone().filter(|other_ns| is_before(*other_ns, at_ns)).count();
        let is_ahead = 2 * earlier > credible.count();
        let is_alone =
            at_ns > newest_ns.saturating_add(DAY_NS) && self.waiting.len() < Self::TOGETHER - 1;
        if is_ahead || is_behind(at_ns) || is_alone {
            self.left_out += 1;
            return None;
        }
        self.newest_ns = newest_ns.max(at_ns);
        Some((at_ns, query))
    }
}

impl<T> Default for CaptureClock<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The earliest instant within a day of which most of these queries were sent.
fn beginning(times: impl Iterator<Item = u64>) -> u64 {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    let near = |begin: u64| {
        times.iter().filter(|at| (begin..=begin.saturating_add(DAY_NS)).contains(at)).count()
    };
    let most = times.iter().copied().find(|begin| 2 * near(*begin) > times.len());
    most.or(times.first().copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const BEGIN: u64 = 1_700_000_000 * SECOND;

    /// The times that are right, and where the capture begins.
    fn right(times: &[u64]) -> (Vec<u64>, u64) {
        let mut clock = CaptureClock::new();
        let mut right = Vec::new();
        for at_ns in times {
            right.extend(clock.push(*at_ns, ()));
        }
        right.extend(std::iter::from_fn(|| clock.pop()));
        assert_eq!(right.len() as u64 + clock.left_out(), times.len() as u64);
        (right.into_iter().map(|(at_ns, ())| at_ns).collect(), clock.begin_ns())
    }

    /// Queries a second apart.
    fn seconds(count: u64) -> Vec<u64> {
        (0..count).map(|second| BEGIN + second * SECOND).collect()
    }

    #[test]
    fn one_wrong_clock_is_left_out_wherever_it_is() {
        for wrong in [0, 5 * SECOND, BEGIN - 90_000 * SECOND, BEGIN + 40 * DAY_NS, u64::MAX] {
            for place in [0, 1, 8, 20, 99, 100] {
                let mut times = seconds(100);
                times.insert(place, wrong);
                assert_eq!(right(&times), (seconds(100), BEGIN), "{wrong} at {place}");
            }
        }
        // An hour is told from silence only where something follows.
        for wrong in [BEGIN + 5_000 * SECOND, BEGIN.saturating_sub(3_600 * SECOND)] {
            let mut times = seconds(100);
            times.insert(50, wrong);
            assert_eq!(right(&times), (seconds(100), BEGIN));
        }
        // Several of them.
        let mut times = seconds(100);
        for place in [0, 0, 0, 30, 31, 32, 70, 103] {
            times.insert(place, BEGIN + 40 * DAY_NS);
        }
        assert_eq!(right(&times).0, seconds(100));
    }

    fn check_silence(silence_ns: u64, after: u64, expected: usize) {
        let mut times = seconds(30);
        let last = times[29];
        times.extend((1..=after).map(|number| last + silence_ns + number * SECOND));
        assert_eq!(right(&times).0.len(), expected, "{silence_ns} {after}");
    }

    #[test]
    fn silence_is_time() {
        check_silence(60 * SECOND, 1, 31);
        check_silence(DAY_NS - SECOND, 1, 31);
        check_silence(DAY_NS, 15, 30);
        check_silence(DAY_NS, 40, 70);
        // One query in ten seconds.
        let rare: Vec<u64> = (0..50).map(|number| BEGIN + number * 10 * SECOND).collect();
        assert_eq!(right(&rare), (rare.clone(), BEGIN));
        assert_eq!(right(&[]), (Vec::new(), 0));
        assert_eq!(right(&[BEGIN]), (vec![BEGIN], BEGIN));
    }

    #[test]
    fn a_clock_that_was_set_back_is_counted() {
        let mut times: Vec<u64> = seconds(100).into_iter().map(|at| at + 3_600 * SECOND).collect();
        times.extend(seconds(100));
        let (right, _) = right(&times);
        // Which of both clocks was right nobody knows.
        assert!((90..=100).contains(&right.len()), "{}", right.len());
    }

    proptest! {
        /// What is out of order by no more than is put in order is all there.
        #[test]
        fn disorder_is_no_wrong_clock(
            steps in prop::collection::vec((0u64..30_000_000_000, 0u64..5_900_000_000), 0..200),
        ) {
            let mut at_ns = BEGIN;
            let mut times = vec![BEGIN];
            for (step, late) in steps {
                at_ns += step;
                times.push((at_ns - late).max(BEGIN));
            }
            prop_assert_eq!(right(&times), (times.clone(), BEGIN));
        }
    }
}
