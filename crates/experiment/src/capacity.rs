//! Which step of a search for the capacity comes next: a state machine that is told the outcome of each step
//! and has no effects.

mod next;
mod sweep;

use std::collections::VecDeque;

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{Run, Trial, of_server, threshold};
use dnslab_record::{End, Judged, Phase, RateSearch};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) use next::Next;
pub(crate) use sweep::{Spread, Sweep};

/// Factor between two rates of the ramp.
const RAMP: f64 = 2.0;

/// Rates at which the edge is repeated at first. The edge lies at the third; an odd number puts as many below
/// as above it.
const LEVELS: i32 = 5;

/// Rates that may be added when the edge lies at the end of those repeated.
const MAX_ADDED: u32 = 6;

/// Violations in a row that end a rate: one may be a disturbance.
const VIOLATIONS: usize = 2;

/// Violations in a row at the lowest rate, where they end the search.
const VIOLATIONS_AT_LOWEST: usize = 3;

/// How often the search goes back to the ramp when the repeats show that the bracket was too low.
const MAX_RESTARTS: u32 = 2;

/// Rates that are added above before the bracket counts as too low.
const ADDED_BEFORE_RESTART: u32 = 2;

/// Share of the runs at a rate that may violate before the rate counts as unconfirmed: a disturbance in one
/// of five.
const SPOILT: f64 = 0.2;

/// The search for the highest rate that meets an objective.
///
/// 1. **Ramp**: from the lowest rate up by factors of two until one is violated. A violation counts if the
///    rate violates twice in a row: one may be a disturbance. The lowest rate takes three, since the search
///    ends there.
/// 2. **Bracket**: bisection between the last rate that was met and the violated one, in the logarithm of
///    the rate, until the bracket is as narrow as asked. Violations count as in 1.
/// 3. **Repeat**: runs at five rates around the edge, half a tolerance apart, in rounds of random order, so
///    that a slow change of the machine does not fall on one rate. If the edge then lies outside the inner
///    ones, rates are added on that side. If it lies far above, two disturbances in a row have put the
///    bracket too low, and the ramp goes on from there.
/// 4. **Confirm**, instead of 3 if nothing lies above: the highest rate that was met is repeated, because no
///    higher one is allowed or the generator cannot send more.
///
/// A run that fails is repeated once; two failures in a row end the search.
#[derive(Debug)]
pub(crate) struct Search {
    settings: RateSearch,
    state: State,
    runs: Vec<Run>,
    /// The violations in a row at the present rate, which do not count yet.
    doubted: Vec<Violation>,
    restarts: u32,
    has_failed: bool,
    random: Xoshiro256PlusPlus,
}

/// What was the bottleneck when a rate was not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Violation {
    OfServer,
    OfGenerator,
}

#[derive(Debug)]
enum State {
    Ramp {
        at: f64,
        /// The rate before, which was met.
        met: Option<f64>,
    },
    Bracket {
        /// The highest rate that was met.
        low: f64,
        at: f64,
        /// The lowest that was not met.
        high: f64,
        /// What was the bottleneck there.
        above: Violation,
    },
    Repeat(Repeats),
    Confirm {
        at: f64,
        /// Which end it is if confirmed: `OfServer` gives `Max`, `OfGenerator` gives `Generator`.
        because: Violation,
        /// The factor by which the next rate is lower if it is not confirmed.
        lower: f64,
    },
    Done(End),
}

#[derive(Debug, Default)]
struct Repeats {
    /// Ascending.
    levels: Vec<f64>,
    queue: VecDeque<f64>,
    /// Number of rates that were added.
    added: u32,
    /// Runs that were not met because of the server.
    of_server: u32,
    /// Runs that were not met because of the generator.
    of_generator: u32,
}

impl Search {
    pub(crate) fn new(settings: RateSearch) -> Self {
        let at = rounded(settings.from_qps);
        let random = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
        let state = State::Ramp { at, met: None };
        Self {
            settings,
            state,
            runs: Vec::new(),
            doubted: Vec::new(),
            restarts: 0,
            has_failed: false,
            random,
        }
    }

    pub(crate) fn next(&self) -> Next {
        match &self.state {
            State::Ramp { at, .. } => Next::Step { phase: Phase::Ramp, at: *at },
            State::Bracket { at, .. } => Next::Step { phase: Phase::Bracket, at: *at },
            State::Confirm { at, .. } => Next::Step { phase: Phase::Confirm, at: *at },
            State::Repeat(repeats) => {
                let at = *repeats.queue.front().expect("an empty queue ends the repeats");
                Next::Step { phase: Phase::Repeat, at }
            }
            State::Done(end) => Next::Done(end.clone()),
        }
    }

