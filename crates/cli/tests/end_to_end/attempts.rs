//! Clients that ask again, and clients that know several servers.

use std::net::{SocketAddr, UdpSocket};

use dnslab_record::{RunRecord, RunStatus};
use dnslab_wire::Transport;

use crate::evidence::{measured, records, report_is_whole};
use crate::room::Room;
use crate::running_server::{RunningBind, queries, serve};

/// A socket that answers nothing.
fn silence(address: &str) -> UdpSocket {
    UdpSocket::bind((address, 0)).unwrap()
}

/// Sends 100 queries in a second, from ten clients.
#[track_caller]
fn load(room: &Room, target: SocketAddr, further: &[&str]) -> RunRecord {
    room.write("queries", &queries());
    let target = target.to_string();
    let usual = ["--clients", "10", "--rate", "100", "--duration", "1s", "--warm-up", "0s"];
    let words = [&["load", &target, "--queries", "queries"], &usual[..], further].concat();
    room.dnslab(&words).exits_with(0);
    report_is_whole(&room.results(), &["load"]);
    records(&room.results()).remove(0)
}

#[test]
fn the_next_server_is_asked_when_the_first_is_silent() {
    let _with_load = Room::with_load();
    for address in ["127.0.0.1", "::1"] {
        let room = Room::quiet();
        let (_running, at) = serve(&room, address, &[]);
        let (silent, works) = (silence(address), at(Transport::Udp).to_string());
        let target = silent.local_addr().unwrap();
        let record = load(&room, target, &["--further", &works, "--timeout", "200ms"]);
        let counters = &measured(&record).counters;
        assert_eq!((counters.outcomes.due, counters.outcomes.answered), (100, 100), "{counters:?}");
        assert_eq!((counters.attempts.timed_out, counters.attempts.failed), (100, 0));
        assert_eq!(counters.attempts.sent_to, [100, 100]);
        assert!(measured(&record).latency.min_ns().unwrap() >= 199_000_000, "{record:?}");
        assert_eq!(record.load.further, [works]);
        // A client that remembers asks the silent server once or a few times.
        let room = Room::quiet();
        let further = ["--further", &record.load.further[0], "--timeout", "200ms"];
        let sticky = [&further[..], &["--server-order", "sticky"]].concat();
        let counters = measured(&load(&room, target, &sticky)).counters.clone();
        assert_eq!(counters.outcomes.answered, 100);
        let sent_to = &counters.attempts.sent_to;
        assert!(sent_to[0] >= 10 && sent_to[0] < 100, "{sent_to:?}");
    }
}

#[test]
fn a_server_that_refuses_is_not_the_last_word() {
    let room = Room::with_load();
    let refusing = "allow-query { !127.0.0.9; any; };";
    let bind = RunningBind::start_with(&room.path().join("bind"), "127.0.0.1", refusing);
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot] {
        let room = Room::quiet();
        let (_running, at) = serve(&room, "127.0.0.1", &[]);
        let works = at(transport).to_string();
        let target = if transport == Transport::Dot { bind.dot } else { bind.plain };
        let mut further = vec!["--transport", transport.name(), "--further", &works];
        further.extend(["--sources", "127.0.0.9"]);
        if transport.is_encrypted() {
            further.push("--insecure");
        }
        let record = load(&room, target, &further);
        let counters = &measured(&record).counters;
        assert_eq!(record.status, RunStatus::Valid, "{transport}");
        assert_eq!(counters.answers.rcodes.get("NOERROR"), Some(&100), "{transport}: {counters:?}");
        assert_eq!(
            (counters.attempts.timed_out, counters.attempts.failed),
            (0, 100),
            "{transport}"
        );
        assert_eq!(counters.attempts.sent_to, [100, 100], "{transport}");
        // In turn, every second query goes to the right one at once.
        let room = Room::quiet();
        let rotate = [&further[..], &["--server-order", "rotate"]].concat();
        let counters = measured(&load(&room, target, &rotate)).counters.clone();
        assert_eq!(counters.attempts.failed, 50, "{transport}: {counters:?}");
        assert_eq!(counters.attempts.sent_to, [50, 100], "{transport}");
    }
}

#[test]
fn a_client_that_knows_one_server_asks_it_again() {
    let room = Room::with_load();
    // Of its answers every third is lost.
    let (_running, at) = serve(&room, "127.0.0.1", &["--loss", "33%"]);
    let further = ["--attempts", "10", "--timeout", "100ms", "--set", "expect.lost_limit=5%"];
    let record = load(&room, at(Transport::Udp), &further);
    let counters = &measured(&record).counters;
    // One of 60,000 queries is lost ten times.
    assert!(counters.outcomes.answered >= 99, "{counters:?}");
    assert!((15..150).contains(&counters.attempts.timed_out), "{counters:?}");
    assert_eq!(counters.attempts.sent_to.len(), 0);
    assert_eq!(counters.sent, counters.outcomes.due + counters.attempts.timed_out);
}
