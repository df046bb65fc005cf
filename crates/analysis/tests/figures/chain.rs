//! What is derived from the records of a chain of servers, their counters and their logs.

use dnslab_analysis::{Agreement, BottleneckFigures, ServerFigures, Summary, caveats};
use dnslab_record::{
    BottleneckKind, Caveat, ChainPart, CounterSample, CounterSeries, CpuUse, Evidence, Metric,
    Observation, ResourceSample, ResourceSeries, RunFigure, RunRecord, ServerFacts, UNDER_TEST,
    Watched, counter,
};

use crate::example::{record, session};

/// Readings at these instants, in milliseconds since the load began.
fn counters(readings: &[(i64, &[(&str, u64)])]) -> CounterSeries {
    let sample = |(at_ms, counts): &(i64, &[(&str, u64)])| CounterSample {
        at_ns: at_ms * 1_000_000,
        counts: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
    };
    CounterSeries {
        source: "the server's socket".to_owned(),
        samples: readings.iter().map(sample).collect(),
        failure: None,
    }
}

/// An upstream over DNS over TLS, pinned to CPU 2 and busy for a quarter of it, that counted 900
/// queries in the measured window (0.1 s to 1.1 s), 1,000 during the load and 1,002 since it started.
fn upstream() -> ChainPart {
    let samples = [(-50_000_000, 0), (1_150_000_000, 300_000_000)].map(|(at_ns, cpu_ns)| {
        ResourceSample { at_ns, cpu_ns, memory_octets: 1_000 + cpu_ns, ..ResourceSample::default() }
    });
    ChainPart {
        role: "upstream".to_owned(),
        host: "upstream".to_owned(),
        transport: "dot".to_owned(),
        server: ServerFacts {
            kind: "bind".to_owned(),
            version: "9.18".to_owned(),
            cpus: vec![2],
            ..ServerFacts::default()
        },
        resources: ResourceSeries {
            cpus: 1,
            samples: samples.to_vec(),
            ..ResourceSeries::default()
        },
        counters: Some(counters(&[
            (-100, &readings(2, 2, 0)),
            (100, &readings(102, 4, 1)),
            (1_100, &readings(1_002, 12, 9)),
        ])),
    }
}

