//! After how many queries clients close their connections.

use std::fmt;

use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

/// How many queries clients ask on a connection before they close it; at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quota {
    /// One number for all connections. Clients that begin together then reconnect together.
    Exact(u32),
    /// A number of its own for each connection, from the geometric distribution with this mean: each query is
    /// the last of its connection with the same chance. So how long a client goes on does not depend on when
    /// it began, from its first connection on, and reconnections are spread evenly.
    Random(u32),
}

impl Quota {
    /// The mean number of queries on a connection.
    #[must_use]
    pub fn mean(self) -> u32 {
        match self {
            Self::Exact(count) | Self::Random(count) => count,
        }
    }

    /// The quota of one connection, at least 1: that of client `client`, of its `lane`-th connection at the
    /// same time, opened for the `opened`-th time. It follows from these and the seed alone: the order in
    /// which connections open changes nothing.
    #[must_use]
    pub fn draw(self, seed: u64, client: u32, lane: u32, opened: u32) -> u32 {
        let mean = match self {
            Self::Exact(count) => return count,
            Self::Random(mean) => f64::from(mean),
        };
        let place = u64::from(client) << 32 | u64::from(lane);
        let mut seed = seed ^ 0x7175_6f74_615f_7131;
        for part in [place, u64::from(opened)] {
            seed = Xoshiro256PlusPlus::seed_from_u64(seed ^ part).random();
        }
        // In [0, 1), so that the logarithm is finite; a mean of 1 divides by minus infinity.
        let chance: f64 = Xoshiro256PlusPlus::seed_from_u64(seed).random();
        let before = ((1.0 - chance).ln() / (1.0 - 1.0 / mean).ln()).floor();
        // The cast saturates.
        (before as u32).saturating_add(1)
    }
}

impl fmt::Display for Quota {
    /// `20 queries`, or `20 queries on average (drawn at random)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mean() {
            1 => formatter.write_str("1 query")?,
            count => write!(formatter, "{count} queries")?,
        }
        match self {
            Self::Random(2..) => formatter.write_str(" on average (drawn at random)"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(quota: Quota, seed: u64) -> Vec<u32> {
        (0..20_000).map(|client| quota.draw(seed, client, 0, 1)).collect()
    }

    #[test]
    fn random_quotas_are_geometric() {
        for mean in [1, 2, 20, 1_000] {
            let quotas = first(Quota::Random(mean), 7);
            let sum: f64 = quotas.iter().copied().map(f64::from).sum();
            let found = sum / quotas.len() as f64;
            let mean = f64::from(mean);
            // The standard deviation of the distribution is below its mean: five standard errors.
            assert!((found - mean).abs() < 5.0 * mean / 20_000_f64.sqrt(), "{found} for {mean}");
            // A client that has asked `mean` queries goes on like one that begins.
            let rest: Vec<f64> = quotas
                .iter()
                .filter_map(|quota| quota.checked_sub(mean as u32).filter(|rest| *rest > 0))
                .map(f64::from)
                .collect();
            if rest.len() > 1_000 {
                let found = rest.iter().sum::<f64>() / rest.len() as f64;
                let error = 5.0 * mean / (rest.len() as f64).sqrt();
                assert!((found - mean).abs() < error, "{found} for {mean}");
            }
        }
    }

    #[test]
    fn draws_are_those_of_the_seed_and_the_connection() {
        let quota = Quota::Random(20);
        assert_eq!(first(quota, 1), first(quota, 1));
        assert_ne!(first(quota, 1), first(quota, 2));
        let quotas = |lane, opened| (0..50).map(move |client| quota.draw(1, client, lane, opened));
        assert!(!quotas(0, 1).eq(quotas(1, 1)) && !quotas(0, 1).eq(quotas(0, 2)));
        // Promised not to change: a seed means the same load in every version.
        assert_eq!(quotas(0, 1).take(6).collect::<Vec<_>>(), [7, 9, 10, 8, 35, 29]);
    }

    #[test]
    fn exact_quotas_and_the_largest() {
        assert!(first(Quota::Exact(20), 1).iter().all(|quota| *quota == 20));
        assert!(first(Quota::Random(u32::MAX), 1).iter().all(|quota| *quota >= 1));
        assert!(first(Quota::Random(1), 1).iter().all(|quota| *quota == 1));
    }

    #[test]
    fn a_quota_is_a_part_of_a_sentence() {
        assert_eq!(Quota::Exact(1).to_string(), "1 query");
        assert_eq!(Quota::Random(1).to_string(), "1 query");
        assert_eq!(Quota::Exact(20).to_string(), "20 queries");
        assert_eq!(Quota::Random(20).to_string(), "20 queries on average (drawn at random)");
    }
}
