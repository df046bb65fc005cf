//! Whether a server lets a client go on opening streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the connections to a server have shown: true if it never raises its limit.
pub(super) type NeverRaises = Arc<AtomicBool>;

/// How far the streams of a connection are used up.
///
/// A server raises its limit as streams end (MAX_STREAMS: RFC 9000, section 4.6). One that never does (Knot
/// DNS 3.4) has answered all it ever will when its first limit is reached. It differs from one that is merely
/// slow: half of the streams since the last raise ended some time ago. Once that was seen on one connection,
/// the next ones need not wait for it.
#[derive(Debug, Default)]
pub(super) struct StreamCredit {
    never_raises: NeverRaises,
    was_raised: bool,
    opened: u64,
    /// How many of them had ended when the limit was raised last.
    ended_at_raise: u64,
    /// When the last two samples were taken, and how many streams had ended then.
    older: Option<Sample>,
    newer: Option<Sample>,
    /// The server allowed no stream when one was wanted last.
    is_spent: bool,
    /// The server will allow none any more.
    is_used_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    ended: u64,
}

impl StreamCredit {
    pub(super) fn new(never_raises: &NeverRaises) -> Self {
        Self { never_raises: Arc::clone(never_raises), ..Self::default() }
    }

    /// The server has refused what was sent as early data: no stream was ever opened.
    pub(super) fn begin_again(&mut self) {
        *self = Self::new(&self.never_raises);
    }

    /// A stream was wanted, and opened or not.
    pub(super) fn note_wanted(&mut self, is_opened: bool) {
        self.opened += u64::from(is_opened);
        self.is_spent = !is_opened;
    }

    /// The server has raised its limit while so many streams had not ended.
    pub(super) fn note_raise(&mut self, in_flight: usize) {
        // A server that was merely slow, then.
        self.never_raises.store(false, Ordering::Relaxed);
        self.ended_at_raise = self.ended(in_flight);
        (self.is_spent, self.is_used_up, self.was_raised) = (false, false, true);
    }

    /// Takes a sample if the last one is as old as `patience`, which is how long a server may take to raise
    /// its limit.
    pub(super) fn note_time(&mut self, now: Instant, in_flight: usize, patience: Duration) {
        let is_due = |sample: Sample| now.saturating_duration_since(sample.at) >= patience;
        if self.newer.is_none_or(is_due) {
            self.older = self.newer;
            self.newer = Some(Sample { at: now, ended: self.ended(in_flight) });
        }
        if self.is_spent {
            self.is_used_up = self.has_ended(in_flight);
            if self.is_used_up && !self.was_raised {
                self.never_raises.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Half of the streams since the last raise have ended: some time ago, or by now if the server is known.
    fn has_ended(&self, in_flight: usize) -> bool {
        let is_half = |ended: u64| {
            2 * ended.saturating_sub(self.ended_at_raise) >= self.opened - self.ended_at_raise
        };
        let is_known = !self.was_raised && self.never_raises.load(Ordering::Relaxed);
        // The older sample was taken that long before the newer one.
        self.older.is_some_and(|sample| is_half(sample.ended))
            || is_known && is_half(self.ended(in_flight))
    }

    /// No stream will be allowed any more, as far as can be told.
    pub(super) fn is_used_up(&self) -> bool {
        self.is_used_up
    }

    /// When to look again, if a stream was wanted and not allowed.
    pub(super) fn next_look(&self, patience: Duration) -> Option<Instant> {
        let is_open = self.is_spent && !self.is_used_up;
        self.newer.filter(|_| is_open).map(|sample| sample.at + patience)
    }

    fn ended(&self, in_flight: usize) -> u64 {
        self.opened.saturating_sub(in_flight as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    #[derive(Clone, Copy)]
    enum Event {
        Opened(u64),
        /// One is wanted and not allowed.
        Refused,
        /// The limit is raised, with so many in flight.
        Raised(usize),
    }

    /// When the streams are first found used up, looking every millisecond.
    fn play(events: &[(u64, Event)], in_flight: impl Fn(u64) -> usize) -> Option<u64> {
        play_with(&NeverRaises::default(), events, in_flight)
    }

    fn play_with(
        known: &NeverRaises,
        events: &[(u64, Event)],
        in_flight: impl Fn(u64) -> usize,
    ) -> Option<u64> {
        let (mut credit, start) = (StreamCredit::new(known), Instant::now());
        for ms in 0..1000 {
            for (_, event) in events.iter().filter(|(at, _)| *at == ms) {
                match event {
                    Event::Opened(count) => (0..*count).for_each(|_| credit.note_wanted(true)),
                    Event::Refused => credit.note_wanted(false),
                    Event::Raised(in_flight) => credit.note_raise(*in_flight),
                }
            }
            credit.note_time(start + Duration::from_millis(ms), in_flight(ms), PATIENCE);
            if credit.is_used_up() {
                assert_eq!(credit.next_look(PATIENCE), None);
                return Some(ms);
            }
        }
        None
    }

    #[test]
    fn a_server_that_never_raises_its_limit() {
        use Event::{Opened, Refused};
        // All 1,024 within 10 ms: two samples must be taken after that.
        let quick = [(0, Opened(1024)), (10, Refused)];
        assert_eq!(play(&quick, |ms| if ms < 10 { 1024 } else { 0 }), Some(200));
        // Over 500 ms: it is known at once.
        let slow: Vec<_> = (0..512).map(|ms| (ms, Opened(2))).chain([(512, Refused)]).collect();
        assert_eq!(play(&slow, |_| 2), Some(512));
        // A query that nobody answers keeps nobody.
        assert_eq!(play(&slow, |_| 9), Some(512));
    }

    #[test]
    fn what_one_connection_has_shown_the_next_ones_know() {
        use Event::{Opened, Raised, Refused};
        let known = NeverRaises::default();
        let quick = [(0, Opened(1024)), (10, Refused)];
        let in_flight = |ms| if ms < 10 { 1024 } else { 9 };
        assert_eq!(play_with(&known, &quick, in_flight), Some(200));
        assert_eq!(play_with(&known, &quick, in_flight), Some(10));
        assert_eq!(play_with(&known, &quick, |_| 1024), None, "queries that are not answered");
        // A limit that was raised is raised again: on that connection, and on those that follow.
        let raised = [(0, Opened(9)), (1, Raised(0)), (2, Opened(9)), (3, Refused)];
        assert_eq!(play_with(&known, &raised, |_| 0), Some(200));
        assert_eq!(play_with(&known, &quick, in_flight), Some(200));
    }

    #[test]
    fn servers_that_are_slow_or_raise_it() {
        use Event::{Opened, Raised, Refused};
        // Nothing was answered yet.
        assert_eq!(play(&[(0, Opened(100)), (1, Refused)], |_| 100), None);
        // A few were answered: some servers raise their limit when an eighth has ended.
        assert_eq!(play(&[(0, Opened(100)), (1, Refused)], |_| 90), None);
        // After a long rest a burst is answered, and the limit raised a moment later.
        let burst = [(500, Opened(100)), (501, Refused), (560, Raised(0)), (561, Opened(9))];
        assert_eq!(play(&burst, |ms| if (501..530).contains(&ms) { 100 } else { 0 }), None);
        // Raised once, and then no more.
        let events = [(0, Opened(100)), (50, Raised(0)), (60, Opened(100)), (61, Refused)];
        assert_eq!(play(&events, |_| 0), Some(200));
    }
}
