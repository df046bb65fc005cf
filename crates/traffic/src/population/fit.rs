//! From counts to the parameters of distributions.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng as _;

use super::distribution::{LogNormal, normal_below};
use super::play::Pace;
use super::{ActivityDistribution, MAX_LOOKUPS, Zipf};

/// The place where a function of two arguments is lowest, near a start: steps in the four directions, halved
/// when none leads down (Hooke and Jeeves, "Direct search solution", 1961).
fn lowest(start: [f64; 2], mut steps: [f64; 2], function: impl Fn([f64; 2]) -> f64) -> [f64; 2] {
    let (mut place, mut value) = (start, function(start));
    // Each halving takes a few steps; the bound is for functions without a lowest place.
    for _ in 0..400 {
        let around = [(0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0)].map(|(axis, sign)| {
            let mut next = place;
            next[axis] += sign * steps[axis];
            (function(next), next)
        });
        let best = around.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        match best {
            Some((lower, next)) if lower < value => (value, place) = (lower, next),
            _ => steps = steps.map(|step| step / 2.0),
        }
        if steps.iter().all(|step| *step < 1e-4) {
            break;
        }
    }
    place
}

/// Median and spread of the number of lookups in a burst, by maximum likelihood. `counts[n]` is how many bursts
/// have `n` lookups.
pub(super) fn lookups(counts: &[f64]) -> (f64, f64) {
    let means = 0.1_f64.ln()..=500.0_f64.ln();
    let surprise = |[mean, deviation]: [f64; 2]| {
        let is_possible = means.contains(&mean) && (0.05..=3.0).contains(&deviation);
        let lookups = LogNormal { mean, deviation };
        if is_possible { surprise_of_lookups(counts, &lookups) } else { f64::INFINITY }
    };
    let total: f64 = counts.iter().sum();
    let of_logarithms = counts.iter().enumerate().skip(1);
    let middle =
        of_logarithms.map(|(count, bursts)| (count as f64 - 0.4).ln() * bursts).sum::<f64>()
            / total;
    let start = [middle.clamp(*means.start(), *means.end()), 1.0];
    let [mean, deviation] = lowest(start, [0.5, 0.4], surprise);
    (mean.exp(), deviation)
}

/// How unlikely these numbers of lookups are: minus the logarithm of their likelihood.
fn surprise_of_lookups(counts: &[f64], lookups: &LogNormal) -> f64 {
    let (mut below, mut sum) = (0.0, 0.0);
    for (count, bursts) in counts.iter().enumerate().skip(1) {
        let to_here =
            if count == usize::from(MAX_LOOKUPS) { 1.0 } else { lookups.up_to(count as f64) };
        sum -= bursts * (to_here - below).max(1e-12).ln();
        below = to_here;
    }
    sum
}

/// Sums over natural logarithms: what a log-normal distribution is fitted to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LogSums {
    pub(super) count: f64,
    pub(super) sum: f64,
    pub(super) squares: f64,
}

