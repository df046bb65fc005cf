//! The memory of servers that ran before. The figures are those of an Unbound 1.17 and of a BIND 9.18 with 1,500 and
//! 2,900 clients.

use dnslab_analysis::{MemoryLog, RunMemory, Summary, VariantSummary};
use dnslab_figures::{Interval, IntervalTraffic, Tls};
use dnslab_record::{Caveat, Metric, ResourceSample, RunRecord};

use crate::example::{record, session};

const CLIENTS: u64 = 1_500;

/// A run whose memory in KiB was this at the beginning, when half of its connections were open, and at the end; of a
/// process with this number.
fn run(variant: &str, position: u32, [first, half, last]: [u64; 3], pid: u32) -> RunRecord {
    let mut run = record(variant, position, 1_000);
    run.server.kind = "external".to_owned();
    run.server.process = format!("{pid}, started at tick 7");
    run.load.clients = CLIENTS as u32;
    let measured = run.measured.as_mut().unwrap();
    let memories =
        [(-1, first), (50_000_000, half), (100_000_000, last), (1_100_000_000_i64, last)];
    let samples = memories.map(|(at_ns, kib)| ResourceSample {
        at_ns,
        cpu_ns: (at_ns.max(0) / 2) as u64,
        memory_octets: kib << 10,
        ..ResourceSample::default()
    });
    run.watched.resources.samples = samples.to_vec();
    if variant != "udp" {
        measured.warm_up.connections.opened = CLIENTS;
        let traffic = IntervalTraffic { opened: CLIENTS / 2, ..IntervalTraffic::default() };
        let first =
            Interval { length_ns: 50_000_000, traffic: Some(traffic), ..Interval::default() };
        let second = Interval { at_ns: 50_000_000, ..first.clone() };
        measured.intervals = vec![first, second];
    }
    if variant.starts_with("dot") {
        measured.tls = Some(Tls::default());
    }
    run
}

/// The first session with that Unbound: it gives nothing back.
fn first_session() -> Vec<RunRecord> {
    vec![
        run("tcp", 0, [51_500, 52_200, 53_000], 1),
        run("dot", 1, [53_100, 73_700, 95_100], 1),
        run("udp", 2, [95_100, 95_100, 95_100], 1),
        run("dot", 3, [118_000, 119_600, 122_600], 1),
        run("udp", 4, [122_600, 122_600, 122_600], 1),
        run("tcp", 5, [122_600, 122_600, 122_600], 1),
    ]
}

fn memories(records: &[RunRecord]) -> Vec<RunMemory> {
    let all: Vec<&RunRecord> = records.iter().collect();
    let log = MemoryLog::of(&all);
    records.iter().map(|record| log.in_run(record)).collect()
}

const KEPT: RunMemory = RunMemory { peak_octets: None, per_connection_octets: None, is_kept: true };

#[test]
fn memory_counts_from_the_least_of_all_runs_where_hardly_any_was_kept() {
    let memories = memories(&first_session());
    let per_connection = |kib: u64| Some((kib << 10) as f64 / CLIENTS as f64);
    assert_eq!(memories[0].per_connection_octets, per_connection(1_500));
    assert_eq!((memories[0].peak_octets, memories[0].is_kept), (Some(53_000 << 10), false));
    // Not from 53,100 KiB: the 1,600 KiB of TCP were in use again.
    assert_eq!(memories[1].per_connection_octets, per_connection(43_600));
    assert_eq!(memories[1].peak_octets, Some(95_100 << 10));
    assert_eq!(memories[2..], [KEPT; 4]);
}

