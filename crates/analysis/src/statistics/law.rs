//! How a mean in standard errors is judged: once, or again and again.

use dnslab_record::Looks;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// What is known of a mean less its true value, in standard errors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Law {
    /// Student's, for values whose number was set before the first of them.
    Student(StudentsT),
    /// Of so many values, two or more, however often somebody looked and whatever made him stop: the mixture of
    /// Robbins for Student's statistic (Lai, Annals of Statistics 4, 1976), with a difference of one standard
    /// deviation as its scale. The statistic exceeds [`Law::quantile`] at *any* number of values with the given
    /// chance at most (Ville's inequality; that this holds though the spread is estimated: Hendriksen, de Heide and
    /// Grünwald, Bayesian Analysis 16, 2021).
    Mixture(f64),
}

impl Law {
    /// Of the mean of so many values; `None` below two.
    pub(super) fn of_mean(count: usize, looks: Looks) -> Option<Self> {
        let count = count as f64;
        (count > 1.0).then(|| match looks {
            Looks::Once => Self::student(count - 1.0),
            Looks::EachRound => Self::Mixture(count),
        })
    }

    pub(super) fn student(freedom: f64) -> Self {
        Self::Student(StudentsT::new(0.0, 1.0, freedom).expect("there is a degree of freedom"))
    }

    /// What the statistic exceeds to either side with this chance at most; may be infinite.
    pub(super) fn quantile(self, chance: f64) -> f64 {
        match self {
            Self::Student(student) => student.inverse_cdf(1.0 - chance / 2.0),
            Self::Mixture(count) => {
                let share = share_of_error(count);
                let ratio = (chance * share.sqrt()).powf(-2.0 / count);
                match ratio * share < 1.0 {
                    true => ((count - 1.0) * (ratio - 1.0) / (1.0 - ratio * share)).sqrt(),
                    false => f64::INFINITY,
                }
            }
        }
    }

    /// The chance of a statistic as far from zero as this one, at most.
    pub(super) fn p_two_sided(self, statistic: f64) -> f64 {
        match self {
            Self::Student(student) => 2.0 * student.sf(statistic.abs()),
            Self::Mixture(count) => {
                let share = share_of_error(count);
                let square = statistic * statistic / (count - 1.0);
                let ratio = match square.is_finite() {
                    true => (1.0 + square) / (1.0 + share * square),
                    false => 1.0 / share,
                };
                (ratio.powf(-count / 2.0) / share.sqrt()).min(1.0)
            }
        }
    }

    /// The chance of a statistic as large as this one, at most.
    pub(super) fn p_above(self, statistic: f64) -> f64 {
        match self {
            Self::Student(student) => student.sf(statistic),
            Self::Mixture(_) if statistic > 0.0 => self.p_two_sided(statistic),
            Self::Mixture(_) => 1.0,
        }
    }
}

/// Of the variance that the mixture gives to the mean of so many values, the share of its error.
fn share_of_error(count: f64) -> f64 {
    1.0 / (1.0 + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statistic at the quantile has the chance that the quantile was asked for.
    #[test]
    fn quantiles_and_chances_are_each_others_inverse() {
        for count in [5, 6, 10, 40, 1_000] {
            for looks in [Looks::Once, Looks::EachRound] {
                let law = Law::of_mean(count, looks).unwrap();
                for chance in [0.05, 0.01] {
                    let quantile = law.quantile(chance);
                    if quantile.is_finite() {
                        assert!((law.p_two_sided(quantile) / chance - 1.0).abs() < 1e-6);
                    }
                }
            }
        }
    }

    /// By hand: of ten values 3.86 instead of 2.26, of 20 3.42 instead of 2.09; nothing is said of three.
    #[test]
    fn looking_often_costs_width() {
        let quantile = |count| Law::of_mean(count, Looks::EachRound).unwrap().quantile(0.05);
        assert!((quantile(10) - 3.86).abs() < 0.02, "{}", quantile(10));
        assert!((quantile(20) - 3.42).abs() < 0.02, "{}", quantile(20));
        assert_eq!(quantile(3), f64::INFINITY);
        let law = Law::of_mean(10, Looks::EachRound).unwrap();
        assert_eq!((law.p_two_sided(0.0), law.p_above(-9.0)), (1.0, 1.0));
        assert!(law.p_two_sided(f64::INFINITY) < 1e-4);
        assert!(Law::of_mean(1, Looks::EachRound).is_none());
    }
}
