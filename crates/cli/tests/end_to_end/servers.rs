//! BIND, Knot DNS, NSD and PowerDNS, started, measured and stopped by the command.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use dnslab_lab::{ServerKind, find};
use dnslab_wire::Transport;

use crate::command::guard;
use crate::evidence::{label, measured, report_is_whole, valid_records};
use crate::processes::{orphaned_groups, ports_are_free, processes_of};
use crate::room::Room;

#[track_caller]
fn holds(path: &Path, text: &str) {
    let content = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    assert!(content.contains(text), "`{text}` is not in {path:?}:\n{content}");
}

/// The experiment on all transports on one server at one address, and everything that it must leave.
#[track_caller]
fn check(kind: ServerKind, address: &str, runs: usize) {
    let room = Room::with_load();
    let groups = orphaned_groups();
    // The plan says which transports the installed version lacks; the rest runs.
    let installed = find(kind, None, &guard()).unwrap_or_else(|error| panic!("{error}"));
    let (can, cannot): (Vec<Transport>, Vec<Transport>) =
        Transport::ALL.into_iter().partition(|transport| installed.supports(*transport).is_ok());
    let can: Vec<String> = can.iter().map(ToString::to_string).collect();

    let (kind_is, address_is) =
        (format!("server.kind={kind}"), format!("server.address={address}"));
    let runs_are = format!("repeat.runs={runs}");
    let mut arguments = vec!["run", "transports", "--set", &kind_is, "--set", &address_is];
    // Turns of 50 ms are too short for the answers of a machine that does other things, too.
    let alternate = "repeat.alternate=runs";
    for short in ["load.duration=1s", "load.warm_up=300ms", &runs_are, alternate] {
        arguments.extend(["--set", short]);
    }
    let done = room.dnslab(&arguments).exits_with(0);
    let done = done.prints(&format!("{} runs of 6 variants", runs * can.len()));
    let results = room.results();
    let session = results.session().unwrap();
    assert_eq!(session.skipped.len(), cannot.len(), "{done}");
    for transport in &cannot {
        let reason = installed.supports(*transport).unwrap_err();
        let line = format!("not run: {transport}: {reason}");
        let (plan, _) = done.stdout.split_once("[1/").unwrap_or_else(|| panic!("{done}"));
        assert!(plan.contains(&line), "`{line}` is not said at plan time: {done}");
    }

    let records = valid_records(&results, runs * can.len());
    for record in &records {
        let name = label(record);
        assert_eq!(record.server.kind, kind.name(), "{name}");
        assert_eq!(record.server.version, installed.version.text, "{name}");
        let host =
            if address.contains(':') { format!("[{address}]:") } else { format!("{address}:") };
        assert!(record.load.target.starts_with(&host), "{name}: {}", record.load.target);
        assert!(record.watched.resources.samples.len() >= 3, "{name} was not watched");
        let run = results.path().join("runs").join(&name);
        let configuration = record.server.configuration.as_ref().expect("it has one");
        // PowerDNS has its zones in a second file.
        let zones = match kind {
            ServerKind::PowerDnsAuthoritative => "server/named.conf",
            _ => configuration,
        };
        holds(&run.join(zones), "example.test");
        holds(&run.join("server/example.test.zone"), "SOA");
        assert!(run.join("server/server.log").is_file(), "{name} left no log");
        if record.variant.parse().is_ok_and(Transport::is_encrypted) {
            holds(&run.join("server/server.pem"), "BEGIN CERTIFICATE");
            holds(&run.join("server/authority.pem"), "BEGIN CERTIFICATE");
            let key = fs::metadata(run.join("server/server.key")).unwrap();
            assert_eq!(key.permissions().mode() & 0o077, 0, "{name}: the key is open to others");
            assert_eq!(measured(record).tls.as_ref().map(|tls| tls.verified), Some(true));
        }
    }
    let variants: Vec<&str> = can.iter().map(String::as_str).collect();
    report_is_whole(&results, &variants);

    assert!(processes_of(room.path()).is_empty(), "{:?}", processes_of(room.path()));
    assert_eq!(&orphaned_groups() - &groups, Default::default(), "{done}");
    ports_are_free(&records);
}

#[test]
fn bind_over_ipv4() {
    check(ServerKind::Bind, "127.0.0.1", 2);
}

#[test]
fn bind_over_ipv6() {
    check(ServerKind::Bind, "::1", 1);
}

#[test]
fn knot_over_ipv4() {
    check(ServerKind::Knot, "127.0.0.1", 2);
}

#[test]
fn knot_over_ipv6() {
    check(ServerKind::Knot, "::1", 1);
}

#[test]
fn powerdns() {
    check(ServerKind::PowerDnsAuthoritative, "127.0.0.1", 2);
}

#[test]
fn nsd_over_ipv4() {
    check(ServerKind::Nsd, "127.0.0.1", 2);
}

#[test]
fn nsd_over_ipv6() {
    check(ServerKind::Nsd, "::1", 1);
}
