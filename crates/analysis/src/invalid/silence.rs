//! Servers that fall silent in the middle of a load.

use dnslab_figures::Interval;
use dnslab_record::{Measured, Observation, Silence};

/// A silence is this many times as long as 99 of 100 answers took at most: then it is no wait for an
/// answer that is merely slow.
const LONGER_THAN_ANSWERS: u64 = 3;

/// A silence is at least this long, nanoseconds: shorter ones are those of a busy machine.
const LEAST_NS: u64 = 200_000_000;

/// From so many places of a closed loop on, they do not all lose their answers at the same time by chance.
const PLACES: u64 = 10;

/// So many queries become due in a silence of an open loop at least: at a low rate there is often
/// nothing to answer.
const LEAST_DUE: u64 = 10;

/// A stretch of the measured window in which no answer came, although queries waited for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// Nanoseconds since the measured window began.
    from_ns: u64,
    /// Nanoseconds of the load's own time.
    length_ns: u64,
    due: u64,
    /// Queries that had ended without an answer before it.
    lost_before: u64,
    is_at_end: bool,
}

/// The silence for which a load does not count; `None` if the server never fell silent.
///
/// The server was silent if no answer came for 0.2 s, and for three times as long as 99 of 100
/// answers took, or for the time-out if that is less. Such a silence counts if it lasted until the end of
/// the window, or for as long as the time-out, and if half of what waited in it was never answered. A
/// shorter one is a stall that the server overcame, whose cost belongs to the figures. A closed loop needs
/// this rule: its places wait, no further query becomes due, and so next to none is lost however long the
/// silence is. Instants are exact to one interval of the record.
#[must_use]
pub fn fell_silent(run: &Observation<'_>) -> Option<Silence> {
    let Observation { load, measured, .. } = *run;
    // A load of so many queries ends with the last of them, and waits for that alone.
    let ends_by_count = load.max_queries.is_some();
    let Stretch { from_ns, length_ns, is_at_end, .. } =
        silence(measured, load.window(), load.timeout_ns)
            .filter(|silence| !(silence.is_at_end && ends_by_count))?;
    Some(Silence { from_ns, length_ns, window_ns: measured.window_ns, is_at_end })
}

/// The longest silence that counts. `window` is that of a closed loop.
fn silence(measured: &Measured, window: Option<u64>, timeout_ns: u64) -> Option<Stretch> {
    let p99_ns = measured.service_time.quantile_ns(0.99).unwrap_or(0);
    // What has waited for the time-out is lost, however slow the server was before.
    let least_ns = LEAST_NS.max(LONGER_THAN_ANSWERS.saturating_mul(p99_ns).min(timeout_ns));
    // The few places of a small window may all wait for an answer that was lost: then it takes so many
    // time-outs in succession as chance does not make, at any loss that may be.
    let chance_ns = match window {
        Some(places) if places < PLACES => {
            timeout_ns.saturating_mul(PLACES.div_ceil(places.max(1)))
        }
        _ => 0,
    };
    let lost = measured.counters.outcomes.lost() + measured.warm_up.outcomes.lost();
    let counted = silences(measured).into_iter().filter(|silence| {
        // If most of what waited was answered after all, the load itself was away, or a stall ended.
        // What had been lost before says nothing.
        let waited = window.unwrap_or(silence.due);
        let lost = lost.saturating_sub(silence.lost_before);
        silence.length_ns >= least_ns.max(chance_ns)
            && waited >= if window.is_some() { 1 } else { LEAST_DUE }
            && 2 * lost >= waited
            && (silence.is_at_end || silence.length_ns >= timeout_ns)
    });
    counted.max_by_key(|silence| silence.length_ns)
}

/// All stretches of whole intervals without an answer, in order. Intervals in which other loads had
/// their turn say nothing.
fn silences(measured: &Measured) -> Vec<Stretch> {
    let intervals = measured.whole_intervals();
    let end_ns = intervals.last().map_or(0, |last| last.at_ns + last.length_ns);
    // A part of an interval at the end of the window.
    let goes_on =
        measured.intervals.iter().any(|interval| interval.at_ns >= end_ns && interval.answered > 0);
    let mut found: Vec<Stretch> = Vec::new();
    let mut current: Option<Stretch> = None;
    for interval in intervals {
        let own_ns = interval.own_ns.unwrap_or(interval.length_ns);
        if own_ns == 0 {
            continue;
        }
        if interval.answered > 0 {
            found.extend(current.take());
            continue;
        }
        let begun = Stretch {
            from_ns: interval.at_ns - measured.window_start_ns,
            length_ns: 0,
            due: 0,
            lost_before: lost_before(measured, interval.at_ns),
            is_at_end: false,
        };
        let silence = current.get_or_insert(begun);
        silence.length_ns += own_ns;
        silence.due += interval.due;
    }
    found.extend(current.map(|last| Stretch { is_at_end: !goes_on, ..last }));
    found
}

