//! The gate: two sessions with real servers, and its exit codes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::Done;
use crate::evidence::is_disturbed;
use crate::room::{Room, folders};

/// Short closed loops over UDP on the embedded server.
const SHORT: &str = "load.clients = 10\nload.outstanding = 1\nload.duration = \"300ms\"\n\
    load.warm_up = \"100ms\"\n";

/// The CPU time of a query depends least on who else has the CPU, and here it is many times as much. What is equal is so
/// on a busy machine, too.
const LIMITS: &str = "cpu_per_query<+200%, lost<50%";
const OF_EQUAL: &str = "memory<+300%, lost<50%";

/// Runs one variant so often, into a folder of this name. Returns the path of the results.
#[track_caller]
fn session(room: &Room, name: &str, runs: u32, server: &str) -> String {
    room.experiment(&format!(
        "repeat.runs = {runs}\n{SHORT}[[variant]]\nname = \"udp\"\n{server}\n"
    ));
    room.dnslab(&["run", "./experiment.toml", "--quiet", "--results", name]).exits_with(0);
    let found = folders(&room.path().join(name));
    forget_others(&found[0]);
    found[0].to_str().expect("a temporary folder has a plain name").to_owned()
}

/// Takes out of the records that others used the machine, which they may do while tests run: nothing would be
/// called worse then.
fn forget_others(results: &Path) {
    for run in folders(&results.join("runs")) {
        let path = run.join("record.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let others = ["steal", "crowded", "server-held-up", "other-processes"];
        let caveats = record["caveats"].as_array_mut().unwrap();
        caveats.retain(|caveat| !others.iter().any(|kind| caveat["kind"] == *kind));
        fs::write(path, record.to_string()).unwrap();
    }
}

#[track_caller]
fn compare(room: &Room, base: &str, new: &str, further: &[&str]) -> Done {
    compare_by(LIMITS, room, base, new, further)
}

#[track_caller]
fn compare_by(limits: &str, room: &Room, base: &str, new: &str, further: &[&str]) -> Done {
    let words = ["compare", base, new, "--limit", limits];
    room.dnslab(&[&words[..], further].concat())
}

/// Cases, failures and what was skipped, as another reader of XML has them.
#[track_caller]
fn counts(junit: &Path) -> String {
    let script = "import sys, xml.etree.ElementTree as tree\n\
        suite = tree.parse(sys.argv[1]).getroot().find('testsuite')\n\
        cases = suite.findall('testcase')\n\
        of = lambda kind: len([case for case in cases if case.find(kind) is not None])\n\
        assert suite.get('tests') == str(len(cases))\n\
        assert suite.get('failures') == str(of('failure'))\n\
        assert suite.get('skipped') == str(of('skipped'))\n\
        print(len(cases), of('failure'), of('skipped'))";
    let output = Command::new("python3").args(["-c", script]).arg(junit).output();
    let output = output.expect("python3 can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn equal_slower_and_too_few() {
    let room = Room::alone();
    let base = session(&room, "base", 4, "");
    let equal = session(&room, "equal", 4, "");
    // Thirty times the CPU time of a query or more.
    let slower = session(&room, "slower", 4, "server.busy = \"1ms\"");
    let once = session(&room, "once", 1, "");
    let (markdown, junit) = (room.path().join("gate.md"), room.path().join("gate.xml"));
    let files = ["--markdown", "gate.md", "--junit", "gate.xml"];
    let read = |path: &Path| fs::read_to_string(path).unwrap();

    let done = compare_by(OF_EQUAL, &room, &base, &equal, &files).exits_with(0);
    let done = done.prints("The change is within all limits: memory and lost of udp.");
    assert!(read(&markdown).starts_with("**PASS: 2 of 2 limits pass**"), "{done}");
    assert_eq!(counts(&junit), "2 0 0", "{done}");

    let done = compare(&room, &base, &slower, &files).exits_with(4);
    let done = done.prints("The change is certainly worse than a limit: udp's cpu_per_query ");
    let done = done.prints("server.busy was").prints("is \"1ms\"");
    assert!(read(&markdown).starts_with("**FAIL: "), "{done}");
    assert_eq!(counts(&junit), "2 1 0", "{done}");
    // What is better never fails.
    compare(&room, &slower, &base, &[]).exits_with(0);

    let done = compare(&room, &base, &once, &files).exits_with(3);
    let done = done.prints("one run says nothing of the spread: make at least 5 in each session");
    assert!(read(&markdown).starts_with("**UNCLEAR: "), "{done}");
    assert_eq!(counts(&junit), "2 0 2", "{done}");

    let done = compare(&room, &base, &slower, &["--json"]).exits_with(4);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&json["ruling"], &json["variants"][0]), (&"fail".into(), &"udp".into()), "{done}");

    // There is no verdict without two sessions that compare.
    compare(&room, &base, &base, &[]).exits_with(2).errors(1).complains("compared with itself");
    compare(&room, &base, "nowhere", &[]).exits_with(2).errors(1).complains("nowhere");
    compare(&room, &base, &equal, &["--limit", "p99>-5%"])
        .exits_with(2)
        .complains("`p99>-5%` fails what is better: write p99<+...%");
    compare(&room, &base, &equal, &["--junit", "no/such/folder"]).exits_with(1).errors(1);
    let session = Path::new(&equal).join("session.json");
    let mut facts: serde_json::Value = serde_json::from_str(&read(&session)).unwrap();
    for fact in facts["host"].as_array_mut().unwrap() {
        if fact["name"] == "memory" {
            fact["value"] = "1 MiB".into();
        }
    }
    fs::write(&session, facts.to_string()).unwrap();
    let done = compare(&room, &base, &equal, &[]).exits_with(1).errors(1);
    done.complains("the sessions are of different machines: memory was ")
        .complains("hint:    measure both on one machine");
    compare_by(OF_EQUAL, &room, &base, &equal, &["--across-machines"])
        .exits_with(0)
        .prints("Another machine: memory was");
}

