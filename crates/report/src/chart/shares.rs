//! Latency of the variants over the rate that they were asked for, at shares of their own.

use dnslab_analysis::statistics::Estimate;
use dnslab_analysis::{ShareOfVariant, Summary};
use dnslab_record::Metric;
use serde::Serialize;

use super::curve::{Curve, short};
use crate::page::COLOURS;

/// A chart with one axis, queries per second. A line goes from one rate of its own to the next.
#[derive(Debug, Serialize)]
pub(super) struct Shares {
    load_qps: Vec<f64>,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    /// The number of its colour.
    slot: usize,
    /// With the interval of the mean, as the next.
    p50_ms: Curve,
    p99_ms: Curve,
}

impl Shares {
    /// `None` if there is no line.
    pub(super) fn of(summary: &Summary) -> Option<Self> {
        let points = summary.shares.iter().flat_map(|share| &share.variants);
        let mut load_qps: Vec<f64> = points.map(|point| short(point.offered_qps)).collect();
        load_qps.sort_by(f64::total_cmp);
        load_qps.dedup();
        let lines = summary.variants.iter().enumerate().filter_map(|(place, variant)| {
            let all = summary.shares.iter().flat_map(|share| &share.variants);
            let own: Vec<&ShareOfVariant> =
                all.filter(|point| point.variant == variant.name).collect();
            (!own.is_empty()).then(|| Line {
                name: variant.name.clone(),
                slot: place % COLOURS,
                p50_ms: latency(&own, Metric::LatencyP50, &load_qps),
                p99_ms: latency(&own, Metric::LatencyP99, &load_qps),
            })
        });
        let lines: Vec<Line> = lines.collect();
        (!lines.is_empty()).then_some(Self { lines, load_qps })
    }
}

fn latency(points: &[&ShareOfVariant], metric: Metric, load_qps: &[f64]) -> Curve {
    let mut curve = Curve::default();
    for load in load_qps {
        let point = points.iter().find(|point| short(point.offered_qps) == *load);
        let found = point.and_then(|point| point.metrics.get(&metric));
        let ms = |end: fn(&Estimate) -> f64| {
            found.map(|found| end(found) / 1e6).filter(|ms| ms.is_finite())
        };
        curve.push(ms(|found| found.value), ms(|found| found.low), ms(|found| found.high));
    }
    curve
}
