//! Hosts: as another user, over IPv6, with many clients' addresses, two at once.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use dnslab_record::RunRecord;
use dnslab_results::ResultsDirectory;

use crate::command::{Done, Running, program};
use crate::evidence::{label, report_is_whole, valid_records};
use crate::laboratory::{CHAIN, Gate, HOSTS, LIGHT, ONE, Traces, gate, marked, open, wait_at};
use crate::room::Room;

fn run_as_nobody(room: &Room) -> Done {
    let mut command = room.as_nobody();
    command.args(["run", "./experiment.toml"]);
    Running::start(command, room.path()).finish()
}

#[track_caller]
fn has_namespaces(record: &RunRecord) -> bool {
    let laboratory = record.testbed.as_ref();
    laboratory.unwrap_or_else(|| panic!("{}: no laboratory", label(record))).namespaces
}

#[test]
fn an_ordinary_user_is_told_what_hosts_take() {
    let room = Room::with_load();
    let variants = "[[variant]]\nname = \"here\"\n\
                    [[variant]]\nname = \"apart\"\nlab.hosts = \"namespaces\"\n";
    room.experiment(&format!("{LIGHT}{variants}"));
    let reason = "network namespaces take root's privileges: run dnslab as root";
    let done = run_as_nobody(&room).exits_with(0);
    let done = done.prints(&format!("not run: apart: cannot make hosts: {reason}"));
    let results = room.results();
    let found = valid_records(&results, 1);
    assert_eq!(found[0].variant, "here", "{done}");
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    assert!(page.contains("cannot make hosts"), "the page does not say it: {done}");
}

#[test]
fn an_ordinary_user_has_no_laboratory_of_namespaces_alone() {
    let room = Room::quiet();
    room.experiment(&format!("{HOSTS}{LIGHT}{ONE}"));
    let done = run_as_nobody(&room).exits_with(1).errors(1).complains("no variant can run here");
    let done = done.complains("run dnslab as root");
    assert!(room.results_so_far().is_none(), "{done}");
}

#[test]
fn where_hosts_cannot_be_a_chain_runs_on_loopback_and_says_so() {
    let room = Room::with_load();
    room.experiment(&format!(
        "lab.hosts = \"auto\"\nlink.upstream.delay = \"2ms\"\nserver.kind = \"unbound\"\n\
         upstream.kind = \"embedded\"\n{LIGHT}{ONE}"
    ));
    let done = run_as_nobody(&room).exits_with(0);
    let results = room.results();
    let found = valid_records(&results, 1);
    assert!(!has_namespaces(&found[0]), "{done}");
    assert!(found[0].load.target.starts_with("127.0.0.1:"), "{}{done}", found[0].load.target);
    report_is_whole(&results, &["chain"]);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    let words = "ran on the loopback interface of one host";
    assert!(page.contains(words), "the page does not say `{words}`: {done}");
}

#[test]
fn a_chain_speaks_ipv6_over_udp_and_tls() {
    let room = Room::with_load();
    let variants = "[[variant]]\nname = \"plain\"\n\
                    [[variant]]\nname = \"encrypted\"\nupstream.transport = \"dot\"\n\
                    [[variant]]\nname = \"relayed\"\nrelay.kind = \"dnsmasq\"\n\
                    [[variant]]\nname = \"carried\"\nlink.server.delay = \"1ms\"\n";
    room.experiment(&format!(
        "lab.hosts = \"namespaces\"\nserver.address = \"::1\"\nserver.kind = \"unbound\"\n\
         upstream.kind = \"bind\"\n{LIGHT}{variants}"
    ));
    let done = marked(&room, &["run", "./experiment.toml"]).finish().exits_with(0);
    Traces::of(&room).are_gone(&room);
    for record in &valid_records(&room.results(), 4) {
        assert!(has_namespaces(record), "{done}");
        assert_eq!(record.load.target, "[fd53:0:0:1::2]:53", "{done}");
        let hosts = &record.testbed.as_ref().unwrap().hosts;
        let addresses: Vec<&str> =
            hosts.iter().flat_map(|host| &host.addresses).map(String::as_str).collect();
        assert_eq!(addresses.len(), 4, "{addresses:?}{done}");
        assert!(
            addresses.iter().all(|address| address.starts_with("fd53:")),
            "{addresses:?}{done}"
        );
        let upstream = record.watched.chain.last().unwrap();
        let expected = if record.variant == "encrypted" { "dot" } else { "udp" };
        assert_eq!((&*upstream.role, &*upstream.transport), ("upstream", expected), "{done}");
    }
}

/// Sends from `sources` to a BIND at `address` that logs its clients. Returns their addresses.
#[track_caller]
fn askers(address: &str, sources: &str) -> BTreeSet<String> {
    let room = Room::with_load();
    room.experiment(&format!(
        "lab.hosts = \"namespaces\"\nserver.address = \"{address}\"\n\
         server.kind = \"bind\"\nserver.query_log = true\n{LIGHT}\
         load.sources = \"{sources}\"\n{ONE}load.clients = 5\nload.rate = 500\n"
    ));
    let done = marked(&room, &["run", "./experiment.toml"]).finish().exits_with(0);
    Traces::of(&room).are_gone(&room);
    let results = room.results();
    let found = valid_records(&results, 1);
    assert_eq!(found[0].load.sources, sources.parse().ok(), "{done}");
    let address = |socket: String| socket.split('#').next().map(str::to_owned);
    asked_from(&results, &done).into_iter().filter_map(address).collect()
}

