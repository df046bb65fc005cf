//! What a server does to its clients that a rate does not show: answers that wait for the next query, and
//! clients that it does not serve.

use dnslab_measure::{Caveat, RunRecord, RunStatus};
use dnslab_wire::Transport;

use crate::evidence::{records, valid_records};
use crate::room::{Room, SHORT};
use crate::running_server::{RunningBind, queries, serve};

/// An open loop over TCP in which each of 20 connections has a query each 5 ms, at random times: two that
/// come close together are what makes the server keep the first answer back.
fn open_loop(target: &str) -> Room {
    // The caller's room keeps other loads away.
    let room = Room::quiet();
    room.write("queries", &queries());
    let load = ["load", target, "--transport", "tcp", "--clients", "20", "--rate", "4000"];
    let further =
        ["--queries", "queries", "--pace", "poisson", "--duration", "1s", "--warm-up", "500ms"];
    room.dnslab(&[&load[..], &further].concat()).exits_with(0);
    room
}

/// The share of the answers that waited, if the record says so.
fn waited(room: &Room) -> Option<f64> {
    let record: RunRecord = valid_records(&room.results(), 1).remove(0);
    record.caveats.iter().find_map(|caveat| match caveat {
        Caveat::AnswersWaitForNextQuery { share, .. } => Some(*share),
        _ => None,
    })
}

/// BIND 9.18 leaves Nagle's algorithm on. How soon an answer follows the query that it waited for is the
/// machine's, so a busy one has several chances.
#[test]
fn answers_that_wait_for_the_next_query_are_named() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let shares = (0..8).map(|_| waited(&open_loop(&bind.target("tcp"))));
    assert!(shares.flatten().any(|share| share > 0.05), "none of 8 loads says so");
}

/// The embedded server sets TCP_NODELAY; and a server whose answers take longer than the gap between two
/// queries keeps none of them back for the next.
#[test]
fn answers_that_do_not_wait_are_not_named() {
    for further in [&[][..], &["--delay", "30ms"]] {
        let room = Room::with_load();
        let (_running, at) = serve(&room, "127.0.0.1", further);
        let load = open_loop(&at(Transport::Tcp).to_string());
        assert_eq!(waited(&load), None, "{further:?}");
    }
}

/// The reason for which the only run of these results is invalid.
#[track_caller]
fn reason(room: &Room) -> String {
    let found = records(&room.results());
    let [RunRecord { status: RunStatus::Invalid { reason }, .. }] = found.as_slice() else {
        panic!("{:?}", found.iter().map(|record| &record.status).collect::<Vec<_>>());
    };
    reason.clone()
}

#[test]
fn clients_that_a_running_server_does_not_serve() {
    let room = Room::with_load();
    let options = "tcp-clients 10;";
    let bind = RunningBind::start_with(&room.path().join("bind"), "127.0.0.1", options);
    room.write("queries", &queries());
    let (plain, dot) = (bind.target("tcp"), bind.target("dot"));
    let common = ["--queries", "queries", "--clients", "50", "--warm-up", "300ms"];
    let closed = ["--outstanding", "1", "--duration", "700ms"];
    for (target, transport) in [(&plain, "tcp"), (&dot, "dot")] {
        let load = Room::quiet();
        load.write("queries", &queries());
        let of = ["load", target, "--transport", transport, "--insecure"];
        let of = if transport == "tcp" { &of[..4] } else { &of[..] };
        let done = load.dnslab(&[of, &common, &closed].concat()).exits_with(3);
        // Of what dnslab itself asks before the load a connection may still be open.
        let told = reason(&load);
        assert!(told.contains(" of 50 clients"), "{told}{done}");
        assert!(told.contains("`tcp-clients`") && told.contains("`incoming-num-tcp`"), "{told}");
        done.prints("INVALID: the server served ");
    }
    let search = ["--step-duration", "500ms", "--from", "1000", "--max", "1000", "--repeats", "1"];
    let target = ["capacity", &plain, "--transport", "tcp"];
    let done = room.dnslab(&[&target[..], &common, &search].concat()).exits_with(3);
    done.prints(" of 50 clients").prints("`tcp-clients`");
}

/// NSD takes the last of two values.
#[test]
fn clients_that_a_started_server_does_not_serve() {
    let room = Room::with_load();
    room.experiment(&format!(
        "repeat.runs = 1\n[server]\nkind = \"nsd\"\nextra = \"server:\\n tcp-count: 10\"\n{SHORT}\
         transport = \"tcp\"\nclients = 50\noutstanding = 1\n\n[[variant]]\nname = \"tcp\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(3);
    let told = reason(&room);
    assert!(told.starts_with("the server served 10 of 50 clients"), "{told}{done}");
    assert!(told.contains("NSD bounds them by `tcp-count` (default 100)"), "{told}");
}
