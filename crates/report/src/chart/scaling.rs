//! Rates of servers over the number of their threads.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{ScalingLine, ScalingPoint, Summary};
use serde::Serialize;

use super::curve::Curve;
use crate::page::COLOURS;

/// So many threads can be asked for (`server.threads`). A record may name any number.
const MAX_THREADS: u32 = 1_024;

/// Charts with one axis, the number of threads from 1 to the largest. A measured line goes from one number of its own
/// to the next.
#[derive(Debug, Serialize)]
pub(super) struct Scaling {
    threads: Vec<u32>,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// The number of its colour.
    slot: usize,
    /// With the interval of the mean.
    answered_qps: Curve,
    /// Nowhere, if there is no law.
    law_qps: Curve,
    efficiency_percent: Curve,
    law_efficiency_percent: Curve,
    /// Numbers of threads that the law leaves out.
    left_out: Vec<u32>,
}

impl Scaling {
    /// `None` if there is no line.
    pub(super) fn of(summary: &Summary) -> Option<Self> {
        let points = || summary.scaling.iter().flat_map(|line| &line.points);
        let most = points().map(|point| point.threads).max()?.min(MAX_THREADS);
        let threads: Vec<u32> = (1..=most).collect();
        let lines = summary.scaling.iter().enumerate();
        let line = |(nth, line)| Line::of(line, (summary.variants.len() + nth) % COLOURS, &threads);
        Some(Self { lines: lines.map(line).collect(), threads })
    }
}

impl Line {
    fn of(line: &ScalingLine, slot: usize, threads: &[u32]) -> Self {
        let first = line.ends().map(|[first, _]| first);
        let least = first.map_or(1.0, |first| f64::from(first.threads));
        let least_by_law = line.law.map_or(1.0, |law| law.qps(least) / least);
        let is_first =
            |point: &ScalingPoint| first.is_some_and(|first| first.variant == point.variant);
        let percent = |point: &ScalingPoint| match is_first(point) {
            true => Some(Estimate { value: 100.0, low: 100.0, high: 100.0 }),
            false => point.efficiency.map(percent),
        };
        let left_out = line.points.iter().filter(|point| point.left_out.is_some());
        Self {
            name: line.name.clone(),
            slot,
            answered_qps: measured(line, threads, |point| point.answered_qps),
            law_qps: by_law(line, threads, |qps, _| qps),
            efficiency_percent: measured(line, threads, percent),
            law_efficiency_percent: by_law(line, threads, |qps, count| {
                100.0 * qps / count / least_by_law
            }),
            left_out: left_out.map(|point| point.threads).collect(),
        }
    }
}

/// A figure of the points, with its interval, over the numbers of threads.
fn measured(
    line: &ScalingLine,
    threads: &[u32],
    figure: impl Fn(&ScalingPoint) -> Option<Estimate>,
) -> Curve {
    let mut curve = Curve::default();
    for count in threads {
        let mut points = line.points.iter().filter(|point| point.threads == *count);
        let estimate = points.find_map(&figure);
        let end = |end: f64| end.is_finite().then_some(end);
        curve.push(
            estimate.map(|estimate| estimate.value),
            estimate.and_then(|estimate| end(estimate.low)),
            estimate.and_then(|estimate| end(estimate.high)),
        );
    }
    curve
}

/// What the law says of each number of threads, made of its rate and that number.
fn by_law(line: &ScalingLine, threads: &[u32], figure: impl Fn(f64, f64) -> f64) -> Curve {
    let mut curve = Curve::default();
    for count in threads {
        let count = f64::from(*count);
        curve.push(line.law.map(|law| figure(law.qps(count), count)), None, None);
    }
    curve.without_band_of(1)
}

fn percent(Estimate { value, low, high }: Estimate) -> Estimate {
    Estimate { value: 100.0 * value, low: 100.0 * low, high: 100.0 * high }
}
