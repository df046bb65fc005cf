//! The runs of a session, and their series as they go on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dnslab_figures::{Counters, Interval};
use dnslab_record::{
    CaseId, CpuShare, LiveLoad, LiveServer, LoadPart, Measured, RunRecord, RunStatus,
};
use serde::Serialize;

use crate::families::*;
use crate::{Buckets, Family, Point, Series, Snapshot, Value};
use dnslab_record::{Observation, Watched};

/// Runs whose series are served at once; the oldest are left out. Each has some 200.
const MAX_RUNS: usize = 100;

/// Points of one run are pushed no more often than this, nanoseconds of its own time.
const BETWEEN_POINTS_NS: u64 = 1_000_000_000;

/// The metrics of a session.
#[derive(Debug)]
pub struct Metrics {
    experiment: String,
    version: String,
    planned: u64,
    ended: u64,
    /// The oldest first.
    runs: VecDeque<(CaseId, Run)>,
}

/// A phase of a run, by the values of the label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    WarmUp,
    Measured,
    CommonWarmUp,
    Common,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Measured => "measured",
            Self::CommonWarmUp => "common_warm_up",
            Self::Common => "common",
        }
    }

    /// Warm-up and measured window of a load.
    pub(crate) const fn of(part: LoadPart) -> [Self; 2] {
        match part {
            LoadPart::Main => [Self::WarmUp, Self::Measured],
            LoadPart::Common => [Self::CommonWarmUp, Self::Common],
        }
    }
}

fn load_name(part: LoadPart) -> &'static str {
    match part {
        LoadPart::Main => "main",
        LoadPart::Common => "common",
    }
}

/// What is known of one load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) in_flight: u64,
    pub(crate) open: u64,
    /// Of the latest interval.
    pub(crate) interval: Option<Interval>,
    /// Of the last second.
    pub(crate) pace: Pace,
    pub(crate) server: Option<LiveServer>,
    pub(crate) load_cpus: Vec<CpuShare>,
    /// CPU time of the busiest load worker, nanoseconds; `None` if it is from a record, which has that of the measured
    /// window alone.
    pub(crate) busiest_worker_ns: Option<u64>,
}

/// What a load and its server did in the last second, by the time that was the load's turn; 0 where it had none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    pub(crate) answered_per_second: f64,
    /// By all of the time, since a query is lost when its time-out is over, maybe in the turn of another load.
    pub(crate) lost_per_second: f64,
    /// `None` where the server is not watched.
    pub(crate) cpus_used: Option<f64>,
}

/// The intervals of the last second of a load.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSecond {
    /// The oldest first.
    intervals: VecDeque<PastInterval>,
    /// CPU time of the server before the oldest of them, nanoseconds.
    cpu_before_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct PastInterval {
    end_ns: u64,
    length_ns: u64,
    own_ns: u64,
    answered: u64,
    lost: u64,
    /// CPU time of the server until its end, if that is known.
    cpu_ns: Option<u64>,
}

