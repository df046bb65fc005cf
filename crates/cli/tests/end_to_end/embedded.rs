//! The built-in experiment: what a newcomer's first call must give.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use dnslab_analysis::Summary;

use crate::command::{Done, Running, program};
use crate::evidence::{label, measured, report_is_whole, valid_records};
use crate::processes::{orphaned_groups, ports_are_free, processes_of};
use crate::room::{Room, SHORT, UDP_AND_TCP, copy_program};

/// Shortened to seconds.
const SHORTENED: [&str; 9] = [
    "run",
    "--set",
    "common.duration=200ms",
    "--set",
    "load.duration=300ms",
    "--set",
    "load.warm_up=100ms",
    "--set",
    "repeat.runs=2",
];

const VARIANTS: [&str; 5] = ["udp", "tcp", "dot", "dot-coming-and-going", "dot-quickack"];

/// The screen after the lines of the runs: at most 20 lines of at most 100 columns, with a row for each
/// variant, how far to trust them, and what to do next.
#[track_caller]
fn is_first_screen(done: &Done, variants: &[&str]) {
    let lines: Vec<&str> = done.stdout.lines().collect();
    let last = lines.iter().rposition(|line| line.starts_with('['));
    let screen: Vec<&str> = lines.into_iter().skip(last.map_or(0, |last| last + 1)).collect();
    assert!(screen.len() <= 20, "{} lines: {done}", screen.len());
    // The path of the results may be longer.
    let wide = |line: &&&str| line.chars().count() > 100 && !line.starts_with("report: ");
    assert_eq!(screen.iter().find(wide), None, "{done}");
    for variant in variants {
        let start = format!("  {variant} ");
        assert_eq!(screen.iter().filter(|line| line.starts_with(&start)).count(), 1, "{done}");
    }
    for part in ["queries/s", "CPU/query", "100 clients", "Bottleneck: ", "report: ", "next: "] {
        assert!(screen.iter().any(|line| line.contains(part)), "no {part}: {done}");
    }
}

/// Everything that the shortened experiment must have done.
#[track_caller]
fn check(room: &Room, done: Done) {
    let done = done.exits_with(0).prints("What does encrypting DNS cost?").prints("10 runs of 5");
    let results = room.results();
    let session = results.session().unwrap_or_else(|error| panic!("{error}{done}"));
    assert_eq!(session.variants, VARIANTS, "{done}");
    assert_eq!(session.plan.len(), 10, "{done}");
    let records = valid_records(&results, 10);
    for (place, record) in records.iter().enumerate() {
        let line = format!("[{}/10] {}, run {}: ", place + 1, record.variant, record.repetition);
        assert!(done.stdout.contains(&line), "no line `{line}`: {done}");
        let samples = &record.watched.resources.samples;
        assert!(samples.len() >= 3, "{}: the server was not watched: {samples:?}", label(record));
        let tls = measured(record).tls.as_ref();
        assert_eq!(tls.map(|tls| tls.verified), record.variant.starts_with("dot").then_some(true));
    }
    let summary = Summary::of(&session, &records);
    assert!(summary.comparisons.len() >= 10, "{done}");
    report_is_whole(&results, &VARIANTS);
    is_first_screen(&done, &VARIANTS);
    let page = results.path().join("report.html");
    let named = done.stdout.lines().find_map(|line| line.strip_prefix("report: "));
    assert_eq!(named.map(|path| room.path().join(path)), Some(page), "{done}");
    assert!(processes_of(room.path()).is_empty(), "{:?}", processes_of(room.path()));
    ports_are_free(&records);
}

#[test]
fn the_built_in_experiment_goes_from_plan_to_report() {
    let room = Room::with_load();
    let groups = orphaned_groups();
    check(&room, room.dnslab(&SHORTENED));
    assert_eq!(&orphaned_groups() - &groups, Default::default());
}

#[test]
fn an_ordinary_user_can_run_it() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: the other tests run as an ordinary user");
        return;
    }
    let room = Room::with_load();
    let mut command = room.as_nobody();
    command.args(SHORTENED);
    check(&room, Running::start(command, room.path()).finish());
}

/// Compares our count with the server's: at its end the responder prints what it received and answered.
#[test]
fn the_server_counted_what_we_counted() {
    let room = Room::with_load();
    room.dnslab(&SHORTENED).exits_with(0);
    let results = room.results();
    let slice_ns = results.session().unwrap().slice_ns;
    for record in valid_records(&results, 10) {
        let name = label(&record);
        let folder = results.path().join("runs").join(&name);
        let log = fs::read_to_string(folder.join("server/server.log")).unwrap();
        let count = |word: &str| -> u64 {
            let (before, _) =
                log.split_once(&format!(" {word}")).unwrap_or_else(|| panic!("{log}"));
            before.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let (received, answered) = (count("received"), count("answered"));
        let common = record.common_load.as_ref().map(|common| &common.measured);
        let loads = [Some(measured(&record)), common];
        let parts = || loads.into_iter().flatten().flat_map(|load| [&load.counters, &load.warm_up]);
        let sent: u64 = parts().map(|part| part.sent).sum();
        let ours: u64 = parts().map(|part| part.outcomes.answered).sum();
        // The readiness probe asks too, once or, on a slow machine, a few times more. Where the turns were too
        // short for the slowest load of the round, all loads were applied before, with these. A common load that does
        // not count is in no record.
        let turns = measured(&record).turns.as_ref().map(|turns| turns.slice_ns);
        let is_all = turns == slice_ns && common.is_some();
        let probes = 1..=if is_all { 20 } else { u64::MAX - sent };
        if record.variant == "udp" {
            // The kernel may drop a datagram either way.
            assert!(received <= sent + probes.end(), "{name}: {received} of {sent}: {log}");
            assert!(answered > ours, "{name}: {answered} answered, {ours} seen: {log}");
        } else {
            assert!(probes.contains(&(received - sent)), "{name}: {received} of {sent}: {log}");
            assert!(probes.contains(&(answered - ours)), "{name}: {answered} of {ours}: {log}");
        }
    }
}

/// `dnslab run | head -1`: the reader goes away early. No measurement is lost, and nothing panics.
#[test]
fn the_report_is_written_even_if_nobody_reads_the_table() {
    let room = Room::with_load();
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\" | head -1", "sh"]).arg(program()).args(SHORTENED);
    let done = Running::start(command, room.path()).finish().exits_with(0);
    let results = room.results();
    valid_records(&results, 10);
    report_is_whole(&results, &VARIANTS);
    done.errors(0);
}

#[test]
fn a_dry_run_shows_the_plan_alone() {
    let room = Room::quiet();
    let done = room.dnslab(&["run", "--dry-run", "--set", "repeat.runs=2"]).exits_with(0);
    let done = done.prints("variant udp, the baseline").prints("10 runs, about ");
    assert!(room.results_so_far().is_none(), "{done}");
}

/// The embedded server gives up root, but starts even from a program that only root may reach.
#[test]
fn the_program_may_lie_where_only_root_may_go() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: whose servers are this user's");
        return;
    }
    let room = Room::with_load();
    let closed = room.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let copy = closed.join("dnslab");
    copy_program(&copy);
    room.experiment(&format!("repeat.runs = 1\n{SHORT}{UDP_AND_TCP}"));
    let mut command = Command::new(copy);
    command.args(["run", "./experiment.toml"]);
    let done = Running::start(command, room.path()).finish().exits_with(0);
    for record in valid_records(&room.results(), 2) {
        let user = record.server.user;
        assert!(user.parse::<u32>().is_ok_and(|user_id| user_id >= 61_184), "`{user}`: {done}");
    }
}