impl LogSums {
    pub(super) fn add(&mut self, value: f64) {
        let logarithm = value.ln();
        *self = Self {
            count: self.count + 1.0,
            sum: self.sum + logarithm,
            squares: self.squares + logarithm * logarithm,
        };
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The sum of the squared distances from the mean.
    pub(super) fn scatter(&self) -> f64 {
        if self.count > 0.0 {
            (self.squares - self.sum * self.sum / self.count).max(0.0)
        } else {
            0.0
        }
    }
}

/// The distribution whose values up to `most` these are, by maximum likelihood. The median is at most half of
/// that.
pub(super) fn gap(sums: &LogSums, most: f64) -> LogNormal {
    let means = 1e-9_f64.ln()..=(most / 2.0).ln();
    let surprise = |[mean, deviation]: [f64; 2]| {
        let is_possible = means.contains(&mean) && (0.01..=4.0).contains(&deviation);
        let gaps = LogNormal { mean, deviation };
        if is_possible { surprise_of_gaps(sums, most, &gaps) } else { f64::INFINITY }
    };
    let deviation = (sums.scatter() / sums.count).sqrt().clamp(0.01, 4.0);
    let mean = (sums.sum / sums.count).clamp(*means.start(), *means.end());
    let [mean, deviation] = lowest([mean, deviation], [0.5, 0.3], surprise);
    LogNormal { mean, deviation }
}

/// How unlikely these gaps are, of which those beyond `most` were not seen.
fn surprise_of_gaps(sums: &LogSums, most: f64, gaps: &LogNormal) -> f64 {
    let LogSums { count, sum, squares } = *sums;
    let LogNormal { mean, deviation } = *gaps;
    let distances = squares - 2.0 * mean * sum + count * mean * mean;
    let kept = normal_below((most.ln() - mean) / deviation);
    distances / (2.0 * deviation * deviation) + count * (deviation.ln() + kept.ln())
}

/// A set of names in Zipf's law, in groups of about equally popular ones.
struct Groups {
    /// The chance of one name of a group, and how many it has.
    groups: Vec<(f64, f64)>,
}

impl Groups {
    fn new(zipf: Zipf) -> Self {
        /// Ranks that are groups of their own.
        const SINGLE: u32 = 32;
        /// The last rank of a group by its first.
        const RATIO: f64 = 1.12;
        let (count, exponent) = (f64::from(zipf.count), zipf.exponent);
        let mut groups: Vec<(f64, f64)> = (1..=zipf.count.min(SINGLE))
            .map(|rank| (f64::from(rank).powf(-exponent), 1.0))
            .collect();
        let mut from = f64::from(SINGLE) + 0.5;
        while from < count {
            let to = ((from * RATIO).floor() + 0.5).min(count + 0.5);
            let mass = if (exponent - 1.0).abs() < 1e-9 {
                (to / from).ln()
            } else {
                (to.powf(1.0 - exponent) - from.powf(1.0 - exponent)) / (1.0 - exponent)
            };
            groups.push((mass / (to - from), to - from));
            from = to;
        }
        let sum: f64 = groups.iter().map(|(chance, names)| chance * names).sum();
        for (chance, _) in &mut groups {
            *chance /= sum;
        }
        Self { groups }
    }

    /// The chance that a name was not among the last `lookups`, a share of which asks for names of this set.
    fn miss(&self, lookups: f64, share: f64) -> f64 {
        let of_group = |(chance, names): &(f64, f64)| {
            chance * names * (lookups * (-(chance * share).min(1.0 - 1e-12)).ln_1p()).exp()
        };
        self.groups.iter().map(of_group).sum()
    }

    /// How far the misses of this share are from those seen, squared; of each number of lookups.
    fn distance(&self, misses: &[(f64, f64)], share: f64) -> f64 {
        misses
            .iter()
            .map(|(lookups, seen)| (share * self.miss(*lookups, share) - seen).powi(2))
            .sum()
    }

    /// How many different names so many lookups ask for.
    fn different(&self, lookups: f64) -> f64 {
        let of_group = |(chance, names): &(f64, f64)| {
            -names * (lookups * (-chance.min(1.0 - 1e-12)).ln_1p()).exp_m1()
        };
        self.groups.iter().map(of_group).sum()
    }
}

/// The shares of lookups that ask for other names than popular ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others {
    pub(super) missing_share: f64,
    pub(super) missing: Zipf,
    pub(super) random_share: f64,
}

/// The most popular names that a fit gives: the tail beyond does not change what a cache sees.
const MAX_NAMES: f64 = 134_217_728.0;

/// The exponents that a fit gives.
const EXPONENTS: std::ops::RangeInclusive<f64> = 0.0..=2.0;

fn zipf_at([logarithm, exponent]: [f64; 2]) -> Option<Zipf> {
    let count = logarithm.exp().round();
    let is_possible = (1.0..=MAX_NAMES).contains(&count) && EXPONENTS.contains(&exponent);
    is_possible.then_some(Zipf { count: count as u32, exponent })
}

