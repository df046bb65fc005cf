//! `dnslab capacity`: searches whose outcome is certain on any machine.

use std::fs;

use dnslab_analysis::{Answer, answer};
use dnslab_lab::ports;
use dnslab_record::{Capacity, End, LoadMode, Phase};
use dnslab_wire::Transport;

use crate::command::Done;
use crate::evidence::{files, is_intact, records, report_is_whole};
use crate::processes::wait_for;
use crate::room::Room;
use crate::running_server::{queries, serve};

fn arguments<'a>(target: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["capacity", target, "--queries", "queries", "--workers", "1"];
    arguments.extend(["--step-duration", "200ms", "--warm-up", "50ms"]);
    arguments.extend(further);
    arguments
}

/// The responder gets the options `program`.
#[track_caller]
fn search(room: &Room, program: &[&str], further: &[&str]) -> Done {
    room.write("queries", &queries());
    let (_server, at) = serve(room, "127.0.0.1", program);
    let target = at(Transport::Udp).to_string();
    room.dnslab(&arguments(&target, further))
}

/// The search on disk. Its runs must be there, and add up.
#[track_caller]
fn capacity(room: &Room) -> Capacity {
    let results = room.results();
    is_intact(&results);
    let capacity = results.capacity().unwrap().expect("there is a search");
    let runs = records(&results);
    assert!(runs.len() >= capacity.steps.len());
    for (step, run) in capacity.steps.iter().zip(&runs) {
        assert_eq!((&step.case.variant, step.case.repetition), (&run.variant, run.repetition));
        match &run.load.mode {
            LoadMode::Open { rate_qps, .. } => assert_eq!(*rate_qps, step.at),
            LoadMode::Closed { .. } => assert_eq!(run.load.window(), Some(step.at as u64)),
        }
    }
    report_is_whole(&results, &[]);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    assert!(runs.iter().all(|run| page.contains(&run.variant)));
    capacity
}

#[test]
fn the_highest_rate_allowed_is_met() {
    let room = Room::alone();
    // Half of the queries may be lost: no machine is too busy for that.
    let objective = ["--objective", "lost<50%, mean<1s"];
    let further = ["--from", "100", "--max", "400", "--repeats", "2"];
    let done = search(&room, &[], &[objective.as_slice(), &further].concat()).exits_with(0);
    let done = done.prints("meets lost<50%, mean<1s up to at least 400 queries per second");
    let found = capacity(&room);
    assert_eq!(answer(&found), Answer::AtLeast { qps: 400.0, generator: None }, "{done}");
    assert_eq!(found.end, Some(End::Max { qps: 400.0 }), "{done}");
    assert_eq!(found.steps.first().map(|step| (step.phase, step.at)), Some((Phase::Ramp, 100.0)));
    assert!(found.steps.iter().filter(|step| step.at == 400.0).count() >= 2, "{done}");
    for step in &found.steps {
        assert!(done.stdout.contains(&format!("{:>9} qps", step.at)), "{done}");
    }

    // The report comes from the directory alone.
    let folder = room.results().path().to_owned();
    let before = files(&folder);
    for name in ["report.html", "table.md", "capacity.csv"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    room.dnslab(&["report".as_ref(), folder.as_os_str()]).exits_with(0);
    assert_eq!(files(&folder), before);
}

#[test]
fn a_server_that_never_meets_it_is_told_so() {
    let room = Room::alone();
    let further = ["--objective", "lost<1%", "--max", "100000"];
    let done = search(&room, &["--loss", "5%"], &further).exits_with(3);
    let done = done.prints("does not meet lost<1% even at 1,000 queries per second");
    let found = capacity(&room);
    assert_eq!(found.end, Some(End::Lowest), "{done}");
    assert!(found.steps.iter().all(|step| step.at == 1_000.0 && !step.judged.is_met()), "{done}");
}

#[test]
fn every_window_is_tried_and_one_is_named() {
    let room = Room::alone();
    let further = ["--window-sweep", "--max-window", "4", "--repeats", "2", "--clients", "2"];
    let done = search(&room, &[], &further).exits_with(0).prints(" outstanding to answer ");
    let found = capacity(&room);
    let mut windows: Vec<f64> = found.steps.iter().map(|step| step.at).collect();
    assert_eq!(windows[..3], [1.0, 2.0, 4.0], "{done}");
    windows.sort_by(f64::total_cmp);
    assert_eq!(windows, [1.0, 1.0, 2.0, 2.0, 4.0, 4.0], "{done}");
    assert!(matches!(answer(&found), Answer::Window(_)), "{done}");
    let clients: Vec<u32> = records(&room.results()).iter().map(|run| run.load.clients).collect();
    assert_eq!(clients[..3], [1, 2, 2], "{done}");
}

#[test]
fn an_interrupted_search_reports_what_there_is() {
    let room = Room::alone();
    room.write("queries", &queries());
    let (_server, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    let objective = ["--objective", "lost<50%", "--from", "50", "--max", "50", "--repeats", "900"];
    let mut running = room.start(&arguments(&target, &objective));
    let steps = || Some(room.results_so_far()?.capacity().ok()??.steps.len());
    wait_for("two steps", || running.so_far(), || steps().filter(|steps| *steps >= 2));
    running.press_ctrl_c();
    let done = running.finish().exits_with(130);
    let done = done.prints("The search ended without an answer").prints("interrupted");
    let found = capacity(&room);
    assert_eq!(found.end, Some(End::Interrupted), "{done}");
    assert!((2..900).contains(&found.steps.len()), "{done}");
}

#[test]
fn without_a_server_there_is_no_search() {
    let room = Room::quiet();
    room.write("queries", &queries());
    let free = ports::free("127.0.0.1".parse().unwrap()).unwrap();
    let target = format!("127.0.0.1:{}", free.plain);
    let further = ["--timeout", "100ms"];
    let done = room.dnslab(&arguments(&target, &further)).exits_with(1);
    done.errors(1).complains("does not answer over udp").complains("  hint:    ");
}

#[test]
fn bad_arguments_name_the_culprit_and_the_remedy() {
    let room = Room::quiet();
    room.write("queries", &queries());
    for (further, text) in [
        (&["--objective", "p99"][..], "`p99` is no demand: write FIGURE<BOUND"),
        (&["--objective", "p99<3s"], "a lost query counts with the time-out of 2s"),
        (&["--from", "20", "--max", "10"], "the search begins at 20 qps (--from), above its end"),
        (&["--objective", "lost<0.01%"], "takes 100000 queries to tell, and at 1000 qps (--from)"),
        (&["--max", "0"], "a rate lies between"),
        (&["--tolerance", "5"], "write a percentage"),
        (&["--repeats", "0"], "--repeats"),
        (&["--window-sweep", "--max", "10"], "cannot be used with"),
        (&["--set", "load.outstanding=5"], "reaches no variant"),
        (&["--timeout", "2"], "load.timeout"),
    ] {
        let done = room.dnslab(&arguments("127.0.0.1:9", further));
        done.exits_with(2).errors(1).complains(text);
        assert!(room.results_so_far().is_none(), "{further:?}");
    }
}
