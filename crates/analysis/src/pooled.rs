//! Several sessions of one experiment together: what holds from session to session.
//!
//! Runs of one session share the hour, the memory that their servers were given, and what else the machine did. So
//! their spread says nothing of the next session, and the session is the unit here: each gives one difference for each
//! pair of variants and metric. The mean of these has Student's interval over sessions, and the next session an
//! interval of prediction (Hahn, Technometrics 11, 1969, for one further value): sessions are a random effect, analysed
//! in two stages with equal weights, as the rounds of each are equally many.

use std::cmp::Reverse;

use dnslab_record::{Looks, Metric, Unit};
use serde::Serialize;

use crate::answering::first_of_pairs;
use crate::session_comparison::conditions::{self, Condition, ConditionChange};
use crate::statistics::{Comparison, Estimate, Pair, Paired, ValuePair, Verdict};
use crate::summary::Summary;
use crate::whole_session::WholeSession;

/// Several sessions of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pooled {
    /// Name of the experiment.
    pub name: String,
    /// The sessions with one set of settings, the oldest first.
    pub sessions: Vec<PooledSession>,
    /// The metrics that answer the question, the first one first.
    pub answered_by: Vec<Metric>,
    /// Each metric of each pair of variants that two of them have, or more.
    pub differences: Vec<PooledDifference>,
    /// Sessions with other settings: what the choice of a setting moves.
    pub beside: Vec<Beside>,
}

/// A session of several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PooledSession {
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// Kind and version of each server whose runs count, each once.
    pub servers: Vec<[String; 2]>,
    /// Rounds in which a run counts.
    pub rounds: u32,
    /// What differs from the first session but for its settings.
    pub changed: Vec<ConditionChange>,
}

/// One metric of one variant against another one, over sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PooledDifference {
    /// The difference of the sessions' means; its rounds are sessions.
    pub over_sessions: Comparison,
    /// Geometric mean of the reference over the sessions, in the unit of the metric.
    pub reference: f64,
    /// Where the relative difference of a further session lies in 95 of 100 cases.
    pub next: Estimate,
    /// Where its difference in the unit of the metric lies.
    pub next_absolute: Estimate,
    /// The relative difference of each session with the interval of its own rounds.
    pub each: Vec<Estimate>,
}

impl PooledDifference {
    /// Whether a further session could well have found this: as time where the metric is one, else relative.
    fn predicts(&self, found: &Comparison) -> bool {
        let time = found.absolute.filter(|_| found.metric.unit() == Unit::Duration);
        let (value, next) = match time {
            Some(time) => (time.value, self.next_absolute),
            None => (found.difference.value, self.next),
        };
        (next.low..=next.high).contains(&value)
    }

    /// In how many sessions the interval of their own rounds misses the mean of all. Far more than one of twenty: the
    /// sessions differ by more than their rounds say.
    #[must_use]
    pub fn missed_by(&self) -> usize {
        let mean = self.over_sessions.difference.value;
        self.each.iter().filter(|own| !(own.low..=own.high).contains(&mean)).count()
    }
}

/// A session whose settings differ from those that are pooled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// The settings that differ.
    pub changed: Vec<ConditionChange>,
    /// Its differences by the first metric that answers the question and was compared.
    pub differences: Vec<BesideDifference>,
}

/// A difference of a session with other settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BesideDifference {
    /// As that session found it.
    pub found: Comparison,
    /// Whether it lies where a further session with the pooled settings would lie; `None` if these do not say.
    pub is_as_predicted: Option<bool>,
}

/// Why sessions cannot be pooled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPooled {
    /// They are of two experiments.
    #[error(
        "the sessions are of two experiments, `{0}` and `{1}`\n  hint:    name the results directories of one \
         experiment"
    )]
    Experiments(String, String),
    /// A single one has no spread.
    #[error(
        "one session says nothing of the next: two or more with the same settings are needed\n  hint:    `dnslab run \
         --publish`, or run the experiment again at another hour and name both results directories"
    )]
    TooFew,
}

/// A session with its figures.
struct Summarised<'a> {
    whole: WholeSession<'a>,
    summary: Summary,
}

impl Pooled {
    /// Pools the sessions that have the settings of most, of equally many those of the earliest. The others stand
    /// beside them.
    ///
    /// # Errors
    /// When they are of several experiments, or fewer than two have the same settings.
    pub fn of(sessions: &[WholeSession<'_>]) -> Result<Self, NotPooled> {
        let mut sessions = sessions.to_vec();
        // RFC 3339 in UTC is in the order of time.
        sessions.sort_by(|one, other| one.session.started.cmp(&other.session.started));
        let Some(first) = sessions.first() else { return Err(NotPooled::TooFew) };
        let name = &first.session.name;
        if let Some(other) = sessions.iter().find(|other| other.session.name != *name) {
            let other = other.session.name.clone();
            return Err(NotPooled::Experiments(name.clone(), other));
        }
        let summarised = sessions.iter().map(|whole| Summarised {
            whole: *whole,
            summary: Summary::of(whole.session, whole.records),
        });
        let (alike, others) = with_settings_of_most(summarised.collect());
        if alike.len() < 2 {
            return Err(NotPooled::TooFew);
        }
        let first = &alike[0];
        let differences = differences(&alike, first.whole.session.margin);
        Ok(Self {
            name: name.clone(),
            sessions: alike.iter().map(|own| own.facts(first)).collect(),
            answered_by: first.summary.answering_metrics(),
            beside: others.iter().map(|own| own.beside(first, &differences)).collect(),
            differences,
        })
    }

    /// Each pair of variants by the first metric that answers the question and was pooled. A control is no
    /// difference.
    #[must_use]
    pub fn answering(&self) -> Vec<&PooledDifference> {
        first_of_pairs(&self.differences, &self.answered_by, |found| &found.over_sessions)
    }
}

impl Summarised<'_> {
    /// What differs from another session but for the seed: what is drawn at random is in the spread of the sessions.
    fn changed_from(&self, other: &Self) -> Vec<ConditionChange> {
        let mut changed =
            conditions::changed(other.whole, self.whole, &self.whole.session.variants);
        changed.retain(|change| change.name != "repeat.seed");
        changed
    }

