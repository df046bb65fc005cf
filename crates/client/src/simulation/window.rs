//! The window of a closed loop: what it holds when nothing goes wrong, and when nothing is answered.

use std::time::Duration;

use dnslab_figures::{Histogram, Outcomes};
use dnslab_settings::{Load, Mode, QuotaKind};
use dnslab_traffic::Truncated;
use dnslab_wire::Transport;

use super::{MS, Scenario};

/// One client with so many queries outstanding, for a fifth of a second.
fn closed(transport: Transport, outstanding: u32, settings: Load) -> Scenario {
    let mut scenario = Scenario::quiet(Load {
        transport,
        clients: 1,
        mode: Mode::Closed { outstanding },
        duration: Duration::from_millis(200),
        warm_up: Duration::ZERO,
        timeout: Duration::from_millis(10),
        ..settings
    });
    scenario.manners.work = MS..MS + 1;
    scenario
}

struct InWindow {
    outcomes: Outcomes,
    /// The mean number of queries in flight (Little's law).
    in_flight: f64,
}

fn played(scenario: &Scenario) -> InWindow {
    let recorder = scenario.play().end.recorder;
    let mut latency = Histogram::default();
    recorder.add_times(&mut latency, &mut Histogram::default(), &mut Histogram::default());
    let outcomes = recorder.into_counters().measured.outcomes;
    outcomes.check().unwrap();
    let mean = latency.mean_ns().unwrap_or_default() / 1e9;
    let in_flight = outcomes.answered as f64 / scenario.job.settings.duration.as_secs_f64() * mean;
    InWindow { outcomes, in_flight }
}

/// The mean number of queries in flight, if each query has an answer.
#[track_caller]
fn answered(scenario: &Scenario) -> f64 {
    let InWindow { outcomes, in_flight } = played(scenario);
    assert_eq!(
        outcomes.answered, outcomes.due,
        "{}: {outcomes:?}",
        scenario.job.settings.transport
    );
    in_flight
}

fn quota(queries: u32) -> Load {
    let queries_per_connection = Some(queries);
    Load { queries_per_connection, connection_quota: QuotaKind::Exact, ..Load::default() }
}

fn asks_again(connections: u32) -> Load {
    Load { connections, truncated: Truncated::AskOverTcp, ..Load::default() }
}

#[test]
fn the_whole_window_is_in_flight() {
    for transport in Transport::ALL {
        let in_flight = answered(&closed(transport, 12, Load::default()));
        // Nothing is in flight until the connection is there, and the last answers come after the end of the
        // window.
        assert!((11.5..=12.2).contains(&in_flight), "{transport}: {in_flight} in flight");
    }
}

/// A used-up connection drains while the next one goes on. A client always has two, or three.
#[test]
fn a_window_is_shared_by_a_connection_and_those_that_drain() {
    for transport in Transport::ALL {
        let in_flight = answered(&closed(transport, 12, quota(5)));
        // An answer takes 1.2 ms, and a handshake up to 0.6 ms.
        assert!((5.0..=12.2).contains(&in_flight), "{transport}: {in_flight} in flight");
        // What is outstanding on earlier connections counts: five, five and two.
        let mut silent = closed(transport, 12, quota(5));
        silent.manners.silent = 1.0;
        silent.job.settings.timeout = Duration::from_secs(1);
        let outcomes = played(&silent).outcomes;
        assert_eq!((outcomes.due, outcomes.timed_out), (12, 12), "{transport}: {outcomes:?}");
    }
}

/// One lost query does not keep its client from the next connection: that would cost a time-out for each.
#[test]
fn a_lost_query_does_not_keep_its_client_from_the_next_connection() {
    for transport in Transport::ALL {
        let mut scenario = closed(transport, 12, quota(20));
        scenario.job.settings.mode = Mode::constant(2_000.0);
        scenario.job.settings.timeout = Duration::from_millis(100);
        scenario.manners.silent = 0.05;
        let outcomes = played(&scenario).outcomes;
        assert_eq!((outcomes.due, outcomes.lost()), (400, outcomes.timed_out), "{outcomes:?}");
        // 20 of 400: nearly all connections have one.
        assert!((5..60).contains(&outcomes.timed_out), "{transport}: {outcomes:?}");
    }
}

/// RFC 7828, section 3.2.2: with each answer the server asks for the connection to be closed.
#[test]
fn an_idle_time_of_zero_does_not_wait_for_the_other_answers() {
    for transport in [Transport::Tcp, Transport::Dot] {
        let mut scenario = closed(transport, 12, Load::default());
        scenario.keepalive();
        scenario.manners.idle = Some(0);
        let in_flight = answered(&scenario);
        assert!((6.0..=12.2).contains(&in_flight), "{transport}: {in_flight} in flight");
    }
}

/// Three sockets for one client, whose queries are nearly all the time on their way over TCP. The place of a
/// query is taken once, and free as soon as its answer over TCP has come.
#[test]
fn a_place_that_is_asked_again_over_tcp_is_taken_from_the_window_once() {
    let mut scenario = closed(Transport::Udp, 12, asks_again(3));
    scenario.manners.truncated = 1.0;
    let in_flight = answered(&scenario);
    assert!((11.5..=12.2).contains(&in_flight), "{in_flight} in flight");
}

/// Nobody is there over TCP. Each place is taken as long as its query waits for TCP.
#[test]
fn places_whose_queries_wait_for_tcp_are_taken() {
    let mut scenario = closed(Transport::Udp, 8, asks_again(2));
    scenario.manners.truncated = 1.0;
    scenario.faults.unheard = 1.0;
    scenario.job.settings.timeout = Duration::from_secs(1);
    let outcomes = played(&scenario).outcomes;
    assert_eq!(outcomes.due, 8, "{outcomes:?}");
    assert_eq!(outcomes.lost(), 8, "{outcomes:?}");
}

/// The place of a query without an answer is free again at the time-out, and not sooner.
#[test]
fn places_of_lost_queries_are_free_after_the_time_out() {
    for transport in Transport::ALL {
        let mut scenario = closed(transport, 1, Load::default());
        scenario.manners.silent = 1.0;
        let outcomes = played(&scenario).outcomes;
        assert_eq!(outcomes.timed_out, outcomes.due, "{transport}: {outcomes:?}");
        // 200 ms are 20 time-outs; the handshake comes before the first.
        assert!((19..=20).contains(&outcomes.due), "{transport}: {outcomes:?}");
    }
}
