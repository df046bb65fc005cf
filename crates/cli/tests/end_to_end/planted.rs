//! What is planted in a variant on the embedded server is found in its record.

use std::collections::{BTreeMap, BTreeSet};

use dnslab_record::{BottleneckKind, RunRecord, counter};

use crate::evidence::{label, measured, valid_records};
use crate::room::Room;

/// A short closed loop over UDP; the embedded server in all variants.
const SHORT: &str = "load.clients = 10\nload.outstanding = 1\nload.duration = \"300ms\"\n\
    load.warm_up = \"100ms\"\nload.timeout = \"200ms\"\n";

/// Of the window, nanoseconds.
fn cpu_per_query_ns(record: &RunRecord) -> f64 {
    let cpu_ns = record.observation().and_then(|run| run.server_cpu_per_query_ns());
    cpu_ns.unwrap_or_else(|| panic!("{}: the server was not watched", label(record)))
}

/// What it is on a machine of its own. Where other programs use the machine, they are the bottleneck.
fn is_or_shared(record: &RunRecord, kind: BottleneckKind) -> bool {
    [kind, BottleneckKind::OtherPrograms].contains(&record.bottleneck.kind)
}

/// Within five standard deviations of a binomial share.
fn is_near(seen: u64, total: u64, share: f64) -> bool {
    let (seen, total) = (seen as f64, total as f64);
    (seen - total * share).abs() < 5.0 * (total * share * (1.0 - share)).sqrt()
}

#[test]
fn a_cost_a_delay_and_a_loss_are_found() {
    let room = Room::alone();
    let variants = "[[variant]]\nname = \"plain\"\n\
        [[variant]]\nname = \"busy\"\nserver.busy = \"100us\"\n\
        [[variant]]\nname = \"slow\"\nserver.delay = \"2ms\"\n\
        [[variant]]\nname = \"lossy\"\nserver.loss = \"10%\"\n";
    room.experiment(&format!("repeat.runs = 1\n{SHORT}{variants}"));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let records = valid_records(&room.results(), 4);
    let record_of = |variant: &str| {
        let found = records.iter().find(|record| record.variant == variant);
        found.unwrap_or_else(|| panic!("no record of {variant}: {done}"))
    };
    // This depends on no machine: CPU time is what was used, and a delay is never too short.
    let (plain, busy) = (cpu_per_query_ns(record_of("plain")), cpu_per_query_ns(record_of("busy")));
    assert!(busy >= plain + 50_000.0, "{plain} and {busy} ns of CPU for each query: {done}");
    let median_ns = measured(record_of("slow")).latency.quantile_ns(0.5);
    assert!(median_ns.is_some_and(|median_ns| median_ns >= 2_000_000), "{median_ns:?}: {done}");
    assert!(is_or_shared(record_of("slow"), BottleneckKind::Window), "{done}");
    // What the delay really was is known: by how much it came late, on average.
    let counters = record_of("slow").watched.counters.as_ref();
    let samples = counters.map(|counters| &counters.samples[..]).unwrap_or_default();
    let last = samples.last().unwrap_or_else(|| panic!("no counters: {done}"));
    let (delayed, late_ns) = (last.counts[counter::DELAYED], last.counts[counter::DELAYED_LATE_NS]);
    assert!(delayed > 0 && late_ns > 0, "{last:?}");
    let outcomes = &measured(record_of("lossy")).counters.outcomes;
    let lost = outcomes.due - outcomes.answered;
    assert!(is_near(lost, outcomes.due, 0.1), "{lost} of {} lost: {done}", outcomes.due);
    // Between loopback addresses no network loses anything.
    assert!(is_or_shared(record_of("lossy"), BottleneckKind::Unclear), "{done}");
}

/// All seeds of a run by what draws from them; the load first.
fn seeds(record: &RunRecord) -> Vec<(&'static str, u64)> {
    let links = record.testbed.iter().flat_map(|laboratory| &laboratory.links);
    let link = links.filter_map(|link| Some(("link", link.seed?)));
    let upstream =
        record.watched.chain.iter().filter_map(|part| Some(("upstream", part.server.seed?)));
    let server = record.server.seed.map(|seed| ("server", seed));
    [("load", record.load.seed)].into_iter().chain(server).chain(upstream).chain(link).collect()
}

#[test]
fn what_is_drawn_differs_between_repetitions_and_not_within_one() {
    let room = Room::alone();
    let variants = "[[variant]]\nname = \"lossy\"\nserver.loss = \"10%\"\n\
        [[variant]]\nname = \"slow\"\nserver.delay = \"uniform:1ms..2ms\"\nlab.hosts = \"auto\"\n\
        link.server.jitter = \"1ms\"\nlink.server.delay = \"1ms\"\n\
        [[variant]]\nname = \"forwarder\"\nserver.kind = \"dnsmasq\"\nserver.cache = false\n\
        upstream.kind = \"embedded\"\nupstream.delay = \"uniform:1ms..2ms\"\nupstream.loss = \"1%\"\n";
    room.experiment(&format!("repeat.runs = 2\n{SHORT}{variants}"));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let records = valid_records(&room.results(), 6);
    let mut seeds_of: BTreeMap<(u32, &str), BTreeSet<u64>> = BTreeMap::new();
    for record in &records {
        let seeds = seeds(record);
        let expected = match record.variant.as_str() {
            "forwarder" => ["load", "upstream"].as_slice(),
            // Without namespaces there is no link, and only root can make them.
            "slow" if rustix::process::geteuid().is_root() => &["load", "server", "link"],
            _ => &["load", "server"],
        };
        let names: Vec<&str> = seeds.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected, "{}: {done}", label(record));
        // The server was given what the record says.
        let server = record.watched.chain.first().map_or(&record.server, |part| &part.server);
        let given = format!(" --seed {} ", seeds[1].1);
        assert!(server.command.join(" ").contains(&given), "{given}: {:?}", server.command);
        for (name, seed) in seeds {
            seeds_of.entry((record.repetition, name)).or_default().insert(seed);
        }
    }
    // There is one for each repetition and role, and no two are the same.
    assert!(seeds_of.values().all(|seeds| seeds.len() == 1), "{seeds_of:?}");
    let all: BTreeSet<u64> = seeds_of.values().flatten().copied().collect();
    assert_eq!(all.len(), seeds_of.len(), "{seeds_of:?}");
}
