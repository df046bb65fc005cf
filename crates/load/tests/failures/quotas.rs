//! Connections that have had their share of queries while answers are still missing: the client goes
//! on with the next one, and what was asked on the old one keeps its outcome.

use std::time::Duration;

use dnslab_load::{LoadSpec, Mode};
use dnslab_responder::Program;
use dnslab_traffic::{ClientBehaviour, Connect, Quota};
use dnslab_wire::Transport;

use crate::applied::{apply, both, last_end, open};
use crate::responder::{Responder, spec_with_tls};

/// A server that answers after `delay` and leaves this share of the queries unanswered.
fn server(delay: &str, loss: &str) -> Responder {
    Responder::start(|config| {
        let (delay, loss) = (delay.parse().unwrap(), loss.parse().unwrap());
        config.program = Program { delay, loss, ..Program::default() };
    })
}

fn quota(queries: u32) -> ClientBehaviour {
    ClientBehaviour {
        queries_per_connection: Some(Quota::Exact(queries)),
        ..ClientBehaviour::default()
    }
}

#[test]
fn a_lost_query_does_not_keep_its_client_from_the_next_connection() {
    let server = server("0ms", "2%");
    for transport in Transport::ALL {
        let spec = LoadSpec {
            clients: 2,
            workers: 1,
            mode: open(400.0),
            duration: Duration::from_millis(2_500),
            timeout: Duration::from_millis(500),
            behaviour: quota(20),
            ..spec_with_tls(server.address(transport), transport)
        };
        let result = apply(&spec);
        let counters = both(&result);
        let context = format!("{transport}: {counters:?} {}", last_end(&result));
        // 21 of 1,040 are lost by the server; a client that waited for each of them would be away
        // for half a second each time, and lose 100 with it.
        let outcomes = &counters.outcomes;
        assert!((1..=80).contains(&outcomes.timed_out), "{context}");
        assert_eq!(outcomes.timed_out, outcomes.lost(), "{context}");
        let closed = counters.connections.closed;
        // Each connection carries 20: there are some fifty, and all that had their share are closed.
        assert_eq!(closed > 40, transport.is_connection(), "{context}");
        assert_eq!(counters.connections.lost + counters.connections.failed, 0, "{context}");
    }
}

#[test]
fn a_window_is_shared_by_a_connection_and_those_that_drain() {
    // Every answer takes 20 ms, and each connection carries half of the window: there are always
    // two of a client.
    let server = server("20ms", "0");
    for transport in [Transport::Udp, Transport::Tcp, Transport::Doh2] {
        let spec = LoadSpec {
            clients: 2,
            workers: 1,
            mode: Mode::Closed { outstanding: 10 },
            duration: Duration::from_millis(1_500),
            timeout: Duration::from_secs(2),
            behaviour: quota(5),
            ..spec_with_tls(server.address(transport), transport)
        };
        let result = apply(&spec);
        let measured = &result.measured;
        let context = format!("{transport}: {:?}", measured.counters);
        let seconds = measured.window_ns as f64 / 1e9;
        let in_flight = measured.counters.outcomes.answered as f64 / seconds
            * (measured.latency.mean_ns().unwrap() / 1e9);
        // Little's law: never more than the window, and most of it all the time.
        assert!(in_flight < 21.0 && in_flight > 10.0, "{in_flight} in flight, {context}");
        assert_eq!(measured.counters.outcomes.lost(), 0, "{context}");
    }
}

#[test]
fn connections_of_the_start_are_closed_when_idle_and_opened_again_on_demand() {
    let server = server("0ms", "0");
    let behaviour = ClientBehaviour {
        connect: Connect::AtStart,
        idle: Some(Duration::from_millis(200)),
        ..ClientBehaviour::default()
    };
    let result = apply(&LoadSpec {
        clients: 20,
        workers: 1,
        // Five clients get a turn.
        mode: open(5.0),
        warm_up: Duration::ZERO,
        duration: Duration::from_secs(1),
        behaviour,
        ..spec_with_tls(server.address(Transport::Tcp), Transport::Tcp)
    });
    let connections = both(&result).connections;
    assert!((20..=25).contains(&connections.opened), "{connections:?}");
    assert!(connections.closed >= 20, "{connections:?}");
}
