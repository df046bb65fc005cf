//! A runner of GitHub, as far as `action.yml` needs one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::release::{RELEASE, REPOSITORY};
use crate::{Done, python};

/// `action.yml`.
pub(crate) static ACTION: LazyLock<Value> = LazyLock::new(action);

fn action() -> Value {
    let script = "import json, sys, yaml\njson.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    python(script, "action.yml", &Value::Null).unwrap()
}

/// A job, with the files by which a step speaks to its runner.
pub(crate) struct Job<'a> {
    checkout: &'a Path,
    files: TempDir,
}

impl<'a> Job<'a> {
    pub(crate) fn new(checkout: &'a Path) -> Self {
        let files = tempfile::tempdir().unwrap();
        for name in ["output", "path", "summary"] {
            fs::write(files.path().join(name), "").unwrap();
        }
        Self { checkout, files }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Runs the steps of the action until one fails. The digest is given unless the inputs say another one.
    pub(crate) fn run(&self, given: &[(&str, &str)]) -> Done {
        let mut done = Done { code: 0, said: String::new() };
        for step in ACTION["runs"]["steps"].as_array().unwrap() {
            let script = self.file("script.sh");
            fs::write(&script, step["run"].as_str().unwrap()).unwrap();
            assert_eq!(step["shell"], "bash");
            // https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#custom-shell
            let mut bash = Command::new("bash");
            bash.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(script).env_clear();
            bash.current_dir(self.checkout).env("HOME", self.files.path());
            let path = std::env::var("PATH").unwrap();
            let added = fs::read_to_string(self.file("path")).unwrap();
            let added = added.lines().map(|folder| format!("{folder}:")).collect::<String>();
            bash.env("PATH", format!("{added}{path}")).env("RUNNER_TEMP", self.files.path());
            for (variable, name) in
                [("OUTPUT", "output"), ("PATH", "path"), ("STEP_SUMMARY", "summary")]
            {
                bash.env(format!("GITHUB_{variable}"), self.file(name));
            }
            for (variable, value) in step["env"].as_object().unwrap() {
                bash.env(variable, evaluated(value.as_str().unwrap(), given));
            }
            let output = bash.output().unwrap();
            done.code = output.status.code().unwrap();
            done.said += &String::from_utf8_lossy(&[output.stdout, output.stderr].concat());
            if done.code != 0 {
                break;
            }
        }
        done
    }

    /// An output of the action; the last line that sets one wins.
    pub(crate) fn output(&self, name: &str) -> String {
        let value = ACTION["outputs"][name]["value"].as_str().unwrap();
        let step = ACTION["runs"]["steps"][0]["id"].as_str().unwrap();
        assert_eq!(value, format!("${{{{ steps.{step}.outputs.{name} }}}}"));
        let text = fs::read_to_string(self.file("output")).unwrap();
        let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        values.next_back().unwrap_or_default().to_owned()
    }

    pub(crate) fn summary(&self) -> String {
        fs::read_to_string(self.file("summary")).unwrap()
    }

    /// What the action has put into PATH.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let text = fs::read_to_string(self.file("path")).unwrap();
        text.lines().next().map(PathBuf::from)
    }
}

/// What an expression of the action stands for.
fn evaluated(text: &str, given: &[(&str, &str)]) -> String {
    let inner = text.strip_prefix("${{ ").and_then(|text| text.strip_suffix(" }}"));
    let inner = inner.unwrap_or_else(|| panic!("`{text}` is no expression"));
    match inner.split_once('.').unwrap() {
        ("github", "server_url") => RELEASE.server.clone(),
        ("github", "action_repository") => REPOSITORY.to_owned(),
        ("inputs", name) => {
            let declared = &ACTION["inputs"][name];
            assert!(declared.is_object(), "there is no input `{name}`");
            let value = given.iter().rev().find(|(other, _)| *other == name);
            match (value, name) {
                (Some((_, value)), _) => (*value).to_owned(),
                (None, "sha256") => RELEASE.sha256.clone(),
                (None, _) => declared["default"].as_str().unwrap_or_default().to_owned(),
            }
        }
        _ => panic!("`{text}` is unknown"),
    }
}
