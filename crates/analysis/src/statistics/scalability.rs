//! The universal scalability law of rates over threads.

use std::collections::BTreeMap;

use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::bootstrap::{Estimate, mean, resampled_interval};

/// How many times the rounds are drawn again. The ends of an interval then move by some 2 % of its width from seed to
/// seed.
const RESAMPLES: u32 = 2_000;

/// So many numbers of threads have a law, which has three parameters.
pub const LEAST_COUNTS: usize = 3;

/// The universal scalability law of a server: with `N` threads it answers
/// `λ N / (1 + σ (N - 1) + κ N (N - 1))` queries per second (Gunther, "Guerrilla Capacity Planning", Springer 2007,
/// chapters 4 and 5).
///
/// The intervals hold what varies from round to round. They do not hold that the server may follow another law: the
/// prediction of [`HeldOut`] shows that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScalabilityLaw {
    /// What one thread answers by the law (λ), queries per second.
    pub one_thread_qps: Estimate,
    /// Contention (σ), 0 or more: the share of the work that one thread at a time can do.
    pub contention: Estimate,
    /// Coherency (κ), 0 or more: what each pair of threads costs, as a share of the work, because one waits for the
    /// data of the other.
    pub coherency: Estimate,
    /// With how many threads the law answers most; more threads answer less. `None` where the coherency is 0, and the
    /// upper end infinite where it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_threads: Option<Estimate>,
}

/// What the law of the smaller numbers of threads says of the largest one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeldOut {
    /// The largest number of threads, which the law was not fitted to.
    pub threads: u32,
    /// Queries per second by the law.
    pub predicted_qps: Estimate,
    /// Queries per second as measured.
    pub measured_qps: Estimate,
    /// By what share more was predicted than measured: 0.05 is 5 % more.
    pub error: Estimate,
}

/// The answered rate of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThreadRate {
    pub(crate) round: u32,
    pub(crate) threads: u32,
    /// Above 0.
    pub(crate) qps: f64,
}

impl ScalabilityLaw {
    /// The law of these rates; `None` with fewer than [`LEAST_COUNTS`] numbers of threads.
    pub(crate) fn fit(rates: &[ThreadRate], seed: u64) -> Option<Self> {
        let curve = Curve::fit(&means(rates.iter()))?;
        let rounds = Rounds::of(rates);
        let drawn = rounds.resample(seed, Curve::fit);
        let interval = |figure: fn(&Curve) -> f64| {
            let values = drawn.iter().map(figure).collect();
            rounds.interval(figure(&curve), values)
        };
        let share = |figure| at_least_zero(interval(figure));
        let inverse = share(Curve::inverse_square_of_peak);
        let peak = |inverse: f64| inverse.min(1.0).powf(-0.5);
        Some(Self {
            one_thread_qps: exponential(interval(|curve| curve.one_qps.ln())),
            contention: share(|curve| curve.contention),
            coherency: share(|curve| curve.coherency),
            peak_threads: (inverse.value > 0.0).then(|| Estimate {
                value: peak(inverse.value),
                low: peak(inverse.high),
                high: peak(inverse.low),
            }),
        })
    }

    /// What so many threads answer by the law, queries per second.
    #[must_use]
    pub fn qps(&self, threads: f64) -> f64 {
        let Self { one_thread_qps, contention, coherency, .. } = self;
        let curve = Curve {
            one_qps: one_thread_qps.value,
            contention: contention.value,
            coherency: coherency.value,
        };
        curve.qps(threads)
    }
}

/// The logarithms of the rate that the law of the smaller numbers of threads predicts for the largest, and of the
/// measured one; `None` if that is not among the means, or there is no law.
fn predicted_and_measured(means: &[CountMean], largest: u32) -> Option<(f64, f64)> {
    let (last, smaller) = means.split_last().filter(|(last, _)| last.threads == largest)?;
    Some((Curve::fit(smaller)?.qps(f64::from(largest)).ln(), last.ln_qps))
}

