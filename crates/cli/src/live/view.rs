//! What is shown of a load while it runs, as values: fed with events and the time, read by all forms of the live
//! view. Its memory does not grow with the length of a run.

use std::collections::VecDeque;
use std::time::Duration;

use dnslab_figures::{Counters, Interval};
use dnslab_record::{Bottleneck, CaseId, LiveLoad, LiveServer, LoadMode, LoadPart, visible};
use dnslab_settings::Experiment;

use super::bottleneck::{Seen, so_far};
use super::series::{LatencyCounts, Point, Series, Use, bounds_ns, share_of};
pub(crate) use super::sum::{Figures, Kind, Sum};

/// Nanoseconds in the time between two updates of the latest figures.
const SECOND: u64 = 1_000_000_000;

/// Ended runs that are remembered.
const MAX_ENDED: usize = 100;

/// What a session does now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Activity {
    /// Servers start, or the first interval is not over.
    #[default]
    Starting,
    /// The short trial that finds the rate of the common load.
    Trial,
    Loading,
    /// Answers are compared, those of this variant with those of the other.
    Comparing(String, String),
}

/// How long all runs are expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Estimate {
    /// Runs that are to be made.
    pub(crate) runs: usize,
    /// The time that all of them take.
    pub(crate) all: Duration,
}

impl Estimate {
    fn of_runs(&self, runs: usize) -> Duration {
        self.all.mul_f64(runs as f64 / self.runs.max(1) as f64)
    }
}

/// Runs that are made together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Round {
    /// `round 2`, `tcp, run 1`, or a step of a search.
    pub(crate) name: String,
    /// Number of its first run, from 1.
    pub(crate) number: usize,
    /// Number of all runs; `None` in a search.
    pub(crate) count: Option<usize>,
    /// Runs that it has.
    runs: usize,
    began: Duration,
}

/// A run that is over, or a step of a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) text: String,
    /// Whether the run counts.
    pub(crate) is_valid: bool,
}

/// A second of a load is over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Latest {
    /// Its end, nanoseconds since the load began.
    pub(crate) until_ns: u64,
    pub(crate) is_warm_up: bool,
    pub(crate) part: LoadPart,
    pub(crate) figures: Figures,
}

/// A load that runs, and all that its figures are made from.
#[derive(Clone, Debug)]
struct Load {
    kind: Kind,
    part: LoadPart,
    /// When the last interval was told, since the session began.
    heard: Duration,
    /// End of the last interval, nanoseconds since the load began.
    at_ns: u64,
    window_ns: std::ops::Range<u64>,
    /// Of the measured window, and of the warm-up as long as there is nothing else.
    sum: Sum,
    is_warm_up: bool,
    second: Sum,
    latest: Option<Latest>,
    series: Series,
    counts: LatencyCounts,
    counters: Counters,
    in_flight: u64,
    open_connections: u64,
    server: Option<LiveServer>,
    /// CPU time of the busiest worker.
    load_cpu_ns: u64,
    peak_memory_octets: u64,
}

impl Load {
    fn new(kind: Kind, part: LoadPart) -> Self {
        Self {
            kind,
            part,
            heard: Duration::ZERO,
            at_ns: 0,
            window_ns: 0..0,
            sum: Sum::default(),
            is_warm_up: false,
            second: Sum::default(),
            latest: None,
            series: Series::default(),
            counts: LatencyCounts::default(),
            counters: Counters::default(),
            in_flight: 0,
            open_connections: 0,
            server: None,
            load_cpu_ns: 0,
            peak_memory_octets: 0,
        }
    }

