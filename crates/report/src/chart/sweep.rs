//! Figures of servers over the size of their load.

use dnslab_analysis::{Summary, SweepLine, SweepPoint, SweepRun, held_share};
use dnslab_record::RunFigure;
use serde::Serialize;

use super::curve::{Curve, short};
use crate::page::Grouping;

/// Charts with one axis, intended queries per second. The lines are means over the runs of each load, and a line
/// goes from one load of its own to the next.
#[derive(Debug, Serialize)]
pub(super) struct Sweep {
    load_qps: Vec<f64>,
    lines: Vec<Line>,
    /// The least share of [`Line::answered_percent`] with which a load is held.
    held_percent: f64,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// The number of its colour.
    slot: usize,
    /// Queries answered without an error, percent of the due ones.
    answered_percent: Curve,
    p50_ms: Curve,
    p99_ms: Curve,
    /// The lowest load that is held in no run, queries per second.
    breaks_qps: Option<f64>,
}

impl Sweep {
    /// `None` if there is no line.
    pub(super) fn of(summary: &Summary, grouping: &Grouping) -> Option<Self> {
        let lines = &summary.sweep;
        let mut load_qps: Vec<f64> =
            lines.iter().flat_map(|line| &line.points).map(|at| short(at.load_qps)).collect();
        load_qps.sort_by(f64::total_cmp);
        load_qps.dedup();
        let held = held_share(lines);
        let line = |(nth, line): (usize, &SweepLine)| {
            let latency = |figure: fn(&SweepRun) -> Option<RunFigure>| {
                over(&load_qps, line, |curve, runs| {
                    curve.push_quantile(&runs.iter().filter_map(|run| figure(run)).collect());
                })
            };
            let answered = |curve: &mut Curve, runs: &[&SweepRun]| {
                curve.push_runs(runs.iter().map(|run| run.sound_share * 100.0));
            };
            Line {
                name: line.name.clone(),
                slot: grouping.slot_of_line(summary, nth),
                answered_percent: over(&load_qps, line, answered),
                p50_ms: latency(SweepRun::p50),
                p99_ms: latency(SweepRun::p99),
                breaks_qps: line.breaking(held).breaks_qps.map(short),
            }
        };
        let lines: Vec<Line> = lines.iter().enumerate().map(line).collect();
        (!lines.is_empty()).then_some(Self { load_qps, lines, held_percent: short(held * 100.0) })
    }
}

/// A figure of a line at each load, which `push` adds from the runs of all its points there.
fn over(loads: &[f64], line: &SweepLine, push: impl Fn(&mut Curve, &[&SweepRun])) -> Curve {
    let runs = line.points.iter().map(|at| at.runs.len()).max().unwrap_or(0);
    let mut curve = Curve::default();
    for load in loads {
        let here = |at: &&SweepPoint| short(at.load_qps) == *load;
        let runs: Vec<&SweepRun> =
            line.points.iter().filter(here).flat_map(|at| &at.runs).collect();
        push(&mut curve, &runs);
    }
    curve.without_band_of(runs)
}