impl HeldOut {
    /// `None` if fewer than [`LEAST_COUNTS`] numbers of threads are left for the law.
    pub(crate) fn of(rates: &[ThreadRate], seed: u64) -> Option<Self> {
        let threads = rates.iter().map(|rate| rate.threads).max()?;
        let both = |means: &[CountMean]| predicted_and_measured(means, threads);
        let (predicted, measured) = both(&means(rates.iter()))?;
        let rounds = Rounds::of(rates);
        let drawn = rounds.resample(seed, both);
        let predictions = drawn.iter().map(|(predicted, _)| *predicted).collect();
        let errors = drawn.iter().map(|(predicted, measured)| predicted - measured).collect();
        let error = exponential(rounds.interval(predicted - measured, errors));
        let own = rates.iter().filter(|rate| rate.threads == threads).map(|rate| rate.qps);
        Some(Self {
            threads,
            predicted_qps: exponential(rounds.interval(predicted, predictions)),
            measured_qps: mean(&own.collect::<Vec<_>>(), seed)?,
            error: Estimate {
                value: error.value - 1.0,
                low: error.low - 1.0,
                high: error.high - 1.0,
            },
        })
    }
}

/// The estimate of what this one is the logarithm of. An end that is not known stays so.
fn exponential(estimate: Estimate) -> Estimate {
    match estimate.is_bounded() {
        true => Estimate {
            value: estimate.value.exp(),
            low: estimate.low.exp(),
            high: estimate.high.exp(),
        },
        false => Estimate::unbounded(estimate.value.exp()),
    }
}

fn at_least_zero(estimate: Estimate) -> Estimate {
    Estimate { low: estimate.low.max(0.0), ..estimate }
}

/// The geometric mean of the runs with a number of threads.
#[derive(Clone, Copy, Debug)]
struct CountMean {
    threads: u32,
    ln_qps: f64,
    runs: f64,
}

/// By the number of threads, the smallest first.
fn means<'a>(rates: impl Iterator<Item = &'a ThreadRate>) -> Vec<CountMean> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for rate in rates {
        let (sum, runs) = sums.entry(rate.threads).or_default();
        *sum += rate.qps.ln();
        *runs += 1.0;
    }
    let mean =
        |(threads, (sum, runs)): (u32, (f64, f64))| CountMean { threads, ln_qps: sum / runs, runs };
    sums.into_iter().map(mean).collect()
}

/// Rates by their rounds: what happens to a round happens to all its runs.
struct Rounds(Vec<Vec<ThreadRate>>);

impl Rounds {
    fn of(rates: &[ThreadRate]) -> Self {
        let mut rounds: BTreeMap<u32, Vec<ThreadRate>> = BTreeMap::new();
        for rate in rates {
            rounds.entry(rate.round).or_default().push(*rate);
        }
        Self(rounds.into_values().collect())
    }

    /// A statistic of as many rounds drawn with replacement, again and again. What lacks a number of threads may have
    /// none.
    fn resample<T>(&self, seed: u64, statistic: impl Fn(&[CountMean]) -> Option<T>) -> Vec<T> {
        let Self(rounds) = self;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut draw = || {
            let drawn: Vec<&Vec<ThreadRate>> =
                rounds.iter().map(|_| &rounds[random.random_range(0..rounds.len())]).collect();
            statistic(&means(drawn.into_iter().flatten()))
        };
        (0..RESAMPLES).filter_map(|_| draw()).collect()
    }

    /// Of one round, or where most resamples have no value, nothing is known but the value.
    fn interval(&self, value: f64, resampled: Vec<f64>) -> Estimate {
        let rounds = self.0.len();
        if rounds < 2 || resampled.len() < RESAMPLES as usize / 2 {
            return Estimate::unbounded(value);
        }
        let Estimate { low, high, .. } = resampled_interval(value, resampled, rounds);
        Estimate { value, low: low.min(value), high: high.max(value) }
    }
}

/// The law with its three parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    one_qps: f64,
    contention: f64,
    coherency: f64,
}

impl Curve {
    fn qps(&self, threads: f64) -> f64 {
        let others = threads - 1.0;
        let slower = 1.0 + self.contention * others + self.coherency * threads * others;
        self.one_qps * threads / slower
    }

    /// `κ / (1 - σ)`, at most 1: one over the square of the number of threads with the highest rate.
    fn inverse_square_of_peak(&self) -> f64 {
        match self.contention < 1.0 {
            true => (self.coherency / (1.0 - self.contention)).min(1.0),
            false => 1.0,
        }
    }

