//! Connections on which nothing comes for long.

use std::time::Duration;

use dnslab_transport::quic::{QuicError, QuicServerSettings};

use crate::simulation::{
    Link, Protocol, World, answered, client_settings, client_tls, connect_with, query, server,
};

/// Longer than any idle time-out here.
const LONG: Duration = Duration::from_secs(1_000);

/// A network in which nothing arrives.
const DEAD: Link = Link { lost: 100, ..Link::QUIET };

fn patient_server(protocol: Protocol, idle_timeout: Duration) -> QuicServerSettings {
    let mut settings = server(protocol, 1);
    settings.idle_timeout = idle_timeout;
    settings
}

/// How long a connection lives after its one answer, with these idle time-outs; `None` if for long.
fn idle(protocol: Protocol, client: Option<Duration>, server: Duration) -> Option<Duration> {
    let settings = patient_server(protocol, server);
    let mut world = World::with(protocol, Link::QUIET, 1, &settings, client_tls(protocol));
    let settings = client_settings(client_tls(protocol), 1).with_idle_timeout(client);
    world.client = connect_with(protocol, &settings, world.now);
    world.until(|world| world.client.send(7, &query(7)));
    world.until(|world| world.outcomes.len() == 1);
    let began = world.now;
    while world.end.is_none() && world.now < began + LONG && world.step(LONG) {}
    match &world.end {
        None => {
            assert!(world.client.is_open() && !world.client.is_silent());
            world.until(|world| world.client.send(8, &query(8)));
            world.until(|world| world.outcomes.len() == 2);
            assert_eq!(world.server.connections(), 1);
            None
        }
        Some(QuicError::Silent) => {
            let lived = world.now - began;
            while world.step(Duration::from_secs(1)) {}
            assert_eq!(world.server.connections(), 0, "the server was told of the time-out");
            Some(lived)
        }
        Some(end) => panic!("{end}"),
    }
}

#[test]
fn the_idle_time_is_the_shorter_one_of_both_sides() {
    for protocol in Protocol::ALL {
        let seconds = Duration::from_secs;
        let about = |lived: Option<Duration>, expected| {
            let lived = lived.expect("it was idle for too long");
            assert!(lived.abs_diff(seconds(expected)) < Duration::from_millis(200), "{lived:?}");
        };
        assert_eq!(idle(protocol, None, 2 * LONG), None);
        assert_eq!(idle(protocol, Some(2 * LONG), 2 * LONG), None);
        about(idle(protocol, Some(seconds(3)), 2 * LONG), 3);
        about(idle(protocol, None, seconds(40)), 40);
        about(idle(protocol, Some(seconds(90)), seconds(4)), 4);
    }
}

/// A server that is gone is noticed by its silence after a request, and one that comes back, too.
#[test]
fn a_server_that_falls_silent() {
    for protocol in Protocol::ALL {
        let settings = patient_server(protocol, LONG);
        let mut world = World::with(protocol, Link::QUIET, 2, &settings, client_tls(protocol));
        world.until(|world| world.client.send(1, &query(1)));
        world.until(|world| world.outcomes.len() == 1);
        while world.step(Duration::from_millis(100)) {}
        world.link = DEAD;
        world.now += Duration::from_secs(100);
        assert!(world.client.is_open(), "an idle connection says nothing of its server");
        assert!(world.client.send(2, &query(2)));
        let asked = world.now;
        world.until(|world| world.client.is_silent());
        let silence = world.now - asked;
        let expected = Duration::from_secs(1)..Duration::from_secs(5);
        assert!(expected.contains(&silence), "{silence:?}");
        assert!(world.client.is_draining() && !world.client.is_open());
        assert!(!world.client.send(3, &query(3)));
        assert!(world.end.is_none() && world.outcomes.len() == 1);
        // It was the network: what was asked is answered.
        world.link = Link::QUIET;
        world.until(|world| world.outcomes.len() == 2);
        assert_eq!(world.outcomes[1], answered(2, &query(2)));
        assert!(world.client.is_open() && !world.client.is_silent());
    }
}

/// A server that only takes its time is not silent: it acknowledges what it was asked.
#[test]
fn a_server_that_takes_its_time_is_not_silent() {
    for protocol in Protocol::ALL {
        let settings = patient_server(protocol, LONG);
        let mut world = World::with(protocol, Link::QUIET, 3, &settings, client_tls(protocol));
        world.reaction = Box::new(|_| dnslab_transport::quic::Reaction::Later);
        world.until(|world| world.client.send(1, &query(1)));
        let asked = world.now;
        while world.now < asked + Duration::from_secs(60) && world.step(LONG) {
            assert!(!world.client.is_silent());
        }
        assert_eq!(world.release(), 1);
        world.until(|world| world.outcomes.len() == 1);
    }
}
