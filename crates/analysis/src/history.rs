//! One metric over many sessions, and where its level changed.

use std::ops::Range;

use dnslab_record::{Metric, TimeOuts};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::disturbed::are_disturbed;
use crate::not_compared::NotCompared;
use crate::quantiles::RunFigures;
use crate::session_comparison::conditions::{self, ConditionChange};
use crate::statistics::{Estimate, mean};
use crate::whole_session::WholeSession;

/// The chance that a change is named in sessions without one, each time that a stretch of sessions is
/// searched.
const ERROR: f64 = 0.01;

/// Sessions on each side of a change: with one there is no spread to hold it against.
const MIN_SIDE: usize = 2;

/// One metric over many sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The metric.
    pub metric: Metric,
    /// The sessions, the oldest first.
    pub sessions: Vec<HistorySession>,
    /// Each variant that any session measured, in the order of their first session.
    pub variants: Vec<VariantHistory>,
}

/// A session of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct HistorySession {
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// Name of the experiment.
    pub name: String,
    /// Version of dnslab.
    pub dnslab: String,
    /// Kind and version of each server whose runs count, each once.
    pub servers: Vec<[String; 2]>,
    /// What differs from the session before.
    pub changed: Vec<ConditionChange>,
}

/// One variant of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantHistory {
    /// Its name.
    pub variant: String,
    /// The sessions that measured it, in their order.
    pub points: Vec<HistoryPoint>,
    /// Where the level changed beyond the spread of the sessions, in their order. None is looked for if a value
    /// is not the server's ([`NotCompared`]).
    pub changes: Vec<LevelChange>,
}

/// A variant in one session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HistoryPoint {
    /// Place in [`History::sessions`].
    pub session: usize,
    /// Mean over the runs that count, in the unit of the metric, with its 95 % interval over these runs. A run in
    /// which it is the time-out counts with that, so the value is then the least that it can be.
    pub value: Estimate,
    /// In how many of these runs it is the time-out; `None` if in none.
    pub time_outs: Option<TimeOuts>,
    /// Number of these runs.
    pub runs: u32,
    /// Why this value is not the server's; `None` if it is.
    pub not_compared: Option<NotCompared>,
    /// Other programs held up half of these runs or more: no change is looked for here.
    pub is_disturbed: bool,
}

/// A place between two points where the level of a variant changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelChange {
    /// Place in [`VariantHistory::points`] of the first one with the new level.
    pub at: usize,
    /// Relative difference of the sessions from here to the next change from those since the change before,
    /// with its 95 % interval.
    pub difference: Estimate,
}