    /// The law whose rates differ least from these: `None` with fewer than [`LEAST_COUNTS`].
    ///
    /// The time of a query and thread, `N / X(N)`, is linear in `1/λ`, `σ/λ` and `κ/λ`. So least squares of its
    /// relative residuals, `measured rate / rate of the law - 1`, with none of the three below 0, have a solution in
    /// closed form: the best one of those where some are 0 (Lawson and Hanson, "Solving Least Squares Problems",
    /// 1974, chapter 23).
    fn fit(means: &[CountMean]) -> Option<Self> {
        const USED: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
        if means.len() < LEAST_COUNTS {
            return None;
        }
        let rate = |mean: &CountMean| mean.ln_qps.exp() / f64::from(mean.threads);
        // Rates as parts of the first one: numbers near 1.
        let unit = rate(&means[0]);
        let row = |mean: &CountMean| {
            let (threads, rate) = (f64::from(mean.threads), rate(mean) / unit);
            let terms = [1.0, threads - 1.0, threads * (threads - 1.0)];
            Row { terms: terms.map(|term| term * rate), weight: mean.runs }
        };
        let rows: Vec<Row> = means.iter().map(row).collect();
        let fits = USED.iter().filter_map(|used| least_squares(&rows, used));
        let possible =
            fits.filter(|[one, rest @ ..]| *one > 0.0 && rest.iter().all(|at| *at >= 0.0));
        let squares =
            |terms: &[f64; 3]| rows.iter().map(|row| row.squared_error(terms)).sum::<f64>();
        let [one, contention, coherency] =
            possible.min_by(|a, b| squares(a).total_cmp(&squares(b)))?;
        Some(Self { one_qps: unit / one, contention: contention / one, coherency: coherency / one })
    }
}

/// What the terms sum up to is to be 1.
struct Row {
    terms: [f64; 3],
    weight: f64,
}

impl Row {
    fn squared_error(&self, factors: &[f64; 3]) -> f64 {
        let sum: f64 = self.terms.iter().zip(factors).map(|(term, factor)| term * factor).sum();
        self.weight * (sum - 1.0).powi(2)
    }
}

