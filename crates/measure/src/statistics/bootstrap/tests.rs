//! The bootstrap against SciPy's values, its coverage, and what holds for any runs.

use proptest::prelude::*;
use rand_xoshiro::rand_core::RngCore as _;

use super::*;

const A: [f64; 5] = [149.2, 141.8, 155.7, 146.3, 151.9];
const B: [f64; 5] = [101.4, 98.7, 104.2, 95.9, 102.8];
const C: [f64; 10] = [128.0, 156.0, 139.5, 144.1, 151.2, 133.7, 147.8, 140.3, 149.9, 136.6];
const D: [f64; 7] = [134.2, 150.1, 141.7, 129.8, 146.5, 138.3, 152.6];
const E: [f64; 4] = [0.97, 1.02, 0.95, 1.10];
const F: [f64; 12] = [1.0, 1.31, 0.98, 1.05, 1.12, 0.99, 1.01, 1.45, 1.03, 0.96, 1.08, 1.02];
const G: [f64; 3] = [100.0, 102.0, 99.0];
const H: [f64; 3] = [101.0, 103.0, 104.0];
const I: [f64; 2] = [100.0, 104.0];
const J: [f64; 2] = [110.0, 111.0];

/// An end of an interval from 10,000 resamples has a standard error of about 1 % of the width
/// (the binomial error of its place, over the density there); this is four of them.
const MONTE_CARLO: f64 = 0.04;

/// `expected` is (factor, value, low, high), all stretched in this script from the ends of SciPy
/// 1.17.1 with NumPy 2.4.6:
///
/// ```python
/// import numpy as np
/// from scipy.stats import bootstrap, norm, t
///
/// def stretch(*samples):
///     n = np.array([len(x) for x in samples])
///     spread = np.array([(np.std(x, ddof=1) / np.mean(x))**2 / len(x) for x in samples])
///     share = spread / spread.sum()
///     c = 1 / np.sqrt(np.sum(share * (n - 1) / n))
///     return c * t.ppf(0.975, 1 / np.sum(share**2 / (n - 1))) / norm.ppf(0.975)
///
/// def interval(statistic, *samples):
///     value, factor = statistic(*samples, axis=0), stretch(*samples)
///     ends = bootstrap(samples, statistic, method="percentile", confidence_level=0.95,
///         vectorized=True, n_resamples=1_000_000, batch=100_000, paired=False,
///         rng=np.random.default_rng(1)).confidence_interval
///     return factor, value, *(value + factor * (end - value) for end in ends)
///
/// ratio = lambda b, v, axis: np.mean(v, axis=axis) / np.mean(b, axis=axis) - 1
/// mean = lambda x, axis: np.mean(x, axis=axis)
/// print(interval(ratio, A, B), interval(mean, A))
/// ```
#[track_caller]
fn check(factor: f64, estimate: Option<Estimate>, expected: (f64, f64, f64, f64)) {
    let (stretch, value, low, high) = expected;
    assert!((factor / stretch - 1.0).abs() < 1e-5, "{factor}, expected {stretch}");
    let estimate = estimate.unwrap();
    assert!((estimate.value / value - 1.0).abs() < 1e-9, "{estimate:?}");
    let tolerance = MONTE_CARLO * (high - low);
    assert!((estimate.low - low).abs() < tolerance, "{estimate:?}, expected {expected:?}");
    assert!((estimate.high - high).abs() < tolerance, "{estimate:?}, expected {expected:?}");
}

#[test]
fn scipy_gives_the_same_differences() {
    #[track_caller]
    fn check_difference(b: &[f64], v: &[f64], seed: u64, expected: (f64, f64, f64, f64)) {
        let samples = [b, v].map(|runs| (relative_variance_of_mean(runs), runs.len()));
        check(stretch(&samples), difference(b, v, seed), expected);
    }
    check_difference(
        &A,
        &B,
        1,
        (1.3167116833661767, -0.3247415760504765, -0.3580863778683203, -0.2905473545979711),
    );
    check_difference(
        &C,
        &D,
        2,
        (1.1751545067131894, -0.005775949227704524, -0.06747808438363373, 0.05863499568871018),
    );
    check_difference(
        &E,
        &F,
        3,
        (1.2147296240302226, 0.0726072607260726, -0.03902321421173706, 0.20220150279370336),
    );
    check_difference(
        &G,
        &H,
        4,
        (1.7353102273316696, 0.023255813953488413, -0.011391980518173507, 0.05860121502525092),
    );
    check_difference(
        &I,
        &J,
        5,
        (7.328654429414214, 0.08333333333333326, -0.10458088280549208, 0.2787641181177135),
    );
}

