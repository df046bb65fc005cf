//! What sets one client of a population apart from the others: its activity and its stub resolver.

use dnslab_wire::{Edns, QueryOptions, Transport};
use rand::Rng as _;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};

use super::distribution::normal_quantile;
use super::{Activity, ActivityDistribution, Stubs};

/// What random numbers of a client are for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    /// How often it asks, and what.
    Asking,
    /// Its stub resolver.
    Stub,
    /// Which clients are the active ones.
    Order,
}

/// The random numbers of a client, or of a part of it, for one purpose.
///
/// [`crate::stream`] jumps ahead for each shard, which would take too long for a million clients. SplitMix64
/// (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014) starts anywhere in its one
/// cycle of 2^64 numbers, with 8 octets of state.
pub(crate) fn client_stream(seed: u64, draw: Draw, client: u32, part: u32) -> SplitMix64 {
    let mut start = SplitMix64::seed_from_u64(seed).next_u64();
    for number in [draw as u64, u64::from(client), u64::from(part)] {
        start = SplitMix64::seed_from_u64(start ^ number).next_u64();
    }
    SplitMix64::seed_from_u64(start)
}

/// How active each client is: shares of all queries.
///
/// The quantiles of the distribution are dealt evenly to the clients, so any two seeds have equally active
/// clients, under other numbers. Neighbours in number are far apart in activity: the share of each worker is
/// about the same.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    distribution: ActivityDistribution,
    busiest: Vec<f64>,
    /// Clients but for the busiest.
    others: u64,
    /// Coprime with `others`.
    stride: u64,
    first: u64,
    /// What the sum of the weights of the others is multiplied by to make their share.
    scale: f64,
}

impl Shares {
    pub(crate) fn new(activity: &Activity, clients: u32, seed: u64) -> Self {
        // A population of fewer clients than it describes has as many busy ones as leave one other.
        let busiest = activity.busiest.len().min(clients.saturating_sub(1) as usize);
        let busiest = activity.busiest[..busiest].to_vec();
        let others = u64::from(clients) - busiest.len() as u64;
        // A step of the golden ratio spreads any number of clients in a row evenly.
        let mut stride = ((others as f64 * 0.618_033_988_749_894_9) as u64).max(1);
        while greatest_common_divisor(stride, others) != 1 {
            stride += 1;
        }
        let first = client_stream(seed, Draw::Order, 0, 0).next_u64() % others;
        let distribution = activity.distribution;
        let mut shares = Self { distribution, busiest, others, stride, first, scale: 1.0 };
        let sum: f64 = (0..others).map(|rank| shares.weight(rank)).sum();
        shares.scale = (1.0 - shares.busiest.iter().sum::<f64>()).max(0.0) / sum;
        shares
    }

    /// The share of all queries that this client makes, from 0.
    pub(crate) fn of(&self, client: u32) -> f64 {
        match self.busiest.get(client as usize) {
            Some(share) => *share,
            None => {
                let place = u64::from(client) - self.busiest.len() as u64;
                self.scale * self.weight((place * self.stride + self.first) % self.others)
            }
        }
    }

