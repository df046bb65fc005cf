//! Hosts that are not as one would like them: reached by another one, slowly, with words before the agent's, without
//! dnslab, with folders in which nothing can be executed or written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::evidence::valid_records;
use crate::processes::wait_for;
use crate::room::Room;
use crate::ssh::{Hosts, Ways, agent, as_there, check_none_is_left, processes};
use crate::watching::unwatched;

/// A folder that a file system of its own is mounted on until this is dropped.
struct Mounted(PathBuf);

impl Mounted {
    #[track_caller]
    fn make(room: &Room, options: &str) -> Self {
        let path = room.path().join("mounted");
        fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).status().unwrap();
        assert!(done.success());
        Self(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().unwrap();
    }
}

const COPIED: [&str; 4] = ["--watch", "ns1", "--set", "hosts.install=copy"];

/// The folder that an agent was in that runs now.
fn folder_of_a_copy() -> Option<String> {
    let agents = processes(&["/tmp/dnslab-copy-"]).into_iter();
    let programs = agents.filter_map(|pid| fs::read_link(format!("/proc/{pid}/exe")).ok());
    let mut texts = programs.map(|program| program.display().to_string());
    texts.find_map(|text| text.strip_suffix("/dnslab (deleted)").map(str::to_owned))
}

/// The program is copied there, and while it runs its folder is there no more.
#[track_caller]
fn check_copied(sshd: &str) {
    let room = Room::with_load();
    let hosts = Hosts::with(&room, &Ways { sshd, ..Ways::default() });
    let running = hosts.load(&room, "4s", &COPIED);
    let folder = wait_for("the agent is there", || running.so_far(), folder_of_a_copy);
    assert!(!Path::new(&folder).exists(), "{folder}");
    let done = running.finish().exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(unwatched(&record), None, "{done}");
}

/// It is copied elsewhere than into this folder, and nothing of it is left there.
#[track_caller]
fn check_passed_over(options: &str) {
    let room = Room::quiet();
    let folder = Mounted::make(&room, options);
    check_copied(&format!("SetEnv TMPDIR={}\n", folder.0.display()));
    let left: Vec<_> = fs::read_dir(&folder.0).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_program_is_copied_to_a_host_without_it() {
    check_copied("");
}

#[test]
fn a_folder_in_which_nothing_is_executed_is_passed_over() {
    check_passed_over("noexec");
}

#[test]
fn a_folder_without_room_is_passed_over() {
    check_passed_over("size=1m");
}

/// Servers are started by a program whose file is gone; the embedded one is that program.
#[test]
fn servers_are_started_by_a_copy() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let shared =
        ["--set", "repeat.runs=2", "--set", "load.duration=300ms", "--set", "load.warm_up=100ms"];
    let run =
        ["run", "encryption", "--on", "ns1", "--set", "hosts.install=copy", "--only", "udp,dot"];
    let done = hosts.dnslab(&room, &[&run[..], &shared].concat()).finish().exits_with(0);
    assert_eq!(valid_records(&room.results(), 4).len(), 4, "{done}");
}

/// The key decides, and dnslab is there.
#[test]
fn nothing_is_copied_where_a_key_allows_an_agent_only() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, &format!("{} agent --allow watch", agent(&room)));
    let done = hosts.load(&room, "1s", &COPIED).finish().exits_with(0);
    assert_eq!(unwatched(&valid_records(&room.results(), 1)[0]), None, "{done}");
    check_none_is_left(&room);
}

#[test]
fn a_copy_that_cannot_be_made_says_why() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let copied = ["--watch", "nobody@ns1", "--set", "hosts.install=copy"];
    let done = hosts.load(&room, "1s", &copied).finish().exits_with_one_of(&[1, 2]);
    done.complains("nobody@ns1").complains("This account is currently not available");
}

