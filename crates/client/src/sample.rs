//! Which answers are parsed in full: all at a low rate, one of many at a high rate.

use crate::time::Nanos;

/// Time over which the rate of answers is measured.
const SLICE: Nanos = 100_000_000;

/// Answers that are parsed in full in a slice, about: 4,000 a second. A worker may have 800,000 answers in a
/// second, so this takes a small share of its time, which does not grow with the rate.
const BUDGET: u64 = 400;

/// An answer of so many octets counts twice, one of twice as many three times, and so on: it takes longer to
/// parse.
const LONG: usize = 512;

/// Picks answers by their number alone: one of `stride` on average, at varying distances. So a list of
/// queries that comes round and round is not always met in the same place.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Answers up to and including the next that is picked; at least 1.
    left: u32,
    /// What `left` was when its answers were last counted.
    drawn: u32,
    /// One of so many answers is picked; at least 1.
    stride: u32,
    /// The stride when `left` was drawn.
    drawn_of: u32,
    began: Nanos,
    /// Answers of the slice that are already counted.
    answered: u64,
    /// Answers of the slice that were picked.
    picked: u64,
    /// What they cost together.
    spent: u64,
    /// What `spent` may reach before the stride grows.
    limit: u64,
    /// What a picked answer costs on average; at least 1.
    weight: u64,
    /// State of the generator that draws the distances. The sequence is always the same.
    random: u64,
}

impl Default for Sample {
    /// Begins with every answer.
    fn default() -> Self {
        Self::one_of(1)
    }
}

impl Sample {
    /// Begins with one of `stride` answers.
    pub(crate) fn one_of(stride: u32) -> Self {
        let stride = stride.max(1);
        Self {
            left: stride,
            drawn: stride,
            stride,
            drawn_of: stride,
            began: 0,
            answered: 0,
            picked: 0,
            spent: 0,
            limit: BUDGET,
            weight: 1,
            random: 0,
        }
    }

