//! A part of a laboratory dies under load: the run fails and names it, and the next run is fine.

use std::fs;

use dnslab_record::RunStatus;

use crate::evidence::{failure, records, report_is_whole};
use crate::laboratory::{CHAIN, HOSTS, LIGHT, Traces, marked, marked_processes};
use crate::processes::{guard_of, kill};
use crate::room::Room;

/// The first one in the plan lasts until something happens.
const VARIANTS: &str = "baseline = \"lives\"\n[[variant]]\nname = \"dies\"\n\
    load.duration = \"30s\"\n[[variant]]\nname = \"lives\"\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// A process whose command line has these words.
    Process(&'static str),
    /// The guard of such a process.
    Guard(&'static str),
}

impl Victim {
    #[track_caller]
    fn pid(self, room: &Room) -> u32 {
        let (Self::Process(words) | Self::Guard(words)) = self;
        let there = marked_processes(room);
        let found = there.iter().find(|(_, line)| line.contains(words));
        let process = found.unwrap_or_else(|| panic!("no {words}: {there:?}")).0;
        match self {
            Self::Process(..) => process,
            Self::Guard(..) => guard_of(process),
        }
    }
}

/// Kills a part of the first run under load. `has_log` if that part writes a log.
#[track_caller]
fn check(victim: Victim, what: &str, has_log: bool) {
    println!("{victim:?}");
    let room = Room::with_load();
    // With this seed the variant that dies comes first.
    room.experiment(&format!("repeat.seed = 2\n{HOSTS}{CHAIN}{LIGHT}{VARIANTS}"));
    let running = marked(&room, &["run", "./experiment.toml"]);
    room.wait_for_load(&running, |plan| {
        let case = plan.first()?;
        assert_eq!(case.variant, "dies", "another seed is needed");
        Some(case)
    });
    let traces = Traces::of(&room);
    kill(victim.pid(&room));
    let done = running.finish().exits_with(3).prints("[1/2]").prints("FAILED");
    traces.are_gone(&room);
    let results = room.results();
    let found = records(&results);
    assert_eq!(found.len(), 2, "the other run goes on: {done}");
    for record in &found {
        if record.variant == "lives" {
            assert_eq!(record.status, RunStatus::Valid, "{done}");
            continue;
        }
        let (reason, log) = failure(record);
        let how = match victim {
            Victim::Process(..) => "was ended by signal 9",
            Victim::Guard(..) => "ended together with its guard",
        };
        let expected = format!(" ended in the middle of the load ({how})");
        let is_said = reason.starts_with(what) && reason.ends_with(&expected);
        assert!(is_said, "`{what}{expected}` is not said: {reason}{done}");
        assert!(!has_log || !log.is_empty(), "no lines of the log: {done}");
    }
    report_is_whole(&results, &["dies", "lives"]);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    let is_said = page.contains(what) && page.contains(" ended in the middle of the load");
    assert!(is_said, "the page does not say it: {done}");
}

#[test]
fn any_server_of_a_chain_that_dies_is_named() {
    check(Victim::Process("unbound"), "the server", true);
    // dnsmasq and unbound are silent while nothing is wrong; BIND is not.
    check(Victim::Process("dnsmasq"), "the relay", true);
    check(Victim::Process("named"), "the upstream", true);
}

#[test]
fn a_guard_that_dies_takes_its_part_along() {
    check(Victim::Guard("named"), "the upstream", true);
    check(Victim::Guard("guard link"), "the link between client and server", false);
}

#[test]
fn a_host_or_a_link_that_dies_is_noticed() {
    check(Victim::Process("guard link"), "the link between client and server", false);
    check(Victim::Process("sleep"), "the host", false);
}
