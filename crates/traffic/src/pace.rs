//! When queries become due.

use std::fmt;
use std::str::FromStr;

use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random::{Purpose, stream};

/// How the queries of an open loop follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Pace {
    /// Equal gaps.
    #[default]
    Constant,
    /// Exponential gaps: a Poisson process, as many independent clients make one.
    Poisson,
}

/// The text names no pace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown pace `{0}`: it is one of constant, poisson")]
pub struct UnknownPace(
    /// The text.
    pub String,
);

impl Pace {
    /// All paces.
    pub const ALL: [Self; 2] = [Self::Constant, Self::Poisson];

    /// The name in experiment files, on the command line and in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
        }
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Pace {
    type Err = UnknownPace;

    fn from_str(text: &str) -> Result<Self, UnknownPace> {
        Self::ALL
            .into_iter()
            .find(|pace| pace.name() == text)
            .ok_or_else(|| UnknownPace(text.to_owned()))
    }
}

/// The due instants of one worker in nanoseconds since the load began, in ascending order. It ends
/// only when 2^64 ns are over, after 584 years.
#[derive(Clone, Debug)]
pub struct Schedule(State);

/// Where a schedule is.
#[derive(Clone, Debug)]
enum State {
    Constant {
        /// Number of the next query over all workers.
        next: u64,
        /// Number of workers.
        shards: u32,
        /// Rate over all workers, in queries per 10^6 seconds.
        rate: u64,
    },
    Poisson {
        random: Xoshiro256PlusPlus,
        /// Mean gap of this worker, nanoseconds.
        mean_gap_ns: f64,
        /// The last due instant is this ...
        whole_ns: u64,
        /// ... and this part of a nanosecond, in [0, 1). Apart, so that gaps are added to a small
        /// number and nothing is rounded away however long the load is.
        part_ns: f64,
    },
}

/// Nanoseconds in the time for which [`State::Constant`] counts its rate: 10^6 seconds.
const RATE_SPAN_NS: u128 = 1_000_000_000_000_000;

impl Schedule {
    /// The schedule of worker `shard` of `shards`, for `rate_qps` queries per second over all
    /// workers.
    ///
    /// Constant: query `n` of all workers is due at `n / rate_qps` seconds, rounded to the
    /// nanosecond; it is computed from `n` in integers, so nothing adds up. Worker `s` of `k` has
    /// the queries `s`, `s + k`, ... The rate is taken to the millionth of a query per second.
    ///
    /// Poisson: each worker has an independent process of `rate_qps / shards` from a stream of its
    /// own; the superposition of Poisson processes is one of the whole rate. The instants therefore
    /// depend on the number of workers, unlike those of the constant pace.
    ///
    /// # Panics
    /// When the rate is not a number above 0 or there is no such worker.
    #[must_use]
    pub fn new(pace: Pace, rate_qps: f64, seed: u64, shard: u32, shards: u32) -> Self {
        assert!(rate_qps.is_finite() && rate_qps > 0.0, "a rate of {rate_qps} qps has no schedule");
        assert!(shard < shards, "worker {shard} of {shards} does not exist");
        Self(match pace {
            Pace::Constant => {
                // A conversion of a float saturates; the slowest rate is one query in 11 days.
                let rate = ((rate_qps * 1e6).round() as u64).max(1);
                State::Constant { next: shard.into(), shards, rate }
            }
            Pace::Poisson => State::Poisson {
                random: stream(seed, Purpose::Pace, shard),
                mean_gap_ns: 1e9 * f64::from(shards) / rate_qps,
                whole_ns: 0,
                part_ns: 0.0,
            },
        })
    }
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
                // 1 - u is in (0, 1], so its logarithm is finite.
                let gap_ns = -(1.0 - random.random::<f64>()).ln() * *mean_gap_ns;
                let sum = *part_ns + gap_ns;
                *whole_ns = whole_ns.checked_add(sum as u64)?;
                *part_ns = sum.fract();
                Some(*whole_ns)
            }
        }
    }
}

