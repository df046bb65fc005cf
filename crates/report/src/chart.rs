//! What the charts draw, as the JSON that the page's script reads.
//!
//! `page/src/data.ts` declares the same form for TypeScript. Lines are means over the valid runs of
//! a variant, bands run from the smallest to the largest run; `null` is where nothing was measured.

use std::collections::BTreeMap;

use dnslab_measure::{Histogram, Measured, RunRecord, RunStatus, Summary};
use serde::Serialize;

use crate::csv::counted_qps;

/// Most points on a time axis: more than the pixels of a chart would show nothing.
const MOST_POINTS: u64 = 600;
/// Points per factor of ten of the percentile chart.
const POINTS_PER_DECADE: u32 = 20;
/// The percentile chart ends at the slowest 10^-5 of all queries (0.001 %).
const DECADES: u32 = 5;

/// Everything that the charts draw.
#[derive(Debug, Serialize)]
pub(crate) struct Charts {
    /// Names of the variants; every list "per variant" is in this order.
    variants: Vec<String>,
    /// Latency by slowest share.
    percentiles: Percentiles,
    /// What happened over time.
    timeline: Timeline,
    /// How the due queries ended.
    outcomes: Vec<Bar>,
    /// Response codes of the answers.
    rcodes: Vec<Bar>,
}

/// The logarithmic percentile chart.
#[derive(Debug, Serialize)]
struct Percentiles {
    /// Share of the slowest queries, in (0, 1], from all to few.
    slowest_share: Vec<f64>,
    /// Per variant, latency in milliseconds.
    latency_ms: Vec<Curve>,
}

/// Charts with one time axis, seconds since the load began.
#[derive(Debug, Serialize)]
struct Timeline {
    /// Middle of each step, seconds.
    at_s: Vec<f64>,
    /// Where the measured window begins, seconds: the warm-up ends here.
    window_start_s: f64,
    /// Answered queries per second, per variant.
    qps: Vec<Curve>,
    /// Queries per second that the servers counted themselves, per variant; empty curves of those that
    /// do not tell.
    counted_qps: Vec<Curve>,
    /// Median latency, milliseconds.
    p50_ms: Vec<Curve>,
    /// 0.99 quantile of the latency, milliseconds.
    p99_ms: Vec<Curve>,
    /// CPU use of the server, in percent of the CPUs that it was given.
    cpu_percent: Vec<Curve>,
    /// Memory of the server, MiB.
    memory_mib: Vec<Curve>,
}

/// A line and its band.
#[derive(Clone, Debug, Default, Serialize)]
struct Curve {
    /// The line.
    mean: Vec<Option<f64>>,
    /// Lower edge of the band.
    low: Vec<Option<f64>>,
    /// Upper edge of the band.
    high: Vec<Option<f64>>,
}

/// One outcome or response code.
#[derive(Debug, Serialize)]
struct Bar {
    /// Its name.
    name: String,
    /// Queries, per variant.
    counts: Vec<u64>,
    /// Share of all due queries (outcomes) or answers (response codes) in [0, 1], per variant.
    shares: Vec<f64>,
}

impl Charts {
    /// What the charts draw of these runs.
    pub(crate) fn of(records: &[RunRecord], summary: &Summary) -> Self {
        let runs: Vec<Vec<&Measured>> = summary
            .variants
            .iter()
            .map(|variant| valid_runs(records, &variant.name).collect())
            .collect();
        Self {
            variants: summary.variants.iter().map(|variant| variant.name.clone()).collect(),
            percentiles: Percentiles::of(summary, &runs),
            timeline: Timeline::of(&runs),
            outcomes: outcomes(summary),
            rcodes: rcodes(summary),
        }
    }
}

/// What the valid runs of a variant measured.
fn valid_runs<'a>(
    records: &'a [RunRecord],
    variant: &'a str,
) -> impl Iterator<Item = &'a Measured> {
    records
        .iter()
        .filter(move |record| record.variant == variant && record.status == RunStatus::Valid)
        .filter_map(|record| record.measured.as_ref())
}