impl History {
    /// Puts sessions in the order of time. Runs that do not count are in no figure.
    #[must_use]
    pub fn of(metric: Metric, sessions: &[WholeSession<'_>]) -> Self {
        let mut sessions = sessions.to_vec();
        // RFC 3339 in UTC is in the order of time.
        sessions.sort_by(|one, other| one.session.started.cmp(&other.session.started));
        let mut variants: Vec<VariantHistory> = Vec::new();
        for (place, whole) in sessions.iter().enumerate() {
            for name in &whole.session.variants {
                let Some(point) = HistoryPoint::of(place, whole, name, metric) else { continue };
                match variants.iter_mut().find(|history| history.variant == *name) {
                    Some(known) => known.points.push(point),
                    None => variants.push(VariantHistory {
                        variant: name.clone(),
                        points: vec![point],
                        changes: Vec::new(),
                    }),
                }
            }
        }
        for variant in &mut variants {
            variant.changes = changes(&variant.points);
        }
        let facts = (0..sessions.len()).map(|place| {
            let whole = sessions[place];
            let before = place.checked_sub(1).map(|before| sessions[before]);
            let changed = before.map_or_else(Vec::new, |before| {
                conditions::changed(before, whole, &whole.session.variants)
            });
            HistorySession {
                started: whole.session.started.clone(),
                name: whole.session.name.clone(),
                dnslab: whole.session.dnslab.clone(),
                servers: whole.servers(),
                changed,
            }
        });
        Self { metric, sessions: facts.collect(), variants }
    }
}

impl HistoryPoint {
    /// A variant in the session at this place; `None` if no run that counts has the figure.
    fn of(place: usize, whole: &WholeSession<'_>, name: &str, metric: Metric) -> Option<Self> {
        let counted = whole.valid_runs(name);
        let figures: RunFigures =
            counted.clone().filter_map(|record| record.figure(metric)).collect();
        // A session that lost so much is no gap in its history.
        let value = mean(&figures.at_least(), whole.session.seed)?;
        let not_compared = NotCompared::of(counted.clone().map(|record| &record.bottleneck));
        let not_compared = not_compared.filter(|why| why.includes(metric));
        Some(Self {
            session: place,
            value: match not_compared {
                Some(NotCompared::Generator) => Estimate::unbounded(value.value),
                _ => value,
            },
            time_outs: figures.time_outs(),
            runs: u32::try_from(figures.count()).unwrap_or(u32::MAX),
            not_compared,
            is_disturbed: are_disturbed(counted),
        })
    }
}

/// Where the level of a variant changed. What others did to the machine is no change of the server.
fn changes(points: &[HistoryPoint]) -> Vec<LevelChange> {
    if points.iter().any(|point| point.not_compared.is_some()) {
        return Vec::new();
    }
    let quiet: Vec<usize> = (0..points.len()).filter(|at| !points[*at].is_disturbed).collect();
    let values: Vec<f64> = quiet.iter().map(|at| points[*at].value.value).collect();
    let changes = level_changes(&values).into_iter();
    changes.map(|change| LevelChange { at: quiet[change.at], ..change }).collect()
}

/// Where the level of these values changed: by circular binary segmentation (Olshen, Venkatraman, Lucito, Wigler,
/// Biostatistics 5, 2004). The stretch of sessions whose mean differs most certainly from that of all others
/// around it is a level of its own, if it stands out at [`ERROR`] over all stretches that were tried
/// (Bonferroni). Its two ends are changes, or the one that is not an end of the whole, and what is before,
/// inside and after it is searched in the same way. So a level that comes and goes is found too.
///
/// The values are means of sessions, so the spread is that from session to session, which is larger than that
/// of the runs. Values that drift have changes too: they have no level.
fn level_changes(values: &[f64]) -> Vec<LevelChange> {
    if !values.iter().all(|value| value.is_finite() && *value > 0.0) {
        return Vec::new();
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mut borders = vec![0, values.len()];
    search(&logarithms, 0, &mut borders);
    borders.sort_unstable();
    let changes = borders.windows(3).filter_map(|places| {
        let &[from, at, to] = places else { return None };
        let found = Sums::of(&logarithms[from..to]).difference(0..at - from)?;
        // One end of a stretch may be no change by itself.
        (found.chance() <= ERROR).then(|| LevelChange { at, difference: found.relative() })
    });
    changes.collect()
}

/// `offset` is the place of the first value in the whole.
fn search(logarithms: &[f64], offset: usize, borders: &mut Vec<usize>) {
    let count = logarithms.len();
    let sums = Sums::of(logarithms);
    let stretches = (0..count).flat_map(|from| {
        let ends = from + MIN_SIDE..=count;
        ends.map(move |to| from..to).filter(move |stretch| count - stretch.len() >= MIN_SIDE)
    });
    // What is outside of a stretch at the end is a stretch at the beginning.
    let stretches = stretches.filter(|stretch| stretch.start > 0);
    let (mut tried, mut best) = (0_u32, (f64::INFINITY, 0..0));
    for stretch in stretches {
        tried += 1;
        let chance = sums.difference(stretch.clone()).map_or(1.0, |found| found.chance());
        if chance < best.0 {
            best = (chance, stretch);
        }
    }
    let (chance, stretch) = best;
    if tried == 0 || chance * f64::from(tried) > ERROR {
        return;
    }
    for part in [0..stretch.start, stretch.clone(), stretch.end..count] {
        borders.extend([part.start, part.end].map(|end| offset + end));
        search(&logarithms[part.clone()], offset + part.start, borders);
    }
    borders.sort_unstable();
    borders.dedup();
}

/// Sums of values and of their squares up to each place, so that a stretch costs two subtractions.
struct Sums {
    values: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn of(logarithms: &[f64]) -> Self {
        // Around the first value, so that equal ones give exactly nothing.
        let first = logarithms.first().copied().unwrap_or(0.0);
        let values = logarithms.iter().map(|value| value - first);
        Self {
            values: running_sums(values.clone()),
            squares: running_sums(values.map(|value| value * value)),
        }
    }

    /// The values outside of a stretch less those inside it; `None` if nothing is outside, or there is no
    /// spread to hold it against.
    fn difference(&self, inside: Range<usize>) -> Option<Outstanding> {
        let [sums, squares] = [&self.values, &self.squares].map(|sums| {
            let within = sums[inside.end] - sums[inside.start];
            [within, sums[sums.len() - 1] - within]
        });
        let all = self.values.len() - 1;
        let counts = [inside.len() as f64, (all - inside.len()) as f64];
        let freedom = all as f64 - 2.0;
        if counts.contains(&0.0) || freedom <= 0.0 {
            return None;
        }
        let [within, around] = [0, 1].map(|side| sums[side] / counts[side]);
        let rests = [0, 1].map(|side| squares[side] - sums[side] * sums[side] / counts[side]);
        let rest = rests.iter().sum::<f64>();
        // What is left of equal values by rounding is nothing.
        let rest = if rest <= 1e-12 * squares.iter().sum::<f64>() { 0.0 } else { rest };
        let error = (rest / freedom * (1.0 / counts[0] + 1.0 / counts[1])).sqrt();
        Some(Outstanding { difference: around - within, error, freedom })
    }
}

/// The sum of what comes before each place, and of all.
fn running_sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let sums = values.map(|value| {
        sum += value;
        sum
    });
    std::iter::once(0.0).chain(sums).collect()
}

/// A difference of logarithms between two parts of one spread, with its standard error (Student's, pooled).
struct Outstanding {
    difference: f64,
    error: f64,
    freedom: f64,
}

impl Outstanding {
    fn student(&self) -> StudentsT {
        StudentsT::new(0.0, 1.0, self.freedom).expect("there is a degree of freedom")
    }

