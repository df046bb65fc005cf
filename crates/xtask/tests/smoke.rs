//! `versus`, `truth`, `matrix` and `attack` at smoke size, with the real reflector, BIND and dnsperf. Every
//! work leaves its figures and nothing else, also when it is interrupted. Speed and truth are not judged.

mod beside;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use beside::dnslab;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::Value;

/// How long to wait for a namespace or for the end of an interrupted benchmark. Only a program that hangs
/// takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The matrix takes the machine alone: its servers must not wait for other tests.
static MACHINE: RwLock<()> = RwLock::new(());

#[test]
fn every_work_leaves_figures_and_nothing_else() {
    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("figures.json");
    let temporary = temporary(folder.path());
    let mut command = versus(&temporary, &dnslab());
    command.arg("--smoke").arg("--json").arg(&json);
    let may_all = may_reflect();
    if !may_all {
        println!("not root: the works `udp`, `pacing` and `receive-time` are not tried");
        command.args(["--only", "streams,quic,generator,batch-delay"]);
    }
    let output = whole(&mut command, &temporary);
    let shown = shown(&output);
    assert!(output.status.success(), "{shown}");

    let text = fs::read_to_string(&json).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let rows = |table: &str, work: &str| -> Vec<&Value> {
        let rows = file["outcome"][table].as_array().unwrap();
        rows.iter().filter(|row| work.is_empty() || row["work"] == work).collect()
    };
    if may_all {
        assert_eq!(rows("comparisons", "udp").len(), 2, "{shown}");
        assert_eq!(rows("pacing", "").len(), 2, "{shown}");
    }
    // Two figures for each transport.
    for transport in ["tcp", "dot", "doh2"] {
        let has_transport = |row: &&Value| row["case"].as_str().unwrap().starts_with(transport);
        let count = rows("comparisons", "streams").into_iter().filter(has_transport).count();
        assert_eq!(count, 2, "{transport}: {shown}");
    }
    for transport in ["doq", "doh3"] {
        let has_transport = |row: &&Value| row["ours"][0] == transport;
        let count = rows("comparisons", "quic").into_iter().filter(has_transport).count();
        assert_eq!(count, 1, "{transport}: {shown}");
    }
    // dnslab: six transports, and one more row with shared records. dnsperf: four, and one beside those.
    assert_eq!(rows("generators", "").len(), 12, "{shown}");
    for row in rows("generators", "") {
        assert!(row["answered_qps"].as_f64().is_some_and(|qps| qps > 0.0), "{row}");
        assert!(row["busy_share"].as_f64().is_some_and(|share| share > 0.0), "{row}");
        assert_eq!(row["program"] == "dnslab", row["ratio"].is_null(), "{row}");
    }
    // Two batch delays; two clocks at two loads, of which one needs the reflector.
    assert_eq!(rows("batch_delays", "").len(), if may_all { 6 } else { 2 }, "{shown}");
    for row in rows("comparisons", "") {
        for figure in [&row["ours"][1], &row["theirs"][1], &row["ratio"]["of_medians"]] {
            assert!(figure.as_f64().is_some_and(|figure| figure > 0.0), "{row}");
        }
        assert!(shown.contains(row["case"].as_str().unwrap()), "{row} is not in\n{shown}");
    }
    for row in rows("pacing", "") {
        assert!(row["error"]["qps"].as_f64().is_some_and(|qps| qps > 0.0), "{row}");
        assert!(row["error"]["windows"].as_u64().is_some_and(|windows| windows > 0), "{row}");
    }
    for row in rows("batch_delays", "") {
        for figure in ["answered_qps", "p50_us", "p99_us", "cpu_us_per_answer"] {
            assert!(row[figure].as_f64().is_some_and(|figure| figure > 0.0), "{figure} of {row}");
        }
    }
}

#[test]
fn kills_full_disks_and_what_is_too_much_are_survived() {
    if !geteuid().is_root() {
        println!("not root: nothing is mounted, so no disk can be filled up");
        return;
    }
    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let temporary = temporary(folder.path());
    let mut command = xtask(&temporary, "attack", &dnslab());
    let output = whole(command.arg("--smoke"), &temporary);
    let shown = shown(&output);
    assert!(output.status.success() && shown.contains("\n0 faults were found."), "{shown}");
}

