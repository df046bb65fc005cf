//! What a rate does not show: answers that wait for the next query, and clients that are not served.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use dnslab_record::{Caveat, RunRecord, RunStatus};
use dnslab_report::invalid_text;
use dnslab_wire::Transport;
use rustix::process::Signal;

use crate::evidence::{records, valid_records};
use crate::processes::signal;
use crate::room::Room;
use crate::running_server::{RunningBind, queries, serve};

/// `rate` queries per second over TCP on 20 connections.
fn open_loop(target: &str, rate: &str, pace: &str) -> Room {
    // The caller's room keeps other loads away.
    let room = Room::quiet();
    room.write("queries", &queries());
    let load = ["load", target, "--transport", "tcp", "--clients", "20", "--rate", rate];
    let further =
        ["--pace", pace, "--queries", "queries", "--duration", "1s", "--warm-up", "500ms"];
    room.dnslab(&[&load[..], &further].concat()).exits_with(0);
    room
}

/// The share of the answers that waited, if the record has it.
fn waited(room: &Room) -> Option<f64> {
    let record: RunRecord = valid_records(&room.results(), 1).remove(0);
    record.caveats.iter().find_map(|caveat| match caveat {
        Caveat::AnswersWaitForNextQuery { share, .. } => Some(*share),
        _ => None,
    })
}

/// Stops the process for 10 ms, two and a half times a second, while `work` runs.
fn stalled<T>(process: u32, work: impl FnOnce() -> T) -> T {
    thread::scope(|scope| {
        let (_until_done, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_millis(390)) == Err(RecvTimeoutError::Timeout) {
                signal(process, Signal::STOP);
                thread::sleep(Duration::from_millis(10));
                signal(process, Signal::CONT);
            }
        });
        work()
    })
}

/// BIND 9.18 leaves Nagle's algorithm on. A connection begins to wait when two of its queries come before an
/// answer, and then goes on. At a constant pace on a quiet machine that never happens; a stall of 10 ms makes
/// it happen on each connection. On a busy machine dnslab does not claim it, so there are several tries.
#[test]
fn answers_that_wait_for_the_next_query_are_named() {
    let room = Room::alone();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    for (rate, pace) in [("7000", "constant"), ("4000", "poisson")] {
        let mut tries = (0..8)
            .map(|_| stalled(bind.pid(), || waited(&open_loop(&bind.target("tcp"), rate, pace))));
        assert!(tries.any(|share| share >= Some(0.05)), "none of 8 loads at a {pace} pace says so");
    }
}

/// The embedded server sets TCP_NODELAY. A server whose answers take longer than the gap between two queries
/// does not keep answers back for the next query either.
#[test]
fn answers_that_do_not_wait_are_not_named() {
    for further in [&[][..], &["--delay", "30ms"]] {
        let room = Room::alone();
        let (_running, at) = serve(&room, "127.0.0.1", further);
        for (rate, pace) in [("7000", "constant"), ("4000", "poisson")] {
            let load = open_loop(&at(Transport::Tcp).to_string(), rate, pace);
            assert_eq!(waited(&load), None, "{further:?} {pace}");
        }
    }
}

/// Why the only run of these results is invalid.
#[track_caller]
fn reason(room: &Room) -> String {
    let found = records(&room.results());
    let [RunRecord { status: RunStatus::Invalid { reason }, .. }] = found.as_slice() else {
        panic!("{:?}", found.iter().map(|record| &record.status).collect::<Vec<_>>());
    };
    invalid_text(reason)
}

#[test]
fn clients_that_a_running_server_does_not_serve() {
    let room = Room::alone();
    let options = "tcp-clients 10;";
    let bind = RunningBind::start_with(&room.path().join("bind"), "127.0.0.1", options);
    room.write("queries", &queries());
    let (plain, dot) = (bind.target("tcp"), bind.target("dot"));
    let common = ["--queries", "queries", "--clients", "50", "--warm-up", "300ms"];
    let closed = ["--outstanding", "1", "--duration", "700ms"];
    for (target, transport) in [(&plain, "tcp"), (&dot, "dot")] {
        let load = Room::quiet();
        load.write("queries", &queries());
        let words = ["load", target, "--transport", transport, "--insecure"];
        let words = if transport == "tcp" { &words[..4] } else { &words[..] };
        let done = load.dnslab(&[words, &common, &closed].concat()).exits_with(3);
        // A connection of dnslab's own queries before the load may still be open.
        let reason = reason(&load);
        assert!(reason.contains(" of 50 clients"), "{reason}{done}");
        // The server is found on this machine, so its own option is named and no other.
        assert!(
            reason.contains("`tcp-clients`") && !reason.contains("`incoming-num-tcp`"),
            "{reason}"
        );
        done.prints("INVALID: the server served ");
    }
    let search = ["--step-duration", "500ms", "--from", "1000", "--max", "1000", "--repeats", "1"];
    let target = ["capacity", &plain, "--transport", "tcp"];
    let done = room.dnslab(&[&target[..], &common, &search].concat()).exits_with(3);
    done.prints(" of 50 clients").prints("`tcp-clients`");
}

/// NSD takes the last of two values. At its bound it closes connections that pause, so it serves some more
/// clients in turn.
#[test]
fn clients_that_a_started_server_does_not_serve() {
    let room = Room::alone();
    room.experiment(
        "repeat.runs = 1\n[server]\nkind = \"nsd\"\nextra = \"server:\\n tcp-count: 3\"\n\
         [load]\nduration = \"300ms\"\nwarm_up = \"100ms\"\n\
         transport = \"tcp\"\nclients = 200\noutstanding = 1\n\n[[variant]]\nname = \"tcp\"\n",
    );
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(3);
    let reason = reason(&room);
    assert!(reason.contains(" of 200 clients"), "{reason}{done}");
    assert!(reason.contains("NSD bounds them by `tcp-count` (default 100)"), "{reason}");
}
