//! A synthetic experiment with chains of servers on hosts of their own: fourteen forwarders in front
//! of one upstream; and one with logs of queries. Nothing in them was measured.

use std::path::Path;

use dnslab_record::{
    Bottleneck, BottleneckKind, CaseId, ChainPart, CounterSample, CounterSeries, Evidence,
    HostFacts, LinkFacts, LoadMode, RunRecord, ServerFacts, Session, Span, TestbedFacts, counter,
};
use dnslab_results::{ResultsDirectory, ResultsError};

use super::{Behaviour, MS, run};

struct Forwarder {
    behaviour: Behaviour,
    kind: &'static str,
    /// By what it asks its upstream.
    upstream: &'static str,
    /// Queries for each connection to the upstream; 0 if it has one for all.
    per_connection: u64,
}

/// The forwarders: six ways to ask an upstream that keeps its connections, as many for one that does
/// not, and two without encryption.
const FORWARDERS: [Forwarder; 14] = [
    forwarder("dnsmasq-udp", "dnsmasq", "udp", 21.0, 0),
    forwarder("dnsmasq-stubby", "dnsmasq", "dot", 21.6, 0),
    forwarder("unbound-udp", "unbound", "udp", 21.1, 0),
    forwarder("unbound-dot", "unbound", "dot", 21.5, 0),
    forwarder("kresd-dot", "knot-resolver", "dot", 21.7, 0),
    forwarder("coredns-dot", "coredns", "dot", 21.4, 0),
    forwarder("dnsmasq-stubby-100", "dnsmasq", "dot", 22.4, 100),
    forwarder("unbound-dot-100", "unbound", "dot", 22.6, 100),
    forwarder("kresd-dot-100", "knot-resolver", "dot", 22.3, 100),
    forwarder("coredns-dot-100", "coredns", "dot", 22.2, 100),
    forwarder("dnsmasq-stubby-closing", "dnsmasq", "dot", 84.0, 1),
    forwarder("unbound-dot-closing", "unbound", "dot", 86.0, 1),
    forwarder("kresd-dot-closing", "knot-resolver", "dot", 83.0, 1),
    forwarder("coredns-dot-closing", "coredns", "dot", 85.0, 1),
];

/// A forwarder that answers one query after another.
const fn forwarder(
    name: &'static str,
    kind: &'static str,
    upstream: &'static str,
    p50_ms: f64,
    per_connection: u64,
) -> Forwarder {
    let behaviour = Behaviour { name, transport: "udp", qps: 1_000.0 / p50_ms, p50_ms, tail: 2.0 };
    Forwarder { behaviour, kind, upstream, per_connection }
}

/// Writes the experiment of the forwarders, two runs of each.
///
/// # Errors
/// When `path` exists or cannot be written.
pub(crate) fn write(path: &Path) -> Result<ResultsDirectory, ResultsError> {
    let session = session();
    let results = ResultsDirectory::create(path, &session)?;
    for record in records(&session) {
        results.write_run(&record)?;
        let case = CaseId { variant: record.variant.clone(), repetition: record.repetition };
        for role in record.watched.chain.iter().map(|part| part.role.as_str()).chain(["server"]) {
            let folder = results.run_path(&case).join(role);
            std::fs::create_dir_all(&folder).expect("the run's folder was just written");
            let configuration = format!("# the {role} of {}\n", case.folder());
            std::fs::write(folder.join("server.conf"), configuration).expect("it was just made");
        }
    }
    Ok(results)
}

pub(crate) fn session() -> Session {
    let names = FORWARDERS.map(|forwarder| forwarder.behaviour.name.to_owned());
    let case = |variant: &String, repetition| CaseId { variant: variant.clone(), repetition };
    Session {
        name: "forwarders".to_owned(),
        question: "What does it cost to forward over TLS?".to_owned(),
        baseline: "dnsmasq-udp".to_owned(),
        plan: (1..=2).flat_map(|at| names.iter().map(move |name| case(name, at))).collect(),
        variants: names.to_vec(),
        skipped: Vec::new(),
        ..super::session(1)
    }
}

pub(crate) fn records(session: &Session) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (position, case) in (0..).zip(&session.plan) {
        let forwarder =
            FORWARDERS.iter().find(|forwarder| forwarder.behaviour.name == case.variant);
        let forwarder = forwarder.expect("the plan names these variants only");
        let mut record = run(&forwarder.behaviour, case.repetition, position, 8_000 * MS);
        forward(forwarder, &mut record);
        records.push(record);
    }
    records
}

