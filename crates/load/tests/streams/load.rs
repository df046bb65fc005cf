//! Loads, as the tests apply them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_load::{
    Expected, HttpSettings, LoadResult, LoadSpec, Mode, TlsSettings, Verification, run,
};
use dnslab_traffic::{ClientBehaviour, QueryList, Quota};
use dnslab_transport::Method;
use dnslab_wire::{QueryOptions, Transport};

use crate::servers::Identity;

/// Every name of the zone, and one whose answer is large.
fn queries() -> Arc<QueryList> {
    let mut text = "big.example TXT\n".to_owned();
    for number in 0..100 {
        text += &format!("host{number}.example A\n");
    }
    let queries = QueryList::from_text(text.as_bytes(), "the test", &QueryOptions::default());
    Arc::new(queries.unwrap())
}

/// Settings that verify the server's certificate.
pub(crate) fn settings(identity: &Identity) -> TlsSettings {
    TlsSettings::new("localhost", &Verification::Authority(identity.chain.clone())).unwrap()
}

/// A short closed loop of three clients in two threads, whose answers must be right.
pub(crate) fn spec(target: SocketAddr, transport: Transport, tls: TlsSettings) -> LoadSpec {
    LoadSpec {
        clients: 3,
        mode: Mode::Closed { outstanding: 20 },
        duration: Duration::from_millis(400),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(5),
        workers: 2,
        expected: Some(Expected { rcode: 0, answers: 1 }),
        tls: Some(tls),
        ..LoadSpec::new(target, transport, queries())
    }
}

/// The same with so many queries for each connection.
pub(crate) fn with_quota(spec: LoadSpec, queries: u32) -> LoadSpec {
    let behaviour = ClientBehaviour {
        queries_per_connection: Some(Quota::Exact(queries)),
        ..ClientBehaviour::default()
    };
    LoadSpec { behaviour, ..spec }
}

/// The same with HTTP requests of this method.
pub(crate) fn with_method(spec: LoadSpec, method: Method) -> LoadSpec {
    LoadSpec { http: HttpSettings { method, ..HttpSettings::default() }, ..spec }
}

/// Applies a load; its sums are asserted by the engine.
pub(crate) fn go(spec: &LoadSpec) -> LoadResult {
    run(spec, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// Applies a load all of whose queries must be answered, and rightly.
#[track_caller]
pub(crate) fn go_well(spec: &LoadSpec) -> LoadResult {
    let result = go(spec);
    let counters = &result.measured.counters;
    let outcomes = &counters.outcomes;
    let shown = format!("{outcomes:?} {:?}", result.last_connection_end);
    assert!(outcomes.answered > 0, "{shown}");
    assert_eq!(outcomes.answered, outcomes.due, "{shown}");
    assert_eq!(counters.answers.wrong, 0, "{:?}", result.wrong_example);
    assert_eq!((counters.answers.unexpected, counters.answers.duplicate), (0, 0));
    result
}