    /// Returns the second that is over with this interval, if one is.
    fn add(&mut self, live: &LiveLoad<'_>, bounds_ns: &[u64], now: Duration) -> Option<Latest> {
        let latest = live.latest;
        let interval = &latest.interval;
        let is_warm_up = latest.is_warm_up();
        if self.is_warm_up && !is_warm_up {
            self.sum = Sum::default();
            self.second = Sum::default();
            self.counts = LatencyCounts::default();
        }
        self.is_warm_up = is_warm_up;
        self.heard = now;
        // Intervals that were not told have the rest of it.
        let load_cpu_ns = latest.busiest_worker_ns.saturating_sub(self.load_cpu_ns);
        let load_cpu_ns = if interval.at_ns > self.at_ns { 0 } else { load_cpu_ns };
        self.at_ns = interval.at_ns + interval.length_ns;
        self.window_ns = latest.window_ns.clone();
        let counts = LatencyCounts::of(&latest.latency, bounds_ns);
        self.counts.merge(&counts);
        for sum in [&mut self.sum, &mut self.second] {
            sum.add(live, self.server, load_cpu_ns);
        }
        self.series.add(
            interval,
            counts,
            Use {
                server_cpu: live.server.and_then(|server| share_of_own(server, interval)),
                load_cpu_ns,
                memory_octets: live.server.map(|server| server.memory_octets),
            },
        );
        self.server = live.server.or(self.server);
        self.load_cpu_ns = latest.busiest_worker_ns;
        let memory = live.server.map_or(0, |server| server.memory_octets);
        self.peak_memory_octets = self.peak_memory_octets.max(memory);
        self.counters = match is_warm_up {
            true => latest.counters.warm_up.clone(),
            false => latest.counters.measured.clone(),
        };
        (self.in_flight, self.open_connections) = (latest.in_flight(), latest.open_connections());
        // Intervals need not divide a second.
        let length_ns = self.second.until_ns - self.second.from_ns;
        let is_over = length_ns + interval.length_ns / 2 >= SECOND;
        if is_over { self.end_second() } else { None }
    }

    /// `None` for one in which the load had no turn, and no query ended.
    fn end_second(&mut self) -> Option<Latest> {
        let second = std::mem::take(&mut self.second);
        let is_idle = second.own_ns + second.answered + second.lost == 0;
        let latest = Latest {
            until_ns: second.until_ns,
            is_warm_up: self.is_warm_up,
            part: self.part,
            figures: second.figures(),
        };
        self.latest = Some(latest.clone());
        Some(latest).filter(|_| !is_idle)
    }

    /// The figures of the phase until now. What is lost in it are its own queries, as in the result: an interval has the
    /// losses of an earlier phase that were noticed in it.
    fn so_far(&self) -> Figures {
        let outcomes = &self.counters.outcomes;
        let lost = outcomes.settled().saturating_sub(outcomes.answered);
        let lost_share = lost as f64 / outcomes.settled().max(1) as f64;
        Figures { lost, lost_share, ..self.sum.figures() }
    }

    fn view(&self) -> LoadView {
        let partial = (self.second.until_ns > 0).then(|| self.second.figures());
        let has_begun = self.sum.until_ns > 0;
        let seen = Seen {
            kind: &self.kind,
            counters: &self.counters,
            sum: &self.sum,
            is_loaded: self.part == LoadPart::Main && !self.is_warm_up,
        };
        LoadView {
            name: self.kind.name.clone(),
            how: self.kind.how.clone(),
            part: self.part,
            at_ns: self.at_ns,
            heard: self.heard,
            window_ns: self.window_ns.clone(),
            is_warm_up: self.is_warm_up,
            is_paced: matches!(self.kind.mode, LoadMode::Open { .. })
                || self.part == LoadPart::Common,
            is_stream: self.kind.is_stream,
            now: self.latest.as_ref().map(|latest| latest.figures.clone()).or(partial),
            so_far: has_begun.then(|| self.so_far()),
            points: self.series.points(),
            counts: self.counts.clone(),
            counters: self.counters.clone(),
            in_flight: self.in_flight,
            open_connections: self.open_connections,
            server: self.server,
            server_drops: self.sum.server_drops(),
            peak_memory_octets: self.peak_memory_octets,
            bottleneck: so_far(&seen),
        }
    }
}

/// What a server uses now of its CPUs, in the load's own time.
fn share_of_own(server: LiveServer, interval: &Interval) -> Option<f64> {
    let used_ns = server.cpu_share? * interval.length_ns as f64 / server.cpus.max(1) as f64;
    share_of(used_ns as u64, interval.own_ns.unwrap_or(interval.length_ns))
}

