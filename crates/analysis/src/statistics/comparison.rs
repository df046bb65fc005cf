//! A variant against another one, in one of four words.

use dnslab_record::Metric;
use serde::{Deserialize, Serialize};

use super::{Estimate, Hypothesis, Paired, rejected};

/// More rounds than this are not proposed: the difference is better sought in another way.
const MAX_MORE_ROUNDS: u32 = 100;

/// The chance that a report holds a false word at most: half of it for all of its "costs" and
/// "gains" together, half for all of its "equal within". (What is false for one of the two kinds can be
/// true for the other, so each kind is a family of its own.)
pub const WORD_ERROR: f64 = 0.02;

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// Worse than the reference for certain, and not within the margin.
    Costs,
    /// Better than the reference for certain, and not within the margin.
    Gains,
    /// Certainly smaller than the margin, to either side.
    EqualWithin {
        /// The margin, a relative difference (0.02 = 2 %).
        margin: f64,
    },
    /// Neither is certain. If the interval holds 0, a difference is not seen, and one beyond the interval
    /// is unlikely.
    CannotTell {
        /// How many more rounds would probably do; `None` if that cannot be said.
        more_runs: Option<u32>,
    },
    /// Under this load the two do the same, since what their settings differ in does not act there. What
    /// differs is the error of the method.
    Control,
}

/// One metric of one variant against another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// The variant.
    pub variant: String,
    /// The variant that it is compared with: the reference.
    #[serde(default)]
    pub against: String,
    /// What is compared.
    pub metric: Metric,
    /// The relative difference from the reference (0.1 = 10 % more), with a 95 % interval of its
    /// own.
    pub difference: Estimate,
    /// The difference in the unit of the metric.
    #[serde(default)]
    pub absolute: Option<Estimate>,
    /// In how many rounds both were measured.
    #[serde(default)]
    pub rounds: u32,
    /// What dnslab itself may add to the figure ([`Pair::floor`]), as a share of that of the reference.
    #[serde(default)]
    pub floor: f64,
    /// What it means.
    pub verdict: Verdict,
}

/// One metric of two variants before it has its word, which depends on all others of its report.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The variant.
    pub variant: String,
    /// The reference.
    pub against: String,
    /// What is compared.
    pub metric: Metric,
    /// What the rounds say.
    pub paired: Paired,
    /// A difference up to this is none of the servers', in the unit of the metric: what the engine
    /// itself may add to this very figure ([`crate::latency_floor::latency_floor_ns`]), or a step in which it is measured; else 0.
    pub floor: f64,
    /// The two do the same where this was measured ([`Verdict::Control`]).
    pub is_control: bool,
    /// Others held up half of the runs of either variant, or more: nothing of it is certain.
    pub is_disturbed: bool,
}

impl Comparison {
    /// Whether one metric of the same variants is compared.
    #[must_use]
    pub fn is_of_same_figure(&self, other: &Self) -> bool {
        self.metric == other.metric && self.is_of_same_pair(other)
    }

    /// Whether the same variants are compared.
    #[must_use]
    pub fn is_of_same_pair(&self, other: &Self) -> bool {
        (&self.variant, &self.against) == (&other.variant, &other.against)
    }

    /// Gives the comparisons of a report their words. `margin` is the relative difference that does
    /// not matter (0.02 = 2 %), `answered_by` the metric that answers the question of the experiment, if it
    /// names one.
    ///
    /// Two hypotheses are tried for each comparison: that there is no difference, and that there is
    /// one of the margin or more. Either falls only if it does so among all of its kind in the
    /// report, at [`WORD_ERROR`] halved ([`rejected`]). Controls ([`Pair::is_control`]) are not tried, so
    /// they spend nothing of it. The word, in this order:
    /// 1. the second one falls, and the engine may add no more than the margin ([`Pair::floor`]): equal within the
    ///    margin. This goes first, so a difference that is certain but too small to matter is none;
    /// 2. the first one falls: costs or gains, by the side that is good for the metric;
    /// 3. else, and where the difference is not beyond what the engine itself may add
    ///    ([`Pair::floor`]), it cannot be told, and the number of rounds is given that would probably do, at the
    ///    present estimate and spread. Where others held up the runs ([`Pair::is_disturbed`]) there is no other
    ///    word.
    ///
    /// The interval beside a word is the usual one of 95 % for that comparison alone. It may
    /// exclude zero where the word is "cannot tell": of twenty such intervals one misses the truth.
    #[must_use]
    pub fn of_report(pairs: Vec<Pair>, margin: f64, answered_by: Option<Metric>) -> Vec<Self> {
        let error = WORD_ERROR / 2.0;
        let weight = |pair: &Pair| pair.metric.weight(answered_by);
        let tried = || pairs.iter().filter(|pair| !pair.is_control);
        let no_difference: Vec<Hypothesis> = tried()
            .map(|pair| Hypothesis { p: pair.paired.p_of_none(), weight: weight(pair) })
            .collect();
        let margin_or_more: Vec<Hypothesis> = tried()
            .map(|pair| Hypothesis { p: pair.paired.p_of_margin(margin), weight: weight(pair) })
            .collect();
        let weights: f64 = tried().map(weight).sum();
        let differ = rejected(&no_difference, error);
        let mut outcomes = differ.into_iter().zip(rejected(&margin_or_more, error));
        let mut comparisons = Vec::new();
        for pair in pairs {
            let verdict = if pair.is_control {
                Verdict::Control
            } else {
                let (differs, is_within) = outcomes.next().expect("what is no control was tried");
                let error = error * weight(&pair) / weights;
                Trial { differs, is_within, margin, error }.verdict(&pair)
            };
            comparisons.push(pair.comparison(verdict));
        }
        comparisons
    }
}

