//! Session and records of a results directory, from the runs of another tool.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use dnslab_figures::{Answers, Counters, Histogram, Interval, Outcomes};
use dnslab_record::{
    Bottleneck, BottleneckKind, CaseId, Caveat, Fact, Imported, LoadFacts, LoadMode, Measured,
    RECORD_FORMAT, RunRecord, RunStatus, SESSION_FORMAT, ServerFacts, Session, Watched,
};

use super::MAX_NS;
use super::statistics::{ForeignInterval, ForeignRun, ForeignStatistics};

/// A record has 1,000 intervals at most; more are put together.
const MAX_INTERVALS: usize = 500;

/// What dnslab's own sessions take for no difference, see `repeat.margin`.
const MARGIN: f64 = 0.02;

/// One run, with the variant that it is a repetition of.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportSource {
    /// Name of the variant.
    pub variant: String,
    /// The file that was read, as it was named.
    pub file: String,
    /// What was read.
    pub run: ForeignRun,
}

/// What a session knows of the import itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportFacts {
    /// Name of the experiment.
    pub name: String,
    /// Version of dnslab.
    pub dnslab: String,
    /// The command line.
    pub command: Vec<String>,
    /// When the files were imported, RFC 3339 in UTC.
    pub imported: String,
}

/// The session and the records of these runs. Variants are in the order in which they are met, and the first
/// is the baseline; the runs of a variant are its repetitions in their order.
#[must_use]
pub fn results_of(facts: ImportFacts, sources: Vec<ImportSource>) -> (Session, Vec<RunRecord>) {
    let mut repetitions: Vec<(String, u32)> = Vec::new();
    let mut inputs: Vec<Fact> = Vec::new();
    let mut runs: Vec<(CaseId, ImportSource)> = Vec::new();
    for source in sources {
        let place = repetitions.iter().position(|(name, _)| *name == source.variant);
        let place = place.unwrap_or_else(|| {
            repetitions.push((source.variant.clone(), 0));
            repetitions.len() - 1
        });
        repetitions[place].1 += 1;
        let case = CaseId { variant: source.variant.clone(), repetition: repetitions[place].1 };
        if !inputs.iter().any(|input| input.value == source.file) {
            inputs.push(Fact { name: "imported file".to_owned(), value: source.file.clone() });
        }
        runs.push((case, source));
    }
    let variants: Vec<String> = repetitions.into_iter().map(|(name, _)| name).collect();
    let session = Session {
        format: SESSION_FORMAT,
        dnslab: facts.dnslab,
        name: facts.name,
        question: "What did the load generator measure?".to_owned(),
        baseline: variants.first().cloned().unwrap_or_default(),
        variants,
        margin: MARGIN,
        seed: 1,
        started: facts.imported,
        command: facts.command,
        inputs,
        plan: runs.iter().map(|(case, _)| case.clone()).collect(),
        ..Session::default()
    };
    let records = (0..).zip(runs).map(|(position, (case, source))| record(case, position, source));
    (session, records.collect())
}

fn record(case: CaseId, position: u32, source: ImportSource) -> RunRecord {
    let ImportSource { file, run, .. } = source;
    let imported = Imported {
        generator: if run.generator.is_empty() { "unknown" } else { &run.generator }.to_owned(),
        version: run.version.clone(),
        file,
        command: run.command.clone(),
        ended: run.ended.clone(),
        window: is_known(&run).then_some(run.options.window),
        max_qps: run.options.max_qps,
        interrupted: run.totals.interrupted,
        latency: run.totals.latency,
        has_whole_intervals: run.has_whole_intervals,
        connections: run.connections,
    };
    let mut caveats: Vec<Caveat> =
        imported.window.map(|window| Caveat::ClosedLoop { window }).into_iter().collect();
    let sent = run.totals.sent.max(1);
    caveats.push(Caveat::Imported {
        generator: imported.title(),
        lost_share: run.totals.lost as f64 / sent as f64,
    });
    RunRecord {
        format: RECORD_FORMAT,
        variant: case.variant,
        repetition: case.repetition,
        position,
        started: started(&run),
        status: RunStatus::Valid,
        load: load(&run),
        server: ServerFacts { kind: "external".to_owned(), ..ServerFacts::default() },
        watched: Watched::default(),
        testbed: None,
        measured: Some(measured(&run)),
        common_load: None,
        lacks_common_load: false,
        share_loads: Vec::new(),
        caveats,
        bottleneck: Bottleneck { kind: BottleneckKind::Unknown, evidence: Vec::new() },
        imported: Some(imported),
    }
}

/// Whether the command line is known, and so all that was asked for.
fn is_known(run: &ForeignRun) -> bool {
    !run.command.is_empty() && run.generator == "dnsperf"
}

