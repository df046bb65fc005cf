//! The report again from the results alone, and the limits of `--limit`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use dnslab_record::LoadMode;

use crate::evidence::{REPORT, files, is_disturbed, valid_records};
use crate::room::{Room, SHORT, UDP_AND_TCP};

#[test]
fn the_report_is_made_again_from_the_results_alone() {
    let room = Room::with_load();
    let results = room.short_results(2);
    let before = files(results.path());
    // In another place, under another name, without the files of a report.
    let moved = room.path().join("moved");
    fs::rename(results.path(), &moved).unwrap();
    for name in REPORT {
        fs::remove_file(moved.join(name)).unwrap();
    }
    let done = room.dnslab(&["report", "moved"]).exits_with(0).prints("report: moved/report.html");
    let after = files(&moved);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{done}");
    for (name, content) in &before {
        assert!(after.get(name) == Some(content), "{name:?} differs: {done}");
    }
}

#[test]
fn a_directory_of_a_stranger_is_read_and_written_inside_alone() {
    let room = Room::with_load();
    let results = room.short_results(2);
    let (own, secret) = (results.path().to_owned(), room.write("secret", "of somebody else\n"));
    let path = own.to_str().expect("a temporary folder has a plain name");
    for name in REPORT {
        symlink(&secret, own.join(format!("{name}.part"))).unwrap();
        fs::remove_file(own.join(name)).unwrap();
        symlink(&secret, own.join(name)).unwrap();
    }
    for name in ["server.log", "other.conf"] {
        let planted = own.join("runs/udp-1/server").join(name);
        fs::remove_file(&planted).ok();
        symlink(&secret, planted).unwrap();
    }
    room.dnslab(&["report", path]).exits_with(0);
    is_untouched(&own, &secret);
    for name in REPORT {
        assert!(fs::symlink_metadata(own.join(name)).unwrap().is_file(), "{name} is a link");
    }
    // A file that is required but is a link is refused by name, and nothing of it is shown.
    let (report, resume): (&[&str], &[&str]) = (&["report", path], &["run", "--resume", path]);
    for (name, words) in [
        ("session.json", report),
        ("session.json", resume),
        ("runs", report),
        ("runs", resume),
        ("runs/udp-1", report),
        ("runs/udp-1", resume),
        ("runs/udp-1/record.json", report),
        ("runs/udp-1/record.json", resume),
        ("runs/udp-1/server", report),
        ("capacity.json", report),
        ("experiment.toml", resume),
        ("session.lock", resume),
    ] {
        let (planted, aside) = (own.join(name), room.path().join("aside"));
        let is_there = planted.exists();
        if is_there {
            fs::rename(&planted, &aside).unwrap();
        }
        symlink(&secret, &planted).unwrap();
        let done = room.dnslab(words).errors(1);
        let done = done.complains(&format!("{name} is a symbolic link"));
        assert!(!done.stderr.contains("of somebody else"), "{done}");
        fs::remove_file(&planted).unwrap();
        if is_there {
            fs::rename(&aside, &planted).unwrap();
        }
        is_untouched(&own, &secret);
    }
    // A repeated run does not write into somebody else's folder.
    let other = room.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::remove_dir_all(own.join("runs/tcp-2")).unwrap();
    symlink(&other, own.join("runs/tcp-2")).unwrap();
    room.dnslab(resume).exits_with(1).errors(1).complains("runs/tcp-2 is a symbolic link");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
    fs::remove_file(own.join("runs/tcp-2")).unwrap();
    room.dnslab(resume).exits_with(0);
    valid_records(&results, 4);
}

/// Nothing was written into the secret, and nothing of it is in the directory.
#[track_caller]
fn is_untouched(directory: &Path, secret: &Path) {
    assert_eq!(fs::read_to_string(secret).unwrap(), "of somebody else\n");
    for (name, content) in files(directory) {
        assert!(!String::from_utf8_lossy(&content).contains("of somebody else"), "{name:?}");
    }
}