/// What is drawn of a load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoadView {
    pub(crate) name: String,
    /// How it is asked, in words.
    pub(crate) how: String,
    pub(crate) part: LoadPart,
    /// End of the last interval, nanoseconds since the load began.
    pub(crate) at_ns: u64,
    /// When that interval was told, since the session began.
    pub(crate) heard: Duration,
    /// The measured window, nanoseconds since the load began.
    pub(crate) window_ns: std::ops::Range<u64>,
    pub(crate) is_warm_up: bool,
    /// It has a rate that was asked for.
    pub(crate) is_paced: bool,
    pub(crate) is_stream: bool,
    /// Of the last second.
    pub(crate) now: Option<Figures>,
    /// Of the measured window so far, in the warm-up of that.
    pub(crate) so_far: Option<Figures>,
    pub(crate) points: Vec<Point>,
    /// Latencies of the same time as `so_far`.
    pub(crate) counts: LatencyCounts,
    /// Sums of the same time.
    pub(crate) counters: Counters,
    pub(crate) in_flight: u64,
    pub(crate) open_connections: u64,
    /// `None` where nobody watches the server.
    pub(crate) server: Option<LiveServer>,
    /// Datagrams dropped at its sockets in this phase.
    pub(crate) server_drops: u64,
    pub(crate) peak_memory_octets: u64,
    /// What bounds the answered rate as far as can be told; `None` before there is anything to tell.
    pub(crate) bottleneck: Option<Bottleneck>,
}

impl LoadView {
    /// How far the load is at an instant, and how long it lasts in all.
    pub(crate) fn progress(&self, now: Duration) -> (Duration, Duration) {
        let all = Duration::from_nanos(self.window_ns.end);
        let at = Duration::from_nanos(self.at_ns) + now.saturating_sub(self.heard);
        (at.min(all), all)
    }
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct View {
    pub(crate) heading: String,
    pub(crate) activity: Activity,
    pub(crate) round: Option<Round>,
    pub(crate) loads: Vec<LoadView>,
    /// The oldest first.
    pub(crate) ended: Vec<Ended>,
    /// What is searched has steps, not runs.
    pub(crate) is_search: bool,
    estimate: Estimate,
    /// Runs that have ended since the session began, and the time that they took as a multiple of what was
    /// expected.
    done: usize,
    pace: f64,
}

impl View {
    /// Time until all runs are over; `None` if nobody can tell.
    pub(crate) fn left(&self, now: Duration) -> Option<Duration> {
        let round = self.round.as_ref().filter(|_| !self.is_search)?;
        let expected = self.estimate.of_runs(round.runs).mul_f64(self.pace);
        let by_plan = expected.saturating_sub(now.saturating_sub(round.began));
        let of_loads = self.loads.iter().filter(|_| self.activity == Activity::Loading);
        let of_loads = of_loads.map(|load| {
            let (at, all) = load.progress(now);
            all - at
        });
        let in_round = by_plan.max(of_loads.max().unwrap_or_default());
        let after = self.estimate.runs.saturating_sub(self.done + round.runs);
        Some(in_round + self.estimate.of_runs(after).mul_f64(self.pace))
    }
}

/// What is fed.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    heading: String,
    is_search: bool,
    estimate: Estimate,
    /// What is known of the variants.
    kinds: Vec<Kind>,
    activity: Activity,
    round: Option<Round>,
    loads: Vec<Load>,
    ended: VecDeque<Ended>,
    /// Runs that have ended, with the time that was expected for them and the time that they took.
    done: usize,
    expected: Duration,
    took: Duration,
    bounds_ns: Vec<u64>,
}

impl Model {
    pub(crate) fn of_experiment(experiment: &Experiment, estimate: Estimate) -> Self {
        let kinds = experiment.variants.iter().map(Kind::of).collect();
        Self::of_kinds(&experiment.question, kinds, estimate)
    }

    pub(super) fn of_kinds(question: &str, kinds: Vec<Kind>, estimate: Estimate) -> Self {
        Self { kinds, estimate, ..Self::new(question, false) }
    }

    pub(crate) fn of_search(intent: &str) -> Self {
        Self::new(intent, true)
    }

