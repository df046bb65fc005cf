//! Limits on what variants may cost, for a gate in continuous integration.

use dnslab_record::{CostLimit, Indicator, Metric, Relation, RunRecord, Session, Threshold};
use statrs::distribution::{Beta, ContinuousCDF as _};

use crate::disturbed::are_disturbed;
use crate::not_compared::NotCompared;
use crate::quantiles::RunFigures;
use crate::ruling::{Decision, Judgement, LimitRuling, Ruling};
use crate::statistics::{Comparison, Estimate, Paired, ValuePair, Verdict, mean};
use crate::summary::{Summary, VariantSummary};

/// What the limit says of the variants: a relative one of all that are compared with another, an absolute
/// one of all. `records` are the runs that the summary is of, in the order of execution, and `session` is
/// what they belong to.
#[must_use]
pub fn judge(
    limit: &CostLimit,
    summary: &Summary,
    records: &[&RunRecord],
    session: &Session,
) -> LimitRuling {
    let variants = match limit {
        CostLimit::Relative { metric, largest } => {
            let (metric, largest) = (*metric, *largest);
            RelativeLimit { metric, largest, session, summary, records }.judgements()
        }
        CostLimit::Absolute(demand) => {
            let names = summary.variants.iter().map(|variant| &variant.name);
            names.map(|name| absolute(*demand, name, records, session.seed)).collect()
        }
    };
    LimitRuling::of(*limit, variants)
}

/// A relative limit and what it is held against.
struct RelativeLimit<'a> {
    metric: Metric,
    /// The largest relative cost that is accepted.
    largest: f64,
    session: &'a Session,
    summary: &'a Summary,
    records: &'a [&'a RunRecord],
}

impl<'a> RelativeLimit<'a> {
    /// What it says of every variant but the baseline, and but those that are to be compared with none.
    fn judgements(&self) -> Vec<Judgement> {
        self.summary.variants.iter().flat_map(|variant| self.of_variant(variant)).collect()
    }

    /// One judgement for each variant that this one is compared with, without controls.
    fn of_variant(&self, variant: &VariantSummary) -> Vec<Judgement> {
        let references = self.references(&variant.name);
        if references.is_empty() {
            return Vec::new();
        }
        let comparisons = self.summary.comparisons.iter();
        let own: Vec<&Comparison> = comparisons
            .filter(|own| own.variant == variant.name && own.metric == self.metric)
            .collect();
        let mut judgements: Vec<Judgement> = own
            .iter()
            .filter(|comparison| comparison.verdict != Verdict::Control)
            .map(|comparison| self.of_comparison(variant, comparison))
            .collect();
        for against in references {
            if own.iter().any(|comparison| comparison.against == against) {
                continue;
            }
            let beside = self.beside_time_outs(variant, against);
            let not_compared = self.not_compared([&variant.name, against]);
            let is_silent = own.is_empty() && judgements.is_empty();
            if beside.is_some() || not_compared.is_some() || is_silent {
                judgements.push(beside.unwrap_or_else(|| Judgement {
                    against: (against != self.summary.baseline).then(|| against.to_owned()),
                    not_compared,
                    ..Judgement::of(&variant.name, Decision::UNCLEAR)
                }));
            }
        }
        judgements
    }