    fn has_settings_of(&self, other: &Self) -> bool {
        let is_setting = |change: &ConditionChange| change.condition == Condition::Experiment;
        !self.changed_from(other).iter().any(is_setting)
    }

    fn facts(&self, first: &Self) -> PooledSession {
        let valid = self.whole.records.iter().filter(|record| record.is_valid());
        let mut rounds: Vec<u32> = valid.map(|record| record.repetition).collect();
        rounds.sort_unstable();
        rounds.dedup();
        PooledSession {
            started: self.whole.session.started.clone(),
            servers: self.whole.servers(),
            rounds: u32::try_from(rounds.len()).unwrap_or(u32::MAX),
            changed: self.changed_from(first),
        }
    }

    /// The values of a pair of variants, as one round of many.
    fn value_pair(&self, found: &Comparison) -> Option<ValuePair> {
        let reference = self.summary.variant(&found.against)?.metrics.get(&found.metric)?.value;
        Some(ValuePair { reference, own: reference * (1.0 + found.difference.value) })
    }

    fn comparison(&self, like: &Comparison) -> Option<&Comparison> {
        self.summary.comparisons.iter().find(|other| other.is_of_same_figure(like))
    }

    fn beside(&self, first: &Self, pooled: &[PooledDifference]) -> Beside {
        let answering = self.summary.answering_comparisons().into_iter();
        let differences = answering.map(|found| {
            let mut pooled = pooled.iter();
            let like = pooled.find(|pooled| pooled.over_sessions.is_of_same_figure(found));
            let is_as_predicted = like.map(|pooled| pooled.predicts(found));
            BesideDifference { found: found.clone(), is_as_predicted }
        });
        let mut changed = self.changed_from(first);
        changed.retain(|change| change.condition == Condition::Experiment);
        Beside {
            started: self.whole.session.started.clone(),
            changed,
            differences: differences.collect(),
        }
    }
}

/// The sessions that have the settings of most, of equally many those of the earliest; and the others. Each in the
/// order of time.
fn with_settings_of_most(
    sessions: Vec<Summarised<'_>>,
) -> (Vec<Summarised<'_>>, Vec<Summarised<'_>>) {
    let mut groups: Vec<Vec<Summarised<'_>>> = Vec::new();
    for own in sessions {
        match groups.iter_mut().find(|group| own.has_settings_of(&group[0])) {
            Some(group) => group.push(own),
            None => groups.push(vec![own]),
        }
    }
    let most = (0..groups.len()).max_by_key(|place| (groups[*place].len(), Reverse(*place)));
    let alike = most.map(|place| groups.remove(place)).unwrap_or_default();
    let mut others: Vec<Summarised<'_>> = groups.into_iter().flatten().collect();
    others.sort_by(|one, other| one.whole.session.started.cmp(&other.whole.session.started));
    (alike, others)
}

/// What two of these sessions have or more, in the order of the first one that has it.
fn differences(sessions: &[Summarised<'_>], margin: f64) -> Vec<PooledDifference> {
    let mut like: Vec<&Comparison> = Vec::new();
    for found in sessions.iter().flat_map(|session| &session.summary.comparisons) {
        if !like.iter().any(|known| known.is_of_same_figure(found)) {
            like.push(found);
        }
    }
    let pairs: Vec<Pair> = like.into_iter().filter_map(|found| pair(sessions, found)).collect();
    let answered_by = sessions.first().and_then(|session| session.summary.answered_by);
    let compared = Comparison::of_report(pairs.clone(), margin, answered_by);
    let differences = pairs.iter().zip(compared).map(|(Pair { paired, .. }, over_sessions)| {
        let (next, next_absolute) = paired.next();
        let each = sessions.iter().filter_map(|own| own.comparison(&over_sessions));
        let each = each.map(|found| found.difference).collect();
        PooledDifference { reference: paired.reference, next, next_absolute, each, over_sessions }
    });
    differences.collect()
}

/// The difference with each session as a round; `None` where fewer than two have it.
fn pair(sessions: &[Summarised<'_>], like: &Comparison) -> Option<Pair> {
    let values = sessions.iter().filter_map(|own| {
        let found = own.comparison(like)?;
        let value = own.value_pair(found)?;
        Some((value, found.floor * value.reference))
    });
    let (values, floors): (Vec<ValuePair>, Vec<f64>) = values.unzip();
    let paired = Paired::of(&values, Looks::Once).filter(|paired| paired.pairs > 1)?;
    Some(Pair {
        variant: like.variant.clone(),
        against: like.against.clone(),
        metric: like.metric,
        floor: floors.into_iter().fold(0.0, f64::max),
        is_control: like.verdict == Verdict::Control,
        // What others do to a session is in the spread of the sessions.
        is_disturbed: false,
        paired,
    })
}
