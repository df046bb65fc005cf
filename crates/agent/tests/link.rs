//! What a coordinator says of hosts that have no agent, or one that is none. Each is a script in the place of one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use dnslab_agent::{Link, LinkError};
use dnslab_protocol::{FrameWriter, FromAgent, GREETING, body_of};
use dnslab_settings::{HostAt, HostPlace};
use tempfile::TempDir;

/// A program of this text.
fn program(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dnslab");
    // Written by another process: a child of another test would inherit the file open for writing.
    let draft = folder.path().join("draft");
    fs::write(&draft, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    let copied = std::process::Command::new("cp").arg(&draft).arg(&path).status().unwrap();
    assert!(copied.success());
    (folder, path)
}

/// A link to this program.
fn open(program: &Path) -> Result<Link, LinkError> {
    let place: HostPlace = "ns1".parse().unwrap();
    Link::open(&HostPlace { at: HostAt::Here, program: Some(program.to_owned()), ..place })
}

#[track_caller]
fn refused(script: &str) -> LinkError {
    let (_folder, path) = program(script);
    open(&path).expect_err("there is no agent")
}

#[track_caller]
fn check(script: &str, parts: &[&str]) {
    let error = refused(script).to_string();
    for part in parts {
        assert!(error.contains(part), "no `{part}`: {error}");
    }
}

/// A script that says these octets, by octal escapes.
fn saying(octets: &[u8]) -> String {
    let escaped: String = octets.iter().map(|octet| format!("\\{octet:03o}")).collect();
    format!("printf '{escaped}'")
}

fn frames(messages: &[FromAgent]) -> Vec<u8> {
    let mut frames = FrameWriter::default();
    let frame = |message: &FromAgent| frames.frame(&body_of(message).unwrap()).unwrap();
    messages.iter().flat_map(frame).collect()
}

fn welcome() -> FromAgent {
    let (version, host) = (env!("CARGO_PKG_VERSION").to_owned(), "ns1".to_owned());
    let boot_id = "another".to_owned();
    FromAgent::Welcome {
        version,
        roles: Vec::new(),
        host,
        cpus: vec![0],
        facts: Vec::new(),
        address: None,
        boot_id,
        network: String::new(),
        pid: 0,
    }
}

#[test]
fn a_host_without_dnslab_is_named_with_what_it_said() {
    check(
        "echo 'bash: dnslab: command not found' >&2; exit 127",
        &["ns1: no dnslab answered there: bash: dnslab: command not found", "hosts.program"],
    );
    let unreachable = "ssh: connect to host ns1 port 22: Connection refused";
    let error = refused(&format!("echo '{unreachable}' >&2; exit 255")).to_string();
    assert!(error.contains(unreachable) && !error.contains("hosts.program"), "{error}");
    check("exit 0", &["in silence"]);
    check("echo Welcome to this host", &["Welcome to this host"]);
    check("while :; do echo no agent; done", &["no agent answered within the first"]);
    check("echo dnslab-agent 7", &["`dnslab-agent 7`", "install the same"]);
    let missing = open("/nowhere/dnslab".as_ref()).unwrap_err();
    assert!(matches!(missing, LinkError::NotStarted { .. }), "{missing}");
}

#[test]
fn a_banner_before_the_agent_is_left_out() {
    let said = [b"Last login: never\n\n", GREETING, &frames(&[welcome()])].concat();
    let (_folder, path) = program(&format!("{}; cat > /dev/null", saying(&said)));
    let link = open(&path).unwrap();
    assert_eq!(link.ended(), None);
}

#[test]
fn an_agent_that_lies_is_left() {
    let mut changed = frames(&[welcome()]);
    *changed.last_mut().unwrap() ^= 1;
    check(&saying(&[GREETING, &changed].concat()), &["ns1 is lost", "checksum"]);
    let farewell = frames(&[FromAgent::Bye { frames: 9 }]);
    check(&saying(&[GREETING, &farewell].concat()), &["counts 9 frames, and 0 came"]);
    let reason = "not on this host".to_owned();
    let refusal = frames(&[FromAgent::Refused { reason }]);
    check(&saying(&[GREETING, &refusal].concat()), &["ns1: not on this host"]);
    check(&saying(&[GREETING, b"no frame at all, but words"].concat()), &["ns1 is lost"]);
}

#[test]
fn an_end_without_a_farewell_is_a_loss() {
    let said = [GREETING, &frames(&[welcome()])].concat();
    let (_folder, path) = program(&format!("{}; echo 'Killed' >&2; sleep 0.3", saying(&said)));
    let link = open(&path).unwrap();
    let lost = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        link.ended()
    });
    let lost = lost.expect("it ended").to_string();
    assert!(lost.contains("without a farewell: Killed"), "{lost}");
}
