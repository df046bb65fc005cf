//! Links, streams and servers that are broken in stated ways, and what the counts say of it.

use std::time::Duration;

use dnslab_figures::Counters;
use dnslab_settings::{Load, Mode, QuotaKind, ReceiveTime};
use dnslab_traffic::Connect;
use dnslab_wire::Transport;

use super::network::{Broken, Faults};
use super::scenario::tls;
use super::{MS, Scenario, sums};

const OVER_UDP: [Transport; 3] = [Transport::Udp, Transport::Doq, Transport::Doh3];
const OVER_TCP: [Transport; 3] = [Transport::Tcp, Transport::Dot, Transport::Doh2];
const OVER_TLS: [Transport; 2] = [Transport::Dot, Transport::Doh2];

const CLOSED: &str = "the server closed the connection";
const TIMED_OUT: &str = "cannot connect: timed out";

/// A closed loop of three clients with five queries outstanding each. An answer takes 5 ms.
fn closed(transport: Transport) -> Scenario {
    let mut scenario = Scenario::quiet(Load {
        transport,
        clients: 3,
        mode: Mode::Closed { outstanding: 5 },
        duration: Duration::from_millis(150),
        warm_up: Duration::from_millis(50),
        timeout: Duration::from_millis(100),
        ..Load::default()
    });
    scenario.manners.work = 5 * MS..6 * MS;
    scenario
}

/// The closed loop, with a fault.
fn faulty(transport: Transport, fault: fn(&mut Faults)) -> Scenario {
    let mut scenario = closed(transport);
    fault(&mut scenario.faults);
    scenario
}

fn open(load: &mut Load, rate_qps: f64) {
    load.mode = Mode::constant(rate_qps);
}

/// The loop as it is, and as an open loop of 400 queries per second.
fn closed_and_open(scenario: &Scenario) -> [Scenario; 2] {
    let mut other = scenario.clone();
    open(&mut other.job.settings, 400.0);
    [scenario.clone(), other]
}

fn exact_quota(load: &mut Load, queries: u32) {
    load.queries_per_connection = Some(queries);
    load.connection_quota = QuotaKind::Exact;
}

/// What a load leaves behind.
struct Ended {
    counters: Counters,
    /// Why the last connection ended.
    reason: String,
}

#[track_caller]
fn play(scenario: &Scenario) -> Ended {
    let end = scenario.play().end;
    let reason = end.last_end.clone().unwrap_or_default();
    Ended { counters: sums(end), reason }
}

#[test]
fn datagrams_that_are_lost_doubled_late_and_spoilt() {
    let faults: [fn(&mut Faults); 5] = [
        |faults| faults.lost = 0.1,
        |faults| faults.doubled = 0.2,
        |faults| faults.after_garbage = 0.2,
        |faults| faults.spoilt = 0.2,
        |faults| faults.late = 0.2,
    ];
    for transport in OVER_UDP {
        for (number, fault) in faults.into_iter().enumerate() {
            let mut scenario = closed(transport);
            scenario.job.settings.timeout = Duration::from_secs(1);
            fault(&mut scenario.faults);
            for scenario in closed_and_open(&scenario) {
                let Ended { counters, reason } = play(&scenario);
                let context = format!("{transport} {:?}: {counters:?} {reason}", scenario.faults);
                assert!(counters.outcomes.answered > 0, "{context}");
                if transport != Transport::Udp {
                    // QUIC repairs all of it (RFC 9000, section 13), unless time runs out.
                    assert_eq!(counters.connections.lost, 0, "{context}");
                    assert_eq!(counters.answers.duplicate, 0, "{context}");
                    continue;
                }
                match number {
                    0 => assert!(counters.outcomes.timed_out > 0, "{context}"),
                    1 => assert!(counters.answers.duplicate > 0, "{context}"),
                    2 => assert!(counters.answers.unexpected > 0, "{context}"),
                    _ => {}
                }
            }
        }
    }
}

