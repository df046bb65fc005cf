//! Limits on what variants may cost, for a gate in continuous integration.

use dnslab_record::{
    Compared, CostLimit, Indicator, Metric, Relation, RunRecord, Session, Threshold,
};
use statrs::distribution::{Beta, ContinuousCDF as _};

use crate::disturbed::are_disturbed;
use crate::not_compared::NotCompared;
use crate::quantiles::RunFigures;
use crate::ruling::{Judgement, LimitRuling, Ruling};
use crate::statistics::{Comparison, Estimate, Paired, Verdict, mean};
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
    let seed = session.seed;
    let variants = match limit {
        CostLimit::Relative { metric, largest } => {
            relative(*metric, *largest, (summary, records), &session.compared)
        }
        CostLimit::Absolute(demand) => {
            let names = summary.variants.iter().map(|variant| &variant.name);
            names.map(|name| absolute(*demand, name, records, seed)).collect()
        }
    };
    LimitRuling::of(*limit, variants)
}

/// What a relative limit says of every variant but the baseline, and but those that are to be compared with
/// none; one judgement for each variant that it is compared with, without controls. `asked` is empty where all
/// are compared with the baseline.
fn relative(
    metric: Metric,
    largest: f64,
    (summary, records): (&Summary, &[&RunRecord]),
    asked: &[Compared],
) -> Vec<Judgement> {
    let is_compared = |variant: &&VariantSummary| match asked {
        [] => variant.name != summary.baseline,
        asked => asked.iter().any(|of| of.variant == variant.name),
    };
    let others = summary.variants.iter().filter(is_compared);
    let not_compared = |names: &[&str]| {
        let found = summary.variants.iter().filter(|variant| names.contains(&&*variant.name));
        found.filter_map(|variant| variant.not_compared).find(|why| why.includes(metric))
    };
    let references = |name: &str| -> Vec<&str> {
        match asked {
            [] => vec![&summary.baseline],
            asked => {
                let own = asked.iter().filter(|of| of.variant == name);
                own.map(|of| of.against.as_str()).collect()
            }
        }
    };
    let judge = |variant: &VariantSummary| -> Vec<Judgement> {
        let name = &variant.name;
        let of_variant = |of: &&Comparison| of.variant == *name && of.metric == metric;
        let compared = || summary.comparisons.iter().filter(of_variant);
        let is_control = |of: &&Comparison| of.verdict == Verdict::Control;
        let mut judgements: Vec<Judgement> = compared()
            .filter(|of| !is_control(of))
            .map(|comparison| {
                // What has no figure in a round that counts was too bad for one there.
                let valid = |of: &str| {
                    let found = summary.variants.iter().find(|variant| variant.name == of);
                    found.map_or(0, |variant| variant.valid_runs)
                };
                let rounds = valid(name).min(valid(&comparison.against));
                let reference_is_disturbed = summary.is_disturbed(&comparison.against);
                let (ruling, is_disturbed) = match rule(comparison, largest) {
                    Ruling::Pass if comparison.rounds < rounds => (Ruling::Unclear, false),
                    // It may have looked worse than it is.
                    Ruling::Pass if reference_is_disturbed => (Ruling::Unclear, true),
                    Ruling::Fail if reference_is_disturbed || variant.is_disturbed => {
                        (Ruling::Unclear, true)
                    }
                    ruling => (ruling, false),
                };
                Judgement {
                    variant: name.clone(),
                    against: Some(comparison.against.clone()),
                    found: Some(comparison.difference),
                    time_outs: None,
                    reference_time_outs: None,
                    ruling,
                    not_compared: None,
                    is_disturbed,
                    floor: is_coarse(comparison, largest).then_some(comparison.floor),
                    more_runs: None,
                }
            })
            .collect();
        let is_compared = |against: &str| compared().any(|of| of.against == against);
        for against in references(name).into_iter().filter(|against| !is_compared(against)) {
            let reference = summary.variants.iter().find(|other| other.name == against);
            let beside = reference.and_then(|reference| {
                beside_time_outs((metric, largest), [reference, variant], records)
            });
            if let Some(mut found) = beside {
                let is_disturbed = variant.is_disturbed || summary.is_disturbed(against);
                if is_disturbed && found.ruling != Ruling::Unclear {
                    (found.ruling, found.is_disturbed) = (Ruling::Unclear, true);
                }
                judgements.push(found);
                continue;
            }
            let why = not_compared(&[name, against]);
            let is_told = !judgements.is_empty() || compared().any(|of| is_control(&of));
            if is_told && why.is_none() {
                continue;
            }
            judgements.push(Judgement {
                variant: name.clone(),
                against: (against != summary.baseline).then(|| against.to_owned()),
                found: None,
                time_outs: None,
                reference_time_outs: None,
                ruling: Ruling::Unclear,
                not_compared: why,
                is_disturbed: false,
                floor: None,
                more_runs: None,
            });
        }
        judgements
    };
    others.flat_map(judge).collect()
}