/// The program of an installed server, and a copy of it.
#[track_caller]
fn two_programs(room: &Room) -> String {
    let program = Path::new("/usr/sbin/nsd");
    assert!(program.exists(), "nsd is missing; checks/debian-packages lists it");
    // Servers run as a user of their own.
    room.open_to_all();
    let copy = room.path().join("nsd-old");
    let copied = Command::new("cp").arg(program).arg(&copy).status();
    assert!(copied.is_ok_and(|status| status.success()), "nsd cannot be copied");
    copy.to_str().expect("a temporary folder has a plain name").to_owned()
}

#[test]
fn both_programs_of_a_server_in_the_same_rounds() {
    let room = Room::alone();
    let old = two_programs(&room);
    let transports = "[[variant]]\nname = \"udp\"\n[[variant]]\nname = \"tcp\"\n\
        load.transport = \"tcp\"\ncompare.with = \"udp\"\n";
    room.experiment(&format!("server.kind = \"nsd\"\nrepeat.runs = 3\n{SHORT}{transports}"));
    let run = |limit: &str, further: &[&str]| {
        let words = ["run", "./experiment.toml", "--against", &old, "--results", limit];
        room.dnslab(&[&words[..], &["--limit", limit], further].concat())
    };
    let results = |limit: &str| {
        let results = folders(&room.path().join(limit));
        dnslab_results::ResultsDirectory::open(&results[0]).unwrap()
    };
    let summary = |limit: &str| -> serde_json::Value {
        serde_json::from_str(&results(limit).written("summary.json").unwrap()).unwrap()
    };
    // A machine that others use gives no certain word.
    let is_disturbed = |limit: &str| is_disturbed(&results(limit));
    let ends_with = |done: Done, limit: &str, (code, word): (i32, &str)| {
        let (code, word) = if is_disturbed(limit) { (3, "UNCLEAR") } else { (code, word) };
        done.exits_with(code).prints(word)
    };
    // No server is so much worse than itself, and a server that answers cannot be this much better.
    let limit = "cpu_per_query<+400%";
    let done = ends_with(run(limit, &[]), limit, (0, "PASS")).prints("cpu_per_query");
    let results = results(limit);
    let session = results.session().unwrap();
    assert_eq!(session.variants, ["udp-base", "udp", "tcp-base", "tcp"], "{done}");
    assert_eq!((session.baseline.as_str(), &session.against), ("udp-base", &old), "{done}");
    assert!(session.slice_ns.is_some(), "the programs take turns: {done}");
    for record in results.runs().unwrap() {
        let program = &record.server.command[0];
        assert_eq!(*program == old, record.variant.ends_with("-base"), "{program}: {done}");
    }
    let summary = summary(limit);
    let judged = summary["rulings"][0]["variants"].as_array().unwrap();
    let pairs: Vec<String> =
        judged.iter().map(|pair| format!("{} {}", pair["variant"], pair["against"])).collect();
    assert_eq!(pairs, ["\"udp\" \"udp-base\"", "\"tcp\" \"tcp-base\""], "{done}");
    let path = results.path().to_str().unwrap();
    room.dnslab(&["run", "--resume", path]).exits_with(if is_disturbed(limit) { 3 } else { 0 });

    // Within 50 % of the loss is who answers at all.
    run("lost<50%", &[]).exits_with(0).prints("PASS");
    // That is asked of none: a tenth of the CPU time.
    let limit = "cpu_per_query<-90%";
    let done = run(limit, &[]);
    // What fails for certain in one pair fails, also where others held up the other pair.
    match is_disturbed(limit) {
        true => done.exits_with_one_of(&[3, 4]),
        false => done.exits_with(4).prints("FAIL"),
    };
    run("cpu_per_query<+400%", &["--set", "repeat.runs=1"]).exits_with(3).prints("UNCLEAR");
    // An embedded server has no program, and what cannot be run is no verdict.
    run("qps>-90%", &["--set", "server.kind=embedded"]).exits_with(2).complains("--against=");
    let words = ["run", "./experiment.toml", "--against", "./nowhere"];
    room.dnslab(&words).exits_with(2).complains("nowhere");
    room.dnslab(&["run", "--against", &old, "--limit", "x"]).exits_with(2);
}

#[test]
fn a_history_of_real_sessions() {
    let room = Room::with_load();
    let first = session(&room, "first", 2, "");
    let second = session(&room, "second", 2, "");
    let words = ["history", &second, &first, "--figure", "cpu_per_query"];
    let files = ["--page", "history.html", "--csv", "history.csv"];
    let done = room.dnslab(&[&words[..], &files].concat()).exits_with(0);
    let done = done.prints("2 sessions are too few").prints("page: history.html");
    let csv = fs::read_to_string(room.path().join("history.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3, "{csv}{done}");
    assert!(lines[1] < lines[2] && lines[1].contains("udp,server_cpu_per_query_ns,"), "{csv}");
    let page = fs::read_to_string(room.path().join("history.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg "), "{page}");
    room.dnslab(&["history", &first, "nowhere"]).exits_with(2).errors(1);
    room.dnslab(&["history", &first, "--figure", "lost"])
        .exits_with(2)
        .complains("it is one of qps");
}