/// The popular names for which a cache misses as often as seen: by least squares over pairs of a number of
/// lookups and the share of names that were not among so many lookups before.
pub(super) fn popular(misses: &[(f64, f64)], others: &Others) -> Zipf {
    let share = (1.0 - others.missing_share - others.random_share).max(0.0);
    let missing = Groups::new(others.missing);
    // What remains for the popular names, at each number of lookups.
    let rest: Vec<(f64, f64)> = misses
        .iter()
        .map(|(lookups, seen)| {
            let of_missing = others.missing_share * missing.miss(*lookups, others.missing_share);
            (*lookups, seen - others.random_share - of_missing)
        })
        .collect();
    let distance = |place: [f64; 2]| {
        let groups = zipf_at(place).map(Groups::new);
        groups.map_or(f64::INFINITY, |groups| groups.distance(&rest, share))
    };
    let mut start = ([10.0, 0.9], f64::INFINITY);
    for count in 0..26 {
        for exponent in 0..10 {
            let place = [f64::from(count) * 0.7 + 0.7, f64::from(exponent) * 0.2];
            let value = distance(place);
            if value < start.1 {
                start = (place, value);
            }
        }
    }
    zipf_at(lowest(start.0, [0.35, 0.1], distance)).unwrap_or(Zipf { count: 1, exponent: 0.0 })
}

/// The names of which so many lookups asked for `different` ones, and `once` of them a single time.
pub(super) fn missing(lookups: f64, different: f64, once: f64) -> Zipf {
    let zipfs = (0..=30).map(|step| with_exponent(f64::from(step) * 0.05, lookups, different));
    let all = zipfs.map(|zipf| {
        // A name that is asked for once in all: the others of the lookups do not ask for it.
        let expected = lookups * Groups::new(zipf).miss(lookups - 1.0, 1.0);
        (zipf, (expected - once).abs())
    });
    all.min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(Zipf { count: 1, exponent: 0.0 }, |(zipf, _)| zipf)
}

/// The names with this exponent of which so many lookups ask for `different` ones.
fn with_exponent(exponent: f64, lookups: f64, different: f64) -> Zipf {
    let (mut low, mut high) = (0.0, MAX_NAMES.ln());
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        let groups = zipf_at([middle, exponent]).map(Groups::new);
        let is_enough = groups.is_some_and(|groups| groups.different(lookups) >= different);
        if is_enough { high = middle } else { low = middle }
    }
    zipf_at([high, exponent]).unwrap_or(Zipf { count: 1, exponent })
}

/// How active clients are, from how many bursts each was seen to have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Active {
    pub(super) distribution: ActivityDistribution,
    /// Clients, seen or not, for each one that was seen.
    pub(super) for_each_seen: f64,
}

/// Counts of bursts, in groups that grow by a fifth.
struct CountGroups {
    /// The highest count of each group; the first is that of none.
    most: Vec<u32>,
}

impl CountGroups {
    fn new() -> Self {
        let mut most = vec![0];
        let mut last = 0;
        while last < 100_000_000 {
            last = (last + 1).max((f64::from(last) * 1.2) as u32);
            most.push(last);
        }
        Self { most }
    }

    fn of(&self, count: u32) -> usize {
        self.most.partition_point(|most| *most < count).min(self.most.len() - 1)
    }

    /// The chance of each group for a client with `mean` bursts in so many seconds.
    fn chances(&self, pace: &Pace, length_s: f64, mean: f64, random: &mut SplitMix64) -> Vec<f64> {
        /// With so many bursts, the number of a client is nearly its mean.
        const MANY: f64 = 1_000.0;
        let mut chances = vec![0.0; self.most.len()];
        if mean > MANY {
            chances[self.of(mean as u32)] = 1.0;
            return chances;
        }
        // Busy clients have many bursts each, and their numbers differ little.
        let times = (40_000.0 / mean).clamp(60.0, 4_000.0) as u32;
        for _ in 0..times {
            let bursts = played(pace, length_s, mean, random);
            chances[self.of(bursts)] += f64::from(times).recip();
        }
        chances
    }
}

/// How many bursts a client has in the time of a capture if it has so many on average. There is no formula: it
/// is played.
struct BurstCounts {
    groups: CountGroups,
    /// The logarithm of the mean of the first row, and from one to the next.
    first: f64,
    step: f64,
    /// The chance of each group of counts.
    rows: Vec<Vec<f64>>,
}

impl BurstCounts {
    fn new(pace: &Pace, length_s: f64, most: u32) -> Self {
        let groups = CountGroups::new();
        let (first, step) = (0.02_f64.ln(), 0.35);
        let last = (f64::from(most.max(1)) * 8.0).ln();
        let count = ((last - first) / step).ceil() as u32 + 1;
        let mut random = SplitMix64::seed_from_u64(0x6275_7273_7473);
        let means = (0..count).map(|at| (first + step * f64::from(at)).exp());
        let rows = means.map(|mean| groups.chances(pace, length_s, mean, &mut random)).collect();
        Self { groups, first, step, rows }
    }

