//! Garbage, and floods of answers, right ones and others.

use std::time::Duration;

use dnslab_wire::Transport;

use crate::failures::applied::{apply, both, job};
use crate::failures::process::{alone, status_kib};
use crate::failures::server::{answer, frame, read_query, tcp_server, udp_server};

#[test]
fn garbage_with_the_right_id_is_malformed() {
    let garble = |_, query: &[u8]| vec![vec![query[0], query[1], 0x80, 0, 0, 9, 0, 0, 0, 0, 0, 0]];
    let result = apply(&job(udp_server(garble), Transport::Udp));
    let outcomes = result.measured.counters.outcomes;
    assert!(outcomes.malformed > 0);
    assert_eq!(outcomes.malformed, outcomes.due);
}

/// A thousand messages for each query: the right answer, its duplicates, and answers to others.
fn flood(query: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let right = answer(query, 0);
    let mut other = right.clone();
    other[0] ^= 0xff;
    (0..1_000).map(move |number| if number % 2 == 0 { right.clone() } else { other.clone() })
}

#[test]
fn a_flood_of_answers_over_udp() {
    alone(&[], "failures::datagrams::a_flood_of_answers_over_udp", || {
        let target = udp_server(|_, query| flood(query).collect());
        check_flood(target, Transport::Udp);
    });
}

#[test]
fn a_flood_of_answers_over_tcp() {
    alone(&[], "failures::datagrams::a_flood_of_answers_over_tcp", || {
        let target = tcp_server(|mut stream| {
            while let Some(query) = read_query(&mut stream) {
                let framed: Vec<u8> = flood(&query).flat_map(|message| frame(&message)).collect();
                if std::io::Write::write_all(&mut stream, &framed).is_err() {
                    return;
                }
            }
        });
        check_flood(target, Transport::Tcp);
    });
}

#[track_caller]
fn check_flood(target: std::net::SocketAddr, transport: Transport) {
    // A short load first: what comes later is growth.
    apply(&job(target, transport).with(|load| load.duration = Duration::from_millis(100)));
    let before = status_kib("VmRSS");
    let result = apply(&job(target, transport).with(|load| {
        load.timeout = Duration::from_secs(1);
        load.duration = Duration::from_secs(1);
    }));
    let grown = status_kib("VmRSS").saturating_sub(before);
    let counters = both(&result);
    assert!(counters.outcomes.answered > 0, "{counters:?}");
    // The duplicates of the last use of an id are recognised; those of earlier uses are unexpected.
    let strays = counters.answers.duplicate + counters.answers.unexpected + counters.answers.late;
    assert!(counters.answers.duplicate > 0 && counters.answers.unexpected > 0, "{counters:?}");
    assert!(strays > 20 * counters.outcomes.answered, "{counters:?}");
    println!(
        "found: {transport}: {strays} strays, {} answers, {grown} KiB",
        counters.outcomes.answered
    );
    assert!(grown < 64 * 1024, "{transport}: {grown} KiB more than before");
}
