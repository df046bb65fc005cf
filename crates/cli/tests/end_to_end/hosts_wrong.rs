//! Laboratories with faults: wrong configuration, a missing program, a user without the right.

use std::fs;

use dnslab_record::RunStatus;

use crate::command::{Done, Running, coredns, program, unshare};
use crate::evidence::{records, report_is_whole, valid_records};
use crate::laboratory::{CHAIN, LIGHT, Traces, marked};
use crate::room::Room;

/// Runs two variants, one of them wrong. The server at `place`, of `kind`, must fail, and its log must say
/// `words`.
#[track_caller]
fn check_extra(chain: &str, extra: &str, place: &str, kind: &str, words: &str) {
    println!("{extra}");
    let room = Room::with_load();
    let variants =
        format!("[[variant]]\nname = \"right\"\n[[variant]]\nname = \"wrong\"\n{extra}\n");
    room.experiment(&format!("lab.hosts = \"namespaces\"\n{LIGHT}{chain}{variants}"));
    let running = marked(&room, &["run", "./experiment.toml"]);
    let done = running.finish().exits_with(1).errors(1);
    Traces::of(&room).are_gone(&room);
    let done = done.complains("variant `wrong` cannot be measured: ").complains("  command: ");
    let done = done.complains(&format!("{kind} exited with status ")).complains(words);
    let done = done.complains("/wrong-");
    let done = done.complains(&format!("/{place}"));
    assert!(place == "server" || done.stderr.contains(&format!("the {place}")), "{done}");
    // An earlier run is kept, and no later one is made.
    for record in records(&room.results()) {
        assert_eq!((&*record.variant, &record.status), ("right", &RunStatus::Valid), "{done}");
    }
}

#[test]
fn an_error_in_any_configuration_names_the_server_and_shows_its_log() {
    let bind = "server.kind = \"bind\"\nupstream.kind = \"bind\"\n";
    let wrong = "server.extra = \"nonsense 1;\"";
    check_extra(bind, wrong, "server", "bind", "unknown option 'nonsense'");
    let wrong = "upstream.extra = \"nonsense 1;\"";
    check_extra(bind, wrong, "upstream", "bind", "unknown option 'nonsense'");

    let unbound = "server.kind = \"unbound\"\nrelay.kind = \"dnsmasq\"\nupstream.kind = \"knot\"\n";
    let wrong = "server.extra = \"nonsense: 1\"";
    check_extra(unbound, wrong, "server", "unbound", "unknown keyword 'nonsense'");
    let wrong = "relay.extra = \"nonsense\"";
    check_extra(unbound, wrong, "relay", "dnsmasq", "bad option");

    let coredns = format!(
        "server.kind = \"coredns\"\nserver.binary = {:?}\nupstream.kind = \"nsd\"\n",
        coredns()
    );
    let wrong = "server.extra = \"nonsense\"";
    check_extra(&coredns, wrong, "server", "coredns", "nonsense");
}

/// Runs a chain on loopback with variants of BIND and Unbound, with Unbound hidden.
fn without_unbound(room: &Room, baseline: &str) -> Done {
    let variants = "[[variant]]\nname = \"by-bind\"\nserver.kind = \"bind\"\n\
                    [[variant]]\nname = \"by-unbound\"\nserver.kind = \"unbound\"\n";
    room.experiment(&format!(
        "baseline = \"{baseline}\"\nupstream.kind = \"bind\"\n{LIGHT}{variants}"
    ));
    let mut command = unshare();
    let script = "mount --bind /dev/null /usr/sbin/unbound && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(program());
    command.args(["run", "./experiment.toml"]);
    Running::start(command, room.path()).finish()
}

#[test]
fn a_variant_without_its_server_is_left_out_with_the_remedy() {
    let room = Room::with_load();
    let done = without_unbound(&room, "by-bind").exits_with(0);
    let done = done.prints("not run: by-unbound: unbound is not installed: no `unbound` in PATH");
    let done = done.prints("apt-get install unbound");
    let results = room.results();
    let found = valid_records(&results, 1);
    assert_eq!(found[0].variant, "by-bind", "{done}");
    report_is_whole(&results, &["by-bind"]);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    assert!(page.contains("unbound is not installed"), "the page does not say it: {done}");
}

#[test]
fn a_baseline_without_its_server_is_an_error() {
    let room = Room::quiet();
    let done = without_unbound(&room, "by-unbound").exits_with(1).errors(1);
    let done = done.complains("the baseline `by-unbound` cannot run here");
    let done = done.complains("unbound is not installed").complains("--set baseline=NAME");
    assert!(room.results_so_far().is_none(), "{done}");
}

#[test]
fn a_program_that_is_not_there_is_said_before_anything_starts() {
    for key in ["server.binary", "relay.binary", "upstream.binary"] {
        let room = Room::quiet();
        room.experiment(&format!(
            "{CHAIN}[[variant]]\nname = \"right\"\n[[variant]]\nname = \"wrong\"\n\
             {key} = \"/nonexistent/program\"\n"
        ));
        let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(2).errors(1);
        let done = done.complains("/nonexistent/program").complains(key);
        assert!(room.results_so_far().is_none(), "{done}");
    }
}
