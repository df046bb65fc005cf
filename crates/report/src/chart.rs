//! What the charts draw, as the JSON that the page's script reads.
//!
//! `page/src/data.ts` declares the same form for TypeScript. Lines are means over the valid runs of
//! a variant, bands run from the smallest to the largest run; `null` is where nothing was measured.

mod sweep;
mod time;

use dnslab_measure::{Histogram, Measured, RunRecord, RunStatus, Summary, WindowSummary};
use serde::Serialize;

use crate::page::{Group, Grouping};
use sweep::Sweep;
pub(crate) use time::Figure;
use time::Timeline;

const POINTS_PER_DECADE: u32 = 20;
/// The percentile chart ends at the slowest 10^-5 of all queries (0.001 %).
const DECADES: u32 = 5;

#[derive(Debug, Serialize)]
pub(crate) struct Charts {
    /// Names of the variants; every list "per variant" is in this order.
    variants: Vec<String>,
    slots: Vec<usize>,
    groups: Vec<Group>,
    baseline: Option<usize>,
    percentiles: Percentiles,
    /// Those of the time windows, in the order of the summary.
    windows: Vec<Percentiles>,
    sweep: Option<Sweep>,
    timeline: Timeline,
}

#[derive(Debug, Serialize)]
struct Percentiles {
    /// Share of the slowest queries, in (0, 1], from all to few.
    slowest_share: Vec<f64>,
    latency_ms: Vec<Curve>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Curve {
    mean: Vec<Option<f64>>,
    /// Lower edge of the band; empty if there is one run only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    low: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    high: Vec<Option<f64>>,
}

impl Charts {
    pub(crate) fn of(records: &[RunRecord], summary: &Summary, grouping: &Grouping) -> Self {
        let runs: Vec<Vec<&RunRecord>> = summary
            .variants
            .iter()
            .map(|variant| valid_runs(records, &variant.name).collect())
            .collect();
        let own: Vec<Vec<&Measured>> = runs
            .iter()
            .map(|runs| runs.iter().filter_map(|record| record.measured.as_ref()).collect())
            .collect();
        let compared = runs.iter().zip(&summary.variants).map(|(runs, variant)| {
            let times = runs.iter().filter_map(|record| record.compared_times());
            (Some(&variant.latency), times.map(|measured| &measured.latency).collect())
        });
        let of_window = |window: &WindowSummary| {
            Percentiles::of(runs.iter().zip(&summary.variants).map(|(runs, variant)| {
                let own = window.variants.iter().find(|of| of.variant == variant.name);
                let times = runs.iter().filter_map(|record| Some(&window.of(record)?.latency));
                (own.map(|of| &of.latency), times.collect())
            }))
        };
        let places = 0..summary.variants.len();
        let is_reference = |&place: &usize| {
            grouping.has_reference && summary.variants[place].name == summary.baseline
        };
        Self {
            variants: summary.variants.iter().map(|variant| variant.name.clone()).collect(),
            slots: places.clone().map(|place| grouping.slot(place)).collect(),
            groups: grouping.groups.clone(),
            baseline: places.clone().find(is_reference),
            percentiles: Percentiles::of(compared),
            windows: summary.windows.iter().map(of_window).collect(),
            sweep: Sweep::of(&summary.sweep),
            timeline: Timeline::of(&own).with_cores(&runs).with_rcodes(&runs),
        }
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Whether latencies are those of a common load, and the charts over time of another one.
    pub(crate) fn has_common_load(summary: &Summary) -> bool {
        summary.variants.iter().any(|variant| variant.common_rate_qps.is_some())
    }
}

fn valid_runs<'a>(
    records: &'a [RunRecord],
    variant: &'a str,
) -> impl Iterator<Item = &'a RunRecord> {
    records
        .iter()
        .filter(move |record| record.variant == variant && record.status == RunStatus::Valid)
}

impl Percentiles {
    /// A curve for each variant: that of its merged latencies, with a band over those of its runs.
    fn of<'a>(variants: impl Iterator<Item = (Option<&'a Histogram>, Vec<&'a Histogram>)>) -> Self {
        let slowest_share: Vec<f64> = (0..=DECADES * POINTS_PER_DECADE)
            .map(|point| 10_f64.powf(-f64::from(point) / f64::from(POINTS_PER_DECADE)))
            .collect();
        let curve_of = |latency: &Histogram| -> Vec<Option<f64>> {
            let latency = latency.unpacked();
            slowest_share.iter().map(|share| slowest_ms(&latency, *share)).collect()
        };
        let latency_ms = variants.map(|(merged, runs)| {
            let of_runs: Vec<_> = runs.iter().map(|latency| curve_of(latency)).collect();
            let merged = merged.map_or_else(|| vec![None; slowest_share.len()], curve_of);
            let mut curve = Curve::default();
            for (at, middle) in merged.into_iter().enumerate() {
                let (low, high) = range(of_runs.iter().filter_map(|run| run[at]));
                curve.push(middle, low, high);
            }
            curve.without_band_of(runs.len())
        });
        Self {
            latency_ms: latency_ms.collect(),
            slowest_share: slowest_share.iter().map(|&share| short(share)).collect(),
        }
    }
}

/// The latency in milliseconds that the slowest `share` of all queries reach; `None` where that
/// share is less than one query, because then the histogram says nothing.
fn slowest_ms(latency: &Histogram, share: f64) -> Option<f64> {
    // A hundredth of tolerance, for a share that should be exactly one query.
    if latency.len() as f64 * share < 0.99 {
        return None;
    }
    Some(latency.quantile_ns(1.0 - share)? as f64 / 1e6)
}

impl Curve {
    fn over<R>(steps: usize, runs: &[R], figure: impl Fn(&R, usize) -> Option<f64>) -> Self {
        let mut curve = Self::default();
        for at in 0..steps {
            curve.push_runs(runs.iter().filter_map(|run| figure(run, at)));
        }
        curve.without_band_of(runs.len())
    }

    /// Adds the mean of these figures, one of each run, and the smallest and the largest.
    fn push_runs(&mut self, figures: impl Iterator<Item = f64>) {
        let values: Vec<f64> = figures.collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (low, high) = range(values.iter().copied());
        self.push((!values.is_empty()).then_some(mean), low, high);
    }

    fn push(&mut self, mean: Option<f64>, low: Option<f64>, high: Option<f64>) {
        self.mean.push(mean.map(short));
        self.low.push(low.map(short));
        self.high.push(high.map(short));
    }

    /// The same without its band, if that is of one run: then it is the line.
    fn without_band_of(mut self, runs: usize) -> Self {
        if runs < 2 {
            // Not cleared: there may be tens of thousands of curves, and each would keep that memory.
            (self.low, self.high) = (Vec::new(), Vec::new());
        }
        self
    }
}

fn range(values: impl Iterator<Item = f64>) -> (Option<f64>, Option<f64>) {
    values.fold((None, None), |(low, high): (Option<f64>, Option<f64>), value| {
        (
            Some(low.map_or(value, |low| low.min(value))),
            Some(high.map_or(value, |high| high.max(value))),
        )
    })
}

/// The number with four significant digits: a chart shows no more, and the page stays small.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_curve_ends_at_one_query() {
        let mut latency = Histogram::new();
        (1..=1_000).for_each(|ms| latency.record_ns(ms * 1_000_000));
        assert_eq!(slowest_ms(&latency, 0.0005), None);
        let slowest = slowest_ms(&latency, 0.001).unwrap();
        assert!((998.0..=1_001.0).contains(&slowest), "{slowest}");
    }
}
