use dnslab_figures::Answers;
use dnslab_traffic::QueryList;
use dnslab_wire::{Additions, Edns, QueryOptions, TsigKey};

use super::*;
use crate::recorder::Phases;
use crate::simulation::Simulated;

/// An OPT record that says: idle connections are closed at once (RFC 7828, section 3.1).
const KEEPALIVE: &[u8] = &[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 6, 0, 11, 0, 2, 0, 0];

/// A slot of this transport after an answer that says how long the server keeps an idle connection.
fn after_idle_time(transport: Transport, key: Option<&TsigKey>) -> ConnectionSlot<Simulated> {
    let options = QueryOptions { edns: Some(Edns::default()), ..QueryOptions::default() };
    let queries = QueryList::from_text(&b"a.example A\n"[..], "the test", &options).unwrap();
    let mut slot = ConnectionSlot::<Simulated>::new(0, transport, 0);
    let entry = Entry { due: 1, sent: 1, query: 0, sent_before: 0, attempt: 0 };
    let id = slot.table.insert(entry).unwrap();
    let mut message = Vec::new();
    queries.get(0).append_to(id, &Additions::default(), &mut message);
    if let Some(key) = key {
        let signed = key.sign(&mut message.clone(), 0);
        slot.signed.get_or_insert_default().insert(id, signed);
    }
    // The OPT record of the query is the last.
    message.truncate(message.len() - 11);
    message.extend_from_slice(KEEPALIVE);
    message[2] |= 0x80;
    let attempts = Attempts::at_one_server(1, 1_000, 1);
    let mut matcher = ResponseMatcher {
        reads_options: true,
        ..ResponseMatcher::new(Queries::List(&queries), 1_000, attempts)
    };
    let phases = Phases { measured_from: 0, until: 100, interval: 100, timeout: 1_000 };
    let received = Received { octets: &message, at: 2 };
    matcher.receive(
        &mut slot,
        &mut Recorder::new(phases, None, false),
        Delivery::Message(received),
    );
    slot
}

#[test]
fn the_servers_idle_time_is_heeded_where_it_has_a_meaning() {
    for transport in Transport::ALL {
        let has_meaning = matches!(transport, Transport::Tcp | Transport::Dot);
        let expected = if has_meaning { 0 } else { Nanos::MAX };
        let slot = after_idle_time(transport, None);
        assert_eq!((slot.server_idle, slot.table.len()), (expected, 0), "{transport}");
    }
}

/// It was not known to be from the server.
#[test]
fn an_answer_that_is_not_signed_well_says_nothing_of_idle_times() {
    let key = "a.key:c2VjcmV0".parse().unwrap();
    let slot = after_idle_time(Transport::Tcp, Some(&key));
    assert_eq!((slot.server_idle, slot.table.len()), (Nanos::MAX, 1));
}

/// Sends two queries on a slot, at 0 and 20 ms. The answer to the first comes at `first_ms`, that to the
/// second 50 us later.
fn two_answers(transport: Transport, follows: bool, first_ms: Nanos) -> Answers {
    const MILLISECOND: Nanos = 1_000_000;
    let options = QueryOptions::default();
    let queries = QueryList::from_text(&b"a.example A\n"[..], "the test", &options).unwrap();
    let mut slot = ConnectionSlot::<Simulated>::new(0, transport, 0);
    let mut recorder = Recorder::new(
        Phases {
            measured_from: 0,
            until: 1_000 * MILLISECOND,
            interval: 1_000 * MILLISECOND,
            timeout: 1_000 * MILLISECOND,
        },
        None,
        false,
    );
    let timeout = 1_000 * MILLISECOND;
    let attempts = Attempts::at_one_server(1, timeout, 1);
    let mut matcher = ResponseMatcher::new(Queries::List(&queries), timeout, attempts);
    recorder.note_round_trip(MILLISECOND / 10);
    let answers = [0, 20 * MILLISECOND].map(|sent| answer(&mut slot, &queries, sent, follows));
    for (octets, at) in answers.iter().zip([first_ms * MILLISECOND, 20 * MILLISECOND + 50_000]) {
        let delivery = Delivery::Message(Received { octets, at });
        matcher.receive(&mut slot, &mut recorder, delivery);
    }
    recorder.into_counters().measured.answers
}

/// Sends the first of the queries, and returns its answer.
fn answer(
    slot: &mut ConnectionSlot<Simulated>,
    queries: &QueryList,
    sent: Nanos,
    follows: bool,
) -> Vec<u8> {
    let entry = Entry { due: sent, sent, query: 0, sent_before: 0, attempt: 0 };
    let id = slot.table.insert(entry).unwrap();
    slot.note_sent(sent, 1, follows);
    let mut message = Vec::new();
    queries.get(0).append_to(id, &Additions::default(), &mut message);
    message[2] |= 0x80;
    message
}

/// How many of [`two_answers`] count as overtaken, and as come at once after the next query.
#[track_caller]
fn check(transport: Transport, follows: bool, first_ms: Nanos, overtaken: u64, at_once: u64) {
    let answers = two_answers(transport, follows, first_ms);
    assert_eq!((answers.overtaken, answers.after_next_query), (overtaken, at_once));
}

#[test]
fn answers_that_come_after_the_next_query_are_counted() {
    check(Transport::Tcp, true, 20, 1, 1);
    check(Transport::Dot, true, 21, 1, 0);
    // A closed loop sends the next query because the answer came. Datagrams wait for nothing.
    check(Transport::Tcp, false, 20, 0, 0);
    check(Transport::Udp, true, 20, 0, 0);
    check(Transport::Doq, true, 20, 0, 0);
}
