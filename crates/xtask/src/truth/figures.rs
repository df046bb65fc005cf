//! The statistics of the page.

pub(crate) use crate::versus::figures::median;

/// Quantile 0.975 of the standard normal distribution.
const Z: f64 = 1.959_963_985;
/// From this many experiments on, a bootstrap is used.
pub(crate) const FEWEST_DRAWN: usize = 20;
const RESAMPLES: usize = 2_000;
/// Fixed, so that the page is the same each time.
const SEED: u64 = 1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) part: u64,
    pub(crate) of: u64,
}

impl Share {
    /// The share of facts that are true.
    pub(crate) fn of(facts: impl IntoIterator<Item = bool>) -> Self {
        facts.into_iter().fold(Self::default(), |share, fact| Self {
            part: share.part + u64::from(fact),
            of: share.of + 1,
        })
    }

    /// In [0, 1]; 0 of none.
    pub(crate) fn value(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.part as f64 / self.of as f64 }
    }

    /// 95 % interval of the true share (Wilson 1927, without correction of continuity); [0, 1] of none.
    pub(crate) fn interval(self) -> (f64, f64) {
        if self.of == 0 { (0.0, 1.0) } else { wilson(self.value(), self.of as f64) }
    }

    pub(crate) fn total(shares: &[Self]) -> Self {
        shares.iter().fold(Self::default(), |all, share| Self {
            part: all.part + share.part,
            of: all.of + share.of,
        })
    }
}

/// 95 % interval of the share over all experiments. Counts inside one experiment are not independent.
///
/// It is the percentile interval of a bootstrap that draws whole experiments. With fewer than
/// [`FEWEST_DRAWN`] experiments, or if all have the same share, a bootstrap shows too little. Then it is
/// Wilson's interval, as if each experiment had given one fact. It is Wilson's too if each has.
pub(crate) fn clustered(experiments: &[Share]) -> (f64, f64) {
    let known: Vec<Share> = experiments.iter().filter(|share| share.of > 0).copied().collect();
    let all = Share::total(&known);
    if all.of == 0 || known.iter().all(|share| share.of == 1) {
        return all.interval();
    }
    let is_same = |share: &Share| share.part * known[0].of == known[0].part * share.of;
    if known.len() < FEWEST_DRAWN || known.iter().all(is_same) {
        return wilson(all.value(), known.len() as f64);
    }
    let mut random = SEED;
    let mut shares: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<Share> =
                known.iter().map(|_| known[below(&mut random, known.len())]).collect();
            Share::total(&drawn).value()
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    (shares[tail], shares[RESAMPLES - 1 - tail])
}

/// Wilson's 95 % interval of a share in [0, 1] of `count`, which is above 0.
fn wilson(share: f64, count: f64) -> (f64, f64) {
    let scale = 1.0 + Z * Z / count;
    let centre = (share + Z * Z / (2.0 * count)) / scale;
    let variance = share * (1.0 - share) / count + Z * Z / (4.0 * count * count);
    let half = Z * variance.sqrt() / scale;
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// A whole number below `end` (SplitMix64: Steele and others, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
fn below(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * end as u128) >> 64) as usize
}

/// Mean and its 95 % interval by Student's t; `None` of fewer than four values.
pub(crate) fn mean(values: &[f64]) -> Option<(f64, f64, f64)> {
    if values.len() < 4 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half = student(count - 1.0) * (squares / (count - 1.0) / count).sqrt();
    Some((mean, mean - half, mean + half))
}

/// Quantile 0.975 of Student's t: an expansion at the normal distribution (Abramowitz and Stegun, 26.7.5),
/// within 1 % from three degrees of freedom on.
fn student(freedom: f64) -> f64 {
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    let third = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
    Z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_shares_are_wilsons() {
        let check = |part, total, low: f64, high: f64| {
            let found = Share { part, of: total }.interval();
            let near = (found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5;
            assert!(near, "{part} of {total}: {found:?}");
        };
        // Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
        // Medicine 17 (1998), table I, method 3.
        check(81, 263, 0.2553, 0.3662);
        check(15, 148, 0.0624, 0.1605);
        check(0, 20, 0.0, 0.1611);
        check(1, 29, 0.0061, 0.1718);
        check(0, 0, 0.0, 1.0);
    }

    #[test]
    fn what_one_experiment_tells_is_not_independent() {
        let near = |found: (f64, f64), low: f64, high: f64, by: f64| {
            assert!((found.0 - low).abs() < by && (found.1 - high).abs() < by, "{found:?}");
        };
        // In 4 of 40 experiments everything is wrong: as sure as 36 of 40, not as 504 of 560.
        let mut experiments = vec![Share { part: 14, of: 14 }; 36];
        experiments.extend([Share { part: 0, of: 14 }; 4]);
        near(clustered(&experiments), 0.8, 0.975, 0.026);
        assert_eq!(clustered(&experiments), clustered(&experiments));
        // One is wrong in all but one: nearly what 39 of 40 experiments say of 13 of 14.
        let mut alike = vec![Share { part: 13, of: 14 }; 39];
        alike.push(Share { part: 12, of: 14 });
        near(clustered(&alike), 0.923, 0.928, 0.003);
        // All the same, too few, one fact each, nothing.
        near(clustered(&[Share { part: 14, of: 14 }; 40]), 0.912, 1.0, 0.001);
        near(
            clustered(&[Share { part: 14, of: 14 }, Share { part: 7, of: 14 }]),
            0.198,
            0.973,
            0.001,
        );
        let one = [Share { part: 1, of: 1 }, Share { part: 0, of: 1 }, Share::default()];
        assert_eq!(clustered(&one), Share { part: 1, of: 2 }.interval());
        assert_eq!(clustered(&[]), (0.0, 1.0));
    }

    #[test]
    fn means_have_intervals_by_student() {
        // Quantiles of any table of the t distribution.
        for (freedom, quantile) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (99.0, 1.984)] {
            let found = student(freedom);
            assert!((found / quantile - 1.0).abs() < 0.01, "{freedom}: {found}");
        }
        assert_eq!(mean(&[1.0, 2.0, 3.0]), None);
        let (mean, low, high) = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(mean, 3.0);
        assert!((low - 1.037).abs() < 0.01 && (high - 4.963).abs() < 0.01, "{low} {high}");
    }
}
