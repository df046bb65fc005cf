//! Which query comes next.

use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random::{Purpose, stream};

dnslab_wire::words! {
    /// How queries are chosen from the list.
    #[derive(Default)]
    pub enum Selection as "selection" {
        /// As they stand in the list, from its start again when it is through.
        #[default]
        InOrder = "in-order",
        /// Each one independently at random, all equally likely.
        Uniform = "uniform",
    }
}

/// Chooses the queries of one worker.
#[derive(Clone, Debug)]
pub struct Picker {
    count: u32,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// Walks the list with a stride of the number of workers: all workers together walk it once.
    InOrder { next: u32, stride: u32 },
    /// Draws from the worker's own stream.
    Uniform(Xoshiro256PlusPlus),
}

impl Picker {
    /// The picker of worker `shard` of `shards` over a list of `count` queries.
    ///
    /// # Panics
    /// When the list is empty or there is no such worker.
    #[must_use]
    pub fn new(selection: Selection, count: u32, seed: u64, shard: u32, shards: u32) -> Self {
        assert!(count > 0, "there is nothing to choose from an empty list");
        assert!(shard < shards, "worker {shard} of {shards} does not exist");
        let state = match selection {
            Selection::InOrder => State::InOrder { next: shard % count, stride: shards % count },
            Selection::Uniform => State::Uniform(stream(seed, Purpose::Choice, shard)),
        };
        Self { count, state }
    }

    /// The index of the next query in the list.
    #[inline]
    pub fn next_query(&mut self) -> u32 {
        match &mut self.state {
            State::InOrder { next, stride } => {
                let query = *next;
                // Both are below the count, so one subtraction does for the remainder.
                let left = self.count - query;
                *next = if *stride < left { query + *stride } else { *stride - left };
                query
            }
            State::Uniform(random) => random.random_range(0..self.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn in_order_is_the_remainder(
            count in prop_oneof![1u32..40, Just(u32::MAX), Just(u32::MAX - 1)], shards in 1u32..9,
        ) {
            for shard in 0..shards {
                let mut picker = Picker::new(Selection::InOrder, count, 1, shard, shards);
                for n in 0..100u64 {
                    let expected = (u64::from(shard) + n * u64::from(shards)) % u64::from(count);
                    prop_assert_eq!(u64::from(picker.next_query()), expected);
                }
            }
        }
    }

    #[test]
    fn uniform_draws_each_query_equally_often() {
        const COUNT: u32 = 50;
        const DRAWS: u32 = 100_000;
        let mut seen = [0u32; COUNT as usize];
        for shard in 0..4 {
            let mut picker = Picker::new(Selection::Uniform, COUNT, 7, shard, 4);
            for _ in 0..DRAWS / 4 {
                seen[picker.next_query() as usize] += 1;
            }
        }
        let expected = f64::from(DRAWS / COUNT);
        let chi_squared: f64 =
            seen.iter().map(|times| (f64::from(*times) - expected).powi(2) / expected).sum();
        // 49 degrees of freedom: mean 49, deviation 9.9. Too even would be as wrong as too uneven.
        assert!((15.0..100.0).contains(&chi_squared), "{chi_squared}");
    }

    #[test]
    fn each_worker_has_its_own_stream() {
        let first = |seed, shard| -> Vec<u32> {
            let mut picker = Picker::new(Selection::Uniform, 1_000_000, seed, shard, 4);
            (0..20).map(|_| picker.next_query()).collect()
        };
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(1, 3));
        assert_ne!(first(1, 2), first(2, 2));
    }
}
