//! Durations in the buckets of Prometheus.

use std::collections::BTreeMap;

use dnslab_figures::Histogram;

/// Upper bounds of the buckets of classic histograms, nanoseconds: six for each factor of ten, from 10 us to 10 s.
/// What a loopback answers lies in several of them, and so does a time-out.
pub const BOUNDS_NS: [u64; 37] = bounds();

const fn bounds() -> [u64; 37] {
    const STEPS: [u64; 6] = [10, 15, 20, 30, 50, 70];
    let (mut bounds, mut unit, mut place) = ([0; 37], 1_000, 0);
    while place < 37 {
        bounds[place] = STEPS[place % 6] * unit;
        place += 1;
        if place % 6 == 0 {
            unit *= 10;
        }
    }
    bounds
}

/// Native histograms have 2^SCHEMA buckets for each factor of two: each is 9 % wide.
pub(crate) const SCHEMA: i32 = 3;

/// Counts of durations, in classic and in native buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    /// For each of [`BOUNDS_NS`], and for what is above.
    counts: [u64; BOUNDS_NS.len() + 1],
    /// By the index of the native bucket, whose upper bound is 2^(index / 2^SCHEMA) seconds.
    pub(crate) native: BTreeMap<i32, u64>,
    count: u64,
    sum_ns: u128,
}

impl Default for Buckets {
    /// Without any duration.
    fn default() -> Self {
        let counts = [0; BOUNDS_NS.len() + 1];
        Self { counts, native: BTreeMap::new(), count: 0, sum_ns: 0 }
    }
}

impl Buckets {
    /// The buckets of all durations of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let mut buckets = Self::default();
        buckets.add(histogram);
        buckets
    }

    /// Adds all durations of a histogram. Each is off by 0.1 % at most, as in the record.
    pub fn add(&mut self, histogram: &Histogram) {
        histogram.for_each(|ns, count| {
            let place = BOUNDS_NS.partition_point(|bound| *bound < ns);
            self.counts[place] += count;
            *self.native.entry(native_index(ns)).or_default() += count;
            self.count += count;
            self.sum_ns += u128::from(ns) * u128::from(count);
        });
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, seconds.
    #[must_use]
    pub fn sum_seconds(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }

    /// Upper bounds in seconds, each with how many durations do not exceed it; the last bound is infinite.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = BOUNDS_NS.iter().map(|ns| *ns as f64 / 1e9).chain([f64::INFINITY]);
        bounds.zip(self.counts).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((bound, *sum))
        })
    }
}

/// The native bucket of a duration: its lower bound is exclusive, its upper one inclusive.
fn native_index(ns: u64) -> i32 {
    let seconds = ns.max(1) as f64 / 1e9;
    (seconds.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_from_ten_microseconds_to_ten_seconds() {
        assert_eq!(&BOUNDS_NS[..7], [10_000, 15_000, 20_000, 30_000, 50_000, 70_000, 100_000]);
        assert_eq!(BOUNDS_NS[36], 10_000_000_000);
        assert!(BOUNDS_NS.is_sorted());
    }

    #[test]
    fn durations_are_in_the_bucket_whose_bound_they_do_not_exceed() {
        let mut histogram = Histogram::new();
        for ns in [500, 9_000, 14_000, 99_000_000_000] {
            histogram.record_ns(ns);
        }
        let buckets = Buckets::of(&histogram);
        let cumulative: Vec<(f64, u64)> = buckets.cumulative().collect();
        assert_eq!(cumulative[..2], [(10e-6, 2), (15e-6, 3)]);
        assert_eq!(cumulative[36..], [(10.0, 3), (f64::INFINITY, 4)]);
        assert_eq!((buckets.count(), buckets.sum_seconds().round()), (4, 99.0));
    }

    #[test]
    fn native_buckets_are_those_of_the_schema() {
        // One second is the upper bound of bucket 0, and just above is in bucket 1.
        let index = |seconds: f64| native_index((seconds * 1e9) as u64);
        assert_eq!((index(1.0), index(1.01), index(2.0), index(0.5)), (0, 1, 8, -8));
        let mut histogram = Histogram::new();
        histogram.record_many_ns(1_000_000, 3);
        let native = Buckets::of(&histogram).native;
        let (index, count) = native.first_key_value().unwrap();
        let upper = 2f64.powf(f64::from(*index) / 8.0);
        assert_eq!((*count, native.len()), (3, 1));
        assert!((0.001..0.001_1).contains(&upper), "{upper}");
    }
}
