//! Control groups that count what a server uses (cgroups(7)). CPU time and memory are read from version 2
//! where it has them, otherwise from version 1.
//!
//! A new group in the version 2 tree has `cpu.stat` even when no controller is enabled there, so the CPU time
//! comes from it nearly everywhere. Groups are made below the group of the caller: limits that hold for the
//! caller hold for the server too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// Where the server's CPU time is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuSource {
    /// `usage_usec` in `cpu.stat` of this version 2 group.
    V2(PathBuf),
    /// `cpuacct.usage` of this version 1 group.
    V1(PathBuf),
    /// The threads of the server's processes.
    Processes,
}

/// Where the server's memory is read.
///
/// In both versions the figure is the working set: what is charged to the group without the page cache that
/// the kernel may drop at once (`inactive_file`). A query log of gigabytes is not memory that the server
/// needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemorySource {
    /// `memory.current` of this version 2 group.
    V2(PathBuf),
    /// `memory.usage_in_bytes` of this version 1 group.
    V1(PathBuf),
    /// The resident sets of the server's processes.
    Processes,
}

/// Where the figures of one server come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// The CPU time.
    pub cpu: CpuSource,
    /// The memory.
    pub memory: MemorySource,
}

impl Sources {
    pub(crate) const PROCESSES: Self =
        Self { cpu: CpuSource::Processes, memory: MemorySource::Processes };
}

#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) folder: PathBuf,
    /// All processes in it and in the groups below it.
    pub(crate) processes: Vec<u32>,
}

/// Levels of groups that are searched for a unit: services of users are at the fifth.
const DEPTH: usize = 8;

/// The group of the unit `name`. A group with processes is preferred, then one in the version 2 tree. Units
/// of several users may have the same name.
pub(crate) fn unit(name: &str) -> Option<Unit> {
    let mut folders = Vec::new();
    for mount in mount_points(&mounts()) {
        named_below(&mount, name, DEPTH, &mut folders);
    }
    let units = folders.into_iter().map(|folder| Unit { processes: members(&folder), folder });
    // The first of those that are alike.
    units.reduce(|first, next| {
        if first.processes.is_empty() && !next.processes.is_empty() { next } else { first }
    })
}

/// All processes in a group and in those below it.
pub(crate) fn members(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // 0 stands for a process of another namespace.
    let own = text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0);
    let mut all: Vec<u32> = own.collect();
    all.extend(folders_in(group).iter().flat_map(|below| members(below)));
    all
}

/// Adds the groups called `name` within `depth` levels below `folder`.
fn named_below(folder: &Path, name: &str, depth: usize, found: &mut Vec<PathBuf>) {
    for below in folders_in(folder) {
        if below.file_name().is_some_and(|its| its == name) {
            found.push(below);
        } else if depth > 1 {
            named_below(&below, name, depth - 1, found);
        }
    }
}

/// Without links to folders.
fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.flatten().filter(is_folder).map(|entry| entry.path()).collect()
}

/// Where control groups are mounted, version 2 first.
fn mount_points(mounts: &str) -> Vec<PathBuf> {
    ["cgroup2", "cgroup"].map(|kind| mount_points_of(mounts, kind)).concat()
}

/// Where file systems of a kind are mounted, from the text of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).
fn mount_points_of(mounts: &str, kind: &str) -> Vec<PathBuf> {
    let lines = mounts.lines().filter_map(|line| line.split_once(" - "));
    let of_kind = lines.filter(|(_, after)| after.split(' ').next() == Some(kind));
    let points = of_kind.filter_map(|(before, _)| before.split(' ').nth(4));
    points.map(PathBuf::from).collect()
}

impl CpuSource {
    /// The source as text, for the record.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self {
            Self::V2(_) => "cgroup v2 cpu.stat",
            Self::V1(_) => "cgroup v1 cpuacct.usage",
            Self::Processes => "/proc/PID/task/*/schedstat, /proc/PID/stat",
        }
    }

    /// CPU time of the group since it was made, nanoseconds; `None` if there is no group (any more).
    pub(crate) fn read_ns(&self) -> Option<u64> {
        match self {
            Self::V2(group) => Some(keyed(&group.join("cpu.stat"), "usage_usec")? * 1_000),
            Self::V1(group) => number(&group.join("cpuacct.usage")),
            Self::Processes => None,
        }
    }
}

impl MemorySource {
    /// The source as text, for the record.
    #[must_use]
    pub fn describe(&self) -> &'static str {
        match self {
            Self::V2(_) => "cgroup v2 memory.current without inactive_file",
            Self::V1(_) => "cgroup v1 memory.usage_in_bytes without inactive_file",
            Self::Processes => {
                "/proc/PID/statm, resident, pages shared by processes counted in each"
            }
        }
    }

    /// Working set of the group, octets; `None` if there is no group (any more).
    pub(crate) fn read_octets(&self) -> Option<u64> {
        let (group, usage, inactive) = match self {
            Self::V2(group) => (group, "memory.current", "inactive_file"),
            Self::V1(group) => (group, "memory.usage_in_bytes", "total_inactive_file"),
            Self::Processes => return None,
        };
        let usage = number(&group.join(usage))?;
        Some(usage.saturating_sub(keyed(&group.join("memory.stat"), inactive).unwrap_or(0)))
    }
}