fn forward(forwarder: &Forwarder, record: &mut RunRecord) {
    record.load.mode = LoadMode::Closed { outstanding: 1 };
    record.load.clients = 1;
    record.server = ServerFacts {
        kind: forwarder.kind.to_owned(),
        version: "1.2.3 (synthetic)".to_owned(),
        command: vec![forwarder.kind.to_owned(), "-c".to_owned(), "server.conf".to_owned()],
        configuration: Some("server/server.conf".to_owned()),
        ..record.server.clone()
    };
    let measured = record.measured.as_mut().expect("it is a run of the sample");
    // Nobody is busy here.
    for sample in &mut record.watched.resources.samples {
        sample.cpu_ns /= 60;
    }
    measured.workers[0].cpu_ns /= 50;
    let queries = measured.counters.outcomes.due;
    measured.warm_up.sent = queries / 4;
    let sent = measured.warm_up.sent + measured.counters.sent;
    let window = measured.window();
    // Two of the forwarders tell nothing; one misses some.
    let missed = if forwarder.kind == "knot-resolver" { sent / 50 } else { 0 };
    record.watched.counters = (forwarder.kind != "dnsmasq").then(|| {
        let counts = [(counter::QUERIES, 1, sent - missed)];
        counters("the server's control socket", window, &counts)
    });
    let has_relay = forwarder.behaviour.name.starts_with("dnsmasq-stubby");
    let relay = has_relay.then(|| ChainPart {
        role: "relay".to_owned(),
        host: "server".to_owned(),
        transport: "udp".to_owned(),
        server: server("stubby", "1.6.0 (synthetic)", "relay", 0),
        resources: busy(record, 0.4),
        counters: None,
    });
    let connections = match (forwarder.upstream, forwarder.per_connection) {
        ("udp", _) => 0,
        (_, 0) => 1,
        (_, most) => sent.div_ceil(most),
    };
    // A connection for all is the one that was opened when the chain was tried.
    let load = if forwarder.per_connection == 0 { 0 } else { connections };
    let resumed = if forwarder.kind == "unbound" { load } else { 0 };
    let own = if forwarder.upstream == "udp" { counter::QUERIES_UDP } else { counter::QUERIES_DOT };
    let tried = u64::from(forwarder.upstream != "udp");
    let upstream = ChainPart {
        role: "upstream".to_owned(),
        host: "upstream".to_owned(),
        transport: forwarder.upstream.to_owned(),
        server: server("embedded", "0.1.0", "upstream", 1),
        resources: busy(record, 0.9),
        counters: Some(counters(
            "the responder's counters",
            window,
            &[
                (counter::QUERIES, 2, sent),
                (own, 2, sent),
                (counter::CONNECTIONS, tried, load),
                (counter::HANDSHAKES_FULL, tried, load - resumed),
                (counter::HANDSHAKES_RESUMED, 0, resumed),
            ],
        )),
    };
    record.watched.chain = relay.into_iter().chain([upstream]).collect();
    record.testbed = Some(testbed());
    record.caveats.clear();
    let evidence =
        vec![Evidence::InFlight { answered_qps: 47.0, mean_latency_ns: 21e6, window: 1.0 }];
    record.bottleneck = Bottleneck { kind: BottleneckKind::Window, evidence };
}

fn server(kind: &str, version: &str, role: &str, cpu: usize) -> ServerFacts {
    ServerFacts {
        kind: kind.to_owned(),
        version: version.to_owned(),
        command: vec![kind.to_owned(), "-C".to_owned(), "server.conf".to_owned()],
        configuration: Some(format!("{role}/server.conf")),
        threads: 1,
        cpus: vec![cpu],
        notes: vec![format!("The {role} keeps its defaults towards its upstream.")],
        seed: None,
        ..ServerFacts::default()
    }
}

/// What a server uses that is this many times as busy as the one under test.
fn busy(record: &RunRecord, times: f64) -> dnslab_record::ResourceSeries {
    let mut resources = record.watched.resources.clone();
    for sample in &mut resources.samples {
        sample.cpu_ns = (sample.cpu_ns as f64 * times) as u64;
        sample.memory_octets /= 3;
    }
    resources
}

