//! A synthetic study of resolvers: three servers under four loads, each with a cold and a warm time window. They
//! lose more as the load rises, the old one first.

use std::collections::BTreeMap;
use std::path::Path;

use dnslab_figures::{Histogram, Interval, Outcomes, WindowCounts};
use dnslab_record::{
    CaseId, Compared, LoadFacts, LoadMode, LoadSweep, Measured, OpenPace, RunRecord, Session,
};
use dnslab_results::{ResultsDirectory, ResultsError};

use super::{Behaviour, MS, Noise, run};

const TIMEOUT_NS: u64 = 2_000 * MS;

/// Length of the measured window; each time window is a half of it.
const WINDOW_NS: u64 = 12_000 * MS;
const HALF_NS: u64 = WINDOW_NS / 2;

/// A server, and the queries per second that it answers with a cold and with a warm cache.
struct Server {
    name: &'static str,
    cold_qps: f64,
    warm_qps: f64,
    variants: [&'static str; 4],
}

const SERVERS: [Server; 3] = [
    Server {
        name: "bind-9-16",
        cold_qps: 4_000.0,
        warm_qps: 8_000.0,
        variants: ["bind-9-16-x1", "bind-9-16-x5", "bind-9-16-x10", "bind-9-16-x15"],
    },
    Server {
        name: "bind-9-18",
        cold_qps: 9_000.0,
        warm_qps: 12_000.0,
        variants: ["bind-9-18-x1", "bind-9-18-x5", "bind-9-18-x10", "bind-9-18-x15"],
    },
    Server {
        name: "bind-9-20",
        cold_qps: 14_900.0,
        warm_qps: 20_000.0,
        variants: ["bind-9-20-x1", "bind-9-20-x5", "bind-9-20-x10", "bind-9-20-x15"],
    },
];

const LOADS_QPS: [f64; 4] = [1_000.0, 5_000.0, 10_000.0, 15_000.0];

/// The planned session: `runs` runs of each variant. The loads are in the order of the file, as in the study.
pub(crate) fn session(runs: u32) -> Session {
    let in_order =
        || (0..4).flat_map(|load| SERVERS.iter().map(move |server| server.variants[load]));
    let case = |name: &str, repetition| CaseId { variant: name.to_owned(), repetition };
    let plan = (1..=runs)
        .flat_map(|repetition| in_order().map(move |name| case(name, repetition)))
        .collect();
    let compared = (0..4).flat_map(|load| {
        [0, 2].map(|server| Compared {
            variant: SERVERS[server].variants[load].to_owned(),
            against: SERVERS[1].variants[load].to_owned(),
        })
    });
    Session {
        name: "resolver-versions".to_owned(),
        question: "Is the new version of the resolver better?".to_owned(),
        baseline: SERVERS[1].variants[0].to_owned(),
        variants: in_order().map(str::to_owned).collect(),
        skipped: Vec::new(),
        compared: compared.collect(),
        sweeps: SERVERS
            .iter()
            .map(|server| LoadSweep {
                name: server.name.to_owned(),
                variants: server.variants.map(str::to_owned).to_vec(),
            })
            .collect(),
        margin: 0.05,
        plan,
        ..super::session(1)
    }
}

pub(crate) fn records(session: &Session) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (position, case) in (0..).zip(&session.plan) {
        let place = |server: &Server| server.variants.iter().position(|name| *name == case.variant);
        let (server, load) = SERVERS
            .iter()
            .find_map(|server| Some((server, place(server)?)))
            .expect("the plan names these variants only");
        records.push(resolver(server, load, case.repetition, position));
    }
    records
}

/// Writes the sample with these runs of the session.
///
/// # Errors
/// When `path` exists or cannot be written.
pub(crate) fn write(
    path: &Path,
    session: &Session,
    records: &[RunRecord],
) -> Result<ResultsDirectory, ResultsError> {
    let results = ResultsDirectory::create(path, session)?;
    records.iter().try_for_each(|record| results.write_run(record))?;
    Ok(results)
}

