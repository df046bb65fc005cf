//! A server that is started on another host, which is reached over a real sshd.

use std::fs;
use std::time::Duration;

use dnslab_record::RunStatus;
use rustix::process::{Pid, Signal};

use crate::command::Running;
use crate::evidence::{measured, report_is_whole, valid_records};
use crate::processes::wait_for;
use crate::room::{Room, SHORT, UDP_AND_TCP};
use crate::ssh::{Hosts, agent, check_none_is_left, folders_there};

const DOT: &str = "[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n";

fn experiment(room: &Room, lines: &str) {
    room.experiment(&format!("repeat.runs = 1\n[expect]\nlag_limit = \"1m\"\n{SHORT}{lines}"));
}

fn run_there(room: &Room, hosts: &Hosts, further: &[&str]) -> Running {
    let program = format!("hosts.program={}", agent(room));
    let run = ["run", "./experiment.toml", "--on", "ns1", "--set", &program];
    hosts.dnslab(room, &[&run[..], further].concat())
}

/// The processes of BIND that the agent of this test has started, by the folders that they run in.
fn servers(room: &Room) -> Vec<i32> {
    let folders = folders_there(room);
    let all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|process| {
        let name = fs::read_to_string(process.path().join("comm")).ok()?;
        let folder = fs::read_link(process.path().join("cwd")).ok()?;
        let pid = process.file_name().to_string_lossy().parse().ok()?;
        (folder.starts_with(&folders) && name.trim() == "named").then_some(pid)
    });
    found.collect()
}

#[track_caller]
fn check_nothing_is_left(room: &Room) {
    check_none_is_left(room);
    let left = || format!("{:?}", servers(room));
    wait_for("no server is left", left, || servers(room).is_empty().then_some(()));
    let folders = || fs::read_dir(folders_there(room)).unwrap().flatten().collect::<Vec<_>>();
    wait_for(
        "no folder is left",
        || format!("{:?}", folders()),
        || folders().is_empty().then_some(()),
    );
}

/// It answers at the address at which ssh reached its host, over three transports in slices, and is watched and counted
/// there.
#[test]
fn a_server_is_started_on_another_host() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    experiment(&room, &format!("{UDP_AND_TCP}{DOT}"));
    let done = run_there(&room, &hosts, &["--set", "server.kind=bind"]).finish().exits_with(0);
    for record in valid_records(&room.results(), 3) {
        let server = &record.server;
        assert_eq!((server.kind.as_str(), server.host.as_str()), ("bind", "ns1"), "{done}");
        assert!(server.version.starts_with("9.") && !server.notes.is_empty(), "{server:?}");
        assert!(record.load.target.starts_with("192.0.2.1:"), "{}", record.load.target);
        let used = record.watched.resources.cpu_ns(measured(&record).window());
        assert!(used.is_some_and(|ns| ns > 0), "{used:?}{done}");
        let counters = record.watched.counters.as_ref().expect("BIND counts");
        assert!(counters.samples.len() >= 2, "{counters:?}");
        assert_eq!(record.watched.load_hosts.len(), 1, "the CPUs here are seen, too");
    }
    report_is_whole(&room.results(), &["udp", "tcp", "dot"]);
    check_nothing_is_left(&room);
}

/// As here, a variant is left out whose server is not installed, and another version ends a session that is resumed.
#[test]
fn what_is_installed_there_is_known_before_the_first_run() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let missing = "[[variant]]\nname = \"missing\"\nserver.binary = \"/nowhere/named\"\n";
    experiment(&room, &format!("{UDP_AND_TCP}{missing}"));
    let done = run_there(&room, &hosts, &["--set", "server.kind=bind"]).finish().exits_with(0);
    done.prints("not run: missing: ns1: bind is not installed: no `/nowhere/named`");
    let results = room.results();
    valid_records(&results, 2);
    let version = |fact: &dnslab_record::Fact| fact.name.starts_with("ns1: BIND");
    let session = results.session().unwrap();
    let found = session.host.iter().find(|fact| version(fact)).expect("its version is a fact");
    let path = results.path().join("session.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(&format!("\"{}\"", found.value), "\"9.11.0\"")).unwrap();
    let folder = results.path().display().to_string();
    let resumed = hosts.dnslab(&room, &["run", "--resume", &folder, "--more", "1"]).finish();
    resumed.exits_with_one_of(&[1, 2]).complains("ns1: BIND").complains("9.11.0");
    check_nothing_is_left(&room);
}