    fn new(heading: &str, is_search: bool) -> Self {
        Self {
            heading: visible(heading).into_owned(),
            is_search,
            estimate: Estimate::default(),
            kinds: Vec::new(),
            activity: Activity::Starting,
            round: None,
            loads: Vec::new(),
            ended: VecDeque::new(),
            done: 0,
            expected: Duration::ZERO,
            took: Duration::ZERO,
            bounds_ns: bounds_ns(),
        }
    }

    pub(crate) fn trial_begins(&mut self) {
        self.activity = Activity::Trial;
    }

    pub(crate) fn comparison_begins(&mut self, variant: &str, against: &str) {
        self.activity = Activity::Comparing(variant.to_owned(), against.to_owned());
    }

    /// A round begins whose runs are in no figure.
    pub(crate) fn profile_begins(&mut self, name: &str, now: Duration) {
        let name = name.to_owned();
        self.begin(Round { name, number: 0, count: None, runs: 0, began: now }, now);
    }

    /// The runs of these variants begin together. What is shown of those before stays until there is something to
    /// show of them. Returns what these are called.
    pub(crate) fn round_begins(
        &mut self,
        cases: &[CaseId],
        (number, count): (usize, usize),
        now: Duration,
    ) -> String {
        let name = match cases {
            [case] => format!("{}, run {}", case.variant, case.repetition),
            [first, ..] => format!("round {}", first.repetition),
            [] => String::new(),
        };
        let runs = cases.len();
        let round = Round { name: name.clone(), number, count: Some(count), runs, began: now };
        self.begin(round, now);
        name
    }

    pub(crate) fn step_begins(&mut self, name: String, number: usize, kind: Kind, now: Duration) {
        self.kinds = vec![kind];
        self.begin(Round { name, number, count: None, runs: 1, began: now }, now);
    }

    /// Columns of the longest name.
    pub(crate) fn name_width(&self) -> usize {
        self.kinds.iter().map(|kind| kind.name.chars().count()).max().unwrap_or(0)
    }

    /// Name of the load of a step.
    pub(crate) fn only_kind(&self) -> Option<String> {
        self.kinds.first().map(|kind| kind.name.clone())
    }

    fn begin(&mut self, round: Round, now: Duration) {
        if let Some(last) = self.round.replace(round) {
            self.done += last.runs;
            self.expected += self.estimate.of_runs(last.runs);
            self.took += now.saturating_sub(last.began);
        }
        self.activity = Activity::Starting;
    }

    /// An interval of the load of a variant is over. Returns the second that is over with it, if one is.
    pub(crate) fn interval(
        &mut self,
        variant: &str,
        live: &LiveLoad<'_>,
        now: Duration,
    ) -> Option<Latest> {
        if self.activity != Activity::Loading {
            // Those of the round before.
            self.loads.clear();
            self.activity = Activity::Loading;
        }
        let place = self.loads.iter().position(|load| load.kind.name == variant);
        let place = place.or_else(|| {
            let kind = self.kinds.iter().find(|kind| kind.name == variant)?;
            self.loads.push(Load::new(kind.clone(), live.part));
            let order = |load: &Load| self.kinds.iter().position(|kind| *kind == load.kind);
            self.loads.sort_by_key(order);
            self.loads.iter().position(|load| load.kind.name == variant)
        })?;
        let load = &mut self.loads[place];
        // A load whose turns were too short is applied again, from its beginning.
        let begins_again = live.latest.interval.at_ns < load.at_ns;
        if load.part != live.part || begins_again {
            *load = Load::new(load.kind.clone(), live.part);
        }
        load.add(live, &self.bounds_ns, now)
    }

    /// The part of a second that remains at the end of a run, if it is at least half a second.
    pub(crate) fn rest(&mut self, variant: &str) -> Option<Latest> {
        let load = self.loads.iter_mut().find(|load| load.kind.name == variant)?;
        let second = &load.second;
        let is_long = second.until_ns - second.from_ns >= SECOND / 2;
        if is_long { load.end_second() } else { None }
    }

    /// Of the text, which others may have written in part, its first line is shown.
    pub(crate) fn ended(&mut self, text: &str, is_valid: bool) {
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        let text = visible(text.lines().next().unwrap_or_default()).into_owned();
        self.ended.push_back(Ended { text, is_valid });
    }