impl LastSecond {
    /// Adds the interval that follows, at whose end the server had used `cpu_ns` of CPU time.
    pub(crate) fn add(&mut self, interval: &Interval, cpu_ns: Option<u64>) -> Pace {
        const SECOND: u64 = 1_000_000_000;
        let end_ns = interval.at_ns.saturating_add(interval.length_ns);
        if self.intervals.back().is_some_and(|last| last.end_ns >= end_ns) {
            // The load is made again.
            *self = Self::default();
        }
        self.intervals.push_back(PastInterval {
            end_ns,
            length_ns: interval.length_ns,
            own_ns: interval.own_ns.unwrap_or(interval.length_ns),
            answered: interval.answered,
            lost: interval.lost,
            cpu_ns,
        });
        while let Some(oldest) = self.intervals.front().copied()
            && oldest.end_ns.saturating_add(SECOND) <= end_ns
        {
            self.cpu_before_ns = oldest.cpu_ns.unwrap_or(self.cpu_before_ns);
            self.intervals.pop_front();
        }
        let own_ns: u64 = self.intervals.iter().map(|past| past.own_ns).sum();
        let answered: u64 = self.intervals.iter().map(|past| past.answered).sum();
        let lost: u64 = self.intervals.iter().map(|past| past.lost).sum();
        let length_ns: u64 = self.intervals.iter().map(|past| past.length_ns).sum();
        let over_own = |sum: f64| if own_ns == 0 { 0.0 } else { sum / own_ns as f64 };
        Pace {
            answered_per_second: over_own(answered as f64 * SECOND as f64),
            lost_per_second: lost as f64 * SECOND as f64 / length_ns.max(1) as f64,
            cpus_used: cpu_ns
                .map(|cpu_ns| over_own(cpu_ns.saturating_sub(self.cpu_before_ns) as f64)),
        }
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Values of `experiment`, `variant`, `run`.
    names: [String; 3],
    /// That of all clients, or `mixed`.
    transport: String,
    pub(crate) counters: BTreeMap<Phase, Counters>,
    latency: BTreeMap<Phase, Arc<Buckets>>,
    pub(crate) gauges: BTreeMap<LoadPart, Gauges>,
    pub(crate) last_second: BTreeMap<LoadPart, LastSecond>,
    /// Those of its end.
    ended: Vec<Series>,
    /// All of them, made with the latest event.
    series: Arc<Vec<Series>>,
    /// When the latest point was, milliseconds since 1970.
    pushed_ms: Option<i64>,
    /// End of the latest interval, nanoseconds since 1970.
    latest_ns: u64,
}

impl Metrics {
    /// Metrics of an experiment for which this process, of this version, makes so many runs.
    #[must_use]
    pub fn new(experiment: &str, version: &str, planned: u64) -> Self {
        let (experiment, version) = (experiment.to_owned(), version.to_owned());
        Self { experiment, version, planned, ended: 0, runs: VecDeque::new() }
    }

    /// A run begins, with clients of this transport, or `mixed`.
    pub fn run_begins(&mut self, case: &CaseId, transport: &str) {
        self.runs.retain(|(known, _)| known != case);
        self.runs.push_back((case.clone(), Run::new(&self.experiment, case, transport)));
        if self.runs.len() > MAX_RUNS {
            self.runs.pop_front();
        }
    }

    fn run(&mut self, case: &CaseId) -> &mut Run {
        if !self.runs.iter().any(|(known, _)| known == case) {
            self.run_begins(case, "");
        }
        let of_case = self.runs.iter_mut().rev().find(|(known, _)| known == case);
        &mut of_case.expect("it has begun").1
    }

    /// An interval of a run is over. Returns what is to be pushed.
    pub fn interval(&mut self, case: &CaseId, live: &LiveLoad<'_>) -> Vec<Point> {
        let run = self.run(case);
        let (latest, phases) = (live.latest, Phase::of(live.part));
        let mut points = Vec::new();
        if !run.counters.contains_key(&phases[0]) {
            // Counters begin at zero, or their first values would be no growth.
            for phase in phases {
                run.counters.insert(phase, Counters::default());
                run.latency.insert(phase, Arc::default());
            }
            let gauges = Gauges { busiest_worker_ns: Some(0), ..Gauges::default() };
            run.gauges.insert(live.part, gauges);
            run.make_series();
            points.push(run.point(latest.began_unix_ns));
        }
        for (phase, counters) in
            phases.into_iter().zip([&latest.counters.warm_up, &latest.counters.measured])
        {
            run.counters.insert(phase, counters.clone());
        }
        let ended_in = phases[usize::from(!latest.is_warm_up())];
        Arc::make_mut(run.latency.entry(ended_in).or_default()).add(&latest.latency);
        let cpu_ns = live.server.map(|server| server.cpu_ns);
        let pace = run.last_second.entry(live.part).or_default().add(&latest.interval, cpu_ns);
        let gauges = Gauges {
            pace,
            in_flight: latest.in_flight(),
            open: latest.open_connections(),
            interval: Some(latest.interval.clone()),
            server: live.server,
            load_cpus: live.load_cpus.clone(),
            busiest_worker_ns: Some(latest.busiest_worker_ns),
        };
        run.gauges.insert(live.part, gauges);
        run.make_series();
        let ended_ns = latest.ended_unix_ns();
        run.latest_ns = ended_ns;
        let since = run.pushed_ms.map(|ms| ended_ns.saturating_sub(ms as u64 * 1_000_000));
        if since.is_none_or(|since| since >= BETWEEN_POINTS_NS) {
            points.push(run.point(ended_ns));
        }
        points
    }