/// A login that speaks, in a language that is not ours, over another host.
#[test]
fn a_host_behind_another_one_whose_login_speaks() {
    let room = Room::with_load();
    let banner =
        room.write("banner", "echo 'Willkommen auf ns1'; echo; printf 'kein Zeilenende'\n");
    let sshd =
        format!("SetEnv LC_ALL=tr_TR.UTF-8 LANG=de_DE.UTF-8 BASH_ENV={}\n", banner.display());
    let ssh = "Host far\nHostName 192.0.2.1\nProxyJump gen1\n";
    let ways = Ways { generators: 1, sshd: &sshd, ssh, ..Ways::default() };
    let hosts = Hosts::with(&room, &ways);
    let further = ["--watch", "far", "--set", "hosts.install=copy"];
    let done = hosts.load(&room, "1s", &further).finish().exits_with(0);
    assert_eq!(unwatched(&valid_records(&room.results(), 1)[0]), None, "{done}");
}

/// 50 ms to the host and back. What is measured does not go that way.
const SLOW: &str = r#"
import os, select, socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
ways = [[0, s.fileno(), [], True], [s.fileno(), 1, [], True]]
while any(way[2] or way[3] for way in ways):
    now = time.monotonic()
    for way in ways:
        while way[2] and way[2][0][0] <= now:
            os.write(way[1], way[2].pop(0)[1])
    due = [way[2][0][0] - now for way in ways if way[2]]
    readable = select.select([way[0] for way in ways if way[3]], [], [], min(due, default=None))[0]
    for way in ways:
        if way[0] in readable:
            octets = os.read(way[0], 65536)
            way[3] = bool(octets)
            if octets:
                way[2].append((time.monotonic() + 0.025, octets))
            elif way[1] != 1:
                s.shutdown(socket.SHUT_WR)
"#;

#[test]
fn a_slow_way_to_a_host_moves_no_figure() {
    let room = Room::with_load();
    let slow = room.write("slow.py", SLOW);
    let ssh = format!("Host *\nProxyCommand python3 {} %h %p\n", slow.display());
    let hosts = Hosts::with(&room, &Ways { ssh: &ssh, ..Ways::default() });
    let there = as_there(&agent(&room));
    // Its clock is known within 25 ms, which is half a percent of 5 s and more.
    let done = hosts.load(&room, "8s", &["--watch", "ns1", "--set", &there]).finish();
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(unwatched(&record), None, "{done}");
    let bound = record.watched.resources.clock_bound_ns;
    assert!(bound.is_some_and(|ns| (20_000_000..40_000_000).contains(&ns)), "{bound:?}{done}");
    check_none_is_left(&room);
}

#[test]
fn hosts_are_described_in_the_file() {
    let room = Room::with_load();
    let hosts = Hosts::make(&room, "");
    let agent = agent(&room);
    room.experiment(&format!(
        "repeat.runs = 1\n[host.there]\nat = \"ssh:ns1\"\nprogram = \"{agent}\"\n\
         [server]\nkind = \"bind\"\nhost = \"there\"\n[load]\nduration = \"300ms\"\nwarm_up = \"100ms\"\n\
         [[variant]]\nname = \"udp\"\n"
    ));
    let plan = hosts.dnslab(&room, &["plan", "./experiment.toml"]).finish().exits_with(0);
    plan.prints(&format!("`{agent} agent` on there"));
    let done = hosts.dnslab(&room, &["run", "./experiment.toml"]).finish().exits_with(0);
    assert_eq!(valid_records(&room.results(), 1)[0].server.host, "there", "{done}");
    check_none_is_left(&room);
    let wrong = ["run", "./experiment.toml", "--set", "host.there.at=ftp:ns1;x"];
    let done = hosts.dnslab(&room, &wrong).finish().exits_with(2);
    done.complains("host `there` is at no place that can be reached");
    let missing = ["run", "./experiment.toml", "--set", "host.there.at=netns:nowhere"];
    hosts.dnslab(&room, &missing).finish().exits_with_one_of(&[1, 2]).complains("there");
}
