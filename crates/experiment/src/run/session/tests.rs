//! Sessions that begin and are resumed, without any run.

use std::fs;

use super::*;

/// A session with two runs.
pub(super) fn session() -> dnslab_record::Session {
    let case = |repetition| CaseId { variant: "udp".to_owned(), repetition };
    dnslab_record::Session {
        format: SESSION_FORMAT,
        dnslab: "0.1.0".to_owned(),
        name: "x".to_owned(),
        question: String::new(),
        baseline: "udp".to_owned(),
        variants: vec!["udp".to_owned()],
        skipped: Vec::new(),
        answered_by: None,
        margin: 0.02,
        seed: 1,
        started: "2026-11-01T00:00:00Z".to_owned(),
        command: Vec::new(),
        host: Vec::new(),
        inputs: Vec::new(),
        plan: vec![case(1), case(2)],
        ..dnslab_record::Session::default()
    }
}

/// No test here starts the guard.
fn guard() -> GuardProgram {
    GuardProgram { path: "/nonexistent/guard".into(), arguments: Vec::new() }
}

fn options(results: PathBuf) -> SessionOptions {
    let (command, limits, recording) = (Vec::new(), Vec::new(), None);
    SessionOptions {
        results,
        guard: guard(),
        command,
        limits,
        recording,
        against: String::new(),
        common_rate_qps: None,
    }
}

/// Begins an experiment of one variant that asks what is in the query file of `folder`.
fn begin(folder: &Path) -> Session {
    let queries = folder.join("queries");
    fs::write(&queries, "www.example A\n").unwrap();
    let file = folder.join("x.toml");
    let text =
        "name = \"x\"\nload.queries = \"queries\"\nrepeat.runs = 2\n[[variant]]\nname = \"udp\"\n";
    fs::write(&file, text).unwrap();
    let (experiment, _) = crate::load(&file.to_string_lossy(), &[]).unwrap();
    Session::begin(experiment, options(folder.join("results"))).unwrap()
}

/// Begins, changes something in the folder of the test or the results, and resumes. Returns the error, if
/// any.
fn resume_after(change: impl FnOnce(&Path, &ResultsDirectory)) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let begun = begin(folder.path());
    change(folder.path(), begun.results());
    let path = begun.results().path().to_owned();
    drop(begun);
    let resumed = Session::resume(&path, 0, guard(), &|_| false);
    resumed.err().map(|error| error.to_string())
}

fn replace(results: &ResultsDirectory, from: &str, to: &str) {
    let path = results.path().join("session.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn an_experiment_goes_on_where_it_was() {
    let error = resume_after(|_, results| assert_eq!(results.session().unwrap().inputs.len(), 1));
    assert_eq!(error, None);
}

#[test]
fn other_conditions_are_refused_with_all_differences_and_a_remedy() {
    let version = format!("\"dnslab\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let error = resume_after(|folder, results| {
        replace(results, &version, "\"dnslab\": \"0.0.9\"");
        replace(results, "\"value\": \"Linux ", "\"value\": \"Minix ");
        fs::write(folder.join("queries"), "www.example AAAA\n").unwrap();
    });
    let error = error.expect("it was resumed");
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 5, "{error}");
    assert!(lines[0].starts_with("this experiment cannot be resumed: "), "{error}");
    let here = env!("CARGO_PKG_VERSION");
    assert_eq!(lines[1], format!("  dnslab: it was `0.0.9`, now it is `{here}`"));
    assert!(lines[2].starts_with("  kernel: it was `Minix "), "{error}");
    assert!(lines[2].contains("`, now it is `Linux "), "{error}");
    assert!(lines[3].starts_with("  query file /") && lines[3].contains("sha256:"), "{error}");
    let remedy = lines[4].strip_prefix("  hint:    begin anew: dnslab run ").expect("a remedy");
    assert!(remedy.ends_with("-x/experiment.toml"), "{error}");
}

#[test]
fn a_session_of_before_the_digests_is_resumed() {
    let error = resume_after(|_, results| {
        let path = results.path().join("session.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut session: serde_json::Value = serde_json::from_str(&text).unwrap();
        session.as_object_mut().unwrap().remove("inputs").expect("the inputs were there");
        fs::write(&path, session.to_string()).unwrap();
        assert!(results.session().unwrap().inputs.is_empty());
    });
    assert_eq!(error, None);
}

#[test]
fn what_a_kill_left_aside_is_decided_when_the_experiment_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let begun = begin(folder.path());
    let run = begun.results().run_path(&begun.facts().plan[0]);
    let aside = run.with_file_name("udp-1.replaced");
    fs::create_dir_all(&aside).unwrap();
    fs::write(aside.join("record.json"), "not read: it is no record").unwrap();
    // The record cannot be read, but it is back.
    let path = begun.results().path().to_owned();
    drop(begun);
    let error = Session::resume(&path, 0, guard(), &|_| false).unwrap_err().to_string();
    assert!(error.contains("udp-1/record.json"), "{error}");
    assert!(run.join("record.json").exists() && !aside.exists());
}

#[track_caller]
fn check_locked(path: &Path) {
    let error = Session::resume(path, 0, guard(), &|_| false).unwrap_err().to_string();
    let holder = format!("process {} on {}, since 2", std::process::id(), host::name());
    assert!(error.starts_with("another session writes into /"), "{error}");
    assert!(error.contains(&holder), "{error}");
}

#[test]
fn one_session_writes_into_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let begun = begin(folder.path());
    let path = begun.results().path().to_owned();
    check_locked(&path);
    // Reading needs no lock.
    assert_eq!(ResultsDirectory::open(&path).unwrap().session().unwrap().plan.len(), 2);
    drop(begun);
    let resumed = Session::resume(&path, 0, guard(), &|_| false).unwrap();
    check_locked(&path);
    drop(resumed);
    assert!(!path.join("session.lock").exists());
}

#[test]
fn the_experiment_of_a_stranger_is_no_link() {
    let error = resume_after(|folder, results| {
        let (secret, file) = (folder.join("secret"), results.path().join("experiment.toml"));
        fs::write(&secret, "do not show").unwrap();
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&secret, &file).unwrap();
    });
    let error = error.expect("it was resumed");
    assert!(error.contains("experiment.toml is a symbolic link"), "{error}");
    assert!(!error.contains("do not show"), "{error}");
}

#[test]
fn a_query_file_that_is_gone_ends_it_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiment = begin(folder.path()).experiment().clone();
    experiment.variants[0].load.queries = Some(folder.path().join("none"));
    let results = folder.path().join("other");
    let error = Session::begin(experiment, options(results.clone())).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the query file /"), "{error}");
    assert!(!results.exists());
}