/// How the two hypotheses of a pair came out.
struct Trial {
    /// That there is no difference fell.
    differs: bool,
    /// That there is one of the margin or more fell.
    is_within: bool,
    margin: f64,
    /// The strictest share of the error that a word can have to meet.
    error: f64,
}

impl Trial {
    fn verdict(&self, pair: &Pair) -> Verdict {
        let &Self { margin, error, .. } = self;
        let Pair { metric, paired, floor, is_disturbed, .. } = pair;
        let is_more = paired.relative.value > 0.0;
        // No number of rounds helps against the engine's own error, nor against a machine that others use.
        let can_tell = paired.absolute.value.abs() > *floor && !is_disturbed;
        // A difference as large as the margin could hide in the engine's error.
        let is_within = self.is_within && *floor <= margin * paired.reference && !is_disturbed;
        match (is_within, self.differs && can_tell) {
            (true, _) => Verdict::EqualWithin { margin },
            (false, true) if is_more == metric.higher_is_better() => Verdict::Gains,
            (false, true) => Verdict::Costs,
            (false, false) => {
                let more_runs = paired.more_pairs(margin, error, MAX_MORE_ROUNDS);
                Verdict::CannotTell { more_runs: more_runs.filter(|_| can_tell) }
            }
        }
    }
}

