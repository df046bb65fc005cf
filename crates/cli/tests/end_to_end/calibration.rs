//! `dnslab doctor`, and its calibration.

use dnslab_wire::Transport;

use crate::room::Room;

#[test]
fn the_doctor_names_what_would_spoil_a_measurement() {
    let room = Room::quiet();
    let mut done = room.dnslab(&["doctor"]).exits_with(0);
    for subject in ["CPUs", "other load", "steal", "virtualisation", "governor", "BIND", "NSD"] {
        done = done.prints(subject);
    }
    let marked =
        |line: &&str| ["good  ", "note  ", "SPOILS"].iter().any(|mark| line.starts_with(mark));
    let spoiled = done.stdout.lines().filter(marked).filter(|line| !line.starts_with("good"));
    let remedies = done.stdout.lines().filter(|line| line.trim_start().starts_with("remedy: "));
    assert_eq!(remedies.count(), spoiled.count(), "a doubt without a remedy: {done}");
}

/// Far quantiles and rates depend on the machine: on a busy one they may be off. The medians, the loss and
/// the stall stand above a scheduler's noise, except the medians over HTTP and QUIC, which take much CPU in a
/// build without optimisation.
#[test]
fn what_was_programmed_is_measured() {
    let room = Room::alone();
    let done = room.dnslab(&["doctor", "--calibrate"]);
    let is_check = |line: &&str| line.starts_with("true  ") || line.starts_with("OFF   ");
    let checks: Vec<&str> = done.stdout.lines().filter(is_check).collect();
    // The beginning of each line and its figure. The numbers depend on the machine.
    let mut expected = Vec::new();
    let programs = |what: &str| Transport::ALL.map(|transport| format!("{transport}, {what} "));
    let further = ["udp, delay uniform:", "udp, delay normal:"].map(str::to_owned);
    for program in programs("delay").into_iter().chain(further) {
        expected.push((program.clone(), ": p50 of the latency: "));
        expected.push((program, ": p99 of the latency: "));
    }
    for program in programs("window") {
        expected.push((program.clone(), ": answered rate: "));
        expected.push((program, ": p50 of the latency: "));
    }
    expected.extend(programs("loss").map(|program| (program, ": lost queries: ")));
    let same = || "udp, the same stall".to_owned();
    expected.push(("udp, a stall of 200 ms".to_owned(), ": largest latency: "));
    expected.push((same(), ": queries that waited for more than half of it: "));
    expected.push((same(), ": p99 of the queries sent after it: "));
    assert_eq!(checks.len(), expected.len(), "{done}");
    for (line, (program, figure)) in checks.iter().zip(&expected) {
        assert!(line[6..].starts_with(program.as_str()) && line.contains(figure), "{line}{done}");
        assert!(line.contains(", expected ") && line.contains(", allowed "), "{line}{done}");
        let may_be_off = figure.contains("p99 of the latency")
            || (program.starts_with("do") && !program.starts_with("dot") && figure.contains("p50"))
            || figure.contains("rate")
            || line.contains("the machine is too noisy");
        assert!(line.starts_with("true") || may_be_off, "{line}{done}");
    }
    // The exit code and the last line say the same as the checks.
    if checks.iter().all(|line| line.starts_with("true")) {
        done.exits_with(0).prints("calibration passed");
    } else {
        done.exits_with(3).prints("calibration failed");
    }
}