/// The sockets from which the BIND of the only run was asked under load, as ADDRESS#PORT. The load must be
/// small: a run keeps only the beginning of a long log.
#[track_caller]
fn asked_from(results: &ResultsDirectory, done: &Done) -> BTreeSet<String> {
    let log = results.path().join("runs/chain-1/server/query.log");
    let log = fs::read_to_string(&log).unwrap_or_else(|error| panic!("{log:?}: {error}{done}"));
    // `client @0x7f2c 10.99.0.1#40000 (host7.example.test): query: ...`
    // Only the readiness probe asks for an SOA record.
    let of_load = log.lines().filter(|line| !line.contains(" IN SOA "));
    let askers = of_load.filter_map(|line| line.split_once("client @")?.1.split(' ').nth(1));
    askers.map(str::to_owned).collect()
}

#[test]
fn clients_on_a_host_have_the_addresses_that_they_are_given() {
    let five = |prefix: &str| -> BTreeSet<String> {
        (1..=5).map(|number| format!("{prefix}{number}")).collect()
    };
    assert_eq!(askers("127.0.0.1", "10.99.0.0/24"), five("10.99.0."));
    assert_eq!(askers("::1", "fd99::/64"), five("fd99::"));
    assert_eq!(askers("127.0.0.1", "10.99.0.1-10.99.0.3,10.99.0.4,10.99.0.5"), five("10.99.0."));
}

#[test]
fn loopback_addresses_do_not_reach_another_host() {
    let room = Room::quiet();
    room.experiment(&format!("lab.hosts = \"namespaces\"\nload.sources = \"127.0.1.0/24\"\n{ONE}"));
    let done = room.dnslab(&["run", "--dry-run", "./experiment.toml"]).exits_with(2).errors(1);
    done.complains("`load.sources` cannot reach the server").complains("lab.hosts");
}

/// The number of sockets is calculated from the ports of the machine. Its owner may have widened them, as
/// dnslab advises.
#[test]
fn hosts_have_the_ports_of_the_machine() {
    let room = Room::with_load();
    room.experiment(&format!(
        "lab.hosts = \"namespaces\"\nserver.kind = \"bind\"\nserver.query_log = true\n{LIGHT}{ONE}\
         load.clients = 50\nload.rate = 500\n"
    ));
    let mut command = Command::new("unshare");
    // These are not among the ports that a network namespace begins with.
    let script = "echo 20000 20999 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$@\"";
    command.args(["--net", "sh", "-c", script, "sh"]).arg(program());
    command.args(["run", "./experiment.toml"]);
    let done = Running::start(command, room.path()).finish().exits_with(0);
    let ports: BTreeSet<u16> = asked_from(&room.results(), &done)
        .iter()
        .filter_map(|socket| socket.split_once('#')?.1.parse().ok())
        .collect();
    let are_right = ports.iter().all(|port| (20_000..21_000).contains(port));
    assert!(are_right && !ports.is_empty(), "{ports:?}{done}");
}

/// Runs two experiments whose servers start at the same moment. Returns the records of both.
#[track_caller]
fn two_at_once(hosts: &str) -> Vec<RunRecord> {
    let rooms = [Room::with_load(), Room::quiet()];
    let running = rooms.each_ref().map(|room| {
        let server = gate(room, "gated", "/usr/sbin/unbound", Gate::Start);
        room.experiment(&format!(
            "{hosts}{CHAIN}{LIGHT}server.binary = {server:?}\n{ONE}load.duration = \"500ms\"\n"
        ));
        marked(room, &["run", "./experiment.toml"])
    });
    rooms.iter().zip(&running).for_each(|(room, running)| wait_at(room, "gated", running));
    rooms.iter().for_each(|room| open(room, "gated"));
    let traces = rooms.each_ref().map(Traces::of);
    let mut records = Vec::new();
    for (room, (running, traces)) in rooms.iter().zip(std::iter::zip(running, traces)) {
        running.finish().exits_with(0);
        traces.are_gone(room);
        let folder = room.results();
        records.extend(valid_records(&folder, 1));
        report_is_whole(&folder, &["chain"]);
    }
    records
}

#[test]
fn two_laboratories_with_the_same_addresses_do_not_meet() {
    let records = two_at_once(HOSTS);
    assert!(records.iter().all(has_namespaces));
    assert!(records.iter().all(|record| record.load.target == "10.53.1.2:53"));
}

#[test]
fn two_chains_on_loopback_do_not_meet() {
    let targets = two_at_once("").into_iter().map(|record| record.load.target);
    assert_eq!(targets.collect::<BTreeSet<_>>().len(), 2);
}
