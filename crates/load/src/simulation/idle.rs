//! Connections that nobody uses.

use std::time::Duration;

use dnslab_measure::{Connections, Counters};
use dnslab_traffic::{ClientBehaviour, Connect, Pace, Rate};
use dnslab_wire::Transport;

use super::network::Faults;
use super::server::Manners;
use super::{Scenario, queries, tls};
use crate::{LoadSpec, Mode};

/// So many clients that have so many turns in a second, equally spaced.
fn open(transport: Transport, clients: u32, rate: f64, behaviour: ClientBehaviour) -> Scenario {
    let spec = LoadSpec {
        clients,
        mode: Mode::Open { rate: Rate::Constant(rate), pace: Pace::Constant },
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        behaviour,
        tls: transport.is_encrypted().then(|| tls(true, false)),
        ..LoadSpec::new("192.0.2.1:53".parse().unwrap(), transport, queries(false))
    };
    let (faults, manners) = (Faults::default(), Manners::default());
    Scenario { spec, faults, manners, interrupted: false }
}

/// Plays it, with an answer for each query; what became of the connections.
#[track_caller]
fn connections(scenario: &Scenario) -> Connections {
    let Counters { outcomes, connections, .. } = scenario.play().end.recorder.into_counters().1;
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
        let behaviour = ClientBehaviour { connect: Connect::AtStart, idle, ..Default::default() };
        // Of 20 clients five get a turn.
        let found = connections(&open(transport, 20, 5.0, behaviour));
        // The turns at 0 and at 200 ms find a connection of the start, those at 400, 600 and 800 ms none.
        assert_eq!(found.opened, 23, "{transport}: {found:?}");
        // The last is idle for 200 ms at the very end.
        assert!((22..=23).contains(&found.closed), "{transport}: {found:?}");
    }
}

#[test]
fn clients_that_connect_on_demand_do_not_before() {
    let behaviour = ClientBehaviour { connect: Connect::OnDemand, ..Default::default() };
    for transport in over_connections() {
        let found = connections(&open(transport, 100, 20.0, behaviour.clone()));
        assert_eq!((found.attempted, found.opened), (20, 20), "{transport}: {found:?}");
    }
}

#[test]
fn an_idle_connection_is_closed_and_opened_again_on_demand() {
    let idle = Some(Duration::from_millis(20));
    let behaviour = ClientBehaviour { connect: Connect::OnDemand, idle, ..Default::default() };
    for transport in over_connections() {
        // Each of the four clients asks every 100 ms.
        let found = connections(&open(transport, 4, 40.0, behaviour.clone()));
        assert_eq!((found.opened, found.closed), (40, 40), "{transport}: {found:?}");
    }
}

/// RFC 7828, section 3.2.2: the server closes what has been idle for 100 ms; the client does so before.
#[test]
fn the_servers_idle_time_is_kept() {
    let behaviour = ClientBehaviour { connect: Connect::OnDemand, ..Default::default() };
    for (transport, is_told) in
        [(Transport::Tcp, true), (Transport::Tcp, false), (Transport::Dot, true)]
    {
        // Each of the two clients asks every 250 ms.
        let mut scenario = open(transport, 2, 8.0, behaviour.clone());
        scenario.spec = LoadSpec { keepalive: is_told, queries: queries(is_told), ..scenario.spec };
        scenario.manners.idle = is_told.then_some(1);
        let found = connections(&scenario);
        let expected = if is_told { (8, 8) } else { (2, 0) };
        assert_eq!((found.opened, found.closed), expected, "{transport}: {found:?}");
    }
}