    /// Adds the chances of a client with this mean, by `weight`, to those of the groups.
    fn add(&self, mean: f64, weight: f64, chances: &mut [f64]) {
        let place = (mean.ln() - self.first) / self.step;
        if place <= 0.0 {
            // So few that the chance of any is in proportion.
            let part = mean / self.first.exp();
            for (chance, of_first) in chances.iter_mut().zip(&self.rows[0]) {
                *chance += weight * part * of_first;
            }
            chances[0] += weight * (1.0 - part);
            return;
        }
        let last = self.rows.len() - 1;
        let row = (place as usize).min(last);
        let part = (place - row as f64).clamp(0.0, 1.0);
        let next = (row + 1).min(last);
        for (at, chance) in chances.iter_mut().enumerate() {
            *chance += weight * (self.rows[row][at] * (1.0 - part) + self.rows[next][at] * part);
        }
    }

    /// The chance of no burst.
    fn none(&self, mean: f64) -> f64 {
        let place = (mean.ln() - self.first) / self.step;
        if place <= 0.0 {
            return 1.0 - mean / self.first.exp() * (1.0 - self.rows[0][0]);
        }
        let last = self.rows.len() - 1;
        let row = (place as usize).min(last);
        let part = (place - row as f64).clamp(0.0, 1.0);
        self.rows[row][0] * (1.0 - part) + self.rows[(row + 1).min(last)][0] * part
    }
}

/// How many bursts a client has, once. One that goes on when the time begins counts too.
fn played(pace: &Pace, length_s: f64, mean: f64, random: &mut SplitMix64) -> u32 {
    let (sources, silence_s) = pace.sources(length_s / mean);
    let mut bursts = 0_u32;
    for _ in 0..sources {
        let mut at_s = pace.first_s(silence_s, random);
        while at_s < length_s + pace.mean_length_s() {
            bursts = bursts.saturating_add(1);
            at_s += pace.mean_length_s() + pace.silence_s(silence_s, random);
        }
    }
    bursts
}

/// Fits the distribution of activity to how many bursts the clients had that were seen, each at least one, by
/// maximum likelihood. The mean number of bursts of a client that is seen is kept.
pub(super) fn activity(bursts: &[u32], pace: &Pace, length_s: f64) -> Active {
    let most = bursts.iter().copied().max().unwrap_or(1);
    let counts = BurstCounts::new(pace, length_s, most);
    let mut seen = vec![0.0; counts.groups.most.len()];
    for bursts in bursts {
        seen[counts.groups.of((*bursts).max(1))] += 1.0;
    }
    let mean = bursts.iter().map(|bursts| f64::from((*bursts).max(1))).sum::<f64>()
        / bursts.len().max(1) as f64;
    // Counts have a burst that goes on at the start as well.
    let mean = mean * length_s / (length_s + pace.mean_length_s());
    let points: Vec<(f64, f64)> = {
        let places = (-160..=160).map(|step| f64::from(step) / 40.0);
        let weighted: Vec<(f64, f64)> =
            places.map(|place| (place, (-place * place / 2.0).exp())).collect();
        let sum: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        weighted.into_iter().map(|(place, weight)| (place, weight / sum)).collect()
    };
    let spreads =
        (0..=70).map(|step| ActivityDistribution::LogNormal { spread: f64::from(step) * 0.05 });
    let shapes =
        (0..=28).map(|step| ActivityDistribution::Pareto { shape: 0.6 * 1.08_f64.powi(step) });
    let mut best: Option<(f64, Active)> = None;
    for distribution in spreads.chain(shapes) {
        let rates: Vec<(f64, f64)> = points
            .iter()
            .map(|(place, weight)| {
                let rate = match distribution {
                    ActivityDistribution::LogNormal { spread } => (spread * place).exp(),
                    ActivityDistribution::Pareto { shape } => {
                        normal_below(-place).powf(-shape.recip())
                    }
                };
                (rate, *weight)
            })
            .collect();
        let of_rates: f64 = rates.iter().map(|(rate, weight)| rate * weight).sum();
        // The share that is seen, and the mean of those, rise with the scale.
        let unseen = |scale: f64| -> f64 {
            rates.iter().map(|(rate, weight)| weight * counts.none(scale * rate)).sum()
        };
        let (mut low, mut high) = (-30.0_f64, (mean / of_rates).ln());
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            let scale = middle.exp();
            let of_seen = scale * of_rates / (1.0 - unseen(scale)).max(1e-12);
            if of_seen < mean { low = middle } else { high = middle }
        }
        let scale = high.exp();
        let mut chances = vec![0.0; seen.len()];
        for (rate, weight) in &rates {
            counts.add(scale * rate, *weight, &mut chances);
        }
        let is_seen = (1.0 - chances[0]).max(1e-12);
        let mut likelihood: f64 = seen
            .iter()
            .zip(&chances)
            .skip(1)
            .map(|(clients, chance)| clients * (chance / is_seen).max(1e-9).ln())
            .sum();
        if matches!(distribution, ActivityDistribution::Pareto { .. }) {
            // As good as the other is not good enough.
            likelihood -= 2.0;
        }
        if best.is_none_or(|(highest, _)| likelihood > highest) {
            best = Some((likelihood, Active { distribution, for_each_seen: is_seen.recip() }));
        }
    }
    best.map_or(
        Active {
            distribution: ActivityDistribution::LogNormal { spread: 0.0 },
            for_each_seen: 1.0,
        },
        |(_, active)| active,
    )
}