fn readings(queries: u64, connections: u64, resumed: u64) -> [(&'static str, u64); 5] {
    [
        (counter::QUERIES, queries),
        (counter::QUERIES_DOT, queries),
        (counter::CONNECTIONS, connections),
        (counter::HANDSHAKES_FULL, connections - resumed),
        (counter::HANDSHAKES_RESUMED, resumed),
    ]
}

fn chained(position: u32) -> RunRecord {
    let mut run = record("udp", position, 1_000);
    run.watched.chain = vec![upstream()];
    run
}

#[test]
fn the_latency_of_a_leg_is_what_the_server_before_it_waited() {
    let mut run = chained(0);
    let latencies = |run: &RunRecord| -> Vec<Option<f64>> {
        ServerFigures::of_run(run).iter().map(|server| server.mean_latency_ns).collect()
    };
    let of_load = run.measured.as_ref().and_then(|measured| measured.latency.mean_ns());
    assert_eq!(latencies(&run), [of_load, None], "the server counts nothing");
    let at = |asked, waited_ns| {
        [(counter::UPSTREAM_QUERIES, asked), (counter::UPSTREAM_WAITED_NS, waited_ns)]
    };
    let readings = [(-100, &at(1, 9_000)[..]), (100, &at(101, 10_000)), (1_100, &at(201, 60_000))];
    run.watched.counters = Some(counters(&readings));
    assert_eq!(latencies(&run), [of_load, Some(500.0)]);
}

#[test]
fn each_server_of_a_chain_has_its_figures() {
    let servers = ServerFigures::of_run(&chained(0));
    let [server, upstream] = servers.as_slice() else { panic!("{servers:?}") };
    assert_eq!((server.role.as_str(), server.transport.as_str()), ("server", "udp"));
    assert_eq!((server.qps, server.cpu_per_query_ns), (Some(1_000.0), Some(500_000.0)));
    assert_eq!((server.during_load.queries, server.during_load.connections), (Some(1_000), None));
    assert_eq!((upstream.server.as_str(), upstream.transport.as_str()), ("bind 9.18", "dot"));
    // Of the measured window alone: 900 queries, and 0.25 s of CPU time for them.
    assert_eq!((upstream.qps, upstream.busy_share), (Some(900.0), Some(0.25)));
    assert!((upstream.cpu_per_query_ns.unwrap() - 250e6 / 900.0).abs() < 1.0);
    assert_eq!(upstream.peak_memory_octets, Some(300_001_000));
    let (load, all) = (&upstream.during_load, &upstream.since_start);
    assert_eq!((load.queries, load.connections), (Some(1_000), Some(10)));
    assert_eq!((load.full_handshakes, load.resumed_handshakes), (Some(1), Some(9)));
    assert_eq!(load.queries_per_connection(), Some(100.0));
    assert_eq!(
        (all.queries, all.connections, all.full_handshakes),
        (Some(1_002), Some(12), Some(3))
    );
    assert_eq!(all.queries_per_connection(), Some(83.5));
    assert_eq!(ServerFigures::of_run(&record("udp", 0, 1_000)), []);
}

#[test]
fn the_memory_of_a_chain_is_the_sum_over_its_servers_as_cpu_time_is() {
    let own = record("udp", 0, 1_000);
    let memory =
        |record: &RunRecord| record.figure(Metric::PeakMemory).and_then(RunFigure::measured);
    let alone = memory(&own).unwrap();
    let mut run = chained(0);
    assert_eq!(memory(&run), Some(alone + 300_001_000.0));
    let summary = Summary::of(&session(), &[run.clone()]);
    let udp = &summary.variants[0];
    assert_eq!(udp.peak_memory_octets.map(|octets| octets as f64), memory(&run));
    // It stands for servers of others.
    run.watched.chain[0].server.kind = "embedded".to_owned();
    assert_eq!(memory(&run), Some(alone));
    run.watched.chain[0].server.kind = "stubby".to_owned();
    run.watched.chain[0].resources.samples.clear();
    assert_eq!((memory(&run), run.figure(Metric::ServerCpuPerQuery)), (None, None));
}

#[test]
fn readings_that_do_not_cover_the_window_are_taken_whole() {
    let mut run = chained(0);
    run.watched.chain[0].counters.as_mut().unwrap().samples.pop();
    // 100 queries between the beginning of the load and 0.1 s.
    assert_eq!(ServerFigures::of_run(&run)[1].qps, Some(1_000.0));
    run.watched.chain[0].counters.as_mut().unwrap().samples.pop();
    let upstream = &ServerFigures::of_run(&run)[1];
    assert_eq!((upstream.qps, upstream.cpu_per_query_ns), (None, None));
    assert_eq!(
        (upstream.during_load.connections, upstream.since_start.connections),
        (None, Some(2))
    );
    run.watched.chain[0].counters = None;
    let upstream = &ServerFigures::of_run(&run)[1];
    assert_eq!((upstream.qps, upstream.busy_share), (None, Some(0.25)));
    assert_eq!(upstream.since_start.queries, None);
}

#[test]
fn over_runs_rates_are_means_and_counts_are_sums() {
    let mut second = chained(1);
    let last = second.watched.chain[0].counters.as_mut().unwrap().samples.last_mut().unwrap();
    for name in [counter::QUERIES, counter::QUERIES_DOT] {
        *last.counts.get_mut(name).unwrap() += 200;
    }
    let records = [chained(0), second];
    let summary = Summary::of(&session(), &records);
    let upstream = &summary.variants[0].chain[1];
    // Of 900 and 1,100: geometric, as every mean.
    assert!((upstream.qps.unwrap() - 990_000_f64.sqrt()).abs() < 1e-9);
    assert_eq!(
        (upstream.during_load.queries, upstream.during_load.connections),
        (Some(2_200), Some(20))
    );
    assert_eq!(upstream.during_load.queries_per_connection(), Some(110.0));
    assert_eq!(summary.variants[1].chain, []);
    let json = serde_json::to_value(&summary.variants[1]).unwrap();
    assert!(json.get("chain").is_none() && json.get("agreement").is_none());
}

/// Sets what the server under test counted; the load sent 1,000 and 100 before them.
fn counted(run: &mut RunRecord, readings: &[(i64, u64)]) {
    let measured = run.measured.as_mut().unwrap();
    measured.warm_up.sent = 100;
    let mut series = counters(&[]);
    for &(at_ms, queries) in readings {
        series.samples.extend(counters(&[(at_ms, &[(counter::QUERIES, queries)])]).samples);
    }
    run.watched.counters = Some(series);
}

#[test]
fn what_was_sent_is_held_against_what_was_counted() {
    let agreement_of = |readings: &[(i64, u64)]| {
        let mut run = record("udp", 0, 1_000);
        counted(&mut run, readings);
        Agreement::of(&run.observation().unwrap())
    };
    let agreement = agreement_of(&[(-100, 3), (500, 400), (1_200, 1_103)]).unwrap();
    assert_eq!((agreement.sent, agreement.counted, agreement.difference()), (1_100, 1_100, 0));
    assert_eq!(agreement.source, "the server's socket");
    assert_eq!(agreement_of(&[(-100, 3), (1_200, 1_092)]).unwrap().difference(), -11);
    // Not read after the load, or not before it: nothing can be said.
    assert_eq!(agreement_of(&[(-100, 3), (1_000, 1_003)]), None);
    assert_eq!(agreement_of(&[(10, 3), (1_200, 1_103)]), None);
    assert_eq!(agreement_of(&[(-100, 3)]), None);
    assert_eq!(Agreement::of(&record("udp", 0, 1_000).observation().unwrap()), None);
}

#[test]
fn a_count_of_udp_alone_is_held_against_a_load_of_udp_alone() {
    fn difference(last: &[(&str, u64)], attempted: [u64; 2]) -> Option<i64> {
        let mut run = record("udp", 0, 1_000);
        run.watched.counters =
            Some(counters(&[(-100, &[(counter::QUERIES_UDP, 3)]), (1_200, last)]));
        let measured = run.measured.as_mut().unwrap();
        measured.warm_up.connections.attempted = attempted[0];
        measured.counters.connections.attempted = attempted[1];
        Agreement::of(&run.observation().unwrap()).map(|agreement| agreement.difference())
    }
    let udp = [(counter::QUERIES_UDP, 993)];
    assert_eq!(difference(&udp, [0, 0]), Some(-10));
    // Some queries may have come over TCP, where they are not counted.
    assert_eq!((difference(&udp, [1, 0]), difference(&udp, [0, 1])), (None, None));
    // The count of all goes first.
    assert_eq!(difference(&[udp[0], (counter::QUERIES, 1_000)], [0, 1]), Some(0));
    assert_eq!(difference(&[(counter::QUERIES_TCP, 1_000)], [0, 0]), None);
}

#[test]
fn the_agreement_of_a_variant_is_the_sum_of_its_runs() {
    let mut records = [record("udp", 0, 1_000), record("udp", 1, 1_000), record("udp", 2, 1_000)];
    counted(&mut records[0], &[(0, 0), (1_200, 1_100)]);
    counted(&mut records[1], &[(0, 0), (1_200, 1_090)]);
    let summary = Summary::of(&session(), &records);
    let agreement = summary.variants[0].agreement.as_ref().unwrap();
    assert_eq!((agreement.sent, agreement.counted), (2_200, 2_190));
    assert_eq!(summary.variants[1].agreement, None);
}

#[test]
fn a_count_that_differs_by_more_than_a_hundredth_is_a_doubt() {
    let differ = |counted| Some(Caveat::CountsDiffer { sent: 1_100, counted });
    for (queries, expected) in [
        (1_100, None),
        (1_089, None),
        (1_111, None),
        (1_088, differ(1_088)),
        (1_112, differ(1_112)),
    ] {
        let mut run = record("udp", 0, 1_000);
        counted(&mut run, &[(0, 0), (1_200, queries)]);
        let mut caveats = caveats(&run.observation().unwrap(), 2).into_iter();
        let found = caveats.find(|caveat| matches!(caveat, Caveat::CountsDiffer { .. }));
        assert_eq!(found, expected);
    }
}

#[test]
fn dnstap_messages_that_were_dropped_during_the_load_are_a_doubt() {
    fn found(dropped: &[(&str, u64)]) -> Option<Caveat> {
        let mut run = record("udp", 0, 1_000);
        let readings: [(i64, &[(&str, u64)]); 2] = [
            (-100, &[(counter::DNSTAP_MESSAGES, 10), (counter::DNSTAP_DROPPED, 5)]),
            (1_200, dropped),
        ];
        run.watched.counters = Some(counters(&readings));
        let caveats = caveats(&run.observation().unwrap(), 2);
        caveats.into_iter().find(|caveat| matches!(caveat, Caveat::DnstapDropped { .. }))
    }
    let lost = |messages, dropped| {
        found(&[(counter::DNSTAP_MESSAGES, messages), (counter::DNSTAP_DROPPED, dropped)])
    };
    // Those that were lost before the load are none of its own; one in a thousand is no doubt yet.
    assert_eq!((lost(10, 5), lost(1_010, 5), lost(1_009, 6)), (None, None, None));
    assert_eq!(lost(1_008, 7), Some(Caveat::DnstapDropped { share: 0.002 }));
    assert_eq!(lost(10, 6), Some(Caveat::DnstapDropped { share: 1.0 }));
    assert_eq!(found(&[(counter::QUERIES, 1_000)]), None);
}

#[test]
fn octets_of_log_are_those_of_the_window_for_each_answer() {
    let mut run = record("udp", 0, 1_000);
    assert_eq!(run.figure(Metric::LogOctetsPerQuery), None);
    let samples = &mut run.watched.resources.samples;
    for (sample, octets) in samples.iter_mut().zip([500, 1_000, 151_000]) {
        sample.log_octets = octets;
    }
    let value = |metric: Metric| run.figure(metric).and_then(RunFigure::measured).unwrap();
    assert_eq!(value(Metric::LogOctetsPerQuery), 150.0);
    assert!((value(Metric::LatencyMean) / 1e6 - 1.0).abs() < 0.001);
}

#[test]
fn a_chain_is_no_stranger_on_the_machine() {
    fn found(run: &RunRecord, chain: &[ChainPart]) -> Vec<Caveat> {
        let watched = Watched { chain: chain.to_vec(), ..run.watched.clone() };
        let seen = Observation { watched: &watched, ..run.observation().unwrap() };
        let caveats = caveats(&seen, 4);
        caveats.into_iter().filter(|caveat| !matches!(caveat, Caveat::ClosedLoop { .. })).collect()
    }
    let mut run = chained(0);
    let quiet = found(&run, &run.watched.chain);
    // Server 0.5 s, load 0.25 s and upstream 0.3 s of CPU time at most: nobody else.
    let samples = &mut run.watched.resources.samples;
    for (sample, used_ns) in samples.iter_mut().zip([0, 0, 1_050_000_000]) {
        sample.machine_ns = used_ns;
    }
    assert_eq!(found(&run, &run.watched.chain), quiet);
    let others = |caveats: Vec<Caveat>| {
        caveats.iter().any(|caveat| matches!(caveat, Caveat::OtherProcesses { .. }))
    };
    assert!(others(found(&run, &[])), "the upstream is one of the others where nobody knows of it");
    run.watched.chain[0].server.cpus = vec![1];
    let shared = |run: &RunRecord| found(run, &run.watched.chain).contains(&Caveat::SharedCpus);
    // 0.25 s of the load and at most 0.3 s of the upstream in a window of a second.
    assert!(shared(&run), "upstream and load used half of CPU 1");
    for worker in &mut run.measured.as_mut().unwrap().workers {
        worker.cpu_ns /= 10;
    }
    assert!(!shared(&run), "upstream and load hardly used CPU 1");
    run.server.cpus = vec![1];
    assert!(shared(&run), "the server itself and the load on CPU 1");
}

#[test]
fn an_upstream_at_its_end_is_the_limit() {
    let mut run = chained(0);
    let limit = |run: &RunRecord| BottleneckFigures::of(&run.observation().unwrap()).bottleneck();
    assert_ne!(limit(&run).kind, BottleneckKind::UpstreamCpu);
    run.watched.chain[0].resources.samples[1].cpu_ns = 1_140_000_000;
    let found = limit(&run);
    assert_eq!(found.kind, BottleneckKind::UpstreamCpu);
    let used = |role: &str, share| CpuUse { role: role.into(), busy_share: Some(share), cpus: 1 };
    let servers = vec![used("upstream", 0.95), used(UNDER_TEST, 0.5)];
    assert_eq!(found.evidence, [Evidence::Servers { servers }]);
}
