//! Figures of servers over the size of their load.

use dnslab_analysis::{Summary, SweepLine, SweepRun, held_share};
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
        let lines = lines.iter().enumerate();
        let lines: Vec<Line> = lines
            .map(|(nth, line)| Line::of(line, grouping.slot_of_line(summary, nth), &load_qps, held))
            .collect();
        (!lines.is_empty()).then_some(Self { load_qps, lines, held_percent: short(held * 100.0) })
    }
}

impl Line {
    fn of(line: &SweepLine, slot: usize, load_qps: &[f64], held_share: f64) -> Self {
        let points_at = |load: f64| line.points.iter().filter(move |at| short(at.load_qps) == load);
        let runs_at = |load: &f64| points_at(*load).flat_map(|at| &at.runs);
        let runs = line.points.iter().map(|at| at.runs.len()).max().unwrap_or(0);
        let latency = |figure: fn(&SweepRun) -> Option<RunFigure>| {
            let figures = load_qps.iter().map(|load| runs_at(load).filter_map(figure).collect());
            Curve::of_quantiles(figures).without_band_of(runs)
        };
        let percent = |run: &SweepRun| run.sound_share * 100.0;
        let answered = load_qps.iter().map(|load| runs_at(load).map(percent).collect());
        Self {
            name: line.name.clone(),
            slot,
            answered_percent: Curve::of_runs(answered).without_band_of(runs),
            p50_ms: latency(SweepRun::p50),
            p99_ms: latency(SweepRun::p99),
            breaks_qps: line.breaking(held_share).breaks_qps.map(short),
        }
    }
}
