//! Streams of random numbers that do not meet.

use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

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
}

/// The stream of one worker for one purpose. The streams of one seed are at least 2^128 numbers
/// apart (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", 2021).
#[must_use]
pub fn stream(seed: u64, purpose: Purpose, shard: u32) -> Xoshiro256PlusPlus {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..=purpose as u32 {
        random.long_jump();
    }
    for _ in 0..shard {
        random.jump();
    }
    random
}
