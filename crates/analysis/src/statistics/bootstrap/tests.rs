//! The bootstrap against SciPy's values, its coverage, and what holds for any runs.

use proptest::prelude::*;
use rand_xoshiro::rand_core::RngCore as _;

use super::*;

const A: [f64; 5] = [149.2, 141.8, 155.7, 146.3, 151.9];
const C: [f64; 10] = [128.0, 156.0, 139.5, 144.1, 151.2, 133.7, 147.8, 140.3, 149.9, 136.6];
const F: [f64; 12] = [1.0, 1.31, 0.98, 1.05, 1.12, 0.99, 1.01, 1.45, 1.03, 0.96, 1.08, 1.02];
const G: [f64; 3] = [100.0, 102.0, 99.0];
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
/// def interval(x):
///     n, value = len(x), np.mean(x)
///     factor = np.sqrt(n / (n - 1)) * t.ppf(0.975, n - 1) / norm.ppf(0.975)
///     ends = bootstrap((x,), np.mean, method="percentile", confidence_level=0.95,
///         vectorized=True, n_resamples=1_000_000, batch=100_000,
///         rng=np.random.default_rng(1)).confidence_interval
///     return factor, value, *(value + factor * (end - value) for end in ends)
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
fn scipy_gives_the_same_means() {
    #[track_caller]
    fn check_mean(runs: &[f64], seed: u64, expected: (f64, f64, f64, f64)) {
        check(stretch(runs.len()), arithmetic_mean(runs, seed), expected);
        // Of their exponentials it is the same on the other scale.
        let exponentials: Vec<f64> = runs.iter().map(|run| (run / 100.0).exp()).collect();
        let found = mean(&exponentials, seed).unwrap();
        let logarithm = |end: f64| 100.0 * end.ln();
        let found = Estimate {
            value: logarithm(found.value),
            low: logarithm(found.low),
            high: logarithm(found.high),
        };
        check(stretch(runs.len()), Some(found), expected);
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
    assert!(mean(&[1.0, 2.0], 1).unwrap().low > 0.0);
    assert_eq!(mean(&[0.0, 1.0], 1).unwrap().low, 0.0);
    assert!(mean(&[-1.0, 2.0], 1).unwrap().low < -1.0);
}

#[test]
fn the_mean_is_geometric_where_there_are_logarithms() {
    assert!((mean(&[1.0, 100.0], 1).unwrap().value - 10.0).abs() < 1e-9);
    assert_eq!(mean(&[0.0, 100.0], 1).unwrap().value, 50.0);
    // To the last digit, though a logarithm is rounded.
    assert_eq!(mean(&[0.1; 3], 1).unwrap().value, 0.1);
}

#[test]
fn without_spread_there_is_no_interval() {
    assert_eq!(mean(&[], 1), None);
    assert_eq!(mean(&[1.0, f64::NAN], 1), None);
    assert_eq!(mean(&[7.0], 1), Some(Estimate::unbounded(7.0)));
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

/// The share of 2,000 experiments whose interval holds the true mean must be the documented one,
/// within four binomial standard errors, and at least 90 %.
#[track_caller]
fn check_coverage<const N: usize>(documented: f64) {
    const EXPERIMENTS: u32 = 2_000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(N as u64);
    let covers = (0..EXPERIMENTS).filter(|_| {
        let runs = normal_runs::<N>(0.05, &mut random);
        let estimate = mean(&runs, random.next_u64()).unwrap();
        estimate.low <= 1.0 && 1.0 <= estimate.high
    });
    let coverage = covers.count() as f64 / f64::from(EXPERIMENTS);
    let error = (documented * (1.0 - documented) / f64::from(EXPERIMENTS)).sqrt();
    assert!(coverage >= 0.9, "{N} runs: {coverage}");
    assert!((coverage - documented).abs() < 4.0 * error, "{N} runs: {coverage}");
}

#[test]
fn coverage_is_the_documented_one() {
    check_coverage::<2>(0.93);
    check_coverage::<3>(0.95);
    check_coverage::<5>(0.94);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_value_is_inside_its_interval(
        variant in prop::collection::vec(0.0..1_000.0, 2..12),
        seed: u64,
    ) {
        let shifted: Vec<f64> = variant.iter().map(|run| run - 500.0).collect();
        for (estimate, least) in [
            (mean(&variant, seed).unwrap(), 0.0),
            (mean(&shifted, seed).unwrap(), f64::NEG_INFINITY),
        ] {
            prop_assert!(estimate.is_bounded() && least <= estimate.low, "{estimate:?}");
            let Estimate { value, low, high } = estimate;
            prop_assert!(low <= value && value <= high, "{estimate:?}");
        }
    }
}