#[cfg(test)]
mod tests {
    use rand_distr::Distribution as _;

    use super::*;
    use crate::population::Population;

    #[test]
    fn the_lowest_place_is_found() {
        let [x, y] =
            lowest([0.0, 0.0], [1.0, 1.0], |[x, y]| (x - 2.5).powi(2) + (y + 0.3).powi(2) + x * y);
        // Where both derivatives are zero.
        assert!(
            (2.0 * (x - 2.5) + y).abs() < 0.01 && (2.0 * (y + 0.3) + x).abs() < 0.01,
            "{x} {y}"
        );
    }

    #[test]
    fn bursts_are_fitted() {
        for (median, spread) in [(3.0, 1.2), (0.5, 1.5), (40.0, 0.5), (1.0, 0.3)] {
            let mut bursts = Population::typical().bursts;
            (bursts.lookups_median, bursts.lookups_spread) = (median, spread);
            let pace = Pace::new(&bursts);
            let mut random = SplitMix64::seed_from_u64(2);
            let mut counts = vec![0.0; usize::from(MAX_LOOKUPS) + 1];
            let (mut gaps, most) = (LogSums::default(), bursts.silence.as_secs_f64());
            for _ in 0..20_000 {
                counts[usize::from(pace.lookups(&mut random))] += 1.0;
                gaps.add(pace.gap_s(&mut random));
            }
            let (fitted_median, fitted_spread) = lookups(&counts);
            let fitted = LogNormal { mean: fitted_median.ln(), deviation: fitted_spread };
            for count in [1.0, 2.0, 5.0, 20.0, 50.0] {
                let difference = fitted.up_to(count) - bursts.lookups().up_to(count);
                assert!(
                    difference.abs() < 0.02,
                    "{median} {spread}: {fitted_median} {fitted_spread}"
                );
            }
            let fitted = gap(&gaps, most);
            assert!((fitted.mean - bursts.gap().mean).abs() < 0.1, "{fitted:?}");
            assert!((fitted.deviation - bursts.gap().deviation).abs() < 0.1, "{fitted:?}");
        }
    }

