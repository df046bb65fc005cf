//! Two sessions of one experiment against each other: before a change and after it.

pub(crate) mod conditions;

use serde::Serialize;

use crate::disturbed::are_disturbed;
use crate::gate::absolute;
use crate::latency_floor::floor_of_runs;
use crate::not_compared::NotCompared;
use crate::quantiles::RunFigures;
use crate::ruling::{Decision, Judgement, LimitRuling, Ruling};
use crate::statistics::{Estimate, Hypothesis, Welch, mean_of, rejected};
use crate::summary::{Summary, VariantSummary};
use crate::whole_session::WholeSession;
pub use conditions::{Condition, ConditionChange};
use dnslab_record::{CostLimit, Metric, RunRecord, Session, Threshold, TimeOuts};

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
    /// Mean over the runs before, with its own interval, in the unit of the metric; `None` if it is the time-out in
    /// one of them.
    pub base: Option<Estimate>,
    /// Mean over the runs after likewise.
    pub new: Option<Estimate>,
    /// In how many runs it is the time-out, before and after; `None` if in none.
    pub time_outs: [Option<TimeOuts>; 2],
    /// Relative difference of the two means (0.1 = 10 % more) with its 95 % interval ([`Welch`]); `None` if there
    /// is no mean on a side, or one of the two sides is not the server's.
    pub difference: Option<Estimate>,
    /// Why it is not, in either session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<NotCompared>,
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
    /// - a quantile that is the time-out in a run after the change never passes. It fails if it is certainly beyond
    ///   the limit even with the time-out as its value there, which is the least that it can be. If it is the
    ///   time-out in a run before the change, it does neither.
    /// - neither with fewer than three runs in one of the sessions: two of them may be alike by chance.
    /// - neither if a side of the figure is not the server's ([`NotCompared`]). This spends nothing of the
    ///   error.
    /// - *unclear*: otherwise; with the number of further runs of each session that would probably tell
    ///   ([`Welch::more_runs`]).
    ///
    /// A bound of the figure itself (`p99<10ms`) is tried on the later session alone, as in a session
    /// ([`crate::judge`]).
    #[must_use]
    pub fn of(base: WholeSession<'_>, new: WholeSession<'_>, limits: &[CostLimit]) -> Self {
        let sides = [Side::of(base), Side::of(new)];
        let [old, later] = &sides;
        let (only_later, variants): (Vec<String>, Vec<String>) =
            later.names().partition(|name| !old.has_run(name));
        let only_old = old.names().filter(|name| !later.has_run(name)).collect();
        let common_rates_qps = far_rates(base.session, new.session);
        let mut comparison = Self {
            base: old.facts(only_old),
            new: later.facts(only_later),
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
        let worst = self.rulings.iter().map(|limit| limit.ruling).max();
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
        let unclear = judgements.filter(|judgement| judgement.ruling == Ruling::Unclear);
        unclear.map(|judgement| judgement.more_runs).try_fold(0, |most, more| Some(most.max(more?)))
    }

    /// The fewest runs, in either session, behind a relative limit that is unclear, if they are fewer than three.
    #[must_use]
    pub fn too_few_runs(&self) -> Option<u32> {
        let fewest = self.rulings.iter().filter_map(|ruling| self.fewest_runs(ruling)).min();
        fewest.filter(|runs| (*runs as usize) < LEAST_RUNS)
    }

    /// The fewest runs, in either session, of the variants of which a relative limit is unclear.
    fn fewest_runs(&self, ruling: &LimitRuling) -> Option<u32> {
        let CostLimit::Relative { metric, .. } = ruling.limit else { return None };
        if !self.is_judged(metric) {
            // More runs do not bring latencies to a common rate.
            return None;
        }
        let judgements = ruling.variants.iter();
        let unclear: Vec<&String> = judgements
            .filter(|judgement| judgement.ruling == Ruling::Unclear)
            .map(|judgement| &judgement.variant)
            .collect();
        let changes = self.changes.iter();
        changes
            .filter(|change| change.metric == metric && unclear.contains(&&change.variant))
            .flat_map(|change| change.runs)
            .min()
    }

    /// A latency belongs to its rate.
    fn is_judged(&self, metric: Metric) -> bool {
        self.common_rates_qps.is_none() || !metric.is_latency()
    }

    /// What shows that the sessions are of different machines.
    pub fn machine_changes(&self) -> impl Iterator<Item = &ConditionChange> {
        self.conditions.iter().filter(|change| change.condition == Condition::Machine)
    }

    fn judge(&self, sides: &[Side<'_>; 2], limits: &[CostLimit]) -> Vec<LimitRuling> {
        let trials: Vec<Vec<Trial>> =
            limits.iter().map(|limit| self.trials(sides, limit)).collect();
        let all: Vec<&Trial> = trials.iter().flatten().collect();
        let mut judgements = judgements(&all, &|trial| self.is_judged(trial.metric)).into_iter();
        let [_, new] = sides;
        let rulings = limits.iter().zip(&trials).map(|(limit, trials)| {
            let variants: Vec<Judgement> = match limit {
                CostLimit::Relative { .. } => judgements.by_ref().take(trials.len()).collect(),
                CostLimit::Absolute(bound) => new.absolute(*bound),
            };
            LimitRuling::of(*limit, variants)
        });
        rulings.collect()
    }

    /// What is tried for a limit: nothing for an absolute one.
    fn trials(&self, sides: &[Side<'_>; 2], limit: &CostLimit) -> Vec<Trial> {
        let CostLimit::Relative { metric, largest } = limit else { return Vec::new() };
        let names = self.variants.iter();
        let mut trials: Vec<Trial> =
            names.map(|name| Trial::of(sides, name, *metric, *largest)).collect();
        // What no variant has was to be measured, and was not.
        if !trials.iter().all(Trial::is_of_nothing) {
            trials.retain(|trial| !trial.is_of_nothing());
        }
        trials
    }
}

/// What is said of each of these trials, which share the error of a false "worse".
fn judgements(trials: &[&Trial], is_judged: &dyn Fn(&Trial) -> bool) -> Vec<Judgement> {
    let is_tried = |trial: &Trial| is_judged(trial) && trial.not_compared.is_none();
    let tried = trials.iter().filter(|trial| is_tried(trial));
    let hypotheses: Vec<Hypothesis> = tried.map(|trial| trial.hypothesis()).collect();
    let weights: f64 = hypotheses.iter().map(|hypothesis| hypothesis.weight).sum();
    let mut are_worse = rejected(&hypotheses, FALSE_WORSE).into_iter();
    let judgements = trials.iter().map(|trial| {
        let tested = is_tried(trial).then(|| Tested {
            is_worse: are_worse.next().expect("what was tried was decided"),
            error: FALSE_WORSE * trial.hypothesis().weight / weights,
        });
        trial.judgement(tested)
    });
    judgements.collect()
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

    /// The names of the variants that could run.
    fn names(&self) -> impl Iterator<Item = String> {
        self.ran().map(|variant| variant.name.clone())
    }

    fn has_run(&self, name: &str) -> bool {
        self.ran().any(|variant| variant.name == name)
    }

    /// What a bound of the figure itself says of each variant.
    fn absolute(&self, bound: Threshold) -> Vec<Judgement> {
        let records: Vec<&RunRecord> = self.whole.records.iter().collect();
        let seed = self.whole.session.seed;
        self.ran().map(|variant| absolute(bound, &variant.name, &records, seed)).collect()
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
            skipped: self.whole.session.skipped.iter().map(|skip| skip.variant.clone()).collect(),
            disturbed: self.names().filter(|name| self.is_disturbed(name)).collect(),
        }
    }

    /// Whether others used the machine in half of the runs that count, or more.
    fn is_disturbed(&self, name: &str) -> bool {
        are_disturbed(self.whole.valid_runs(name))
    }

    /// The figures of the runs that count.
    fn figures(&self, name: &str, metric: Metric) -> RunFigures {
        self.whole.valid_runs(name).filter_map(|record| record.figure(metric)).collect()
    }

    /// Whether each run that counts has a figure that is not the time-out.
    fn is_whole(&self, name: &str, figures: &RunFigures) -> bool {
        figures.count() == self.whole.valid_runs(name).count() && figures.time_outs().is_none()
    }
}

/// The rates of two common loads if they are far apart.
fn far_rates(base: &Session, new: &Session) -> Option<[f64; 2]> {
    let rates = [base.common_rate_qps?, new.common_rate_qps?];
    let is_far = (rates[1] / rates[0]).ln().abs() > RATE_TOLERANCE.ln_1p();
    is_far.then_some(rates)
}

fn changes(sides: &[Side<'_>; 2], name: &str) -> Vec<VariantChange> {
    Metric::COMPARED.into_iter().filter_map(|metric| change(sides, name, metric)).collect()
}

/// `None` if one of the two did not measure it.
fn change(sides: &[Side<'_>; 2], name: &str, metric: Metric) -> Option<VariantChange> {
    let figures = sides.each_ref().map(|side| side.figures(name, metric));
    let means =
        sides.each_ref().map(|side| side.summary.variant(name)?.metrics.get(&metric).copied());
    let time_outs = figures.each_ref().map(RunFigures::time_outs);
    let [before, after] = figures.each_ref().map(RunFigures::measured);
    let difference = before.zip(after).and_then(|(before, after)| Welch::of(&before, &after));
    let are_known = (0..2).all(|side| means[side].is_some() || time_outs[side].is_some());
    let is_change = difference.is_some() || time_outs.iter().any(Option::is_some);
    let not_compared = not_compared(sides, name, metric);
    let [base, new] = means;
    (are_known && is_change).then(|| VariantChange {
        variant: name.to_owned(),
        metric,
        base,
        new,
        time_outs,
        difference: difference.filter(|_| not_compared.is_none()).map(|found| found.relative),
        not_compared,
        runs: figures.each_ref().map(|figures| u32::try_from(figures.count()).unwrap_or(u32::MAX)),
    })
}

/// Why a figure of a variant is compared with none, by what bounded it in either session.
fn not_compared(sides: &[Side<'_>; 2], name: &str, metric: Metric) -> Option<NotCompared> {
    let why = sides.iter().filter_map(|side| side.summary.variant(name)?.not_compared);
    why.into_iter().find(|why| why.includes(metric))
}

/// A relative limit on one variant, before it is known what else is tried.
struct Trial {
    variant: String,
    metric: Metric,
    /// The change that is just accepted: -0.03 for a rate that may fall by 3 %.
    bound: f64,
    found: Found,
    /// Every run that counts has a value, and none is the time-out.
    is_whole: bool,
    /// Every run of the earlier session has one: what it lacks is the worst of it, and would make a difference look
    /// larger.
    is_base_whole: bool,
    /// In how many runs of the later session it is the time-out.
    time_outs: Option<TimeOuts>,
    /// In how many of the earlier one.
    base_time_outs: Option<TimeOuts>,
    /// The two means differ by more than dnslab itself may add.
    is_beyond_floor: bool,
    /// What that is, as a share of the earlier mean.
    floor: f64,
    /// [`Side::is_disturbed`] holds in either session.
    is_disturbed: bool,
    /// It holds in the earlier one, which then may look worse than it is.
    is_base_disturbed: bool,
    /// Why one of the two sides is not the server's.
    not_compared: Option<NotCompared>,
}

/// How a trial came out.
#[derive(Clone, Copy)]
struct Tested {
    /// It is certainly worse than its limit.
    is_worse: bool,
    /// What this trial would have of the common error if it were the last to be judged.
    error: f64,
}

enum Found {
    /// Of both sessions; a time-out of a run is the least that the value can be.
    Change(Welch),
    /// The change from fewer than [`LEAST_RUNS`].
    TooFew(Estimate),
    /// No run of either has it, though it is no latency: DNS over UDP has no handshakes.
    Nothing,
    /// It was not measured in both.
    Unknown,
}

impl Trial {
    fn of(sides: &[Side<'_>; 2], name: &str, metric: Metric, largest: f64) -> Self {
        let [base_figures, new_figures] = sides.each_ref().map(|side| side.figures(name, metric));
        let (base, new) = (base_figures.at_least(), new_figures.at_least());
        let has_runs =
            |side: &Side<'_>| side.summary.variant(name).is_some_and(|own| own.valid_runs > 0);
        let is_nothing =
            base.is_empty() && new.is_empty() && !metric.is_latency() && sides.iter().all(has_runs);
        let is_base_whole = sides[0].is_whole(name, &base_figures);
        let floors =
            sides.iter().filter_map(|side| floor_of_runs(side.whole.valid_runs(name), metric));
        let floor = floors.fold(0.0, f64::max);
        let distance = mean_of(&new).zip(mean_of(&base)).map(|(new, base)| (new - base).abs());
        let found = match Welch::of(&base, &new) {
            Some(change) if base.len().min(new.len()) < LEAST_RUNS => {
                Found::TooFew(change.relative)
            }
            Some(change) => Found::Change(change),
            None if is_nothing => Found::Nothing,
            None => Found::Unknown,
        };
        Self {
            variant: name.to_owned(),
            metric,
            bound: if metric.higher_is_better() { -largest } else { largest },
            found,
            is_whole: is_base_whole && sides[1].is_whole(name, &new_figures),
            is_base_whole,
            time_outs: new_figures.time_outs(),
            base_time_outs: base_figures.time_outs(),
            is_beyond_floor: distance.is_some_and(|distance| distance > floor),
            floor: mean_of(&base).map_or(0.0, |base| floor / base),
            is_disturbed: sides.iter().any(|side| side.is_disturbed(name)),
            is_base_disturbed: sides[0].is_disturbed(name),
            not_compared: not_compared(sides, name, metric),
        }
    }

    fn is_of_nothing(&self) -> bool {
        matches!(self.found, Found::Nothing)
    }

    /// That it is no worse than the limit.
    fn hypothesis(&self) -> Hypothesis {
        Hypothesis { p: self.p_of_no_worse(), weight: self.metric.weight(None) }
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
            Found::TooFew(_) | Found::Nothing | Found::Unknown => 1.0,
        }
    }

    fn is_within(&self) -> bool {
        match &self.found {
            Found::Change(change) if self.metric.higher_is_better() => {
                self.bound <= -1.0 || change.relative.low >= self.bound
            }
            Found::Change(change) => change.relative.high <= self.bound,
            Found::TooFew(_) | Found::Nothing | Found::Unknown => false,
        }
    }

    /// What is said of it; `None` if it is not tried.
    fn judgement(&self, tested: Option<Tested>) -> Judgement {
        let is_worse = tested.is_some_and(|tested| tested.is_worse);
        // A change as large as the bound could hide in what dnslab itself may add.
        let is_coarse = match self.is_within() {
            true => self.floor > self.bound.abs(),
            false => is_worse && !self.is_told_apart(),
        };
        let decision = match (self.is_within(), is_worse) {
            _ if tested.is_none() || is_coarse => Decision::UNCLEAR,
            (true, _) if !self.is_whole => Decision::UNCLEAR,
            (true, _) if self.is_base_disturbed => Decision::Disturbed,
            (true, _) => Decision::Ruled(Ruling::Pass),
            (false, true) if !self.is_base_whole => Decision::UNCLEAR,
            (false, true) if self.is_disturbed => Decision::Disturbed,
            (false, true) => Decision::Ruled(Ruling::Fail),
            (false, false) => Decision::UNCLEAR,
        };
        let found = match &self.found {
            Found::Change(change) => Some(change.relative),
            Found::TooFew(relative) => Some(*relative),
            Found::Nothing | Found::Unknown => None,
        };
        let has_measure =
            self.not_compared.is_none() && self.time_outs.or(self.base_time_outs).is_none();
        // Only a spread that is too wide is mended by more runs.
        let is_open =
            decision == Decision::UNCLEAR && self.is_whole && !self.is_base_disturbed && !is_coarse;
        Judgement {
            found: found.filter(|_| has_measure),
            time_outs: self.time_outs,
            reference_time_outs: self.base_time_outs,
            not_compared: self.not_compared,
            floor: is_coarse.then_some(self.floor),
            more_runs: tested.filter(|_| is_open).and_then(|tested| self.more_runs(tested.error)),
            ..Judgement::of(&self.variant, decision)
        }
    }

    /// How many more runs of each session would probably tell, at this share of the common error.
    fn more_runs(&self, error: f64) -> Option<u32> {
        let Found::Change(change) = &self.found else { return None };
        let is_over = match self.metric.higher_is_better() {
            true => change.relative.value < self.bound,
            false => change.relative.value > self.bound,
        };
        let error = if is_over { error } else { FALSE_WORSE };
        change.more_runs(self.bound, error, MAX_MORE_RUNS)
    }

    /// Whether dnslab's own error leaves it certain that a bound is broken. Not to have become as much better as a
    /// bound asks for is no difference.
    fn is_told_apart(&self) -> bool {
        let asks_for_gain =
            self.bound != 0.0 && (self.bound > 0.0) == self.metric.higher_is_better();
        self.is_beyond_floor || asks_for_gain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng as _, SeedableRng as _};
    use rand_distr::StandardNormal;
    use rand_xoshiro::Xoshiro256PlusPlus;

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
        let mut alarms = 0;
        for _ in 0..pairs {
            let mut trials = Vec::new();
            for (metric, bound) in metrics.into_iter().chain(metrics) {
                trials.push(trial(metric, bound, Welch::of(&runs(), &runs()).unwrap()));
            }
            let found = judgements(&trials.iter().collect::<Vec<_>>(), &|_| true);
            alarms += usize::from(found.iter().any(|one| one.ruling == Ruling::Fail));
        }
        alarms
    }

    /// Of runs that are whole and were not disturbed.
    fn trial(metric: Metric, bound: f64, change: Welch) -> Trial {
        Trial {
            variant: String::new(),
            metric,
            bound,
            found: Found::Change(change),
            is_whole: true,
            is_base_whole: true,
            time_outs: None,
            base_time_outs: None,
            is_beyond_floor: true,
            floor: 0.0,
            is_disturbed: false,
            is_base_disturbed: false,
            not_compared: None,
        }
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