impl Percentiles {
    /// The curves of the merged histograms, with bands over the runs.
    fn of(summary: &Summary, runs: &[Vec<&Measured>]) -> Self {
        let slowest_share: Vec<f64> = (0..=DECADES * POINTS_PER_DECADE)
            .map(|point| 10_f64.powf(-f64::from(point) / f64::from(POINTS_PER_DECADE)))
            .collect();
        let latency_ms = summary.variants.iter().zip(runs).map(|(variant, runs)| {
            let mut curve = Curve::default();
            for &share in &slowest_share {
                let of_runs = runs.iter().filter_map(|run| slowest_ms(&run.latency, share));
                let (low, high) = range(of_runs);
                curve.push(slowest_ms(&variant.latency, share), low, high);
            }
            curve
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

/// Sums of one run inside one step of the time axis.
#[derive(Clone, Copy, Default)]
struct Step {
    /// Answered queries; `None` after the end of the run.
    answered: Option<u64>,
    /// Medians of the intervals, to be averaged, milliseconds.
    p50_ms: Option<f64>,
    /// Largest 0.99 quantile of the intervals, milliseconds: a short stall stays visible.
    p99_ms: Option<f64>,
}

impl Timeline {
    /// The curves on a time axis that fits all runs.
    fn of(runs: &[Vec<&Measured>]) -> Self {
        let all = || runs.iter().flatten().copied();
        let width_ns = step_width_ns(all());
        let end_ns = all().map(end_ns).max().unwrap_or(0);
        let steps = (end_ns / width_ns) as usize;
        let at_s = (0..steps).map(|step| short((step as f64 + 0.5) * width_ns as f64 / 1e9));
        let binned: Vec<Vec<Vec<Step>>> = runs
            .iter()
            .map(|runs| runs.iter().map(|run| bin(run, width_ns, steps)).collect())
            .collect();
        let curves = |figure: &dyn Fn(&Step) -> Option<f64>| -> Vec<Curve> {
            let of_runs =
                |runs: &Vec<Vec<Step>>| Curve::over(steps, runs, |run, at| figure(&run[at]));
            binned.iter().map(of_runs).collect()
        };
        let spanned = |figure: &dyn Fn(&Measured, i64, i64) -> Option<f64>| -> Vec<Curve> {
            let span = |at: usize| {
                let from = at as i64 * width_ns as i64;
                (from, from + width_ns as i64)
            };
            let of_runs = |runs: &Vec<&Measured>| {
                Curve::over(steps, runs, |run, at| figure(run, span(at).0, span(at).1))
            };
            runs.iter().map(of_runs).collect()
        };
        Self {
            at_s: at_s.collect(),
            window_start_s: all().map(|run| run.window_start_ns).max().unwrap_or(0) as f64 / 1e9,
            qps: curves(&|step| Some(step.answered? as f64 * 1e9 / width_ns as f64)),
            counted_qps: spanned(&counted_qps),
            p50_ms: curves(&|step| step.p50_ms),
            p99_ms: curves(&|step| step.p99_ms),
            cpu_percent: spanned(&|run, from, to| {
                run.resources.busy_share(from, to).map(|share| share * 100.0)
            }),
            memory_mib: spanned(&|run, from, to| memory_mib(run, from, to)),
        }
    }
}

/// The step of the time axis: the commonest interval length, or so many of it that the axis has at
/// most [`MOST_POINTS`].
fn step_width_ns<'a>(runs: impl Iterator<Item = &'a Measured> + Clone) -> u64 {
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    for interval in runs.clone().flat_map(|run| &run.intervals) {
        *lengths.entry(interval.length_ns).or_default() += 1;
    }
    let commonest = lengths.iter().max_by_key(|(_, count)| **count).map(|(length, _)| *length);
    let interval = commonest.filter(|&length| length > 0).unwrap_or(100_000_000);
    let end = runs.map(end_ns).max().unwrap_or(0);
    interval * (end / interval).div_ceil(MOST_POINTS).max(1)
}

/// Where the measured window of a run ends, nanoseconds since the load began. What came after it
/// (answers still awaited) is not part of the picture.
fn end_ns(run: &Measured) -> u64 {
    run.window_start_ns + run.window_ns
}

/// The intervals of one run, put into the step in which their middle lies. A step of the run without
/// an interval is one in which nothing ended: its rate is zero, not missing, or a stall would not
/// show, and would raise the mean over the runs.
fn bin(run: &Measured, width_ns: u64, steps: usize) -> Vec<Step> {
    let mut binned = vec![Step::default(); steps];
    let mut medians = vec![0_u32; steps];
    for step in binned.iter_mut().take((end_ns(run) / width_ns) as usize) {
        step.answered = Some(0);
    }
    for interval in &run.intervals {
        let at = ((interval.at_ns + interval.length_ns / 2) / width_ns) as usize;
        let Some(step) = binned.get_mut(at) else { continue };
        step.answered = step.answered.map(|answered| answered + interval.answered);
        if let Some(p50_ns) = interval.p50_ns {
            let before = f64::from(medians[at]);
            medians[at] += 1;
            let sum = step.p50_ms.unwrap_or(0.0) * before + p50_ns as f64 / 1e6;
            step.p50_ms = Some(sum / (before + 1.0));
        }
        let p99_ms = interval.p99_ns.map(|ns| ns as f64 / 1e6);
        step.p99_ms = [step.p99_ms, p99_ms].into_iter().flatten().reduce(f64::max);
    }
    binned
}

/// The largest memory figure of the samples inside a span, MiB.
fn memory_mib(run: &Measured, from_ns: i64, to_ns: i64) -> Option<f64> {
    let samples = run.resources.samples.iter();
    let inside = samples.filter(|sample| (from_ns..to_ns).contains(&sample.at_ns));
    inside.map(|sample| sample.memory_octets).max().map(|octets| octets as f64 / 1_048_576.0)
}

impl Curve {
    /// The curve of one figure over the runs of a variant.
    fn over<R>(steps: usize, runs: &[R], figure: impl Fn(&R, usize) -> Option<f64>) -> Self {
        let mut curve = Self::default();
        for at in 0..steps {
            let values: Vec<f64> = runs.iter().filter_map(|run| figure(run, at)).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let (low, high) = range(values.iter().copied());
            curve.push((!values.is_empty()).then_some(mean), low, high);
        }
        curve
    }

    /// Adds one point.
    fn push(&mut self, mean: Option<f64>, low: Option<f64>, high: Option<f64>) {
        self.mean.push(mean.map(short));
        self.low.push(low.map(short));
        self.high.push(high.map(short));
    }
}

/// The smallest and the largest value.
fn range(values: impl Iterator<Item = f64>) -> (Option<f64>, Option<f64>) {
    values.fold((None, None), |(low, high): (Option<f64>, Option<f64>), value| {
        (
            Some(low.map_or(value, |low| low.min(value))),
            Some(high.map_or(value, |high| high.max(value))),
        )
    })
}

/// The number with five significant digits: a chart shows no more, and the page stays small.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The outcomes in the order of [`dnslab_measure::Outcomes`].
fn outcomes(summary: &Summary) -> Vec<Bar> {
    let all = summary.variants.iter().map(|variant| variant.outcomes);
    type Pick = fn(&dnslab_measure::Outcomes) -> u64;
    let picks: [(&str, Pick); 6] = [
        ("answered", |of| of.answered),
        ("timed out", |of| of.timed_out),
        ("not sent", |of| of.not_sent),
        ("connection lost", |of| of.connection_lost),
        ("malformed", |of| of.malformed),
        ("refused", |of| of.refused),
    ];
    let bar = |(name, pick): (&str, Pick)| {
        let pairs = all.clone().map(|outcomes| (pick(&outcomes), outcomes.due));
        Bar::of(name, pairs)
    };
    picks.into_iter().map(bar).collect()
}

/// Every response code that any variant got, by mnemonic.
fn rcodes(summary: &Summary) -> Vec<Bar> {
    let mut names: Vec<&String> =
        summary.variants.iter().flat_map(|variant| variant.rcodes.keys()).collect();
    names.sort();
    names.dedup();
    let bar = |name: &String| {
        let pairs = summary.variants.iter().map(|variant| {
            let all = variant.rcodes.values().sum();
            (variant.rcodes.get(name).copied().unwrap_or(0), all)
        });
        Bar::of(name, pairs)
    };
    names.into_iter().map(bar).collect()
}

impl Bar {
    /// From pairs of a count and what it is a share of, per variant.
    fn of(name: &str, pairs: impl Iterator<Item = (u64, u64)>) -> Self {
        let (counts, shares) = pairs
            .map(|(count, all)| (count, if all == 0 { 0.0 } else { count as f64 / all as f64 }))
            .unzip();
        Self { name: name.to_owned(), counts, shares }
    }
}

#[cfg(test)]
mod tests {
    use dnslab_measure::Interval;

    use super::*;

    /// A run with intervals of 0.1 s, whose p99 is 1 ms but for one stall.
    fn run(intervals: u64) -> Measured {
        let interval = |at: u64| Interval {
            at_ns: at * 100_000_000,
            length_ns: 100_000_000,
            answered: 10,
            p50_ns: Some(500_000),
            p99_ns: Some(if at == 3 { 200_000_000 } else { 1_000_000 }),
            ..Interval::default()
        };
        Measured {
            window_ns: intervals * 100_000_000,
            window_start_ns: 0,
            sent_in_window: 0,
            answered_in_window: 0,
            turns: None,
            counters: Default::default(),
            warm_up: Default::default(),
            latency: Histogram::new(),
            service_time: Histogram::new(),
            send_lag: Histogram::new(),
            connect_time: Histogram::new(),
            handshake_time: Histogram::new(),
            resumed_handshake_time: Histogram::new(),
            early_data_time: Histogram::new(),
            pacing: None,
            network: Default::default(),
            intervals: (0..intervals).map(interval).collect(),
            resources: Default::default(),
            server_counters: None,
            workers: Vec::new(),
            tls: None,
        }
    }

    #[test]
    fn a_long_run_is_thinned_and_its_stall_stays() {
        let long = run(1_900);
        let timeline = Timeline::of(&[vec![&long]]);
        assert_eq!(timeline.at_s.len(), 475);
        assert_eq!(timeline.p99_ms[0].mean[0], Some(200.0));
        assert_eq!(timeline.p99_ms[0].mean[1], Some(1.0));
        assert_eq!(timeline.qps[0].mean[7], Some(100.0));
    }

    #[test]
    fn a_band_spans_the_runs() {
        let (one, mut two) = (run(10), run(10));
        two.intervals[5].answered = 20;
        let timeline = Timeline::of(&[vec![&one, &two]]);
        let qps = &timeline.qps[0];
        assert_eq!((qps.low[5], qps.mean[5], qps.high[5]), (Some(100.), Some(150.), Some(200.)));
    }

    #[test]
    fn a_stall_is_a_rate_of_zero() {
        let (steady, mut stalled) = (run(10), run(10));
        stalled.intervals.retain(|interval| !(400_000_000..700_000_000).contains(&interval.at_ns));
        let timeline = Timeline::of(&[vec![&steady, &stalled]]);
        let qps = &timeline.qps[0];
        assert_eq!((qps.low[5], qps.mean[5], qps.high[5]), (Some(0.), Some(50.), Some(100.)));
        assert_eq!(timeline.p50_ms[0].mean[5], Some(0.5), "of the run that had answers");
        // After the end of a run there is no rate at all.
        let (short, long) = (run(4), run(10));
        let timeline = Timeline::of(&[vec![&short], vec![&long]]);
        assert_eq!((timeline.qps[0].mean[3], timeline.qps[0].mean[4]), (Some(100.0), None));
    }

    #[test]
    fn the_percentile_curve_ends_at_one_query() {
        let mut latency = Histogram::new();
        (1..=1_000).for_each(|ms| latency.record_ns(ms * 1_000_000));
        assert_eq!(slowest_ms(&latency, 0.0005), None);
        let slowest = slowest_ms(&latency, 0.001).unwrap();
        assert!((998.0..=1_001.0).contains(&slowest), "{slowest}");
    }
}
