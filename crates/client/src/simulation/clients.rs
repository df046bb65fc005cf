//! Clients with queries of their own, which come while the load runs.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use dnslab_settings::{Load, Mode};
use dnslab_traffic::{ClientQuery, Connect};
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::Name;
use domain::base::iana::Rtype;
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Played, Scenario, check, play_each};
use crate::played::PlayedClients;
use crate::replay::{ClientTraffic, Fed, Feed};

/// Queries that are known to the test. They come in pieces, and now and then late.
#[derive(Clone, Debug)]
struct Listed {
    queries: Vec<ClientQuery>,
    seed: u64,
    /// Share of the looks at the source that find nothing, in [0, 1).
    behind: f64,
    /// What stands at their end.
    end: Fed,
}

struct Pieces {
    left: VecDeque<ClientQuery>,
    random: Xoshiro256PlusPlus,
    behind: f64,
    end: Fed,
}

impl ClientTraffic for Listed {
    fn begin(&self, workers: u32, _: &[usize]) -> std::io::Result<Vec<Box<dyn Feed>>> {
        assert_eq!(workers, 1);
        let random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let left = self.queries.clone().into();
        let (behind, end) = (self.behind, self.end.clone());
        Ok(vec![Box::new(Pieces { left, random, behind, end })])
    }

    fn known(&self) -> PlayedClients {
        PlayedClients {
            description: format!("{} queries of the simulation", self.queries.len()),
            rate_qps: self.queries.len() as f64,
        }
    }
}

impl Feed for Pieces {
    fn fill(&mut self, ready: &mut VecDeque<ClientQuery>) -> Fed {
        if self.left.is_empty() {
            return self.end.clone();
        }
        if self.random.random_bool(self.behind) {
            return Fed::Nothing;
        }
        let piece = self.random.random_range(1..=self.left.len().min(40));
        ready.extend(self.left.drain(..piece));
        Fed::Some
    }
}

/// A query that tells its client.
fn query(due_ns: u64, client: u32) -> ClientQuery {
    let name: Name<Vec<u8>> = format!("c{client}.example").parse().unwrap();
    let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
    ClientQuery { due_ns, client, query }
}

fn load(load: Load) -> Load {
    Load { mode: Mode::Capture(PathBuf::from("a capture")), connections: 1, ..load }
}

/// All that can go wrong in other loads, with up to 60 clients that ask at any time.
pub(super) fn drawn(seed: u64, transport: Transport) -> Scenario {
    let mut scenario = Scenario::drawn(seed, transport);
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xc11e);
    let job = &mut scenario.job;
    job.settings = load(job.settings.clone());
    // Clients that know nothing of each other ask for no idle time-out (RFC 7828) here.
    job.settings.keepalive = false;
    scenario.manners.idle = None;
    let clients = random.random_range(1..=60u32);
    let length = job.timeline.until_ns();
    let mut due: Vec<u64> = (0..random.random_range(1..400))
        .map(|_| random.random_range(0..length + length / 4))
        .collect();
    due.sort_unstable();
    // A client has the next number when it first asks.
    let mut known = 0;
    let queries = due
        .into_iter()
        .map(|due_ns| {
            let client = random.random_range(0..clients).min(known);
            known = known.max(client + 1);
            query(due_ns, client)
        })
        .collect();
    let behind = if random.random() { 0.0 } else { random.random_range(0.0..0.9) };
    scenario.play_clients(Listed { queries, seed, behind, end: Fed::End });
    scenario
}

/// What must hold whatever happened, and: no socket ever carries queries of two clients.
pub(super) fn check_clients(scenario: &Scenario, played: Played) {
    for (socket, labels) in &played.labels {
        assert!(labels.len() <= 1, "socket {socket} asked for clients {labels:?}");
    }
    check(scenario, played);
}

fn play_clients(transport: Transport, seeds: u64) {
    play_each(transport, seeds, drawn, check_clients);
}

#[test]
fn udp() {
    play_clients(Transport::Udp, 100);
}

/// Clients with addresses of their own share a socket; those for whom there is no address have their own.
pub(super) fn drawn_with_addresses(seed: u64, transport: Transport) -> Scenario {
    let mut scenario = drawn(seed, transport);
    let sources = if seed.is_multiple_of(3) { "10.1.0.0-10.1.0.9" } else { "10.1.0.0/16" };
    let load = &mut scenario.job.settings;
    load.sources = Some(sources.parse().unwrap());
    load.queries_per_connection = None;
    scenario
}

#[test]
fn udp_from_one_socket() {
    play_each(Transport::Udp, 200, drawn_with_addresses, check_clients);
}

#[test]
fn clients_at_one_socket_are_told_apart() {
    let queries: Vec<_> = (0..3_000u32).map(|n| query(u64::from(n) * 300_000, n % 1_000)).collect();
    let sources = Some("10.1.0.0/16".parse().unwrap());
    let played = quiet(Transport::Udp, queries, Load { sources, ..Load::default() }).play();
    let clients: BTreeSet<_> = played.labels.values().flatten().cloned().collect();
    // A socket of the simulation is an address here.
    assert_eq!((clients.len(), played.labels.len()), (1_000, 1_000));
    let counters = played.end.recorder.into_counters().measured;
    assert_eq!((counters.outcomes.due, counters.outcomes.answered), (3_000, 3_000));
}

