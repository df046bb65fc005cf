//! A laboratory for tests: a chain whose parts wait at a gate, and the check that nothing of it is left.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::command::Running;
use crate::evidence::files;
use crate::processes::{orphaned_groups, wait_for};
use crate::room::Room;

/// Hosts, with a delay between the first two.
pub(crate) const HOSTS: &str = "lab.hosts = \"namespaces\"\nlink.server.delay = \"1ms\"\n";

pub(crate) const CHAIN: &str =
    "server.kind = \"unbound\"\nrelay.kind = \"dnsmasq\"\nupstream.kind = \"bind\"\n";

/// One run of a short load that any forwarder bears.
pub(crate) const LIGHT: &str = "repeat.runs = 1\nload.clients = 2\nload.outstanding = 10\n\
    load.duration = \"300ms\"\nload.warm_up = \"100ms\"\n\
    load.recursion_desired = true\n";

pub(crate) const ONE: &str = "[[variant]]\nname = \"chain\"\n";

/// This name in its environment identifies each process that a test started, whatever it has become: servers get it, too.
const MARK: &str = "TMPDIR";

/// Gated programs, and the folder for what programs should not leave.
const GATES: &str = "gates";
const HOME: &str = "home";

/// When a gated program waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Before it does anything.
    Start,
    /// When it is told to end.
    End,
}

/// Puts a gate before a program, and returns its path. Asked for its version the program answers at once.
/// `ip` makes the link that tries whether hosts are possible, and waits with the batches of real hosts.
pub(crate) fn gate(room: &Room, name: &str, behind: &str, when: Gate) -> PathBuf {
    let folder = room.path().join(GATES);
    fs::create_dir_all(&folder).expect("the room is ours");
    // A server is no longer root at its gate, and writes there that it waits. The next server is another
    // user.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).expect("the room is ours");
    let path = folder.join(name);
    let wait = format!(
        "[ -e {0}.waits ] || : > {0}.waits; while [ ! -e {0}.open ]; do sleep 0.01; done",
        path.display()
    );
    let rest = match when {
        Gate::Start => format!("{wait}\nexec {behind} \"$@\""),
        Gate::End => format!(
            "{behind} \"$@\" &\nchild=$!\ntrap '{wait}; kill $child; wait $child; exit 0' TERM\n\
             wait $child"
        ),
    };
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in -v|-V|--version|link) exec {behind} \"$1\" ;; esac\n{rest}\n"
    );
    fs::write(&path, script).expect("the room is ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the room is ours");
    path
}

#[track_caller]
pub(crate) fn wait_at(room: &Room, name: &str, running: &Running) {
    let sign = room.path().join(GATES).join(format!("{name}.waits"));
    wait_for(&format!("{name} waits"), || running.so_far(), || sign.exists().then_some(()));
}

/// Opens the gate for ever.
pub(crate) fn open(room: &Room, name: &str) {
    let folder = room.path().join(GATES);
    fs::create_dir_all(&folder).expect("the room is ours");
    fs::write(folder.join(format!("{name}.open")), "").expect("the room is ours");
}

/// `dnslab` in a room. Everything that it starts is marked, and gated programs come first in its PATH.
pub(crate) fn marked(room: &Room, arguments: &[&str]) -> Running {
    let home = room.path().join(HOME);
    fs::create_dir_all(&home).expect("the room is ours");
    let path = std::env::var("PATH").expect("tests have a PATH");
    let mut command = room.command(arguments);
    command
        .env("PATH", format!("{}:{path}", room.path().join(GATES).display()))
        .envs(["HOME", MARK, "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"].map(|name| (name, &home)));
    Running::start(command, room.path())
}

/// The processes that [`marked`] commands of a room have started, with their command lines.
pub(crate) fn marked_processes(room: &Room) -> Vec<(u32, String)> {
    let mark = format!("{MARK}={}", room.path().join(HOME).display());
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_room = ids.filter_map(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        environment.split(|octet| *octet == 0).find(|variable| *variable == mark.as_bytes())?;
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    of_room.collect()
}

/// What must be gone with a laboratory.
pub(crate) struct Traces {
    processes: BTreeSet<u32>,
    networks: BTreeSet<PathBuf>,
}

impl Traces {
    /// What is there now.
    pub(crate) fn of(room: &Room) -> Self {
        let processes: BTreeSet<u32> =
            marked_processes(room).into_iter().map(|(pid, _)| pid).collect();
        let network = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let own = network("self");
        let networks = processes.iter().filter_map(|pid| network(&pid.to_string()));
        let networks = networks.filter(|network| Some(network) != own.as_ref()).collect();
        Self { processes, networks }
    }

    /// Network namespaces, without that of the test.
    pub(crate) fn networks(&self) -> usize {
        self.networks.len()
    }

    /// The names that `ip netns` has for hosts of these processes.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let is_ours = |name: &String| {
            let maker = name.strip_prefix("dnslab-").and_then(|rest| rest.split('-').next());
            let maker = maker.and_then(|pid| pid.parse().ok());
            maker.is_some_and(|pid| self.processes.contains(&pid))
        };
        names.filter(is_ours).collect()
    }

    /// Everything is gone or goes soon, and no stray file is left.
    #[track_caller]
    pub(crate) fn are_gone(&self, room: &Room) {
        let left = || format!("{:?}", marked_processes(room));
        wait_for("no process is left", left, || marked_processes(room).is_empty().then_some(()));
        // A namespace without a process lives on while it is mounted, by a name or without.
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("Linux has it");
        for network in &self.networks {
            let name = network.to_string_lossy();
            assert!(!mounts.contains(&*name), "{name} is mounted: {mounts}");
        }
        let names = self.names();
        assert!(names.is_empty(), "names of hosts are left: {names:?}");
        let groups = || orphaned_groups().into_iter().filter(|path| self.made(path));
        let left = || groups().collect::<Vec<_>>().join(" ");
        wait_for("no group is left", left, || groups().next().is_none().then_some(()));
        let stray: Vec<PathBuf> =
            files(room.path()).into_keys().filter(|path| !is_expected(path)).collect();
        assert!(stray.is_empty(), "files outside the results: {stray:?}");
    }

    /// True for the control group of one of the processes.
    fn made(&self, group: &str) -> bool {
        let maker = group.rsplit_once("/dnslab-").and_then(|(_, rest)| rest.split('-').next());
        let maker = maker.and_then(|pid| pid.parse().ok());
        maker.is_some_and(|pid| self.processes.contains(&pid))
    }
}

/// True for what a test and the results may write into a room.
fn is_expected(path: &Path) -> bool {
    let first = path
        .components()
        .next()
        .map(|component| component.as_os_str().to_string_lossy().into_owned());
    let first = first.unwrap_or_default();
    [GATES, "results", "again", "experiment.toml"].contains(&first.as_str())
        || first.ends_with(".stdout")
        || first.ends_with(".stderr")
}
