//! GitLab and its runner, as far as `templates/gate.yml` needs them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::release::{self, RELEASE};
use crate::{Done, python};

const COMPONENT: &str = "templates/gate.yml";

/// Inputs are checked by their header, and put into the text below the header before that is read as YAML
/// (<https://docs.gitlab.com/ci/inputs/>).
const INTERPOLATE: &str = r##"
import json, re, sys, yaml
header, text = open(sys.argv[1]).read().split("\n---\n")
declared, given = yaml.safe_load(header)["spec"]["inputs"], json.loads(sys.argv[2])
for name in given:
    if name not in declared: sys.exit(f"`{name}` is unknown")
values = {}
for name, input in declared.items():
    values[name] = value = given.get(name, input.get("default"))
    if value is None: sys.exit(f"`{name}` is missing")
    if value not in input.get("options", [value]): sys.exit(f"`{name}` is no option: {value}")
    if not re.fullmatch(input.get("regex", "(?s).*"), value): sys.exit(f"`{name}` does not match: {value}")
text = re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: values[found[1]], text)
json.dump(yaml.safe_load(text), sys.stdout)
"##;

/// What GitLab shows of a job.
#[derive(Debug, PartialEq)]
pub(crate) enum Status {
    Success,
    Warning,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Job {
    /// With the keys that it extends.
    keys: Map<String, Value>,
}

/// The job of a pipeline that includes the component. Image, digest and place of the release are given unless the
/// inputs say others.
///
/// # Errors
/// When GitLab would not make the pipeline.
pub(crate) fn job(given: &[(&str, &str)]) -> Result<Job, String> {
    let image = format!("debian@sha256:{}", "1".repeat(64));
    let download = format!("{}{}", RELEASE.server, release::path());
    let mut inputs = json!({ "image": image, "sha256": RELEASE.sha256, "download": download });
    for (name, value) in given {
        inputs[name] = (*value).into();
    }
    let jobs = python(INTERPOLATE, COMPONENT, &inputs)?;
    let own = jobs["dnslab-gate"].as_object().unwrap();
    let mut keys = jobs[own["extends"].as_str().unwrap()].as_object().unwrap().clone();
    keys.extend(own.clone());
    Ok(Job { keys })
}

impl Job {
    /// Runs the script in a folder by a shell, as the runner does
    /// (<https://docs.gitlab.com/runner/shells/>).
    pub(crate) fn run(&self, project: &Path, shell: &str) -> Done {
        let lines = self.keys["script"].as_array().unwrap().iter();
        let script = lines.map(|line| format!("{}\n", line.as_str().unwrap())).collect::<String>();
        let files = tempfile::tempdir().unwrap();
        let path = files.path().join("script.sh");
        fs::write(&path, script).unwrap();
        let mut command = Command::new(shell);
        command.arg("-e");
        if shell == "bash" {
            command.args(["-o", "pipefail"]);
        }
        command.arg(path).current_dir(project).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", files.path());
        command.env("TMPDIR", files.path());
        for (name, value) in self.keys["variables"].as_object().unwrap() {
            // None of them names another variable here.
            command.env(name, value.as_str().unwrap());
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Done { code: output.status.code().unwrap(), said }
    }

    /// What becomes of the job by its exit code.
    pub(crate) fn status(&self, done: &Done) -> Status {
        match done.code {
            0 => Status::Success,
            code if self.keys["allow_failure"]["exit_codes"] == code => Status::Warning,
            _ => Status::Failed,
        }
    }

    /// Path of the report in the project.
    pub(crate) fn junit(&self) -> &str {
        self.keys["artifacts"]["reports"]["junit"].as_str().unwrap()
    }
}