#[test]
fn tcp() {
    play_clients(Transport::Tcp, 100);
}

#[test]
fn dot() {
    play_clients(Transport::Dot, 60);
}

#[test]
fn doh2() {
    play_clients(Transport::Doh2, 40);
}

#[test]
fn doq() {
    play_clients(Transport::Doq, 15);
}

#[test]
fn doh3() {
    play_clients(Transport::Doh3, 15);
}

/// A load of a second with these queries, in which nothing goes wrong.
fn quiet(transport: Transport, queries: Vec<ClientQuery>, settings: Load) -> Scenario {
    let mut scenario = Scenario::quiet(load(Load {
        transport,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        connect: Connect::OnDemand,
        ..settings
    }));
    scenario.play_clients(Listed { queries, seed: 1, behind: 0.0, end: Fed::End });
    scenario
}

#[test]
fn nobody_is_lost_and_each_keeps_its_connection() {
    // 100 clients ask three times each, 300 ms apart.
    let queries: Vec<_> = (0..300u32).map(|n| query(u64::from(n) * 3_000_000, n % 100)).collect();
    for transport in Transport::ALL {
        let played = quiet(transport, queries.clone(), Load::default()).play();
        let clients: BTreeSet<_> = played.labels.values().flatten().cloned().collect();
        assert_eq!(played.end.clients, 100);
        if !transport.is_quic() {
            assert_eq!((clients.len(), played.labels.len()), (100, 100), "{transport}");
        }
        let counters = played.end.recorder.into_counters().measured;
        assert_eq!((counters.outcomes.due, counters.outcomes.answered), (300, 300), "{transport}");
        if transport.is_connection() {
            let connections = &counters.connections;
            assert_eq!((connections.opened, connections.attempted), (100, 100), "{transport}");
        }
    }
}

#[test]
fn an_idle_client_asks_from_another_socket() {
    let queries: Vec<_> = (0..10u32).map(|n| query(u64::from(n) * 100_000_000, n % 2)).collect();
    let settings = Load { idle: Some(Duration::from_millis(50)), ..Load::default() };
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2] {
        let played = quiet(transport, queries.clone(), settings.clone()).play();
        assert_eq!(played.labels.len(), 10, "{transport}");
        let counters = played.end.recorder.into_counters().measured;
        assert_eq!(counters.outcomes.answered, 10, "{transport}");
        if transport.is_encrypted() {
            // Each client has its own ticket.
            let connections = &counters.connections;
            assert_eq!(
                (connections.full_handshakes, connections.resumed_handshakes),
                (2, 8),
                "{transport}"
            );
        }
    }
}

/// As those of a resolver that waits for a dead server ten times as long as its clients wait for it.
#[test]
fn answers_to_queries_long_forgotten_are_late() {
    let queries: Vec<_> = (0..100u32).map(|n| query(u64::from(n) * 10_000_000, n % 10)).collect();
    let sources = Some("10.1.0.0/16".parse().unwrap());
    for sources in [None, sources] {
        let timeout = Duration::from_millis(50);
        let settings = Load { timeout, sources, idle: None, ..Load::default() };
        let mut scenario = quiet(Transport::Udp, queries.clone(), settings);
        scenario.manners.work = 500_000_000..500_000_001;
        let counters = scenario.play().end.recorder.into_counters().measured;
        assert_eq!(counters.outcomes.timed_out, 100);
        let answers = &counters.answers;
        assert!(answers.late > 40 && answers.unexpected == 0, "{answers:?}");
    }
}

#[test]
fn what_is_due_after_the_end_is_not_asked() {
    let queries = vec![query(0, 0), query(999_999_999, 1), query(1_000_000_000, 2)];
    let played = quiet(Transport::Udp, queries, Load::default()).play();
    assert_eq!(played.end.recorder.into_counters().measured.outcomes.due, 2);
}

#[test]
fn a_source_that_fails_ends_the_load() {
    let queries: Vec<_> = (0..30u32).map(|n| query(u64::from(n) * 10_000_000, n % 7)).collect();
    for transport in Transport::ALL {
        let mut scenario = quiet(transport, queries.clone(), Load::default());
        let end = Fed::Failed { reason: "it is gone".to_owned() };
        let queries = queries.clone();
        scenario.play_clients(Listed { queries, seed: 1, behind: 0.0, end });
        let end = scenario.play().end;
        assert_eq!(end.failure.as_deref(), Some("it is gone"), "{transport}");
        assert!(end.until < 500_000_000, "{transport}: {}", end.until);
        // What was asked before has its outcome.
        let outcomes = end.recorder.into_counters().measured.outcomes;
        assert_eq!((outcomes.due, outcomes.settled()), (30, 30), "{transport}");
    }
}