/// The groups made for one server. The guard makes and removes them.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) sources: Sources,
}

impl Groups {
    /// No group: the process is in those of the guard, and nobody reads its figures.
    pub(crate) fn none() -> Self {
        Self { folders: Vec::new(), sources: Sources::PROCESSES }
    }

    /// Makes what this user may make. An ordinary user often may make nothing, which is no error.
    pub(crate) fn create() -> Self {
        let mut folders = Vec::new();
        let mut make = |controller| {
            let folder = make_below(&own_group(controller)?)?;
            folders.push(folder.clone());
            Some(folder)
        };
        let v2 = make(None);
        let with = |file: &str| v2.clone().filter(|group| group.join(file).exists());
        let cpu = with("cpu.stat")
            .filter(|group| keyed(&group.join("cpu.stat"), "usage_usec").is_some())
            .map(CpuSource::V2)
            .or_else(|| make(Some("cpuacct")).map(CpuSource::V1))
            .unwrap_or(CpuSource::Processes);
        let memory = with("memory.current")
            .map(MemorySource::V2)
            .or_else(|| make(Some("memory")).map(MemorySource::V1))
            .unwrap_or(MemorySource::Processes);
        Self { folders, sources: Sources { cpu, memory } }
    }

    /// Kills every process in the groups, where the kernel has `cgroup.kill` (version 2 only).
    pub(crate) fn kill(&self) {
        for folder in &self.folders {
            // A version 1 group has no such file, and must not get one.
            if folder.join("cgroup.kill").exists() {
                fs::write(folder.join("cgroup.kill"), "1").ok();
            }
        }
    }

    /// The kernel keeps a group busy for a moment after its last process has ended, so this tries for up to a
    /// second.
    pub(crate) fn remove(&self) {
        self.folders.iter().for_each(|folder| remove(folder));
    }
}

impl Sources {
    /// Kills what is left in the groups of a guard that was killed, and removes them.
    pub(crate) fn clear_away(&self) {
        let mut folders = Vec::new();
        if let CpuSource::V2(group) | CpuSource::V1(group) = &self.cpu {
            folders.push(group.clone());
        }
        if let MemorySource::V2(group) | MemorySource::V1(group) = &self.memory {
            folders.push(group.clone());
        }
        let groups = Groups { folders, sources: self.clone() };
        groups.kill();
        groups.remove();
    }
}

fn remove(group: &Path) {
    for _ in 0..100 {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(Duration::from_millis(10));
            }
            _ => return,
        }
    }
}

/// What the caller's groups look like, for provenance: `v2`, `v1`, `v1 and v2 (hybrid)` or `none`.
pub(crate) fn version() -> &'static str {
    let (mounts, own) = (mounts(), own());
    let v1 = ["cpuacct", "memory"]
        .iter()
        .any(|wanted| group_path(&mounts, &own, Some(wanted)).is_some());
    match (v1, group_path(&mounts, &own, None).is_some()) {
        (true, true) => "v1 and v2 (hybrid)",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    }
}

/// Makes a group below `parent`, named after this process. This process enters and leaves it: proof that
/// processes may enter.
fn make_below(parent: &Path) -> Option<PathBuf> {
    sweep(parent);
    let own = std::process::id();
    // The same process id can be in use in another namespace that shares the tree.
    let folder = (0..10).find_map(|attempt| {
        let ending = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let folder = parent.join(format!("dnslab-{own}{ending}"));
        fs::create_dir(&folder).ok().map(|()| folder)
    })?;
    let entered = fs::write(folder.join("cgroup.procs"), own.to_string());
    fs::write(parent.join("cgroup.procs"), own.to_string()).ok();
    if entered.is_err() {
        fs::remove_dir(&folder).ok();
        return None;
    }
    Some(folder)
}

/// Removes empty groups that a killed guard left behind more than a minute ago.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix("dnslab-")) else {
            continue;
        };
        let maker = rest.split('-').next().unwrap_or_default();
        let old = entry.metadata().and_then(|facts| facts.modified()).is_ok_and(|made| {
            SystemTime::now().duration_since(made).is_ok_and(|age| age > Duration::from_secs(60))
        });
        if old && !Path::new("/proc").join(maker).exists() {
            // The kernel refuses to remove a group that still has a process.
            fs::remove_dir(entry.path()).ok();
        }
    }
}

/// The folder of the caller's own group: in the version 2 tree for `None`, else in the version 1 hierarchy of
/// `controller`.
fn own_group(controller: Option<&str>) -> Option<PathBuf> {
    group_path(&mounts(), &own(), controller)
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

fn own() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// A control group, and where its hierarchy is mounted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) folder: PathBuf,
    pub(crate) mount_point: PathBuf,
}