    /// The rate at this place of the distribution, on any scale.
    fn weight(&self, rank: u64) -> f64 {
        let share = (rank as f64 + 0.5) / self.others as f64;
        match self.distribution {
            ActivityDistribution::LogNormal { spread: 0.0 } => 1.0,
            ActivityDistribution::LogNormal { spread } => (spread * normal_quantile(share)).exp(),
            ActivityDistribution::Pareto { shape } => (1.0 - share).powf(-shape.recip()),
        }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The stub resolver of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    /// What its queries have beside the question.
    pub options: QueryOptions,
    /// How they travel.
    pub transport: Transport,
}

impl Stub {
    /// That of this client, in a load with this seed.
    #[must_use]
    pub fn of(stubs: &Stubs, seed: u64, client: u32) -> Self {
        let mut random = client_stream(seed, Draw::Stub, client, 0);
        let transport = choose(&stubs.transports, random.random());
        let recursion_desired = random.random::<f64>() < stubs.recursion_desired;
        let has_opt = random.random::<f64>() < stubs.edns;
        let edns = has_opt.then(|| Edns {
            dnssec_ok: random.random::<f64>() < stubs.dnssec_ok,
            payload_size: choose(&stubs.payload_sizes, random.random()),
            ..Edns::default()
        });
        Self { options: QueryOptions { recursion_desired, edns }, transport }
    }
}

/// The value at this share of the sum of the weights.
pub(crate) fn choose<T: Copy>(weighted: &[(T, f64)], share: f64) -> T {
    let sum: f64 = weighted.iter().map(|(_, weight)| weight).sum();
    let mut place = share * sum;
    for (value, weight) in weighted {
        if place < *weight {
            return *value;
        }
        place -= weight;
    }
    // Rounding can lead past the end.
    weighted[weighted.len() - 1].0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Population;

    fn all(
        distribution: ActivityDistribution,
        busiest: &[f64],
        clients: u32,
        seed: u64,
    ) -> Vec<f64> {
        let activity = Activity { distribution, busiest: busiest.to_vec() };
        let shares = Shares::new(&activity, clients, seed);
        (0..clients).map(|client| shares.of(client)).collect()
    }

    #[test]
    fn shares_are_the_same_for_any_seed_in_another_order() {
        for distribution in [
            ActivityDistribution::LogNormal { spread: 0.0 },
            ActivityDistribution::LogNormal { spread: 2.0 },
            ActivityDistribution::Pareto { shape: 1.1 },
        ] {
            for clients in [1, 2, 3, 10, 4_096, 9_973] {
                let busiest: &[f64] = if clients > 2 { &[0.3, 0.1] } else { &[] };
                let mut one = all(distribution, busiest, clients, 1);
                let mut two = all(distribution, busiest, clients, 2);
                assert!((one.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{distribution:?}");
                assert_eq!(one[..busiest.len()], *busiest);
                if clients == 9_973
                    && distribution != (ActivityDistribution::LogNormal { spread: 0.0 })
                {
                    assert_ne!(one, two);
                }
                one.sort_by(f64::total_cmp);
                two.sort_by(f64::total_cmp);
                let differs = one.iter().zip(&two).any(|(one, two)| (one / two - 1.0).abs() > 1e-9);
                assert!(!differs, "{distribution:?}, {clients} clients");
            }
        }
    }

    #[test]
    fn each_worker_has_about_the_same_share() {
        let shares = all(ActivityDistribution::LogNormal { spread: 1.5 }, &[], 10_000, 3);
        for workers in [2, 3, 4, 8] {
            for worker in 0..workers {
                let sum: f64 = shares.iter().skip(worker).step_by(workers).sum();
                assert!(
                    (sum * workers as f64 - 1.0).abs() < 0.2,
                    "worker {worker} of {workers}: {sum}"
                );
            }
        }
        // A tenth of the clients makes more than half of the queries.
        let mut sorted = shares;
        sorted.sort_by(f64::total_cmp);
        let top: f64 = sorted[9_000..].iter().sum();
        assert!((0.55..0.62).contains(&top), "{top}");
    }

    fn check_share(count: usize, all: usize, share: f64) {
        let bound = 5.0 * (all as f64 * share * (1.0 - share)).sqrt();
        assert!((count as f64 - all as f64 * share).abs() <= bound, "{count} of {all}: {share}");
    }

    #[test]
    fn a_client_is_always_the_same_and_shares_hold() {
        let mut stubs = Population::typical().stubs;
        stubs.transports = vec![(Transport::Udp, 3.0), (Transport::Dot, 1.0)];
        let drawn: Vec<Stub> = (0..20_000).map(|client| Stub::of(&stubs, 5, client)).collect();
        assert_eq!(drawn[77], Stub::of(&stubs, 5, 77));
        let count = |holds: &dyn Fn(&Stub) -> bool| drawn.iter().filter(|stub| holds(stub)).count();
        // Five standard deviations of a binomial distribution.
        let edns = count(&|stub| stub.options.edns.is_some());
        check_share(edns, 20_000, 0.3);
        let with =
            |holds: fn(&Edns) -> bool| count(&|stub| stub.options.edns.as_ref().is_some_and(holds));
        check_share(with(|edns| edns.dnssec_ok), edns, 0.1);
        check_share(with(|edns| edns.payload_size == 4096), edns, 0.25);
        check_share(count(&|stub| stub.transport == Transport::Dot), 20_000, 0.25);
        assert!(drawn.iter().all(|stub| stub.options.recursion_desired));
    }
}
