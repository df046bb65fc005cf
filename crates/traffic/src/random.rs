//! Streams of random numbers that do not meet.

use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// A source of random numbers whose sequence does not change between releases.
pub type Random = Xoshiro256PlusPlus;

/// What random numbers are drawn for. Each purpose has a stream of its own: drawing more for one changes
/// nothing in the others.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// The gaps between arrivals.
    Pace,
    /// The choice of queries.
    Choice,
    /// The types that the names of a zone are asked for.
    Types,
    /// The cookies of clients (RFC 7873).
    Cookies,
    /// Which transport a client uses.
    Transports,
    /// Whether a client takes part at all.
    Presence,
}

/// The stream of one worker for one purpose. The streams of one seed are at least 2^128 numbers
/// apart (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021).
#[must_use]
pub fn stream(seed: u64, purpose: Purpose, shard: u32) -> Random {
    let mut random = Random::seed_from_u64(seed);
    for _ in 0..=purpose as u32 {
        random.long_jump();
    }
    for _ in 0..shard {
        random.jump();
    }
    random
}

/// One number in [0, 1) for a client, the same whenever it is asked for. Millions of clients have one each, in
/// constant time, which [`stream`] cannot give.
#[must_use]
pub fn drawn_for(seed: u64, purpose: Purpose, client: u64) -> f64 {
    let mut seeds = SplitMix64::seed_from_u64(seed.wrapping_add(purpose as u64 + 1));
    SplitMix64::seed_from_u64(seeds.random::<u64>() ^ client).random()
}