    /// A run is over, and this is its record: its counters are the record's from here on. Returns what is to be
    /// pushed.
    pub fn run_ends(&mut self, record: &RunRecord) -> Vec<Point> {
        let id = CaseId { variant: record.variant.clone(), repetition: record.repetition };
        self.ended += 1;
        let run = self.run(&id);
        run.end(record);
        // Its own time has ended with its last interval.
        let latest = (run.latest_ns > 0).then_some(run.latest_ns + 1_000_000);
        let began = record.measured.as_ref().map(|measured| measured.began_unix_ns);
        latest.or(began.filter(|ns| *ns > 0)).map(|ns| run.point(ns)).into_iter().collect()
    }

    /// All series as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let counts: [(&'static Family, u64); 2] =
            [(&RUNS_PLANNED, self.planned), (&RUNS_ENDED, self.ended)];
        let mut own = vec![Series {
            family: &BUILD,
            of: Arc::new([]),
            own: vec![self.version.clone()],
            value: Value::Whole(1),
        }];
        own.extend(counts.map(|(family, number)| Series {
            family,
            of: Arc::new([self.experiment.clone()]),
            own: Vec::new(),
            value: Value::Whole(number),
        }));
        let runs = self.runs.iter().map(|(_, run)| Arc::clone(&run.series));
        Snapshot { parts: [Arc::new(own)].into_iter().chain(runs).collect() }
    }
}

impl Run {
    pub(crate) fn new(experiment: &str, case: &CaseId, transport: &str) -> Self {
        let CaseId { variant, repetition } = case;
        Self {
            names: [experiment.to_owned(), variant.clone(), repetition.to_string()],
            transport: transport.to_owned(),
            counters: BTreeMap::new(),
            latency: BTreeMap::new(),
            gauges: BTreeMap::new(),
            last_second: BTreeMap::new(),
            ended: Vec::new(),
            series: Arc::default(),
            pushed_ms: None,
            latest_ns: 0,
        }
    }

    /// Takes the figures of the record.
    pub(crate) fn end(&mut self, record: &RunRecord) {
        self.transport = transport_of(record);
        self.ended = self.outcome(record);
        for (part, run) in loads(record) {
            let measured = run.measured;
            let [warm_up, window] = Phase::of(part);
            self.counters.insert(warm_up, measured.warm_up.clone());
            self.counters.insert(window, measured.counters.clone());
            self.ended.extend(self.figures(window, &run));
            let gauges = self.gauges.entry(part).or_default();
            gauges.server = server_at(run.watched, i64::MAX).or(gauges.server);
        }
        for gauges in self.gauges.values_mut() {
            (gauges.in_flight, gauges.open) = (0, 0);
            (gauges.interval, gauges.load_cpus) = (None, Vec::new());
            gauges.pace = Pace { cpus_used: gauges.server.map(|_| 0.0), ..Pace::default() };
        }
        self.make_series();
    }

    /// The series at this instant, nanoseconds since 1970.
    pub(crate) fn point(&mut self, unix_ns: u64) -> Point {
        let at_ms = (unix_ns / 1_000_000) as i64;
        self.pushed_ms = Some(at_ms);
        Point { at_ms, series: Arc::clone(&self.series) }
    }

    pub(crate) fn make_series(&mut self) {
        let mut all = Vec::new();
        for (phase, counters) in &self.counters {
            let names = self.named(Some(phase.name()));
            counted(counters, &self.transport, &mut |family, own, number| {
                all.push(Series {
                    family,
                    of: Arc::clone(&names),
                    own,
                    value: Value::Whole(number),
                });
            });
            if let Some(buckets) = self.latency.get(phase) {
                let value = Value::Histogram(Arc::clone(buckets));
                all.push(Series { family: &LATENCY, of: names, own: Vec::new(), value });
            }
        }
        for (part, gauges) in &self.gauges {
            let names = self.named(Some(load_name(*part)));
            measured_now(gauges, &mut |family, own, value| {
                all.push(Series { family, of: Arc::clone(&names), own, value });
            });
        }
        all.extend(self.ended.iter().cloned());
        self.series = Arc::new(all);
    }

    fn named(&self, last: Option<&str>) -> Arc<[String]> {
        self.names.iter().cloned().chain(last.map(str::to_owned)).collect()
    }