/// No attempt to connect has an end of its own: the SYN, the datagrams or the handshake are unanswered.
#[test]
fn a_server_with_which_no_connection_opens() {
    let unheard = OVER_TCP.map(|transport| faulty(transport, |faults| faults.unheard = 1.0));
    let mute = OVER_TLS.map(|transport| faulty(transport, |faults| faults.mute_from = Some(0)));
    let lost = [Transport::Doq, Transport::Doh3]
        .map(|transport| faulty(transport, |faults| faults.lost = 1.0));
    for scenario in unheard.iter().chain(&mute).chain(&lost) {
        let transport = scenario.job.settings.transport;
        for scenario in closed_and_open(scenario) {
            let Ended { counters, reason } = play(&scenario);
            assert_eq!(counters.outcomes.not_sent, counters.outcomes.due, "{transport}");
            let connections = &counters.connections;
            assert!(connections.failed >= 3, "{transport}: {connections:?}");
            assert_eq!(connections.refused, connections.failed, "{transport}");
            assert_eq!(reason, TIMED_OUT, "{transport}");
        }
    }
}

/// More clients than may be connecting at the same time, each with a ticket from its first connection. What
/// follows goes unanswered. A handshake that early data has begun must end too, or those clients would keep
/// all others away.
#[test]
fn a_server_that_takes_early_data_and_says_nothing() {
    let mut scenario = closed(Transport::Dot);
    scenario.job.tls = Some(tls(true, true));
    scenario.faults.mute_from = Some(400);
    scenario.change(|load| {
        load.clients = 400;
        open(load, 400.0);
        load.duration = Duration::from_secs(3);
        load.timeout = Duration::from_millis(700);
        exact_quota(load, 1);
        load.connect = Connect::OnDemand;
    });
    let Ended { counters, reason } = play(&scenario);
    assert!(counters.outcomes.answered > 0, "{counters:?}");
    assert!(counters.outcomes.connection_lost > 0, "no early data was sent: {counters:?}");
    // From the 401st on none opens, and each is given up after a time-out.
    let connections = counters.connections;
    assert!(connections.failed > 300, "{connections:?}");
    assert!(connections.attempted > 900, "{connections:?}");
    assert_eq!(reason, TIMED_OUT);
}

#[test]
fn a_server_that_stops_reading_and_goes_on() {
    for transport in OVER_TCP {
        let mut scenario = closed(transport);
        scenario.change(|load| {
            open(load, 2_000.0);
            // All on one connection: more than the network holds.
            load.clients = 1;
            load.duration = Duration::from_millis(600);
        });
        scenario.manners.stall = Some((100 * MS, 400 * MS));
        let Ended { counters, reason } = play(&scenario);
        let outcomes = counters.outcomes;
        assert!(outcomes.timed_out + outcomes.not_sent > 0, "{transport}: {outcomes:?}");
        // 1,300 are due. Those of the stall, and of what waits after it, are lost.
        assert!(outcomes.answered > 400, "{transport}: {outcomes:?}");
        // The connections last, and what had waited in them was answered too late. Over HTTP/2 the streams
        // of such queries are reset in the meantime.
        if transport == Transport::Doh2 {
            // The server may take many of them for an attack (CVE-2023-44487).
            let announced = reason == "the server announced the end of the connection";
            assert_eq!(announced, counters.connections.lost > 0, "{reason}");
        } else {
            assert_eq!(counters.connections.lost, 0, "{transport}: {reason}");
            assert!(counters.answers.late > 0, "{transport}: {:?}", counters.answers);
        }
    }
}

/// What came while the thread was away for two time-outs is no fault of the server.
#[test]
fn what_came_while_the_generator_was_stopped_counts() {
    let mut scenario = closed(Transport::Udp);
    scenario.faults.stopped = Some((100 * MS, 500 * MS));
    scenario.change(|load| {
        load.duration = Duration::from_millis(600);
        load.timeout = Duration::from_millis(200);
        load.receive_time = ReceiveTime::Kernel;
    });
    let counters = play(&scenario).counters;
    assert!(counters.outcomes.answered > 0);
    assert_eq!(counters.outcomes.timed_out, 0, "{:?}", counters.outcomes);
    // A connection for each query: those that opened in the meantime did not fail.
    let load = &mut scenario.job.settings;
    load.transport = Transport::Tcp;
    exact_quota(load, 1);
    let Ended { counters, reason } = play(&scenario);
    let connections = counters.connections;
    assert!(connections.opened > 0);
    assert_eq!(connections.failed, 0, "{connections:?} {reason}");
}