    pub(crate) fn view(&self) -> View {
        let has_pace = !self.expected.is_zero() && !self.took.is_zero();
        View {
            heading: self.heading.clone(),
            activity: self.activity.clone(),
            round: self.round.clone(),
            loads: self.loads.iter().map(Load::view).collect(),
            ended: self.ended.iter().cloned().collect(),
            is_search: self.is_search,
            estimate: self.estimate,
            done: self.done,
            pace: if has_pace { self.took.div_duration_f64(self.expected) } else { 1.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_record::{BottleneckKind, LiveInterval, OpenPace};
    use dnslab_traffic::Pace;

    use crate::live::told::{Told, case, closed, kind, told};

    const START: Duration = Duration::from_secs(100);

    fn model(runs: usize, each: Duration) -> Model {
        let estimate = Estimate { runs, all: each * runs as u32 };
        Model::of_kinds("why?", ["a", "b"].map(|name| kind(name, closed())).to_vec(), estimate)
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut model = model(1, Duration::from_secs(12));
        model.round_begins(&[case("a", 1)], (1, 1), START);
        let seconds = told("a", 20, 10_000).feed(&mut model, START);
        assert!(seconds.len() == 2 && seconds.iter().all(|second| second.is_warm_up));
        let load = &model.view().loads[0];
        assert!(load.is_warm_up && load.bottleneck.is_none(), "{load:?}");
        let seconds = told("a", 50, 10_000).feed(&mut model, START);
        assert_eq!(seconds.iter().filter(|second| !second.is_warm_up).count(), 3);
        let load = &model.view().loads[0];
        let so_far = load.so_far.as_ref().unwrap();
        assert_eq!(so_far.length_ns, 3 * SECOND);
        assert_eq!(load.counters.outcomes.answered, load.counts.total());
        // The chart keeps it.
        assert_eq!(load.points[0].at_ns, 0);
    }

    fn bottleneck(load: Told, mode: LoadMode) -> Option<BottleneckKind> {
        let estimate = Estimate { runs: 1, all: Duration::from_secs(12) };
        let mut model = Model::of_kinds("why?", vec![kind("udp", mode)], estimate);
        load.feed(&mut model, START);
        model.view().loads[0].bottleneck.as_ref().map(|found| found.kind)
    }

    #[test]
    fn the_bottleneck_follows_the_rules_of_the_result() {
        let slow = || told("udp", 60, 10_000);
        assert_eq!(bottleneck(slow(), closed()), Some(BottleneckKind::ServerCpu));
        let paced = LoadMode::Open { rate_qps: 10_000.0, pace: OpenPace::constant(Pace::Constant) };
        assert_eq!(bottleneck(Told { busy: 500, ..slow() }, paced), Some(BottleneckKind::Rate));
        // 100 clients with one query each, but hardly one is in flight.
        assert_eq!(
            bottleneck(Told { busy: 500, ..slow() }, closed()),
            Some(BottleneckKind::Unclear)
        );
        let fast = || Told { busy: 500, ..told("udp", 60, 900_000) };
        assert_eq!(bottleneck(fast(), closed()), Some(BottleneckKind::Window));
        // A server that wants more CPU time than it gets is not waited for by the window.
        let waits = Told { waited: 100, ..fast() };
        assert_eq!(bottleneck(waits, closed()), Some(BottleneckKind::Unclear));
        let at_its_quota = Told { throttled: Some(70), ..fast() };
        assert_eq!(bottleneck(at_its_quota, closed()), Some(BottleneckKind::ServerCpuLimit));
    }

    #[test]
    fn a_load_is_told_of_by_its_own_turns() {
        let mut load = Load::new(kind("a", closed()), LoadPart::Main);
        let (mut shares, percent) = (Vec::new(), SECOND / 100);
        // Its turn is a quarter of the first two seconds, and another load has all of the third.
        for (number, own, used) in [(0, 25, 15), (1, 25, 30), (2, 0, 31)] {
            let interval = Interval {
                at_ns: number * SECOND,
                length_ns: SECOND,
                own_ns: Some(own * percent),
                ..Interval::default()
            };
            let busiest_worker_ns = used * percent;
            let latest = LiveInterval { interval, busiest_worker_ns, ..LiveInterval::default() };
            let server =
                Some(LiveServer { cpu_share: Some(0.2), cpus: 1, ..LiveServer::default() });
            let (part, load_cpus) = (LoadPart::Main, Vec::new());
            let live = LiveLoad { part, latest: &latest, server, load_cpus };
            shares.push(load.add(&live, &[], Duration::ZERO).map(|second| second.figures.load_cpu));
        }
        assert_eq!(shares, [Some(Some(0.6)), Some(Some(0.6)), None]);
        assert_eq!(load.sum.load_cpu(), Some(0.62));
        let points = load.series.points();
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].load_cpu(), points[0].server_cpu.value()), (Some(0.6), Some(0.8)));
    }