#[test]
fn scipy_gives_the_same_means() {
    #[track_caller]
    fn check_mean(runs: &[f64], seed: u64, expected: (f64, f64, f64, f64)) {
        check(stretch(&[(1.0, runs.len())]), mean(runs, seed), expected);
    }
    check_mean(&A, 1, (1.5837842021560746, 148.98, 142.23307929881517, 155.4418395447968));
    check_mean(&C, 2, (1.2166157331007248, 142.71, 136.46876128919325, 148.8417432948277));
    check_mean(
        &F,
        3,
        (1.1729062589441643, 1.0833333333333333, 1.001229895207242, 1.1869400528734013),
    );
    check_mean(
        &G,
        4,
        (2.6886472943921502, 100.33333333333333, 96.74847027414381, 104.81441215732026),
    );
    check_mean(&J, 5, (9.168172071490574, 110.5, 105.91591396425471, 115.08408603574529));
}

#[test]
fn no_end_is_where_no_figure_can_be() {
    // 9.2 times the half width 0.5 below 1.5 would be -3.1.
    assert_eq!(mean(&[1.0, 2.0], 1).unwrap().low, 0.0);
    assert!(mean(&[-1.0, 2.0], 1).unwrap().low < -1.0);
    let halved = difference(&[2.0, 6.0], &[1.0, 3.0], 1).unwrap();
    assert_eq!((halved.value, halved.low), (-0.5, -1.0));
    let exact = Estimate { value: -1.0, low: -1.0, high: -1.0 };
    assert_eq!(difference(&[2.0, 6.0], &[0.0, 0.0], 1), Some(exact));
    assert_eq!(difference(&[2.0, 6.0], &[1.0, -0.1], 1), None);
}

#[test]
fn the_sample_with_the_spread_has_the_degrees_of_freedom() {
    // Twice the 0.975 quantiles of Student's t in any table, over those of the normal one.
    let check = |samples: &[(f64, usize)], c_squared: f64, t: f64| {
        let expected = c_squared.sqrt() * t / 1.959964;
        let factor = stretch(samples);
        assert!((factor / expected - 1.0).abs() < 1e-5, "{samples:?}: {factor}, {expected}");
    };
    check(&[(2.0, 3), (0.0, 5)], 3.0 / 2.0, 4.302653);
    check(&[(0.0, 3), (2.0, 5)], 5.0 / 4.0, 2.776445);
    check(&[(0.3, 3), (0.3, 3)], 3.0 / 2.0, 2.776445);
    // Shares 1/3 and 2/3: 1 / (1/9 / 2 + 4/9 / 4) = 6; 1 / (1/3 x 2/3 + 2/3 x 4/5) = 45/34.
    check(&[(1.0, 3), (2.0, 5)], 45.0 / 34.0, 2.446912);
    assert_eq!(stretch(&[(0.0, 3), (0.0, 5)]), 1.0);
}

#[test]
fn without_spread_there_is_no_interval() {
    assert_eq!(mean(&[], 1), None);
    assert_eq!(mean(&[1.0, f64::NAN], 1), None);
    assert_eq!(mean(&[7.0], 1), Some(Estimate::unbounded(7.0)));
    assert_eq!(difference(&[], &[1.0], 1), None);
    assert_eq!(difference(&[1.0], &[], 1), None);
    assert_eq!(difference(&[1.0, 0.0], &[1.0], 1), None);
    assert_eq!(difference(&[1.0, f64::INFINITY], &[1.0], 1), None);
    assert_eq!(difference(&[2.0], &[3.0, 5.0], 1), Some(Estimate::unbounded(1.0)));
    assert_eq!(difference(&[2.0, 2.0], &[3.0], 1), Some(Estimate::unbounded(0.5)));
    let exact = Estimate { value: 0.5, low: 0.5, high: 0.5 };
    assert_eq!(difference(&[2.0, 2.0], &[3.0, 3.0], 1), Some(exact));
}

