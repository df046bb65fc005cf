//! The sampler against a process whose use is known.

use std::thread;
use std::time::{Duration, Instant};

use dnslab_lab::{CpuSource, RunningProcess, Sampler, Watched};
use dnslab_record::ResourceSeries;

use crate::program::{guard, program};
use crate::support::{guarded, wait_until};

/// One busy thread (a new one every 50 ms).
fn spin(folder: &std::path::Path) -> RunningProcess {
    let program = program();
    let spec = guarded(folder, &[program.to_str().unwrap(), "spin", "1"]);
    let process = RunningProcess::start(&guard(), &spec).unwrap();
    wait_until("it spins", || user_and_system_s(process.pid()) > 0.05);
    process
}

/// CPU time of a process and its ended threads, seconds in steps of a tick.
fn user_and_system_s(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn total_s(series: &ResourceSeries) -> f64 {
    let (first, last) = (series.samples.first().unwrap(), series.samples.last().unwrap());
    (last.cpu_ns - first.cpu_ns) as f64 / 1e9
}

#[test]
fn both_sources_agree_with_the_kernel_on_a_busy_process() {
    let folder = tempfile::tempdir().unwrap();
    let process = spin(folder.path());
    let watched = Watched::new(process.pid(), process.sources().clone(), 1);
    // What the kernel counted over a span inside the samplers' and over one that encloses it: true however
    // late a busy machine runs any of us.
    let outside = user_and_system_s(process.pid());
    let samplers = [Sampler::start(watched.clone()), Sampler::start(watched.without_groups())];
    let origin = Instant::now();
    let inside = user_and_system_s(process.pid());
    wait_until("0.5 s are used", || user_and_system_s(process.pid()) > inside + 0.5);
    let inside = user_and_system_s(process.pid()) - inside;
    let series = samplers.map(|sampler| sampler.finish(origin));
    let outside = user_and_system_s(process.pid()) - outside;
    for series in &series {
        let found = total_s(series);
        // User and system time are cut to ticks of 10 ms each, and the group's figure follows at the next
        // tick.
        assert!(found > inside - 0.05 && found < outside + 0.05, "{inside} {outside}: {series:?}");
        let samples = &series.samples;
        assert!(samples.windows(2).all(|two| two[0].at_ns < two[1].at_ns), "{samples:?}");
        assert!(samples.windows(2).all(|two| two[0].cpu_ns <= two[1].cpu_ns), "{samples:?}");
        let switches: Vec<u64> = samples.iter().map(|sample| sample.context_switches).collect();
        assert!(switches.is_sorted() && switches.last() > switches.first(), "{switches:?}");
        assert!(samples.iter().all(|sample| sample.memory_octets > 100_000), "{samples:?}");
        assert!(samples[0].at_ns <= 0 && samples.len() >= 2, "{samples:?}");
    }
    assert_eq!(series[1].cpu_source, "/proc/PID/task/*/schedstat, /proc/PID/stat");
}

#[test]
fn an_idle_process_uses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spec = guarded(folder.path(), &["sleep", "1000"]);
    let process = RunningProcess::start(&guard(), &spec).unwrap();
    wait_until("sleep runs", || {
        std::fs::read_to_string(format!("/proc/{}/comm", process.pid())).unwrap() == "sleep\n"
    });
    thread::sleep(Duration::from_millis(50));
    let sampler = Sampler::start(Watched::new(process.pid(), process.sources().clone(), 1));
    thread::sleep(Duration::from_millis(250));
    let series = sampler.finish(Instant::now());
    assert!(total_s(&series) < 0.005, "{series:?}");
    let [before @ .., last] = series.samples.as_slice() else { panic!("{series:?}") };
    assert!(before.iter().all(|sample| sample.at_ns < 0) && last.at_ns >= 0, "{series:?}");
}

#[test]
fn the_watch_ends_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let process = spin(folder.path());
    let sampler = Sampler::start(Watched::new(process.pid(), process.sources().clone(), 1));
    thread::sleep(Duration::from_millis(150));
    process.stop(Duration::from_secs(5));
    let series = sampler.finish(Instant::now());
    assert!(!series.samples.is_empty(), "{series:?}");
}

#[test]
fn root_gets_a_group_where_there_are_groups() {
    let folder = tempfile::tempdir().unwrap();
    let process = spin(folder.path());
    let (root, groups) =
        (rustix::process::geteuid().is_root(), std::path::Path::new("/sys/fs/cgroup").exists());
    let writable = std::process::Command::new("sh")
        .args(["-c", "find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs -writable | grep -q ."])
        .status()
        .unwrap()
        .success();
    if root && groups && writable {
        assert_ne!(process.sources().cpu, CpuSource::Processes);
    }
}
