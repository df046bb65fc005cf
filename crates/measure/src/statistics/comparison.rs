//! A variant against another one, in one of four words.

use dnslab_settings::Figure;
use serde::{Deserialize, Serialize};

use super::{Estimate, Paired, rejected};
use crate::quantiles::LatencyQuantiles;
use crate::{RunFigure, RunRecord, WindowCounts};

/// More rounds than this are not proposed: the difference is better sought in another way.
const MAX_MORE_ROUNDS: u32 = 100;

/// The chance that a report holds a false word at most: half of it for all of its "costs" and
/// "gains" together, half for all of its "equal within". (What is false for one of the two kinds can be
/// true for the other, so each kind is a family of its own.)
pub const WORD_ERROR: f64 = 0.02;

/// A figure of a run that variants are compared by.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Answered queries per second; more is better.
    AnsweredQps,
    /// Mean latency, nanoseconds; less is better.
    LatencyMean,
    /// Median latency, nanoseconds; less is better.
    LatencyP50,
    /// 0.95 quantile of the latency, nanoseconds; less is better.
    LatencyP95,
    /// 0.99 quantile of the latency, nanoseconds; less is better.
    LatencyP99,
    /// The server's CPU time per answered query, nanoseconds; less is better.
    ServerCpuPerQuery,
    /// Octets that the server wrote to its logs of queries, per answered query; less is better.
    LogOctetsPerQuery,
    /// Largest memory of the servers, octets ([`RunRecord::peak_memory_octets`]); less is better. Those of servers that
    /// ran before are never compared: what a process had needed for earlier loads it keeps.
    PeakMemory,
    /// TLS handshakes for each answered query, full and resumed; less is better.
    HandshakesPerQuery,
    /// Answered queries as a share of the due ones, in [0, 1]; more is better. Of time windows only.
    AnsweredShare,
    /// Queries answered without an error likewise ([`crate::Outcomes::share_without_error`]).
    SoundShare,
}

impl From<Figure> for Metric {
    fn from(figure: Figure) -> Self {
        match figure {
            Figure::Qps => Self::AnsweredQps,
            Figure::Mean => Self::LatencyMean,
            Figure::P50 => Self::LatencyP50,
            Figure::P95 => Self::LatencyP95,
            Figure::P99 => Self::LatencyP99,
            Figure::CpuPerQuery => Self::ServerCpuPerQuery,
            Figure::LogPerQuery => Self::LogOctetsPerQuery,
            Figure::Memory => Self::PeakMemory,
            Figure::Handshakes => Self::HandshakesPerQuery,
        }
    }
}

