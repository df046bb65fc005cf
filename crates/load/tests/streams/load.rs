//! Loads, as the tests apply them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_load::{Expected, Job, LoadResult, TlsSettings, Verification, run};
use dnslab_settings::{Load, Mode, QuotaKind, RightCodes};
use dnslab_traffic::QueryList;
use dnslab_wire::{Method, QueryOptions, Transport};

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
pub(crate) fn job(target: SocketAddr, transport: Transport, tls: TlsSettings) -> Job {
    let settings = Load {
        transport,
        clients: 3,
        mode: Mode::Closed { outstanding: 20 },
        duration: Duration::from_millis(400),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(5),
        workers: Some(2),
        ..Load::default()
    };
    let expected = Some(Expected { codes: RightCodes::One(0), answers: 1 });
    Job { expected, tls: Some(tls), ..Job::new(settings, target, queries()) }
}

/// Exactly so many queries for each connection.
pub(crate) fn with_quota(job: Job, queries: u32) -> Job {
    job.with(|load| {
        load.queries_per_connection = Some(queries);
        load.connection_quota = QuotaKind::Exact;
    })
}

/// HTTP requests of this method.
pub(crate) fn with_method(job: Job, method: Method) -> Job {
    job.with(|load| load.http_method = method)
}

/// Applies a load; the engine asserts its sums.
pub(crate) fn go(job: &Job) -> LoadResult {
    run(job, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// Applies a load whose queries must all be answered rightly.
#[track_caller]
pub(crate) fn go_well(job: &Job) -> LoadResult {
    let result = go(job);
    let counters = &result.measured.counters;
    let outcomes = &counters.outcomes;
    let shown = format!("{outcomes:?} {:?}", result.last_connection_end);
    assert!(outcomes.answered > 0, "{shown}");
    assert_eq!(outcomes.answered, outcomes.due, "{shown}");
    assert_eq!(counters.answers.wrong, 0, "{:?}", result.wrong_example);
    assert_eq!((counters.answers.unexpected, counters.answers.duplicate), (0, 0));
    result
}
