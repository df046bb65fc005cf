//! Two sessions of one experiment against each other: before a change and after it.

pub(crate) mod conditions;

use serde::Serialize;

use crate::gate::absolute;
use crate::statistics::{Estimate, Metric, Welch, rejected};
use crate::{
    Caveat, CostLimit, Judgement, LimitRuling, Ruling, RunRecord, Session, Summary, VariantSummary,
};
pub use conditions::{Condition, ConditionChange};

/// The chance that a comparison says "worse" of anything though nothing is worse than its limit. It is that
/// of one side of an interval of 95 %, so with one limit and one variant the interval alone decides.
const FALSE_WORSE: f64 = 0.025;

/// With fewer runs in either session no interval passes or fails. [`Welch`] takes a spread from each of the two,
/// and that of two runs is often far too small by chance: beside ten runs it finds 5 of 100 equal servers worse by a
/// limit without room, where 2.5 are promised; three runs beside ten 3.1.
const LEAST_RUNS: usize = 3;

/// More runs than these are not proposed: the difference is better sought in another way.
const MAX_MORE_RUNS: u32 = 100;

/// Relative difference of the rates of two common loads from which on their latencies are not compared: a
/// latency belongs to its rate.
const RATE_TOLERANCE: f64 = 0.05;

/// All that a results directory has of a session.
#[derive(Clone, Copy, Debug)]
pub struct WholeSession<'a> {
    /// What was known before the first run.
    pub session: &'a Session,
    /// All runs that have ended.
    pub records: &'a [RunRecord],
    /// The experiment as it ran, TOML; empty if it is not known.
    pub experiment: &'a str,
}

impl WholeSession<'_> {
    /// Kind and version of each server under test whose runs count, each once.
    #[must_use]
    pub fn servers(&self) -> Vec<[String; 2]> {
        let mut servers: Vec<[String; 2]> = Vec::new();
        for record in self.records.iter().filter(|record| record.is_valid()) {
            let server = [record.server.kind.clone(), record.server.version.clone()];
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        servers
    }
}

/// What is said of one of the two sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionSide {
    /// Name of the experiment.
    pub name: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// Version of dnslab that ran it.
    pub dnslab: String,
    /// Kind and version of each server under test whose runs count, each once.
    pub servers: Vec<[String; 2]>,
    /// Variants that ran here and not in the other session.
    pub only_here: Vec<String>,
    /// Runs that are invalid or failed.
    pub other_runs: u32,
    /// Runs of the plan that were not made.
    pub missing_runs: u32,
    /// Variants whose machine others used too, in half of the runs that count or more.
    pub disturbed: Vec<String>,
    /// Variants that were to be measured and could not run here.
    pub skipped: Vec<String>,
}

/// One metric of one variant in both sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantChange {
    /// The variant.
    pub variant: String,
    /// What is compared.
    pub metric: Metric,
    /// Mean over the runs before, with its own interval, in the unit of the metric.
    pub base: Estimate,
    /// Mean over the runs after.
    pub new: Estimate,
    /// Relative difference (0.1 = 10 % more) with its 95 % interval ([`Welch`]).
    pub difference: Estimate,
    /// Runs that it is from, before and after.
    pub runs: [u32; 2],
}

/// What two sessions say of a change. Runs that do not count are in no figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionComparison {
    /// The session before the change.
    pub base: SessionSide,
    /// The session after it.
    pub new: SessionSide,
    /// The variants that ran in both, in the order of the later session.
    pub variants: Vec<String>,
    /// Every metric that was measured in both, variant by variant.
    pub changes: Vec<VariantChange>,
    /// What the limits say, in their order.
    pub rulings: Vec<LimitRuling>,
    /// What makes the two sessions less comparable.
    pub conditions: Vec<ConditionChange>,
    /// The rates of the two common loads, queries per second, if they are so far apart that latencies are
    /// not judged.
    pub common_rates_qps: Option<[f64; 2]>,
}

