//! Variants that differ only in the size of their load: what happens as it rises.

use dnslab_record::{InvalidReason, LoadMode, LoadSweep, RunFigure, RunRecord, RunStatus};
use serde::{Deserialize, Serialize};

/// A server holds a load while it answers so much of what is answered at best ([`held_share`]).
pub const HELD_SHARE: f64 = 0.99;

/// One server under loads of several sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepLine {
    /// What its variants have in common.
    pub name: String,
    /// By the load, the smallest first.
    pub points: Vec<SweepPoint>,
}

/// One load of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepPoint {
    /// Name of the variant.
    pub variant: String,
    /// Intended queries per second over all clients.
    pub load_qps: f64,
    /// Its runs: those that are valid, and those that are not because too much was lost or answered with an
    /// error.
    pub runs: Vec<SweepRun>,
}

/// What one run says of its load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SweepRun {
    /// Answered queries as a share of the due ones, in [0, 1].
    pub answered_share: f64,
    /// Queries answered without an error likewise ([`dnslab_figures::Outcomes::share_without_error`]). A resolver at its
    /// limit may answer at once that it cannot.
    pub sound_share: f64,
    /// Median latency, nanoseconds; the time-out at least, where so many queries were lost.
    pub p50_ns: Option<u64>,
    /// 0.99 quantile of the latency likewise.
    pub p99_ns: Option<u64>,
    /// What the latency of a lost query reaches, nanoseconds: a quantile of that much is the time-out. 0 if it is
    /// not known.
    #[serde(default)]
    pub max_wait_ns: u64,
    /// The run is valid. One that is not may show that a load is too much, but not that it is held.
    pub is_valid: bool,
}

/// Between which loads a server breaks, queries per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Breaking {
    /// The highest load below [`Self::breaks_qps`] that is held in all runs.
    pub holds_qps: Option<f64>,
    /// The lowest load that is held in no run.
    pub breaks_qps: Option<f64>,
}

impl SweepRun {
    fn of(record: &RunRecord) -> Option<Self> {
        let measured = record.measured.as_ref()?;
        let outcomes = &measured.counters.outcomes;
        let sound_share = outcomes.share_without_error(&measured.counters.answers.rcodes)?;
        Some(Self {
            answered_share: 1.0 - outcomes.lost_share(),
            sound_share,
            p50_ns: measured.latency.quantile_ns(0.5),
            p99_ns: measured.latency.quantile_ns(0.99),
            max_wait_ns: record.load.max_wait_ns(),
            is_valid: record.is_valid(),
        })
    }

    /// The median latency, nanoseconds.
    #[must_use]
    pub fn p50(&self) -> Option<RunFigure> {
        Some(RunFigure::of_quantile(self.p50_ns?, self.max_wait_ns))
    }

    /// The 0.99 quantile of the latency, nanoseconds.
    #[must_use]
    pub fn p99(&self) -> Option<RunFigure> {
        Some(RunFigure::of_quantile(self.p99_ns?, self.max_wait_ns))
    }

    fn is_held(&self, held_share: f64) -> bool {
        self.is_valid && self.sound_share >= held_share
    }
}

impl SweepPoint {
    /// `None` without a run that says something, and of a closed loop, whose load has no size.
    fn of(variant: &str, records: &[&RunRecord]) -> Option<Self> {
        let own = records.iter().filter(|record| record.variant == variant);
        let load_qps = own.clone().find_map(|record| match record.load.mode {
            LoadMode::Open { rate_qps, .. } if rate_qps > 0.0 => Some(rate_qps),
            _ => None,
        })?;
        let runs = own.filter(|record| says_what_is_held(record));
        let runs: Vec<SweepRun> = runs.filter_map(|record| SweepRun::of(record)).collect();
        let variant = variant.to_owned();
        (!runs.is_empty()).then_some(Self { variant, load_qps, runs })
    }
}

/// A run that is invalid because its server could not answer is what a sweep looks for.
fn says_what_is_held(record: &RunRecord) -> bool {
    match &record.status {
        RunStatus::Valid => true,
        RunStatus::Invalid { reason } => matches!(
            reason,
            InvalidReason::Lost { .. }
                | InvalidReason::Unanswered { .. }
                | InvalidReason::Errors { .. }
                | InvalidReason::Wrong { .. }
                | InvalidReason::FellSilent { .. }
                | InvalidReason::LostOverTransport { .. }
        ),
        RunStatus::Failed { .. } => false,
    }
}