    /// Takes the outcome of the step that [`Search::next`] named.
    pub(crate) fn push(&mut self, judged: &Judged) {
        let Next::Step { at, .. } = self.next() else { return };
        let violation = match judged {
            Judged::Failed { reason } => {
                if std::mem::replace(&mut self.has_failed, true) {
                    self.state = State::Done(End::Failed { reason: reason.clone() });
                }
                return;
            }
            Judged::Met => None,
            Judged::Violated { .. } => Some(Violation::OfServer),
            Judged::GeneratorLimited { .. } => Some(Violation::OfGenerator),
        };
        self.has_failed = false;
        let met = match violation {
            None => Some(true),
            Some(Violation::OfServer) => Some(false),
            Some(Violation::OfGenerator) => None,
        };
        self.runs.push(Run { qps: at, met });
        let state = std::mem::replace(&mut self.state, State::Done(End::Edge));
        self.state = match state {
            State::Ramp { at, met } => self.ramp(at, met, violation),
            State::Bracket { low, at, high, above } => {
                self.bracket(low, at, (high, above), violation)
            }
            State::Repeat(repeats) => self.repeat(repeats, violation),
            State::Confirm { at, because, lower } => self.confirm(at, because, lower),
            State::Done(end) => State::Done(end),
        };
    }

    /// A violation counts after `needed` in a row; `Err` to try the rate once more before. If two do not
    /// agree whether the generator is to blame, a third decides.
    fn counted(
        &mut self,
        violation: Option<Violation>,
        needed: usize,
    ) -> Result<Option<Violation>, ()> {
        let Some(now) = violation else {
            self.doubted.clear();
            return Ok(None);
        };
        self.doubted.push(now);
        let runs = self.doubted.len();
        let of_server =
            self.doubted.iter().filter(|violation| **violation == Violation::OfServer).count();
        if runs < needed || 2 * of_server == runs {
            return Err(());
        }
        self.doubted.clear();
        let is_server = 2 * of_server > runs;
        Ok(Some(if is_server { Violation::OfServer } else { Violation::OfGenerator }))
    }

    fn ramp(&mut self, at: f64, met: Option<f64>, violation: Option<Violation>) -> State {
        let needed = if met.is_some() { VIOLATIONS } else { VIOLATIONS_AT_LOWEST };
        match (self.counted(violation, needed), met) {
            (Err(()), _) => State::Ramp { at, met },
            (Ok(None), _) if at >= self.settings.max_qps => {
                self.confirm(at, Violation::OfServer, 1.0)
            }
            (Ok(None), _) => {
                State::Ramp { at: (RAMP * at).min(self.settings.max_qps), met: Some(at) }
            }
            (Ok(Some(above)), Some(low)) => self.narrow(low, at, above),
            (Ok(Some(Violation::OfServer)), None) => State::Done(End::Lowest),
            (Ok(Some(Violation::OfGenerator)), None) => State::Done(End::Generator { qps: None }),
        }
    }

    fn bracket(
        &mut self,
        low: f64,
        at: f64,
        (high, above): (f64, Violation),
        violation: Option<Violation>,
    ) -> State {
        match self.counted(violation, VIOLATIONS) {
            Err(()) => State::Bracket { low, at, high, above },
            Ok(None) => self.narrow(at, high, above),
            Ok(Some(above)) => self.narrow(low, at, above),
        }
    }

    fn narrow(&mut self, low: f64, high: f64, above: Violation) -> State {
        let at = rounded((low * high).sqrt());
        let is_narrow = high <= low * (1.0 + self.settings.tolerance);
        if !is_narrow && low < at && at < high {
            return State::Bracket { low, at, high, above };
        }
        match above {
            Violation::OfServer => self.begin_repeats((low * high).sqrt()),
            Violation::OfGenerator => self.confirm(low, above, 1.0 + self.settings.tolerance),
        }
    }

    /// The edge is near `bracket`, unless all runs together say otherwise.
    fn begin_repeats(&mut self, bracket: f64) -> State {
        let centre = self.edge().map_or(bracket, |edge| edge.value);
        let spacing = 1.0 + self.settings.tolerance / 2.0;
        let level = |number: i32| centre * spacing.powi(number - LEVELS / 2);
        let mut levels: Vec<f64> =
            (0..LEVELS).map(|number| rounded(level(number).min(self.settings.max_qps))).collect();
        levels.dedup();
        let mut repeats = Repeats { levels, ..Repeats::default() };
        for _ in 0..self.settings.repeats.max(1) {
            let mut round = repeats.levels.clone();
            round.shuffle(&mut self.random);
            repeats.queue.extend(round);
        }
        State::Repeat(repeats)
    }

