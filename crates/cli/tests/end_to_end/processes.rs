//! Questions to `/proc` and the control groups: who is there, who works, what was left behind.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use dnslab_record::RunRecord;
use rustix::process::{Pid, Signal};

/// Limit for things that take milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// CPU time after which a server is surely under load, in clock ticks of 10 ms. The start of BIND, the
/// slowest, takes 5.
const WORKING_TICKS: u64 = 12;

/// Waits until `found` finds something. `context` is shown if it does not.
#[track_caller]
pub(crate) fn wait_for<T>(
    what: &str,
    context: impl Fn() -> String,
    mut found: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}; {}", context());
        thread::sleep(Duration::from_millis(5));
    }
}

/// The processes whose working directory is in `folder`, or whose command line names it, with that command
/// line. Zombies count as gone.
pub(crate) fn processes_of(folder: &Path) -> Vec<(u32, String)> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let name = folder.to_string_lossy();
    let of_folder = ids.filter_map(|pid| {
        let octets = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&octets).replace('\0', " ");
        let inside = working_directory(pid).is_some_and(|path| path.starts_with(folder));
        (inside || line.contains(&*name)).then_some((pid, line))
    });
    of_folder.collect()
}

/// The working server of a run in the folder `runs/VARIANT-N`: the process in its `server` folder that has
/// used the CPU for some time.
pub(crate) fn working_server(run: &Path) -> Option<u32> {
    let folder = run.join("server").canonicalize().ok()?;
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|pid| {
        working_directory(*pid).as_ref() == Some(&folder)
            && cpu_ticks(*pid).is_some_and(|ticks| ticks >= WORKING_TICKS)
    })
}

fn working_directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// CPU time of a process in clock ticks of 10 ms; 0 if it is gone.
pub(crate) fn working(pid: u32) -> u64 {
    cpu_ticks(pid).unwrap_or(0)
}

/// User and system time of a process: fields 14 and 15 of proc_pid_stat(5).
fn cpu_ticks(pid: u32) -> Option<u64> {
    Some(stat_field(pid, 14)? + stat_field(pid, 15)?)
}

/// The guard of a server: its nearest ancestor that is one. The server may be several processes.
#[track_caller]
pub(crate) fn guard_of(server: u32) -> u32 {
    let mut pid = server;
    loop {
        // Field 4 of proc_pid_stat(5).
        let parent = stat_field(pid, 4).and_then(|parent| u32::try_from(parent).ok());
        pid = parent.filter(|pid| *pid > 1).unwrap_or_else(|| panic!("{server} has no guard"));
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if line.split(|octet| *octet == 0).nth(1) == Some(b"guard") {
            return pid;
        }
    }
}

/// A numeric field of `/proc/PID/stat`, from 1 as in proc_pid_stat(5). The second one, the name, may have
/// spaces and parentheses.
fn stat_field(pid: u32, number: usize) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

#[track_caller]
pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// For a process that is not our child.
#[track_caller]
pub(crate) fn signal(pid: u32, signal: Signal) {
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("process ids are positive");
    rustix::process::kill_process(id, signal)
        .unwrap_or_else(|error| panic!("cannot signal {pid}: {error}"));
}

/// The control groups whose maker is gone.
pub(crate) fn orphaned_groups() -> BTreeSet<String> {
    let output = Command::new("find")
        .args(["/sys/fs/cgroup", "-type", "d", "-name", "dnslab-*"])
        // Groups of others come and go during the walk. The complaints do not matter.
        .output()
        .expect("`find` is a part of every system");
    let text = String::from_utf8_lossy(&output.stdout);
    let maker = |path: &str| path.rsplit_once("/dnslab-")?.1.split('-').next()?.parse::<u32>().ok();
    let orphaned =
        |path: &&str| maker(path).is_none_or(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    text.lines().filter(orphaned).map(str::to_owned).collect()
}

#[track_caller]
pub(crate) fn ports_are_free(records: &[RunRecord]) {
    for record in records {
        let target = &record.load.target;
        let address: SocketAddr =
            target.parse().unwrap_or_else(|_| panic!("the target `{target}` is no address"));
        TcpListener::bind(address).unwrap_or_else(|error| panic!("TCP {target}: {error}"));
        UdpSocket::bind(address).unwrap_or_else(|error| panic!("UDP {target}: {error}"));
    }
}

/// Removes a control group. Its processes go on in the group above.
pub(crate) fn remove_group(folder: &Path) {
    let parent = folder.parent().expect("it was made below a folder").join("cgroup.procs");
    for pid in fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default().lines() {
        fs::write(&parent, pid).ok();
    }
    for _ in 0..100 {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            _ => return,
        }
    }
}
