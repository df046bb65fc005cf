//! Sessions: more rounds of one, several of one experiment, and what holds over them.

use std::fs;
use std::path::Path;

use dnslab_record::{Caveat, LoadMode, Looks};
use dnslab_results::ResultsDirectory;
use serde_json::Value;

use crate::room::{Room, SHORT, UDP_AND_TCP, folders};

/// The results directories of a folder, by age.
fn results_in(folder: &Path) -> Vec<ResultsDirectory> {
    let mut folders = folders(folder);
    folders.sort();
    folders.iter().filter_map(|path| ResultsDirectory::open(path).ok()).collect()
}

fn rounds(results: &ResultsDirectory) -> usize {
    let cases = results.session().unwrap().plan;
    cases.iter().map(|case| case.repetition).max().unwrap_or(0) as usize
}

#[test]
fn more_rounds_follow_and_the_intervals_know_that_somebody_looked() {
    let room = Room::with_load();
    let results = room.short_results(2);
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    assert_eq!(results.session().unwrap().looks, Looks::Once);
    let done = room.dnslab(&["run", "--resume", path, "--more", "3"]).exits_with(0);
    let results = ResultsDirectory::open(results.path()).unwrap();
    assert_eq!(
        (rounds(&results), results.session().unwrap().looks),
        (5, Looks::EachRound),
        "{done}"
    );
    assert_eq!(results.runs().unwrap().len(), 10, "{done}");
    // Nothing is missing, and nothing is made again.
    room.dnslab(&["run", "--resume", path]).exits_with(0);
    room.dnslab(&["run", "--more", "3"]).exits_with(2).complains("--resume");
}

#[test]
fn rounds_end_when_the_answer_is_as_narrow_as_asked() {
    let room = Room::with_load();
    let repeat = "[repeat]\nruns = 40\nuntil = \"90%\"\n";
    room.experiment(&format!("{repeat}{SHORT}{UDP_AND_TCP}"));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let results = room.results();
    let (made, session) = (rounds(&results), results.session().unwrap());
    // With fewer than five no such interval is bounded.
    assert!((5..40).contains(&made), "{made} rounds: {done}");
    assert_eq!((session.plan.len(), session.looks), (2 * made, Looks::EachRound), "{done}");
    let done = room.dnslab(&["run", "./experiment.toml", "--set", "repeat.runs=3"]).exits_with(2);
    done.complains("repeat.until").complains("40, for instance");
}

#[test]
fn what_is_published_is_as_long_as_a_pilot_says() {
    let room = Room::with_load();
    room.experiment(&format!("[common]\nduration = \"300ms\"\n{SHORT}{UDP_AND_TCP}"));
    let own = ["load.duration=500ms", "common.duration=300ms", "repeat.sessions=2"];
    let own = own.into_iter().chain(["repeat.session_pause=0s", "repeat.runs=2", "repeat.until=0"]);
    let sets = own.flat_map(|set| ["--set", set]);
    let words: Vec<&str> =
        ["run", "./experiment.toml", "--publish"].into_iter().chain(sets).collect();
    let done = room.dnslab(&words).exits_with(0);
    let done = done.prints("a pilot load of 10 s for each variant").prints("found: load.warm_up=");
    let [folder] =
        folders(&room.path().join("results")).try_into().expect("one folder of sessions");
    let pilots = results_in(&folder.join("pilot"));
    let records = pilots[0].runs().unwrap();
    assert_eq!(records.iter().map(|record| record.load.warm_up_ns).collect::<Vec<_>>(), [0, 0]);
    // Two that are alike, and beside them one without the batch delay and one with twice the clients.
    let sessions = results_in(&folder);
    assert_eq!(sessions.len(), 4, "{done}");
    for session in &sessions {
        for record in session.runs().unwrap() {
            assert_eq!(record.load.duration_ns, 500_000_000, "{done}");
            let own_qps = record.measured.as_ref().unwrap().answered_qps();
            let counted = record.share_loads.iter().map(|load| load.share);
            // Where other tests had the CPUs.
            let left_out = record.caveats.iter().filter_map(|caveat| match caveat {
                Caveat::ShareLoadInvalid { share, .. } => Some(*share),
                _ => None,
            });
            let mut shares: Vec<f64> = counted.chain(left_out).collect();
            shares.sort_by(f64::total_cmp);
            assert_eq!(shares, [0.1, 0.5, 0.8], "{:?}", record.caveats);
            for load in &record.share_loads {
                let LoadMode::Open { rate_qps, .. } = load.load.load.mode else { panic!("closed") };
                assert!((rate_qps / own_qps / load.share - 1.0).abs() < 1e-9);
            }
        }
    }
    let page = fs::read_to_string(sessions[0].path().join("report.html")).unwrap();
    assert!(page.contains("Latency over load"), "{done}");
}

#[test]
fn several_sessions_say_where_the_next_one_lies() {
    let room = Room::with_load();
    room.experiment(&format!(
        "[repeat]\nruns = 2\nsessions = 2\nsession_pause = \"0s\"\n{SHORT}{UDP_AND_TCP}"
    ));
    let words = ["run", "./experiment.toml", "--beside", "load.batch_delay=0s", "--quiet"];
    let done = room.dnslab(&words).exits_with(0);
    let done = done.prints("next session").prints("load.batch_delay was");
    let [folder] =
        folders(&room.path().join("results")).try_into().expect("one folder of sessions");
    let sessions = results_in(&folder);
    assert_eq!(sessions.len(), 3, "{done}");
    let seeds: Vec<u64> = sessions.iter().map(|own| own.session().unwrap().seed).collect();
    assert_eq!(seeds[1], seeds[0] + 1, "the order is drawn anew: {done}");
    let page = fs::read_to_string(folder.join("sessions.html")).unwrap();
    assert!(page.contains("Over the sessions") && page.contains("Other settings"), "{page}");
    let stored = fs::read_to_string(folder.join("sessions.json")).unwrap();
    let folder = folder.to_str().expect("a temporary folder has a plain name");
    let again = room.dnslab(&["pool", folder, "--json"]).exits_with(0);
    let [stored, again] =
        [&stored, &again.stdout].map(|text| serde_json::from_str::<Value>(text).unwrap());
    assert_eq!(stored, again);
    assert_eq!(stored["sessions"].as_array().unwrap().len(), 2);
    let answer = stored["answer"].as_str().unwrap();
    assert!(
        answer.starts_with("Over 2 sessions: ") && answer.contains("; the next session finds ")
    );
    let one = sessions[0].path().to_str().expect("a temporary folder has a plain name");
    room.dnslab(&["pool", one]).exits_with(2).complains("one session says nothing of the next");
    room.dnslab(&["pool", one, one])
        .exits_with(2)
        .complains("one session says nothing of the next");
    room.dnslab(&["pool", "."]).exits_with(2).complains("has none in it");
    let words = [&words[..], &["--results", "none"]].concat();
    room.dnslab(&words).exits_with(2).complains("--results none");
}
