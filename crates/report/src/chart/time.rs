//! Figures over the time of a run, in buckets.

use std::collections::BTreeMap;

use dnslab_figures::Interval;
use dnslab_record::{Measured, Observation, RunRecord, Span};
use serde::Serialize;

use super::curve::{Curve, short};
use crate::csv::counted_qps;

/// Most points on a time axis: more than the pixels of a chart would show nothing.
const MAX_POINTS: u64 = 600;
/// Most points of a figure over all variants, so that a page of a thousand variants can be made and opened:
/// each has up to 57 curves. A hundred have as many points as a few.
const MAX_POINTS_OF_ALL: u64 = 60_000;
const LEAST_POINTS: u64 = 60;
const SECOND: u64 = 1_000_000_000;
/// Runs shorter than so many seconds are shown in finer buckets at first.
const FEW_SECONDS: u64 = 10;

/// Charts with one time axis, seconds since the measured window began: the warm-up is before zero.
#[derive(Debug, Serialize)]
pub(crate) struct Timeline {
    /// The charts in buckets of each width; the first one is shown until another is chosen.
    series: Vec<Series>,
    /// From when to when something was done during the loads of a variant, in its first run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<[f64; 2]>,
}

#[derive(Debug, Serialize)]
struct Series {
    width_s: f64,
    at_s: Vec<f64>,
    /// The curves, per variant, of each figure that was measured, by [`TimeChart::id`].
    figures: BTreeMap<&'static str, Vec<Curve>>,
    /// The use of each CPU, for each variant, or once where variants took turns on the same CPUs.
    cores: Vec<Plot>,
    /// How the queries ended, for each variant: shares of the answers by response code, and of the unanswered.
    rcodes: Vec<Plot>,
    /// True if the quantiles of all runs are those of the queries in each bucket; else the median is
    /// the mean of the medians inside it, and p95 and p99 the largest.
    #[serde(skip)]
    is_exact: bool,
}

/// Several curves of one variant.
#[derive(Debug, Serialize)]
struct Plot {
    name: String,
    labels: Vec<String>,
    curves: Vec<Curve>,
}

impl Timeline {
    /// The figures that any variant has, in the order in which they are shown.
    pub(crate) fn figures(&self) -> Vec<TimeChart> {
        let has = |figure: &TimeChart| {
            self.series.iter().any(|series| series.figures.contains_key(figure.id()))
        };
        TimeChart::ALL.into_iter().filter(has).collect()
    }