    /// The names of what a variant is to be compared with.
    fn references(&self, name: &str) -> Vec<&'a str> {
        let baseline = self.summary.baseline.as_str();
        match self.session.compared.as_slice() {
            [] if name == baseline => Vec::new(),
            [] => vec![baseline],
            asked => {
                let own = asked.iter().filter(|pair| pair.variant == name);
                own.map(|pair| pair.against.as_str()).collect()
            }
        }
    }

    /// Why the metric of either variant is not the server's.
    fn not_compared(&self, names: [&str; 2]) -> Option<NotCompared> {
        let variants = self.summary.variants.iter();
        let reasons = variants
            .filter(|variant| names.contains(&variant.name.as_str()))
            .filter_map(|variant| variant.not_compared);
        reasons.into_iter().find(|why| why.includes(self.metric))
    }

    fn of_comparison(&self, variant: &VariantSummary, comparison: &Comparison) -> Judgement {
        // What has no figure in a round that counts was too bad for one there.
        let is_whole = self.summary.variant(&comparison.against).is_none_or(|reference| {
            comparison.rounds >= variant.valid_runs.min(reference.valid_runs)
        });
        let reference_is_disturbed = self.summary.is_disturbed(&comparison.against);
        let decision = match rule(comparison, self.largest) {
            Ruling::Pass if !is_whole => Decision::UNCLEAR,
            // It may have looked worse than it is.
            Ruling::Pass if reference_is_disturbed => Decision::Disturbed,
            Ruling::Fail if reference_is_disturbed || variant.is_disturbed => Decision::Disturbed,
            ruling => Decision::Ruled(ruling),
        };
        let is_coarse = is_coarse(comparison, self.largest);
        Judgement {
            against: Some(comparison.against.clone()),
            found: Some(comparison.difference),
            floor: is_coarse.then_some(comparison.floor),
            ..Judgement::of(&variant.name, decision)
        }
    }

    /// What is said of a variant if the metric is the time-out in a run of it or of its reference; `None` if in none.
    ///
    /// The time-out is the least that a figure can be. So if the variant is certainly too slow by that, it is too slow;
    /// and if it is not compared with a reference that is the time-out, it may well be faster than that.
    fn beside_time_outs(&self, variant: &VariantSummary, against: &str) -> Option<Judgement> {
        let time_outs = variant.time_outs(self.metric);
        let reference_time_outs = self.summary.variant(against)?.time_outs(self.metric);
        time_outs.or(reference_time_outs)?;
        // One round alone decides nothing, as with the words.
        let is_beyond =
            |paired: Paired| paired.relative.low > self.largest && paired.p_of_none() < 1.0;
        let pairs = self.least_values(&variant.name, against);
        let is_too_slow = reference_time_outs.is_none()
            && Paired::of(&pairs, self.session.looks).is_some_and(is_beyond);
        let decision = match is_too_slow {
            true if variant.is_disturbed || self.summary.is_disturbed(against) => {
                Decision::Disturbed
            }
            true => Decision::Ruled(Ruling::Fail),
            false => Decision::UNCLEAR,
        };
        Some(Judgement {
            against: Some(against.to_owned()),
            time_outs,
            reference_time_outs,
            ..Judgement::of(&variant.name, decision)
        })
    }

    /// The least values of the metric, of the reference and the variant, in each round that counts for both.
    fn least_values(&self, name: &str, against: &str) -> Vec<ValuePair> {
        let rounds = valid_runs(self.records, name).filter_map(|own| {
            let mut references = valid_runs(self.records, against);
            let reference = references.find(|other| other.repetition == own.repetition)?;
            Some(ValuePair {
                reference: reference.figure(self.metric)?.at_least(),
                own: own.figure(self.metric)?.at_least(),
            })
        });
        rounds.collect()
    }
}

fn valid_runs<'a>(records: &[&'a RunRecord], name: &str) -> impl Iterator<Item = &'a RunRecord> {
    records.iter().copied().filter(move |record| record.variant == name && record.is_valid())
}

/// The ends between which a share of all queries of these runs lies with 95 %, as that of independent trials (Clopper and
/// Pearson, Biometrika 26, 1934). The spread of the runs knows nothing of what is too seldom to be in any: of 300
/// queries without a loss the share that is lost may be 1.2 %.
fn share_of_all(metric: Metric, runs: &[&RunRecord]) -> [f64; 2] {
    let (mut found, mut due) = (0, 0);
    for measured in runs.iter().filter_map(|record| record.compared_times()) {
        let outcomes = &measured.counters.outcomes;
        found += if metric == Metric::LostShare { outcomes.lost() } else { outcomes.answered };
        due += outcomes.due;
    }
    let others = due.saturating_sub(found) as f64;
    let low = if found == 0 { 0.0 } else { beta_quantile(found as f64, others + 1.0, SIDE_ERROR) };
    let high = match found < due {
        true => beta_quantile(found as f64 + 1.0, others, 1.0 - SIDE_ERROR),
        false => 1.0,
    };
    [low, high]
}

fn beta_quantile(alpha: f64, beta: f64, quantile: f64) -> f64 {
    Beta::new(alpha, beta).map_or(f64::NAN, |beta| beta.inverse_cdf(quantile))
}

/// Error on each side of an interval of 95 %.
const SIDE_ERROR: f64 = 0.025;

/// Whether what dnslab itself may add leaves it open what the intervals tell.
fn is_coarse(comparison: &Comparison, largest: f64) -> bool {
    let without = Comparison { floor: 0.0, ..comparison.clone() };
    rule(comparison, largest) == Ruling::Unclear && rule(&without, largest) != Ruling::Unclear
}

fn rule(comparison: &Comparison, largest: f64) -> Ruling {
    let Estimate { low, high, .. } = comparison.difference;
    let (least, most) =
        if comparison.metric.higher_is_better() { (-high, -low) } else { (low, high) };
    // Whether there is a difference is another question than whether there is the gain that is asked for.
    let doubtful = largest >= 0.0
        && (matches!(comparison.verdict, Verdict::CannotTell { .. })
            || comparison.difference.value.abs() <= comparison.floor);
    if most <= largest {
        // A difference as large as the limit could hide in what dnslab itself may add.
        if comparison.floor > largest.abs() { Ruling::Unclear } else { Ruling::Pass }
    } else if least > largest && !doubtful {
        Ruling::Fail
    } else {
        Ruling::Unclear
    }
}