    /// Counts an answer; true if it is to be parsed in full. Then [`Self::taken`] must follow.
    #[inline]
    pub(crate) fn takes_next(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// Decides how many answers are passed over after this one, which has `octets` octets and was received at
    /// `at`. Returns how many answers this one stands for: the inverse of the chance with which it was
    /// picked. So sums of these are sums over all answers, whatever their rate was (Horvitz and Thompson,
    /// 1952).
    pub(crate) fn taken(&mut self, at: Nanos, octets: usize) -> u32 {
        let stands_for = self.drawn_of;
        self.picked += 1;
        self.spent += 1 + (octets / LONG) as u64;
        // The budget of a slice is used up before its end where a load begins or grows.
        if !self.ends_slice(at, SLICE) && self.spent >= self.limit {
            self.limit += BUDGET;
            self.stride = self.stride.saturating_mul(2);
        }
        self.draw();
        stands_for
    }

    /// To be called now and then, so that a fallen rate is noticed before the answers of the old stride are
    /// over.
    pub(crate) fn look(&mut self, now: Nanos) {
        if self.ends_slice(now, SLICE / 10) {
            self.draw();
        }
    }

    /// If the slice has this length, decides by its rate how many answers are passed over in the next.
    fn ends_slice(&mut self, now: Nanos, length: Nanos) -> bool {
        let elapsed = now.saturating_sub(self.began);
        self.answered += u64::from(self.drawn - self.left);
        self.drawn = self.left;
        if elapsed < length {
            return false;
        }
        self.weight = self.spent.checked_div(self.picked).unwrap_or(self.weight);
        let in_slice = u128::from(self.answered) * u128::from(SLICE) / u128::from(elapsed);
        let stride = (in_slice * u128::from(self.weight)).div_ceil(BUDGET.into()).max(1);
        self.stride = u32::try_from(stride).unwrap_or(u32::MAX);
        (self.began, self.answered, self.picked) = (now, 0, 0);
        (self.spent, self.limit) = (0, BUDGET);
        true
    }

    /// Draws the distance to the next answer that is picked, `stride` on average.
    fn draw(&mut self) {
        // Knuth's linear congruential generator (MMIX); its upper bits are good enough to avoid a beat.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let most = u64::from(self.stride) * 2 - 1;
        let distance = 1 + (self.random >> 32) % most;
        self.drawn = u32::try_from(distance).unwrap_or(u32::MAX);
        self.drawn_of = self.stride;
        self.left = self.drawn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    /// Of `rate` answers in each of the seconds `from..until`.
    fn picked(sample: &mut Sample, rate: u64, seconds: std::ops::Range<u64>) -> u64 {
        picked_of(sample, rate, seconds, 100)
    }

    /// Of `rate` answers of so many octets in each of the seconds `from..until`.
    fn picked_of(
        sample: &mut Sample,
        rate: u64,
        seconds: std::ops::Range<u64>,
        octets: usize,
    ) -> u64 {
        let mut picked = 0;
        for number in 0..rate * (seconds.end - seconds.start) {
            if sample.takes_next() {
                sample.taken(seconds.start * SECOND + number * SECOND / rate, octets);
                picked += 1;
            }
        }
        picked
    }

    #[test]
    fn all_answers_are_picked_while_they_are_few() {
        let mut sample = Sample::default();
        assert_eq!(picked(&mut sample, 3_900, 0..10), 39_000);
    }

    #[test]
    fn some_thousand_a_second_are_picked_of_many() {
        for rate in [8_000, 50_000, 800_000, 3_000_000] {
            let mut sample = Sample::default();
            let first = picked(&mut sample, rate, 0..1);
            assert!(first <= 12_000, "{first} of {rate} in the first second");
            let later = picked(&mut sample, rate, 1..5) / 4;
            assert!((2_000..=4_800).contains(&later), "{later} of {rate} in a second");
        }
    }

    #[test]
    fn of_long_answers_fewer_are_picked() {
        // Each counts for 32.
        let mut sample = Sample::default();
        picked_of(&mut sample, 50_000, 0..1, 16_000);
        let later = picked_of(&mut sample, 50_000, 1..5, 16_000) / 4;
        assert!((60..=150).contains(&later), "{later} in a second");
        // Short ones again.
        picked(&mut sample, 50_000, 5..6);
        let later = picked(&mut sample, 50_000, 6..10) / 4;
        assert!((2_000..=4_800).contains(&later), "{later} in a second");
    }

    #[test]
    fn a_rate_that_falls_is_known_after_two_looks() {
        let mut sample = Sample::default();
        picked(&mut sample, 800_000, 0..2);
        sample.look(2 * SECOND);
        let before = picked(&mut sample, 10, 2..3);
        assert!(before < 5, "{before} of 10");
        sample.look(3 * SECOND);
        picked(&mut sample, 10, 3..4);
        sample.look(4 * SECOND);
        assert_eq!(picked(&mut sample, 10, 4..14), 100);
    }

    /// What was picked of `rate` answers in this second stands for so many.
    fn stood_for(sample: &mut Sample, rate: u64, second: u64) -> u64 {
        let answers = (0..rate).map(|number| second * SECOND + number * SECOND / rate);
        let picks = |at| sample.takes_next().then(|| u64::from(sample.taken(at, 100)));
        answers.filter_map(picks).sum()
    }

    /// A tenth of all answers come at a low rate, at which all of them are picked.
    #[test]
    fn what_was_picked_stands_for_all_answers() {
        let mut sample = Sample::default();
        let few: u64 = (0..100).map(|second| stood_for(&mut sample, 1_000, second)).sum();
        let many: u64 = (100..110).map(|second| stood_for(&mut sample, 90_000, second)).sum();
        assert_eq!(few, 100_000);
        assert!((850_000..=950_000).contains(&many), "{many} of 900,000");
    }

    /// Queries come round in a list of a hundred. Each of them is looked at.
    #[test]
    fn no_query_of_a_list_is_passed_over_for_ever() {
        let mut sample = Sample::one_of(200);
        let mut seen = [false; 100];
        for number in 0..800_000_usize {
            if sample.takes_next() {
                sample.taken(number as Nanos * 1_250, 100);
                seen[number % 100] = true;
            }
        }
        assert!(seen.iter().all(|seen| *seen), "{seen:?}");
    }
}