    /// Something was done during the loads.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) fn has_cores(&self) -> bool {
        self.series.iter().any(|series| !series.cores.is_empty())
    }

    pub(crate) fn has_rcodes(&self) -> bool {
        self.series.iter().any(|series| !series.rcodes.is_empty())
    }

    /// True if the quantiles in the buckets shown first are exact, see [`Series::is_exact`].
    pub(crate) fn has_exact_quantiles(&self) -> bool {
        self.series.first().is_none_or(|series| series.is_exact)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeChart {
    Qps,
    /// Queries per second that the servers counted themselves.
    CountedQps,
    P50,
    /// 0.95 quantile of the latency, milliseconds.
    P95,
    P99,
    /// CPU use of the server, in percent of one CPU.
    Cpu,
    /// Memory of the server, MiB.
    Memory,
    /// Octets of the logs of queries, kB per second.
    Log,
    /// Octets of DNS messages that the load sent and received, kB per second.
    Network,
    /// Connections opened, per second.
    Connections,
    /// Connections that are open.
    OpenConnections,
    /// TLS handshakes, full and resumed, per second.
    Handshakes,
}

impl TimeChart {
    const ALL: [Self; 12] = [
        Self::Qps,
        Self::CountedQps,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::Cpu,
        Self::Memory,
        Self::Log,
        Self::Network,
        Self::Connections,
        Self::OpenConnections,
        Self::Handshakes,
    ];

    /// Its name in the data and in the id of its chart.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Qps => "qps",
            Self::CountedQps => "counted",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Log => "log",
            Self::Network => "network",
            Self::Connections => "connections",
            Self::OpenConnections => "open-connections",
            Self::Handshakes => "handshakes",
        }
    }

    /// True for what is looked at less.
    pub(crate) fn is_aside(self) -> bool {
        matches!(
            self,
            Self::CountedQps
                | Self::Network
                | Self::Connections
                | Self::OpenConnections
                | Self::Handshakes
        )
    }

    fn of(self, run: &Observation<'_>, bucket: &Bucket) -> Option<f64> {
        let span = bucket.span;
        match self {
            Self::Qps => Some(bucket.answered? as f64 * 1e9 / bucket.own_ns as f64),
            Self::CountedQps => {
                Some(counted_qps(run, span)? * span.length_ns() as f64 / bucket.own_ns as f64)
            }
            Self::P50 => bucket.p50_ms,
            Self::P95 => bucket.p95_ms,
            Self::P99 => bucket.p99_ms,
            Self::Cpu => {
                let cpu_ns = run.watched.resources.cpu_ns(span)? as f64;
                // What is left of a turn is worked off in that of another load.
                let most = run.watched.resources.cpus.max(1) as f64;
                let used = cpu_ns / bucket.own_ns as f64;
                Some(100.0 * if run.measured.turns.is_some() { used.min(most) } else { used })
            }
            Self::Memory => {
                let octets = run.watched.resources.peak_memory_in_octets(span)?;
                Some(octets as f64 / 1_048_576.0)
            }
            Self::Log => {
                run.watched.resources.samples.last().filter(|last| last.log_octets > 0)?;
                let octets = run.watched.resources.growth(span, |sample| sample.log_octets)?;
                Some(octets as f64 / 1000.0 * 1e9 / bucket.own_ns as f64)
            }
            Self::Network => bucket.per_second(bucket.octets).map(|octets| octets / 1000.0),
            Self::Connections => bucket.per_second(bucket.opened),
            Self::OpenConnections => bucket.open.map(|open| open as f64),
            Self::Handshakes => bucket.per_second(bucket.handshakes),
        }
        .filter(|value| value.is_finite())
    }
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    /// Where it lies on the run's timeline.
    span: Span,
    /// The part of it that was the load's own, nanoseconds; 0 outside of the run.
    own_ns: u64,
    /// Answered queries; `None` outside of the run.
    answered: Option<u64>,
    /// Queries that ended: the weight of the medians.
    ended: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    /// The largest 0.99 quantile, milliseconds: a short stall stays visible.
    p99_ms: Option<f64>,
    /// Octets sent and received; `None` if they were not counted.
    octets: Option<u64>,
    opened: Option<u64>,
    /// Connections that were open when its last interval ended; `None` if that is not known.
    open: Option<u64>,
    handshakes: Option<u64>,
}

impl Bucket {
    /// The bucket of a run at this place; from 0 on it is in the measured window.
    fn empty(run: &Measured, at: i64, width_ns: i64) -> Self {
        let from = run.window_start_ns as i64 + at * width_ns;
        let to = (from + width_ns).min((run.window_start_ns + run.window_ns) as i64);
        let inside = to - from.max(0);
        // The rest of a run that is no whole bucket would be a rate of hardly any queries.
        let is_whole = 2 * inside >= width_ns;
        let is_alone = run.turns.is_none() && is_whole && !run.intervals.is_empty();
        Self {
            span: Span::between(from.max(0), to),
            own_ns: if is_alone { inside as u64 } else { 0 },
            answered: is_alone.then_some(0),
            ..Self::default()
        }
    }