impl SessionComparison {
    /// Compares the variants that have the same name in both sessions. What the limits say:
    ///
    /// - *pass*: the whole interval of 95 % lies within the limit. All limits must be kept by all variants, so
    ///   each is tried at its own error, and the claim as a whole errs no more often (an intersection-union
    ///   test; Berger, Technometrics 24, 1982).
    /// - *fail*: the difference is certainly beyond the limit. One of many is enough here, so all limits of
    ///   all variants share one error of 2.5 % by Holm's procedure ([`rejected`]), with the weights of
    ///   [`Metric::weight`]. A lone interval beyond its limit may therefore be no failure among many. Nor is a
    ///   difference of a variant that was disturbed in either session ([`SessionSide::disturbed`]): runs of one
    ///   session are disturbed together, so their spread does not show it. If the earlier one was, the variant
    ///   does not pass either: it may have looked worse than it is.
    /// - neither with fewer than three runs in one of the sessions: two of them may be alike by chance.
    /// - *unclear*: otherwise; with the number of further runs of each session that would probably tell
    ///   ([`Welch::more_runs`]).
    ///
    /// A bound of the figure itself (`p99<10ms`) is tried on the later session alone, as in a session
    /// ([`CostLimit::judge`]).
    #[must_use]
    pub fn of(base: WholeSession<'_>, new: WholeSession<'_>, limits: &[CostLimit]) -> Self {
        let sides = [Side::of(base), Side::of(new)];
        let is_in = |side: &Side<'_>, name: &str| side.ran().any(|its| its.name == name);
        let only = |side: &Side<'_>, other: &Side<'_>| -> Vec<String> {
            side.ran().map(|its| its.name.clone()).filter(|name| !is_in(other, name)).collect()
        };
        let [old, later] = &sides;
        let names = later.ran().map(|its| its.name.clone());
        let variants: Vec<String> = names.filter(|name| is_in(old, name)).collect();
        let common_rates_qps = far_rates(base.session, new.session);
        let mut comparison = Self {
            base: old.facts(only(old, later)),
            new: later.facts(only(later, old)),
            changes: variants.iter().flat_map(|name| changes(&sides, name)).collect(),
            rulings: Vec::new(),
            conditions: conditions::changed(base, new, &variants),
            common_rates_qps,
            variants,
        };
        comparison.rulings = comparison.judge(&sides, limits);
        comparison
    }

    /// The ruling over all limits, the worst of all. What fails, fails; else it is unclear if a run of the
    /// later session does not count or was not made, or a variant of the earlier one could not run in it (the
    /// change may be why), or if nothing could be judged.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        let worst = self.rulings.iter().map(|of| of.ruling).max();
        let lost = self.base.only_here.iter().any(|name| self.new.skipped.contains(name));
        let all_count = self.new.other_runs == 0 && self.new.missing_runs == 0 && !lost;
        let least = if all_count { Ruling::Pass } else { Ruling::Unclear };
        worst.map_or(Ruling::Unclear, |worst| worst.max(least))
    }

    /// How many more runs of each session would probably tell of all that is unclear; `None` if that cannot
    /// be said of one.
    #[must_use]
    pub fn more_runs(&self) -> Option<u32> {
        let judgements = self.rulings.iter().flat_map(|ruling| &ruling.variants);
        let unclear = judgements.filter(|of| of.ruling == Ruling::Unclear);
        unclear.map(|of| of.more_runs).try_fold(0, |most, more| Some(most.max(more?)))
    }

    /// The fewest runs, in either session, behind a relative limit that is unclear, if they are fewer than three.
    #[must_use]
    pub fn too_few_runs(&self) -> Option<u32> {
        let runs_of = |ruling: &LimitRuling| {
            let CostLimit::Relative { metric, .. } = ruling.limit else { return None };
            if !self.is_judged(metric) {
                // More runs do not bring latencies to a common rate.
                return None;
            }
            let is_unclear = |change: &&VariantChange| {
                let is_its = |of: &Judgement| of.variant == change.variant;
                let mut open = ruling.variants.iter().filter(|of| of.ruling == Ruling::Unclear);
                change.metric == metric && open.any(is_its)
            };
            self.changes.iter().filter(is_unclear).flat_map(|change| change.runs).min()
        };
        let fewest = self.rulings.iter().filter_map(runs_of).min();
        fewest.filter(|runs| (*runs as usize) < LEAST_RUNS)
    }

    /// A latency belongs to its rate.
    fn is_judged(&self, metric: Metric) -> bool {
        self.common_rates_qps.is_none() || !metric.is_latency()
    }

    /// What shows that the sessions are of different machines.
    pub fn machine_changes(&self) -> impl Iterator<Item = &ConditionChange> {
        self.conditions.iter().filter(|of| of.condition == Condition::Machine)
    }

    fn judge(&self, sides: &[Side<'_>; 2], limits: &[CostLimit]) -> Vec<LimitRuling> {
        let trials: Vec<Vec<Trial>> = limits
            .iter()
            .map(|limit| match limit {
                CostLimit::Relative { metric, largest } => {
                    let trial = |name: &String| Trial::of(sides, name, *metric, *largest);
                    let mut trials: Vec<Trial> = self.variants.iter().map(trial).collect();
                    let is_nothing = |trial: &Trial| matches!(trial.found, Found::Nothing);
                    // What no variant has was to be measured, and was not.
                    if !trials.iter().all(is_nothing) {
                        trials.retain(|trial| !is_nothing(trial));
                    }
                    trials
                }
                CostLimit::Absolute(_) => Vec::new(),
            })
            .collect();
        let all: Vec<&Trial> = trials.iter().flatten().collect();
        let mut judgements = judgements(&all, &|trial| self.is_judged(trial.metric)).into_iter();
        limits
            .iter()
            .zip(&trials)
            .map(|(limit, trials)| {
                let variants: Vec<Judgement> = match limit {
                    CostLimit::Relative { .. } => judgements.by_ref().take(trials.len()).collect(),
                    CostLimit::Absolute(bound) => {
                        let [_, new] = sides;
                        let records: Vec<&RunRecord> = new.whole.records.iter().collect();
                        let seed = new.whole.session.seed;
                        new.ran().map(|it| absolute(*bound, &it.name, &records, seed)).collect()
                    }
                };
                let worst = variants.iter().map(|judgement| judgement.ruling).max();
                LimitRuling {
                    limit: *limit,
                    metric: limit.quantity().to_string(),
                    ruling: worst.unwrap_or(Ruling::Unclear),
                    variants,
                }
            })
            .collect()
    }
}

