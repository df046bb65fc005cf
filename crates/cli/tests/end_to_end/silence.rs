//! Servers that fall silent, lose too much, or are not ready yet: which runs count.

use std::net::{SocketAddr, UdpSocket};
use std::thread;

use dnslab_record::{RunRecord, RunStatus};
use dnslab_report::invalid_text;
use rustix::process::Signal;

use crate::evidence::{label, records, report_is_whole};
use crate::processes::{processes_of, signal, wait_for, working};
use crate::room::{Room, with_few_clients};
use crate::running_server::{RunningBind, queries};

#[track_caller]
fn is_invalid(record: &RunRecord, words: &str) {
    match &record.status {
        RunStatus::Invalid { reason } => {
            let reason = invalid_text(reason);
            assert!(reason.contains(words), "{reason}");
        }
        other => panic!("{}: {other:?}, not invalid for `{words}`", label(record)),
    }
}

/// Stops the server of the last variant under this load, and returns the records.
#[track_caller]
fn stopped(lines: &str) -> Vec<RunRecord> {
    let room = Room::with_load();
    room.experiment(lines);
    let running = room.start(&["run", "./experiment.toml"]);
    let (_, server) = room.wait_for_load(&running, |plan| plan.last());
    signal(server, Signal::STOP);
    let done = running.finish().exits_with(3).prints("fell silent");
    assert!(processes_of(room.path()).is_empty(), "{:?}{done}", processes_of(room.path()));
    let results = room.results();
    report_is_whole(&results, &["udp"]);
    records(&results)
}

#[test]
fn a_stopped_server_makes_its_run_invalid() {
    let load = "[load]\ntimeout = \"500ms\"\nwarm_up = \"0s\"\nduration = \"4s\"\nclients = 10\n";
    let udp = "[[variant]]\nname = \"udp\"\nload.transport = \"udp\"\n";
    for (kind, rate) in [("embedded", ""), ("embedded", "rate = 20000\n"), ("bind", "")] {
        let found = stopped(&format!(
            "server.kind = \"{kind}\"\nrepeat = {{ runs = 1, alternate = \"runs\" }}\n\
             {load}{rate}{udp}"
        ));
        is_invalid(&found[0], "fell silent");
    }
}

#[test]
fn where_servers_take_turns_only_the_silent_one_is_invalid() {
    let found = stopped(
        "repeat = { runs = 1, alternate = \"slices\" }\n\
         [load]\ntimeout = \"500ms\"\nwarm_up = \"200ms\"\nduration = \"4s\"\nclients = 10\n\
         [[variant]]\nname = \"udp\"\nload.transport = \"udp\"\n\
         [[variant]]\nname = \"tcp\"\nload.transport = \"tcp\"\n",
    );
    assert_eq!(found[0].status, RunStatus::Valid);
    is_invalid(&found[1], "fell silent");
}

#[test]
fn a_foreign_server_that_dies_makes_the_load_invalid() {
    for transport in ["udp", "tcp", "dot"] {
        let room = Room::with_load();
        let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
        room.write("queries", &queries());
        let target = bind.target(transport);
        let words = ["load", &target, "--transport", transport, "--queries", "queries"];
        let further = ["--warm-up", "0s", "--duration", "4s", "--timeout", "500ms"];
        let verification = if transport == "dot" { &["--insecure"][..] } else { &[] };
        let idle = working(bind.pid());
        let running = room.start(&with_few_clients(&[&words, &further, verification].concat()));
        // It has answered for some time by then.
        wait_for(
            "it works",
            || running.so_far(),
            || (working(bind.pid()) > idle + 12).then_some(()),
        );
        signal(bind.pid(), Signal::KILL);
        running.finish().exits_with(3).prints("fell silent");
        is_invalid(&records(&room.results())[0], "fell silent");
    }
}

#[test]
fn a_run_that_loses_more_than_the_limit_is_invalid() {
    let lossy = "server.loss = \"60%\"\nrepeat.runs = 1\n\
                 [load]\ntimeout = \"100ms\"\nwarm_up = \"0s\"\nduration = \"1s\"\nclients = 20\n";
    let udp = "[[variant]]\nname = \"udp\"\nload.transport = \"udp\"\n";
    for rate in ["", "rate = 2000\n"] {
        for (limit, counts) in [("", false), ("[expect]\nlost_limit = \"80%\"\n", true)] {
            let room = Room::with_load();
            room.experiment(&format!("{lossy}{rate}{limit}{udp}"));
            let done = room.dnslab(&["run", "./experiment.toml"]);
            let done = done.exits_with(if counts { 0 } else { 3 });
            let found = records(&room.results());
            if counts {
                assert_eq!(found[0].status, RunStatus::Valid, "{done}");
            } else {
                is_invalid(&found[0], "more than the limit of 50 % (`expect.lost_limit`)");
                is_invalid(&found[0], "timed out");
            }
        }
    }
}

/// Answers the first query with SERVFAIL, sends a stray datagram before its second answer, and then works.
fn slow_starter() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = socket.local_addr().expect("it is bound");
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        for number in 0_u64.. {
            let Ok((length, client)) = socket.recv_from(&mut buffer) else { return };
            let message = &mut buffer[..length];
            message[2] |= 0x80;
            message[3] = if number == 0 { 2 } else { 0 };
            if number == 1 {
                let mut stray = message.to_vec();
                stray[0] ^= 0xff;
                socket.send_to(&stray, client).ok();
            }
            socket.send_to(message, client).ok();
        }
    });
    address
}

#[test]
fn a_stray_datagram_and_a_passing_failure_end_nothing() {
    let room = Room::with_load();
    room.write("queries", &queries());
    let target = slow_starter().to_string();
    let words = ["load", &target, "--queries", "queries", "--duration", "300ms"];
    let done = room.dnslab(&with_few_clients(&words)).exits_with(0);
    assert_eq!(records(&room.results())[0].status, RunStatus::Valid, "{done}");
}
