//! A synthetic results directory, for tests and for looking at the page. Nothing in it was
//! measured.

pub(crate) mod capacity;
pub(crate) mod chain;
pub(crate) mod open;
pub(crate) mod scaling;
pub(crate) mod sweep;

use std::collections::BTreeMap;
use std::path::Path;

use dnslab_figures::{
    Answers, AttemptCounts, Connections, Counters, Histogram, Interval, IntervalTraffic,
    NetworkDrops, Outcomes, Tls,
};
use dnslab_record::{
    Bottleneck, BottleneckKind, CaseId, Caveat, CpuUse, Evidence, Fact, LoadFacts, LoadMode,
    Measured, RECORD_FORMAT, ResourceSample, ResourceSeries, RunRecord, RunStatus, SESSION_FORMAT,
    ServerFacts, Session, SkippedVariant, UNDER_TEST, Watched, WorkerFacts,
};
use dnslab_results::{ResultsDirectory, ResultsError};

const MS: u64 = 1_000_000;

pub(crate) struct Behaviour {
    pub(crate) name: &'static str,
    /// `udp`, `tcp` or `dot`.
    pub(crate) transport: &'static str,
    pub(crate) qps: f64,
    pub(crate) p50_ms: f64,
    /// How fast the tail grows: the slowest 0.1 % take about `tail` times the median.
    pub(crate) tail: f64,
}

const VARIANTS: [Behaviour; 3] = [
    Behaviour { name: "udp", transport: "udp", qps: 148_000.0, p50_ms: 2.4, tail: 3.0 },
    Behaviour { name: "tcp", transport: "tcp", qps: 131_000.0, p50_ms: 2.9, tail: 5.0 },
    Behaviour { name: "dot", transport: "dot", qps: 92_000.0, p50_ms: 4.1, tail: 6.0 },
];

impl Behaviour {
    /// That of the variant of a planned run.
    pub(crate) fn of(case: &CaseId) -> &'static Self {
        let behaviour = VARIANTS.iter().find(|variant| variant.name == case.variant);
        behaviour.expect("the plan names these variants only")
    }
}

/// Writes the whole sample: three variants, three runs each, one of them failed, and a fourth
/// variant skipped.
///
/// # Errors
/// When `path` exists or cannot be written.
pub(crate) fn write(path: &Path) -> Result<ResultsDirectory, ResultsError> {
    let session = session(3);
    let results = ResultsDirectory::create(path, &session)?;
    for (position, case) in session.plan.iter().enumerate() {
        let mut record = run(Behaviour::of(case), case.repetition, position as u32, 8_000 * MS);
        if case.variant == "tcp" && case.repetition == 2 {
            fail(&mut record);
        }
        results.write_run(&record)?;
        let server = results.run_path(case).join("server");
        std::fs::create_dir_all(&server).expect("the run's folder was just written");
        let configuration =
            "options {\n    listen-on port 5300 { 127.0.0.1; };\n    recursion no;\n};\n";
        for (name, text) in [("named.conf", configuration), ("named.log", "running\n")] {
            std::fs::write(server.join(name), text).expect("the folder was just made");
        }
    }
    Ok(results)
}

/// A session with `runs` planned runs of each variant.
pub(crate) fn session(runs: u32) -> Session {
    let plan = (1..=runs).flat_map(|repetition| {
        // Another order in every round, as the interleaving does.
        (0..VARIANTS.len()).map(move |place| CaseId {
            variant: VARIANTS[(place + repetition as usize) % VARIANTS.len()].name.to_owned(),
            repetition,
        })
    });
    let fact = |name: &str, value: &str| Fact { name: name.to_owned(), value: value.to_owned() };
    Session {
        format: SESSION_FORMAT,
        dnslab: "0.1.0".to_owned(),
        name: "sample".to_owned(),
        question: "What does encrypting DNS cost?".to_owned(),
        baseline: "udp".to_owned(),
        variants: VARIANTS.iter().map(|variant| variant.name.to_owned()).collect(),
        skipped: vec![SkippedVariant {
            variant: "doq".to_owned(),
            reason: "BIND 9.18 does not serve DNS over QUIC.".to_owned(),
        }],
        answered_by: None,
        margin: 0.02,
        seed: 1,
        started: "2026-01-02T03:04:05Z".to_owned(),
        command: ["dnslab", "run", "encryption", "--set", "server.kind=bind"]
            .map(str::to_owned)
            .to_vec(),
        host: vec![
            fact("CPU", "synthetic, 2 cores"),
            fact("kernel", "Linux 6.1.0"),
            fact("memory", "4 GiB"),
        ],
        inputs: Vec::new(),
        plan: plan.collect(),
        ..Session::default()
    }
}

/// Turns a run into one whose server died at its start.
pub(crate) fn fail(record: &mut RunRecord) {
    record.measured = None;
    record.caveats.clear();
    record.status = RunStatus::Failed {
        reason: "named exited with status 1 before it answered".to_owned(),
        log_tail: vec![
            "listening on IPv4 interface lo, 127.0.0.1#5300".to_owned(),
            "could not listen on TCP socket: address in use".to_owned(),
        ],
    };
}