#[test]
fn a_variant_has_the_memory_of_its_runs_that_are_known() {
    let summary = Summary::of(&session(), &first_session());
    let dot = summary.variant("dot").unwrap();
    let per_connection = dot.memory_per_connection_octets.unwrap();
    assert!((29_000.0..30_000.0).contains(&per_connection), "{per_connection}");
    assert!(!dot.caveats.iter().any(|caveat| caveat.worst == Caveat::MemoryKept));
    let udp = summary.variant("udp").unwrap();
    assert_eq!((udp.peak_memory_octets, udp.memory_per_connection_octets), (None, None));
    let kept = udp.caveats.iter().find(|caveat| caveat.worst == Caveat::MemoryKept);
    assert_eq!(kept.map(|caveat| caveat.runs), Some(2));
}

/// "49 octets for each connection", and "certainly less than 0.2 %".
#[test]
fn what_was_kept_before_the_session_began_is_seen_by_connections_that_need_nothing() {
    let second = [
        run("udp", 0, [122_500; 3], 1),
        run("dot", 1, [122_500, 123_300, 124_200], 1),
        run("tcp", 2, [124_200; 3], 1),
    ];
    assert_eq!(memories(&second), [KEPT; 3]);
    // A part alone, as of fewer clients: nothing grows at first.
    assert_eq!(memories(&[run("dot", 0, [73_000, 73_100, 95_000], 1)]), [KEPT]);
    let new = memories(&[run("dot", 0, [53_000, 62_000, 95_000], 1)]);
    assert_eq!(new[0].peak_octets, Some(95_000 << 10));
}

/// BIND's jemalloc does so.
#[test]
fn what_is_given_back_when_a_load_begins_was_not_needed() {
    let mut after = run("dot", 1, [174_000, 143_000, 327_000], 1);
    let samples = &mut after.watched.resources.samples;
    samples.insert(1, ResourceSample { memory_octets: 65_700 << 10, ..samples[0].clone() });
    let memories = memories(&[run("udp", 0, [37_300; 3], 1), after]);
    assert_eq!(memories[1].peak_octets, Some(327_000 << 10));
    let per_connection = ((327_000 - 37_300) << 10) as f64 / CLIENTS as f64;
    assert_eq!(memories[1].per_connection_octets, Some(per_connection));
}

#[test]
fn a_server_that_was_started_again_kept_nothing() {
    let mut records = first_session();
    records.push(run("udp", 6, [40_000; 3], 2));
    assert_eq!(memories(&records)[6].peak_octets, Some(40_000 << 10));
    // Records of before name no process: an address has one.
    for record in &mut records {
        record.server.process.clear();
    }
    records.push(run("udp", 7, [95_000; 3], 1));
    records[7].server.process.clear();
    assert_eq!(memories(&records)[7], KEPT);
    records[7].load.target = "127.0.0.2:53".to_owned();
    assert_eq!(memories(&records)[7].peak_octets, Some(95_000 << 10));
}

/// Five rounds of servers of this kind.
fn rounds(kind: &str) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for round in 0..5 {
        for (place, name) in (0..).zip(["udp", "tcp", "dot"]) {
            let kib = 50_000 + 1_000 * place + 10 * round;
            let mut run = run(name, records.len() as u32, [kib - 1_000, kib - 500, kib], 1);
            run.server.kind = kind.to_owned();
            records.push(run);
        }
    }
    records
}

/// How many comparisons there are, how many of them are of memory, and how many variants have a figure of it.
fn of_memory(records: &[RunRecord]) -> [usize; 3] {
    let summary = Summary::of(&session(), records);
    let compared = summary.comparisons.iter();
    let own = compared.filter(|comparison| comparison.metric == Metric::PeakMemory).count();
    let has = |variant: &&VariantSummary| variant.metrics.contains_key(&Metric::PeakMemory);
    [summary.comparisons.len(), own, summary.variants.iter().filter(has).count()]
}

#[test]
fn the_memory_of_one_process_is_never_compared_and_takes_no_part_of_the_error_rate() {
    let [all, own, figures] = of_memory(&rounds("bind"));
    assert_eq!((own, figures), (2, 3));
    assert_eq!(of_memory(&rounds("external")), [all - 2, 0, 0]);
}