impl SweepLine {
    /// The lines of the sweeps. None of a sweep with fewer than two loads that were measured.
    pub(crate) fn all(sweeps: &[LoadSweep], records: &[&RunRecord]) -> Vec<Self> {
        sweeps.iter().filter_map(|sweep| Self::of(sweep, records)).collect()
    }

    fn of(sweep: &LoadSweep, records: &[&RunRecord]) -> Option<Self> {
        let points = sweep.variants.iter().filter_map(|name| SweepPoint::of(name, records));
        let mut points: Vec<SweepPoint> = points.collect();
        points.sort_by(|one, other| one.load_qps.total_cmp(&other.load_qps));
        (points.len() > 1).then(|| Self { name: sweep.name.clone(), points })
    }

    /// Where the server breaks, if a run has to answer this share without an error.
    #[must_use]
    pub fn breaking(&self, held_share: f64) -> Breaking {
        let is_held = |run: &SweepRun| run.is_held(held_share);
        let breaks = self.points.iter().position(|at| !at.runs.iter().any(is_held));
        let below = &self.points[..breaks.unwrap_or(self.points.len())];
        let holds = below.iter().rev().find(|at| at.runs.iter().all(is_held));
        Breaking {
            holds_qps: holds.map(|at| at.load_qps),
            breaks_qps: breaks.map(|at| self.points[at].load_qps),
        }
    }
}

/// The least share of the queries that a server has to answer without an error to hold a load, in [0, 1]:
/// [`HELD_SHARE`] of the best mean of any load of any server. Some names have no answer, whoever is asked.
#[must_use]
pub fn held_share(lines: &[SweepLine]) -> f64 {
    let mean = |point: &SweepPoint| {
        point.runs.iter().map(|run| run.sound_share).sum::<f64>() / point.runs.len() as f64
    };
    let best = lines.iter().flat_map(|line| &line.points).map(mean).fold(0.0, f64::max);
    HELD_SHARE * best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of loads of 1, 2, 3, ... thousand queries per second, with the answered shares of their runs.
    fn line(shares: &[&[f64]]) -> SweepLine {
        let run = SweepRun {
            answered_share: 1.0,
            sound_share: 1.0,
            p50_ns: None,
            p99_ns: None,
            max_wait_ns: 0,
            is_valid: true,
        };
        let points = (1u32..).zip(shares).map(|(at, shares)| SweepPoint {
            variant: format!("x{at}"),
            load_qps: 1_000.0 * f64::from(at),
            runs: shares.iter().map(|&sound_share| SweepRun { sound_share, ..run }).collect(),
        });
        SweepLine { name: "bind".to_owned(), points: points.collect() }
    }

    #[test]
    fn a_server_breaks_between_what_it_always_holds_and_what_it_never_does() {
        const HELD: &[f64] = &[1.0, 0.99];
        const BROKEN: &[f64] = &[0.98, 0.5];
        const MIXED: &[f64] = &[1.0, 0.98];
        for (shares, holds, breaks) in [
            (vec![HELD, HELD, BROKEN], Some(2_000.0), Some(3_000.0)),
            (vec![HELD, MIXED, BROKEN], Some(1_000.0), Some(3_000.0)),
            (vec![BROKEN, HELD], None, Some(1_000.0)),
            (vec![HELD, BROKEN, HELD], Some(1_000.0), Some(2_000.0)),
            (vec![HELD, HELD], Some(2_000.0), None),
            (vec![MIXED, MIXED], None, None),
        ] {
            let expected = Breaking { holds_qps: holds, breaks_qps: breaks };
            assert_eq!(line(&shares).breaking(0.99), expected, "{shares:?}");
        }
    }

    #[test]
    fn what_nobody_answers_breaks_no_server() {
        // A hundredth and a half of the names fail whoever is asked.
        let lines = [line(&[&[0.985, 0.985], &[0.98, 0.979]]), line(&[&[0.97, 0.98], &[0.5, 0.6]])];
        let held_share = held_share(&lines);
        assert!((held_share - 0.99 * 0.985).abs() < 1e-9);
        assert_eq!(lines[0].breaking(held_share).holds_qps, Some(2_000.0));
        let second = Breaking { holds_qps: None, breaks_qps: Some(2_000.0) };
        assert_eq!(lines[1].breaking(held_share), second);
    }
}