/// A valid run of a variant with a measured window of `window_ns` after 2 s of warm-up.
pub(crate) fn run(
    behaviour: &Behaviour,
    repetition: u32,
    position: u32,
    window_ns: u64,
) -> RunRecord {
    let mut noise = Noise(u64::from(position) * 7_919 + behaviour.p50_ms.to_bits());
    // Runs differ by some percent, as real ones do.
    let luck = 1.0 + 0.04 * (noise.next() - 0.5);
    let answered = (behaviour.qps * luck * window_ns as f64 / 1e9) as u64;
    let lost = if behaviour.transport == "udp" { answered / 60_000 } else { 0 };
    let window = if behaviour.transport == "dot" { 1_000 } else { 400 };
    RunRecord {
        imported: None,
        common_load: None,
        lacks_common_load: false,
        share_loads: Vec::new(),
        format: RECORD_FORMAT,
        variant: behaviour.name.to_owned(),
        repetition,
        position,
        started: format!("2026-01-02T03:{:02}:05Z", position + 4),
        status: RunStatus::Valid,
        load: load(behaviour, window_ns),
        server: ServerFacts {
            kind: "bind".to_owned(),
            version: "9.18.0 (synthetic)".to_owned(),
            command: ["named", "-f", "-c", "named.conf"].map(str::to_owned).to_vec(),
            configuration: Some("server/named.conf".to_owned()),
            threads: 1,
            cpus: vec![0],
            notes: vec!["Response rate limiting is off: it would measure the limiter.".to_owned()],
            seed: None,
            ..ServerFacts::default()
        },
        testbed: None,
        measured: Some(measured(behaviour, luck, window_ns, answered, lost, &mut noise)),
        watched: Watched {
            resources: resources(behaviour, 2_000 * MS + window_ns, &mut noise),
            ..Watched::default()
        },
        caveats: match (behaviour.name, repetition) {
            ("udp", _) => {
                vec![Caveat::ClosedLoop { window }, Caveat::GeneratorLimited { busy_share: 0.97 }]
            }
            ("dot", 1) => vec![
                Caveat::ClosedLoop { window },
                Caveat::WindowNotFull { in_flight: 0.62 * window as f64, window },
            ],
            _ => vec![Caveat::ClosedLoop { window }],
        },
        bottleneck: Bottleneck {
            kind: BottleneckKind::ServerCpu,
            evidence: vec![Evidence::Servers {
                servers: vec![CpuUse {
                    role: UNDER_TEST.to_owned(),
                    busy_share: Some(0.99),
                    cpus: 1,
                }],
            }],
        },
    }
}

fn load(behaviour: &Behaviour, window_ns: u64) -> LoadFacts {
    LoadFacts {
        transport: behaviour.transport.parse().ok(),
        played: None,
        target: "127.0.0.1:5300".to_owned(),
        further: Vec::new(),
        mix: None,
        sockets: 0,
        clients: 4,
        mode: LoadMode::Closed { outstanding: 100 },
        duration_ns: window_ns,
        warm_up_ns: 2_000 * MS,
        timeout_ns: 2_000 * MS,
        patience_ns: None,
        workers: 1,
        cpus: vec![1],
        queries: "names of the zone, uniformly".to_owned(),
        seed: 1,
        send_path: "sendmmsg".to_owned(),
        batch_delay_ns: 50_000,
        behaviour: String::new(),
        tls: None,
        http_method: None,
        edns: String::new(),
        receive_time: None,
        sources: None,
        max_queries: None,
        quickack: false,
        hosts: Vec::new(),
    }
}

fn measured(
    behaviour: &Behaviour,
    luck: f64,
    window_ns: u64,
    answered: u64,
    lost: u64,
    noise: &mut Noise,
) -> Measured {
    let warm_up_ns = 2_000 * MS;
    let outcomes =
        Outcomes { due: answered + lost, answered, timed_out: lost, ..Outcomes::default() };
    let counters = Counters {
        outcomes,
        sent: answered + lost,
        asked_again: 0,
        searched: 0,
        attempts: AttemptCounts::default(),
        sent_octets: answered * 40,
        answers: Answers {
            rcodes: BTreeMap::from([
                ("NOERROR".to_owned(), answered - answered / 500),
                ("NXDOMAIN".to_owned(), answered / 500),
            ]),
            octets: answered * 90,
            ..Answers::default()
        },
        connections: connections(behaviour),
        http_refusals: BTreeMap::new(),
        by_transport: BTreeMap::new(),
    };
    let latency = latency(behaviour, luck, answered, lost);
    let tls = (behaviour.transport == "dot").then(|| Tls {
        version: "TLSv1.3".to_owned(),
        cipher_suite: "TLS13_AES_128_GCM_SHA256".to_owned(),
        verified: true,
        ..Tls::default()
    });
    Measured {
        began_unix_ns: 0,
        window_ns,
        window_start_ns: warm_up_ns,
        sent_in_window: answered + lost,
        answered_in_window: answered,
        turns: None,
        counters,
        warm_up: Counters::default(),
        service_time: latency.clone(),
        latency,
        send_lag: Histogram::new(),
        start_lag: Histogram::new(),
        connect_time: Histogram::new(),
        handshake_time: Histogram::new(),
        resumed_handshake_time: Histogram::new(),
        early_data_time: Histogram::new(),
        windows: Vec::new(),
        pacing: None,
        network: Some(NetworkDrops::default()),
        intervals: intervals(behaviour, luck, warm_up_ns + window_ns, noise),
        seconds: Vec::new(),
        workers: vec![WorkerFacts {
            cpu: Some(1),
            cpu_ns: window_ns / 10 * if behaviour.name == "udp" { 9 } else { 6 },
            elapsed_ns: window_ns,
            waited_ns: 0,
            drops: 0,
            clients: 4,
            open_clients: 4,
            ..WorkerFacts::default()
        }],
        tls,
    }
}