    /// What became of it.
    fn outcome(&self, record: &RunRecord) -> Vec<Series> {
        let status = match record.status {
            RunStatus::Valid => "valid",
            RunStatus::Invalid { .. } => "invalid",
            RunStatus::Failed { .. } => "failed",
        };
        let server = &record.server;
        let about = vec![self.transport.clone(), server.kind.clone(), server.version.clone()];
        let bottleneck = kind_of(&record.bottleneck.kind);
        let mut caveats: Vec<String> = record.all_caveats().iter().map(kind_of).collect();
        caveats.sort();
        caveats.dedup();
        let labels: [(&'static Family, Vec<String>); 3] = [
            (&RUN, about),
            (&RUN_STATUS, vec![status.to_owned()]),
            (&RUN_BOTTLENECK, vec![bottleneck]),
        ];
        let caveats = caveats.into_iter().map(|caveat| (&RUN_CAVEAT, vec![caveat]));
        let (names, value) = (self.named(None), Value::Whole(1));
        labels
            .into_iter()
            .chain(caveats)
            .map(|(family, own)| Series {
                family,
                of: Arc::clone(&names),
                own,
                value: value.clone(),
            })
            .collect()
    }

    /// What a load measured.
    fn figures(&self, phase: Phase, run: &Observation<'_>) -> Vec<Series> {
        let measured = run.measured;
        let names = self.named(Some(phase.name()));
        let latency = Value::Histogram(Arc::new(Buckets::of(&measured.latency)));
        let cpu = run.server_cpu_per_query_ns().map(|ns| (&RUN_CPU, Value::Real(ns / 1e9)));
        let values: [(&'static Family, Value); 3] = [
            (&RUN_LATENCY, latency),
            (&RUN_WINDOW, Value::Real(measured.counted_ns() as f64 / 1e9)),
            (&RUN_RATE, Value::Real(measured.answered_qps())),
        ];
        let values = values.into_iter().chain(cpu);
        values
            .map(|(family, value)| Series {
                family,
                of: Arc::clone(&names),
                own: Vec::new(),
                value,
            })
            .collect()
    }
}

/// The loads of a run that were measured.
pub(crate) fn loads(record: &RunRecord) -> impl Iterator<Item = (LoadPart, Observation<'_>)> {
    let main = record.observation().map(|main| (LoadPart::Main, main));
    let common = record.common_load.as_ref();
    let common = common.map(|common| (LoadPart::Common, common.observation(&record.server)));
    main.into_iter().chain(common)
}

/// The transport of all clients of a run, or `mixed`.
pub(crate) fn transport_of(record: &RunRecord) -> String {
    let counted = |measured: &Measured| measured.counters.by_transport.len() > 1;
    let is_mixed = record.load.mix.is_some() || record.measured.as_ref().is_some_and(counted);
    if is_mixed { "mixed".to_owned() } else { record.load.transport_name().to_owned() }
}

/// What the server had used at an instant of the load's timeline, nanoseconds.
pub(crate) fn server_at(watched: &Watched, at_ns: i64) -> Option<LiveServer> {
    let resources = &watched.resources;
    let first = resources.samples.first()?;
    let last = resources.samples.iter().rfind(|sample| sample.at_ns <= at_ns)?;
    Some(LiveServer {
        cpu_ns: last.cpu_ns.saturating_sub(first.cpu_ns),
        cpu_share: None,
        cpus: resources.cpus,
        memory_octets: last.memory_octets,
        udp_drops: last.udp_drops.saturating_sub(first.udp_drops),
        ..LiveServer::default()
    })
}

/// The word for a value in files: `kind` of one that has further fields.
fn kind_of(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    let kind = value.get("kind").or(Some(&value)).and_then(serde_json::Value::as_str);
    kind.unwrap_or_default().to_owned()
}

/// The response codes whose counters are there before any answer has them (RFC 1035, section 4.1.1).
const USUAL_RCODES: [&str; 6] = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];

/// Calls `take` with metric, own labels and number of everything that is counted.
fn counted(
    counters: &Counters,
    transport: &str,
    take: &mut dyn FnMut(&'static Family, Vec<String>, u64),
) {
    let Counters { outcomes, answers, connections, by_transport, .. } = counters;
    let of_all = by_transport.is_empty();
    for (transport, over) in by_transport {
        take(&QUERIES, vec![transport.clone(), "answered".to_owned()], over.answered);
    }
    let counted: u64 = by_transport.values().map(|over| over.answered).sum();
    let transport = if of_all { transport } else { "mixed" };
    for (outcome, number) in [
        ("answered", outcomes.answered.saturating_sub(counted)),
        ("timed_out", outcomes.timed_out),
        ("not_sent", outcomes.not_sent),
        ("connection_lost", outcomes.connection_lost),
        ("malformed", outcomes.malformed),
        ("refused", outcomes.refused),
    ] {
        take(&QUERIES, vec![transport.to_owned(), outcome.to_owned()], number);
    }
    for (family, number) in [
        (&QUERIES_DUE, outcomes.due),
        (&QUERIES_SENT, counters.sent),
        (&ASKED_AGAIN, counters.asked_again),
        (&SENT, counters.sent_octets),
        (&RECEIVED, answers.octets),
        (&TRUNCATED, answers.truncated),
        (&EMPTY, answers.empty),
        (&WRONG, answers.wrong),
    ] {
        take(family, Vec::new(), number);
    }
    let resumed = connections.resumed_handshakes.saturating_sub(connections.early_data);
    for (family, word, number) in [
        (&STRAY, "late", answers.late),
        (&STRAY, "duplicate", answers.duplicate),
        (&STRAY, "unexpected", answers.unexpected),
        (&CONNECTIONS, "attempted", connections.attempted),
        (&CONNECTIONS, "opened", connections.opened),
        (&CONNECTIONS, "failed", connections.failed),
        (&CONNECTIONS, "lost", connections.lost),
        (&CONNECTIONS, "closed", connections.closed),
        (&HANDSHAKES, "full", connections.full_handshakes),
        (&HANDSHAKES, "resumed", resumed),
        (&HANDSHAKES, "early_data", connections.early_data),
    ] {
        take(family, vec![word.to_owned()], number);
    }
    // Counters begin at zero: one that appears later would have lost its first growth.
    for rcode in USUAL_RCODES.into_iter().filter(|rcode| !answers.rcodes.contains_key(*rcode)) {
        take(&ANSWERS, vec![rcode.to_owned()], 0);
    }
    for (rcode, number) in &answers.rcodes {
        take(&ANSWERS, vec![rcode.clone()], *number);
    }
    for (status, refusals) in &counters.http_refusals {
        take(&HTTP_REFUSALS, vec![status.to_string()], refusals.count);
    }
}

/// Takes what goes up and down, and the figures of the server.
fn measured_now(gauges: &Gauges, take: &mut dyn FnMut(&'static Family, Vec<String>, Value)) {
    take(&ANSWERED_NOW, Vec::new(), Value::Real(gauges.pace.answered_per_second));
    take(&LOST_NOW, Vec::new(), Value::Real(gauges.pace.lost_per_second));
    if let Some(cpus) = gauges.pace.cpus_used {
        take(&SERVER_CPUS_USED, Vec::new(), Value::Real(cpus));
    }
    take(&IN_FLIGHT, Vec::new(), Value::Whole(gauges.in_flight));
    take(&OPEN, Vec::new(), Value::Whole(gauges.open));
    if let Some(interval) = &gauges.interval {
        for (quantile, ns) in [
            ("0.5", interval.p50_ns),
            ("0.95", interval.p95_ns),
            ("0.99", interval.p99_ns),
            ("0.999", interval.p999_ns),
        ] {
            if let Some(ns) = ns {
                take(&QUANTILE, vec![quantile.to_owned()], Value::Real(ns as f64 / 1e9));
            }
        }
    }
    if let Some(server) = gauges.server {
        take(&SERVER_CPU, Vec::new(), Value::Real(server.cpu_ns as f64 / 1e9));
        take(&SERVER_CPUS, Vec::new(), Value::Whole(server.cpus as u64));
        take(&SERVER_MEMORY, Vec::new(), Value::Whole(server.memory_octets));
        take(&SERVER_DROPS, Vec::new(), Value::Whole(server.udp_drops));
    }
    for CpuShare { cpu, used, .. } in &gauges.load_cpus {
        take(&LOAD_CPU, vec![cpu.to_string()], Value::Real(*used));
    }
    if let Some(used_ns) = gauges.busiest_worker_ns {
        take(&WORKER_CPU, Vec::new(), Value::Real(used_ns as f64 / 1e9));
    }
}