/// Readings each second from before the load until after the window: each count with what it is before
/// the load and by how much it grows during it.
fn counters(source: &str, window: Span, counts: &[(&str, u64, u64)]) -> CounterSeries {
    let second = 1_000 * MS as i64;
    let end = window.to_ns;
    let instants =
        (0..=end / second).map(|at| at * second - 50 * MS as i64).chain([end + second / 5]);
    let samples = instants.map(|at_ns| {
        let share = (at_ns.max(0) as f64 / end as f64).min(1.0);
        let count = |(name, before, grown): &(&str, u64, u64)| {
            ((*name).to_owned(), before + (*grown as f64 * share).round() as u64)
        };
        CounterSample { at_ns, counts: counts.iter().map(count).collect() }
    });
    CounterSeries { source: source.to_owned(), samples: samples.collect(), failure: None }
}

pub(crate) fn testbed() -> TestbedFacts {
    let host = |name: &str, addresses: &[&str], cpu| HostFacts {
        name: name.to_owned(),
        addresses: addresses.iter().map(|address| (*address).to_owned()).collect(),
        cpus: vec![cpu],
    };
    let near = LinkFacts {
        from: "client".to_owned(),
        to: "server".to_owned(),
        delay_ns: 0,
        jitter_ns: 0,
        loss: 0.0,
        rate_bps: None,
        carrier: "netem".to_owned(),
        cpus: Vec::new(),
        seed: None,
    };
    let far = LinkFacts {
        from: "server".to_owned(),
        to: "upstream".to_owned(),
        delay_ns: 10 * MS,
        jitter_ns: 10 * MS / 20,
        loss: 0.001,
        rate_bps: Some(100_000_000),
        ..near.clone()
    };
    TestbedFacts {
        steers_receive: false,
        namespaces: true,
        hosts: vec![
            host("client", &["10.53.0.1"], 1),
            host("server", &["10.53.0.2", "10.53.1.1"], 0),
            host("upstream", &["10.53.1.2"], 1),
        ],
        links: vec![near, far],
    }
}

/// What logs cost: the variants and the octets that each writes for a query.
const LOGS: [(Behaviour, u64); 4] = [
    (Behaviour { name: "none", transport: "udp", qps: 60_000.0, p50_ms: 2.0, tail: 2.0 }, 0),
    (Behaviour { name: "dnstap", transport: "udp", qps: 48_000.0, p50_ms: 2.5, tail: 2.0 }, 212),
    (Behaviour { name: "query-log", transport: "udp", qps: 31_000.0, p50_ms: 3.9, tail: 2.5 }, 153),
    (Behaviour { name: "both", transport: "udp", qps: 28_000.0, p50_ms: 4.3, tail: 2.5 }, 365),
];

/// Writes an experiment with logs of queries, three runs of each variant.
///
/// # Errors
/// When `path` exists or cannot be written.
pub(crate) fn write_logs(path: &Path) -> Result<ResultsDirectory, ResultsError> {
    let case = |behaviour: &Behaviour, repetition| CaseId {
        variant: behaviour.name.to_owned(),
        repetition,
    };
    let session = Session {
        name: "query-logging".to_owned(),
        question: "What does logging each query cost?".to_owned(),
        baseline: "none".to_owned(),
        plan: (1..=3)
            .flat_map(|at| LOGS.iter().map(move |(behaviour, _)| case(behaviour, at)))
            .collect(),
        variants: LOGS.iter().map(|(behaviour, _)| behaviour.name.to_owned()).collect(),
        skipped: Vec::new(),
        ..super::session(1)
    };
    let results = ResultsDirectory::create(path, &session)?;
    for (position, case) in session.plan.iter().enumerate() {
        let (behaviour, octets) =
            LOGS.iter().find(|(behaviour, _)| behaviour.name == case.variant).expect("one");
        let mut record = run(behaviour, case.repetition, position as u32, 4_000 * MS);
        let measured = record.measured.as_mut().expect("it is a run of the sample");
        let sent = measured.counters.sent;
        let window = measured.window();
        for sample in &mut record.watched.resources.samples {
            let seconds = sample.at_ns.max(0) as f64 / 1e9;
            sample.log_octets = (behaviour.qps * seconds) as u64 * octets;
        }
        let counts = [(counter::QUERIES, 1, sent)];
        record.watched.counters = Some(counters("BIND's statistics channel", window, &counts));
        results.write_run(&record)?;
    }
    Ok(results)
}
