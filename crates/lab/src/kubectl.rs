//! What is said to kubectl(1), which knows the cluster, and what it says. No word of it reaches a shell.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};

use dnslab_settings::Pod;
use serde_json::Value;

/// The command line of kubectl(1) for the namespace of a pod.
pub(crate) fn kubectl(pod: &Pod) -> Vec<String> {
    let option = |name: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!("--{name}={value}"))
    };
    let options = [option("context", &pod.context), option("namespace", &pod.namespace)];
    std::iter::once("kubectl".to_owned()).chain(options.into_iter().flatten()).collect()
}

pub(crate) fn begin(pod: &Pod, words: &[&str], input: Stdio) -> io::Result<Child> {
    let line = kubectl(pod);
    let mut command = Command::new(&line[0]);
    // Ctrl-C at the terminal is for whoever has started it: what it has begun is to be ended.
    command.args(&line[1..]).args(words).process_group(0);
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(none)
}

/// What kubectl does with a text that it reads.
pub(crate) fn input(pod: &Pod, words: &[&str], text: &str) -> io::Result<Output> {
    let mut child = begin(pod, words, Stdio::piped())?;
    if let Some(mut to) = child.stdin.take() {
        // Why it is not read stands in what kubectl says.
        to.write_all(text.as_bytes()).ok();
    }
    child.wait_with_output()
}

fn run(pod: &Pod, words: &[&str], text: Option<&Value>) -> io::Result<Output> {
    match text {
        Some(text) => input(pod, words, &text.to_string()),
        None => begin(pod, words, Stdio::null())?.wait_with_output(),
    }
}

fn none(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            io::ErrorKind::NotFound,
            "kubectl is not on the search path: install the one of your cluster's release",
        ),
        _ => error,
    }
}

/// What kubectl has said, or its complaint.
pub(crate) fn said(pod: &Pod, words: &[&str], input: Option<&Value>) -> io::Result<String> {
    let Output { status, stdout, stderr } = run(pod, words, input)?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).trim().to_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&stderr).trim().to_owned())),
    }
}
