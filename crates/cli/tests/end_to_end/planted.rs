//! What is planted in one variant of an experiment on the embedded server, and found in its record.

use std::collections::{BTreeMap, BTreeSet};

use dnslab_measure::{LimitKind, RunRecord, counter};

use crate::evidence::{label, measured, valid_records};
use crate::room::Room;

/// A short closed loop over UDP, the embedded server in all variants.
const SHORT: &str = "load.clients = 10\nload.outstanding = 1\nload.duration = \"300ms\"\n\
    load.warm_up = \"100ms\"\nload.timeout = \"200ms\"\n";

/// CPU time of the server for each query of the window, nanoseconds.
fn cpu_per_query_ns(record: &RunRecord) -> f64 {
    let cpu_ns = measured(record).server_cpu_per_query_ns();
    cpu_ns.unwrap_or_else(|| panic!("{}: the server was not watched", label(record)))
}

/// Five standard deviations of a binomial share.
fn is_near(seen: u64, of: u64, share: f64) -> bool {
    let (seen, of) = (seen as f64, of as f64);
    (seen - of * share).abs() < 5.0 * (of * share * (1.0 - share)).sqrt()
}

#[test]
fn a_cost_a_delay_and_a_loss_are_found() {
    let room = Room::with_load();
    let variants = "[[variant]]\nname = \"plain\"\n\
        [[variant]]\nname = \"busy\"\nserver.busy = \"100us\"\n\
        [[variant]]\nname = \"slow\"\nserver.delay = \"2ms\"\n\
        [[variant]]\nname = \"lossy\"\nserver.loss = \"10%\"\n";
    room.experiment(&format!("repeat.runs = 1\n{SHORT}{variants}"));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let records = valid_records(&room.results(), 4);
    let of = |variant: &str| {
        let found = records.iter().find(|record| record.variant == variant);
        found.unwrap_or_else(|| panic!("no record of {variant}: {done}"))
    };
    // Nothing is asked of the machine here: CPU time is what was used, and a delay is never too short.
    let (plain, busy) = (cpu_per_query_ns(of("plain")), cpu_per_query_ns(of("busy")));
    assert!(busy >= plain + 50_000.0, "{plain} and {busy} ns of CPU for each query: {done}");
    let median_ns = measured(of("slow")).latency.quantile_ns(0.5);
    assert!(median_ns.is_some_and(|median_ns| median_ns >= 2_000_000), "{median_ns:?}: {done}");
    assert_eq!(of("slow").limit.kind, LimitKind::Window, "{done}");
    // What the delay really was is known: by how much it came late, on average.
    let counters = measured(of("slow")).server_counters.as_ref();
    let samples = counters.map(|counters| &counters.samples[..]).unwrap_or_default();
    let last = samples.last().unwrap_or_else(|| panic!("no counters: {done}"));
    let (delayed, late_ns) = (last.counts[counter::DELAYED], last.counts[counter::DELAYED_LATE_NS]);
    assert!(delayed > 0 && late_ns > 0, "{last:?}");
    let outcomes = &measured(of("lossy")).counters.outcomes;
    let lost = outcomes.due - outcomes.answered;
    assert!(is_near(lost, outcomes.due, 0.1), "{lost} of {} lost: {done}", outcomes.due);
    assert_eq!(of("lossy").limit.kind, LimitKind::Network, "{done}");
}

/// The seed of the embedded servers of a run: of the one under test, and of the upstream.
fn seeds(record: &RunRecord) -> [Option<u64>; 2] {
    [record.server.seed, record.chain.first().and_then(|part| part.server.seed)]
}

#[test]
fn what_is_drawn_differs_between_repetitions_and_not_within_one() {
    let room = Room::with_load();
    let variants = "[[variant]]\nname = \"lossy\"\nserver.loss = \"10%\"\n\
        [[variant]]\nname = \"slow\"\nserver.delay = \"uniform:1ms..2ms\"\n\
        [[variant]]\nname = \"forwarder\"\nserver.kind = \"dnsmasq\"\nserver.cache = false\n\
        upstream.kind = \"embedded\"\nupstream.delay = \"uniform:1ms..2ms\"\nupstream.loss = \"1%\"\n";
    room.experiment(&format!("repeat.runs = 2\n{SHORT}{variants}"));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let records = valid_records(&room.results(), 6);
    let mut by_repetition: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for record in &records {
        let (server, upstream) = match (record.variant.as_str(), seeds(record)) {
            ("forwarder", [None, Some(upstream)]) => (None, Some(upstream)),
            (_, [Some(server), None]) => (Some(server), None),
            (_, other) => panic!("{}: {other:?}: {done}", label(record)),
        };
        // The server was given what the record says.
        let command =
            record.chain.first().map_or(&record.server, |part| &part.server).command.join(" ");
        let given = server.or(upstream).map(|seed| format!(" --seed {seed} "));
        assert!(given.is_some_and(|given| command.contains(&given)), "{command}");
        let seeds = by_repetition.entry(record.repetition).or_default();
        seeds.extend(server.into_iter().chain(upstream).chain([record.load.seed]));
    }
    // Those of the load, the server and the upstream: three in each repetition, none of them in both.
    assert_eq!(
        by_repetition.values().map(BTreeSet::len).collect::<Vec<_>>(),
        [3, 3],
        "{by_repetition:?}"
    );
    let all: BTreeSet<u64> = by_repetition.values().flatten().copied().collect();
    assert_eq!(all.len(), 6, "{by_repetition:?}");
}
