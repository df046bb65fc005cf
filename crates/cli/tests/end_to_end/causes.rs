//! What keeps a side from its CPUs is named for what it is: a quota, other programs, a kernel that is too old.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, thread};

use dnslab_analysis::is_disturbed;
use dnslab_record::{BottleneckKind, Caveat, Evidence, RunStatus};

use crate::command::{Done, Guarded, Running, program};
use crate::evidence::{measured, records, valid_records};
use crate::processes::{kill, processes_of, remove_group, wait_for, working};
use crate::room::{Room, UDP_AND_TCP, free_port};
use crate::running_server::{queries, zone};

/// A control group with a CPU quota. Dropping it removes it.
struct Quota(PathBuf);

impl Quota {
    /// So many microseconds of each 100 ms. `None` if this user may make no such groups.
    fn of(us: u32, name: &str) -> Option<Self> {
        let name = format!("dnslab-test-{name}-{}", std::process::id());
        let first = Path::new("/sys/fs/cgroup/cpu");
        let (root, files) = match first.join("cpu.cfs_quota_us").exists() {
            true => (
                first,
                vec![
                    ("cpu.cfs_period_us", "100000".to_owned()),
                    ("cpu.cfs_quota_us", us.to_string()),
                ],
            ),
            false => (Path::new("/sys/fs/cgroup"), vec![("cpu.max", format!("{us} 100000"))]),
        };
        let group = Self(root.join(name));
        fs::create_dir(&group.0).ok()?;
        files.iter().try_for_each(|(file, text)| fs::write(group.0.join(file), text)).ok()?;
        Some(group)
    }

    #[track_caller]
    fn take_in(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// Begins a command line in this group.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let script = "echo $$ > \"$0\" && exec \"$@\"";
        command.arg("-c").arg(script).arg(self.0.join("cgroup.procs")).arg(program()).args(words);
        command
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        remove_group(&self.0);
    }
}

/// `dnslab serve` on CPU 0, and its address. Each answer costs more than the load for it.
fn serve(room: &Room) -> (Running, String) {
    room.write("queries", &queries());
    room.write("zone", &zone());
    let free = format!("127.0.0.1:{}", free_port());
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(program());
    command.args([
        "serve",
        "--zone",
        "zone",
        "--threads",
        "1",
        "--busy",
        "50us",
        "--listen",
        &free,
    ]);
    let server = Running::start(command, room.path());
    let listens = || server.stderr().contains("serving ").then_some(());
    wait_for("it listens", || server.so_far(), listens);
    (server, free)
}

fn load<'a>(target: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    let load = ["load", target, "--queries", "queries", "--duration", "2s", "--warm-up", "500ms"];
    [&load[..], further].concat()
}

/// More load leads nowhere, and is not advised.
#[track_caller]
fn advises_no_more_load(done: &Done) {
    for advice in ["load.clients=", "more clients", "load.outstanding="] {
        assert!(!done.stdout.contains(advice), "{advice}: {done}");
    }
}

#[test]
fn the_cpu_quota_of_a_server_is_its_bottleneck() {
    let room = Room::with_load();
    let Some(group) = Quota::of(5_000, "server") else {
        assert!(!rustix::process::geteuid().is_root(), "root can make a control group");
        return;
    };
    let (server, target) = serve(&room);
    group.take_in(server.pid());
    for clients in ["20", "200"] {
        let done = room.dnslab(&load(&target, &["--clients", clients])).exits_with(0);
        let record = valid_records(&room.results(), 1).remove(0);
        let limit = record.watched.resources.cpu_limit.clone();
        let limit = limit.unwrap_or_else(|| panic!("no limit was seen: {done}"));
        assert_eq!((limit.cpus, Path::new(&limit.group)), (0.05, group.0.as_path()), "{done}");
        assert!(limit.throttled <= limit.periods && limit.throttled_ns > 0, "{limit:?} {done}");
        assert_eq!(record.bottleneck.kind, BottleneckKind::ServerCpuLimit, "{record:?} {done}");
        let is_it = |caveat: &Caveat| matches!(caveat, Caveat::ServerCpuLimit { cpus: 0.05, .. });
        assert!(record.caveats.iter().any(is_it), "{:?} {done}", record.caveats);
        done.prints("Bottleneck: CPU limit of the server")
            .prints("cgroup quota 0.05 CPUs, throttled in ")
            .prints(" of its periods");
        let done = room.dnslab(&["report", &room.results().path().display().to_string()]);
        advises_no_more_load(&done);
        fs::rename(room.path().join("results"), room.path().join(format!("kept-{clients}")))
            .unwrap();
    }
}

#[test]
fn the_cpu_quota_of_the_load_is_its_own_and_doctor_says_it_before() {
    let room = Room::with_load();
    let Some(group) = Quota::of(10_000, "load") else {
        assert!(!rustix::process::geteuid().is_root(), "root can make a control group");
        return;
    };
    let (_server, target) = serve(&room);
    let words = load(&target, &["--clients", "20"]);
    let done = Running::start(group.command(&words), room.path()).finish();
    let record = records(&room.results()).remove(0);
    assert_eq!(record.bottleneck.kind, BottleneckKind::Generator, "{record:?} {done}");
    let first = &record.bottleneck.evidence[0];
    assert!(matches!(first, Evidence::CpuLimit { cpus: 0.1, .. }), "{first:?} {done}");
    done.prints("the CPU limit of dnslab itself held the load up");
    let done = Running::start(group.command(&["doctor"]), room.path()).finish();
    done.exits_with(0).prints("SPOILS  CPU limit: 0.10 CPUs");
}

