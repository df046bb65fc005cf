//! `action.yml` and `templates/gate.yml`, run as a runner of GitHub and one of GitLab run them: their expressions are
//! evaluated, their scripts are run by the shells of the runners, and a release is fetched over HTTP.

#[path = "../beside/mod.rs"]
mod beside;
mod github;
mod gitlab;
mod release;
mod servers;

use std::path::{Path, PathBuf};
use std::process::Command;

use github::ACTION;
use serde_json::Value;
use servers::{OF_EQUAL, Servers, State};

/// What a job left.
#[derive(Debug)]
struct Done {
    code: i32,
    /// Both streams, as a log of a job has them.
    said: String,
}

impl Done {
    #[track_caller]
    fn exits_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.said);
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(self.said.contains(text), "`{text}` is not in:\n{}", self.said);
        self
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents of YAML that a program of Python prints as JSON, after it has read a file of the repository and a
/// value.
fn python(script: &str, path: &str, value: &Value) -> Result<Value, String> {
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(root().join(path)).arg(value.to_string());
    let output = command.output().expect("python3 can be run");
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn it_takes_no_action_of_others() {
    for step in ACTION["runs"]["steps"].as_array().unwrap() {
        let run = step["run"].as_str().expect("it uses the action of somebody else");
        assert!(!run.contains("${{"), "a shell reads what an input says");
    }
}

#[test]
fn the_weak_form_in_both() {
    let servers = Servers::new();
    let [base, equal, slower, once] = [
        ("base", 4, ""),
        ("equal", 4, ""),
        ("slower", 4, "server.busy = \"1ms\""),
        ("once", 1, ""),
    ]
    .map(|(name, runs, keys)| servers.session(name, runs, keys));
    let invalid = servers.with_an_invalid_run(&once);
    let limits = "cpu_per_query<+200%, lost<50%";
    let cases = [
        (&equal, OF_EQUAL, "fail", 0, "pass"),
        (&slower, limits, "pass", 4, "fail"),
        (&once, limits, "fail", 3, "unclear"),
        (&once, limits, "pass", 3, "unclear"),
        (&invalid, limits, "pass", 3, "unclear"),
    ];
    for (number, (new, limits, unclear, code, ruling)) in cases.into_iter().enumerate() {
        let results = format!("made by {number}");
        let given = [("base", base.as_str()), ("new", new), ("limits", limits)];
        let given = [&given[..], &[("unclear", unclear), ("results", &results)]].concat();
        let job = github::Job::new(servers.path());
        let may_pass = ruling == "unclear" && unclear == "pass" && *new != invalid;
        let done = job.run(&given).exits_with(if may_pass { 0 } else { code });
        assert_eq!(job.output("ruling"), ruling, "{}", done.said);
        assert_eq!(job.output("exit-code"), code.to_string(), "{}", done.said);
        assert_eq!(job.output("results"), new.as_str(), "{}", done.said);
        let word = format!("**{}: ", ruling.to_uppercase());
        assert!(job.summary().starts_with(&word), "{}", job.summary());
        assert!(Path::new(&job.output("junit")).is_file(), "{}", done.said);
        match (code, may_pass) {
            (0, _) => assert!(!done.said.contains("\n::"), "{}", done.said),
            (_, true) => drop(done.says("::warning title=dnslab%2C cannot tell::")),
            (3, _) => drop(done.says("::error title=dnslab%2C cannot tell::")),
            _ => drop(done.says("::error title=dnslab%2C worse::")),
        }

        let results = format!("gitlab{number}");
        let given = [&given[..4], &[("results", &results)]].concat();
        let job = gitlab::job(&given).unwrap();
        let done = job.run(servers.path(), "bash");
        let done = done.exits_with(if *new == invalid { 1 } else { code });
        let expected = match (code, may_pass) {
            (0, _) => gitlab::Status::Success,
            (_, true) => gitlab::Status::Warning,
            _ => gitlab::Status::Failed,
        };
        assert_eq!(job.status(&done), expected, "{}", done.said);
        assert!(servers.path().join(job.junit()).is_file(), "{}", done.said);
    }
}

#[test]
fn the_strong_form_in_both() {
    let servers = Servers::new();
    // It names a program, so dnslab asks whose it is.
    let program = "server.binary = \"/usr/sbin/named\"";
    let keys = format!("server.kind = \"bind\"\n{program}\nrepeat.runs = 2\n");
    servers.experiment("gate.toml", &keys);
    let old = servers.old();
    let given = [("experiment", "gate.toml"), ("against", &old)];
    let with = |further: &[(&'static str, &'static str)]| {
        [&given[..], &[("binary", "/usr/sbin/named")], further].concat()
    };

    // A server that answers at all. Its program is that of the experiment.
    let job = github::Job::new(servers.path());
    let done = job.run(&[&given[..], &[("limits", "lost<50%")]].concat());
    let done = match servers.state("dnslab-gate") {
        State::Invalid => done.exits_with(3),
        State::Quiet | State::Disturbed => done.exits_with(0).says("PASS"),
    };
    assert!(job.summary().contains("| udp-base |"), "{}", done.said);
    assert!(Path::new(&job.output("results")).join("report.html").is_file(), "{}", done.said);
    let installed = job.path().expect("dnslab is in PATH of later steps");
    assert!(installed.join("dnslab").is_file(), "{}", installed.display());
    // No BIND is as small.
    let given_now = [&given[..], &[("limits", "memory<1MiB"), ("results", "gitlab")]].concat();
    let job = gitlab::job(&given_now).unwrap();
    let done = job.run(servers.path(), "dash");
    match servers.state("gitlab") {
        State::Quiet => done.exits_with(4).says("FAIL"),
        State::Disturbed => done.exits_with(3).says("UNCLEAR"),
        State::Invalid => done,
    };
    // What only shows a plan has judged nothing.
    let given_now = with(&[("arguments", "--dry-run"), ("results", "plan")]);
    let done = github::Job::new(servers.path()).run(&given_now).exits_with(2);
    done.says("::error title=dnslab%2C input arguments::");
    let given_now = with(&[("arguments", "--dry-run"), ("results", "gitlab-plan")]);
    let job = gitlab::job(&given_now).unwrap();
    job.run(servers.path(), "dash").exits_with(2).says("error: input arguments: ");

    // One round says nothing, and words of `arguments` are words of dnslab.
    let given_now = with(&[
        ("limits", "cpu_per_query<+400%"),
        ("arguments", "--set repeat.runs=1\n--quiet"),
        ("results", "one"),
        ("unclear", "pass"),
    ]);
    let job = github::Job::new(servers.path());
    let done = job.run(&given_now);
    match servers.state("one") {
        State::Invalid => done.exits_with(3),
        State::Quiet | State::Disturbed => {
            done.exits_with(0).says("::warning title=dnslab%2C cannot tell::")
        }
    };
    assert_eq!(job.output("ruling"), "unclear");

    // A program that is no server is not noise.
    let given = [&given[..], &[("binary", "/bin/false"), ("unclear", "pass")]].concat();
    let job = github::Job::new(servers.path());
    let done = job.run(&[&given[..], &[("results", "none")]].concat()).exits_with(3);
    done.says("::error title=dnslab%2C cannot tell::");
    let job = gitlab::job(&[&given[..], &[("results", "gitlab-none")]].concat()).unwrap();
    let done = job.run(servers.path(), "bash").exits_with(1).says("a run does not count");
    assert_eq!(job.status(&done), gitlab::Status::Failed);
}

#[test]
fn bad_inputs_are_refused_by_their_names() {
    let servers = Servers::new();
    let strong = [("experiment", "gate.toml"), ("against", "old")];
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("version", &[("version", "latest")]),
        ("sha256", &[("sha256", "")]),
        ("sha256", &[("sha256", &"0".repeat(64))]),
        ("download", &[("version", "9.9.9")]),
        ("unclear", &[("unclear", "maybe")]),
        ("results", &[("results", "")]),
        ("results", &[("results", "present")]),
        ("experiment", &[("experiment", "")]),
        ("against", &[("against", "")]),
        ("base", &[("base", "results")]),
        ("new", &[("experiment", ""), ("against", ""), ("base", "results")]),
        ("base", &[("experiment", ""), ("against", ""), ("new", "results")]),
    ];
    std::fs::create_dir(servers.path().join("present")).unwrap();
    for (name, given) in cases {
        let given = [&strong[..], given].concat();
        let job = github::Job::new(servers.path());
        let done =
            job.run(&given).exits_with(2).says(&format!("::error title=dnslab%2C input {name}::"));
        assert_eq!(done.said.matches("::error").count(), 1, "{}", done.said);
        assert_eq!((job.output("ruling"), job.path()), (String::new(), None), "{}", done.said);
        match gitlab::job(&given) {
            Ok(job) => {
                let done = job.run(servers.path(), "dash");
                done.exits_with(2).says(&format!("error: input {name}: "));
            }
            Err(error) => assert!(error.contains(&format!("`{name}`")), "{error}"),
        }
    }
    // What dnslab refuses it names itself.
    let job = github::Job::new(servers.path());
    job.run(&strong).exits_with(2).says("gate.toml").says("::error title=dnslab%2C exit code 2::");
    // An image by a tag may be another one tomorrow.
    let error = gitlab::job(&[&strong[..], &[("image", "debian:12")]].concat()).unwrap_err();
    assert!(error.contains("`image`"), "{error}");
}