#[test]
fn what_a_stranger_wrote_acts_on_no_terminal_and_takes_no_time() {
    let room = Room::with_load();
    let results = room.short_results(1);
    let path = results.path().to_str().expect("a temporary folder has a plain name");
    let file = results.path().join("session.json");
    let read = || -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap()
    };
    let mut session = read();
    let written = "=1+1\u{1b}[2J\u{9b}\u{202e}";
    session["question"] = written.into();
    session["skipped"] = serde_json::json!([{ "variant": "x", "reason": written }]);
    fs::write(&file, session.to_string()).unwrap();
    for words in [["report", path].as_slice(), &["report", path, "--json"]] {
        let done = room.dnslab(words).exits_with(0);
        assert!(!done.stdout.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{done}");
    }
    let mut session = read();
    session["variants"] = (0..5_000).map(|number| format!("v{number}")).collect();
    session["skipped"] = serde_json::json!([]);
    fs::write(&file, session.to_string()).unwrap();
    let done = room.dnslab(&["report", path]).exits_with(1).errors(1);
    done.complains("session.json has 5000 variants; dnslab reads up to 1000");
    // A name that leads out of the directory.
    session["variants"] = serde_json::json!(["../\u{1b}x"]);
    fs::write(&file, session.to_string()).unwrap();
    let done = room.dnslab(&["report", path]).exits_with(1).errors(1);
    let done = done.complains("`../\\u{1b}x` cannot be the name of a variant");
    assert!(!done.stderr.contains('\u{1b}'), "{done}");
}

#[test]
fn quietly_and_as_json() {
    let room = Room::with_load();
    room.experiment(&format!("repeat.runs = 2\n{SHORT}{UDP_AND_TCP}"));
    let done = room.dnslab(&["run", "./experiment.toml", "--quiet"]).exits_with(0);
    assert!(!done.stdout.contains("[1/") && !done.stdout.contains("runs of 2 variants"), "{done}");
    assert!(done.stdout.contains("queries/s") && !done.stdout.contains('\u{1b}'), "{done}");
    let results = room.results();
    let path = results.path().to_str().unwrap();
    let done = room.dnslab(&["report", path, "--json"]).exits_with(0);
    let summary: serde_json::Value =
        serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}{done}"));
    assert_eq!(summary["variants"].as_array().map(Vec::len), Some(2), "{done}");
}

#[test]
fn a_cost_over_the_limit_has_its_own_exit_code() {
    let room = Room::with_load();
    // The load generator may be the bottleneck of the fast one, so nothing is judged by the rate.
    room.experiment(&format!(
        "baseline = \"fast\"\nrepeat.runs = 3\n{SHORT}\
         [[variant]]\nname = \"fast\"\n\
         [[variant]]\nname = \"slow\"\nserver.delay = \"50ms\"\n"
    ));
    let limited = |limit: &str, further: &[&str]| {
        let words = ["run", "./experiment.toml", "--results", limit, "--limit", limit];
        room.dnslab(&[&words[..], further].concat())
    };
    let results = |limit: &str| {
        let found = crate::room::folders(&room.path().join(limit));
        dnslab_results::ResultsDirectory::open(&found[0]).unwrap()
    };
    let read = |limit: &str, name: &str| {
        std::fs::read_to_string(results(limit).path().join(name)).unwrap()
    };
    // A machine that others use gives no certain word.
    let is_disturbed = |limit: &str| is_disturbed(&results(limit));
    let done = limited("p50=1%", &["--limit", "memory<500GiB"]);
    let (code, word, says) = match is_disturbed("p50=1%") {
        false => (4, "FAIL", "fails"),
        true => (3, "UNCLEAR", "is unclear"),
    };
    let done = done.exits_with(code);
    valid_records(&results("p50=1%"), 6);
    // The verdict is the first thing everywhere: one line for all limits, then one for each.
    let overall = format!("{word}: 1 of 2 limits {says}");
    let begins = format!("{word} slow: p50 ");
    let is_ruling = |line: &str| line.starts_with(&begins) && line.contains("limit 1 %)");
    let after_runs = |line: &&str| !line.starts_with('[') && !line.is_empty();
    let last_run = done.stdout.lines().rev().position(|line| line.starts_with('['));
    let from = done.stdout.lines().count() - last_run.unwrap_or_default();
    let screen: Vec<&str> = done.stdout.lines().skip(from).filter(after_runs).collect();
    assert_eq!(screen[0], overall, "{done}");
    assert!(is_ruling(screen[1]) && screen[2].starts_with("PASS memory: at worst "), "{done}");
    let table = read("p50=1%", "table.md");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], format!("**{overall}**"));
    assert!(lines[2].strip_prefix("- ").is_some_and(is_ruling), "{table}");
    let page = read("p50=1%", "report.html");
    let main = page.split_once("<main>").unwrap().1.trim_start();
    let first = format!("<section class=\"hero\">\n<h2 id=\"verdict\">{overall}</h2>");
    assert!(main.starts_with(&first), "{}", &main[..200]);
    let summary: serde_json::Value = serde_json::from_str(&read("p50=1%", "summary.json")).unwrap();
    assert_eq!(summary["ruling"], word.to_lowercase());
    let ruling = &summary["rulings"][0];
    assert_eq!((&ruling["limit"], &ruling["metric"]), (&"p50=1%".into(), &"p50".into()));
    assert_eq!(
        (&ruling["ruling"], &ruling["variants"][0]["variant"]),
        (&word.to_lowercase().into(), &"slow".into())
    );
    assert!(ruling["variants"][0]["found"]["value"].as_f64().unwrap() > 0.01, "{ruling}");

    // The limits are part of the results: the report that is written again has them.
    let path = results("p50=1%").path().to_owned();
    room.dnslab(&["report".as_ref(), path.as_os_str()]).exits_with(0);
    assert_eq!(read("p50=1%", "table.md"), table);

    // A limit that nothing exceeds, in its older name.
    let limit = "peak_memory_octets=100000%";
    let done = limited(limit, &[]);
    let (code, word, says) = match is_disturbed(limit) {
        false => (0, "PASS", "passes"),
        true => (3, "UNCLEAR", "is unclear"),
    };
    let done = done.exits_with(code).prints(&format!("{word} slow: memory "));
    let table = read(limit, "table.md");
    assert!(table.starts_with(&format!("**{word}: 1 of 1 limit {says}**\n")), "{done}");
}

