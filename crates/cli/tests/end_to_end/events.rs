//! What the operator does during a load, and clients that have a search list.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use dnslab_record::RunStatus;

use crate::evidence::{records, valid_records};
use crate::room::Room;
use crate::running_server::RunningBind;

/// The experiment on a BIND that runs, with what is done while it is asked.
fn experiment(bind: &RunningBind, event: &str) -> String {
    format!(
        "server.kind = \"external\"\nserver.address = \"{}\"\nrepeat.runs = 1\n\
         [load]\ntransport = \"udp\"\nclients = 10\nrate = 500\ntimeout = \"300ms\"\nwarm_up = \"200ms\"\n\
         duration = \"4s\"\nrecursion_desired = true\n[expect]\nrcode = \"any\"\nlag_limit = \"1m\"\n\
         [[variant]]\nname = \"alone\"\n[[variant]]\nname = \"done\"\n{event}\n",
        bind.target("udp")
    )
}

#[test]
fn a_server_that_is_paused_loses_queries_meanwhile() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let script = room.write(
        "pause",
        &format!("#!/bin/sh\nset -e\nkill -STOP {0}\nsleep 1\nkill -CONT {0}\n", bind.pid()),
    );
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let event = format!("event.command = \"{}\"\nevent.at = \"1s\"", script.display());
    room.experiment(&experiment(&bind, &event));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    assert!(done.stdout.contains("The work in done takes"), "{done}");
    for record in valid_records(&room.results(), 2) {
        let lost = record.measured.as_ref().unwrap().counters.outcomes.lost();
        match (record.variant.as_str(), &record.watched.event) {
            ("alone", None) => {}
            ("done", Some(event)) => {
                // It takes as long as the script sleeps, and what is asked early in that time is lost.
                assert!(event.ended_ns - event.at_ns >= 1_000_000_000, "{event:?}");
                assert!(event.at_ns >= 1_200_000_000, "{event:?}");
                assert!(lost > 0, "{event:?}");
            }
            (name, event) => panic!("{name}: {event:?}"),
        }
    }
    let page = std::fs::read_to_string(room.results().path().join("report.html")).unwrap();
    assert!(page.contains("\"events\":[["), "the charts have no span");
}

#[test]
fn what_could_not_be_done_fails_its_run() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    for (event, said) in [
        ("event.command = \"false\"", "`false` failed (exited with status 1)"),
        ("event.command = \"/nonexistent/rndc reload\"", "`/nonexistent/rndc reload` failed"),
        ("event.command = \"true\"\nevent.until = \"false\"", "`false` failed"),
    ] {
        room.experiment(&experiment(&bind, event));
        let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(3);
        let records = records(&room.results());
        let failed = records.iter().find(|record| record.variant == "done").unwrap();
        match &failed.status {
            RunStatus::Failed { reason, .. } => assert!(reason.contains(said), "{reason}"),
            other => panic!("{other:?}: {done}"),
        }
        std::fs::remove_dir_all(room.results().path()).unwrap();
    }
    for (event, said) in [
        ("event.command = \"true\"\nevent.at = \"4s\"", "the load is over by then"),
        ("event.command = \" \"", "`event.command` is empty"),
        ("event.until = \"true\"", "nothing is done during the load"),
    ] {
        room.experiment(&experiment(&bind, event));
        room.dnslab(&["plan", "./experiment.toml"]).exits_with(2).complains(said);
    }
}

#[test]
fn clients_with_a_search_list_ask_for_one_name_after_the_other() {
    for transport in ["udp", "dot"] {
        let room = Room::with_load();
        room.experiment(&format!(
            "server.kind = \"bind\"\nrepeat = {{ runs = 1, alternate = \"runs\" }}\n\
             [load]\ntransport = \"{transport}\"\nclients = 10\nwarm_up = \"200ms\"\nduration = \"1s\"\n\
             names = \"host-000001,host-000002.example.test.\"\n\
             search = \"a.example.test,example.test,b.example.test\"\nndots = 2\n\
             [[variant]]\nname = \"searching\"\n"
        ));
        room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
        let record = valid_records(&room.results(), 1).remove(0);
        let measured = record.measured.as_ref().unwrap();
        let (counters, warm_up) = (&measured.counters, &measured.warm_up);
        // Of two names one is found at once, and one in the second domain.
        let (answered, searched) = (counters.outcomes.answered, counters.searched);
        assert!(answered > 100, "{answered}");
        assert!((searched.abs_diff(answered / 2)) <= 20, "{transport}: {searched} of {answered}");
        let sent = counters.sent + warm_up.sent;
        let counted = record.watched.counters.as_ref().unwrap().growth("queries").unwrap();
        assert_eq!(counted, sent, "{transport}");
    }
}
