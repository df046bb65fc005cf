//! How simulated clients behave: when they connect, how long they stay, where they come from, and what they
//! do with truncated answers, cookies and the server's idle time.

mod count;
mod idle;
mod quickack;
mod windows;
mod witness;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_load::{Job, LoadError, LoadResult, run};
use dnslab_settings::{Load, Mode, ReceiveTime, Subnets};
use dnslab_traffic::{QueryList, SyntheticZone, Truncated, TypeMix};
use dnslab_wire::{Edns, QueryOptions, Transport};

use crate::behaviour::witness::{Shared, echo, lock, server};

fn queries(edns: Option<Edns>) -> Arc<QueryList> {
    let origin = "test.example".parse().unwrap();
    let zone = SyntheticZone::new(origin, 7, Duration::from_secs(1)).unwrap();
    let options = QueryOptions { recursion_desired: false, edns };
    Arc::new(QueryList::from_zone(&zone, &TypeMix::default(), 0, &options))
}

fn job(target: SocketAddr, transport: Transport) -> Job {
    let settings = Load {
        transport,
        clients: 4,
        mode: Mode::Closed { outstanding: 2 },
        duration: Duration::from_millis(400),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(1),
        workers: Some(2),
        ..Load::default()
    };
    Job::new(settings, target, queries(None))
}

/// Makes it an open loop with equal gaps.
fn open(load: &mut Load, rate_qps: f64) {
    load.mode = Mode::constant(rate_qps);
}

/// Applies a load whose queries must all be answered; the engine asserts its sums.
#[track_caller]
fn go(job: &Job) -> LoadResult {
    let result = run(job, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let outcomes = &result.measured.counters.outcomes;
    assert!(outcomes.due > 0, "nothing was due");
    assert_eq!(outcomes.answered, outcomes.due, "{outcomes:?} {:?}", result.last_connection_end);
    result
}

fn plain() -> (SocketAddr, Shared) {
    server("127.0.0.1", |_, query| echo(query, 0, 0))
}

#[test]
fn a_client_divides_its_window_among_its_connections() {
    let (target, seen) = plain();
    go(&job(target, Transport::Tcp).with(|load| {
        load.mode = Mode::Closed { outstanding: 7 };
        load.connections = 3;
    }));
    assert_eq!(lock(&seen).of_each_peer().len(), 12);
}

#[test]
fn clients_send_from_their_own_addresses() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let (target, seen) = plain();
        let sources = Some("127.0.1.1-127.0.1.4".parse().unwrap());
        go(&job(target, transport).with(|load| load.sources = sources));
        let addresses: HashSet<IpAddr> =
            lock(&seen).queries.iter().map(|(peer, _)| peer.ip()).collect();
        let expected: HashSet<IpAddr> =
            (1..=4).map(|last| IpAddr::from([127, 0, 1, last])).collect();
        assert_eq!(addresses, expected, "{transport}");
    }
}

#[test]
fn truncated_answers_are_asked_again_over_tcp() {
    for address in ["127.0.0.1", "[::1]"] {
        let (target, seen) = server(address, |transport, query| {
            let truncated = if transport == Transport::Udp { 2 } else { 0 };
            echo(query, truncated, 0)
        });
        let job = job(target, Transport::Udp);
        let result = go(&job.clone().with(|load| load.truncated = Truncated::AskOverTcp));
        let counters = &result.measured.counters;
        assert_eq!(counters.asked_again, counters.answers.truncated);
        assert_eq!(counters.sent, 2 * counters.outcomes.due);
        assert_eq!(lock(&seen).queries.len() as u64, counters.sent);
        assert_eq!(lock(&seen).max_open, 4);
        // Without it they are answers.
        let result = go(&job);
        let counters = &result.measured.counters;
        assert_eq!((counters.asked_again, counters.sent), (0, counters.outcomes.due));
        assert_eq!(counters.answers.truncated, counters.outcomes.answered);
    }
}

#[test]
fn an_answer_that_is_truncated_over_tcp_too_is_an_answer() {
    let (target, _) = server("127.0.0.1", |_, query| echo(query, 2, 0));
    let job = job(target, Transport::Udp);
    let result = go(&job.with(|load| load.truncated = Truncated::AskOverTcp));
    let counters = &result.measured.counters;
    assert_eq!(counters.sent, 2 * counters.outcomes.due);
}

#[test]
fn extended_response_codes_are_read_wherever_queries_have_edns() {
    // BADVERS is 16: 1 in the OPT record above 0 in the header (RFC 6891, section 6.1.3).
    let (target, _) = server("127.0.0.1", |_, query| {
        let mut answer = echo(query, 0, 0);
        let at = answer.len() - 6;
        answer[at] = 1;
        answer
    });
    let queries = queries(Some(Edns::default()));
    let result = go(&Job { queries, ..job(target, Transport::Udp) });
    let rcodes = &result.measured.counters.answers.rcodes;
    assert_eq!(rcodes.keys().collect::<Vec<_>>(), ["BADVERS"]);
}

/// The data of the COOKIE option, which is the query's last. The server's half is empty or 8 octets long.
fn cookie_of(query: &[u8]) -> &[u8] {
    for length in [8, 16] {
        let header = [0, 10, 0, length as u8];
        let at = query.len().saturating_sub(length + 4);
        if query[at..].starts_with(&header) {
            return &query[at + 4..];
        }
    }
    panic!("no cookie in {query:?}");
}

