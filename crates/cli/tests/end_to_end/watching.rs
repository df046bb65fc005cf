//! Who watches an external server: by its port, process or unit, as root, as its owner, and not at all.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use dnslab_record::{Caveat, RunRecord};

use crate::command::{Done, Running};
use crate::evidence::valid_records;
use crate::processes::remove_group;
use crate::room::{Room, SHORT, free_port};
use crate::running_server::{RunningBind, queries};

/// Why the server of a run was not watched; `None` if it was.
pub(crate) fn unwatched(record: &RunRecord) -> Option<&str> {
    record.caveats.iter().find_map(|caveat| match caveat {
        Caveat::ServerNotWatched { reason } => Some(reason.as_str()),
        _ => None,
    })
}

fn load<'a>(target: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    let load = [
        "load",
        target,
        "--queries",
        "queries",
        "--duration",
        "300ms",
        "--warm-up",
        "500ms",
        "--clients",
        "10",
    ];
    [&load, further].concat()
}

/// A room with the query file, and a BIND of root.
fn room_with_bind(address: &str) -> (Room, RunningBind) {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), address);
    room.write("queries", &queries());
    (room, bind)
}

/// The one valid record of the room must say what the test's BIND used.
#[track_caller]
fn is_watched(room: &Room, done: &Done) -> RunRecord {
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(unwatched(&record), None, "{done}");
    let run = record.observation().unwrap();
    assert!(run.server_busy_share().is_some_and(|share| share > 0.0), "{done}");
    assert!(run.server_cpu_per_query_ns().is_some_and(|ns| ns > 0.0), "{done}");
    assert!(
        record.watched.resources.peak_memory_octets().is_some_and(|octets| octets > 1 << 20),
        "{done}"
    );
    let last = record.watched.resources.samples.last().unwrap();
    assert!(last.context_switches > 0, "{last:?}");
    let server = &record.server;
    // BIND has a thread for the loop, and others.
    assert!(server.threads > 1 && !server.cpus.is_empty(), "{server:?}");
    assert!(server.version.starts_with("9."), "{server:?}");
    assert_eq!(server.command.first().map(String::as_str), Some("/usr/sbin/named"), "{server:?}");
    assert!(!record.watched.resources.threads.is_empty(), "{done}");
    record
}

#[test]
fn it_is_found_by_its_port_or_by_name() {
    let (room, bind) = room_with_bind("127.0.0.1");
    let pid = format!("server.pid={}", bind.pid());
    let encrypted = ["--transport", "dot", "--insecure"];
    for (number, (transport, further)) in
        [("udp", vec![]), ("tcp", vec!["--transport", "tcp"]), ("udp", vec!["--set", &pid])]
            .into_iter()
            .chain([("dot", encrypted.to_vec())])
            .enumerate()
    {
        let target = bind.target(transport);
        let done = room.dnslab(&load(&target, &further)).exits_with(0);
        is_watched(&room, &done);
        done.prints("CPU/query");
        fs::rename(room.path().join("results"), room.path().join(format!("kept-{number}")))
            .unwrap();
    }
}

#[test]
fn a_capacity_says_what_the_server_used() {
    let (room, bind) = room_with_bind("::1");
    let target = bind.target("udp");
    let search = ["capacity", &target, "--queries", "queries", "--max", "2000", "--from", "1000"];
    let step = ["--step-duration", "300ms", "--warm-up", "1500ms", "--repeats", "1"];
    // One that is met while other tests hold the CPUs.
    let objective = ["--objective", "lost<50%,mean<1s"];
    let done = room.dnslab(&[&search[..], &step, &objective].concat()).exits_with(0);
    for record in crate::evidence::records(&room.results()) {
        assert_eq!(unwatched(&record), None, "{done}");
        assert!(record.observation().unwrap().server_cpu_per_query_ns().is_some(), "{done}");
    }
}

