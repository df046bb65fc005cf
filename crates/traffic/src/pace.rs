//! When queries become due.

use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Rate;
use crate::random::{Purpose, stream};
use crate::shape::{PARTS, Shape, integer_rate};

dnslab_wire::words! {
    /// How the queries of an open loop follow each other.
    #[derive(Default)]
    pub enum Pace as "pace" {
        /// Equal gaps.
        #[default]
        Constant = "constant",
        /// Exponential gaps: a Poisson process, as many independent clients make one.
        Poisson = "poisson",
    }
}

/// The due instants of one worker, in nanoseconds since the load began, ascending. It ends after 2^64 ns (584
/// years), or when the rate has become 0 for good.
#[derive(Clone, Debug)]
pub struct Schedule(State);

#[derive(Clone, Debug)]
enum State {
    Constant {
        /// Number of the next query over all workers.
        next: u64,
        shards: u32,
        /// Rate over all workers, in queries per 10^6 seconds.
        rate: u64,
    },
    Poisson {
        random: Xoshiro256PlusPlus,
        /// Mean gap of this worker, nanoseconds.
        mean_gap_ns: f64,
        /// The last due instant, in whole nanoseconds.
        whole_ns: u64,
        /// What is left of that instant, in [0, 1) ns. It is apart so that gaps are added to a small number:
        /// nothing is rounded away however long the load is.
        part_ns: f64,
    },
    Shaped {
        shape: Shape,
        positions: Positions,
        /// The last due instant. None comes before it, however numbers are rounded.
        last_ns: u64,
    },
}

/// The positions of one worker's queries in the cumulated rate, in [`PARTS`] of a query.
#[derive(Clone, Debug)]
enum Positions {
    /// The numbers of the queries themselves.
    Whole {
        /// Number of the next query over all workers.
        next: u64,
        shards: u32,
    },
    /// The points of a Poisson process whose mean gap is the number of workers: all workers together have one
    /// point for each query.
    Poisson {
        random: Xoshiro256PlusPlus,
        /// Mean gap.
        mean: f64,
        last: u128,
    },
}

/// Nanoseconds in 10^6 seconds, the time for which [`State::Constant`] counts its rate.
const RATE_SPAN_NS: u128 = PARTS;

impl Schedule {
    /// The schedule of worker `shard` of `shards`, for a rate over all workers.
    ///
    /// Constant: query `n` of all workers is due when the rate, cumulated from the start, has reached `n`,
    /// rounded to the nanosecond. It is computed from `n`, so errors do not add up: in integers for constant
    /// rates and steps; on a ramp in floating point, off by less than a nanosecond. Worker `s` of `k` has the
    /// queries `s`, `s + k`, ... Rates are taken to the millionth of a query per second.
    ///
    /// Poisson: each worker has an independent process of the rate divided by `shards`, from a stream of its
    /// own. Together they are a Poisson process of the whole rate. So the instants depend on the number of
    /// workers, unlike those of the constant pace. A changing rate is a change of time: points of a process
    /// of rate 1 become due when the cumulated rate reaches them (Lewis and Shedler, "Simulation of
    /// nonhomogeneous Poisson processes by thinning", 1979).
    ///
    /// # Panics
    /// When the rate is not possible ([`Rate::check`]; a constant one may be any number above 0), or there is
    /// no such worker.
    #[must_use]
    pub fn new(rate: &Rate, pace: Pace, seed: u64, shard: u32, shards: u32) -> Self {
        assert!(shard < shards, "worker {shard} of {shards} does not exist");
        let random = || stream(seed, Purpose::Pace, shard);
        let Rate::Constant(rate_qps) = *rate else {
            let shape = Shape::of(rate).filter(|_| rate.check().is_ok());
            let shape = shape.unwrap_or_else(|| panic!("the rate {rate} has no schedule"));
            let positions = match pace {
                Pace::Constant => Positions::Whole { next: shard.into(), shards },
                Pace::Poisson => {
                    let mean = f64::from(shards) * PARTS as f64;
                    Positions::Poisson { random: random(), mean, last: 0 }
                }
            };
            return Self(State::Shaped { shape, positions, last_ns: 0 });
        };
        assert!(rate_qps.is_finite() && rate_qps > 0.0, "a rate of {rate_qps} qps has no schedule");
        Self(match pace {
            Pace::Constant => {
                // The slowest rate is one query in 11 days.
                let rate = integer_rate(rate_qps).max(1);
                State::Constant { next: shard.into(), shards, rate }
            }
            Pace::Poisson => State::Poisson {
                random: random(),
                mean_gap_ns: 1e9 * f64::from(shards) / rate_qps,
                whole_ns: 0,
                part_ns: 0.0,
            },
        })
    }
}