/// Each input in turn says what a shell, YAML, or the runner would obey.
#[test]
fn what_an_input_says_is_obeyed_by_nobody() {
    const HOSTILE: [&str; 3] = [
        "--help$(touch harmed)`touch harmed`",
        "\"; touch harmed; \"'; touch harmed; '",
        "x\nruling=pass\n::error::harmed\n  harmed: true",
    ];
    let servers = Servers::new();
    let names = ACTION["inputs"].as_object().unwrap().keys();
    for name in names {
        for text in HOSTILE {
            let given = match name.as_str() {
                "base" | "new" => vec![("base", "base"), ("new", "new")],
                _ => vec![("experiment", "gate.toml"), ("against", "old")],
            };
            let given = [&given[..], &[(name.as_str(), text)]].concat();
            let job = github::Job::new(servers.path());
            let done = job.run(&given);
            assert_ne!(done.code, 0, "{name}: {text}: {}", done.said);
            assert_ne!(job.output("ruling"), "pass", "{name}: {text}: {}", done.said);
            assert!(!done.said.contains("\n::error::"), "{name}: {text}: {}", done.said);
            if let Ok(job) = gitlab::job(&given) {
                let done = job.run(servers.path(), "bash");
                assert_ne!(done.code, 0, "{name}: {text}: {}", done.said);
            }
            assert!(!servers.path().join("harmed").exists(), "{name}: {text}: {}", done.said);
            servers.forget();
        }
    }
}
