//! How more messages come together in one system call: the sleep before a round, and the order in a batch.

use dnslab_wire::Query;

use crate::attempts::Attempts;
use crate::connection_slot::Pending;
use crate::time::Nanos;

/// Sleeps that let more answers and arrivals come together in one batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pauses {
    /// Their number.
    pub count: u64,
    /// Their length together.
    pub time: Nanos,
}

/// When a worker sleeps for a batch, and what it has learnt of its sleeps.
pub(super) struct Batching {
    /// Shortest time between two rounds while anything is in flight; 0 for none.
    delay: Nanos,
    /// When the worker last woke.
    woke: Nanos,
    /// By how much a sleep is longer than asked: some microseconds, or tens of them on a virtual machine with the
    /// timers of its host.
    oversleep: Nanos,
    /// Those in the measured window.
    pauses: Pauses,
    /// The load's queries have more than one length.
    mixed_lengths: bool,
}

impl Batching {
    pub(super) fn new(delay: Nanos, mixed_lengths: bool) -> Self {
        Self { delay, woke: 0, oversleep: 0, pauses: Pauses::default(), mixed_lengths }
    }

    /// There is any sleep for a batch.
    pub(super) fn is_on(&self) -> bool {
        self.delay > 0
    }

    pub(super) fn wake(&mut self, now: Nanos) {
        self.woke = now;
    }

    /// How long to sleep at `now`, the end of a round, so that more comes together for fewer, larger calls. If the
    /// round itself took as long, enough has come already. `is_open`: queries become due by the clock.
    pub(super) fn next_pause(&mut self, now: Nanos, is_open: bool) -> Nanos {
        let taken = now.saturating_sub(self.woke);
        let pause = match is_open {
            // What has become due since the last wake-up waits for no more than one batch delay.
            true => self.delay.saturating_sub(taken + self.oversleep),
            false if taken < self.delay => self.delay - self.oversleep.min(self.delay),
            false => 0,
        };
        if pause == 0 {
            // Forget half of what was learnt: the next sleep may be asked for again.
            self.oversleep /= 2;
        }
        pause
    }

    /// Learns how much longer than asked a sleep was.
    pub(super) fn note_pause(&mut self, asked: Nanos, slept: Nanos, is_measured: bool) {
        if is_measured {
            self.pauses.count += 1;
            self.pauses.time += slept;
        }
        // A moving mean over about eight sleeps. One long wait for the CPU must not weigh more.
        let over = slept.saturating_sub(asked).min(self.delay);
        self.oversleep = self.oversleep - self.oversleep / 8 + over / 8;
    }

    pub(super) fn pauses(&self) -> Pauses {
        self.pauses
    }

    /// Whether it makes groups to sort datagrams by their length.
    #[inline]
    pub(super) fn sorts_by_length(&self) -> bool {
        self.mixed_lengths
    }
}

/// Those of one length in order of their age.
pub(super) fn put_by_length(pending: &mut [Pending], length: impl Fn(u32) -> usize) {
    pending.sort_unstable_by_key(|pending| (length(pending.query), pending.due));
}

/// What is due only when it is sent waits behind what is asked again.
pub(super) fn put_by_end(pending: &mut [Pending], attempts: &Attempts) {
    pending.sort_unstable_by_key(|pending| pending.end_of_wait(attempts).unwrap_or(Nanos::MAX));
}

pub(super) fn are_mixed<'a>(mut queries: impl Iterator<Item = &'a Query>) -> bool {
    let first = queries.next().map(|query| query.octets().len());
    queries.any(|query| Some(query.octets().len()) != first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(pending: &[Pending]) -> Vec<u32> {
        pending.iter().map(|pending| pending.query).collect()
    }

    /// The waiting queries have a due instant and a length, and are sorted by length, then by age again.
    #[track_caller]
    fn check(waiting: &[(Option<Nanos>, u32)], by_length: &[u32]) {
        let mut waiting: Vec<Pending> =
            waiting.iter().map(|(due, query)| Pending::new(*due, *query)).collect();
        let before = numbers(&waiting);
        // Odd numbers are the longer ones.
        put_by_length(&mut waiting, |query| query as usize % 2);
        assert_eq!(numbers(&waiting), by_length);
        put_by_end(&mut waiting, &Attempts::at_one_server(1, 5, 1));
        assert_eq!(numbers(&waiting), before);
    }

    #[test]
    fn what_was_grouped_and_not_sent_waits_in_order_of_its_age() {
        check(&[(Some(1), 1), (Some(2), 2), (Some(3), 3), (Some(4), 4)], &[2, 4, 1, 3]);
        // One that is asked again, and one of a closed loop.
        check(&[(Some(9), 4), (None, 2)], &[2, 4]);
        check(&[(Some(5), 7)], &[7]);
    }
}