/// What is said of each of these trials, which share the error of a false "worse".
fn judgements(trials: &[&Trial], is_judged: &dyn Fn(&Trial) -> bool) -> Vec<Judgement> {
    let weight = |trial: &Trial| trial.metric.weight(None);
    let hypotheses: Vec<(f64, f64)> =
        trials.iter().map(|trial| (trial.p_of_no_worse(), weight(trial))).collect();
    let weights: f64 = hypotheses.iter().map(|(_, weight)| weight).sum();
    let are_worse = rejected(&hypotheses, FALSE_WORSE);
    let judgement = |(trial, is_worse): (&&Trial, bool)| {
        trial.judgement(is_worse, is_judged(trial), FALSE_WORSE * weight(trial) / weights)
    };
    trials.iter().zip(are_worse).map(judgement).collect()
}

/// A session with its figures.
struct Side<'a> {
    whole: WholeSession<'a>,
    summary: Summary,
}

impl<'a> Side<'a> {
    fn of(whole: WholeSession<'a>) -> Self {
        Self { whole, summary: Summary::of(whole.session, whole.records) }
    }

    /// The variants that could run.
    fn ran(&self) -> impl Iterator<Item = &VariantSummary> {
        self.summary.variants.iter().filter(|variant| variant.skipped.is_none())
    }

    fn facts(&self, only_here: Vec<String>) -> SessionSide {
        let Session { name, started, dnslab, .. } = self.whole.session;
        SessionSide {
            servers: self.whole.servers(),
            name: name.clone(),
            started: started.clone(),
            dnslab: dnslab.clone(),
            only_here,
            other_runs: self.summary.variants.iter().map(|variant| variant.other_runs).sum(),
            missing_runs: self.summary.missing_runs,
            skipped: self.whole.session.skipped.iter().map(|of| of.variant.clone()).collect(),
            disturbed: self
                .ran()
                .map(|it| &it.name)
                .filter(|it| self.is_disturbed(it))
                .cloned()
                .collect(),
        }
    }

    /// Whether others used the machine in half of the runs that count, or more.
    fn is_disturbed(&self, name: &str) -> bool {
        let runs = || self.whole.records.iter().filter(|of| of.variant == name && of.is_valid());
        let is_disturbed = |record: &&RunRecord| record.caveats.iter().any(Caveat::is_of_others);
        let disturbed = runs().filter(is_disturbed).count();
        disturbed > 0 && 2 * disturbed >= runs().count()
    }

