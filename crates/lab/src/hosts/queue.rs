//! One direction of an emulated link as a queue: which packet comes out when. Pure: time and
//! randomness are arguments.

use std::collections::VecDeque;

use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::LinkSettings;

/// Packets that wait to be sent on a link with a rate, before further ones are dropped: what a device of
/// Linux holds by default (`txqueuelen`).
const WAITING: usize = 1_000;

/// One direction of a link. All instants are nanoseconds of one clock.
#[derive(Debug)]
pub(crate) struct Queue {
    settings: LinkSettings,
    random: Xoshiro256PlusPlus,
    /// When the last octet of the last packet has left the sender.
    free_at: u64,
    /// When each packet that has not left the sender yet will have.
    leaving: VecDeque<u64>,
    /// Packets on their way, in the order in which they arrive.
    on_their_way: VecDeque<(u64, Vec<u8>)>,
}

impl Queue {
    /// An empty one; `seed` decides which packets are lost, and how late each is.
    pub(crate) fn new(settings: LinkSettings, seed: u64) -> Self {
        Self {
            settings,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            free_at: 0,
            leaving: VecDeque::new(),
            on_their_way: VecDeque::new(),
        }
    }

    /// Takes a packet that the sending host hands over `now`. It is lost with the stated probability,
    /// and if the queue before a link with a rate is full; else it will arrive after the time that its
    /// octets take at that rate and the delay with its jitter, but never before an earlier packet.
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
        let before = self.on_their_way.back().map_or(0, |(at, _)| *at);
        self.on_their_way.push_back((before.max(left_at + delay_ns), packet));
    }

    /// The next packet that has arrived by `now`.
    pub(crate) fn pop(&mut self, now: u64) -> Option<Vec<u8>> {
        let has_arrived = self.next_at().is_some_and(|at| at <= now);
        if !has_arrived {
            return None;
        }
        self.on_their_way.pop_front().map(|(_, packet)| packet)
    }

    /// When the next packet arrives; `None` if none is on its way.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.on_their_way.front().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn settings() -> LinkSettings {
        LinkSettings { delay_ns: 10 * MS, ..LinkSettings::default() }
    }

    /// When each of so many packets of 100 octets arrives that are handed over every `apart_ns`.
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
    fn jitter_lies_to_both_sides_and_keeps_the_order() {
        let settings = LinkSettings { jitter_ns: 2 * MS, ..settings() };
        let found = arrivals(settings.clone(), 10_000, 10 * MS);
        let delays: Vec<u64> = found.iter().map(|(number, at)| at - number * 10 * MS).collect();
        assert!(delays.iter().all(|delay| (8 * MS..=12 * MS).contains(delay)));
        // The mean of 10,000 uniform draws: within five standard errors (4 ms / sqrt(12) / 100).
        let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
        assert!((mean - 10e6).abs() < 5.0 * 4e6 / 12f64.sqrt() / 100.0, "{mean}");
        let close = arrivals(settings, 1_000, 1_000);
        assert!(close.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
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