/// What is said of a variant if the metric is the time-out in a run of it or of its reference; `None` if in none.
///
/// The time-out is the least that a figure can be. So if the variant is certainly too slow by that, it is too slow;
/// and if it is not compared with a reference that is the time-out, it may well be faster than that.
fn beside_time_outs(
    (metric, largest): (Metric, f64),
    [reference, variant]: [&VariantSummary; 2],
    records: &[&RunRecord],
) -> Option<Judgement> {
    let [reference_time_outs, time_outs] = [reference, variant].map(|of| of.time_outs(metric));
    time_outs.or(reference_time_outs)?;
    let valid = |name: &str| -> Vec<&RunRecord> {
        let own = records.iter().filter(|record| record.variant == name && record.is_valid());
        own.copied().collect()
    };
    let below = valid(&reference.name);
    let pair = |own: &RunRecord| {
        let below = below.iter().find(|other| other.repetition == own.repetition)?;
        Some((below.figure(metric)?.at_least(), own.figure(metric)?.at_least()))
    };
    let pairs: Vec<(f64, f64)> = valid(&variant.name).into_iter().filter_map(pair).collect();
    // One round alone decides nothing, as with the words.
    let is_beyond = |paired: &Paired| paired.relative.low > largest && paired.p_of_none() < 1.0;
    let is_too_slow =
        reference_time_outs.is_none() && Paired::of(&pairs).is_some_and(|it| is_beyond(&it));
    Some(Judgement {
        variant: variant.name.clone(),
        against: Some(reference.name.clone()),
        found: None,
        time_outs,
        reference_time_outs,
        ruling: if is_too_slow { Ruling::Fail } else { Ruling::Unclear },
        not_compared: None,
        is_disturbed: false,
        floor: None,
        more_runs: None,
    })
}

/// The ends between which a share of all queries of these runs lies with 95 %, as that of independent trials (Clopper and
/// Pearson, Biometrika 26, 1934). The spread of the runs knows nothing of what is too seldom to be in any: of 300
/// queries without a loss the share that is lost may be 1.2 %.
fn share_of_all<'a>(metric: Metric, runs: impl Iterator<Item = &'a RunRecord>) -> [f64; 2] {
    let counts = runs.filter_map(RunRecord::compared_times).map(|measured| {
        let outcomes = &measured.counters.outcomes;
        let found = if metric == Metric::LostShare { outcomes.lost() } else { outcomes.answered };
        [found as f64, outcomes.due as f64]
    });
    let [found, all] = counts.fold([0.0, 0.0], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    let quantile = |one: f64, other: f64, at: f64| {
        Beta::new(one, other).map_or(f64::NAN, |beta| beta.inverse_cdf(at))
    };
    let low = if found <= 0.0 { 0.0 } else { quantile(found, all - found + 1.0, SIDE_ERROR) };
    let high =
        if found >= all { 1.0 } else { quantile(found + 1.0, all - found, 1.0 - SIDE_ERROR) };
    [low, high]
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
    let valid = || records.iter().filter(|record| record.variant == name && record.is_valid());
    let figures: RunFigures =
        valid().filter_map(|record| record.indicator(demand.indicator)).collect();
    let time_outs = figures.time_outs();
    let is_whole = figures.count() == valid().count() && time_outs.is_none();
    let at_least = mean(&figures.at_least(), seed);
    let at_least = match demand.indicator {
        Indicator::Metric(metric @ (Metric::LostShare | Metric::AnsweredShare)) => {
            at_least.map(|found| found.joined(share_of_all(metric, valid().copied())))
        }
        _ => at_least,
    };
    let (ruling, is_disturbed) =
        at_least.map_or((Ruling::Unclear, false), |Estimate { low, high, .. }| {
            let (best, worst) = match demand.relation {
                Relation::Below | Relation::AtMost => (low, high),
                Relation::Above | Relation::AtLeast => (high, low),
            };
            match (demand.is_met_by(best), demand.is_met_by(worst)) {
                (true, true) if is_whole => (Ruling::Pass, false),
                (true, true) => (Ruling::Unclear, false),
                (false, _) if are_disturbed(valid().copied()) => (Ruling::Unclear, true),
                (false, _) => (Ruling::Fail, false),
                (true, false) => (Ruling::Unclear, false),
            }
        });
    let not_compared = NotCompared::of(valid().map(|record| &record.bottleneck));
    let not_compared =
        not_compared.filter(|why| demand.indicator.compared().is_some_and(|of| why.includes(of)));
    let ruling = match (not_compared, ruling) {
        // The server answers at least this rate: what the lower bound keeps, it keeps.
        (None, ruling) | (Some(NotCompared::Generator), ruling @ Ruling::Pass) => ruling,
        (Some(_), _) => Ruling::Unclear,
    };
    Judgement {
        variant: name.to_owned(),
        against: None,
        found: at_least.filter(|_| time_outs.is_none()),
        time_outs,
        reference_time_outs: None,
        ruling,
        not_compared,
        is_disturbed: is_disturbed && ruling == Ruling::Unclear && not_compared.is_none(),
        floor: None,
        more_runs: None,
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
        let check = |[low, high]: [f64; 2], floor: f64, limit: f64, expected: Ruling| {
            let difference = Estimate { value: f64::midpoint(low, high), low, high };
            let verdict = Verdict::EqualWithin { margin: 0.02 };
            let found = comparison(Metric::LatencyP50, difference, verdict);
            let found = Comparison { floor, ..found };
            assert_eq!(rule(&found, limit), expected, "{floor} {limit}");
            let is_known = rule(&Comparison { floor: 0.0, ..found.clone() }, limit);
            assert_eq!(is_coarse(&found, limit), is_known != expected);
        };
        check([0.0, 0.01], 0.04, 0.05, Ruling::Pass);
        check([0.0, 0.01], 0.06, 0.05, Ruling::Unclear);
        check([0.009, 0.011], 0.009, 0.005, Ruling::Fail);
        check([0.009, 0.011], 0.010_1, 0.005, Ruling::Unclear);
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
