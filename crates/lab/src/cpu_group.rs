//! What control groups say of the wait for CPU time: the quota, how often it was used up, and the pressure.
//!
//! A quota holds for a group and all below it, so a process has the smallest quota of its group and of all that lie
//! above it, as far as they are seen from here. In version 1 it is `cpu.cfs_quota_us` for each `cpu.cfs_period_us`, in
//! version 2 `cpu.max`. Both count in `cpu.stat` the periods in which the group ran, those in which the quota was
//! used up, and for how long the group had to wait then.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dnslab_record::{CpuLimit, Span};

use crate::cgroup::{Mounted, keyed, mounted, number};
use crate::timeline::signed_ns;

/// Time between two readings of a [`GroupWatch`], as of the samples of a server.
const INTERVAL: Duration = Duration::from_millis(100);

/// A control group with a quota.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LimitedGroup {
    pub(crate) folder: PathBuf,
    /// The quota in CPUs.
    pub(crate) cpus: f64,
}

impl LimitedGroup {
    /// The group that bounds the process `process` (an id, or `self`) most; `None` if none has a quota.
    pub(crate) fn of(process: &str) -> Option<Self> {
        let groups = [None, Some("cpu")].map(|controller| mounted(process, controller));
        groups
            .into_iter()
            .flatten()
            .flat_map(above)
            .min_by(|one, two| one.cpus.total_cmp(&two.cpus))
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        let cpus = quota(folder)?;
        Some(Self { folder: folder.to_owned(), cpus })
    }

    /// All counts since the group was made; `None` if it is gone.
    fn read(&self) -> Option<Throttling> {
        let stat = self.folder.join("cpu.stat");
        let ns = keyed(&stat, "throttled_time");
        let us = || Some(keyed(&stat, "throttled_usec")? * 1_000);
        Some(Throttling {
            periods: keyed(&stat, "nr_periods")?,
            throttled: keyed(&stat, "nr_throttled")?,
            throttled_ns: ns.or_else(us)?,
        })
    }
}

/// The groups with a quota from this one up to where its hierarchy is mounted.
fn above(Mounted { folder, mount_point }: Mounted) -> Vec<LimitedGroup> {
    let folders = folder.ancestors().take_while(|above| above.starts_with(&mount_point));
    folders.filter_map(LimitedGroup::in_folder).collect()
}

/// The quota of a group in CPUs, whichever version it is of; `None` without one.
fn quota(folder: &Path) -> Option<f64> {
    quota_v2(folder).or_else(|| quota_v1(folder)).filter(|quota| quota.is_finite())
}

fn quota_v2(folder: &Path) -> Option<f64> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    // `max` is no number.
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

fn quota_v1(folder: &Path) -> Option<f64> {
    // -1 is no quota.
    let quota = number(&folder.join("cpu.cfs_quota_us"))?;
    Some(quota as f64 / number(&folder.join("cpu.cfs_period_us"))? as f64)
}

/// Counts since the group was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Throttling {
    periods: u64,
    throttled: u64,
    throttled_ns: u64,
}

/// Time for which some thread of a group waited for a CPU since the group was made, nanoseconds, from the file
/// `cpu.pressure`: `some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS`.
pub(crate) fn pressure_ns(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split(' ').find_map(|word| word.strip_prefix("total="))?;
    Some(total.parse::<u64>().ok()? * 1_000)
}

/// What the control groups of a side said over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupWaits {
    /// The quota, and how often it was used up; `None` without a quota.
    pub limit: Option<CpuLimit>,
    /// Share of the window for which some thread of the group waited for a CPU, in [0, 1]; `None` where the kernel
    /// does not say.
    pub pressure_share: Option<f64>,
}

/// Readings of the control groups of a side.
#[derive(Debug, Default)]
pub(crate) struct GroupLog {
    limit: Option<LimitedGroup>,
    /// `cpu.pressure` of the group.
    pressure: Option<PathBuf>,
    readings: Vec<Reading>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at_ns: i64,
    throttling: Throttling,
    pressure_ns: u64,
}