    fn add(&mut self, interval: &Interval) {
        self.answered = Some(self.answered.unwrap_or(0) + interval.answered);
        let ended = interval.answered + interval.lost;
        if let Some(p50_ns) = interval.p50_ns {
            // What was answered is not told of older records' intervals: each weighs one at least.
            let (before, weight) = (self.ended as f64, ended.max(1) as f64);
            let sum = self.p50_ms.unwrap_or(0.0) * before + p50_ns as f64 / 1e6 * weight;
            self.p50_ms = Some(sum / (before + weight));
            self.ended += ended.max(1);
        }
        let largest = |known: Option<f64>, ns: Option<u64>| {
            [known, ns.map(|ns| ns as f64 / 1e6)].into_iter().flatten().reduce(f64::max)
        };
        self.p95_ms = largest(self.p95_ms, interval.p95_ns);
        self.p99_ms = largest(self.p99_ms, interval.p99_ns);
        if let Some(traffic) = &interval.traffic {
            let add = |sum: &mut Option<u64>, more: u64| *sum = Some(sum.unwrap_or(0) + more);
            add(&mut self.octets, traffic.sent_octets + traffic.received_octets);
            add(&mut self.opened, traffic.opened);
            add(&mut self.handshakes, traffic.full_handshakes + traffic.resumed_handshakes);
        }
    }

    fn per_second(&self, count: Option<u64>) -> Option<f64> {
        Some(count? as f64 * 1e9 / self.own_ns as f64)
    }
}

/// The buckets of a run, `before` of them before the measured window and `after` from its beginning on.
fn buckets(run: &Measured, width_ns: u64, before: u64, after: u64) -> Vec<Bucket> {
    let start = run.window_start_ns as i64;
    let width = width_ns as i64;
    let mut all: Vec<Bucket> =
        (-(before as i64)..after as i64).map(|at| Bucket::empty(run, at, width)).collect();
    // The quantiles of a whole second are known, where its queries were counted together.
    let seconds = exact(run, width_ns);
    let mut open = 0u64;
    for interval in seconds.unwrap_or(&run.intervals) {
        let opened = interval.traffic.and_then(|traffic| Some((traffic.opened, traffic.ended?)));
        let still_open = opened.map(|(opened, ended)| {
            open = (open + opened).saturating_sub(ended);
            open
        });
        let middle = (interval.at_ns + interval.length_ns / 2) as i64 - start;
        let at = middle.div_euclid(width) + before as i64;
        let Some(bucket) = usize::try_from(at).ok().and_then(|at| all.get_mut(at)) else {
            continue;
        };
        match run.turns {
            None if bucket.own_ns == 0 => continue,
            None => {}
            Some(_) => bucket.own_ns += interval.own_ns.unwrap_or(0),
        }
        bucket.add(interval);
        bucket.open = still_open;
    }
    // Outside of the load's turns there is nothing to tell.
    all.iter_mut()
        .filter(|bucket| bucket.own_ns == 0)
        .for_each(|bucket| *bucket = Bucket::default());
    all
}

/// The intervals of whole seconds, if the buckets are such and the record has them.
fn exact(run: &Measured, width_ns: u64) -> Option<&[Interval]> {
    let is_width = commonest_ns(run.seconds.iter()) == Some(width_ns);
    is_width.then_some(run.seconds.as_slice())
}