/// Its upstream asks for a certificate of the run, and applies a policy that was sent.
#[test]
fn a_chain_is_started_there() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let policy = "$TTL 60\n@ SOA localhost. root.localhost. 1 60 60 60 60\n@ NS localhost.\n\
        blocked.example.net CNAME .\n";
    room.write("block.zone", policy);
    room.write("queries", "blocked.example.net A\n");
    let blocked = "[[variant]]\nname = \"blocked\"\nload.queries = \"queries\"\n\
        server.policy_zone = \"block.zone\"\nexpect.rcode = \"NXDOMAIN\"\n";
    let relayed = "[[variant]]\nname = \"relayed\"\nserver.kind = \"dnsmasq\"\n\
        relay.kind = \"unbound\"\n";
    room.experiment(&format!(
        "repeat.runs = 1\n[expect]\nlag_limit = \"1m\"\n{SHORT}{relayed}{blocked}"
    ));
    let set = ["--set", "upstream.kind=embedded", "--set", "upstream.transport=dot"];
    let front = ["--set", "variant.blocked.server.kind=unbound"];
    let done = run_there(&room, &hosts, &[&set[..], &front].concat()).finish().exits_with(0);
    let results = room.results();
    for record in valid_records(&results, 2) {
        let roles: Vec<&str> = record.watched.chain.iter().map(|part| &*part.role).collect();
        let expected = match record.variant.as_str() {
            "relayed" => vec!["relay", "upstream"],
            _ => vec!["upstream"],
        };
        assert_eq!(roles, expected, "{done}");
        for part in &record.watched.chain {
            assert_eq!(part.server.host, "ns1", "{part:?}");
            assert!(part.resources.samples.len() >= 2, "{:?}", part.resources);
        }
        let upstream = record.watched.chain.last().and_then(|part| part.counters.as_ref());
        assert!(upstream.is_some_and(|counters| counters.samples.len() >= 2), "{upstream:?}");
        let written = record.server.configuration.as_ref().expect("it has one");
        let folder = format!("runs/{}-1", record.variant);
        assert!(results.path().join(folder).join(written).is_file(), "{written}");
    }
    check_nothing_is_left(&room);
}

/// A configuration of the user's own is a file of the host, as the zones are that it names.
#[test]
fn a_configuration_of_that_host_is_run_there() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let folder = room.path().display().to_string();
    let own = room.write(
        "own.conf",
        &format!(
            "options {{ directory \"{folder}\"; listen-on {{ 203.0.113.200; }}; }};\n\
             zone \"example.test\" {{ type primary; file \"zone\"; }};\n"
        ),
    );
    experiment(&room, UDP_AND_TCP);
    let config = format!("server.config={}", own.display());
    let names = ["--set", "server.zone.file=zone", "--set", "server.kind=bind"];
    let run = ["--set", &config, "--only", "udp"];
    let done = run_there(&room, &hosts, &[&run[..], &names].concat()).finish().exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(record.server.host, "ns1", "{done}");
    assert!(record.server.notes.iter().any(|note| note.contains("listen-on")), "{record:?}");
    let missing = ["--set", "server.config=/nowhere/named.conf", "--results", "none"];
    let done = run_there(&room, &hosts, &[&missing[..], &names].concat()).finish();
    done.exits_with_one_of(&[1, 2, 3]).complains("/nowhere/named.conf");
    check_nothing_is_left(&room);
}

/// Its variants are compared with each other.
#[test]
fn the_experiment_of_the_readme_runs_there() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let program = format!("hosts.program={}", agent(&room));
    let short =
        ["--set", "load.duration=300ms", "--set", "repeat.runs=1", "--set", "expect.lag_limit=1m"];
    let run = ["run", "encryption", "--on", "ns1", "--set", "server.kind=bind", "--set", &program];
    hosts.dnslab(&room, &[&run[..], &short].concat()).finish().exits_with(0);
    for record in room.results().runs().unwrap() {
        assert_eq!(record.server.host, "ns1");
    }
    check_nothing_is_left(&room);
}

#[test]
fn other_kinds_of_server_are_started_there() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    experiment(&room, UDP_AND_TCP);
    for kind in ["embedded", "knot", "nsd"] {
        let set = format!("server.kind={kind}");
        let run = ["--set", &set, "--results", kind];
        let done = run_there(&room, &hosts, &run).finish().exits_with(0);
        for record in valid_records(&room.results_in(kind), 2) {
            assert_eq!(
                (record.server.kind.as_str(), record.server.host.as_str()),
                (kind, "ns1"),
                "{done}"
            );
        }
    }
    check_nothing_is_left(&room);
}

/// Zones of a file and with signatures are sent.
#[test]
fn a_signed_zone_is_served_there() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    experiment(&room, UDP_AND_TCP);
    let signed = ["--set", "server.zone.signed=ecdsa-p256", "--set", "load.dnssec_ok=true"];
    let bind = ["--set", "server.kind=bind", "--only", "udp"];
    let done = run_there(&room, &hosts, &[&signed[..], &bind].concat()).finish().exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let answers = &measured(&record).counters.answers;
    let octets = answers.octets / measured(&record).counters.outcomes.answered.max(1);
    assert!(octets > 120, "answers have signatures: {octets} octets{done}");
    check_nothing_is_left(&room);
}