/// How many queries were lost before a silence that began in the interval before `at_ns`, with what a connection
/// lost at its end.
fn lost_before(measured: &Measured, at_ns: u64) -> u64 {
    let ended = |interval: &&Interval| interval.at_ns + interval.length_ns < at_ns;
    measured.intervals.iter().filter(ended).map(|interval| interval.lost).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_figures::Histogram;

    const TENTH_NS: u64 = 100_000_000;

    /// A load with these answers in each tenth of a second, that took 1 ms each, and ten lost queries.
    fn measured(answered: &[u64]) -> Measured {
        let mut measured =
            Measured { window_ns: answered.len() as u64 * TENTH_NS, ..Measured::default() };
        measured.intervals = (0..)
            .zip(answered)
            .map(|(number, answered)| Interval {
                at_ns: number * TENTH_NS,
                length_ns: TENTH_NS,
                due: 100,
                answered: *answered,
                ..Interval::default()
            })
            .collect();
        measured.service_time = Histogram::new();
        measured.service_time.record_ns(1_000_000);
        measured.counters.outcomes.due = 1_010;
        measured.counters.outcomes.answered = 1_000;
        measured.counters.outcomes.timed_out = 10;
        measured
    }

    #[track_caller]
    fn check(answered: &[u64], expected: Option<(u64, u64, bool)>) {
        let found = silence(&measured(answered), Some(10), 5 * TENTH_NS)
            .map(|found| (found.from_ns / TENTH_NS, found.length_ns / TENTH_NS, found.is_at_end));
        assert_eq!(found, expected);
    }

    #[test]
    fn silences_until_the_end_and_beyond_the_time_out_count() {
        check(&[9, 9, 9, 9, 9, 9], None);
        check(&[9, 9, 9, 0, 0, 0], Some((3, 3, true)));
        check(&[9, 9, 9, 9, 9, 0], None);
        check(&[9, 0, 0, 0, 0, 9], None);
        check(&[9, 0, 0, 0, 0, 0, 9], Some((1, 5, false)));
    }

    #[test]
    fn slow_answers_are_no_silence() {
        let mut slow = measured(&[9, 9, 9, 0, 0, 0]);
        slow.service_time = Histogram::new();
        slow.service_time.record_ns(150_000_000);
        assert_eq!(silence(&slow, Some(10), 5 * TENTH_NS), None);
        // But a server cannot be so slow that its end is none.
        slow.service_time.record_ns(450_000_000);
        assert!(silence(&slow, Some(10), 3 * TENTH_NS).is_some());
    }

    #[test]
    fn where_most_was_answered_in_the_end_nobody_was_silent() {
        let late = measured(&[9, 9, 9, 0, 0, 0]);
        assert!(silence(&late, Some(20), 5 * TENTH_NS).is_some());
        assert_eq!(silence(&late, Some(21), 5 * TENTH_NS), None);
        // Nor does what was lost before say anything of a stall at the end.
        let mut earlier = late;
        earlier.intervals[1].lost = 9;
        assert_eq!(silence(&earlier, Some(10), 5 * TENTH_NS), None);
    }

    #[test]
    fn a_lost_answer_of_a_single_place_is_no_silence() {
        let alone = measured(&[9, 9, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(silence(&alone, Some(1), 5 * TENTH_NS), None);
        let mut dead = vec![9, 9];
        dead.extend([0; 50]);
        assert!(silence(&measured(&dead), Some(1), 5 * TENTH_NS).is_some());
    }

    #[test]
    fn an_open_loop_is_silent_where_queries_were_due() {
        let mut open = measured(&[9, 9, 9, 0, 0, 0]);
        open.counters.outcomes.timed_out = 300;
        open.counters.outcomes.due = 1_300;
        assert!(silence(&open, None, 5 * TENTH_NS).is_some());
        for interval in &mut open.intervals {
            interval.due = 1;
        }
        assert_eq!(silence(&open, None, 5 * TENTH_NS), None);
    }

    #[test]
    fn the_turns_of_others_are_no_silence() {
        let mut turns = measured(&[9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 0, 0, 0, 0]);
        for (number, interval) in turns.intervals.iter_mut().enumerate() {
            interval.own_ns = Some(if number % 2 == 0 { TENTH_NS } else { 0 });
        }
        let found = silence(&turns, Some(10), 5 * TENTH_NS).unwrap();
        assert_eq!((found.from_ns, found.length_ns), (10 * TENTH_NS, 2 * TENTH_NS));
        turns.intervals.truncate(12);
        turns.window_ns = 12 * TENTH_NS;
        assert_eq!(silence(&turns, Some(10), 5 * TENTH_NS), None);
    }
}
