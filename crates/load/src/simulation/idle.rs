//! Connections that nobody uses.

use std::time::Duration;

use dnslab_traffic::{ClientBehaviour, Connect, Pace, Rate};
use dnslab_wire::Transport;

use super::network::Faults;
use super::server::Manners;
use super::{Scenario, queries, tls};
use crate::{LoadSpec, Mode};

#[test]
fn connections_of_the_start_are_closed_when_idle_and_opened_again_on_demand() {
    for transport in Transport::ALL.into_iter().filter(|transport| transport.is_connection()) {
        let behaviour = ClientBehaviour {
            connect: Connect::AtStart,
            idle: Some(Duration::from_millis(200)),
            ..ClientBehaviour::default()
        };
        let spec = LoadSpec {
            clients: 20,
            // Five clients get a turn.
            mode: Mode::Open { rate: Rate::Constant(5.0), pace: Pace::Constant },
            warm_up: Duration::ZERO,
            duration: Duration::from_secs(1),
            behaviour,
            tls: transport.is_encrypted().then(|| tls(true, false)),
            ..LoadSpec::new("192.0.2.1:53".parse().unwrap(), transport, queries(false))
        };
        let (faults, manners) = (Faults::default(), Manners::default());
        let end = Scenario { spec, faults, manners, interrupted: false }.play().end;
        let counters = end.recorder.into_counters().1;
        assert_eq!((counters.outcomes.due, counters.outcomes.answered), (5, 5), "{transport}");
        let connections = counters.connections;
        // The turns at 0 and at 200 ms find a connection of the start, those at 400, 600 and 800 ms none.
        assert_eq!(connections.opened, 23, "{transport}: {connections:?}");
        // The last is idle for 200 ms at the very end.
        assert!((22..=23).contains(&connections.closed), "{transport}: {connections:?}");
    }
}