    fn variant(&self, name: &str) -> Option<&VariantSummary> {
        self.summary.variants.iter().find(|variant| variant.name == name)
    }

    /// The values of the runs that count, and whether all of these have one.
    fn values(&self, name: &str, metric: Metric) -> (Vec<f64>, bool) {
        let runs = || self.whole.records.iter().filter(|of| of.variant == name && of.is_valid());
        let values: Vec<f64> = runs().filter_map(|record| metric.of(record)).collect();
        let is_whole = values.len() == runs().count();
        (values, is_whole)
    }
}

/// The rates of two common loads if they are far apart.
fn far_rates(base: &Session, new: &Session) -> Option<[f64; 2]> {
    let rates = [base.common_rate_qps?, new.common_rate_qps?];
    let is_far = (rates[1] / rates[0]).ln().abs() > RATE_TOLERANCE.ln_1p();
    is_far.then_some(rates)
}

fn changes(sides: &[Side<'_>; 2], name: &str) -> Vec<VariantChange> {
    let change = |metric: Metric| {
        let [base, new] = sides.each_ref().map(|side| side.values(name, metric).0);
        let count = |values: &[f64]| u32::try_from(values.len()).unwrap_or(u32::MAX);
        let mean = |side: &Side<'_>| side.variant(name)?.metrics.get(&metric).copied();
        Some(VariantChange {
            variant: name.to_owned(),
            metric,
            base: mean(&sides[0])?,
            new: mean(&sides[1])?,
            difference: Welch::of(&base, &new)?.relative,
            runs: [count(&base), count(&new)],
        })
    };
    Metric::ALL.into_iter().filter_map(change).collect()
}

/// A relative limit on one variant, before it is known what else is tried.
struct Trial {
    variant: String,
    metric: Metric,
    /// The change that is just accepted: -0.03 for a rate that may fall by 3 %.
    bound: f64,
    found: Found,
    /// Every run that counts has a value.
    is_whole: bool,
    /// The same of the earlier session alone: what it lacks is the worst of it, and would make a difference
    /// look larger.
    is_base_whole: bool,
    /// [`Side::is_disturbed`] holds in either session.
    is_disturbed: bool,
    /// It holds in the earlier one, which then may look worse than it is.
    is_base_disturbed: bool,
}

enum Found {
    /// Values of both sessions.
    Change(Welch),
    /// The same from fewer than [`LEAST_RUNS`].
    TooFew(Estimate),
    /// No run of either has it, though it is no latency: DNS over UDP has no handshakes.
    Nothing,
    /// So many queries of the later session were lost that this quantile is the time-out.
    TimeOut,
    /// It was not measured in both.
    Unknown,
}

impl Trial {
    fn of(sides: &[Side<'_>; 2], name: &str, metric: Metric, largest: f64) -> Self {
        let [(base, base_whole), (new, new_whole)] =
            sides.each_ref().map(|side| side.values(name, metric));
        let has_runs = |side: &Side<'_>| side.variant(name).is_some_and(|it| it.valid_runs > 0);
        let is_nothing = || {
            base.is_empty() && new.is_empty() && !metric.is_latency() && sides.iter().all(has_runs)
        };
        let is_time_out = || {
            let later = sides[1].variant(name);
            base_whole
                && base.len() > 1
                && new.is_empty()
                && later.is_some_and(|it| it.valid_runs > 1)
                && metric
                    .quantile()
                    .zip(later)
                    .is_some_and(|(quantile, later)| later.outcomes.lost_share() >= 1.0 - quantile)
        };
        let found = match Welch::of(&base, &new) {
            Some(change) if base.len().min(new.len()) < LEAST_RUNS => {
                Found::TooFew(change.relative)
            }
            Some(change) => Found::Change(change),
            None if is_nothing() => Found::Nothing,
            None if is_time_out() => Found::TimeOut,
            None => Found::Unknown,
        };
        Self {
            variant: name.to_owned(),
            metric,
            bound: if metric.higher_is_better() { -largest } else { largest },
            found,
            is_whole: base_whole && new_whole,
            is_base_whole: base_whole,
            is_disturbed: sides.iter().any(|side| side.is_disturbed(name)),
            is_base_disturbed: sides[0].is_disturbed(name),
        }
    }

    /// The chance of what was found if it is no worse than the limit.
    fn p_of_no_worse(&self) -> f64 {
        match &self.found {
            // Nothing falls by more than all of it.
            Found::Change(_) if self.bound <= -1.0 => 1.0,
            Found::Change(change) if self.metric.higher_is_better() => {
                change.p_not_below(self.bound)
            }
            Found::Change(change) => change.p_not_above(self.bound),
            Found::TimeOut => 0.0,
            Found::TooFew(_) | Found::Nothing | Found::Unknown => 1.0,
        }
    }

    fn is_within(&self) -> bool {
        match &self.found {
            Found::Change(change) if self.metric.higher_is_better() => {
                self.bound <= -1.0 || change.relative.low >= self.bound
            }
            Found::Change(change) => change.relative.high <= self.bound,
            Found::TooFew(_) | Found::Nothing | Found::TimeOut | Found::Unknown => false,
        }
    }

    /// `error` is what this trial would have of the common error if it were the last to be judged.
    fn judgement(&self, is_worse: bool, is_judged: bool, error: f64) -> Judgement {
        let ruling = match (self.is_within(), is_worse) {
            _ if !is_judged => Ruling::Unclear,
            (true, _) if self.is_whole && !self.is_base_disturbed => Ruling::Pass,
            (false, true) if !self.is_disturbed && self.is_base_whole => Ruling::Fail,
            _ => Ruling::Unclear,
        };
        let (found, more_runs) = match &self.found {
            Found::Change(change) => {
                let is_over = match self.metric.higher_is_better() {
                    true => change.relative.value < self.bound,
                    false => change.relative.value > self.bound,
                };
                let error = if is_over { error } else { FALSE_WORSE };
                let is_asked = ruling == Ruling::Unclear
                    && is_judged
                    && self.is_whole
                    && !(is_worse && self.is_disturbed)
                    && !self.is_base_disturbed;
                let more = || change.more_runs(self.bound, error, MAX_MORE_RUNS);
                (Some(change.relative), is_asked.then(more).flatten())
            }
            Found::TooFew(relative) => (Some(*relative), None),
            Found::Nothing | Found::TimeOut | Found::Unknown => (None, None),
        };
        let variant = self.variant.clone();
        Judgement { variant, against: None, found, ruling, more_runs }
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_distr::StandardNormal;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// In how many of `pairs` pairs of sessions of an equal server the gate says that the later one is worse:
    /// two variants, 5 runs of each in each session, whose rate, p99 and CPU time for each query scatter
    /// log-normally by 6 %. `room` is the change that the limits allow of the rate, and of the two others.
    fn false_alarms(pairs: usize, room: [f64; 2]) -> usize {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(15);
        let mut runs = || -> Vec<f64> {
            (0..5).map(|_| (0.06 * random.sample::<f64, _>(StandardNormal)).exp()).collect()
        };
        let metrics = [
            (Metric::AnsweredQps, -room[0]),
            (Metric::LatencyP99, room[1]),
            (Metric::ServerCpuPerQuery, room[1]),
        ];
        let is_false = |_: &usize| {
            let mut trial = |(metric, bound): (Metric, f64)| Trial {
                variant: String::new(),
                metric,
                bound,
                found: Found::Change(Welch::of(&runs(), &runs()).unwrap()),
                is_whole: true,
                is_base_whole: true,
                is_disturbed: false,
                is_base_disturbed: false,
            };
            let trials: Vec<Trial> = metrics.into_iter().chain(metrics).map(&mut trial).collect();
            let trials: Vec<&Trial> = trials.iter().collect();
            let found = judgements(&trials, &|_| true);
            found.iter().any(|judgement| judgement.ruling == Ruling::Fail)
        };
        (0..pairs).filter(is_false).count()
    }

    /// With the limits that are the default, "worse" takes a certain difference of 3 or 5 %: at most one pair of
    /// a hundred. Without any room, the six figures may be called worse in 2.5 of a hundred; the bounds are
    /// five standard errors beyond that, and of 4,000 pairs.
    #[test]
    fn equal_servers_are_hardly_ever_called_worse() {
        let hundred = false_alarms(100, [0.03, 0.05]);
        assert!(hundred <= 1, "{hundred} of 100");
        let with_room = false_alarms(4_000, [0.03, 0.05]);
        assert!(with_room <= 32, "{with_room} of 4,000");
        let without = false_alarms(4_000, [0.0, 0.0]);
        assert!((30..=150).contains(&without), "{without} of 4,000");
    }
}