/// A busy loop on CPU 0.
fn neighbour(room: &Room) -> Guarded {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", "sh", "-c", "while :; do :; done"]).current_dir(room.path());
    Guarded(command.spawn().expect("util-linux is installed"))
}

#[test]
fn other_programs_on_the_cpu_of_a_server_are_named() {
    if thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        // Then server and load share the CPU, which is another matter.
        return;
    }
    let room = Room::alone();
    let (_server, target) = serve(&room);
    let _neighbour = neighbour(&room);
    let words = load(&target, &["--clients", "20", "--outstanding", "10", "--set", "load.cpus=1"]);
    let done = room.dnslab(&words).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert_eq!(record.bottleneck.kind, BottleneckKind::OtherPrograms, "{record:?} {done}");
    let waited = measured(&record).waited_share_of(&record.watched.resources);
    assert!(waited.is_some_and(|share| (0.1..=1.0).contains(&share)), "{waited:?} {done}");
    assert!(is_disturbed(&record), "{:?} {done}", record.caveats);
    let done = done.prints("Bottleneck: shared with other programs");
    let done = done.prints("other programs held the server's CPU");
    advises_no_more_load(&done);
}

/// Fails the system call 441, `epoll_pwait2`, with ENOSYS (38), and becomes the program after it.
const BEFORE_LINUX_5_11: &str = "\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 441), (0x06, 0, 0, 0x00050026), (0x06, 0, 0, 0x7fff0000)]
octets = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
filter = Program(len(steps), ctypes.addressof(octets))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn a_kernel_that_is_too_old_is_named_at_the_start() {
    const SENTENCE: &str = "dnslab needs Linux 5.11 or later (epoll_pwait2)";
    let room = Room::quiet();
    room.write("zone", &zone());
    let on_old_kernel = |words: &[&str]| {
        let mut command = Command::new("python3");
        command.args(["-c", BEFORE_LINUX_5_11]).arg(program()).args(words);
        Running::start(command, room.path()).finish()
    };
    let commands = [
        &["load", "127.0.0.1:9"][..],
        &["run"],
        &["capacity", "127.0.0.1:9"],
        &["serve", "--zone", "zone", "--listen", "127.0.0.1:0"],
    ];
    for words in commands {
        let done = on_old_kernel(words).exits_with(1).errors(1).complains(SENTENCE);
        assert!(!done.stderr.contains("serving"), "{done}");
        assert!(room.results_so_far().is_none(), "{done}");
    }
    on_old_kernel(&["doctor"]).exits_with(0).prints("SPOILS  kernel").prints(SENTENCE);
}

/// Whether this process works in the folder of a server, with its threads.
fn is_server(pid: u32, folder: &Path) -> bool {
    let own = fs::read_link(format!("/proc/{pid}/cwd"));
    own.is_ok_and(|own| own == folder) && working(pid) >= 4
}

/// The trial that finds the common rate must not take the rate of the others for that of a server that died in it.
#[test]
fn a_server_that_dies_in_the_trial_leaves_no_common_rate() {
    let room = Room::with_load();
    room.experiment(&format!(
        "repeat.runs = 1\ncommon.duration = \"500ms\"\n[load]\nclients = 10\nduration = \"1s\"\nwarm_up = \"1s\"\n\
         {UDP_AND_TCP}"
    ));
    let running = room.start(&["run", "./experiment.toml"]);
    let works = || {
        let results = room.results_so_far()?;
        let folder = results.path().join("trial/tcp-0/server").canonicalize().ok()?;
        processes_of(&folder).into_iter().map(|(pid, _)| pid).find(|pid| is_server(*pid, &folder))
    };
    kill(wait_for("the server works in the trial", || running.so_far(), works));
    let done = running.finish().exits_with(1).errors(1);
    let done = done.complains("variant `tcp` failed in the trial").complains("signal 9");
    let results = room.results();
    assert!(results.runs().unwrap().is_empty(), "{done}");
    assert_eq!(results.session().unwrap().common_rate_qps, None, "{done}");
    let path = results.path().display().to_string();
    let done = room.dnslab(&["run", "--resume", &path]);
    assert!(results.session().unwrap().common_rate_qps.is_some(), "{done}");
}

/// More than any machine sends from one CPU.
#[test]
fn an_open_loop_that_was_not_sent_as_asked_does_not_count() {
    let room = Room::with_load();
    let (_server, target) = serve(&room);
    let words = [
        "load",
        &target,
        "--queries",
        "queries",
        "--duration",
        "500ms",
        "--warm-up",
        "0s",
        "--timeout",
        "500ms",
        "--rate",
        "20000000",
        "--set",
        "expect.lag_limit=10ms",
    ];
    let done = room.dnslab(&words).exits_with(3);
    let record = records(&room.results()).remove(0);
    let RunStatus::Invalid { reason } = &record.status else { panic!("{record:?} {done}") };
    let written = serde_json::to_string(reason).unwrap();
    assert!(written.contains("not-sent-as-asked"), "{written} {done}");
    done.prints("the generator did not send what it was asked to");
}
