//! What another thread is worth, of a server whose serial work is planted.

use dnslab_analysis::ScalingLine;
use serde_json::Value;

use crate::room::Room;

/// The embedded server with one to four threads on one CPU: what it plants is sleep, which needs none.
fn with_threads(name: &str, planted: &str) -> String {
    let variants = (1..=4).map(|threads: u32| {
        format!(
            "[[variant]]\nname = \"{name}-{threads}\"\nserver.threads = {threads}\n{planted}\n\
             load.clients = {}\n",
            20 * threads
        )
    });
    variants.collect()
}

/// A fifth of the work is serial: four threads answer 4 / (1 + 3 / 5) = 2.5 times as many queries as one.
#[test]
fn a_planted_serial_share_is_found_and_predicts_more_threads() {
    let room = Room::alone();
    let serial = with_threads("serial", "server.hold = \"4ms\"\nserver.serial = \"1ms\"");
    let parallel = with_threads("parallel", "server.hold = \"5ms\"");
    room.experiment(&format!(
        "baseline = \"serial-1\"\nrepeat.runs = 2\nserver.cpus = [0]\nload.outstanding = 1\n\
         load.duration = \"600ms\"\nload.warm_up = \"300ms\"\nload.timeout = \"5s\"\n{serial}{parallel}"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let path = room.results().path().join("summary.json");
    let summary: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let lines: Vec<ScalingLine> = serde_json::from_value(summary["scaling"].clone()).unwrap();
    let [serial, parallel] = &lines[..] else { panic!("{lines:?}: {done}") };
    assert_eq!([&*serial.name, &*parallel.name], ["serial", "parallel"]);
    let contention = |line: &ScalingLine| line.law.expect("there are four numbers").contention;
    let [found, without] = [serial, parallel].map(|line| contention(line).value);
    assert!((0.12..0.3).contains(&found), "{serial:#?}: {done}");
    assert!(without < 0.08, "{parallel:#?}: {done}");
    for line in [serial, parallel] {
        let held_out = line.held_out.expect("three numbers are left for the law");
        assert!(held_out.error.value.abs() < 0.15, "{line:#?}: {done}");
    }
    let done = done.prints("serial: 4 threads answer ").prints("contention ");
    done.prints("parallel: 4 threads answer ");
}

#[test]
fn more_threads_than_cpus_are_left_out_unless_the_cpus_are_named() {
    let room = Room::with_load();
    room.dnslab(&["plan", "scaling"]).exits_with(0).prints("64 threads, and the server has ");
    let named = ["--set", "server.cpus=0", "--only", "threads-1,threads-2,threads-3"];
    let short = ["load.duration=200ms", "load.warm_up=100ms", "repeat.runs=2"];
    let short = short.iter().flat_map(|set| ["--set", set]);
    let words: Vec<&str> = ["run", "scaling"].into_iter().chain(named).chain(short).collect();
    let done = room.dnslab(&words).exits_with(0);
    let done = done.prints("threads-2 and threads-3 have more threads than CPUs.");
    assert!(!done.stdout.contains("not run"), "{done}");
}