#[test]
fn each_client_keeps_the_cookie_that_the_server_gave_it() {
    // BADCOOKIE (23) to clients without a server cookie, with the right one in the answer.
    let (target, seen) = server("127.0.0.1", |_, query| {
        let client: [u8; 8] = cookie_of(query)[..8].try_into().unwrap();
        let is_known = cookie_of(query).len() == 16;
        let mut answer = echo(query, 0, if is_known { 0 } else { 23 & 0x0f });
        if !is_known {
            let end = answer.len();
            // RDLENGTH and the option's length grow by the server's half; the code's upper bits.
            answer[end - 9] = 16;
            answer[end - 13] += 8;
            answer[end - 18] = 23 >> 4;
            answer.extend_from_slice(&client.map(|octet| !octet));
        }
        answer
    });
    let job = job(target, Transport::Udp).with(|load| {
        load.cookies = true;
        load.mode = Mode::Closed { outstanding: 1 };
    });
    let result = go(&Job { queries: queries(Some(Edns::default())), ..job });
    let seen = lock(&seen);
    let cookies: HashSet<&[u8]> =
        seen.queries.iter().map(|(_, query)| &cookie_of(query)[..8]).collect();
    assert_eq!(cookies.len(), 4, "each of the four clients has one of its own");
    let known: Vec<&[u8]> = seen.queries.iter().map(|(_, query)| cookie_of(query)).collect();
    assert!(known.iter().all(|cookie| cookie.len() == 8
        || cookie[..8].iter().zip(&cookie[8..]).all(|(client, server)| *server == !client)));
    assert_eq!(known.iter().filter(|cookie| cookie.len() == 8).count(), 4);
    let counters = &result.measured.counters;
    assert_eq!((counters.asked_again, counters.answers.rcodes.len()), (4, 1));
}

#[test]
fn a_server_that_refuses_cookies_and_gives_none_is_not_asked_again() {
    let (target, _) = server("127.0.0.1", |_, query| {
        let mut answer = echo(query, 0, 23 & 0x0f);
        let at = answer.len() - cookie_of(query).len() - 10;
        answer[at] = 23 >> 4;
        answer
    });
    let job = job(target, Transport::Udp).with(|load| load.cookies = true);
    let result = go(&Job { queries: queries(Some(Edns::default())), ..job });
    let counters = &result.measured.counters;
    assert_eq!(counters.answers.rcodes.keys().collect::<Vec<_>>(), ["BADCOOKIE"]);
    assert_eq!(counters.sent, counters.outcomes.due);
}

#[test]
fn client_subnets_are_the_clients_own() {
    let (target, seen) = plain();
    let subnets = Subnets::Written("10.0.0.0/8 by /24".parse().unwrap());
    let job = job(target, Transport::Udp).with(|load| load.client_subnets = Some(subnets));
    go(&Job { queries: queries(Some(Edns::default())), ..job });
    let seen = lock(&seen);
    // Option 8: family 1, source prefix 24, scope 0, three octets.
    let subnet = |query: &[u8]| -> [u8; 3] {
        let end = query.len();
        assert_eq!(query[end - 11..end - 3], [0, 8, 0, 7, 0, 1, 24, 0]);
        query[end - 3..].try_into().unwrap()
    };
    let mut of_peer: HashMap<SocketAddr, HashSet<[u8; 3]>> = HashMap::new();
    for (peer, query) in &seen.queries {
        of_peer.entry(*peer).or_default().insert(subnet(query));
    }
    assert!(of_peer.values().all(|subnets| subnets.len() == 1), "{of_peer:?}");
    let all: HashSet<[u8; 3]> = of_peer.values().flatten().copied().collect();
    assert_eq!(all, (0..4).map(|third| [10, 0, third]).collect());
}

#[test]
fn both_clocks_give_times_within_the_run() {
    let (target, _) = plain();
    for receive_time in ReceiveTime::ALL {
        let job = job(target, Transport::Udp).with(|load| load.receive_time = receive_time);
        let result = go(&job);
        let service_time = &result.measured.service_time;
        assert_eq!(service_time.len(), result.measured.counters.outcomes.answered);
        assert!(service_time.quantile_ns(0.5).unwrap() > 1_000, "{receive_time}");
        assert!(service_time.max_ns().unwrap() < 1_500_000_000, "{receive_time}");
    }
}

#[test]
fn the_pacing_of_an_open_loop_is_told() {
    let (target, _) = plain();
    let job = job(target, Transport::Udp);
    let result = go(&job.clone().with(|load| open(load, 4_000.0)));
    let pacing = result.measured.pacing.as_ref().unwrap();
    let window = |width_ms: u64| pacing.of_width(width_ms * 1_000_000).unwrap();
    assert_eq!((window(100).windows, window(100).due), (4, 1_600));
    assert_eq!((window(1).windows, window(1).due), (400, 1_600));
    assert_eq!(window(1_000).windows, 0);
    assert!(go(&job).measured.pacing.is_none());
}

#[test]
fn more_sockets_than_the_process_may_have_are_refused_before_the_start() {
    let target = "127.0.0.1:9".parse().unwrap();
    let many = job(target, Transport::Tcp).with(|load| load.clients = 10_000_000);
    let error = run(&many, &AtomicBool::new(false), &mut |_| {}).unwrap_err();
    let LoadError::TooManySockets { sockets, .. } = error else { panic!("{error}") };
    assert_eq!(sockets, 10_000_000);
    assert!(error.to_string().contains("`load.idle`"), "{error}");
}
