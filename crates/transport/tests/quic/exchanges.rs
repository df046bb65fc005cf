//! Requests and how they end.

use std::collections::HashSet;
use std::num::NonZeroU64;
use std::time::Duration;

use dnslab_transport::quic::{QuicError, Reaction};
use rustls::client::Resumption;

use crate::simulation::{Link, Outcome, Protocol, World, answered, client_tls, query, server};

/// Sends so many requests, `window` at once. Each must be answered rightly, and once.
#[track_caller]
fn check(world: &mut World, requests: u16, window: usize) {
    let (mut next, mut seen) = (0, 0);
    world.until(|world| {
        while next < requests
            && usize::from(next) - world.outcomes.len() < window
            && world.client.send(next, &query(next))
        {
            next += 1;
        }
        assert!(world.end.is_none(), "{:?}", world.end);
        for outcome in &world.outcomes[seen..] {
            let number = outcome.request();
            assert_eq!(*outcome, answered(number, &query(number)), "{number}");
        }
        seen = world.outcomes.len();
        seen == usize::from(requests)
    });
    let numbers: HashSet<u16> = world.outcomes.iter().map(Outcome::request).collect();
    assert_eq!(numbers.len(), usize::from(requests));
    assert_eq!(world.asked, u64::from(requests));
}

#[test]
fn every_request_is_answered_once() {
    for protocol in Protocol::ALL {
        for (link, requests) in [(Link::QUIET, 2000), (Link::BAD, 300)] {
            for seed in 0..4 {
                check(&mut World::new(protocol, link, seed), requests, 250);
            }
        }
    }
}

#[test]
fn the_servers_stream_limit_is_kept() {
    for protocol in Protocol::ALL {
        for (streams, link) in
            [(1, Link::QUIET), (2, Link::QUIET), (100, Link::QUIET), (1, Link::BAD), (2, Link::BAD)]
        {
            let mut settings = server(protocol, 5);
            settings.streams = streams;
            let mut world = World::with(protocol, link, 5, &settings, client_tls(protocol));
            check(&mut world, 60, 50);
        }
    }
}

/// Many requests share a packet, and many packets a system call.
#[test]
fn a_batch_takes_few_packets() {
    for (protocol, most) in [(Protocol::Doq, 40), (Protocol::Get, 120), (Protocol::Post, 120)] {
        let mut world = World::new(protocol, Link::QUIET, 1);
        world.until(|world| world.client.handshake().is_some());
        while world.step(Duration::from_millis(200)) {}
        let before = world.datagrams;
        for number in 10..210 {
            assert!(
                world.client.send(number, &query(number)),
                "{number} {:?} {} {}",
                world.end,
                world.client.is_open(),
                world.client.is_draining()
            );
        }
        world.until(|world| world.outcomes.len() == 200);
        let packets = world.datagrams - before;
        assert!(packets < most, "{packets} packets for 200 requests over {protocol:?}");
    }
}

#[test]
fn answers_may_be_held_back_and_lost() {
    for protocol in Protocol::ALL {
        let mut world = World::new(protocol, Link::QUIET, 2);
        world.reaction = Box::new(|number| match number % 3 {
            0 => Reaction::Answered,
            1 => Reaction::Later,
            _ => Reaction::Never,
        });
        world.until(|world| world.client.is_open());
        for number in 0..30 {
            assert!(world.client.send(number, &query(number)));
        }
        world.until(|world| world.outcomes.len() == 10 && world.held.len() == 10);
        assert_eq!(world.release(), 10);
        world.until(|world| world.outcomes.len() == 20);
        while world.step(Duration::from_millis(500)) {}
        assert_eq!(world.outcomes.len(), 20);
        assert!(world.end.is_none());
    }
}

#[test]
fn given_up_requests_free_their_streams() {
    for protocol in Protocol::ALL {
        let mut settings = server(protocol, 3);
        settings.streams = 10;
        let mut world = World::with(protocol, Link::QUIET, 3, &settings, client_tls(protocol));
        world.reaction =
            Box::new(|number| if number < 50 { Reaction::Later } else { Reaction::Answered });
        world.until(|world| world.client.is_open());
        for round in 0..5 {
            for number in 0..10 {
                let number = round * 10 + number;
                world.until(|world| world.client.send(number, &query(number)));
            }
            assert!(!world.client.send(99, &query(99)));
            let asked = u64::from(round + 1) * 10;
            world.until(|world| world.asked == asked);
            (0..10).for_each(|number| world.client.give_up(round * 10 + number));
        }
        world.until(|world| world.client.send(100, &query(100)));
        world.until(|world| world.outcomes.len() == 1);
        assert_eq!(world.outcomes[0].request(), 100);
        assert_eq!(world.release(), 0, "answers that nobody wants any more");
    }
}

#[test]
fn numbers_are_used_again() {
    for protocol in Protocol::ALL {
        let mut world = World::new(protocol, Link::QUIET, 3);
        world.reaction =
            Box::new(|number| if number == 0 { Reaction::Later } else { Reaction::Answered });
        world.until(|world| world.client.send(7, &query(7)));
        world.until(|world| world.asked == 1);
        world.client.give_up(7);
        assert!(world.client.send(7, &query(8)));
        world.release();
        world.until(|world| !world.outcomes.is_empty());
        while world.step(Duration::from_millis(500)) {}
        assert_eq!(world.outcomes, [answered(7, &query(8))]);
    }
}