impl Pair {
    fn comparison(self, verdict: Verdict) -> Comparison {
        let Self { variant, against, metric, paired, floor, .. } = self;
        Comparison {
            variant,
            against,
            metric,
            difference: paired.relative,
            absolute: Some(paired.absolute),
            rounds: u32::try_from(paired.pairs).unwrap_or(u32::MAX),
            floor: floor / paired.reference,
            verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::ValuePair;
    use dnslab_record::Looks;

    const MARGIN: f64 = 0.02;
    const EQUAL: Verdict = Verdict::EqualWithin { margin: MARGIN };

    /// A comparison of these ratios to the reference, one for each round.
    fn pair(metric: Metric, ratios: &[f64]) -> Pair {
        let value_pair = |ratio: &f64| ValuePair { reference: 50.0, own: 50.0 * ratio };
        let values: Vec<ValuePair> = ratios.iter().map(value_pair).collect();
        Pair {
            variant: "dot".to_owned(),
            against: "udp".to_owned(),
            metric,
            paired: Paired::of(&values, Looks::Once).unwrap(),
            floor: if metric == Metric::LatencyP95 { 20.0 } else { 0.0 },
            is_control: false,
            is_disturbed: false,
        }
    }

    /// The words of a report of these ratios to the reference, one list of rounds for each.
    fn words(metric: Metric, ratios: &[&[f64]]) -> Vec<Verdict> {
        let pairs = ratios.iter().map(|ratios| pair(metric, ratios)).collect();
        let found = Comparison::of_report(pairs, MARGIN, None);
        found.into_iter().map(|comparison| comparison.verdict).collect()
    }

    const LESS: &[f64] = &[0.70, 0.71, 0.69, 0.705];
    const SAME: &[f64] = &[1.0, 1.001, 0.999, 1.0005];
    const CERTAIN_AND_SMALL: &[f64] = &[1.01, 1.0101, 1.0099, 1.01];
    const WIDE: &[f64] = &[0.95, 0.99, 0.94, 1.01];

    #[test]
    fn four_words() {
        use Verdict::{CannotTell, Costs, Gains};
        assert_eq!(words(Metric::AnsweredQps, &[LESS]), [Costs]);
        for metric in [Metric::LatencyP50, Metric::ServerCpuPerQuery, Metric::PeakMemory] {
            assert_eq!(words(metric, &[LESS]), [Gains]);
        }
        assert_eq!(words(Metric::AnsweredQps, &[SAME]), [EQUAL]);
        // Inside the margin first, though the interval excludes zero.
        assert_eq!(words(Metric::AnsweredQps, &[CERTAIN_AND_SMALL]), [EQUAL]);
        let [CannotTell { more_runs: Some(more) }] = words(Metric::AnsweredQps, &[WIDE])[..] else {
            panic!()
        };
        assert!((5..=40).contains(&more), "{more}");
        assert_eq!(words(Metric::AnsweredQps, &[&[0.7]]), [CannotTell { more_runs: None }]);
    }

    /// 50 less 30 % is a difference of 15, within the floor of 20 that the test gives to one metric.
    #[test]
    fn nothing_is_claimed_within_the_engines_own_error() {
        let [word] = words(Metric::LatencyP95, &[LESS])[..] else { panic!() };
        assert!(matches!(word, Verdict::CannotTell { .. }), "{word:?}");
        // 2 % of 50 could hide in it, so nor are they equal within that.
        assert_eq!(words(Metric::LatencyP95, &[SAME]), [Verdict::CannotTell { more_runs: None }]);
        assert_eq!(words(Metric::AnsweredQps, &[SAME]), [EQUAL]);
    }

    #[test]
    fn nothing_is_certain_where_others_used_the_machine() {
        for ratios in [LESS, SAME] {
            let pair = Pair { is_disturbed: true, ..pair(Metric::AnsweredQps, ratios) };
            let found = Comparison::of_report(vec![pair], MARGIN, None);
            assert_eq!(found[0].verdict, Verdict::CannotTell { more_runs: None });
        }
    }

    /// What is certain alone is not certain any more as the best of many.
    #[test]
    fn a_report_has_one_error_rate() {
        let barely: &[f64] = &[0.93, 0.96, 0.95, 0.93, 0.975];
        assert_eq!(words(Metric::AnsweredQps, &[barely]), [Verdict::Costs]);
        let mut report = vec![WIDE; 15];
        report.push(barely);
        let last = *words(Metric::AnsweredQps, &report).last().unwrap();
        assert!(matches!(last, Verdict::CannotTell { more_runs: Some(_) }), "{last:?}");
        // Beside differences that are certain anyway it is as good as alone.
        let mut report = vec![LESS; 15];
        report.push(barely);
        assert_eq!(words(Metric::AnsweredQps, &report), [Verdict::Costs; 16]);
    }

    /// What is the same by its settings is no hypothesis: beside controls a word is as easy as alone.
    #[test]
    fn controls_spend_nothing_of_the_error_rate() {
        let barely: &[f64] = &[0.93, 0.96, 0.95, 0.93, 0.975];
        let mut pairs = vec![pair(Metric::AnsweredQps, WIDE); 15];
        pairs.insert(7, pair(Metric::AnsweredQps, barely));
        let found = Comparison::of_report(pairs.clone(), MARGIN, None);
        assert!(matches!(found[7].verdict, Verdict::CannotTell { .. }));
        for (place, pair) in pairs.iter_mut().enumerate() {
            pair.is_control = place != 7;
        }
        let found = Comparison::of_report(pairs, MARGIN, None);
        let words: Vec<Verdict> = found.iter().map(|comparison| comparison.verdict).collect();
        let mut expected = [Verdict::Control; 16];
        expected[7] = Verdict::Costs;
        assert_eq!(words, expected);
        // A control is none however far its two sides are apart.
        let apart = Pair { is_control: true, ..pair(Metric::AnsweredQps, LESS) };
        let [only] = Comparison::of_report(vec![apart], MARGIN, None).try_into().unwrap();
        assert_eq!(only.verdict, Verdict::Control);
        assert!((only.difference.value + 0.3).abs() < 0.02);
    }

    /// Beside many that are not certain a difference is, where its metric answers the question.
    #[test]
    fn the_metric_that_answers_weighs_as_much_as_the_others() {
        let clear: &[f64] = &[1.10, 1.13, 1.07, 1.12, 1.09];
        let mut pairs = vec![pair(Metric::LatencyP99, clear)];
        pairs.extend(vec![pair(Metric::AnsweredQps, WIDE); 6]);
        let alike = Comparison::of_report(pairs.clone(), MARGIN, None);
        assert!(matches!(alike[0].verdict, Verdict::CannotTell { .. }));
        let weighed = Comparison::of_report(pairs, MARGIN, Some(Metric::LatencyP99));
        assert_eq!(weighed[0].verdict, Verdict::Costs);
        let others = Metric::COMPARED.map(|metric| metric.weight(Some(Metric::LatencyP99)));
        let whole: f64 = others.iter().sum();
        assert_eq!(Metric::LatencyP99.weight(Some(Metric::LatencyP99)), whole / 2.0);
    }

    #[test]
    fn names_are_distinct() {
        let names: std::collections::BTreeSet<_> = Metric::COMPARED.map(Metric::column).into();
        assert_eq!(names.len(), Metric::COMPARED.len());
    }
}
