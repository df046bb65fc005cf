//! Clients that ask again, and that know several servers.

use std::time::Duration;

use dnslab_settings::{Load, Mode};
use dnslab_traffic::{Connect, ServerOrder};
use dnslab_wire::Transport;
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::addresses::{nobody, target};
use super::server::Manners;
use super::{Scenario, check, clients, play_each};
use crate::Endpoint;

/// Further servers of a job, each there or not.
fn further(scenario: &mut Scenario, there: &[bool]) {
    let job = &mut scenario.job;
    let targets = there.iter().map(|is_there| if *is_there { target() } else { nobody() });
    let (transport, tls) = (job.settings.transport, &job.tls);
    let endpoints =
        targets.map(|target| vec![Endpoint { transport, target, tls: tls.clone(), share: 0.0 }]);
    job.further = endpoints.collect();
}

/// All that can go wrong in other loads, and servers that are not there.
fn with_attempts(seed: u64, mut scenario: Scenario) -> Scenario {
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xa77e);
    let load = &mut scenario.job.settings;
    load.attempts = random.random_range(1..=3);
    load.backoff = random.random_range(1..=2);
    load.server_order = ServerOrder::ALL[random.random_range(0..ServerOrder::ALL.len())];
    let is_open = !load.mode.is_closed();
    let there: Vec<bool> = (0..random.random_range(0..=2)).map(|_| random.random()).collect();
    if is_open {
        further(&mut scenario, &there);
        if random.random_bool(0.3) && !there.is_empty() {
            scenario.job.target = nobody();
        }
    }
    let failing = if random.random() { 0.0 } else { random.random_range(0.0..0.5) };
    scenario.manners = Manners { failing, ..scenario.manners };
    scenario
}

fn drawn(seed: u64, transport: Transport) -> Scenario {
    with_attempts(seed, Scenario::drawn(seed, transport))
}

/// Attempts of clients with queries of their own.
fn drawn_of_clients(seed: u64, transport: Transport) -> Scenario {
    with_attempts(seed, clients::drawn(seed, transport))
}

/// Attempts of clients that share a socket for each server.
fn drawn_with_addresses(seed: u64, transport: Transport) -> Scenario {
    with_attempts(seed, clients::drawn_with_addresses(seed, transport))
}

#[test]
fn udp() {
    play_each(Transport::Udp, 150, drawn, check);
}

#[test]
fn tcp() {
    play_each(Transport::Tcp, 150, drawn, check);
}

#[test]
fn dot() {
    play_each(Transport::Dot, 80, drawn, check);
}

#[test]
fn doh2() {
    play_each(Transport::Doh2, 40, drawn, check);
}

#[test]
fn doq() {
    play_each(Transport::Doq, 20, drawn, check);
}

#[test]
fn doh3() {
    play_each(Transport::Doh3, 20, drawn, check);
}

#[test]
fn udp_of_clients() {
    play_each(Transport::Udp, 150, drawn_of_clients, clients::check_clients);
}

#[test]
fn udp_of_clients_at_one_socket() {
    play_each(Transport::Udp, 150, drawn_with_addresses, clients::check_clients);
}

#[test]
fn dot_of_clients() {
    play_each(Transport::Dot, 60, drawn_of_clients, clients::check_clients);
}

/// What waits is given up in time, though what was asked again waits for longer than what is behind it. In these seeds a
/// query had waited behind such a one.
#[test]
fn what_waits_is_given_up_in_time() {
    for (transport, seed) in [
        (Transport::Tcp, 202),
        (Transport::Dot, 202),
        (Transport::Doh2, 488),
        (Transport::Doq, 198),
        (Transport::Doh3, 208),
    ] {
        let scenario = drawn(seed, transport);
        check(&scenario, scenario.play());
    }
    let scenario = drawn_of_clients(202, Transport::Dot);
    clients::check_clients(&scenario, scenario.play());
}

struct Asked {
    /// Queries sent to each server.
    sent_to: Vec<u64>,
    answered: u64,
    /// The median latency.
    median: Duration,
}

/// Ten clients that send 1,000 queries in a second. The first of two servers is not there, or they know only
/// one.
fn play(load: Load, there: &[bool], is_first_there: bool) -> Asked {
    let mut scenario = Scenario::quiet(Load {
        clients: 10,
        mode: Mode::constant(1_000.0),
        connect: Connect::OnDemand,
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        timeout: Duration::from_millis(100),
        ..load
    });
    further(&mut scenario, there);
    if !is_first_there {
        scenario.job.target = nobody();
    }
    let played = scenario.play();
    let (mut latency, mut service, mut lag) = Default::default();
    played.end.recorder.add_times(&mut latency, &mut service, &mut lag);
    let counters = played.end.recorder.into_counters().measured;
    assert_eq!(counters.outcomes.due, 1_000);
    let median = Duration::from_nanos(latency.quantile_ns(0.5).unwrap());
    Asked { sent_to: counters.attempts.sent_to, answered: counters.outcomes.answered, median }
}

#[test]
fn the_next_server_is_asked_after_a_time_out() {
    for transport in Transport::ALL {
        let load = Load { transport, ..Load::default() };
        let Asked { sent_to, answered, median } = play(load, &[true], false);
        assert_eq!(answered, 1_000, "{transport}");
        // What waits for a connection to nobody is not sent.
        let to_nobody = if transport == Transport::Udp { 1_000 } else { 0 };
        assert_eq!(sent_to.last(), Some(&1_000), "{transport}");
        assert_eq!(sent_to[0], to_nobody, "{transport}");
        let waited = Duration::from_millis(if transport.is_connection() { 1 } else { 100 });
        assert!((waited..waited + Duration::from_millis(110)).contains(&median), "{median:?}");
    }
}

#[test]
fn the_order_of_servers_is_that_of_the_client() {
    for (server_order, sent_to) in [
        (ServerOrder::InOrder, &[1_000][..]),
        (ServerOrder::Rotate, &[500, 500]),
        (ServerOrder::Sticky, &[1_000]),
    ] {
        let load = Load { server_order, ..Load::default() };
        assert_eq!(play(load, &[true], true).sent_to, sent_to, "{server_order:?}");
    }
    // Each client asks the dead server until its first time-out.
    let load = Load { server_order: ServerOrder::Sticky, ..Load::default() };
    let Asked { sent_to, answered, .. } = play(load, &[true], false);
    assert_eq!(answered, 1_000);
    assert!((90..=130).contains(&sent_to[0]), "{sent_to:?}");
}

#[test]
fn a_client_gives_up_after_its_last_attempt() {
    let load = Load { attempts: 3, backoff: 2, ..Load::default() };
    let Asked { sent_to, answered, median } = play(load, &[false], false);
    assert_eq!((sent_to, answered), (vec![3_000, 3_000], 0));
    // Two servers wait for 100, 200 and 400 ms each.
    assert!(median >= Duration::from_millis(1_395), "{median:?}");
}
