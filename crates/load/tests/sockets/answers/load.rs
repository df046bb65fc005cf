//! Loads, as the tests apply them.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_load::{Job, LoadResult, run};
use dnslab_settings::{Load, Mode};
use dnslab_traffic::QueryList;
use dnslab_wire::{Edns, QueryOptions, Transport};

/// The zone `example.`, as a file has it.
pub(crate) fn zone() -> String {
    let mut text =
        "$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\nns A 192.0.2.53\n"
            .to_owned();
    for number in 0..100 {
        writeln!(text, "host{number} A 192.0.2.{number}").unwrap();
    }
    text
}

/// Every name of the zone, with EDNS.
pub(crate) fn queries() -> Arc<QueryList> {
    let mut text = String::new();
    for number in 0..100 {
        writeln!(text, "host{number}.example A").unwrap();
    }
    let options = QueryOptions { edns: Some(Edns::default()), ..QueryOptions::default() };
    Arc::new(QueryList::from_text(text.as_bytes(), "the test", &options).unwrap())
}

/// A short closed loop of two clients.
pub(crate) fn job(target: SocketAddr, transport: Transport) -> Job {
    let settings = Load {
        transport,
        clients: 2,
        mode: Mode::Closed { outstanding: 4 },
        duration: Duration::from_millis(400),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(5),
        ..Load::default()
    };
    Job::new(settings, target, queries())
}

/// Applies a load; the engine asserts its sums.
pub(crate) fn go(job: &Job) -> LoadResult {
    run(job, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// Applies a load whose queries must all be answered.
#[track_caller]
pub(crate) fn go_well(job: &Job) -> LoadResult {
    let result = go(job);
    let outcomes = &result.measured.counters.outcomes;
    assert!(outcomes.answered > 0, "{outcomes:?} {:?}", result.signature_example);
    assert_eq!(outcomes.answered, outcomes.due, "{outcomes:?} {:?}", result.signature_example);
    result
}