impl Timeline {
    /// The curves on a time axis that fits all runs, in buckets of a second and in finer ones.
    pub(super) fn of(runs: &[Vec<Observation<'_>>]) -> Self {
        let all = || runs.iter().flatten().copied();
        let longest_ns = all().map(|run| run.measured.window_ns).max().unwrap_or(0);
        let interval_ns = interval_ns(all().map(|run| run.measured));
        let points = |width: u64| longest_ns.div_ceil(width);
        let max_points =
            (MAX_POINTS_OF_ALL / runs.len().max(1) as u64).clamp(LEAST_POINTS, MAX_POINTS);
        // Whole intervals: then each bucket has as many as any other.
        let wide = interval_ns * ((SECOND + interval_ns / 2) / interval_ns).max(1);
        let wide = wide * points(wide).div_ceil(max_points).max(1);
        let fine = interval_ns * points(interval_ns).div_ceil(max_points).max(1);
        let mut widths = vec![wide, fine];
        if longest_ns < FEW_SECONDS * SECOND {
            widths.reverse();
        }
        widths.dedup();
        // A chart of one point shows nothing, and one of two little.
        widths.retain(|&width| points(width) > if width == fine { 1 } else { 2 });
        let series = widths.iter().map(|&width| Series::of(runs, width)).collect();
        Self { series, events: Vec::new() }
    }
}

impl Timeline {
    /// Adds the use of each CPU. Where variants took turns the servers and the load of all are on the same CPUs, and
    /// what they use is not one variant's.
    pub(super) fn with_cores(mut self, runs: &[Vec<&RunRecord>]) -> Self {
        let takes_turns = |record: &&RunRecord| {
            record.measured.as_ref().is_some_and(|measured| measured.turns.is_some())
        };
        let is_together = runs.iter().flatten().any(takes_turns);
        for series in &mut self.series {
            series.cores = match is_together {
                true => {
                    let first = runs.iter().find(|runs| !runs.is_empty());
                    first.and_then(|runs| cores("", runs, series)).into_iter().collect()
                }
                false => runs
                    .iter()
                    .filter_map(|runs| cores(&runs.first()?.variant, runs, series))
                    .collect(),
            };
        }
        self
    }
}

impl Timeline {
    /// Adds when something was done during the loads.
    pub(super) fn with_events(mut self, runs: &[Vec<&RunRecord>]) -> Self {
        let firsts = runs.iter().filter_map(|runs| runs.first());
        let spans = firsts.filter_map(|record| {
            let (event, measured) = (record.watched.event.as_ref()?, record.measured.as_ref()?);
            let since = |at_ns: i64| (at_ns as f64 - measured.window_start_ns as f64) / 1e9;
            Some([since(event.at_ns), since(event.ended_ns)])
        });
        self.events = spans.collect();
        self
    }
}

impl Timeline {
    /// Adds how the queries ended, where they did so in more than one way.
    pub(super) fn with_rcodes(mut self, runs: &[Vec<&RunRecord>]) -> Self {
        let ends = Ends::of(runs);
        if ends.labels.len() < 2 {
            return self;
        }
        for series in &mut self.series {
            series.rcodes = runs.iter().filter_map(|runs| ends.plot(runs, series)).collect();
        }
        self
    }
}

/// Response codes that have a line of their own; a plot has lines in as many colours as there are.
const MAX_CODES: usize = 5;

/// In which ways queries ended, in any run.
struct Ends<'a> {
    /// The most frequent response codes, the first one first.
    codes: Vec<&'a str>,
    /// The codes, then what the rest is called.
    labels: Vec<String>,
}

impl<'a> Ends<'a> {
    fn of(runs: &[Vec<&'a RunRecord>]) -> Self {
        let measured = runs.iter().flat_map(|runs| telling(runs));
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut lost = 0;
        for interval in measured.flat_map(|measured| &measured.intervals) {
            lost += interval.lost;
            for (code, count) in &interval.rcodes {
                *counts.entry(code).or_default() += count;
            }
        }
        let mut codes: Vec<(&str, u64)> = counts.into_iter().collect();
        codes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let has_others = codes.len() > MAX_CODES;
        codes.truncate(MAX_CODES);
        let codes: Vec<&str> = codes.into_iter().map(|(code, _)| code).collect();
        let others = [("other codes", has_others), ("unanswered", lost > 0)];
        let others = others.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name);
        let labels = codes.iter().copied().chain(others).map(str::to_owned).collect();
        Self { codes, labels }
    }

    /// The shares of the queries of one variant that ended in each way, percent; `None` if no run tells.
    fn plot(&self, runs: &[&RunRecord], series: &Series) -> Option<Plot> {
        let counted: Vec<Vec<Ended>> = telling(runs).map(|run| self.counted(run, series)).collect();
        let curve =
            |label| Curve::over(series.at_s.len(), &counted, |run, at| percent_of(&run[at], label));
        let name = runs.first()?.variant.clone();
        let curves = (0..self.labels.len()).map(curve).collect();
        (!counted.is_empty()).then(|| Plot { name, labels: self.labels.clone(), curves })
    }