#[test]
fn a_wrong_process_or_unit_is_an_error_before_the_load() {
    let (room, bind) = room_with_bind("127.0.0.1");
    let target = bind.target("udp");
    // The test's own process would be accepted: the server is its child.
    let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
    let other = format!("server.pid={}", sleep.id());
    let gone = "server.pid=4194304";
    let unit = "server.unit=no-such-thing.service";
    let (pid, port) = (bind.pid(), bind.plain.port());
    let cases = [
        (gone, "the process 4194304 is not there".to_owned()),
        (
            other.as_str(),
            format!("does not listen on 127.0.0.1:{port} (udp); process {pid} named does"),
        ),
        (unit, "the unit no-such-thing.service has no control group".to_owned()),
    ];
    for (set, expected) in cases {
        let done = room.dnslab(&load(&target, &["--set", set]));
        let done = done.exits_with(2).complains(&expected).complains("ss -lntup");
        assert!(room.results_so_far().is_none(), "{done}");
    }
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

#[test]
fn it_can_be_left_alone() {
    let (room, bind) = room_with_bind("127.0.0.1");
    let target = bind.target("udp");
    let done = room.dnslab(&load(&target, &["--set", "server.watch=false"])).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(unwatched(&record), Some("it was switched off (`server.watch = false`)"), "{done}");
    assert!(record.watched.resources.samples.is_empty(), "{done}");
    assert!(record.server.version.is_empty(), "it was asked: {:?}", record.server);
}

#[test]
fn a_started_server_can_be_left_alone() {
    let room = Room::with_load();
    room.experiment(&format!(
        "repeat.runs = 1\nserver.watch = false\n{SHORT}[[variant]]\nname = \"a\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(unwatched(&record), Some("it was switched off (`server.watch = false`)"), "{done}");
    assert!(record.watched.counters.is_none(), "{done}");
    let kept = fs::read_to_string(room.results().path().join("experiment.toml")).unwrap();
    assert!(kept.contains("server.watch = false"), "{kept}");
}

/// A control group with the name of a unit and one process. Dropping it removes it.
struct TestUnit(PathBuf);

impl TestUnit {
    /// `None` if this user may make no groups.
    fn of(pid: u32, name: &str) -> Option<Self> {
        let unified = Path::new("/sys/fs/cgroup/unified");
        let root = if unified.exists() { unified } else { Path::new("/sys/fs/cgroup") };
        let folder = root.join(name);
        fs::create_dir(&folder).ok()?;
        let unit = Self(folder);
        fs::write(unit.0.join("cgroup.procs"), pid.to_string()).ok()?;
        Some(unit)
    }
}

impl Drop for TestUnit {
    fn drop(&mut self) {
        remove_group(&self.0);
    }
}

#[test]
fn it_is_found_by_its_unit() {
    let (room, bind) = room_with_bind("127.0.0.1");
    let name = format!("dnslab-test-{}.service", std::process::id());
    let Some(unit) = TestUnit::of(bind.pid(), &name) else {
        assert!(!rustix::process::geteuid().is_root(), "root can make a control group");
        return;
    };
    let (target, set) = (bind.target("udp"), format!("server.unit={name}"));
    let done = room.dnslab(&load(&target, &["--set", &set])).exits_with(0);
    let record = is_watched(&room, &done);
    let source = &record.watched.resources.cpu_source;
    assert_eq!(source, "cgroup v2 cpu.stat", "{done}");
    fs::rename(room.path().join("results"), room.path().join("kept")).unwrap();
    // The unit is still there, but its process has left it.
    let parent = unit.0.parent().unwrap().join("cgroup.procs");
    fs::write(parent, bind.pid().to_string()).unwrap();
    let done = room.dnslab(&load(&target, &["--set", &set])).exits_with(2);
    done.complains(&format!("the unit {name} has no processes"));
}

fn as_nobody(room: &Room, arguments: &[&str]) -> Done {
    let mut command = room.as_nobody();
    command.args(arguments);
    Running::start(command, room.path()).finish()
}

#[test]
fn an_ordinary_user_is_told_who_may_watch() {
    if !rustix::process::geteuid().is_root() {
        println!("not root, so there are no two users");
        return;
    }
    let (room, bind) = room_with_bind("127.0.0.1");
    let target = bind.target("udp");
    let done = as_nobody(&room, &load(&target, &[])).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let port = bind.plain.port();
    let reason = format!("port {port} belongs to a process of another user: run as root");
    assert!(unwatched(&record).is_some_and(|text| text.starts_with(&reason)), "{done}");
    done.prints(&reason);
    fs::rename(room.path().join("results"), room.path().join("kept")).unwrap();
    // If the process is named, what everybody may know of it is enough.
    let pid = format!("server.pid={}", bind.pid());
    let done = as_nobody(&room, &load(&target, &["--set", &pid])).exits_with(0);
    is_watched(&room, &done);
}

/// A server of `nobody`, watched by `nobody`.
#[test]
fn an_owner_may_watch_without_being_root() {
    if !rustix::process::geteuid().is_root() {
        println!("not root: the other tests show this");
        return;
    }
    let room = Room::with_load();
    room.write("queries", &queries());
    room.write("zone", &crate::running_server::zone());
    let free = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut command = room.as_nobody();
    command.args(["serve", "--zone", "zone", "--threads", "2", "--listen", &free.to_string()]);
    let server = Running::start(command, room.path());
    let listens = || server.stderr().contains("serving ").then_some(());
    crate::processes::wait_for("it listens", || server.so_far(), listens);
    let target = free.to_string();
    let done = as_nobody(&room, &load(&target, &[])).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(unwatched(&record), None, "{done}");
    assert!(
        record.observation().unwrap().server_cpu_per_query_ns().is_some_and(|ns| ns > 0.0),
        "{done}"
    );
}