impl GroupLog {
    /// The groups of these processes. Of several quotas the smallest counts, and the pressure is that of the first
    /// process's group.
    pub(crate) fn of<'a>(processes: impl Iterator<Item = &'a str> + Clone) -> Self {
        let limits = processes.clone().filter_map(LimitedGroup::of);
        let limit = limits.min_by(|one, two| one.cpus.total_cmp(&two.cpus));
        let group = processes.take(1).find_map(|process| mounted(process, None));
        let pressure = group.map(|group| group.folder.join("cpu.pressure"));
        let pressure = pressure.filter(|file| pressure_ns(file).is_some());
        Self { limit, pressure, readings: Vec::new() }
    }

    /// True if there is nothing to read.
    fn is_silent(&self) -> bool {
        self.limit.is_none() && self.pressure.is_none()
    }

    /// Takes a reading. One that fails is left out: the counts only grow.
    pub(crate) fn read(&mut self, at_ns: i64) {
        let throttling = self.limit.as_ref().map(LimitedGroup::read);
        let pressure_ns = self.pressure.as_deref().map(pressure_ns);
        if throttling != Some(None) && pressure_ns != Some(None) && !self.is_silent() {
            let throttling = throttling.flatten().unwrap_or_default();
            let pressure_ns = pressure_ns.flatten().unwrap_or_default();
            self.readings.push(Reading { at_ns, throttling, pressure_ns });
        }
    }

    /// What was said between the readings that enclose a window, or the outermost ones where none do.
    pub(crate) fn over(&self, window: Span) -> GroupWaits {
        let Span { from_ns, to_ns } = window;
        let readings = &self.readings;
        let before = readings.iter().rfind(|reading| reading.at_ns <= from_ns).or(readings.first());
        let after = readings.iter().find(|reading| reading.at_ns >= to_ns).or(readings.last());
        let Some((before, after)) = before.zip(after) else { return GroupWaits::default() };
        let grown = |count: fn(&Reading) -> u64| count(after).saturating_sub(count(before));
        let limit = self.limit.as_ref().map(|group| CpuLimit {
            cpus: group.cpus,
            group: group.folder.display().to_string(),
            periods: grown(|reading| reading.throttling.periods),
            throttled: grown(|reading| reading.throttling.throttled),
            throttled_ns: grown(|reading| reading.throttling.throttled_ns),
        });
        let span_ns = after.at_ns - before.at_ns;
        let pressure_share = (self.pressure.is_some() && span_ns > 0)
            .then(|| (grown(|reading| reading.pressure_ns) as f64 / span_ns as f64).min(1.0));
        GroupWaits { limit, pressure_share }
    }
}

/// A thread that reads what the control groups of this process say, every 0.1 s.
#[derive(Debug)]
pub struct GroupWatch {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<GroupLog>,
    began: Instant,
}

/// Reads until it is told to stop, and then once more.
fn read_until(mut log: GroupLog, began: Instant, stopped: &mpsc::Receiver<()>) -> GroupLog {
    loop {
        let end = stopped.recv_timeout(INTERVAL);
        log.read(signed_ns(Instant::now(), began));
        if !matches!(end, Err(RecvTimeoutError::Timeout)) {
            return log;
        }
    }
}

impl GroupWatch {
    /// Takes the first reading before it returns; `None` where there is nothing to read, or no thread for it.
    #[must_use]
    pub fn start() -> Option<Self> {
        let mut log = GroupLog::of(std::iter::once("self"));
        if log.is_silent() {
            return None;
        }
        let (stop, stopped) = mpsc::channel();
        let began = Instant::now();
        log.read(0);
        let thread = thread::Builder::new().spawn(move || read_until(log, began, &stopped)).ok()?;
        Some(Self { stop, thread, began })
    }