#[test]
fn what_was_written_is_read() {
    for estimate in [
        Estimate::unbounded(1.5),
        Estimate { value: 1.5, low: -2.0, high: 3.25 },
        Estimate { value: 1.5, low: -2.0, high: f64::INFINITY },
        // serde_json reads the first a bit off unless told to be exact (`float_roundtrip`).
        Estimate { value: 31.245270191439438, low: -2.0, high: 121.48791951161945 },
    ] {
        let text = serde_json::to_string(&estimate).unwrap();
        assert_eq!(serde_json::from_str::<Estimate>(&text).unwrap(), estimate, "{text}");
    }
    let text = serde_json::to_string(&Estimate::unbounded(1.5)).unwrap();
    assert_eq!(text, r#"{"value":1.5,"low":null,"high":null}"#);
    assert!(serde_json::from_str::<Estimate>(r#"{"value":1.5,"low":null}"#).is_err());
}

/// Normally distributed runs with mean 1 (Box and Muller).
fn normal_runs<const N: usize>(deviation: f64, random: &mut Xoshiro256PlusPlus) -> [f64; N] {
    std::array::from_fn(|_| {
        let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
        let angle = std::f64::consts::TAU * random.random::<f64>();
        1.0 + deviation * radius * angle.cos()
    })
}

/// The share of 2,000 experiments without a true difference whose interval holds zero must be
/// the documented one, within four binomial standard errors, and at least 90 %.
#[track_caller]
fn check_coverage<const N: usize>(deviations: (f64, f64), documented: f64) {
    const EXPERIMENTS: u32 = 2_000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(N as u64);
    let covers = (0..EXPERIMENTS).filter(|_| {
        let baseline = normal_runs::<N>(deviations.0, &mut random);
        let variant = normal_runs::<N>(deviations.1, &mut random);
        // Fewer resamples than in earnest: the test ends sooner, the coverage is the same.
        let estimate = difference_of(&baseline, &variant, random.next_u64(), 1_000).unwrap();
        estimate.low <= 0.0 && 0.0 <= estimate.high
    });
    let coverage = covers.count() as f64 / f64::from(EXPERIMENTS);
    let error = (documented * (1.0 - documented) / f64::from(EXPERIMENTS)).sqrt();
    assert!(coverage >= 0.9, "{N} runs each: {coverage}");
    assert!((coverage - documented).abs() < 4.0 * error, "{N} runs each: {coverage}");
}

#[test]
fn coverage_is_the_documented_one() {
    check_coverage::<2>((0.05, 0.05), 0.975);
    check_coverage::<3>((0.05, 0.05), 0.961);
    check_coverage::<3>((0.06, 0.03), 0.949);
    check_coverage::<5>((0.05, 0.05), 0.9525);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_difference_has_no_unit(
        baseline in prop::collection::vec(1.0..100.0, 2..8),
        variant in prop::collection::vec(1.0..100.0, 2..8),
        scale in 0.001..1_000.0,
        seed: u64,
    ) {
        let scaled = |runs: &[f64]| -> Vec<f64> { runs.iter().map(|run| run * scale).collect() };
        let plain = difference(&baseline, &variant, seed).unwrap();
        let other = difference(&scaled(&baseline), &scaled(&variant), seed).unwrap();
        for (one, two) in
            [(plain.value, other.value), (plain.low, other.low), (plain.high, other.high)]
        {
            prop_assert!((one - two).abs() <= 1e-9 * (1.0 + one.abs()));
        }
        prop_assert!(plain.low <= plain.high);
        prop_assert_eq!(plain, difference(&baseline, &variant, seed).unwrap());
    }

    #[test]
    fn a_value_is_inside_its_interval(
        baseline in prop::collection::vec(1.0..1_000.0, 2..12),
        variant in prop::collection::vec(0.0..1_000.0, 2..12),
        seed: u64,
    ) {
        let shifted: Vec<f64> = variant.iter().map(|run| run - 500.0).collect();
        for (estimate, least) in [
            (mean(&variant, seed).unwrap(), 0.0),
            (mean(&shifted, seed).unwrap(), f64::NEG_INFINITY),
            (difference(&baseline, &variant, seed).unwrap(), -1.0),
        ] {
            prop_assert!(estimate.is_bounded() && least <= estimate.low, "{estimate:?}");
            let Estimate { value, low, high } = estimate;
            prop_assert!(low <= value && value <= high, "{estimate:?}");
        }
    }
}
