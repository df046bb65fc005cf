//! A synthetic experiment with an open loop over the encrypted transports, whose self-checks have
//! each of the three verdicts.

use std::path::Path;

use dnslab_figures::{Connections, NetworkDrops, Pacing, PacingTally};
use dnslab_record::{
    Bottleneck, BottleneckKind, CaseId, Caveat, Evidence, LoadFacts, LoadMode, Measured, OpenPace,
    RunRecord, Session, TlsFacts,
};
use dnslab_results::{ResultsDirectory, ResultsError};
use dnslab_settings::ReceiveTime;
use dnslab_traffic::Pace;
use dnslab_wire::Method;

use super::{Behaviour, MS, Noise, fail, run};

const RATE_QPS: f64 = 20_000.0;

const VARIANTS: [Behaviour; 4] = [
    Behaviour { name: "udp", transport: "udp", qps: RATE_QPS, p50_ms: 0.4, tail: 3.0 },
    Behaviour { name: "doh2", transport: "doh2", qps: RATE_QPS, p50_ms: 0.9, tail: 5.0 },
    Behaviour { name: "doq", transport: "doq", qps: RATE_QPS, p50_ms: 0.8, tail: 4.0 },
    Behaviour { name: "doh3", transport: "doh3", qps: 0.9 * RATE_QPS, p50_ms: 1.4, tail: 9.0 },
];

/// The planned session: two runs of each variant.
fn session() -> Session {
    let case = |name: &str, repetition| CaseId { variant: name.to_owned(), repetition };
    let plan =
        (1..=2).flat_map(|repetition| VARIANTS.map(|variant| case(variant.name, repetition)));
    Session {
        name: "open-loop".to_owned(),
        variants: VARIANTS.map(|variant| variant.name.to_owned()).to_vec(),
        skipped: Vec::new(),
        plan: plan.collect(),
        ..super::session(1)
    }
}

/// Writes the sample with measured windows of `window_ns`; the second run of `doq` failed.
///
/// # Errors
/// When `path` exists or cannot be written.
pub(crate) fn write(path: &Path, window_ns: u64) -> Result<ResultsDirectory, ResultsError> {
    let session = session();
    let results = ResultsDirectory::create(path, &session)?;
    for (position, case) in session.plan.iter().enumerate() {
        let behaviour = VARIANTS.iter().find(|variant| variant.name == case.variant);
        let behaviour = behaviour.expect("the plan names these variants only");
        let mut record = run(behaviour, case.repetition, position as u32, window_ns);
        open(behaviour, &mut record);
        if case.variant == "doq" && case.repetition == 2 {
            fail(&mut record);
        }
        results.write_run(&record)?;
        let server = results.run_path(case).join("server");
        std::fs::create_dir_all(&server).expect("the run's folder was just written");
        let configuration = "options {\n    listen-on port 5300 { 127.0.0.1; };\n};\n";
        std::fs::write(server.join("named.conf"), configuration).expect("the folder is there");
    }
    Ok(results)
}