    /// How likely it is if there is none (two-sided).
    fn chance(&self) -> f64 {
        match self.error {
            0.0 => f64::from(u8::from(self.difference == 0.0)),
            error => 2.0 * self.student().sf((self.difference / error).abs()),
        }
    }

    fn relative(&self) -> Estimate {
        let half = match self.error {
            0.0 => 0.0,
            error => self.student().inverse_cdf(0.975) * error,
        };
        let [low, value, high] = [-half, 0.0, half].map(|by| (self.difference + by).exp_m1());
        Estimate { value, low, high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng as _, SeedableRng as _};
    use rand_distr::StandardNormal;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn places(values: &[f64]) -> Vec<usize> {
        level_changes(values).iter().map(|change| change.at).collect()
    }

    #[test]
    fn a_level_that_changed_beyond_the_spread_is_found() {
        let before = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
        let after = [80.1, 79.5, 80.4, 79.9, 80.6];
        let values = [&before[..], &after].concat();
        let [change] = level_changes(&values)[..] else { panic!("{:?}", level_changes(&values)) };
        assert_eq!(change.at, 6);
        assert!((change.difference.value + 0.2).abs() < 0.01, "{change:?}");
        // And back.
        assert_eq!(places(&[&values[..], &before].concat()), [6, 11]);
        assert_eq!(places(&before), [0; 0]);
        // One session beside the others is no level, and one or three are no history.
        assert_eq!(places(&[100.0, 101.0, 99.0, 60.0, 100.5, 99.5, 100.2]), [0; 0]);
        for few in [&[][..], &[100.0], &[100.0, 50.0, 100.0]] {
            assert_eq!(places(few), [0; 0]);
        }
        // What never moved has changed if it moves once for good.
        assert_eq!(places(&[5.0, 5.0, 5.0, 6.0, 6.0]), [3]);
        assert_eq!(places(&[5.0; 8]), [0; 0]);
    }

    /// Of a hundred histories without a change one at most has one: with normal noise from session to session.
    /// The bound is five standard errors (0.22 %) beyond 1 %.
    #[test]
    fn sessions_without_a_change_have_none() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(42);
        for length in [5, 12, 40] {
            let mut draw = |_| 100.0 * (0.05 * random.sample::<f64, _>(StandardNormal)).exp();
            let found = (0..2_000)
                .filter(|_| !places(&(0..length).map(&mut draw).collect::<Vec<f64>>()).is_empty())
                .count();
            assert!(found <= 42, "{found} of 2,000 histories of {length} sessions");
        }
    }
}
