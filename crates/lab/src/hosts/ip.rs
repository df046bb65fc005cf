//! The programs `ip` and `tc` (iproute2), run inside a network namespace.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::LabError;
use crate::network::Visit;

/// Runs commands of ip(8) in a network namespace, all in one process.
pub(super) fn ip(network: &Path, lines: &[String], family: Option<&str>) -> Result<(), LabError> {
    let failed =
        |reason: String| LabError::Hosts { what: format!("ip {}", lines.join("; ")), reason };
    let visit = Visit::to(network).map_err(|error| failed(error.to_string()))?;
    let child = Command::new("ip")
        .args(family)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    drop(visit);
    let feed = |mut child: std::process::Child| {
        child.stdin.take().expect("it is a pipe").write_all(lines.join("\n").as_bytes())?;
        child.wait_with_output()
    };
    let output = child.and_then(feed).map_err(|error| failed(error.to_string()))?;
    if output.status.success() { Ok(()) } else { Err(failed(said(&output.stderr))) }
}

/// Fails with the first line that the command wrote.
pub(super) fn run_ip(command: &mut Command) -> Result<(), String> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error: io::Error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(said(&output.stderr)) }
}

fn said(output: &[u8]) -> String {
    String::from_utf8_lossy(output).lines().next().unwrap_or("it said nothing").to_owned()
}
