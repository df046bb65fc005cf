//! A timer that allows for how late the kernel wakes.

const REMEMBERED: usize = 8;

/// The timer is set at most this much earlier. A longer delay is a busy moment and no property of the
/// machine.
const EARLIEST_NS: u64 = 300_000;

/// How late the last wakings were. An idle CPU, most of all a virtual one, takes 20 to 150 us to wake each
/// time. The timer is set earlier by the least of them, so that it seldom rings too soon. Whoever is woken
/// too soon has to look at the clock until it is time.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    late_ns: [u64; REMEMBERED],
    rung: usize,
}

impl Alarm {
    /// When the timer must ring for the sleeper to be awake at `at_ns`.
    pub(super) fn set_for(&self, at_ns: u64) -> u64 {
        let least_ns = self.late_ns.iter().copied().min().unwrap_or(0);
        at_ns.saturating_sub(least_ns.min(EARLIEST_NS))
    }

    /// The timer was set for `set_ns`, and the sleeper was awake at `now_ns`.
    pub(super) fn rang(&mut self, set_ns: u64, now_ns: u64) {
        self.late_ns[self.rung % REMEMBERED] = now_ns.saturating_sub(set_ns);
        self.rung = self.rung.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_set_earlier_by_the_least_of_the_last() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.set_for(1_000_000), 1_000_000);
        for late_ns in [90, 80, 70, 120, 60, 200, 95, 85] {
            assert_eq!(alarm.set_for(1_000_000), 1_000_000, "not all places are known");
            alarm.rang(5_000, 5_000 + late_ns);
        }
        assert_eq!(alarm.set_for(1_000_000), 999_940);
        // The oldest are forgotten.
        (0..5).for_each(|_| alarm.rang(5_000, 5_500));
        assert_eq!(alarm.set_for(1_000_000), 999_915);
        (0..8).for_each(|_| alarm.rang(0, 5_000_000));
        assert_eq!(alarm.set_for(1_000_000), 700_000);
        assert_eq!(alarm.set_for(100_000), 0);
    }
}