pub(crate) fn absolute(
    demand: Threshold,
    name: &str,
    records: &[&RunRecord],
    seed: u64,
) -> Judgement {
    let valid: Vec<&RunRecord> = valid_runs(records, name).collect();
    let figures: RunFigures =
        valid.iter().filter_map(|record| record.indicator(demand.indicator)).collect();
    let time_outs = figures.time_outs();
    let is_whole = figures.count() == valid.len() && time_outs.is_none();
    let at_least = mean(&figures.at_least(), seed).map(|found| match demand.indicator {
        Indicator::Metric(metric @ (Metric::LostShare | Metric::AnsweredShare)) => {
            found.joined(share_of_all(metric, &valid))
        }
        _ => found,
    });
    let decision = at_least.map_or(Decision::UNCLEAR, |Estimate { low, high, .. }| {
        let [best, worst] = match demand.relation {
            Relation::Below | Relation::AtMost => [low, high],
            Relation::Above | Relation::AtLeast => [high, low],
        };
        match (demand.is_met_by(best), demand.is_met_by(worst)) {
            (true, true) if is_whole => Decision::Ruled(Ruling::Pass),
            (true, _) => Decision::UNCLEAR,
            (false, _) if are_disturbed(valid.iter().copied()) => Decision::Disturbed,
            (false, _) => Decision::Ruled(Ruling::Fail),
        }
    });
    let not_compared = NotCompared::of(valid.iter().map(|record| &record.bottleneck))
        .filter(|why| demand.indicator.compared().is_some_and(|metric| why.includes(metric)));
    let decision = match (not_compared, decision) {
        // The server answers at least this rate: what the lower bound keeps, it keeps.
        (None, _) | (Some(NotCompared::Generator), Decision::Ruled(Ruling::Pass)) => decision,
        (Some(_), _) => Decision::UNCLEAR,
    };
    Judgement {
        found: at_least.filter(|_| time_outs.is_none()),
        time_outs,
        not_compared,
        ..Judgement::of(name, decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `limit` says of a variant whose `metric` differs by this interval.
    fn outcome(limit: &str, metric: Metric, [low, high]: [f64; 2]) -> Ruling {
        let CostLimit::Relative { metric: its, largest } = limit.parse().unwrap() else { panic!() };
        assert_eq!(its, metric);
        let difference = Estimate { value: f64::midpoint(low, high), low, high };
        // The verdict where no single run decides.
        let verdict = match (low > 0.0 || high < 0.0, (low > 0.0) == metric.higher_is_better()) {
            (false, _) => Verdict::CannotTell { more_runs: None },
            (true, true) => Verdict::Gains,
            (true, false) => Verdict::Costs,
        };
        rule(&comparison(metric, difference, verdict), largest)
    }

    /// What dnslab itself may add hides a difference as large as the limit, and is no larger one.
    #[test]
    fn a_limit_within_the_engines_own_error_is_neither_kept_nor_exceeded() {
        for ([low, high], floor, limit, expected) in [
            ([0.0, 0.01], 0.04, 0.05, Ruling::Pass),
            ([0.0, 0.01], 0.06, 0.05, Ruling::Unclear),
            ([0.009, 0.011], 0.009, 0.005, Ruling::Fail),
            ([0.009, 0.011], 0.010_1, 0.005, Ruling::Unclear),
        ] {
            let difference = Estimate { value: f64::midpoint(low, high), low, high };
            let verdict = Verdict::EqualWithin { margin: 0.02 };
            let found = comparison(Metric::LatencyP50, difference, verdict);
            let found = Comparison { floor, ..found };
            assert_eq!(rule(&found, limit), expected, "{floor} {limit}");
            let is_known = rule(&Comparison { floor: 0.0, ..found.clone() }, limit);
            assert_eq!(is_coarse(&found, limit), is_known != expected);
        }
    }

    fn comparison(metric: Metric, difference: Estimate, verdict: Verdict) -> Comparison {
        Comparison {
            variant: "v".to_owned(),
            against: "b".to_owned(),
            metric,
            difference,
            absolute: None,
            rounds: 5,
            floor: 0.0,
            verdict,
        }
    }

    #[test]
    fn a_limit_is_exceeded_kept_or_neither() {
        use Ruling::{Fail, Pass, Unclear};
        const ENDLESS: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];
        let cases = [
            ("qps=10%", Metric::AnsweredQps, [-0.30, -0.11], Fail),
            ("answered_qps=10%", Metric::AnsweredQps, [-0.30, -0.09], Unclear),
            ("qps=10%", Metric::AnsweredQps, [-0.09, -0.01], Pass),
            ("qps=10%", Metric::AnsweredQps, [-0.09, 0.90], Pass),
            ("qps=10%", Metric::AnsweredQps, [0.20, 0.30], Pass),
            ("qps=10%", Metric::AnsweredQps, ENDLESS, Unclear),
            // A ratio cannot fall by more than all of it.
            ("qps=100%", Metric::AnsweredQps, [-1.0, 0.5], Pass),
            ("p99=50%", Metric::LatencyP99, [0.51, 0.90], Fail),
            ("latency_p99_ns=50%", Metric::LatencyP99, [0.10, 0.90], Unclear),
            ("p99=50%", Metric::LatencyP99, [-0.90, 0.50], Pass),
            ("p99=50%", Metric::LatencyP99, ENDLESS, Unclear),
            ("memory=5%", Metric::PeakMemory, [0.06, 0.07], Fail),
            ("cpu_per_query=5%", Metric::ServerCpuPerQuery, [0.0, 0.01], Pass),
        ];
        for (limit, metric, ends, expected) in cases {
            assert_eq!(outcome(limit, metric, ends), expected, "{limit} {ends:?}");
        }
    }

    #[test]
    fn a_doubtful_comparison_exceeds_nothing() {
        let difference = Estimate { value: 0.3, low: 0.2, high: 0.4 };
        let outcome = |verdict| rule(&comparison(Metric::LatencyP50, difference, verdict), 0.1);
        assert_eq!(outcome(Verdict::Costs), Ruling::Fail);
        let unclear = Verdict::CannotTell { more_runs: None };
        assert_eq!(outcome(unclear), Ruling::Unclear);
        // No difference, for which nothing is certain, is certainly no gain of 90 %.
        let none = Estimate { value: 0.0, low: -0.1, high: 0.1 };
        let asked = |largest| rule(&comparison(Metric::LatencyP50, none, unclear), largest);
        assert_eq!((asked(-0.9), asked(-0.05)), (Ruling::Fail, Ruling::Unclear));
    }

    #[test]
    fn limits_are_written_as_they_are_read() {
        for (text, written) in [
            ("p99=10%", "p99=10%"),
            ("latency_p99_ns = 0.7 %", "p99=0.7%"),
            ("peak_memory_octets=5%", "memory=5%"),
            ("p99.9 < 10 ms", "p99.9<10ms"),
            ("qps>=30000", "qps>=30000"),
            ("lost<0.1%", "lost<0.1%"),
            ("memory<2GiB", "memory<2GiB"),
            (" qps>-3%", "qps=3%"),
            ("p99 < +5 %", "p99=5%"),
            ("cpu_per_query<=+0%", "cpu_per_query=0%"),
            ("qps>-0%", "qps=0%"),
            ("p50<-10%", "p50<-10%"),
            ("qps>+150%", "qps>+150%"),
            ("qps>-100%", "qps=100%"),
        ] {
            let limit: CostLimit = text.parse().unwrap();
            assert_eq!(limit.to_string(), written);
            assert_eq!(written.parse(), Ok(limit));
            let json = serde_json::to_string(&limit).unwrap();
            assert_eq!(json, format!("\"{written}\""));
            assert_eq!(serde_json::from_str::<CostLimit>(&json).unwrap(), limit);
        }
    }

    #[test]
    fn bad_limits_name_the_culprit() {
        for (text, expected) in [
            ("p99", "`p99` is no limit: write FIGURE=PERCENT or FIGURE<BOUND"),
            ("q99=10%", "unknown figure `q99`: it is one of lost, "),
            ("q99<10ms", "unknown figure `q99`: it is one of lost, "),
            ("lost=10%", "variants are not compared by `lost`: bound it itself, as lost<0.1%"),
            ("p99.9=10%", "variants are not compared by `p99.9`: bound it itself, as p99.9<10ms"),
            ("p99=10", "`10` is no percentage"),
            ("p99=-1%", "`-1%` is no percentage"),
            ("p99<+10", "`+10` is no change in percent"),
            ("p99<+10ms", "`+10ms` is no change in percent"),
            ("p99<--1%", "`--1%` is no change in percent"),
            ("p99<-100%", "`p99<-100%` cannot be reached"),
            ("p99>-5%", "`p99>-5%` fails what is better: write p99<+...%"),
            ("qps<+5%", "`qps<+5%` fails what is better: write qps>-...%"),
            ("lost<+5%", "variants are not compared by `lost`: bound it itself, as lost<0.1%"),
            ("p99<10", "`10` in `p99<10` is no duration: write it with its unit"),
            ("qps<10", "`qps<10` demands a bad server: write qps>10"),
        ] {
            let error = text.parse::<CostLimit>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