/// When query `n` of a constant rate (in queries per 10^6 s) is due, rounded to the nanosecond;
/// `None` beyond 2^64 ns.
#[inline]
fn due_of(n: u64, rate: u64) -> Option<u64> {
    let rate = u128::from(rate);
    u64::try_from((u128::from(n) * RATE_SPAN_NS + rate / 2) / rate).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_is_exact_after_any_number_of_queries() {
        let cases: [(f64, u64, u64); 9] = [
            (1_000.0, 1, 1_000_000),
            (3.0, 1, 333_333_333),
            (3.0, 2, 666_666_667),
            (3.0, 3_000_000_000, 1_000_000_000_000_000_000),
            // 150,000 qps has no whole number of microseconds, and must still be 150,000.
            (150_000.0, 150_000, 1_000_000_000),
            (150_000.0, 1_000_000_001, 6_666_666_673_333),
            (70_001.0, 1_000_000_000, 14_285_510_206_997),
            (0.5, 1, 2_000_000_000),
            (1e9, 1_000_000_000, 1_000_000_000),
        ];
        for (rate_qps, n, due_ns) in cases {
            let mut schedule = Schedule::new(Pace::Constant, rate_qps, 1, 0, 1);
            let State::Constant { next, .. } = &mut schedule.0 else { panic!() };
            *next = n;
            assert_eq!(schedule.next(), Some(due_ns), "query {n} of {rate_qps} qps");
        }
    }

    #[test]
    fn constant_is_the_same_for_any_number_of_workers() {
        let one: Vec<u64> = Schedule::new(Pace::Constant, 70_001.0, 1, 0, 1).take(840).collect();
        for shards in 2..=7 {
            let workers = (0..shards).flat_map(|shard| {
                Schedule::new(Pace::Constant, 70_001.0, 1, shard, shards)
                    .take(840 / shards as usize)
            });
            let mut all: Vec<u64> = workers.collect();
            all.sort_unstable();
            assert_eq!(all, one, "{shards} workers");
        }
    }

    #[test]
    fn a_schedule_ends_with_time() {
        let mut schedule = Schedule::new(Pace::Constant, 1e-9, 1, 0, 1);
        // The slowest rate is one query in 10^6 s.
        assert_eq!(schedule.by_ref().nth(1), Some(1_000_000_000_000_000));
        assert_eq!(schedule.count(), 18_445);
        let mut slow = Schedule::new(Pace::Poisson, 1e-15, 1, 0, 1);
        assert!((0..1_000).any(|_| slow.next().is_none()));
    }

    /// Counts of arrivals in windows of 10 ms, over all workers.
    fn counts(pace: Pace, rate_qps: f64, seed: u64, shards: u32, windows: usize) -> Vec<f64> {
        const WINDOW_NS: u64 = 10_000_000;
        let mut counts = vec![0.0; windows];
        for shard in 0..shards {
            let mut last = 0;
            for due_ns in Schedule::new(pace, rate_qps, seed, shard, shards) {
                assert!(due_ns >= last, "arrivals are in order");
                last = due_ns;
                match counts.get_mut((due_ns / WINDOW_NS) as usize) {
                    Some(count) => *count += 1.0,
                    None => break,
                }
            }
        }
        counts
    }

    /// Mean, and variance over mean (1 for a Poisson process, 0 for equal counts).
    fn mean_and_dispersion(counts: &[f64]) -> (f64, f64) {
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let squares: f64 = counts.iter().map(|count| (count - mean).powi(2)).sum();
        (mean, squares / (counts.len() - 1) as f64 / mean)
    }

    #[test]
    fn poisson_has_the_mean_and_the_variance_of_one() {
        const WINDOWS: usize = 2_000;
        for (rate_qps, shards, seed) in
            [(2_000.0, 1, 1), (2_000.0, 3, 2), (10_000.0, 1, 3), (10_000.0, 8, 4)]
        {
            let counts = counts(Pace::Poisson, rate_qps, seed, shards, WINDOWS);
            let (mean, dispersion) = mean_and_dispersion(&counts);
            let expected = rate_qps / 100.0;
            let error = (expected / WINDOWS as f64).sqrt();
            let case = format!("{rate_qps} qps, {shards} workers: {mean}, {dispersion}");
            assert!((mean - expected).abs() < 5.0 * error, "{case}");
            // The standard error of the dispersion is sqrt(2 / windows), 0.032.
            assert!((dispersion - 1.0).abs() < 0.16, "{case}");
            // Neighbouring windows must not know of each other (standard error 0.022).
            let product = |pair: &[f64]| (pair[0] - mean) * (pair[1] - mean);
            let covariance = counts.windows(2).map(product).sum::<f64>() / (WINDOWS - 1) as f64;
            assert!((covariance / mean).abs() < 0.11, "{case}: {covariance}");
        }
    }

    #[test]
    fn constant_has_no_variance() {
        for shards in [1, 3] {
            let counts = counts(Pace::Constant, 10_000.0, 1, shards, 500);
            assert!(counts.iter().all(|count| *count == 100.0), "{shards} workers");
        }
    }

    #[test]
    fn poisson_gaps_are_not_cut_to_nanoseconds() {
        // Mean gap 2.5 ns: cut to whole ones it would be 2.0.
        let instants = Schedule::new(Pace::Poisson, 4e8, 1, 0, 1).take(1_000_000);
        let mean = instants.last().unwrap() as f64 / 1e6;
        assert!((mean - 2.5).abs() < 0.0125, "{mean}");
    }

    #[test]
    fn seeds_and_workers_have_streams_of_their_own() {
        let first = |seed, shard| -> Vec<u64> {
            Schedule::new(Pace::Poisson, 1_000.0, seed, shard, 4).take(10).collect()
        };
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(1, 3));
        assert_ne!(first(1, 2), first(2, 2));
    }

    #[test]
    fn names_are_read_back() {
        for pace in Pace::ALL {
            assert_eq!(pace.to_string().parse(), Ok(pace));
        }
        let error = "steady".parse::<Pace>().unwrap_err().to_string();
        assert_eq!(error, "unknown pace `steady`: it is one of constant, poisson");
    }
}