impl Schedule {
    /// Passes over the queries that are due before this instant, and returns how many they are. It takes no longer for
    /// many. Of a Poisson process it is their mean number; the process goes on from that instant.
    pub fn skip_until(&mut self, until_ns: u64) -> u64 {
        match &mut self.0 {
            State::Constant { next, shards, rate } => {
                let (rate, shards) = (*rate, u64::from(*shards));
                let is_later = |count| {
                    number_after(*next, shards, count)
                        .is_none_or(|n| due_of(n, rate).is_none_or(|due| due >= until_ns))
                };
                let skipped = first(is_later);
                *next = number_after(*next, shards, skipped).unwrap_or(u64::MAX);
                skipped
            }
            State::Poisson { mean_gap_ns, whole_ns, part_ns, .. } => {
                let span = until_ns.saturating_sub(*whole_ns);
                (*whole_ns, *part_ns) = (until_ns.max(*whole_ns), 0.0);
                (span as f64 / *mean_gap_ns).round() as u64
            }
            State::Shaped { shape, positions, .. } => {
                let is_later =
                    |position: u128| shape.clone().due(position).is_none_or(|due| due >= until_ns);
                positions.skip_until(is_later)
            }
        }
    }
}

/// The number that `count` queries of a worker after its query `next` has.
fn number_after(next: u64, shards: u64, count: u64) -> Option<u64> {
    next.checked_add(shards.checked_mul(count)?)
}

/// The first number from 0 on for which something is so, if it stays so.
fn first(is_so: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, 1);
    while !is_so(high - 1) && high < u64::MAX / 2 {
        low = high;
        high *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if is_so(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

impl Iterator for Schedule {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        match &mut self.0 {
            State::Constant { next, shards, rate } => {
                let due_ns = due_of(*next, *rate)?;
                *next = next.checked_add(u64::from(*shards))?;
                Some(due_ns)
            }
            State::Poisson { random, mean_gap_ns, whole_ns, part_ns } => {
                let gap_ns = unit_gap(random) * *mean_gap_ns;
                let sum = *part_ns + gap_ns;
                *whole_ns = whole_ns.checked_add(sum as u64)?;
                *part_ns = sum.fract();
                Some(*whole_ns)
            }
            State::Shaped { shape, positions, last_ns } => {
                *last_ns = shape.due(positions.next()?)?.max(*last_ns);
                Some(*last_ns)
            }
        }
    }
}

impl Positions {
    /// Passes over the positions up to the first that is later, and returns how many they are.
    fn skip_until(&mut self, is_later: impl Fn(u128) -> bool) -> u64 {
        match self {
            Self::Whole { next, shards } => {
                let shards = u64::from(*shards);
                let is_later = |count| {
                    number_after(*next, shards, count)
                        .is_none_or(|number| is_later(u128::from(number) * PARTS))
                };
                let skipped = first(is_later);
                *next = number_after(*next, shards, skipped).unwrap_or(u64::MAX);
                skipped
            }
            Self::Poisson { mean, last, .. } => {
                // In steps of a mean gap: a part of one is nothing beside the many that are passed over.
                let step = *mean as u128;
                let is_later = |count: u64| {
                    step.checked_mul(count.into())
                        .and_then(|way| last.checked_add(way))
                        .is_none_or(&is_later)
                };
                let skipped = first(is_later);
                *last = last.saturating_add(step.saturating_mul(skipped.into()));
                skipped
            }
        }
    }

    /// The next position; `None` when numbers end.
    #[inline]
    fn next(&mut self) -> Option<u128> {
        match self {
            Self::Whole { next, shards } => {
                let position = u128::from(*next) * PARTS;
                *next = next.checked_add(u64::from(*shards))?;
                Some(position)
            }
            Self::Poisson { random, mean, last } => {
                *last = last.checked_add((unit_gap(random) * *mean) as u128)?;
                Some(*last)
            }
        }
    }
}

/// A gap of a Poisson process of rate 1.
#[inline]
fn unit_gap(random: &mut Xoshiro256PlusPlus) -> f64 {
    // 1 - u is in (0, 1], so its logarithm is finite.
    -(1.0 - random.random::<f64>()).ln()
}

/// When query `n` of a constant rate (in queries per 10^6 s) is due, rounded to the nanosecond;
/// `None` beyond 2^64 ns.
#[inline]
fn due_of(n: u64, rate: u64) -> Option<u64> {
    let rate = u128::from(rate);
    u64::try_from((u128::from(n) * RATE_SPAN_NS + rate / 2) / rate).ok()
}

#[cfg(test)]
mod tests;