#[test]
fn tickets_are_used_for_resumption_and_early_data() {
    for protocol in Protocol::ALL {
        for accepted in [true, false] {
            let mut tls = client_tls(protocol);
            tls.resumption = Resumption::in_memory_sessions(4);
            let mut world =
                World::with(protocol, Link::QUIET, 4, &server(protocol, 4), tls.clone());
            check(&mut world, 10, 10);
            let first = world.client.handshake().unwrap().clone();
            assert_eq!((first.resumed, first.early_data), (false, false));
            assert_eq!(first.cipher_suite, "TLS13_AES_256_GCM_SHA384");
            while world.step(Duration::from_millis(100)) {}
            world.client.close(world.now);
            world.asked = 0;
            world.reconnect(protocol, tls.clone());
            assert!(world.client.is_open(), "early data is possible");
            if !accepted {
                // A restarted server knows neither the ticket nor the connection.
                world.server = dnslab_transport::quic::QuicServer::new(&server(protocol, 9));
            }
            check(&mut world, 25, 20);
            let second = world.client.handshake().unwrap();
            assert_eq!((second.resumed, second.early_data), (accepted, accepted), "{protocol:?}");
            let facts = world.server.facts();
            let expected = if accepted { (1, 1) } else { (1, 0) };
            assert_eq!((facts.full_handshakes, facts.resumed_handshakes), expected);
        }
    }
}

/// Whenever the server closes, what was asked is answered or the connection has ended.
#[test]
fn the_server_may_close_at_any_time() {
    for protocol in Protocol::ALL {
        for steps in 0..40 {
            let mut world = World::new(protocol, Link::QUIET, 6);
            let mut number = 0;
            for _ in 0..steps {
                while number < 100 && world.client.send(number, &query(number)) {
                    number += 1;
                }
                world.step(Duration::from_secs(1));
            }
            world.server.close(world.now);
            world.until(|world| world.end.is_some());
            let text = world.end.as_ref().unwrap().to_string();
            let expected =
                ["the peer closed the connection", "APPLICATION_ERROR", "idle time-out", "aborted"];
            assert!(expected.iter().any(|part| text.contains(part)), "{text} after {steps} steps");
            assert!(!world.client.is_open());
            assert!(!world.client.send(999, &query(999)));
        }
    }
}

#[test]
fn nothing_is_left_of_a_connection() {
    for protocol in Protocol::ALL {
        let mut world = World::new(protocol, Link::QUIET, 7);
        check(&mut world, 10, 10);
        assert_eq!(world.server.connections(), 1);
        world.client.close(world.now);
        while world.step(Duration::from_secs(100)) {}
        assert_eq!(world.server.connections(), 0);
        assert_eq!(world.server.next_timeout(), None);
        let mut world = World::new(protocol, Link::QUIET, 7);
        check(&mut world, 10, 10);
        while world.step(Duration::from_secs(100)) {}
        assert!(world.end.is_some());
        assert_eq!((world.server.connections(), world.server.facts().timed_out), (0, 1));
    }
}

/// A connection whose quota is used up ends in order: every answer that was begun arrives, also over a bad
/// link and after it was held back. Over HTTP/3 the client hears of it first.
#[test]
fn a_quota_ends_the_connection_after_its_answers() {
    for protocol in Protocol::ALL {
        for (link, is_held) in [(Link::QUIET, false), (Link::BAD, false), (Link::QUIET, true)] {
            let mut settings = server(protocol, 6);
            settings.queries_per_connection = NonZeroU64::new(10);
            let mut world = World::with(protocol, link, 6, &settings, client_tls(protocol));
            world.reaction = Box::new(move |number| match number {
                4 if is_held => Reaction::Later,
                5 => Reaction::Never,
                _ => Reaction::Answered,
            });
            world.until(|world| world.client.handshake().is_some());
            let sent =
                (0..20).take_while(|number| world.client.send(*number, &query(*number))).count();
            assert_eq!(sent, 20);
            world.until(|world| {
                if world.outcomes.len() >= 8 {
                    world.release();
                }
                world.end.is_some()
            });
            let answered: Vec<_> = world
                .outcomes
                .iter()
                .filter(|outcome| matches!(outcome, Outcome::Answer(..)))
                .collect();
            for outcome in &answered {
                let number = outcome.request();
                assert_eq!(**outcome, crate::simulation::answered(number, &query(number)));
            }
            // DoQ takes ten and no more, one of which is never answered.
            let expected = if protocol == Protocol::Doq { 9..=9 } else { 9..=19 };
            assert!(expected.contains(&answered.len()), "{protocol:?} {link:?}: {answered:?}");
            assert!(matches!(world.end, Some(QuicError::Closed)), "{:?}", world.end);
            assert_eq!(world.server.open().count(), 0);
            let ended: Vec<_> = world.server.take_ended().collect();
            assert_eq!(ended, [world.asked]);
            let facts = world.server.facts();
            assert_eq!((facts.closed_by_quota, facts.closed_by_client, facts.broken), (1, 0, 0));
        }
    }
}