    /// How many queries of a run ended in each way, in each bucket.
    fn counted(&self, run: &Measured, series: &Series) -> Vec<Ended> {
        let mut all = vec![vec![0; self.labels.len()]; series.at_s.len()];
        let first = series.at_s.first().map_or(0.0, |at| at - series.width_s / 2.0);
        for interval in &run.intervals {
            let middle = (interval.at_ns + interval.length_ns / 2) as f64;
            let seconds = (middle - run.window_start_ns as f64) / 1e9 - first;
            let place = (seconds / series.width_s).floor();
            let Some(ended) = all.get_mut(place as usize).filter(|_| place >= 0.0) else {
                continue;
            };
            for (code, count) in &interval.rcodes {
                let place = self.codes.iter().position(|known| known == code);
                ended[place.unwrap_or(self.codes.len())] += count;
            }
            // The last label is that of the unanswered, if there are any.
            *ended.last_mut().expect("there are two ways at least") += interval.lost;
        }
        all
    }
}

/// How many queries ended in each way.
type Ended = Vec<u64>;

fn percent_of(ended: &Ended, label: usize) -> Option<f64> {
    let all: u64 = ended.iter().sum();
    (all > 0).then(|| 100.0 * ended[label] as f64 / all as f64)
}

/// The runs whose intervals have response codes: those of older records have none.
fn telling<'a>(runs: &[&'a RunRecord]) -> impl Iterator<Item = &'a Measured> {
    let tells = |measured: &&Measured| {
        measured.intervals.iter().any(|interval| !interval.rcodes.is_empty())
    };
    runs.iter().filter_map(|record| record.measured.as_ref()).filter(tells)
}

/// The use of each CPU in the buckets of a series; `None` if it is not known. CPUs are those of the first
/// run.
fn cores(name: &str, runs: &[&RunRecord], series: &Series) -> Option<Plot> {
    let first = runs.first()?;
    let cpus = &first.observation()?.watched.resources.core_cpus;
    let seen: Vec<Observation<'_>> = runs
        .iter()
        .filter_map(|record| record.observation())
        .filter(|run| run.watched.resources.core_cpus == *cpus)
        .collect();
    let curve = |nth| {
        Curve::over(series.at_s.len(), &seen, |run, at| {
            core_percent(run, nth, series.at_s[at], series.width_s)
        })
    };
    let curves: Vec<Curve> = (0..cpus.len()).map(curve).collect();
    let is_known = curves.iter().any(Curve::has_any);
    let labels = cpus.iter().map(|cpu| cpu_label(*cpu, first)).collect();
    is_known.then(|| Plot { name: name.to_owned(), labels, curves })
}

/// The use of the nth CPU in a bucket with its middle at `at_s`, seconds since the measured window began.
fn core_percent(run: &Observation<'_>, nth: usize, at_s: f64, width_s: f64) -> Option<f64> {
    let middle = at_s * 1e9 + run.measured.window_start_ns as f64;
    let half_ns = width_s * 5e8;
    let to = (middle + half_ns).min(run.measured.window().to_ns as f64);
    let span = Span::between((middle - half_ns).max(0.0) as i64, to as i64);
    Some((run.watched.resources.core_share(nth, span)? * 100.0).min(100.0))
}

fn cpu_label(cpu: usize, record: &RunRecord) -> String {
    let of_load = record.load.cpus.contains(&cpu) && !record.server.is_elsewhere();
    match (record.server.cpus.contains(&cpu), of_load) {
        (true, true) => format!("CPU {cpu} (server, load)"),
        (true, false) => format!("CPU {cpu} (server)"),
        (false, true) => format!("CPU {cpu} (load)"),
        (false, false) => format!("CPU {cpu}"),
    }
}