/// The factors of these terms, with the others 0, from the normal equations by Gauss and Jordan; `None` where the rows
/// leave them open.
fn least_squares(rows: &[Row], used: &[usize]) -> Option<[f64; 3]> {
    // A row of the equations each; the last column is the right side.
    let mut equations: Vec<Vec<f64>> = Vec::new();
    for own in used {
        let term = |row: &Row, other: Option<&usize>| other.map_or(1.0, |other| row.terms[*other]);
        let sum = |other: Option<&usize>| -> f64 {
            rows.iter().map(|row| row.weight * row.terms[*own] * term(row, other)).sum()
        };
        equations.push(used.iter().map(Some).chain([None]).map(sum).collect());
    }
    for at in 0..used.len() {
        let pivot = equations[at].clone();
        // The matrix is positive definite unless the rows leave a factor open.
        if pivot[at] <= f64::EPSILON {
            return None;
        }
        for (place, equation) in equations.iter_mut().enumerate() {
            let times = equation[at] / pivot[at];
            for (cell, of_pivot) in equation.iter_mut().zip(&pivot) {
                *cell = match place == at {
                    true => of_pivot / pivot[at],
                    false => *cell - times * of_pivot,
                };
            }
        }
    }
    let mut factors = [0.0; 3];
    for (own, equation) in used.iter().zip(&equations) {
        factors[*own] = *equation.last()?;
    }
    factors.iter().all(|factor| factor.is_finite()).then_some(factors)
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution as _, Normal};

    use super::*;

    /// Rates of each round by the law, with noise of a run and of a whole round.
    fn rates(
        curve: Curve,
        counts: &[u32],
        rounds: u32,
        noise: [f64; 2],
        seed: u64,
    ) -> Vec<ThreadRate> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut rates = Vec::new();
        let [of_run, of_round] = noise.map(|noise| Normal::new(0.0, noise).unwrap());
        for round in 1..=rounds {
            let whole = of_round.sample(&mut random);
            for threads in counts {
                let off = whole + of_run.sample(&mut random);
                let qps = curve.qps(f64::from(*threads)) * off.exp();
                rates.push(ThreadRate { round, threads: *threads, qps });
            }
        }
        rates
    }

    fn curve(contention: f64, coherency: f64) -> Curve {
        Curve { one_qps: 100_000.0, contention, coherency }
    }

    fn holds(estimate: &Estimate, truth: f64) -> bool {
        (estimate.low..=estimate.high).contains(&truth)
    }

    #[test]
    fn without_noise_the_law_is_found() {
        for (contention, coherency) in
            [(0.0, 0.0), (0.06, 0.004), (0.3, 0.0), (0.0, 0.01), (1.2, 0.1)]
        {
            let truth = curve(contention, coherency);
            for counts in [&[1, 2, 4][..], &[2, 3, 5], &[1, 2, 3, 4, 6, 8, 12, 16, 64]] {
                let rates = rates(truth, counts, 3, [0.0; 2], 1);
                let law = ScalabilityLaw::fit(&rates, 1).unwrap();
                let found = [law.contention.value, law.coherency.value];
                for (found, planted) in found.into_iter().zip([contention, coherency]) {
                    assert!((found - planted).abs() < 1e-6, "{law:?} of {truth:?} at {counts:?}");
                }
                assert!((law.one_thread_qps.value / 100_000.0 - 1.0).abs() < 1e-6, "{law:?}");
                assert!((law.qps(64.0) / truth.qps(64.0) - 1.0).abs() < 1e-3, "{law:?}");
            }
        }
    }

    #[test]
    fn the_peak_is_where_more_threads_answer_less() {
        let peak = |contention, coherency| {
            let rates = rates(curve(contention, coherency), &[1, 2, 4, 8], 2, [0.0; 2], 1);
            let peak = ScalabilityLaw::fit(&rates, 1).unwrap().peak_threads?;
            Some((peak.value * 10.0).round() / 10.0)
        };
        // The square root of 0.94 / 0.004.
        assert_eq!(peak(0.06, 0.004), Some(15.3));
        assert_eq!(peak(1.5, 0.1), Some(1.0));
        let truth = curve(0.06, 0.004);
        assert!(truth.qps(15.0) > truth.qps(14.0) && truth.qps(16.0) > truth.qps(17.0));
    }

    #[test]
    fn two_counts_have_no_law_and_three_no_prediction() {
        let at = |counts: &[u32]| rates(curve(0.1, 0.0), counts, 3, [0.01, 0.0], 1);
        assert_eq!(ScalabilityLaw::fit(&at(&[1, 2]), 1), None);
        assert!(ScalabilityLaw::fit(&at(&[1, 2, 3]), 1).is_some());
        assert_eq!(HeldOut::of(&at(&[1, 2, 3]), 1), None);
        assert!(HeldOut::of(&at(&[1, 2, 3, 4]), 1).is_some());
    }

    #[test]
    fn one_round_says_nothing_of_the_spread() {
        let rates = rates(curve(0.1, 0.0), &[1, 2, 3, 4], 1, [0.01, 0.0], 1);
        let law = ScalabilityLaw::fit(&rates, 1).unwrap();
        assert!(!law.contention.is_bounded() && !law.one_thread_qps.is_bounded());
        assert!(!HeldOut::of(&rates, 1).unwrap().error.is_bounded());
    }

    #[test]
    fn what_scales_better_than_one_thread_has_no_contention() {
        let faster = |threads: u32| ThreadRate {
            round: 1,
            threads,
            qps: 1_000.0 * f64::from(threads).powf(1.1),
        };
        let law = ScalabilityLaw::fit(&[1, 2, 4, 8].map(faster), 1).unwrap();
        assert_eq!((law.contention.value, law.coherency.value), (0.0, 0.0));
    }

    /// Seven rounds with 2 % noise of a run and 3 % of a round. Of 100 experiments an interval of 95 % misses the truth
    /// in 5; 12 are three standard deviations more.
    #[test]
    fn intervals_hold_the_truth_in_95_of_100_experiments() {
        const EXPERIMENTS: u64 = 100;
        const MAX_MISSED: u64 = 12;
        const COUNTS: [u32; 6] = [1, 2, 3, 4, 6, 8];
        for (contention, coherency) in [(0.06, 0.004), (0.2, 0.0), (0.0, 0.0)] {
            let truth = curve(contention, coherency);
            let mut missed = [0; 5];
            for seed in 0..EXPERIMENTS {
                let rates = rates(truth, &COUNTS, 7, [0.02, 0.03], seed);
                let law = ScalabilityLaw::fit(&rates, seed).unwrap();
                let held_out = HeldOut::of(&rates, seed).unwrap();
                let held = [
                    holds(&law.one_thread_qps, truth.one_qps),
                    holds(&law.contention, contention),
                    holds(&law.coherency, coherency),
                    holds(&held_out.predicted_qps, truth.qps(8.0)),
                    holds(&held_out.error, 0.0),
                ];
                for (missed, holds) in missed.iter_mut().zip(held) {
                    *missed += u64::from(!holds);
                }
            }
            let most = missed.iter().max().unwrap();
            assert!(*most <= MAX_MISSED, "{missed:?} of {EXPERIMENTS} at {truth:?}");
        }
    }
}