fn started(run: &ForeignRun) -> String {
    match run.started_ns {
        Some(ns) => {
            humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(ns)).to_string()
        }
        None => run.started_local.clone(),
    }
}

fn load(run: &ForeignRun) -> LoadFacts {
    let options = &run.options;
    let is_known = is_known(run);
    let per_client = options.window.div_ceil(u64::from(options.clients));
    let quota = options.queries_per_connection.filter(|_| is_known);
    LoadFacts {
        transport: options.transport.parse().ok().filter(|_| is_known),
        mix: None,
        played: None,
        target: run.target.clone(),
        further: Vec::new(),
        sockets: 0,
        clients: if is_known { options.clients } else { 0 },
        mode: LoadMode::Closed { outstanding: u32::try_from(per_client).unwrap_or(u32::MAX) },
        duration_ns: run.totals.length_ns,
        warm_up_ns: 0,
        timeout_ns: if is_known { options.timeout_ns } else { 0 },
        patience_ns: None,
        workers: if is_known { options.threads } else { 0 },
        cpus: Vec::new(),
        queries: match options.queries.as_str() {
            _ if !is_known => String::new(),
            "" => "the standard input of dnsperf".to_owned(),
            file => format!("the file {file}"),
        },
        seed: 0,
        send_path: String::new(),
        batch_delay_ns: 0,
        behaviour: quota
            .map_or_else(String::new, |quota| format!("a new connection after {quota} queries")),
        tls: None,
        http_method: options.http_method.parse().ok(),
        edns: options.further.join(" "),
        receive_time: None,
        max_queries: None,
        sources: None,
        quickack: false,
        hosts: Vec::new(),
    }
}

fn measured(run: &ForeignRun) -> Measured {
    let totals = &run.totals;
    let octets = |mean: fn((u64, u64)) -> u64, count: u64| {
        totals.mean_octets.map_or(0, |lengths| mean(lengths).saturating_mul(count))
    };
    let latency = totals.histogram();
    Measured {
        window_ns: totals.length_ns,
        window_start_ns: 0,
        sent_in_window: totals.sent,
        answered_in_window: totals.completed,
        counters: Counters {
            outcomes: Outcomes {
                // Those without an outcome are told beside them.
                due: totals.completed.saturating_add(totals.lost),
                answered: totals.completed,
                timed_out: totals.lost,
                ..Outcomes::default()
            },
            sent: totals.sent,
            sent_octets: octets(|(request, _)| request, totals.sent),
            answers: Answers {
                rcodes: totals.rcodes.clone(),
                unexpected: totals.unexpected.unwrap_or(0),
                octets: octets(|(_, response)| response, totals.completed),
                ..Answers::default()
            },
            ..Counters::default()
        },
        service_time: latency.clone(),
        latency,
        intervals: intervals(&run.intervals, run.has_whole_intervals),
        ..Measured::default()
    }
}

/// The intervals, as many together as needed so that there are not too many.
fn intervals(all: &[ForeignInterval], are_whole: bool) -> Vec<Interval> {
    // A clock that was set has times of its own.
    let is_possible = |interval: &&ForeignInterval| {
        interval.at_ns <= MAX_NS && interval.counted.length_ns <= MAX_NS
    };
    let all: Vec<ForeignInterval> = all.iter().filter(is_possible).cloned().collect();
    let together = all.len().div_ceil(MAX_INTERVALS).max(1);
    all.chunks(together).map(|chunk| interval(chunk, are_whole)).collect()
}

fn interval(chunk: &[ForeignInterval], are_whole: bool) -> Interval {
    let mut sum = ForeignStatistics::default();
    chunk.iter().for_each(|interval| sum.add(&interval.counted));
    let length_ns =
        chunk.iter().map(|interval| interval.counted.length_ns).fold(0, u64::saturating_add);
    let length_ns = length_ns.min(MAX_NS);
    let histogram: Histogram = sum.histogram();
    let quantile = |share| histogram.quantile_ns(share);
    Interval {
        at_ns: chunk.first().map_or(0, |first| first.at_ns),
        length_ns,
        due: if are_whole { sum.sent } else { 0 },
        sent: if are_whole { sum.sent } else { 0 },
        answered: sum.completed,
        lost: if are_whole { sum.lost } else { 0 },
        rcodes: if are_whole { sum.rcodes } else { BTreeMap::new() },
        p50_ns: quantile(0.5),
        p95_ns: quantile(0.95),
        p99_ns: quantile(0.99),
        p999_ns: quantile(0.999),
        max_ns: histogram.max_ns(),
        ..Interval::default()
    }
}
