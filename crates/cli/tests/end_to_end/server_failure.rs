//! Servers that are missing, cannot start, or die in the middle.

use std::fs;

use dnslab_record::RunStatus;

use crate::command::{Running, program, unshare};
use crate::evidence::{failure, label, records, report_is_whole};
use crate::processes::{guard_of, kill, processes_of};
use crate::room::{Room, SHORT, UDP_AND_TCP};

#[derive(Clone, Copy)]
enum Victim {
    Server,
    Guard,
}

/// Kills the server of the second of four runs, or its guard, under load.
#[track_caller]
fn check_death(kind: &str, victim: Victim) {
    let room = Room::with_load();
    room.experiment(&format!(
        "server.kind = \"{kind}\"\nrepeat = {{ runs = 2, alternate = \"runs\" }}\n\
         [load]\nclients = 10\nduration = \"1s\"\nwarm_up = \"0s\"\ntimeout = \"500ms\"\n\
         {UDP_AND_TCP}"
    ));
    let running = room.start(&["run", "./experiment.toml"]);
    let (_, server) = room.wait_for_load(&running, |plan| plan.get(1));
    kill(match victim {
        Victim::Server => server,
        Victim::Guard => guard_of(server),
    });
    let done = running.finish().exits_with(3).prints("[2/4]").prints("FAILED");
    let results = room.results();
    let found = records(&results);
    assert_eq!(found.len(), 4, "the other runs go on: {done}");
    for (place, record) in found.iter().enumerate() {
        if place == 1 {
            let (reason, log) = failure(record);
            assert!(reason.contains("in the middle of the load"), "{reason}{done}");
            let how = match victim {
                Victim::Server => "signal 9",
                Victim::Guard => "together with its guard",
            };
            assert!(reason.contains(how), "{reason}{done}");
            // The embedded server is silent until its end.
            assert!(kind == "embedded" || !log.is_empty(), "no lines of the log: {done}");
        } else {
            assert_eq!(record.status, RunStatus::Valid, "{}{done}", label(record));
        }
    }
    report_is_whole(&results, &["udp", "tcp"]);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    assert!(page.contains("in the middle of the load"), "the page does not say it: {done}");
    assert!(processes_of(room.path()).is_empty(), "{:?}{done}", processes_of(room.path()));
}

#[test]
fn a_server_that_dies_in_the_middle_fails_one_run() {
    check_death("bind", Victim::Server);
    check_death("embedded", Victim::Server);
}

#[test]
fn a_guard_that_dies_takes_its_server_along_and_fails_one_run() {
    check_death("knot", Victim::Guard);
}

#[test]
fn a_server_that_cannot_start_shows_its_log() {
    for (kind, extra, line) in [
        ("bind", "nonsense 1;", "unknown option 'nonsense'"),
        ("knot", "nonsense: 1", "nonsense"),
        ("nsd", "nonsense: 1", "nonsense"),
    ] {
        let room = Room::with_load();
        room.experiment(&format!(
            "server.kind = \"{kind}\"\nserver.extra = \"{extra}\"\nrepeat.runs = 3\n\
             {SHORT}{UDP_AND_TCP}"
        ));
        let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(1).errors(1);
        let words = "cannot be measured: ";
        let done = done.complains(&format!("{words}{kind} exited with status 1 before answering"));
        let done = done.complains("  command: ").complains("  log:     ").complains(line);
        assert!(records(&room.results()).is_empty(), "{done}");
        let log = done.stderr.lines().find_map(|line| line.trim().strip_prefix("log: "));
        let log = log.and_then(|log| log.trim().split(',').next()).unwrap_or_default();
        let kept = fs::read_to_string(room.path().join(log)).unwrap_or_default();
        assert!(kept.contains(line), "the log that is named does not say it: {done}");
        assert!(processes_of(room.path()).is_empty(), "{:?}{done}", processes_of(room.path()));
    }
}

#[test]
fn a_program_that_is_no_server_is_refused_at_plan_time() {
    let room = Room::quiet();
    let binary = "server.binary=/bin/false";
    let done = room.dnslab(&["run", "--set", "server.kind=bind", "--set", binary]).exits_with(1);
    let done = done.errors(1).complains("no variant can run here").complains("/bin/false");
    assert!(room.results_so_far().is_none(), "{done}");
}

/// A mount namespace hides the system's folders of servers, as any user may.
#[test]
fn a_server_that_is_not_installed_is_named_with_its_package() {
    for (kind, program_name, package) in
        [("bind", "named", "bind9"), ("knot", "knotd", "knot"), ("nsd", "nsd", "nsd")]
    {
        let room = Room::quiet();
        let mut command = unshare();
        let script = "mount -t tmpfs tmpfs /usr/sbin && PATH=/nonexistent exec \"$@\"";
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(program());
        command.args(["run", "--set", &format!("server.kind={kind}")]);
        let done = Running::start(command, room.path()).finish().exits_with(1).errors(1);
        let done = done.complains(&format!("{kind} is not installed: no `{program_name}` in PATH"));
        let done = done.complains(&format!("apt-get install {package}"));
        assert!(room.results_so_far().is_none(), "{done}");
    }
}