/// One line of conditions is everywhere, and each of them is what the records say.
#[test]
fn the_conditions_are_those_of_the_records() {
    let room = Room::with_load();
    room.experiment(
        "baseline = \"udp\"\nserver.kind = \"embedded\"\nload.clients = 7\nload.outstanding = 3\n\
         load.duration = \"300ms\"\nload.warm_up = \"50ms\"\ncommon.duration = \"300ms\"\n\
         common.rate = 2_000\nrepeat.runs = 2\n[[variant]]\nname = \"udp\"\n[[variant]]\nname = \"tcp\"\n\
         load.transport = \"tcp\"\n",
    );
    let done = room.dnslab(&["run", "./experiment.toml", "--quiet"]).exits_with(0);
    let results = room.results();
    let records = valid_records(&results, 4);
    let read = |name: &str| fs::read_to_string(results.path().join(name)).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    let conditions = summary["conditions"].as_str().unwrap_or_else(|| panic!("{summary}"));
    let on_screen = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(on_screen.contains(conditions), "`{conditions}` is not on the screen: {done}");
    assert!(read("table.md").contains(conditions), "{}", read("table.md"));
    assert!(read("report.html").contains(&conditions.replace('\'', "&#39;")), "{conditions}");
    let parts: Vec<&str> = conditions.split("; ").collect();
    let [server, load, place, latencies, rounds] = parts[..] else { panic!("{conditions}") };
    assert!(place.ends_with(", loopback"), "{place}");
    for record in &records {
        let cpus = record.server.cpus.len();
        assert!(server.starts_with("dnslab's own server"), "{server}: {:?}", record.server.kind);
        assert_eq!(server.ends_with(", 1 CPU"), cpus == 1, "{server}: {cpus} CPUs");
        let LoadMode::Closed { outstanding } = record.load.mode else {
            panic!("{:?}", record.load)
        };
        assert_eq!(load, format!("{} clients, {outstanding} outstanding", record.load.clients));
        let common = &record.common_load.as_ref().unwrap().load.mode;
        let LoadMode::Open { rate_qps, .. } = common else { panic!("{common:?}") };
        assert_eq!((latencies, *rate_qps), ("latencies at 2,000 queries/s", 2_000.0));
        let seconds = record.load.duration_ns as f64 / 1e9;
        assert_eq!(rounds, format!("2 rounds of {seconds} s"));
    }
    // It is known to those who read the session, too.
    assert_eq!(results.session().unwrap().common_rate_qps, Some(2_000.0));
}
