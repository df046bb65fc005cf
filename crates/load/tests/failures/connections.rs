//! Connections that break: at random, in mid-frame, in mid-handshake, at once, corrupted on the way.

use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use dnslab_load::LoadResult;
use dnslab_settings::QuotaKind;
use dnslab_wire::Transport;

use crate::applied::{apply, both, closed_and_open, job, last_end, open};
use crate::relay::{End, Fault, relay};
use crate::responder::{Responder, job_with_tls};
use crate::server::{answer, frame, read_query, tcp_server};

const OVER_TCP: [Transport; 3] = [Transport::Tcp, Transport::Dot, Transport::Doh2];

/// What a fault must show in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Attempts to connect fail: nothing can be sent.
    Failed,
    /// Connections that were open are lost.
    Lost,
    /// Some of both, depending on when it ended.
    Either,
}

/// Applies a closed and an open loop through a relay with this fault, over each of `transports`. The result
/// must show what happened, and give one of `reasons`.
#[track_caller]
fn check(transports: &[Transport], fault: Fault, shown: Shown, reasons: &[&str]) {
    for transport in transports {
        let server = Responder::start(|_| {});
        let target = relay(server.address(*transport), fault);
        for job in closed_and_open(job_with_tls(target, *transport)) {
            let (result, mode) = (apply(&job), job.settings.mode());
            let context = format!("{transport} {mode:?} {fault:?}: {}", summary(&result));
            let connections = both(&result).connections;
            let (failed, lost) = (connections.failed > 0, connections.lost > 0);
            let is_shown = match shown {
                Shown::Failed => failed && !lost && both(&result).sent == 0,
                Shown::Lost => lost,
                Shown::Either => failed || lost,
            };
            assert!(is_shown, "{context}");
            let reason = last_end(&result);
            assert!(reasons.iter().any(|known| reason.contains(known)), "{context}");
        }
    }
}

/// What a failing test shows of a result.
fn summary(result: &LoadResult) -> String {
    let counters = both(result);
    format!("{:?} {:?} {:?}", counters.outcomes, counters.connections, last_end(result))
}

const CLOSED: &str = "the server closed the connection";

#[test]
fn closed_right_after_accept() {
    for end in [End::Fin, End::Reset] {
        let fault = Fault::EndAfter(0, end);
        // A reset may come before the client knows that it is connected.
        let shown = if end == End::Fin { Shown::Lost } else { Shown::Either };
        check(&[Transport::Tcp], fault, shown, &[CLOSED, "cannot connect"]);
        let reasons = [CLOSED, "cannot connect", "HTTP/2"];
        check(&[Transport::Dot, Transport::Doh2], fault, Shown::Failed, &reasons);
    }
}

#[test]
fn closed_in_mid_handshake() {
    for end in [End::Fin, End::Reset] {
        let transports = [Transport::Dot, Transport::Doh2];
        check(&transports, Fault::EndAfter(300, end), Shown::Failed, &[CLOSED, "HTTP/2"]);
    }
}

#[test]
fn closed_in_mid_frame() {
    // The handshakes take about 1,200 octets, an answer about 50.
    check(&[Transport::Tcp], Fault::EndAfter(61, End::Fin), Shown::Lost, &[CLOSED]);
    let transports = [Transport::Dot, Transport::Doh2];
    for end in [End::Fin, End::Reset] {
        let reasons = [CLOSED, "HTTP/2", "unexpected end of file"];
        check(&transports, Fault::EndAfter(2_001, end), Shown::Lost, &reasons);
    }
}

#[test]
fn closed_at_random() {
    let reasons = [CLOSED, "HTTP/2", "unexpected end of file", "cannot connect"];
    check(&OVER_TCP, Fault::EndAtRandom(4_000), Shown::Either, &reasons);
}

#[test]
fn a_tls_alert_in_mid_stream() {
    // The server finds a record corrupted, and says so.
    let transports = [Transport::Dot, Transport::Doh2];
    check(&transports, Fault::SpoilQueries(1_200), Shown::Either, &["alert"]);
}

#[test]
fn records_that_are_garbage() {
    let transports = [Transport::Dot, Transport::Doh2];
    check(&transports, Fault::SpoilAnswers(2_000), Shown::Lost, &["TLS"]);
    check(&transports, Fault::Garbage(2_000), Shown::Lost, &["TLS"]);
    check(&transports, Fault::Garbage(0), Shown::Failed, &["TLS"]);
}

#[test]
fn octets_that_are_no_messages_end_no_connection() {
    // Neither lengths nor messages can be read, so only missing answers show it.
    let server = Responder::start(|_| {});
    for fault in [Fault::Garbage(300), Fault::Garbage(0), Fault::SpoilAnswers(333)] {
        let target = relay(server.address(Transport::Tcp), fault);
        for job in closed_and_open(job(target, Transport::Tcp)) {
            let result = apply(&job);
            let outcomes = both(&result).outcomes;
            let unanswered = outcomes.timed_out + outcomes.malformed;
            assert!(unanswered > 0, "{fault:?}: {}", summary(&result));
            assert_eq!(both(&result).connections.lost, 0, "{fault:?}: {}", summary(&result));
        }
    }
}

