//! What the charts draw, as the JSON that the page's script reads.
//!
//! `page/src/data.ts` declares the same form for TypeScript. Lines are means over the valid runs of
//! a variant, bands run from the smallest to the largest run; `null` is where nothing was measured.

mod curve;
mod scaling;
mod shares;
mod sweep;
mod time;

use dnslab_analysis::{RunFigures, Summary, WindowSummary};
use dnslab_record::{LatencyQuantiles, Observation, RunFigure, RunRecord, RunStatus};
use scaling::Scaling;
use serde::Serialize;
use shares::Shares;
use sweep::Sweep;

use crate::page::{Group, Grouping};
pub(crate) use curve::Curve;
use curve::short;
pub(crate) use time::TimeChart;
use time::Timeline;

const POINTS_PER_DECADE: u32 = 20;
/// The percentile chart ends at the slowest 10^-5 of all queries (0.001 %).
const DECADES: u32 = 5;

#[derive(Debug, Serialize)]
pub(crate) struct Charts {
    /// Names of the variants; every list "per variant" is in this order.
    variants: Vec<String>,
    /// The numbers of their colours; `None` for the reference, which is grey.
    slots: Vec<Option<usize>>,
    groups: Vec<Group>,
    baseline: Option<usize>,
    percentiles: Percentiles,
    /// Those of the time windows, in the order of the summary.
    windows: Vec<Percentiles>,
    sweep: Option<Sweep>,
    scaling: Option<Scaling>,
    shares: Option<Shares>,
    timeline: Timeline,
}

#[derive(Debug, Serialize)]
struct Percentiles {
    /// Share of the slowest queries, in (0, 1], from all to few.
    slowest_share: Vec<f64>,
    latency_ms: Vec<Curve>,
}

impl Charts {
    pub(crate) fn of(records: &[RunRecord], summary: &Summary, grouping: &Grouping) -> Self {
        let runs: Vec<Vec<&RunRecord>> = summary
            .variants
            .iter()
            .map(|variant| valid_runs(records, &variant.name).collect())
            .collect();
        let own: Vec<Vec<Observation<'_>>> = runs
            .iter()
            .map(|runs| runs.iter().filter_map(|record| record.observation()).collect())
            .collect();
        let compared = runs.iter().map(|runs| {
            runs.iter().filter_map(|record| record.latency_quantiles()).collect::<Vec<_>>()
        });
        let of_window = |window: &WindowSummary| {
            Percentiles::of(runs.iter().map(|runs| {
                runs.iter().filter_map(|record| window.latency_quantiles(record)).collect()
            }))
        };
        let places = 0..summary.variants.len();
        Self {
            variants: summary.variants.iter().map(|variant| variant.name.clone()).collect(),
            slots: places.map(|place| grouping.slot(place)).collect(),
            groups: grouping.groups.clone(),
            baseline: grouping.reference,
            percentiles: Percentiles::of(compared),
            windows: summary.windows.iter().map(of_window).collect(),
            sweep: Sweep::of(summary, grouping),
            scaling: Scaling::of(summary),
            shares: Shares::of(summary),
            timeline: Timeline::of(&own).with_cores(&runs).with_rcodes(&runs).with_events(&runs),
        }
    }

    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// False where no latency has quantiles: another tool may have printed none.
    pub(crate) fn has_percentiles(&self) -> bool {
        self.percentiles.has_any()
    }

    /// False where no latency of the nth time window has quantiles.
    pub(crate) fn has_window(&self, nth: usize) -> bool {
        self.windows[nth].has_any()
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
    fn has_any(&self) -> bool {
        self.latency_ms.iter().any(Curve::has_any)
    }

    /// A curve for each variant from its runs: at each share the mean of their quantiles, which is the figure that
    /// the tables have, with a band over the runs.
    fn of<'a>(variants: impl Iterator<Item = Vec<LatencyQuantiles<'a>>>) -> Self {
        let slowest_share: Vec<f64> = (0..=DECADES * POINTS_PER_DECADE)
            .map(|point| 10_f64.powf(-f64::from(point) / f64::from(POINTS_PER_DECADE)))
            .collect();
        let latency_ms = variants.map(|runs| {
            // It ends where one of the runs does: the others alone are another mean.
            let figures = slowest_share.iter().map(|share| {
                let all = runs.iter().map(|latency| slowest(latency, *share));
                all.collect::<Option<RunFigures>>().unwrap_or_default()
            });
            Curve::of_quantiles(figures).without_band_of(runs.len())
        });
        Self {
            latency_ms: latency_ms.collect(),
            slowest_share: slowest_share.iter().map(|&share| short(share)).collect(),
        }
    }
}

/// The latency that the slowest `share` of the queries of a run reach; `None` where that share is less than one
/// query, because then the histogram says nothing.
fn slowest(latency: &LatencyQuantiles<'_>, share: f64) -> Option<RunFigure> {
    // A hundredth of tolerance, for a share that should be exactly one query.
    if latency.count() as f64 * share < 0.99 {
        return None;
    }
    latency.at(1.0 - share)
}

#[cfg(test)]
mod tests {
    use dnslab_figures::Histogram;

    use super::*;

    #[test]
    fn the_percentile_curve_ends_at_one_query() {
        let mut latency = Histogram::new();
        (1..=1_000).for_each(|ms| latency.record_ns(ms * 1_000_000));
        let latency = LatencyQuantiles::of_all(&latency, 0);
        assert_eq!(slowest(&latency, 0.0005), None);
        let slowest = slowest(&latency, 0.001).unwrap().at_least() / 1e6;
        assert!((998.0..=1_001.0).contains(&slowest), "{slowest}");
    }

    /// The line at the slowest hundredth, and its band, milliseconds: of two runs of 100 queries that take so long
    /// each, and of others that are lost.
    fn hundredth(ms: [u64; 2], lost: [u64; 2]) -> [f64; 3] {
        let latencies = [0, 1].map(|run| {
            let mut latency = Histogram::new();
            latency.record_many_ns(ms[run] * 1_000_000, 100);
            latency.record_many_ns(500_000_000, lost[run]);
            latency
        });
        let runs = latencies.iter().map(|latency| LatencyQuantiles::of_all(latency, 500_000_000));
        let curve = Percentiles::of(std::iter::once(runs.collect())).latency_ms.remove(0);
        // All queries stand at 1, the slowest hundredth two decades further.
        let place = 2 * POINTS_PER_DECADE as usize;
        [curve.mean, curve.low, curve.high].map(|values| values[place].unwrap().round())
    }

    #[test]
    fn a_line_is_at_the_mean_of_the_runs_or_at_the_time_out() {
        assert_eq!(hundredth([2, 8], [0, 0]), [4.0, 2.0, 8.0]);
        assert_eq!(hundredth([2, 8], [0, 5]), [500.0, 2.0, 500.0]);
    }
}
