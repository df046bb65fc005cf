//! Records with round figures, to be changed by each test.

use dnslab_figures::{Counters, Histogram, NetworkDrops, Outcomes};
use dnslab_record::{
    Bottleneck, BottleneckKind, CaseId, LoadFacts, LoadMode, Measured, RECORD_FORMAT,
    ResourceSample, ResourceSeries, RunRecord, RunStatus, SESSION_FORMAT, ServerFacts, Session,
    Watched, WorkerFacts,
};
use dnslab_wire::Transport;

/// An experiment `encryption` with the baseline `udp`, and `tcp` and `dot` beside it.
pub(crate) fn session() -> Session {
    let variants = ["udp", "tcp", "dot"].map(str::to_owned).to_vec();
    let case = |variant: &String| CaseId { variant: variant.clone(), repetition: 1 };
    Session {
        format: SESSION_FORMAT,
        dnslab: "0.1.0".to_owned(),
        name: "encryption".to_owned(),
        question: "What does encrypting DNS cost?".to_owned(),
        baseline: "udp".to_owned(),
        inputs: Vec::new(),
        plan: variants.iter().map(case).collect(),
        variants,
        skipped: Vec::new(),
        answered_by: None,
        margin: 0.02,
        seed: 1,
        started: "2026-11-20T12:00:00Z".to_owned(),
        command: Vec::new(),
        host: Vec::new(),
        ..Session::default()
    }
}

/// A closed loop of 4 clients with 100 outstanding queries each, pinned to CPU 1.
pub(crate) fn load() -> LoadFacts {
    LoadFacts {
        transport: Some(Transport::Udp),
        played: None,
        target: "127.0.0.1:5300".to_owned(),
        further: Vec::new(),
        mix: None,
        sockets: 0,
        clients: 4,
        mode: LoadMode::Closed { outstanding: 100 },
        duration_ns: 1_000_000_000,
        warm_up_ns: 100_000_000,
        timeout_ns: 2_000_000_000,
        patience_ns: None,
        workers: 1,
        cpus: vec![1],
        queries: "1,000 names".to_owned(),
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

pub(crate) fn server() -> ServerFacts {
    ServerFacts { kind: "bind".to_owned(), cpus: vec![0], ..ServerFacts::default() }
}

/// One second of window after 0.1 s of warm-up: `answered` queries of 1 ms each, all answered, the
/// server busy for half of its one CPU, the generator for a quarter.
pub(crate) fn measured(answered: u64) -> Measured {
    let mut latency = Histogram::new();
    let mut send_lag = Histogram::new();
    for _ in 0..100 {
        latency.record_ns(1_000_000);
        send_lag.record_ns(10_000);
    }
    Measured {
        began_unix_ns: 0,
        window_ns: 1_000_000_000,
        window_start_ns: 100_000_000,
        sent_in_window: answered,
        answered_in_window: answered,
        turns: None,
        counters: Counters {
            outcomes: Outcomes { due: answered, answered, ..Outcomes::default() },
            sent: answered,
            ..Counters::default()
        },
        warm_up: Counters::default(),
        service_time: latency.clone(),
        latency,
        send_lag,
        start_lag: Histogram::new(),
        connect_time: Histogram::new(),
        handshake_time: Histogram::new(),
        resumed_handshake_time: Histogram::new(),
        early_data_time: Histogram::new(),
        windows: Vec::new(),
        pacing: None,
        network: Some(NetworkDrops::default()),
        intervals: Vec::new(),
        seconds: Vec::new(),
        workers: vec![WorkerFacts {
            cpu: Some(1),
            cpu_ns: 250_000_000,
            elapsed_ns: 1_000_000_000,
            waited_ns: 0,
            drops: 0,
            clients: 4,
            open_clients: 4,
            ..WorkerFacts::default()
        }],
        tls: None,
    }
}

/// What was seen of the server meanwhile.
pub(crate) fn watched() -> Watched {
    let used = [(0, 0), (100_000_000, 50_000_000), (1_100_000_000, 550_000_000)];
    let samples = used.map(|(at_ns, cpu_ns)| ResourceSample {
        at_ns,
        cpu_ns,
        memory_octets: 1_000_000 + cpu_ns / 1_000,
        ..ResourceSample::default()
    });
    Watched {
        resources: ResourceSeries {
            cpus: 1,
            samples: samples.to_vec(),
            ..ResourceSeries::default()
        },
        ..Watched::default()
    }
}

/// A valid run of that, at this place in the order of execution.
pub(crate) fn record(variant: &str, position: u32, answered: u64) -> RunRecord {
    RunRecord {
        imported: None,
        format: RECORD_FORMAT,
        variant: variant.to_owned(),
        repetition: position / 3 + 1,
        position,
        started: "2026-11-20T12:00:00Z".to_owned(),
        status: RunStatus::Valid,
        load: load(),
        server: server(),
        watched: watched(),
        testbed: None,
        common_load: None,
        lacks_common_load: false,
        share_loads: Vec::new(),
        measured: Some(measured(answered)),
        caveats: Vec::new(),
        bottleneck: Bottleneck { kind: BottleneckKind::Window, evidence: Vec::new() },
    }
}
