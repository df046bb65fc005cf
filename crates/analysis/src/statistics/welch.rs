//! The difference of two variants from two samples of runs that have nothing to do with each other.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::Estimate;

/// Error on each side of the intervals that are shown: they are those of 95 %.
const SIDE_ERROR: f64 = 0.025;

/// What two samples of a figure say of the difference between them.
///
/// The runs of two sessions are no pairs: run 1 of one session shares nothing with run 1 of the other. So
/// the two means are compared, each with the spread of its own sample, which may differ (Welch, Biometrika
/// 34, 1947; degrees of freedom by Satterthwaite, Biometrics Bulletin 2, 1946). As in [`super::Paired`], the
/// difference is that of the logarithms: half and double are equally far, and the noise is that of a ratio.
///
/// The interval knows the spread of the runs inside each session, and nothing of what differs between the
/// sessions beside the variant: another day, another neighbour on the machine. That is no fault of the
/// method; no method can know it from two sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Welch {
    /// Relative difference of the second sample from the first one (0.1 = 10 % more) with its 95 % interval;
    /// unbounded if a sample has one value.
    pub relative: Estimate,
    samples: [Sample; 2],
}

/// The logarithms of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    count: usize,
    mean: f64,
    /// 0 with one value.
    variance: f64,
}

/// The standard error of the difference of two means.
#[derive(Clone, Copy, Debug)]
pub(super) struct StandardError {
    pub(super) error: f64,
    /// Degrees of freedom of Student's distribution.
    pub(super) freedom: f64,
}

impl Welch {
    /// The difference of `new` from `base`; `None` if either is empty, or a value is not above zero or not
    /// finite.
    #[must_use]
    pub fn of(base: &[f64], new: &[f64]) -> Option<Self> {
        let samples = [Sample::of(base)?, Sample::of(new)?];
        let mean = samples[1].mean - samples[0].mean;
        let error = StandardError::of(samples);
        let half = error.map_or(f64::INFINITY, |error| error.half_width(SIDE_ERROR));
        let low = if half.is_finite() { (mean - half).exp_m1() } else { f64::NEG_INFINITY };
        let relative = Estimate { value: mean.exp_m1(), low, high: (mean + half).exp_m1() };
        Some(Self { relative, samples })
    }

    /// How likely a difference as far above `bound` as this one, or farther, is if the true one is `bound` or
    /// less: one-sided, 1 if a sample has one value. `bound` is relative and above -1.
    #[must_use]
    pub fn p_not_above(&self, bound: f64) -> f64 {
        self.tail(self.mean() - bound.ln_1p())
    }

    /// How likely a difference as far below `bound` as this one, or farther, is if the true one is `bound` or more:
    /// small if the true difference is certainly less.
    #[must_use]
    pub fn p_not_below(&self, bound: f64) -> f64 {
        self.tail(bound.ln_1p() - self.mean())
    }

    /// Of the logarithms: the second mean less the first one.
    pub(super) fn mean(&self) -> f64 {
        self.samples[1].mean - self.samples[0].mean
    }

    /// The standard error of that; `None` if a sample has one value.
    pub(super) fn standard_error(&self) -> Option<StandardError> {
        StandardError::of(self.samples)
    }

    /// The chance of a difference that is `distance` or more on this side of a bound.
    fn tail(&self, distance: f64) -> f64 {
        match self.standard_error() {
            None => 1.0,
            Some(StandardError { error: 0.0, .. }) => f64::from(u8::from(distance <= 0.0)),
            Some(standard) => standard.student().sf(distance / standard.error),
        }
    }

    /// The fewest further runs of each of the two samples with which `bound` would probably lie outside the
    /// interval.
    ///
    /// The half width of the interval is `t sqrt(s1^2/n1 + s2^2/n2)`, where `s^2` are the variances, `n` the
    /// numbers of runs, and `t` is the quantile of Student's distribution at `error` on each side (0.025 for
    /// the interval that is shown). Mean and variances are taken to stay as they are, so only `n` and with
    /// it `t` change: the answer is the smallest number by which both `n` must grow until the half width is
    /// no more than the distance of the mean from the bound. At that number about half of such measurements
    /// decide, since the estimate moves, too.
    ///
    /// `None` if a sample has one value, so that no spread is known, and beyond `most`: the true difference
    /// is then too near to the bound to be told from it by repetition.
    #[must_use]
    pub fn more_runs(&self, bound: f64, error: f64, most: u32) -> Option<u32> {
        self.standard_error()?;
        let distance = (self.mean() - bound.ln_1p()).abs();
        (1..=most).find(|more| {
            let count = |sample: Sample| sample.count + *more as usize;
            let then = self.samples.map(|sample| Sample { count: count(sample), ..sample });
            StandardError::of(then).is_some_and(|then| then.half_width(error) <= distance)
        })
    }
}