impl Series {
    fn of(runs: &[Vec<Observation<'_>>], width_ns: u64) -> Self {
        let all = || runs.iter().flatten().copied();
        let after = all().map(|run| run.measured.window_ns.div_ceil(width_ns)).max().unwrap_or(0);
        let warm_up_ns = all().map(|run| {
            let Measured { intervals, window_start_ns, .. } = run.measured;
            let first = intervals.first().map_or(*window_start_ns, |first| first.at_ns);
            window_start_ns.saturating_sub(first)
        });
        let before = warm_up_ns.max().unwrap_or(0).div_ceil(width_ns).min(after);
        let steps = (before + after) as usize;
        let middle = |step: usize| (step as f64 - before as f64 + 0.5) * width_ns as f64 / 1e9;
        let binned: Vec<Vec<(Observation<'_>, Vec<Bucket>)>> = runs
            .iter()
            .map(|runs| {
                runs.iter()
                    .map(|run| (*run, buckets(run.measured, width_ns, before, after)))
                    .collect()
            })
            .collect();
        let mut figures = BTreeMap::new();
        for figure in TimeChart::ALL {
            let curves: Vec<Curve> = binned
                .iter()
                .map(|runs| {
                    Curve::over(steps, runs, |(run, buckets), at| {
                        let bucket = &buckets[at];
                        (bucket.own_ns > 0).then(|| figure.of(run, bucket)).flatten()
                    })
                })
                .collect();
            if figure.is_shown(&curves) {
                figures.insert(figure.id(), curves);
            }
        }
        let is_exact = all().all(|run| {
            exact(run.measured, width_ns).is_some()
                || interval_ns(std::iter::once(run.measured)) == width_ns
        });
        Self {
            width_s: width_ns as f64 / 1e9,
            at_s: (0..steps).map(middle).map(short).collect(),
            figures,
            cores: Vec::new(),
            rcodes: Vec::new(),
            is_exact,
        }
    }
}

impl TimeChart {
    /// False if there is nothing to see: no value, or none of what hardly any load has.
    fn is_shown(self, curves: &[Curve]) -> bool {
        let mut values = curves.iter().flat_map(|curve| &curve.mean).flatten();
        match self {
            Self::Connections | Self::OpenConnections | Self::Handshakes => {
                values.any(|value| *value > 0.0)
            }
            _ => values.next().is_some(),
        }
    }
}

fn interval_ns<'a>(runs: impl Iterator<Item = &'a Measured>) -> u64 {
    commonest_ns(runs.flat_map(|run| &run.intervals)).unwrap_or(100_000_000)
}

/// The commonest length of some intervals, nanoseconds; never 0.
fn commonest_ns<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Option<u64> {
    let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
    for interval in intervals.filter(|interval| interval.length_ns > 0) {
        *lengths.entry(interval.length_ns).or_default() += 1;
    }
    lengths.into_iter().max_by_key(|(_, count)| *count).map(|(length, _)| length)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use dnslab_figures::Histogram;
    use dnslab_record::{LoadFacts, ServerFacts, Watched};

    // Nothing here looks at it.
    static LOAD: LazyLock<LoadFacts> = LazyLock::new(|| {
        serde_json::from_str(
            r#"{"transport":"udp","target":"","clients":1,"mode":{"mode":"closed","outstanding":1},
            "duration_ns":0,"warm_up_ns":0,"timeout_ns":0,"workers":1,"cpus":[],"queries":"","seed":1,
            "send_path":"","batch_delay_ns":0}"#,
        )
        .unwrap()
    });
    static SERVER: LazyLock<ServerFacts> = LazyLock::new(ServerFacts::default);
    static WATCHED: LazyLock<Watched> = LazyLock::new(Watched::default);