#[test]
fn every_server_answers_over_every_transport() {
    let _machine = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let temporary = temporary(folder.path());
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let dnsproxy = tools.join("dnsproxy");
    assert!(dnsproxy.exists(), "no {}: ./test builds it", dnsproxy.display());
    let mut command = xtask(&temporary, "matrix", &dnslab());
    command.args(["--smoke", "--dnsproxy"]).arg(dnsproxy).arg("--folder").arg(folder.path());
    // Where ./test puts CoreDNS and the root folders.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path).chain([tools.clone()]);
    command.env("PATH", std::env::join_paths(path).unwrap());
    command.env("DNSLAB_CACHE", tools.join("cache"));
    let output = whole(&mut command, &temporary);
    let page = fs::read_to_string(folder.path().join("MATRIX.md")).unwrap_or_default();
    assert!(output.status.success(), "{}", shown(&output));
    // The installed servers, and the two programs that ask or answer besides.
    for name in [
        "embedded",
        "bind",
        "bind-9.16",
        "bind-9.20",
        "knot",
        "knot-3.4",
        "nsd",
        "pdns-auth",
        "unbound",
        "knot-resolver",
        "dnsmasq",
        "stubby",
        "coredns",
        "dnsdist",
        "pdns-recursor",
        "dnsproxy",
        "embedded, asked by dnsperf",
    ] {
        let is_right =
            |line: &str| line.starts_with(&format!("| {name}")) && line.ends_with("| yes |");
        assert!(page.lines().any(is_right), "{name} is not in\n{page}");
    }
}

#[test]
fn an_interrupted_benchmark_leaves_nothing() {
    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let temporary = temporary(folder.path());
    let work = if may_reflect() { "udp" } else { "batch-delay" };
    let mut command = versus(&temporary, &dnslab());
    command.args(["--only", work, "--seconds", "30"]);
    let output = interrupted(&mut command, &temporary);
    assert!(!output.status.success(), "{}", shown(&output));
    assert!(shown(&output).contains("interrupted"), "{}", shown(&output));
}

fn check_error(dnslab: &Path, arguments: &[&str], parts: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let temporary = temporary(folder.path());
    let output = versus(&temporary, dnslab).args(arguments).output().unwrap();
    let shown = shown(&output);
    assert!(!output.status.success(), "{arguments:?}: {shown}");
    for part in parts {
        assert!(shown.contains(part), "{arguments:?}: no {part} in\n{shown}");
    }
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    let no_peer = ["--only", "streams", "--dnsperf", "/nonexistent/dnsperf"];
    let dnslab = dnslab();
    check_error(
        &dnslab,
        &no_peer,
        &["/nonexistent/dnsperf", "apt-get install dnsperf", "streams was not"],
    );
    check_error(Path::new("/nonexistent/dnslab"), &[], &["--dnslab", "/nonexistent/dnslab"]);
    check_error(&dnslab, &["--seconds", "31"], &["not between 0.1 and 30"]);
}

/// The page of the evidence in a folder, with what this run adds.
fn truth(folder: &Path, arguments: &[&str]) -> String {
    let temporary = folder.join("temporary");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = xtask(&temporary, "truth", &dnslab());
    command.arg("--folder").arg(folder).args(arguments);
    let output = whole(&mut command, &temporary);
    assert!(output.status.success(), "{}", shown(&output));
    fs::read_to_string(folder.join("TRUTH.md")).unwrap()
}