impl Metric {
    /// All metrics of a whole run, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::AnsweredQps,
        Self::LatencyMean,
        Self::LatencyP50,
        Self::LatencyP95,
        Self::LatencyP99,
        Self::ServerCpuPerQuery,
        Self::LogOctetsPerQuery,
        Self::PeakMemory,
        Self::HandshakesPerQuery,
    ];

    /// The metrics of a time window, in the order in which they are shown.
    pub const OF_WINDOWS: [Self; 4] =
        [Self::AnsweredShare, Self::SoundShare, Self::LatencyP50, Self::LatencyP99];

    /// Name in tables that machines read, with the unit last.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AnsweredQps => "answered_qps",
            Self::LatencyMean => "latency_mean_ns",
            Self::LatencyP50 => "latency_p50_ns",
            Self::LatencyP95 => "latency_p95_ns",
            Self::LatencyP99 => "latency_p99_ns",
            Self::ServerCpuPerQuery => "server_cpu_per_query_ns",
            Self::LogOctetsPerQuery => "log_octets_per_query",
            Self::PeakMemory => "peak_memory_octets",
            Self::HandshakesPerQuery => "handshakes_per_query",
            Self::AnsweredShare => "answered_share",
            Self::SoundShare => "answered_without_error_share",
        }
    }

    /// Name for people, as it stands inside a sentence.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::AnsweredQps => "answered queries per second",
            Self::LatencyMean => "mean latency",
            Self::LatencyP50 => "median latency",
            Self::LatencyP95 => "95th percentile of the latency",
            Self::LatencyP99 => "99th percentile of the latency",
            Self::ServerCpuPerQuery => "server CPU time per answered query",
            Self::LogOctetsPerQuery => "octets of log per answered query",
            Self::PeakMemory => "server memory",
            Self::HandshakesPerQuery => "TLS handshakes per answered query",
            Self::AnsweredShare => "answered share",
            Self::SoundShare => "share answered without an error",
        }
    }

    /// Its share of the error rate of a report, next to those of the other metrics. What a decision
    /// is made by weighs more than quantiles far out, which hardly any number of rounds makes
    /// certain. The metric that answers the question of the experiment, if it names one, weighs as much
    /// as all others together.
    #[must_use]
    pub fn weight(self, answered_by: Option<Self>) -> f64 {
        if answered_by == Some(self) {
            return Self::ALL
                .into_iter()
                .filter(|other| *other != self)
                .map(|it| it.weight(None))
                .sum();
        }
        match self {
            Self::AnsweredQps | Self::ServerCpuPerQuery => 4.0,
            Self::LatencyP50 => 2.0,
            _ => 1.0,
        }
    }

    /// True if it is a time that a client waits.
    #[must_use]
    pub fn is_latency(self) -> bool {
        matches!(self, Self::LatencyMean | Self::LatencyP50 | Self::LatencyP95 | Self::LatencyP99)
    }

    /// Which quantile of the latency it is.
    #[must_use]
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::LatencyP50 => Some(0.5),
            Self::LatencyP95 => Some(0.95),
            Self::LatencyP99 => Some(0.99),
            _ => None,
        }
    }

    /// True if a larger value is the better one.
    #[must_use]
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::AnsweredQps | Self::AnsweredShare | Self::SoundShare)
    }

    /// The value in one run, in the unit of [`Metric::name`]; `None` if it was not measured.
    /// Whether the run is valid is not asked. Latencies are those of the common load, where there
    /// was one: at different rates they compare nothing.
    #[must_use]
    pub fn of(self, record: &RunRecord) -> Option<RunFigure> {
        if let Some(quantile) = self.quantile() {
            return record.latency_quantiles()?.at(quantile);
        }
        let measured = record.measured.as_ref()?;
        match self {
            Self::AnsweredQps => Some(measured.answered_qps()),
            Self::LatencyMean => record.latency_mean_ns(),
            Self::ServerCpuPerQuery => record.servers_cpu_per_query_ns(),
            Self::LogOctetsPerQuery => measured.log_octets_per_query(),
            // What a process had needed before it keeps: it says nothing of one run.
            Self::PeakMemory if record.server.is_external() => None,
            Self::PeakMemory => record.peak_memory_octets().map(|octets| octets as f64),
            Self::HandshakesPerQuery => measured.handshakes_per_query(),
            Self::LatencyP50 | Self::LatencyP95 | Self::LatencyP99 => None,
            Self::AnsweredShare | Self::SoundShare => None,
        }
        .filter(|value| value.is_finite())
        .map(RunFigure::Measured)
    }

    /// The value in one time window of a run, in the unit of [`Metric::name`]; `None` if no query became due in
    /// it, and for what is of a whole run only. A lost query waited for `max_wait_ns` at least, nanoseconds.
    #[must_use]
    pub fn in_window(self, window: &WindowCounts, max_wait_ns: u64) -> Option<RunFigure> {
        if let Some(quantile) = self.quantile() {
            return LatencyQuantiles::of_window(window, max_wait_ns).at(quantile);
        }
        match self {
            Self::AnsweredShare if window.outcomes.due > 0 => {
                Some(1.0 - window.outcomes.lost_share())
            }
            Self::SoundShare => window.outcomes.share_without_error(&window.rcodes),
            _ => None,
        }
        .map(RunFigure::Measured)
    }
}

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
    /// The same in the unit of the metric.
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
    /// itself may add to this very figure ([`crate::latency_floor_ns`]), or a step in which it is measured; else 0.
    pub floor: f64,
    /// The two do the same where this was measured ([`Verdict::Control`]).
    pub is_control: bool,
    /// Others held up half of the runs of either variant, or more: nothing of it is certain.
    pub is_disturbed: bool,
}