/// What a fault must show in the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Attempts to connect fail: nothing can be sent.
    Failed,
    /// Connections that were open are lost.
    Lost,
    /// Some of both, depending on when it ended.
    Either,
}

/// Plays a closed and an open loop with this fault, over each of `transports`. The counts must show what
/// happened, and the last end be one of `reasons`.
#[track_caller]
fn check_streams(transports: &[Transport], fault: Broken, shown: Shown, reasons: &[&str]) {
    for transport in transports {
        let mut scenario = closed(*transport);
        scenario.faults.broken = Some(fault);
        for scenario in closed_and_open(&scenario) {
            let Ended { counters, reason } = play(&scenario);
            let context = format!("{transport} {fault:?}: {counters:?} {reason}");
            let connections = &counters.connections;
            let (failed, lost) = (connections.failed > 0, connections.lost > 0);
            let is_shown = match shown {
                Shown::Failed => failed && !lost && counters.sent == 0,
                Shown::Lost => lost,
                Shown::Either => failed || lost,
            };
            assert!(is_shown, "{context}");
            assert!(reasons.iter().any(|known| reason.contains(known)), "{context}");
        }
    }
}

#[test]
fn closed_right_after_accept() {
    for by_reset in [false, true] {
        let fault = Broken::EndAfter { octets: 0, by_reset };
        check_streams(&[Transport::Tcp], fault, Shown::Lost, &[CLOSED]);
        let reasons = [CLOSED, "cannot connect", "HTTP/2"];
        check_streams(&OVER_TLS, fault, Shown::Failed, &reasons);
    }
}

#[test]
fn closed_in_mid_handshake() {
    for by_reset in [false, true] {
        let fault = Broken::EndAfter { octets: 300, by_reset };
        check_streams(&OVER_TLS, fault, Shown::Failed, &[CLOSED, "HTTP/2"]);
    }
}

#[test]
fn closed_in_mid_frame() {
    // The handshakes take about 1,200 octets, an answer about 50.
    let fault = Broken::EndAfter { octets: 61, by_reset: false };
    check_streams(&[Transport::Tcp], fault, Shown::Lost, &[CLOSED]);
    for by_reset in [false, true] {
        let reasons = [CLOSED, "HTTP/2", "unexpected end of file"];
        let fault = Broken::EndAfter { octets: 2_001, by_reset };
        check_streams(&OVER_TLS, fault, Shown::Lost, &reasons);
    }
}

#[test]
fn closed_at_random() {
    let reasons = [CLOSED, "HTTP/2", "unexpected end of file", "cannot connect"];
    check_streams(&OVER_TCP, Broken::EndAtRandom(4_000), Shown::Either, &reasons);
}

/// The server finds a record corrupted, and says so.
#[test]
fn a_tls_alert_in_mid_stream() {
    check_streams(&OVER_TLS, Broken::SpoilQueries(1_200), Shown::Either, &["alert"]);
}

#[test]
fn records_that_are_garbage() {
    check_streams(&OVER_TLS, Broken::SpoilAnswers(2_000), Shown::Lost, &["TLS"]);
    check_streams(&OVER_TLS, Broken::Garbage(2_000), Shown::Lost, &["TLS"]);
    check_streams(&OVER_TLS, Broken::Garbage(0), Shown::Failed, &["TLS"]);
}

/// Neither lengths nor messages can be read, so only missing answers show it.
#[test]
fn octets_that_are_no_messages_end_no_connection() {
    for fault in [Broken::Garbage(300), Broken::Garbage(0), Broken::SpoilAnswers(333)] {
        let mut scenario = closed(Transport::Tcp);
        scenario.faults.broken = Some(fault);
        for scenario in closed_and_open(&scenario) {
            let Ended { counters, reason } = play(&scenario);
            let unanswered = counters.outcomes.timed_out + counters.outcomes.malformed;
            assert!(unanswered > 0, "{fault:?}: {counters:?} {reason}");
            assert_eq!(counters.connections.lost, 0, "{fault:?}: {counters:?} {reason}");
        }
    }
}

