//! Medians, ratios, and whether an aim is met.

use std::fmt;

use serde::Serialize;

/// The mean of the two middle values if their number is even; `None` of nothing.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) of_medians: f64,
    /// Of two runs of the same round.
    pub(crate) lowest: f64,
    /// Of two runs of the same round.
    pub(crate) highest: f64,
    pub(crate) rounds: usize,
}

/// Rounds that a verdict takes. The range of five pairs holds the median ratio with a probability of 15 in 16
/// (sign test); the range of one holds nothing.
const ENOUGH: usize = 5;

impl Ratio {
    /// `ours` to `theirs`, round by round. `None` without a round, or if `theirs` has a 0.
    pub(crate) fn new(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        let pairs = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
        let (lowest, highest) = pairs
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), ratio| {
                (low.min(ratio), high.max(ratio))
            });
        let of_medians = median(ours.iter().copied())? / median(theirs.iter().copied())?;
        [of_medians, lowest, highest].iter().all(|ratio| ratio.is_finite()).then_some(Self {
            of_medians,
            lowest,
            highest,
            rounds: ours.len().min(theirs.len()),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Aim {
    AtLeast(f64),
    AtMost(f64),
}

impl Aim {
    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }

    /// The verdict on a ratio: unclear if pairs of runs lie on both sides of the aim, or are few.
    pub(crate) fn verdict(self, ratio: &Ratio) -> &'static str {
        if ratio.rounds < ENOUGH {
            return "unclear";
        }
        match [ratio.lowest, ratio.of_medians, ratio.highest].map(|ratio| self.is_met(ratio)) {
            [true, true, true] => "met",
            [false, false, false] => "MISSED",
            _ => "unclear",
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(formatter, ">= {least:.2}"),
            Self::AtMost(most) => write!(formatter, "<= {most:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        let check = |values: &[f64], expected| {
            assert_eq!(median(values.iter().copied()), expected, "{values:?}");
        };
        check(&[], None);
        check(&[3.0], Some(3.0));
        check(&[9.0, 1.0, 5.0], Some(5.0));
        check(&[3.0, 1.0, 2.0], Some(2.0));
        check(&[9.0, 1.0, 5.0, 3.0], Some(4.0));
        check(&[4.0, 1.0, 2.0, 3.0], Some(2.5));
    }

    #[test]
    fn ratios_pair_runs_of_one_round() {
        let ratio = Ratio::new(&[6.0, 8.0, 5.0], &[2.0, 2.0, 1.0]).unwrap();
        assert_eq!(ratio, Ratio { of_medians: 3.0, lowest: 3.0, highest: 5.0, rounds: 3 });
        assert_eq!(Ratio::new(&[], &[]), None);
        assert_eq!(Ratio::new(&[1.0], &[0.0]), None);
    }

    #[test]
    fn aims_are_reached_at_their_edge() {
        let check = |aim: Aim, [lowest, of_medians, highest]: [f64; 3], expected| {
            let ratio = Ratio { of_medians, lowest, highest, rounds: 5 };
            assert_eq!(aim.verdict(&ratio), expected);
            assert_eq!(aim.verdict(&Ratio { rounds: 4, ..ratio }), "unclear");
        };
        check(Aim::AtLeast(5.5), [5.5, 5.6, 5.7], "met");
        check(Aim::AtLeast(5.5), [5.49, 5.6, 5.7], "unclear");
        check(Aim::AtLeast(5.5), [5.3, 5.4, 5.5], "unclear");
        check(Aim::AtLeast(5.5), [5.2, 5.3, 5.49], "MISSED");
        check(Aim::AtMost(3.0), [2.8, 2.9, 3.0], "met");
        check(Aim::AtMost(3.0), [2.8, 2.9, 3.01], "unclear");
        check(Aim::AtMost(3.0), [3.01, 3.02, 3.03], "MISSED");
    }
}