impl Sample {
    /// `None` if there is no value, or one is not above zero or not finite.
    fn of(values: &[f64]) -> Option<Self> {
        let is_fit = |value: &f64| value.is_finite() && *value > 0.0;
        if values.is_empty() || !values.iter().all(is_fit) {
            return None;
        }
        let count = values.len();
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
        // Values that are all alike have a mean that rounding may put beside them.
        let is_alike = values.iter().all(|value| *value == values[0]);
        let variance = if is_alike { 0.0 } else { squares / (count as f64 - 1.0) };
        Some(Self { count, mean, variance })
    }
}

impl StandardError {
    /// With the degrees of freedom of Satterthwaite; `None` if a sample has one value.
    fn of(samples: [Sample; 2]) -> Option<Self> {
        if samples.iter().any(|sample| sample.count < 2) {
            return None;
        }
        let [one, other] = samples.map(|sample| sample.variance / sample.count as f64);
        let [least, less] = samples.map(|sample| sample.count as f64 - 1.0);
        let squares = one * one / least + other * other / less;
        // Without any spread the degrees of freedom do not matter.
        let freedom = if squares > 0.0 { (one + other).powi(2) / squares } else { 1.0 };
        Some(Self { error: (one + other).sqrt(), freedom })
    }

    fn student(self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.freedom).expect("two values have a degree of freedom")
    }

    /// Half the width of the interval that leaves out `side_error` on each side.
    fn half_width(self, side_error: f64) -> f64 {
        match self.error {
            0.0 => 0.0,
            error => self.student().inverse_cdf(1.0 - side_error) * error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng as _, SeedableRng as _};
    use rand_distr::{StandardNormal, StudentT};
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[track_caller]
    fn near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "{found} is not {expected}");
    }

    fn exponentials(logarithms: &[f64]) -> Vec<f64> {
        logarithms.iter().map(|value| value.exp()).collect()
    }

    /// `t.test(extra ~ group, data = sleep)` of R, as its manual prints it: Student's sleep data (Biometrika
    /// 6, 1908), t = -1.8608, df = 17.776, p-value = 0.07939, 95 percent confidence interval -3.3654832 to
    /// 0.2054832, means 0.75 and 2.33. R takes group 1 less group 2.
    #[test]
    fn figures_are_those_of_r() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = Welch::of(&exponentials(&first), &exponentials(&second)).unwrap();
        near(found.relative.value.ln_1p(), 2.33 - 0.75, 1e-9);
        near(found.relative.low.ln_1p(), -0.205_483_2, 5e-8);
        near(found.relative.high.ln_1p(), 3.365_483_2, 5e-8);
        // Two-sided there.
        near(2.0 * found.p_not_above(0.0), 0.079_39, 5e-6);
        near(found.p_not_below(0.0), 1.0 - 0.079_39 / 2.0, 5e-6);
    }

    /// Against scipy.stats.ttest_ind of the logarithms with `equal_var=False`, its confidence_interval, and the
    /// same with `alternative="less"` after the bound was taken from one sample.
    #[test]
    fn figures_are_those_of_scipy() {
        let base = [100.0, 110.0, 95.0, 105.0, 98.0];
        let new = [92.0, 104.0, 90.0, 95.0, 93.5, 97.0];
        let found = Welch::of(&base, &new).unwrap();
        near(found.relative.value, -0.062_246_332_391_763, 1e-12);
        near(found.relative.low, -0.131_162_524_961_593, 1e-8);
        near(found.relative.high, 0.012_136_292_893_934, 1e-8);
        near(2.0 * found.p_not_below(0.0), 0.088_236_200_495_281, 1e-8);
        near(found.p_not_below(-0.03), 0.168_751_159_363_602, 1e-8);
    }

    #[test]
    fn one_run_says_nothing_of_the_spread() {
        for (base, new) in [(&[100.0][..], &[50.0, 51.0][..]), (&[100.0, 101.0], &[50.0])] {
            let found = Welch::of(base, new).unwrap();
            assert!(!found.relative.is_bounded() && found.relative.value < -0.48, "{found:?}");
            assert_eq!((found.p_not_above(0.0), found.p_not_below(0.0)), (1.0, 1.0));
            assert_eq!(found.more_runs(0.0, SIDE_ERROR, 100), None);
        }
        for unfit in [&[][..], &[0.0, 1.0], &[f64::NAN, 1.0]] {
            assert_eq!(Welch::of(unfit, &[1.0, 2.0]), None);
            assert_eq!(Welch::of(&[1.0, 2.0], unfit), None);
        }
    }

    #[test]
    fn runs_that_agree_exactly_are_certain() {
        let found = Welch::of(&[0.1; 3], &[0.11; 3]).unwrap();
        near(found.relative.low, 0.1, 1e-9);
        near(found.relative.high, 0.1, 1e-9);
        assert_eq!((found.p_not_above(0.05), found.p_not_above(0.2)), (0.0, 1.0));
        let equal = Welch::of(&[0.1; 3], &[0.1; 3]).unwrap();
        assert_eq!((equal.p_not_above(0.0), equal.p_not_below(0.0)), (1.0, 1.0));
        // One sample without spread is as good as its other one.
        let mixed = Welch::of(&[100.0; 4], &[99.0, 100.0, 101.0, 100.0]).unwrap();
        assert!(mixed.relative.low < -0.009 && mixed.relative.high > 0.009, "{mixed:?}");
    }

    #[test]
    fn the_runs_that_are_missing_are_those_that_would_do() {
        let (base, new) = ([100.0, 106.0, 94.0, 103.0, 97.0], [98.0, 104.0, 92.0, 101.0, 95.0]);
        let found = Welch::of(&base, &new).unwrap();
        let bound = -0.05;
        assert!(found.relative.low < bound && found.relative.value > bound, "{found:?}");
        let more = found.more_runs(bound, SIDE_ERROR, 100).unwrap() as usize;
        // The same mean and the same spread from more runs: the sum of squares grows with them, but the
        // variance is divided by one less, so it is the tiniest bit smaller.
        let again = |values: [f64; 5], times: usize| values.repeat(times);
        let times = |runs: usize| (5 + runs).div_ceil(5);
        let then = Welch::of(&again(base, times(more)), &again(new, times(more))).unwrap();
        assert!(then.relative.low >= bound, "{more}: {then:?}");
        let before = (5 + more) / 5 - 1;
        assert!(before >= 1, "{more}");
        let less = Welch::of(&again(base, before), &again(new, before)).unwrap();
        assert!(less.relative.low < bound, "{more}: {less:?}");
        // The difference itself is as near as can be.
        assert_eq!(found.more_runs(found.relative.value, SIDE_ERROR, 100), None);
    }

    /// Share of simulated pairs of sessions whose interval holds the truth. Spreads are relative.
    fn coverage(
        counts: [usize; 2],
        spreads: [f64; 2],
        truth: f64,
        draw: impl Fn(&mut Xoshiro256PlusPlus) -> f64,
    ) -> f64 {
        const PAIRS: usize = 20_000;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
        let mut held = 0;
        for _ in 0..PAIRS {
            let mut sample = |place: usize, centre: f64| -> Vec<f64> {
                let value = |_| centre * (spreads[place] * draw(&mut random)).exp();
                (0..counts[place]).map(value).collect()
            };
            let (base, new) = (sample(0, 50_000.0), sample(1, 50_000.0 * (1.0 + truth)));
            let found = Welch::of(&base, &new).unwrap().relative;
            held += usize::from((found.low..=found.high).contains(&truth));
        }
        held as f64 / PAIRS as f64
    }

    fn normal(random: &mut Xoshiro256PlusPlus) -> f64 {
        random.sample(StandardNormal)
    }

    /// Heavy tails, with standard deviation 1.
    fn heavy(random: &mut Xoshiro256PlusPlus) -> f64 {
        random.sample(StudentT::new(3.0).unwrap()) / 3f64.sqrt()
    }

    /// 95 of 100 intervals hold the truth: with equal and unequal spreads, with as many runs on both sides and
    /// not, with normal noise. With heavy tails and with two runs of each, more of them do. The bounds are
    /// five standard errors (0.15 %) beyond what was found.
    #[test]
    fn intervals_hold_the_truth() {
        for (counts, spreads, truth) in [
            ([5, 5], [0.06, 0.06], 0.0),
            ([5, 5], [0.02, 0.08], 0.0),
            ([10, 10], [0.06, 0.03], -0.2),
            ([3, 10], [0.05, 0.05], 0.5),
            ([20, 5], [0.05, 0.10], 0.0),
        ] {
            let held = coverage(counts, spreads, truth, normal);
            let name = format!("{counts:?} runs, spreads {spreads:?}, truth {truth}");
            assert!((0.935..=0.965).contains(&held), "{name}: {held}");
        }
        for (counts, draw) in
            [([2, 2], normal as fn(&mut _) -> f64), ([5, 5], heavy), ([10, 10], heavy)]
        {
            let held = coverage(counts, [0.06, 0.06], 0.0, draw);
            assert!((0.94..=0.995).contains(&held), "{counts:?}: {held}");
        }
    }
}
