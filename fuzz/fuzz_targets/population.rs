//! Any text is read as a population without panic; what is accepted can be written and read again, and its
//! first queries can be made.
#![no_main]

use std::time::Duration;

use dnslab_traffic::SyntheticZone;
use dnslab_traffic::population::{Population, PopulationLoad, ZoneNames};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(population) = text.parse::<Population>() else { return };
    assert_eq!(population.to_toml().parse().as_ref(), Ok(&population));
    assert!(!population.summary().is_empty());
    let zone = SyntheticZone::named("example.", 10, Duration::from_secs(1)).expect("a zone");
    // As many clients and queries as take no time.
    let clients = population.clients.min(100);
    let load = PopulationLoad {
        clients,
        rate_qps: population.rate_of(clients).min(1_000.0),
        ..PopulationLoad::of(&population, Duration::from_secs(1), 1)
    };
    let names = ZoneNames::new(&zone).expect("a short name");
    let mut last_ns = 0;
    for query in population.queries(&load, names).take(1_000) {
        assert!(query.due_ns >= last_ns && query.due_ns < 1_000_000_000 && query.client < clients);
        last_ns = query.due_ns;
    }
});
