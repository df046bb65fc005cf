//! Which query comes next.

use std::sync::Arc;

use rand::Rng as _;
use rand_distr::Distribution as _;
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
        /// Each one independently at random, the r-th of the list in proportion to r to the power of minus an
        /// exponent (Zipf's law).
        Zipf = "zipf",
    }
}

/// Chooses the queries of one worker.
#[derive(Clone, Debug)]
pub struct Picker {
    count: u32,
    state: State,
    /// The places of what is chosen from in a longer list; `None` if all of that is.
    places: Option<Arc<[u32]>>,
}

#[derive(Clone, Debug)]
enum State {
    /// Walks the list with a stride of the number of workers: all workers together walk it once.
    InOrder { next: u32, stride: u32 },
    /// Draws from the worker's own stream.
    Uniform(Xoshiro256PlusPlus),
    /// Draws ranks from it, which count from 1.
    Zipf(rand_distr::Zipf<f64>, Xoshiro256PlusPlus),
}

impl Picker {
    /// The picker of worker `shard` of `shards` over a list of `count` queries. `exponent` is that of
    /// [`Selection::Zipf`], from 0 on; the others have none.
    ///
    /// # Panics
    /// When the list is empty, there is no such worker, or the exponent is no number from 0 on.
    #[must_use]
    pub fn new(
        selection: Selection,
        exponent: f64,
        count: u32,
        seed: u64,
        (shard, shards): (u32, u32),
    ) -> Self {
        assert!(count > 0, "there is nothing to choose from an empty list");
        assert!(shard < shards, "worker {shard} of {shards} does not exist");
        let state = match selection {
            Selection::InOrder => State::InOrder { next: shard % count, stride: shards % count },
            Selection::Uniform => State::Uniform(stream(seed, Purpose::Choice, shard)),
            Selection::Zipf => {
                let ranks = rand_distr::Zipf::new(f64::from(count), exponent)
                    .expect("the list is not empty, and the exponent is from 0 on");
                State::Zipf(ranks, stream(seed, Purpose::Choice, shard))
            }
        };
        Self { count, state, places: None }
    }

    /// Chooses from these places of a longer list, as many as were counted.
    ///
    /// # Panics
    /// When they are others.
    #[must_use]
    pub fn among(self, places: Arc<[u32]>) -> Self {
        assert_eq!(places.len(), self.count as usize, "each choice has its place");
        Self { places: Some(places), ..self }
    }

    /// The index of the next query in the list.
    #[inline]
    pub fn next_query(&mut self) -> u32 {
        let choice = self.next_choice();
        self.places.as_ref().map_or(choice, |places| places[choice as usize])
    }

    #[inline]
    fn next_choice(&mut self) -> u32 {
        match &mut self.state {
            State::InOrder { next, stride } => {
                let query = *next;
                // Both are below the count, so one subtraction does for the remainder.
                let left = self.count - query;
                *next = if *stride < left { query + *stride } else { *stride - left };
                query
            }
            State::Uniform(random) => random.random_range(0..self.count),
            // Rounding may reach beyond either end.
            State::Zipf(ranks, random) => {
                (ranks.sample(random) as u32).saturating_sub(1).min(self.count - 1)
            }
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
                let mut picker = Picker::new(Selection::InOrder, 0.0, count, 1, (shard, shards));
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
            let mut picker = Picker::new(Selection::Uniform, 0.0, COUNT, 7, (shard, 4));
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
        let first = |selection, seed, shard| -> Vec<u32> {
            let mut picker = Picker::new(selection, 0.5, 1_000_000, seed, (shard, 4));
            (0..20).map(|_| picker.next_query()).collect()
        };
        for selection in [Selection::Uniform, Selection::Zipf] {
            assert_eq!(first(selection, 1, 2), first(selection, 1, 2));
            assert_ne!(first(selection, 1, 2), first(selection, 1, 3));
            assert_ne!(first(selection, 1, 2), first(selection, 2, 2));
        }
    }

    #[test]
    fn zipf_draws_ranks_by_their_power() {
        const DRAWS: u32 = 200_000;
        for (exponent, count) in [(0.6, 1_000), (0.91, 1_000), (1.0, 100), (2.0, 50), (0.9, 1)] {
            let mut seen = vec![0_u32; count as usize];
            for shard in 0..4 {
                let mut picker = Picker::new(Selection::Zipf, exponent, count, 7, (shard, 4));
                for _ in 0..DRAWS / 4 {
                    seen[picker.next_query() as usize] += 1;
                }
            }
            let weight = |rank: u32| f64::from(rank).powf(-exponent);
            let sum: f64 = (1..=count).map(weight).sum();
            for rank in [1, 2, 3, 10, 40].into_iter().filter(|rank| *rank <= count) {
                let share = weight(rank) / sum;
                let expected = f64::from(DRAWS) * share;
                // Six standard deviations.
                let bound = 6.0 * (expected * (1.0 - share)).sqrt() + 1e-9;
                let found = f64::from(seen[rank as usize - 1]);
                assert!(
                    (found - expected).abs() <= bound,
                    "{exponent}, {rank}: {found}, {expected}"
                );
            }
        }
    }
}