fn resolver(server: &Server, load: usize, repetition: u32, position: u32) -> RunRecord {
    let rate_qps = LOADS_QPS[load];
    let behaviour = Behaviour {
        name: server.variants[load],
        transport: "udp",
        qps: rate_qps.min(server.warm_qps),
        p50_ms: 0.4 + rate_qps / server.warm_qps,
        tail: 60.0,
    };
    let mut record = run(&behaviour, repetition, position, WINDOW_NS);
    record.load = LoadFacts {
        mode: LoadMode::Open { rate_qps, pace: OpenPace::Clients },
        clients: 2_000 * (rate_qps / 1_000.0) as u32,
        ..record.load.clone()
    };
    record.caveats.clear();
    let mut noise = Noise(u64::from(position) + 91);
    if let Some(measured) = &mut record.measured {
        measure(server, rate_qps, measured, &mut noise);
    }
    record
}

/// What a resolver does with an empty cache first, and a full one then.
fn measure(server: &Server, rate_qps: f64, measured: &mut Measured, noise: &mut Noise) {
    let cold =
        WindowCounts { name: "cold".to_owned(), ..half(rate_qps, server.cold_qps, 8.0, noise) };
    let warm = WindowCounts {
        name: "warm".to_owned(),
        from_ns: HALF_NS,
        to_ns: WINDOW_NS,
        ..half(rate_qps, server.warm_qps, 0.3, noise)
    };
    let mut outcomes = cold.outcomes;
    outcomes.merge(&warm.outcomes);
    measured.counters.outcomes = outcomes;
    measured.counters.answers.rcodes = codes(outcomes.answered);
    measured.answered_in_window = outcomes.answered;
    measured.latency = Histogram::new();
    measured.latency.merge(&cold.latency);
    measured.latency.merge(&warm.latency);
    for interval in &mut measured.intervals {
        let at_ns = interval.at_ns.saturating_sub(measured.window_start_ns);
        let window = if at_ns < HALF_NS { &cold } else { &warm };
        let share = interval.length_ns as f64 / HALF_NS as f64;
        let part = |count: u64| (count as f64 * share) as u64;
        *interval = Interval {
            due: part(window.outcomes.due),
            answered: part(window.outcomes.answered),
            lost: part(window.outcomes.timed_out),
            rcodes: codes(part(window.outcomes.answered)),
            ..interval.clone()
        };
        interval.answered = interval.rcodes.values().sum();
    }
    measured.windows = vec![cold, warm];
}

/// The first half of the measured window of a server that answers so many queries per second.
fn half(rate_qps: f64, capacity_qps: f64, p50_ms: f64, noise: &mut Noise) -> WindowCounts {
    let due = (rate_qps * HALF_NS as f64 / 1e9) as u64;
    let held = (capacity_qps * (1.0 + 0.0004 * noise.next()) / rate_qps).min(1.0);
    let answered = (due as f64 * held) as u64;
    let p50_ms = p50_ms / (1.05 - held * rate_qps / capacity_qps).max(0.1);
    let latency = latency(p50_ms, due, answered);
    WindowCounts {
        name: String::new(),
        from_ns: 0,
        to_ns: HALF_NS,
        outcomes: Outcomes { due, answered, timed_out: due - answered, ..Outcomes::default() },
        rcodes: codes(answered),
        service_time: latency.clone(),
        latency,
    }
}

/// An eighth of the names does not exist, and a few fail.
fn codes(answered: u64) -> BTreeMap<String, u64> {
    let (failed, absent) = (answered / 200, answered / 8);
    let codes =
        [("NOERROR", answered - failed - absent), ("NXDOMAIN", absent), ("SERVFAIL", failed)];
    codes.into_iter().map(|(code, count)| (code.to_owned(), count)).collect()
}

/// Answers with a long tail; what was not answered took the time-out.
fn latency(p50_ms: f64, due: u64, answered: u64) -> Histogram {
    const DRAWS: u64 = 20_000;
    let mut histogram = Histogram::new();
    for draw in 0..DRAWS {
        let faster = (draw as f64 + 0.5) / DRAWS as f64;
        let ms = p50_ms * (0.1 + faster.powi(2) * 3.6) / (1.002 - faster).powf(0.8).max(0.002);
        let ns = if draw * due < answered * DRAWS { (ms * 1e6) as u64 } else { TIMEOUT_NS };
        histogram.record_ns(ns.min(TIMEOUT_NS));
    }
    histogram
}