impl Comparison {
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
        let weight = |metric: Metric| metric.weight(answered_by);
        let error = WORD_ERROR / 2.0;
        let tried = || pairs.iter().filter(|pair| !pair.is_control);
        let chances = |of: &dyn Fn(&Paired) -> f64| -> Vec<(f64, f64)> {
            tried().map(|pair| (of(&pair.paired), weight(pair.metric))).collect()
        };
        let differ = rejected(&chances(&Paired::p_of_none), error);
        let within = rejected(&chances(&|paired| paired.p_of_margin(margin)), error);
        let weights: f64 = tried().map(|pair| weight(pair.metric)).sum();
        let mut words = differ.into_iter().zip(within);
        let verdict = |pair: &Pair| {
            if pair.is_control {
                return Verdict::Control;
            }
            let Pair { metric, paired, floor, is_disturbed, .. } = pair;
            let (differs, is_within) = words.next().expect("what was tried has a word");
            let is_more = paired.relative.value > 0.0;
            let is_beyond_floor = paired.absolute.value.abs() > *floor;
            // A difference as large as the margin could hide in it.
            let is_within = is_within && *floor <= margin * paired.reference;
            let differs = differs && is_beyond_floor && !is_disturbed;
            match (is_within && !is_disturbed, differs) {
                (true, _) => Verdict::EqualWithin { margin },
                (false, true) if is_more == metric.higher_is_better() => Verdict::Gains,
                (false, true) => Verdict::Costs,
                (false, false) => Verdict::CannotTell {
                    // The strictest share of the error that this word can have to meet. No number of
                    // rounds helps against the engine's own error, nor against a machine that others use.
                    more_runs: paired
                        .more_pairs(margin, error * weight(*metric) / weights, MAX_MORE_ROUNDS)
                        .filter(|_| is_beyond_floor && !is_disturbed),
                },
            }
        };
        let verdicts: Vec<Verdict> = pairs.iter().map(verdict).collect();
        let compared = |(pair, verdict): (Pair, Verdict)| {
            let Pair { variant, against, metric, paired, floor, .. } = pair;
            Self {
                variant,
                against,
                metric,
                difference: paired.relative,
                absolute: Some(paired.absolute),
                rounds: u32::try_from(paired.pairs).unwrap_or(u32::MAX),
                floor: floor / paired.reference,
                verdict,
            }
        };
        pairs.into_iter().zip(verdicts).map(compared).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: f64 = 0.02;
    const EQUAL: Verdict = Verdict::EqualWithin { margin: MARGIN };

    /// A comparison of these ratios to the reference, one for each round.
    fn pair(metric: Metric, ratios: &[f64]) -> Pair {
        let values: Vec<(f64, f64)> = ratios.iter().map(|ratio| (50.0, 50.0 * ratio)).collect();
        Pair {
            variant: "dot".to_owned(),
            against: "udp".to_owned(),
            metric,
            paired: Paired::of(&values).unwrap(),
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
        let report = |is_control| {
            let beside = Pair { is_control, ..pair(Metric::AnsweredQps, WIDE) };
            let mut pairs = vec![beside; 15];
            pairs.insert(7, pair(Metric::AnsweredQps, barely));
            Comparison::of_report(pairs, MARGIN, None)
        };
        assert!(matches!(report(false)[7].verdict, Verdict::CannotTell { .. }));
        let words: Vec<Verdict> = report(true).iter().map(|of| of.verdict).collect();
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
        let word = |answered_by| {
            let others = std::iter::repeat_n((Metric::AnsweredQps, WIDE), 6);
            let pairs = std::iter::once((Metric::LatencyP99, clear)).chain(others);
            let pairs = pairs.map(|(metric, ratios)| pair(metric, ratios)).collect();
            Comparison::of_report(pairs, MARGIN, answered_by).swap_remove(0).verdict
        };
        assert!(matches!(word(None), Verdict::CannotTell { .. }));
        assert_eq!(word(Some(Metric::LatencyP99)), Verdict::Costs);
        let others = Metric::ALL.map(|metric| metric.weight(Some(Metric::LatencyP99)));
        let whole: f64 = others.iter().sum();
        assert_eq!(Metric::LatencyP99.weight(Some(Metric::LatencyP99)), whole / 2.0);
    }

    #[test]
    fn names_are_distinct() {
        let names: std::collections::BTreeSet<_> = Metric::ALL.map(Metric::name).into();
        assert_eq!(names.len(), Metric::ALL.len());
    }
}