    #[test]
    fn the_common_load_stands_by_itself() {
        let mut model = model(1, Duration::from_secs(12));
        told("a", 120, 10_000).feed(&mut model, START);
        let common = Told { part: LoadPart::Common, ..told("a", 30, 4_000) };
        common.feed(&mut model, START + Duration::from_secs(13));
        let load = &model.view().loads[0];
        assert_eq!((load.part, load.at_ns), (LoadPart::Common, 3 * SECOND));
        assert!(load.bottleneck.is_none());
        assert!(load.points.iter().all(|point| point.answered_qps() < 5_000.0));
    }

    #[test]
    fn a_load_that_is_applied_again_begins_again() {
        let mut model = model(1, Duration::from_secs(12));
        told("a", 55, 10_000).feed(&mut model, START);
        told("a", 40, 4_000).feed(&mut model, START + Duration::from_secs(13));
        let load = &model.view().loads[0];
        assert_eq!((load.part, load.at_ns), (LoadPart::Main, 4 * SECOND));
        let so_far = load.so_far.as_ref().unwrap();
        assert_eq!(so_far.length_ns, 2 * SECOND);
        assert!(so_far.answered_qps < 5_000.0, "{so_far:?}");
    }

    #[test]
    fn loads_are_in_the_order_of_the_experiment_and_leave_with_their_round() {
        let mut model = model(4, Duration::from_secs(12));
        let names = |model: &Model| -> Vec<String> {
            model.view().loads.into_iter().map(|load| load.name).collect()
        };
        told("b", 5, 10_000).feed(&mut model, START);
        told("a", 5, 10_000).feed(&mut model, START);
        assert_eq!(names(&model), ["a", "b"]);
        model.round_begins(&[case("b", 2)], (3, 4), START);
        assert_eq!(names(&model), ["a", "b"]);
        told("b", 5, 10_000).feed(&mut model, START);
        assert_eq!(names(&model), ["b"]);
        assert!(told("unknown", 5, 1).feed(&mut model, START).is_empty());
    }

    #[test]
    fn the_time_left_learns_from_the_runs_before() {
        let seconds = Duration::from_secs;
        let mut model = model(4, seconds(10));
        assert_eq!(model.view().left(seconds(0)), None);
        model.round_begins(&[case("a", 1)], (1, 4), seconds(0));
        assert_eq!(model.view().left(seconds(4)), Some(seconds(36)));
        // It took twice as long as was thought.
        model.round_begins(&[case("b", 1)], (2, 4), seconds(20));
        assert_eq!(model.view().left(seconds(20)), Some(seconds(60)));
        model.round_begins(&[case("b", 2), case("a", 2)], (3, 4), seconds(40));
        assert_eq!(model.view().left(seconds(50)), Some(seconds(30)));
        assert_eq!(model.view().left(seconds(500)), Some(seconds(0)));
    }

    #[test]
    fn lines_of_ended_runs_are_bounded_and_harmless() {
        let mut model = model(1, Duration::from_secs(1));
        for number in 0..1_000 {
            model.ended(&format!("{number}\u{1b}[2J\nmore"), true);
        }
        let ended = model.view().ended;
        assert_eq!(ended.len(), MAX_ENDED);
        assert!(ended.iter().all(|line| !line.text.contains(['\u{1b}', '\n'])), "{:?}", ended[0]);
        assert!(ended[MAX_ENDED - 1].text.starts_with("999"));
    }
}
