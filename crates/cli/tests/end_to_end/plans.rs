//! What `dnslab plan` says beforehand, held against what runs then take.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use dnslab_experiment::Plan;
use dnslab_record::{Measured, RunRecord};

use crate::command::{Done, Running, program};
use crate::evidence::{measured, valid_records};
use crate::processes::wait_for;
use crate::room::{Room, SHORT, UDP_AND_TCP, free_port};

/// Runs the command in a shell whose processes may open so many files.
#[track_caller]
fn with_files(room: &Room, files: u32, words: &[&str]) -> Done {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(program()).args(words);
    Running::start(command, room.path()).finish()
}

#[test]
fn too_few_files_are_said_before_a_load_with_the_number_that_does() {
    let room = Room::quiet();
    let server = "[server]\nkind = \"external\"\naddress = \"192.0.2.1\"\n";
    let variants = "load.clients = 2_000\n[[variant]]\nname = \"udp\"\n";
    room.experiment(&format!("{variants}{server}").replace("load.clients = 2_000\n", ""));
    let plan = ["plan", "./experiment.toml", "--set", "load.clients=2000"];
    let done = with_files(&room, 1_000, &plan).exits_with(2).errors(1);
    done.complains("`ulimit -n 2064`").complains("`LimitNOFILE=2064` in its unit of systemd");
    with_files(&room, 2_063, &plan).exits_with(2);
    with_files(&room, 2_064, &plan).exits_with(0).prints("about ");
}

#[test]
fn a_running_server_with_too_few_files_is_known_beforehand() {
    let room = Room::quiet();
    let port = free_port();
    let mut command = Command::new("sh");
    let script = format!("ulimit -n 300; exec python3 -m http.server {port} --bind 127.0.0.1");
    command.args(["-c", &script]);
    let server = Running::start(command, room.path());
    let is_there = || TcpStream::connect(("127.0.0.1", port)).ok();
    wait_for("it listens", || server.so_far(), is_there);
    let file = format!(
        "[server]\nkind = \"external\"\naddress = \"127.0.0.1:{port}\"\n[load]\ntransport = \"tcp\"\n\
         [[variant]]\nname = \"tcp\"\n"
    );
    room.experiment(&file);
    let plan = |clients: &str| {
        room.dnslab(&["plan", "./experiment.toml", "--set", &format!("load.clients={clients}")])
    };
    let done = plan("1000").exits_with(2).errors(1);
    let done = done.complains("the server that runs may open 300 files");
    done.complains("`ulimit -n 1200`").complains("`LimitNOFILE=1200`");
    plan("300").exits_with(0);
}

/// When the last of the loads of each round ended, on their timeline, in all rounds together.
fn took<'a>(loads: impl Iterator<Item = (u32, &'a Measured)>) -> Duration {
    let mut rounds: BTreeMap<u32, u64> = BTreeMap::new();
    for (round, measured) in loads {
        let end_ns = measured.window_start_ns + measured.window_ns;
        let longest = rounds.entry(round).or_default();
        *longest = end_ns.max(*longest);
    }
    Duration::from_nanos(rounds.values().sum())
}

#[test]
fn a_plan_has_the_time_of_all_loads_that_a_session_makes() {
    let room = Room::with_load();
    // One query after the other: no answer takes so long that slices become longer.
    let load =
        SHORT.replace("clients = 10", "clients = 1").replace("outstanding = 5", "outstanding = 1");
    let path = room
        .experiment(&format!("repeat.runs = 2\ncommon.duration = \"200ms\"\n{load}{UDP_AND_TCP}"));
    let (experiment, _) = dnslab_experiment::load(path.to_str().unwrap(), &[]).unwrap();
    let plan = Plan::new(&experiment, &[]);
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let records = valid_records(&room.results(), 4);
    let main = took(records.iter().map(|record| (record.repetition, measured(record))));
    assert_eq!(plan.time.main, main, "{done}");
    let common = |record: &RunRecord| record.common_load.as_ref().map(|load| load.measured.clone());
    let common: Vec<(u32, Measured)> =
        records.iter().filter_map(|record| Some((record.repetition, common(record)?))).collect();
    assert_eq!(common.len(), 4, "{done}");
    let common = took(common.iter().map(|(round, measured)| (*round, measured)));
    assert_eq!(plan.time.common, common, "{done}");
    // The trial is as long as one round, since its load is.
    assert_eq!(plan.time.trial, plan.time.main / 2);
    assert!(plan.time.servers > Duration::ZERO);
}

/// Twenty queries wait for a server that takes a millisecond of CPU for each: longer than a fifth of a slice of 50 ms. On a
/// machine that others use it is ten times as long, for which a load of 2 s has room.
#[test]
fn slices_become_longer_where_answers_take_longer() {
    let room = Room::alone();
    let load = SHORT.replace("outstanding = 5", "outstanding = 2");
    room.experiment(&format!(
        "repeat.runs = 2\nrepeat.alternate = \"slices\"\nserver.busy = \"1ms\"\n{load}{UDP_AND_TCP}"
    ));
    let done = room.dnslab(&["run", "./experiment.toml", "--set", "load.duration=2s"]);
    let done = done.exits_with(0);
    for record in valid_records(&room.results(), 4) {
        let turns = measured(&record).turns.clone().unwrap();
        assert!(turns.slice_ns > 50_000_000, "{turns:?}: {done}");
        assert!((5 * turns.lead_ns).abs_diff(turns.slice_ns) < 1_000, "{turns:?}: {done}");
    }
}