    fn repeat(&mut self, mut repeats: Repeats, violation: Option<Violation>) -> State {
        repeats.queue.pop_front();
        match violation {
            Some(Violation::OfServer) => repeats.of_server += 1,
            Some(Violation::OfGenerator) => repeats.of_generator += 1,
            None => {}
        }
        if !repeats.queue.is_empty() {
            return State::Repeat(repeats);
        }
        let Some(edge) = self.edge() else {
            // All were met: there is no edge up to the highest allowed rate.
            return State::Done(End::Max { qps: self.settings.max_qps });
        };
        let highest = repeats.levels.last().copied().unwrap_or(edge.value);
        let is_above = edge.value > highest && highest < self.settings.max_qps;
        if is_above && repeats.added >= ADDED_BEFORE_RESTART && self.restarts < MAX_RESTARTS {
            self.restarts += 1;
            let at = rounded(RAMP * highest).min(self.settings.max_qps);
            return State::Ramp { at, met: Some(highest) };
        }
        if let Some(level) = self.missing_level(&repeats.levels, edge.value)
            && repeats.added < MAX_ADDED
        {
            repeats.added += 1;
            repeats.levels.push(level);
            repeats.levels.sort_by(f64::total_cmp);
            repeats.queue = vec![level; self.settings.repeats.max(1) as usize].into();
            return State::Repeat(repeats);
        }
        let shows_server = repeats.of_generator <= repeats.of_server;
        if shows_server && threshold(&of_server(&self.runs)).is_some() {
            return State::Done(End::Edge);
        }
        // What server and generator meet together, but not above a rate that was once met.
        let low = threshold(&self.of_both()).map_or(edge.low, |both| both.low);
        let met = self.runs.iter().filter(|run| run.met == Some(true)).map(|run| run.qps);
        let qps = met.max_by(f64::total_cmp).map(|met| rounded(low).min(met));
        State::Done(End::Generator { qps })
    }

    /// The edge of the server; if it shows none, that of server and generator together.
    fn edge(&self) -> Option<Estimate> {
        threshold(&of_server(&self.runs)).or_else(|| threshold(&self.of_both()))
    }

    fn of_both(&self) -> Vec<Trial> {
        let trial = |run: &Run| Trial { qps: run.qps, met: run.met == Some(true) };
        self.runs.iter().map(trial).collect()
    }

    /// The rate to be added so that the edge has two rates on either side; `None` if it has them, or if that
    /// rate may not be tried.
    fn missing_level(&self, levels: &[f64], edge: f64) -> Option<f64> {
        let step = 1.0 + self.settings.tolerance;
        let (lowest, highest) = (*levels.first()?, *levels.last()?);
        let second = *levels.get(1).unwrap_or(&lowest);
        let second_last = *levels.iter().rev().nth(1).unwrap_or(&highest);
        if edge > second_last {
            let level = rounded((highest * step).min(self.settings.max_qps));
            if level > highest {
                return Some(level);
            }
        }
        (edge < second).then(|| rounded(lowest / step)).filter(|level| *level < lowest)
    }

    /// The state after a run at a rate that has nothing above it. It is repeated until it is confirmed, or
    /// too many of its runs violated.
    fn confirm(&mut self, at: f64, because: Violation, lower: f64) -> State {
        let own = || self.runs.iter().filter(|run| run.qps == at);
        let (runs, violated) = (own().count(), own().filter(|run| run.met != Some(true)).count());
        let wanted = runs.max(self.settings.repeats as usize);
        if violated as f64 > SPOILT * wanted as f64 {
            return match because {
                Violation::OfServer => self.begin_repeats(at),
                Violation::OfGenerator => self.step_down(at, lower),
            };
        }
        if runs < self.settings.repeats as usize {
            return State::Confirm { at, because, lower };
        }
        State::Done(match because {
            Violation::OfServer => End::Max { qps: at },
            Violation::OfGenerator => End::Generator { qps: Some(at) },
        })
    }

    /// A lower rate to be confirmed. The factor is squared each time, so that the lowest rate is reached
    /// soon.
    fn step_down(&mut self, at: f64, lower: f64) -> State {
        let least = rounded(self.settings.from_qps);
        if at <= least {
            return State::Done(End::Generator { qps: None });
        }
        let at = rounded(at / lower).max(least);
        State::Confirm { at, because: Violation::OfGenerator, lower: lower * lower }
    }
}

/// Rounds to five significant digits: a difference of 0.01 % does not matter.
fn rounded(qps: f64) -> f64 {
    format!("{qps:.4e}").parse().unwrap_or(qps)
}

#[cfg(test)]
mod tests;