/// The server is on one host, the load on two others, and all is said here.
#[test]
fn a_server_there_is_asked_from_other_hosts() {
    let room = Room::with_load();
    let hosts = Hosts::with_generators(&room, "", 2);
    experiment(&room, UDP_AND_TCP);
    let program = format!("hosts.program={}", agent(&room));
    let load = ["--set", "load.hosts=gen1,gen2", "--set", &program, "--set", "server.kind=bind"];
    let done = run_there(&room, &hosts, &load).finish().exits_with(0);
    for record in valid_records(&room.results(), 2) {
        assert_eq!((record.server.host.as_str(), record.load.hosts.len()), ("ns1", 2), "{done}");
        let used = record.watched.resources.cpu_ns(measured(&record).window());
        assert!(used.is_some_and(|ns| ns > 0), "{used:?}{done}");
    }
    check_nothing_is_left(&room);
}

/// A run of 30 s of BIND there, once it is asked.
fn long_run(room: &Room, hosts: &Hosts) -> Running {
    experiment(room, UDP_AND_TCP);
    let long = ["--only", "udp", "--set", "load.duration=30s", "--set", "common.duration=0s"];
    let running = run_there(room, hosts, &[&long[..], &["--set", "server.kind=bind"]].concat());
    wait_for("the server is there", || running.so_far(), || servers(room).first().copied());
    std::thread::sleep(Duration::from_secs(3));
    running
}

#[test]
fn a_coordinator_that_is_killed_leaves_no_server() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let mut running = long_run(&room, &hosts);
    running.signal(Signal::KILL);
    check_nothing_is_left(&room);
}

/// The agent itself is killed: the guard of its server is not, nor what removes its folder.
#[test]
fn an_agent_that_is_killed_leaves_no_server() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let running = long_run(&room, &hosts);
    for pid in crate::ssh::agents(&room) {
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    let done = running.finish().exits_with(3);
    let record = room.results().runs().unwrap().remove(0);
    let RunStatus::Failed { reason, .. } = &record.status else {
        panic!("{:?}{done}", record.status)
    };
    assert!(reason.contains("ns1 is lost"), "{reason}");
    check_nothing_is_left(&room);
}

#[test]
fn a_server_there_that_ends_by_itself_fails_the_run() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let running = long_run(&room, &hosts);
    for pid in servers(&room) {
        rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    let done = running.finish().exits_with(3);
    let record = room.results().runs().unwrap().remove(0);
    let RunStatus::Failed { reason, log_tail } = &record.status else {
        panic!("{:?}{done}", record.status)
    };
    assert!(reason.contains("the server ended in the middle of the load"), "{reason}");
    assert!(!log_tail.is_empty(), "the end of its log is there");
    check_nothing_is_left(&room);
}

#[test]
fn a_host_decides_what_may_be_started_there() {
    let room = Room::with_load();
    let forced = format!("{} agent --allow watch,serve", agent(&room));
    let hosts = Hosts::make(&room, &forced);
    experiment(&room, UDP_AND_TCP);
    let udp = ["--only", "udp", "--set", "server.kind=bind"];
    run_there(&room, &hosts, &udp).finish().exits_with(0);
    let extra = ["--set", "server.extra=# x", "--results", "other"];
    let done = run_there(&room, &hosts, &[&udp[..], &extra].concat()).finish();
    done.exits_with_one_of(&[1, 2]).complains("does not allow `server.extra`");
    // It asks what was started there, and nobody else.
    let upstream = ["--set", "upstream.kind=embedded", "--set", "upstream.transport=dot"];
    let chain = ["--only", "udp", "--set", "server.kind=unbound", "--results", "chain"];
    run_there(&room, &hosts, &[&chain[..], &upstream].concat()).finish().exits_with(0);
    room.write("block.zone", "@ 60 SOA a. b. 1 60 60 60 60\n@ 60 NS a.\nx 60 CNAME .\n");
    let policy = ["--set", "server.policy_zone=block.zone", "--results", "policy"];
    let done = run_there(&room, &hosts, &[&chain[..4], &upstream, &policy].concat()).finish();
    done.exits_with_one_of(&[1, 2]).complains("does not allow `server.policy_zone`");
    check_nothing_is_left(&room);
}

#[test]
fn each_mistake_about_a_started_server_is_named() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    experiment(&room, UDP_AND_TCP);
    let refused = |further: &[&str], part: &str| {
        let udp = ["--only", "udp", "--results", "none"];
        let done = run_there(&room, &hosts, &[&udp[..], further].concat()).finish();
        done.exits_with_one_of(&[1, 2, 3]).complains(part);
    };
    refused(
        &["--set", "server.kind=bind", "--set", "server.binary=/nowhere/named"],
        "/nowhere/named",
    );
    refused(
        &["--set", "server.kind=bind", "--set", "server.address=192.0.2.99"],
        "set `server.address` to an address of that host",
    );
    let live = ["--set", "server.kind=unbound", "--set", "upstream.address=192.0.2.7"];
    refused(
        &[&live[..], &["--set", "upstream.kind=external"]].concat(),
        "cannot have `upstream.kind = \"external\"`",
    );
    refused(
        &["--set", "server.kind=bind", "--set", "hosts.program=/nowhere/dnslab"],
        "no dnslab answered there",
    );
    check_nothing_is_left(&room);
}
