//! Connections that may carry no more queries while answers are outstanding on them: the client goes
//! on with the next one at once, and what the old one owes it still has its outcome.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use dnslab_load::{LoadResult, LoadSpec, Mode};
use dnslab_traffic::{ClientBehaviour, QueryList, Quota, TypeMix};
use dnslab_wire::{Edns, QueryOptions, Transport};

use crate::applied::{apply, both, last_end, spec, zone};
use crate::server::{answer, read_query, send, tcp_server, udp_server};

/// How long a server waits for the client's next connection.
const PATIENCE: Duration = Duration::from_millis(400);

/// One client with so many queries for each connection, and a time-out beyond all patience.
fn one_client(spec: LoadSpec, quota: Option<u32>) -> LoadSpec {
    let queries_per_connection = quota.map(Quota::Exact);
    let behaviour = ClientBehaviour { queries_per_connection, ..Default::default() };
    let timeout = Duration::from_secs(2);
    LoadSpec { clients: 1, workers: 1, warm_up: Duration::ZERO, timeout, behaviour, ..spec }
}

/// Connections that a server has accepted.
#[derive(Debug, Default)]
struct Accepted {
    count: Mutex<u64>,
    changed: Condvar,
    /// How often the next connection was waited for in vain.
    in_vain: AtomicU64,
}

impl Accepted {
    /// Counts another one; its number.
    fn another(&self) -> u64 {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count += 1;
        self.changed.notify_all();
        *count
    }

    /// Waits until there is one after that with this number, or patience is at its end.
    fn wait_for_one_after(&self, number: u64) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = |count: &mut u64| *count <= number;
        let waited = self.changed.wait_timeout_while(count, PATIENCE, is_last).unwrap().1;
        self.in_vain.fetch_add(u64::from(waited.timed_out()), Ordering::Relaxed);
    }
}

/// Applies a closed loop of one client to a server that serves each connection so, and is told when
/// to wait for the next one. The client must never keep it waiting but at the end of the load.
#[track_caller]
fn check(
    spec_for: impl FnOnce(LoadSpec) -> LoadSpec,
    serve: fn(&mut TcpStream, &dyn Fn()) -> Option<()>,
) -> LoadResult {
    let accepted = Arc::new(Accepted::default());
    let counted = Arc::clone(&accepted);
    let target = tcp_server(move |mut stream| {
        let number = counted.another();
        serve(&mut stream, &|| counted.wait_for_one_after(number));
    });
    let mode = Mode::Closed { outstanding: 3 };
    let result = apply(&spec_for(LoadSpec { mode, ..spec(target, Transport::Tcp) }));
    let counters = both(&result);
    let context = format!("{:?} {:?}", counters.outcomes, counters.connections);
    let in_vain = accepted.in_vain.load(Ordering::Relaxed);
    assert!(in_vain <= 1, "waited {in_vain} times for the next connection: {context}");
    assert!(counters.connections.opened > 5, "{context}");
    result
}

#[test]
fn the_end_of_a_quota_does_not_wait_for_the_last_answer() {
    let result = check(
        |spec| one_client(spec, Some(5)),
        |stream, wait| {
            for number in 1..=5 {
                let query = read_query(stream)?;
                if number == 5 {
                    wait();
                }
                send(stream, &answer(&query, 0));
            }
            // The client closes.
            read_query(stream).map(drop)
        },
    );
    let counters = both(&result);
    assert_eq!(counters.outcomes.answered, counters.outcomes.due, "{}", last_end(&result));
    assert_eq!((counters.connections.lost, counters.connections.failed), (0, 0));
    assert!(counters.connections.closed > 5, "{:?}", counters.connections);
}

#[test]
fn an_idle_time_of_zero_does_not_wait_for_the_other_answers() {
    // RFC 7828, section 3.2.2.
    let edns = Some(Edns { keepalive: true, ..Edns::default() });
    let options = QueryOptions { edns, ..QueryOptions::default() };
    let queries = Arc::new(QueryList::from_zone(&zone(), &TypeMix::default(), 0, &options));
    let result = check(
        |spec| LoadSpec { keepalive: true, queries, ..one_client(spec, None) },
        |stream, wait| {
            let first = read_query(stream)?;
            // What the connection before held back is answered, and others take its place.
            thread::sleep(Duration::from_millis(10));
            let mut end = answer(&first, 0);
            // The empty option of the query, at the end of the message, gets its two octets.
            let length = end.len();
            end[length - 1] = 2;
            end[length - 5] += 2;
            end.extend_from_slice(&[0, 0]);
            send(stream, &end);
            wait();
            while let Some(query) = read_query(stream) {
                send(stream, &answer(&query, 0));
            }
            None
        },
    );
    let counters = both(&result);
    assert_eq!(counters.outcomes.answered, counters.outcomes.due, "{}", last_end(&result));
    assert_eq!((counters.connections.lost, counters.connections.failed), (0, 0));
}

#[test]
fn what_is_lost_with_a_connection_that_has_had_its_share_is_counted() {
    let result = check(
        |spec| one_client(spec, Some(5)),
        |stream, wait| {
            for _ in 0..4 {
                let query = read_query(stream)?;
                send(stream, &answer(&query, 0));
            }
            // The fifth never gets an answer.
            read_query(stream)?;
            wait();
            None
        },
    );
    let counters = both(&result);
    let (outcomes, connections) = (counters.outcomes, counters.connections);
    assert_eq!(connections.closed + connections.failed, 0, "{connections:?}");
    assert_eq!(outcomes.connection_lost, connections.lost, "{outcomes:?} {connections:?}");
    assert_eq!(outcomes.answered + outcomes.connection_lost, outcomes.due, "{outcomes:?}");
    assert_eq!(last_end(&result), "the server closed the connection");
}

#[test]
fn a_window_counts_what_is_outstanding_on_earlier_connections() {
    let silent = |mut stream: TcpStream| while read_query(&mut stream).is_some() {};
    for transport in [Transport::Udp, Transport::Tcp] {
        let target = match transport {
            Transport::Udp => udp_server(|_, _| Vec::new()),
            _ => tcp_server(silent),
        };
        let mode = Mode::Closed { outstanding: 7 };
        let result = apply(&one_client(LoadSpec { mode, ..spec(target, transport) }, Some(3)));
        let counters = both(&result);
        // Three, three and one.
        assert_eq!(counters.outcomes.due, 7, "{transport}: {:?}", counters.outcomes);
        assert_eq!(counters.outcomes.timed_out, 7, "{transport}: {:?}", counters.outcomes);
    }
}
