//! What clients make a server hold, and how it gets rid of it.

use std::time::Duration;

use dnslab_transport::quic::Reaction;

use crate::simulation::{CLIENT, Link, Protocol, World, query};

/// Requests whose answers are long.
const LONG: [u16; 4] = [3, 259, 515, 771];

/// Every octet that is held is given back, whatever the network loses, doubles and reorders.
#[test]
fn what_was_held_is_given_back() {
    for protocol in Protocol::ALL {
        for link in [Link::QUIET, Link::BAD] {
            let mut world = World::new(protocol, link, 7);
            world.until(|world| world.client.is_open());
            let mut most = 0;
            for number in (0..200).chain(LONG) {
                world.until(|world| world.client.send(number, &query(number)));
                most = most.max(world.server.memory());
            }
            world.until(|world| {
                most = most.max(world.server.memory());
                world.outcomes.len() == 204
            });
            assert!(most > 60_000, "{protocol:?}: {most}");
            while world.step(Duration::from_secs(1)) {}
            // A datagram in which something of a control stream came before it could be read.
            assert!(world.server.memory() < 3000, "{protocol:?}: {}", world.server.memory());
        }
    }
}

/// A long query of which the first packet never comes: QUIC keeps the others, and they are counted.
#[test]
fn octets_without_their_beginning_are_counted() {
    for protocol in [Protocol::Doq, Protocol::Post] {
        let mut world = World::new(protocol, Link::QUIET, 7);
        world.until(|world| world.client.is_open());
        while world.step(Duration::from_millis(100)) {}
        let before = world.server.memory();
        assert!(world.client.send(1, &[vec![0, 1], vec![0; 60_000]].concat()));
        let (mut out, mut kept) = (Vec::new(), 0);
        while let Some(segment) = world.client.transmit(world.now, &mut out) {
            let from = if kept == 0 { segment } else { 0 };
            for datagram in out[from..].chunks(segment) {
                world.server.receive(world.now, CLIENT.parse().unwrap(), None, datagram, segment);
                kept += datagram.len();
            }
            out.clear();
        }
        world.server.poll(world.now, &mut |_, _, _| Reaction::Never);
        while world.server.transmit(world.now, &mut Vec::new()).is_some() {}
        assert!(kept > 9000, "{kept}");
        assert_eq!(world.server.memory() - before, kept, "{protocol:?}");
    }
}

/// A connection that holds too much is ended, and its client learns why; the next one is served.
#[test]
fn a_connection_that_is_cut_holds_nothing() {
    for (protocol, word) in
        [(Protocol::Doq, "DOQ_EXCESSIVE_LOAD"), (Protocol::Get, "H3_EXCESSIVE_LOAD")]
    {
        let mut world = World::new(protocol, Link::QUIET, 7);
        world.until(|world| world.client.is_open());
        LONG.iter().for_each(|number| assert!(world.client.send(*number, &query(*number))));
        world.until(|world| world.server.memory() > 200_000);
        let holder = world.server.holders().next().unwrap();
        assert_eq!((holder.memory, world.server.holders().count()), (world.server.memory(), 1));
        world.server.cut(world.now, holder.connection);
        assert_eq!((world.server.memory(), world.server.connections()), (0, 0));
        let facts = world.server.facts();
        assert_eq!((facts.accepted, facts.broken), (1, 1));
        assert_eq!(world.server.take_ended().collect::<Vec<_>>(), [LONG.len() as u64]);
        world.until(|world| world.end.is_some());
        let end = world.end.as_ref().unwrap().to_string();
        assert!(end.contains(word), "{end}");
        world.reconnect(protocol, crate::simulation::client_tls(protocol));
        world.until(|world| world.client.send(1, &query(1)));
        world.until(|world| world.outcomes.len() == 1);
    }
}
