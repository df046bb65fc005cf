//! Connections that nobody uses.

use std::time::Duration;

use dnslab_figures::{Connections, Counters};
use dnslab_settings::{Load, Mode};
use dnslab_traffic::Connect;
use dnslab_wire::Transport;

use super::Scenario;

/// So many clients with so many turns in a second, equally spaced.
fn open(transport: Transport, clients: u32, rate: f64, settings: &Load) -> Scenario {
    Scenario::quiet(Load {
        transport,
        clients,
        mode: Mode::constant(rate),
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        ..settings.clone()
    })
}

/// Plays it with an answer to each query. Returns what became of the connections.
#[track_caller]
fn connections(scenario: &Scenario) -> Connections {
    let Counters { outcomes, connections, .. } =
        scenario.play().end.recorder.into_counters().measured;
    assert!(outcomes.due > 0 && outcomes.answered == outcomes.due, "{outcomes:?}");
    assert_eq!((connections.failed, connections.lost), (0, 0), "{connections:?}");
    connections
}

fn over_connections() -> impl Iterator<Item = Transport> {
    Transport::ALL.into_iter().filter(|transport| transport.is_connection())
}

#[test]
fn connections_of_the_start_are_closed_when_idle_and_opened_again_on_demand() {
    for transport in over_connections() {
        let idle = Some(Duration::from_millis(200));
        let settings = Load { connect: Connect::AtStart, idle, ..Default::default() };
        // Five of 20 clients get a turn.
        let found = connections(&open(transport, 20, 5.0, &settings));
        // The turns at 0 and at 200 ms find a connection of the start; those at 400, 600 and 800 ms find
        // none.
        assert_eq!(found.opened, 23, "{transport}: {found:?}");
        // The last is idle for 200 ms at the very end.
        assert!((22..=23).contains(&found.closed), "{transport}: {found:?}");
    }
}

#[test]
fn clients_that_connect_on_demand_do_not_before() {
    let settings = Load { connect: Connect::OnDemand, ..Default::default() };
    for transport in over_connections() {
        let found = connections(&open(transport, 100, 20.0, &settings));
        assert_eq!((found.attempted, found.opened), (20, 20), "{transport}: {found:?}");
    }
}

#[test]
fn an_idle_connection_is_closed_and_opened_again_on_demand() {
    let idle = Some(Duration::from_millis(20));
    let settings = Load { connect: Connect::OnDemand, idle, ..Default::default() };
    for transport in over_connections() {
        // Each of the four clients asks every 100 ms.
        let found = connections(&open(transport, 4, 40.0, &settings));
        assert_eq!((found.opened, found.closed), (40, 40), "{transport}: {found:?}");
    }
}

/// RFC 7828, section 3.2.2: the server closes what has been idle for 100 ms; the client does so before.
#[test]
fn the_servers_idle_time_is_kept() {
    let settings = Load { connect: Connect::OnDemand, ..Default::default() };
    for (transport, is_told) in
        [(Transport::Tcp, true), (Transport::Tcp, false), (Transport::Dot, true)]
    {
        // Each of the two clients asks every 250 ms.
        let mut scenario = open(transport, 2, 8.0, &settings);
        if is_told {
            scenario.keepalive();
            scenario.manners.idle = Some(1);
        }
        let found = connections(&scenario);
        let expected = if is_told { (8, 8) } else { (2, 0) };
        assert_eq!((found.opened, found.closed), expected, "{transport}: {found:?}");
    }
}