/// The group of a process (an id, or `self`) in the version 2 tree for `None`, else in the version 1 hierarchy of
/// `controller`.
pub(crate) fn mounted(process: &str, controller: Option<&str>) -> Option<Mounted> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    group(&mounts(), &groups, controller)
}

fn group_path(mounts: &str, own: &str, controller: Option<&str>) -> Option<PathBuf> {
    Some(group(mounts, own, controller)?.folder)
}

/// Joins `/proc/self/mountinfo` and `/proc/PID/cgroup` (proc_pid_mountinfo(5), cgroups(7)).
fn group(mounts: &str, own: &str, controller: Option<&str>) -> Option<Mounted> {
    let (root, mount_point) = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut filesystem = after.split(' ');
        let (kind, _, options) = (filesystem.next()?, filesystem.next()?, filesystem.next()?);
        let wanted = match controller {
            None => kind == "cgroup2",
            Some(name) => kind == "cgroup" && options.split(',').any(|option| option == name),
        };
        let mut fields = before.split(' ').skip(3);
        wanted.then_some((fields.next()?, fields.next()?))
    })?;
    let group = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let wanted = match controller {
            None => number == "0",
            Some(name) => names.split(',').any(|one| one == name),
        };
        wanted.then_some(path)
    })?;
    // In a container without a cgroup namespace both name the container's group.
    let below = Path::new(group).strip_prefix(root).unwrap_or(Path::new(group));
    let below = below.strip_prefix("/").unwrap_or(below);
    let mount_point = PathBuf::from(mount_point);
    Some(Mounted { folder: mount_point.join(below), mount_point })
}

pub(crate) fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after `key` in a file of lines `KEY NUMBER`.
pub(crate) fn keyed(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hybrid of both versions, one hierarchy of the first mounted from inside a container.
    const MOUNTS: &str = "\
31 23 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
33 23 0:29 /box/7 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
";
    const OWN: &str = "4:memory:/box/7/inner\n3:cpu,cpuacct:/user\n0::/user.slice/a:b.scope\n";

    #[test]
    fn the_own_group_is_found_in_each_hierarchy() {
        let cases = [
            (None, Some("/sys/fs/cgroup/unified/user.slice/a:b.scope")),
            (Some("cpuacct"), Some("/sys/fs/cgroup/cpu,cpuacct/user")),
            (Some("memory"), Some("/sys/fs/cgroup/memory/inner")),
            (Some("pids"), None),
        ];
        for (controller, expected) in cases {
            let found = group_path(MOUNTS, OWN, controller);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{controller:?}");
        }
        assert_eq!(group_path("", "", None), None);
    }

    #[test]
    fn units_are_searched_in_every_hierarchy() {
        let [v2, cpu, memory] =
            ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"];
        assert_eq!(mount_points(MOUNTS), [v2, cpu, memory].map(PathBuf::from));
        let mount = tempfile::tempdir().unwrap();
        let unit = mount.path().join("system.slice/named.service");
        fs::create_dir_all(unit.join("inner")).unwrap();
        fs::write(unit.join("cgroup.procs"), "7\n0\n").unwrap();
        fs::write(unit.join("inner/cgroup.procs"), "8\n").unwrap();
        let mut found = Vec::new();
        named_below(mount.path(), "named.service", 2, &mut found);
        assert_eq!(found, [unit.as_path()]);
        assert_eq!(members(&unit), [7, 8]);
        assert!(members(mount.path().join("gone").as_path()).is_empty());
        found.clear();
        named_below(mount.path(), "named.service", 1, &mut found);
        named_below(mount.path(), "other.service", 9, &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn keys_are_whole_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.stat");
        fs::write(&path, "inactive_file_extra 1\ninactive_file 2\n").unwrap();
        assert_eq!(keyed(&path, "inactive_file"), Some(2));
        assert_eq!(keyed(&path, "inactive"), None);
    }

    #[test]
    fn figures_are_read_from_either_version() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().to_owned();
        let files = [
            ("cpu.stat", "usage_usec 5\nuser_usec 3\n"),
            ("cpuacct.usage", "7000\n"),
            ("memory.current", "100\n"),
            ("memory.usage_in_bytes", "200\n"),
            ("memory.stat", "inactive_file 10\ntotal_inactive_file 20\n"),
        ];
        for (name, content) in files {
            fs::write(group.join(name), content).unwrap();
        }
        assert_eq!(CpuSource::V2(group.clone()).read_ns(), Some(5_000));
        assert_eq!(CpuSource::V1(group.clone()).read_ns(), Some(7_000));
        assert_eq!(CpuSource::Processes.read_ns(), None);
        assert_eq!(MemorySource::V2(group.clone()).read_octets(), Some(90));
        assert_eq!(MemorySource::V1(group).read_octets(), Some(180));
        let gone = Path::new("/nonexistent").to_owned();
        assert_eq!(CpuSource::V2(gone.clone()).read_ns(), None);
        assert_eq!(MemorySource::V1(gone).read_octets(), None);
    }
}