fn connections(behaviour: &Behaviour) -> Connections {
    match behaviour.transport {
        "udp" => Connections::default(),
        transport => Connections {
            attempted: 4,
            opened: 4,
            full_handshakes: if transport == "dot" { 4 } else { 0 },
            ..Connections::default()
        },
    }
}

/// A latency distribution with a tail that grows with every power of ten.
fn latency(behaviour: &Behaviour, luck: f64, answered: u64, lost: u64) -> Histogram {
    const DRAWS: u32 = 200_000;
    let mut histogram = Histogram::new();
    for draw in 1..=DRAWS {
        // Every share of the distribution once, so that the figures do not depend on chance.
        let slower = 1.0 - (f64::from(draw) - 0.5) / f64::from(DRAWS);
        let body = 0.55 + 0.45 * (2.0 * (1.0 - slower));
        let tail = behaviour.tail.powf((-slower.log10() / 3.0).powf(1.6));
        histogram.record_ns((behaviour.p50_ms / luck * body * tail * 1e6) as u64);
    }
    // As large a share of the draws as of the queries.
    for _ in 0..lost * u64::from(DRAWS) / answered {
        histogram.record_ns(2_000 * MS);
    }
    histogram
}

/// Intervals of 0.1 s: a slow begin, then a steady rate.
fn intervals(behaviour: &Behaviour, luck: f64, end_ns: u64, noise: &mut Noise) -> Vec<Interval> {
    let length_ns = 100 * MS;
    (0..end_ns / length_ns)
        .map(|at| {
            let start = if at < 5 { 0.55 + 0.09 * at as f64 } else { 1.0 };
            let answered =
                behaviour.qps / 10.0 * luck * start * (1.0 + 0.05 * (noise.next() - 0.5));
            let p50 = behaviour.p50_ms * 1e6 / luck / start * (1.0 + 0.05 * (noise.next() - 0.5));
            let p99 = p50 * behaviour.tail.sqrt() * (1.0 + 0.3 * (noise.next() - 0.5)) * 1.3;
            Interval {
                at_ns: at * length_ns,
                length_ns,
                own_ns: None,
                due: answered as u64,
                sent: answered as u64,
                answered: answered as u64,
                lost: 0,
                rcodes: BTreeMap::new(),
                p50_ns: Some(p50 as u64),
                p95_ns: Some((p50 + p99) as u64 / 2),
                p99_ns: Some(p99 as u64),
                p999_ns: Some((p99 * 1.5) as u64),
                max_ns: Some((p99 * 3.0) as u64),
                traffic: Some(IntervalTraffic {
                    sent_octets: answered as u64 * 40,
                    received_octets: answered as u64 * 90,
                    ..IntervalTraffic::default()
                }),
            }
        })
        .collect()
}

/// Samples each 0.1 s, from before the load to after it.
fn resources(behaviour: &Behaviour, end_ns: u64, noise: &mut Noise) -> ResourceSeries {
    let step = 100 * MS as i64;
    let mut cpu_ns = 0;
    let samples = (-2..=end_ns as i64 / step + 2).map(|at| {
        let busy = if at > 0 && at * step <= end_ns as i64 { 0.9 } else { 0.02 };
        cpu_ns += (step as f64 * (busy + 0.08 * noise.next())) as u64;
        ResourceSample {
            at_ns: at * step + 3 * MS as i64,
            cpu_ns,
            memory_octets: 48 * 1_048_576
                + (at.max(0) as u64) * (behaviour.p50_ms * 50_000.0) as u64,
            context_switches: at.max(0) as u64 * 900,
            // Two CPUs: the server's, and that of the load.
            cores_used_ns: vec![cpu_ns, cpu_ns / 2],
            ..ResourceSample::default()
        }
    });
    ResourceSeries {
        samples: samples.collect(),
        cpu_source: "cgroup v2".to_owned(),
        memory_source: "cgroup v1".to_owned(),
        cpus: 1,
        core_cpus: vec![0, 1],
        ..ResourceSeries::default()
    }
}

/// Numbers in [0, 1) that look random and are the same every time (the 64-bit generator of Knuth's
/// MMIX).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
