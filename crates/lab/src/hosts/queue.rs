//! One direction of an emulated link as a queue: which packet comes out when. Pure: time and randomness are
//! arguments.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::link_settings::LinkSettings;

/// Packets that may wait before a link with a rate; further ones are dropped. An Ethernet device of Linux
/// holds as many by default (`txqueuelen`).
const WAITING: usize = 1_000;

/// One direction of a link. All instants are nanoseconds of one clock.
#[derive(Debug)]
pub(crate) struct Queue {
    settings: LinkSettings,
    random: Xoshiro256PlusPlus,
    /// When the last octet of the last packet has left the sender.
    free_at: u64,
    /// When each packet that is still at the sender will have left it.
    leaving: VecDeque<u64>,
    /// Packets on their way, the first to arrive on top: when, number, octets. Packets that arrive at one
    /// instant keep the order in which they were sent.
    on_their_way: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    /// Packets sent on their way so far.
    sent: u64,
}

impl Queue {
    /// `seed` decides which packets are lost, and how late each is.
    pub(crate) fn new(settings: LinkSettings, seed: u64) -> Self {
        Self {
            settings,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            free_at: 0,
            leaving: VecDeque::new(),
            on_their_way: BinaryHeap::new(),
            sent: 0,
        }
    }

    /// Takes a packet that the sending host hands over `now`. It is lost with the stated probability, and
    /// also if the queue before a link with a rate is full. Otherwise it arrives after the time that its
    /// octets take at that rate, plus the delay with its jitter: maybe before an earlier packet.
    pub(crate) fn push(&mut self, now: u64, packet: Vec<u8>) {
        let LinkSettings { delay_ns, jitter_ns, loss, rate_bps } = self.settings;
        // Drawn for every packet, so that what is lost does not depend on what is queued.
        let is_lost = self.random.random_bool(loss);
        let jitter_ns = self.random.random_range(0..=2 * jitter_ns);
        let mut left_at = now;
        if let Some(rate) = rate_bps {
            while self.leaving.front().is_some_and(|at| *at <= now) {
                self.leaving.pop_front();
            }
            if self.leaving.len() >= WAITING {
                return;
            }
            let bits = packet.len() as u128 * 8;
            let takes = u64::try_from(bits * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX);
            left_at = self.free_at.max(now).saturating_add(takes);
            self.free_at = left_at;
            self.leaving.push_back(left_at);
        }
        if is_lost {
            return;
        }
        let delay_ns = (delay_ns + jitter_ns).saturating_sub(self.settings.jitter_ns);
        self.on_their_way.push(Reverse((left_at.saturating_add(delay_ns), self.sent, packet)));
        self.sent += 1;
    }

    pub(crate) fn pop(&mut self, now: u64) -> Option<Vec<u8>> {
        let has_arrived = self.next_at().is_some_and(|at| at <= now);
        if !has_arrived {
            return None;
        }
        self.on_their_way.pop().map(|Reverse((_, _, packet))| packet)
    }

    /// When the next packet arrives; `None` if none is on its way.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.on_their_way.peek().map(|Reverse((at, _, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn settings() -> LinkSettings {
        LinkSettings { delay_ns: 10 * MS, ..LinkSettings::default() }
    }

    /// Number and arrival of each of `count` packets of 100 octets that are handed over every `apart_ns`.
    fn arrivals(settings: LinkSettings, count: u64, apart_ns: u64) -> Vec<(u64, u64)> {
        let mut queue = Queue::new(settings, 7);
        for number in 0..count {
            let mut packet = number.to_be_bytes().to_vec();
            packet.resize(100, 0);
            queue.push(number * apart_ns, packet);
        }
        let mut found = Vec::new();
        while let Some(at) = queue.next_at() {
            assert_eq!(queue.pop(at - 1), None);
            let packet = queue.pop(at).unwrap();
            found.push((u64::from_be_bytes(packet[..8].try_into().unwrap()), at));
        }
        found
    }

    #[test]
    fn a_delay_is_the_same_for_all() {
        let found = arrivals(settings(), 3, MS);
        assert_eq!(found, [(0, 10 * MS), (1, 11 * MS), (2, 12 * MS)]);
    }

    #[test]
    fn packets_of_one_instant_keep_their_order() {
        let found = arrivals(settings(), 1_000, 0);
        assert!(found.into_iter().eq((0..1_000).map(|number| (number, 10 * MS))));
    }

    #[test]
    fn jitter_lies_to_both_sides_whatever_the_rate_and_packets_overtake_each_other() {
        let settings = LinkSettings { jitter_ns: 2 * MS, ..settings() };
        for (count, apart_ns) in [(10_000, 10 * MS), (1_000, 1_000)] {
            let found = arrivals(settings.clone(), count, apart_ns);
            let delay = |(number, at): &(u64, u64)| at - number * apart_ns;
            let delays: Vec<u64> = found.iter().map(delay).collect();
            assert!(delays.iter().all(|delay| (8 * MS..=12 * MS).contains(delay)));
            // The mean of uniform draws: within five standard errors (4 ms / sqrt(12 count)).
            let mean = delays.iter().sum::<u64>() as f64 / count as f64;
            let error = 4e6 / (12.0 * count as f64).sqrt();
            assert!((mean - 10e6).abs() < 5.0 * error, "{mean} of {count}");
            // Those that are further apart than the jitter cannot overtake.
            let in_order = found.windows(2).all(|pair| pair[0].0 < pair[1].0);
            assert_eq!(in_order, apart_ns == 10 * MS);
            assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        }
    }

    #[test]
    fn the_stated_share_is_lost() {
        let settings = LinkSettings { loss: 0.05, ..settings() };
        let lost = 100_000 - arrivals(settings, 100_000, MS).len();
        // Five standard deviations of a binomial distribution.
        assert!(
            (lost as f64 - 5_000.0).abs() < 5.0 * (100_000.0 * 0.05 * 0.95_f64).sqrt(),
            "{lost}"
        );
        let all = LinkSettings { loss: 1.0, ..LinkSettings::default() };
        assert_eq!(arrivals(all, 100, MS), []);
    }

    #[test]
    fn a_rate_spaces_packets_and_its_queue_is_bounded() {
        // 800 bits at 800 kbit/s: 1 ms each.
        let settings = LinkSettings { rate_bps: Some(800_000), ..settings() };
        assert_eq!(arrivals(settings.clone(), 3, 0), [(0, 11 * MS), (1, 12 * MS), (2, 13 * MS)]);
        assert_eq!(arrivals(settings.clone(), 2, 5 * MS), [(0, 11 * MS), (1, 16 * MS)]);
        assert_eq!(arrivals(settings, 5_000, 0).len(), WAITING);
    }
}