    /// Takes a last reading and tells what was said over a window of the timeline that begins at `origin`.
    #[must_use]
    pub fn finish(self, origin: Instant, window: Span) -> GroupWaits {
        self.stop.send(()).ok();
        // After a panic nothing is known of the groups.
        let log = self.thread.join().unwrap_or_default();
        let began = signed_ns(self.began, origin);
        log.over(window.since(began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, content) in files {
            fs::write(folder.join(name), content).unwrap();
        }
    }

    #[test]
    fn the_smallest_quota_up_to_the_mount_point_counts() {
        let root = tempfile::tempdir().unwrap();
        let mount_point = root.path().join("mount");
        let folder = mount_point.join("pod/box/inner");
        write(root.path(), &[("cpu.max", "1 100000\n")]);
        write(&mount_point, &[("cpu.max", "max 100000\n")]);
        write(&mount_point.join("pod"), &[("cpu.max", "20000 100000\n")]);
        write(&mount_point.join("pod/box"), &[("cpu.max", "150000 100000\n")]);
        write(&folder, &[("cpu.max", "max 100000\n")]);
        let found = above(Mounted { folder: folder.clone(), mount_point: mount_point.clone() });
        let cpus: Vec<f64> = found.iter().map(|group| group.cpus).collect();
        assert_eq!(cpus, [1.5, 0.2]);
        // Version 1.
        for limited in ["pod", "pod/box"] {
            fs::remove_file(mount_point.join(limited).join("cpu.max")).unwrap();
        }
        let files = [("cpu.cfs_quota_us", "-1\n"), ("cpu.cfs_period_us", "100000\n")];
        write(&mount_point.join("pod"), &files);
        assert_eq!(above(Mounted { folder: folder.clone(), mount_point: mount_point.clone() }), []);
        write(&mount_point.join("pod"), &[("cpu.cfs_quota_us", "10000\n")]);
        let found = above(Mounted { folder, mount_point: mount_point.clone() });
        assert_eq!(found, [LimitedGroup { folder: mount_point.join("pod"), cpus: 0.1 }]);
    }

    #[test]
    fn counts_of_both_versions_are_told_over_a_window() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().to_owned();
        let limit = Some(LimitedGroup { folder: folder.clone(), cpus: 0.1 });
        let pressure = Some(folder.join("cpu.pressure"));
        let mut log = GroupLog { limit, pressure, readings: Vec::new() };
        for (at_us, periods, throttled) in [(0, 1, 1), (100, 11, 4), (200, 21, 13), (300, 31, 14)] {
            let stat = format!(
                "usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {}\n",
                9 * throttled
            );
            let some = format!("some avg10=1.00 avg60=0.00 avg300=0.00 total={throttled}\nfull x");
            write(&folder, &[("cpu.stat", &stat), ("cpu.pressure", &some)]);
            log.read(at_us * 1_000);
        }
        let found = log.over(Span::between(100_000, 200_000));
        let limit = found.limit.unwrap();
        assert_eq!((limit.periods, limit.throttled, limit.throttled_ns), (10, 9, 81_000));
        assert!((limit.throttled_share() - 0.9).abs() < 1e-9 && limit.cpus == 0.1);
        assert_eq!(found.pressure_share, Some(0.09));
        // Readings that fail are none, and a window that nothing encloses has the outermost.
        fs::remove_file(folder.join("cpu.stat")).unwrap();
        log.read(400_000);
        assert_eq!(log.over(Span::between(-5, 999_000)).limit.unwrap().periods, 30);
        let first = "nr_periods 41\nnr_throttled 24\nthrottled_time 7\n";
        write(&folder, &[("cpu.stat", first)]);
        let version_1 = Throttling { periods: 41, throttled: 24, throttled_ns: 7 };
        assert_eq!(log.limit.as_ref().unwrap().read(), Some(version_1));
        assert_eq!(GroupLog::default().over(Span::between(0, 1)), GroupWaits::default());
    }
}