#[test]
fn closed_connections_lose_what_was_in_flight_and_are_opened_again() {
    let mut scenario = closed(Transport::Tcp);
    scenario.manners.closes = 0.1;
    let Ended { counters, reason } = play(&scenario);
    assert!(counters.outcomes.answered > 0 && counters.outcomes.connection_lost > 0);
    assert!(counters.connections.lost > 0 && counters.connections.opened > 3);
    assert_eq!(reason, CLOSED);
}

/// Attempts come at once, then after 10, 20, 40, 80, 160 and 320 ms.
#[test]
fn a_server_that_ends_every_connection_without_an_answer_is_not_asked_again_at_once() {
    for transport in OVER_TCP {
        let mut scenario = closed(transport);
        scenario.change(|load| {
            (load.clients, load.warm_up) = (1, Duration::ZERO);
            load.duration = Duration::from_millis(500);
        });
        let mut at_once = scenario.clone();
        at_once.faults.broken = Some(Broken::EndAfter { octets: 0, by_reset: false });
        scenario.manners.closes = 1.0;
        let mut after_quota = scenario.clone();
        exact_quota(&mut after_quota.job.settings, 1);
        // After a quota, further ones are opened before the end of the first is known, but not one for each
        // of the two hundred queries.
        for (scenario, most) in [(at_once, 12), (scenario, 12), (after_quota, 100)] {
            for scenario in closed_and_open(&scenario) {
                let Ended { counters, reason } = play(&scenario);
                let attempted = counters.connections.attempted;
                assert!((3..=most).contains(&attempted), "{transport}: {counters:?} {reason}");
                assert_eq!(counters.outcomes.answered, 0, "{transport}");
            }
        }
    }
}

#[test]
fn a_wait_for_other_connections_of_the_worker_is_measured() {
    for (clients, is_held) in [(200, false), (400, true)] {
        let mut scenario = closed(Transport::Dot);
        // No handshake begins.
        scenario.faults.mute_from = Some(0);
        scenario.job.settings.timeout = Duration::from_secs(2);
        scenario.job.settings.clients = clients;
        let end = scenario.play().end;
        let window = crate::time::nanos(scenario.job.settings.duration);
        let context = format!("{clients} clients, held for {} ns", end.held);
        assert_eq!(end.held > window / 2, is_held, "{context}");
        assert!(is_held || end.held == 0, "{context}");
        assert!(end.held <= window, "{context}");
    }
}

/// The answer twice, and two that were not asked for.
#[test]
fn strays_are_told_apart() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut scenario = closed(transport);
        let manners = &mut scenario.manners;
        (manners.twice, manners.other_id, manners.other_question) = (1.0, 1.0, 1.0);
        let counters = play(&scenario).counters;
        let answered = counters.outcomes.answered;
        assert!(answered > 0 && counters.outcomes.lost() == 0, "{transport}: {counters:?}");
        assert_eq!(counters.answers.unexpected, 2 * answered, "{transport}");
        // What comes after the last query has ended is not waited for.
        let missing = answered - counters.answers.duplicate;
        assert!(missing <= 15, "{transport}: {counters:?}");
    }
}

#[test]
fn late_answers_are_late() {
    let mut scenario = closed(Transport::Udp);
    scenario.manners.late = 1.0;
    let counters = play(&scenario).counters;
    assert_eq!(counters.outcomes.answered, 0);
    assert!(counters.answers.late > 0 && counters.answers.unexpected == 0, "{counters:?}");
}

#[test]
fn answers_in_any_order_are_matched() {
    for transport in Transport::ALL {
        let mut scenario = closed(transport);
        scenario.manners.work = 1..20 * MS;
        let counters = play(&scenario).counters;
        assert!(counters.outcomes.answered > 0);
        assert_eq!(counters.outcomes.lost(), 0, "{transport}: {:?}", counters.outcomes);
        assert_eq!(counters.answers.unexpected, 0, "{transport}");
    }
}