/// Makes a run of a closed loop one of an open loop over this transport.
fn open(behaviour: &Behaviour, record: &mut RunRecord) {
    let is_connection = behaviour.transport != "udp";
    record.load = LoadFacts {
        mode: LoadMode::Open { rate_qps: RATE_QPS, pace: OpenPace::constant(Pace::Constant) },
        behaviour: "2 connections per client, closed after 5 s idle".to_owned(),
        tls: is_connection.then(|| TlsFacts {
            versions: vec!["TLSv1.3".to_owned()],
            resumption: true,
            early_data: behaviour.transport == "doq",
            ..TlsFacts::default()
        }),
        http_method: behaviour.transport.starts_with("doh").then_some(Method::Post),
        edns: "payload size 1232, DO, padding to 128 octets, cookies".to_owned(),
        receive_time: Some(if is_connection { ReceiveTime::User } else { ReceiveTime::Kernel }),
        sources: "127.0.1.0/24".parse().ok(),
        max_queries: None,
        ..record.load.clone()
    };
    let answered = Evidence::Answered { intended_qps: RATE_QPS, answered_qps: RATE_QPS };
    let rate = |kind| Bottleneck { kind, evidence: vec![answered.clone()] };
    (record.bottleneck, record.caveats) = match behaviour.transport {
        "doh3" => (
            Bottleneck {
                kind: BottleneckKind::Generator,
                evidence: vec![Evidence::BusiestWorker { share: 0.99 }],
            },
            vec![
                Caveat::GeneratorLimited { busy_share: 0.99 },
                Caveat::RateMissed { intended_qps: RATE_QPS, offered_qps: behaviour.qps },
                Caveat::SendLag { p50_ns: 800_000, p99_ns: Some(6_000_000) },
            ],
        ),
        "doq" => (
            rate(BottleneckKind::Rate),
            vec![
                Caveat::Steal { share: 0.021, host: String::new() },
                Caveat::HostDrops { datagrams: 1_300, of_server: 1_300 },
                Caveat::StrayAnswers { late: 3, duplicate: 0, unexpected: 0 },
            ],
        ),
        _ => (rate(BottleneckKind::Rate), Vec::new()),
    };
    if let Some(measured) = &mut record.measured {
        measure(behaviour, measured, record.position);
    }
}

/// What an open loop measures besides.
fn measure(behaviour: &Behaviour, measured: &mut Measured, position: u32) {
    let mut noise = Noise(u64::from(position) + 17);
    let lag_ns = if behaviour.name == "doh3" { 700_000.0 } else { 9_000.0 };
    for _ in 0..5_000 {
        measured.send_lag.record_ns((lag_ns * (0.5 + noise.next().powi(6) * 9.0)) as u64);
    }
    let uneven = if behaviour.name == "doh3" { 0.2 } else { 0.0005 };
    measured.pacing = Some(pacing(measured.window_ns / MS, uneven, &mut noise));
    let counters = &mut measured.counters;
    match behaviour.transport {
        "udp" => counters.asked_again = 41,
        "doh2" => {
            counters.outcomes.answered -= 12;
            counters.outcomes.refused = 12;
        }
        _ => {}
    }
    if behaviour.transport == "udp" {
        return;
    }
    let early_data = if behaviour.transport == "doq" { 260 } else { 0 };
    measured.warm_up.connections = Connections {
        attempted: 702,
        opened: 700,
        failed: 2,
        full_handshakes: 200,
        resumed_handshakes: 500,
        early_data,
        closed: 692,
        not_processed: if behaviour.transport == "doh2" { 7 } else { 0 },
        ..Connections::default()
    };
    counters.connections = Connections::default();
    let mut times = |count: u64, ms: f64| {
        (0..count).map(|_| (ms * 1e6 * (0.8 + noise.next().powi(4))) as u64).collect::<Vec<_>>()
    };
    let over_tcp = u64::from(behaviour.transport == "doh2");
    times(700 * over_tcp, 0.12).into_iter().for_each(|ns| measured.connect_time.record_ns(ns));
    times(200, 1.9).into_iter().for_each(|ns| measured.handshake_time.record_ns(ns));
    let resumed = times(500 - early_data, 0.7);
    resumed.into_iter().for_each(|ns| measured.resumed_handshake_time.record_ns(ns));
    let early = times(early_data, 0.6);
    early.into_iter().for_each(|ns| measured.early_data_time.record_ns(ns));
    measured.network = Some(NetworkDrops {
        udp_receive_buffer: if behaviour.transport == "doq" { 1_300 } else { 0 },
        tcp_retransmitted: 3 * over_tcp,
        ..NetworkDrops::default()
    });
}

/// A schedule of 20 queries each millisecond, of which a share of the milliseconds sends half as
/// many and the next one the rest.
fn pacing(milliseconds: u64, uneven: f64, noise: &mut Noise) -> Pacing {
    let mut tally = PacingTally::new();
    let mut held = 0;
    for _ in 0..milliseconds {
        let sent = 20 + std::mem::take(&mut held);
        held = if noise.next() < uneven { sent / 2 } else { 0 };
        tally.push(20, sent - held);
    }
    tally.finish()
}