    #[test]
    fn groups_stand_for_all_ranks() {
        for (count, exponent) in [(1, 1.0), (40, 0.7), (5_000, 1.0), (20_000, 0.91), (3_000, 1.4)] {
            let zipf = Zipf { count, exponent };
            let weights: Vec<f64> =
                (1..=count).map(|rank| f64::from(rank).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            let groups = Groups::new(zipf);
            for lookups in [1.0_f64, 30.0, 1_000.0, 100_000.0] {
                let exact: f64 = weights
                    .iter()
                    .map(|weight| weight / sum * (1.0 - 0.9 * weight / sum).powf(lookups))
                    .sum();
                assert!((groups.miss(lookups, 0.9) - exact).abs() < 0.003, "{zipf:?} {lookups}");
            }
        }
    }

    fn drawn(zipf: Zipf, lookups: usize) -> Vec<u32> {
        let sampler = rand_distr::Zipf::new(f64::from(zipf.count), zipf.exponent).unwrap();
        let mut random = SplitMix64::seed_from_u64(8);
        (0..lookups).map(|_| sampler.sample(&mut random) as u32).collect()
    }

    #[test]
    fn names_are_fitted_to_what_a_cache_misses() {
        for (count, exponent) in [(200, 0.5), (50_000, 0.9), (1_000_000, 1.1)] {
            let zipf = Zipf { count, exponent };
            let others = Others {
                missing_share: 0.1,
                missing: Zipf { count: 50, exponent: 1.0 },
                random_share: 0.05,
            };
            let (truth, missing) = (Groups::new(zipf), Groups::new(others.missing));
            let seen = |lookups: f64| {
                0.85 * truth.miss(lookups, 0.85) + 0.1 * missing.miss(lookups, 0.1) + 0.05
            };
            let misses: Vec<_> = (12..64)
                .map(|step| 2.0_f64.powf(f64::from(step) / 4.0))
                .map(|n| (n, seen(n)))
                .collect();
            let fitted = popular(&misses, &others);
            let groups = Groups::new(fitted);
            for (lookups, _) in misses {
                let difference = groups.miss(lookups, 0.85) - truth.miss(lookups, 0.85);
                assert!(difference.abs() < 0.005, "{zipf:?}: {fitted:?} {lookups}");
            }
            assert!((fitted.exponent - exponent).abs() < 0.05, "{fitted:?}");
        }
    }

    #[test]
    fn missing_names_are_fitted_to_their_counts() {
        for (count, exponent) in [(300, 1.0), (5_000, 0.6)] {
            let mut times = std::collections::HashMap::new();
            for rank in drawn(Zipf { count, exponent }, 6_000) {
                *times.entry(rank).or_insert(0) += 1;
            }
            let once = times.values().filter(|times| **times == 1).count();
            let fitted = missing(6_000.0, times.len() as f64, once as f64);
            assert!((fitted.exponent - exponent).abs() < 0.25, "{fitted:?}");
            let different = Groups::new(fitted).different(6_000.0);
            assert!((different / times.len() as f64 - 1.0).abs() < 0.02, "{fitted:?}");
        }
    }

    #[track_caller]
    fn check_activity(distribution: ActivityDistribution, mean: f64, unseen: std::ops::Range<f64>) {
        let pace = Pace::new(&Population::typical().bursts);
        let clients = 4_000;
        let activity = super::super::Activity { distribution, busiest: Vec::new() };
        let shares = super::super::client::Shares::new(&activity, clients, 1);
        let mut random = SplitMix64::seed_from_u64(9);
        let bursts: Vec<u32> = (0..clients)
            .map(|client| {
                played(&pace, 600.0, mean * f64::from(clients) * shares.of(client), &mut random)
            })
            .filter(|bursts| *bursts > 0)
            .collect();
        let fitted = super::activity(&bursts, &pace, 600.0);
        let ratio = fitted.for_each_seen * bursts.len() as f64 / f64::from(clients);
        assert!(unseen.contains(&ratio), "{distribution:?}: {fitted:?}, {ratio}");
        match (distribution, fitted.distribution) {
            (
                ActivityDistribution::LogNormal { spread },
                ActivityDistribution::LogNormal { spread: fitted },
            ) => {
                assert!((spread - fitted).abs() < 0.2, "{spread} {fitted}");
            }
            (
                ActivityDistribution::Pareto { shape },
                ActivityDistribution::Pareto { shape: fitted },
            ) => {
                assert!((shape / fitted).ln().abs() < 0.2, "{shape} {fitted}");
            }
            (_, other) => panic!("{distribution:?}: {other:?}"),
        }
    }

    #[test]
    fn activity_is_fitted_with_the_clients_that_were_not_seen() {
        check_activity(ActivityDistribution::LogNormal { spread: 0.0 }, 6.0, 0.95..1.05);
        check_activity(ActivityDistribution::LogNormal { spread: 1.0 }, 6.0, 0.9..1.1);
        check_activity(ActivityDistribution::LogNormal { spread: 1.5 }, 3.0, 0.8..1.25);
        check_activity(ActivityDistribution::Pareto { shape: 1.3 }, 6.0, 0.9..1.1);
    }
}