#[test]
fn every_kind_of_known_truth_is_played_and_added_up() {
    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let page = truth(folder.path(), &["--smoke"]);
    let log = fs::read_to_string(folder.path().join("truth.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: BTreeSet<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds.len(), lines.len()), (18, 18), "{log}");
    for line in &lines {
        assert_eq!(line["failure"], Value::Null, "{line}");
        let kind = line["kind"].as_str().unwrap();
        // A run on a busy machine may be invalid, and then there is nothing to compare.
        let is_whole = line["invalid_runs"] == 0;
        if kind.starts_with("limit-") {
            assert!(!is_whole || line["limits"][0].is_string(), "{line}");
            continue;
        }
        assert!(!is_whole || line["comparisons"][0]["metric"].is_string(), "{line}");
        assert_eq!(kind.starts_with("cost-"), line["busy_ns"].as_u64().is_some(), "{line}");
        assert_eq!(kind == "loss", line["lost"][1].as_u64().is_some(), "{line}");
    }
    for part in ["| equal variants, default length | 1 of 100 |", "by 1 of 50 experiments"] {
        assert!(page.contains(part), "no {part} in\n{page}");
    }
    // Without time nothing is added, and the page stays the same.
    assert_eq!(truth(folder.path(), &["--for", "0s"]), page);
    assert_eq!(fs::read_to_string(folder.path().join("truth.jsonl")).unwrap(), log);
}

#[test]
fn interrupted_portions_end_after_their_experiment_and_add_up() {
    let _machine = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let temporary = temporary(folder.path());
    let mut count = 0;
    for portion in 1..=2 {
        let mut command = xtask(&temporary, "truth", &dnslab());
        command.args(["--smoke", "--folder"]).arg(folder.path());
        let output = interrupted(&mut command, &temporary);
        assert!(output.status.success(), "{}", shown(&output));
        let log = fs::read_to_string(folder.path().join("truth.jsonl")).unwrap();
        let before = count;
        count = log.lines().count();
        assert!((before + 1..before + 12).contains(&count), "{log}");
        let page = fs::read_to_string(folder.path().join("TRUTH.md")).unwrap();
        let row = format!("| equal variants, default length | {portion} of 100 |");
        assert!(page.contains(&row), "no {row} in\n{page}");
    }
}

fn versus(temporary: &Path, dnslab: &Path) -> Command {
    xtask(temporary, "versus", dnslab)
}

fn xtask(temporary: &Path, subcommand: &str, dnslab: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.env("TMPDIR", temporary).arg(subcommand).arg("--dnslab").arg(dnslab);
    command
}

fn temporary(folder: &Path) -> PathBuf {
    let path = folder.join("temporary");
    fs::create_dir(&path).unwrap();
    path
}

fn may_reflect() -> bool {
    geteuid().is_root()
}

fn has_results(temporary: &Path) -> bool {
    let folders = fs::read_dir(temporary).unwrap().flatten();
    folders.into_iter().any(|folder| folder.path().join("results").exists())
}

fn started(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs it to its end, after which nothing is left.
#[track_caller]
fn whole(command: &mut Command, temporary: &Path) -> Output {
    let child = started(command);
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert_nothing_left(pid, temporary, &output);
    output
}

/// Interrupts it when a load or an experiment is on its way: its results have a folder. Nothing is left then.
#[track_caller]
fn interrupted(command: &mut Command, temporary: &Path) -> Output {
    let mut child = started(command);
    let pid = child.id();
    let begun = Instant::now();
    while !has_results(temporary) {
        if child.try_wait().unwrap().is_some() {
            panic!("{}", shown(&child.wait_with_output().unwrap()));
        }
        assert!(begun.elapsed() < PATIENCE, "no load began");
        thread::sleep(Duration::from_millis(50));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("it did not end: {}", shown(&child.wait_with_output().unwrap()));
        }
        thread::sleep(Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    assert_nothing_left(pid, temporary, &output);
    output
}

/// No namespace, no file and no process of the benchmark with this process id.
#[track_caller]
fn assert_nothing_left(pid: u32, temporary: &Path, output: &Output) {
    let namespace = Path::new("/run/netns").join(format!("dnslab-versus-{pid}"));
    assert!(!namespace.exists(), "{} is left: {}", namespace.display(), shown(output));
    let files: Vec<_> = fs::read_dir(temporary).unwrap().flatten().collect();
    assert!(files.is_empty(), "left: {files:?}: {}", shown(output));
    // Everything that it starts has a path below its folder among its arguments.
    let path = temporary.to_str().unwrap();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        assert!(!words.contains(path), "{} is left: {words}", process.path().display());
    }
}

fn shown(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets)).join("\n")
}