#[test]
fn closed_connections_lose_what_was_in_flight_and_are_opened_again() {
    let target = tcp_server(|mut stream| {
        for _ in 0..10 {
            let Some(query) = read_query(&mut stream) else { return };
            stream.write_all(&frame(&answer(&query, 0))).ok();
        }
    });
    let result = apply(&job(target, Transport::Tcp));
    let counters = &result.measured.counters;
    assert!(counters.outcomes.answered > 0);
    assert!(counters.outcomes.connection_lost > 0);
    assert!(counters.connections.lost > 0);
    assert!(counters.connections.opened > 3);
    assert_eq!(last_end(&result), CLOSED);
}

#[test]
fn answers_that_came_before_the_end_are_answers() {
    // The server answers some queries, leaves others unread and closes, which resets the connection: what it
    // wrote before is in the client's kernel.
    let written = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&written);
    let target = tcp_server(move |mut stream| {
        let queries: Vec<_> = (0..10).map_while(|_| read_query(&mut stream)).collect();
        // The last connection stands until the load has ended.
        if queries.len() < 10 {
            return;
        }
        let mut answers = Vec::new();
        for query in &queries {
            answers.extend(frame(&answer(query, 0)));
        }
        if stream.write_all(&answers).is_ok() {
            counted.fetch_add(queries.len() as u64, Ordering::Relaxed);
        }
    });
    let result = apply(&job(target, Transport::Tcp).with(|load| {
        open(load, 20_000.0);
        load.timeout = Duration::from_secs(5);
    }));
    let outcomes = both(&result).outcomes;
    assert!(outcomes.answered > 100 && outcomes.connection_lost > 0, "{}", summary(&result));
    assert_eq!(outcomes.answered, written.load(Ordering::Relaxed), "{}", summary(&result));
}

#[test]
fn answers_in_any_order_and_in_small_pieces_are_matched() {
    let target = tcp_server(|mut stream| {
        loop {
            let queries: Vec<_> = (0..5).map_while(|_| read_query(&mut stream)).collect();
            for query in queries.iter().rev() {
                for piece in frame(&answer(query, 0)).chunks(7) {
                    if stream.write_all(piece).is_err() {
                        return;
                    }
                }
            }
            if queries.len() < 5 {
                return;
            }
        }
    });
    let result = apply(&job(target, Transport::Tcp));
    let counters = &result.measured.counters;
    assert!(counters.outcomes.answered > 0);
    assert_eq!(counters.answers.unexpected, 0);
    // The last, incomplete five of each client wait for queries that never come.
    assert!(counters.outcomes.lost() <= 15, "{:?}", counters.outcomes);
}

#[test]
fn a_server_that_writes_nothing_more_is_one_that_closed() {
    // Half-closed: the server has sent its FIN, and goes on reading.
    let target = tcp_server(|mut stream| {
        let Some(query) = read_query(&mut stream) else { return };
        stream.write_all(&frame(&answer(&query, 0))).ok();
        stream.shutdown(Shutdown::Write).ok();
        while read_query(&mut stream).is_some() {}
        thread::sleep(Duration::from_millis(10));
    });
    let result = apply(&job(target, Transport::Tcp));
    let counters = both(&result);
    assert!(counters.outcomes.answered > 3, "{}", summary(&result));
    assert!(counters.connections.lost > 3, "{}", summary(&result));
    assert_eq!(last_end(&result), CLOSED);
}

/// Applies half a second of load to a server that ends each connection without an answer. Attempts come at
/// once, then after 10, 20, 40, 80, 160 and 320 ms.
#[track_caller]
fn check_pauses(target: SocketAddr, quota: Option<u32>) {
    let job = job(target, Transport::Tcp).with(|load| {
        load.clients = 1;
        load.workers = Some(1);
        load.warm_up = Duration::ZERO;
        load.duration = Duration::from_millis(500);
        load.queries_per_connection = quota;
        load.connection_quota = QuotaKind::Exact;
    });
    for job in closed_and_open(job) {
        let result = apply(&job);
        let attempted = both(&result).connections.attempted;
        // After a quota, further ones are opened before the end of the first is known, but not one for each
        // of the two hundred queries.
        let most = if quota.is_some() { 100 } else { 12 };
        assert!((3..=most).contains(&attempted), "{quota:?}: {}", summary(&result));
    }
}

#[test]
fn a_server_that_ends_every_connection_without_an_answer_is_not_asked_again_at_once() {
    check_pauses(tcp_server(drop), None);
    let asked = tcp_server(|mut stream| drop(read_query(&mut stream)));
    check_pauses(asked, None);
    check_pauses(asked, Some(1));
}

#[test]
fn a_wait_for_other_connections_of_the_worker_is_measured() {
    // Nobody accepts, so no handshake begins.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    for (clients, is_held) in [(200, false), (400, true)] {
        let result = apply(&job_with_tls(target, Transport::Dot).with(|load| {
            load.timeout = Duration::from_secs(2);
            load.clients = clients;
            load.workers = Some(1);
        }));
        let worker = &result.measured.workers[0];
        let context = format!("{clients} clients, held for {} ns", worker.connections_held_ns);
        assert_eq!(worker.held_share() > 0.5, is_held, "{context}");
        assert!(is_held || worker.connections_held_ns == 0, "{context}");
        assert!(worker.connections_held_ns <= result.measured.window_ns, "{context}");
    }
}