    fn seen(measured: &Measured) -> Observation<'_> {
        Observation { load: &LOAD, server: &SERVER, measured, watched: &WATCHED }
    }

    /// A run with intervals of 0.1 s, whose p99 is 1 ms but for one stall.
    fn run(intervals: u64) -> Measured {
        let intervals_of_run = (0..intervals).map(|at| Interval {
            at_ns: at * 100_000_000,
            length_ns: 100_000_000,
            answered: 10,
            p50_ns: Some(500_000),
            p99_ns: Some(if at == 3 { 200_000_000 } else { 1_000_000 }),
            ..Interval::default()
        });
        Measured {
            began_unix_ns: 0,
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
            start_lag: Histogram::new(),
            connect_time: Histogram::new(),
            handshake_time: Histogram::new(),
            resumed_handshake_time: Histogram::new(),
            early_data_time: Histogram::new(),
            windows: Vec::new(),
            pacing: None,
            network: Default::default(),
            intervals: intervals_of_run.collect(),
            workers: Vec::new(),
            tls: None,
            seconds: Vec::new(),
        }
    }

    /// The curve of a figure of the first variant, in buckets of the nth width.
    fn curve(timeline: &Timeline, nth: usize, figure: TimeChart, variant: usize) -> &Curve {
        &timeline.series[nth].figures[figure.id()][variant]
    }

    #[test]
    fn buckets_are_of_a_second_and_finer_on_demand() {
        let long = run(1_900);
        let timeline = Timeline::of(&[vec![seen(&long)]]);
        let widths: Vec<f64> = timeline.series.iter().map(|series| series.width_s).collect();
        assert_eq!(widths, [1.0, 0.4]);
        assert_eq!(timeline.series[0].at_s.len(), 190);
        assert_eq!(timeline.series[1].at_s.len(), 475);
        for nth in 0..2 {
            assert_eq!(curve(&timeline, nth, TimeChart::P99, 0).mean[0], Some(200.0), "the stall");
            assert_eq!(curve(&timeline, nth, TimeChart::P99, 0).mean[1], Some(1.0));
            assert_eq!(curve(&timeline, nth, TimeChart::Qps, 0).mean[7], Some(100.0));
        }
        assert!(curve(&timeline, 0, TimeChart::Qps, 0).low.is_empty(), "one run has no band");
        assert!(!timeline.series[0].is_exact);
        // A short run begins with the finer ones.
        let short = run(35);
        let widths =
            Timeline::of(&[vec![seen(&short)]]).series.into_iter().map(|series| series.width_s);
        assert_eq!(widths.collect::<Vec<_>>(), [0.1, 1.0]);
    }

    #[test]
    fn many_variants_share_the_points() {
        let long = run(1_900);
        let points = |variants| -> Vec<usize> {
            let timeline = Timeline::of(&vec![vec![seen(&long)]; variants]);
            timeline.series.iter().map(|series| series.at_s.len()).collect()
        };
        assert_eq!(points(1), points(100));
        assert_eq!(points(100), [190, 475]);
        assert_eq!(points(1_000), [48, 60]);
        let timeline = Timeline::of(&[vec![seen(&long)]]);
        assert_eq!(curve(&timeline, 1, TimeChart::Qps, 0).low.capacity(), 0, "one run has no band");
    }

    #[test]
    fn the_quantiles_of_a_second_are_its_own_where_they_are_known() {
        let mut long = run(200);
        long.seconds = (0..20)
            .map(|at| Interval {
                at_ns: at * SECOND,
                length_ns: SECOND,
                answered: 100,
                p99_ns: Some(7_000_000),
                ..Interval::default()
            })
            .collect();
        let timeline = Timeline::of(&[vec![seen(&long)]]);
        assert_eq!(curve(&timeline, 0, TimeChart::P99, 0).mean[0], Some(7.0));
        assert_eq!(curve(&timeline, 0, TimeChart::Qps, 0).mean[0], Some(100.0));
        assert_eq!(curve(&timeline, 1, TimeChart::P99, 0).mean[3], Some(200.0), "of 0.1 s");
        assert!(timeline.series.iter().all(|series| series.is_exact));
    }

    #[test]
    fn time_begins_with_the_window() {
        // Both have one second of warm-up, the second one waited for its turn.
        let (mut first, mut second) = (run(50), run(50));
        for (run, window_start_ns) in [(&mut first, SECOND), (&mut second, 9 * SECOND)] {
            run.intervals
                .iter_mut()
                .for_each(|interval| interval.at_ns += window_start_ns - SECOND);
            run.window_start_ns = window_start_ns;
            run.window_ns = 4 * SECOND;
        }
        second.turns = Some(Default::default());
        second.intervals.iter_mut().for_each(|interval| interval.own_ns = Some(50_000_000));
        let timeline = Timeline::of(&[vec![seen(&first)], vec![seen(&second)]]);
        let series = &timeline.series[0];
        assert_eq!((series.at_s[0], series.at_s.len()), (-0.95, 50));
        assert_eq!(curve(&timeline, 0, TimeChart::Qps, 0).mean[10], Some(100.0));
        // Half of the time was its own.
        assert_eq!(curve(&timeline, 0, TimeChart::Qps, 1).mean[10], Some(200.0));
    }

    #[test]
    fn octets_connections_and_handshakes_are_rates() {
        let mut run = run(20);
        let traffic = dnslab_figures::IntervalTraffic {
            sent_octets: 1_024,
            received_octets: 9_216,
            opened: 3,
            ended: Some(1),
            full_handshakes: 1,
            resumed_handshakes: 2,
        };
        run.intervals.iter_mut().for_each(|interval| interval.traffic = Some(traffic));
        let timeline = Timeline::of(&[vec![seen(&run)]]);
        let at = |figure| curve(&timeline, 0, figure, 0).mean[5];
        assert_eq!(at(TimeChart::Network), Some(102.4), "kB per second");
        assert_eq!(
            (at(TimeChart::Connections), at(TimeChart::Handshakes)),
            (Some(30.0), Some(30.0))
        );
        let open = &curve(&timeline, 0, TimeChart::OpenConnections, 0).mean;
        assert!(open.windows(2).all(|pair| pair[1].zip(pair[0]).is_none_or(|(b, a)| b - a == 2.0)));
        assert!(!timeline.series[0].figures.contains_key("log"), "not measured");
    }

    #[test]
    fn a_band_spans_the_runs() {
        let (one, mut two) = (run(10), run(10));
        two.intervals[5].answered = 20;
        let timeline = Timeline::of(&[vec![seen(&one), seen(&two)]]);
        let qps = curve(&timeline, 0, TimeChart::Qps, 0);
        assert_eq!((qps.low[5], qps.mean[5], qps.high[5]), (Some(100.), Some(141.4), Some(200.)));
    }

    #[test]
    fn what_no_interval_tells_is_no_rate() {
        let whole = Measured { intervals: Vec::new(), ..run(20) };
        assert!(Timeline::of(&[vec![seen(&whole)]]).figures().is_empty());
        assert!(Timeline::of(&[vec![seen(&run(1))]]).figures().is_empty(), "a chart of one point");
    }

    #[test]
    fn a_stall_is_a_rate_of_zero() {
        let (steady, mut stalled) = (run(10), run(10));
        stalled.intervals.retain(|interval| !(400_000_000..700_000_000).contains(&interval.at_ns));
        let timeline = Timeline::of(&[vec![seen(&steady), seen(&stalled)]]);
        let qps = curve(&timeline, 0, TimeChart::Qps, 0);
        assert_eq!((qps.low[5], qps.mean[5], qps.high[5]), (Some(0.), Some(50.), Some(100.)));
        let p50 = curve(&timeline, 0, TimeChart::P50, 0);
        assert_eq!(p50.mean[5], Some(0.5), "of the run that had answers");
        // After the end of a run there is no rate at all.
        let (short, long) = (run(4), run(10));
        let timeline = Timeline::of(&[vec![seen(&short)], vec![seen(&long)]]);
        let qps = curve(&timeline, 0, TimeChart::Qps, 0);
        assert_eq!((qps.mean[3], qps.mean[4]), (Some(100.0), None));
    }
}
