//! What this machine is, for the provenance of every result.

use std::fs;
use std::path::Path;

use dnslab_record::Fact;
use rustix::process::Resource;

use crate::{cgroup, cpus, readings};

/// In the order in which they are shown. What the kernel does not say is left out.
#[must_use]
pub fn facts() -> Vec<Fact> {
    let uname = rustix::system::uname();
    let kernel = format!(
        "{} {} {}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy()
    );
    let online = read("/sys/devices/system/cpu/online");
    let all = online.as_deref().and_then(|list| cpus::parse_list(list).ok());
    let files = rustix::process::getrlimit(Resource::Nofile);
    let limit = |limit: Option<u64>| {
        limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
    };
    let facts = [
        ("CPU", cpu_model()),
        ("CPUs", Some(cpu_count(all.as_deref().unwrap_or_default(), &cpus::allowed()))),
        ("threads of one core", thread_siblings()),
        ("kernel", Some(kernel)),
        ("operating system", operating_system()),
        ("memory", memory_octets().map(|octets| format!("{} MiB", octets >> 20))),
        ("virtualisation", Some(virtualisation().unwrap_or_else(|| "none seen".to_owned()))),
        ("CPU frequency governor", governor()),
        ("clock source", clock_source()),
        (
            "file descriptors",
            Some(format!("{} (hard limit {})", limit(files.current), limit(files.maximum))),
        ),
        ("net.core.rmem_max", kernel_setting("net/core/rmem_max")),
        ("net.core.wmem_max", kernel_setting("net/core/wmem_max")),
        ("net.core.somaxconn", kernel_setting("net/core/somaxconn")),
        ("net.ipv4.ip_local_port_range", kernel_setting("net/ipv4/ip_local_port_range")),
        ("control groups", Some(cgroup::version().to_owned())),
        (
            "steal since the machine started",
            Some(format!("{:.2} s", readings::MachineTime::now().steal_ns as f64 / 1e9)),
        ),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| {
        Some(Fact { name: name.to_owned(), value: value.filter(|value| !value.is_empty())? })
    });
    known.collect()
}

/// What the kernel has of its own since it started (random(4)); empty where it does not say.
#[must_use]
pub fn boot_id() -> String {
    read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// The network namespace of this process, by the name that the kernel gives it; empty where it does not say.
#[must_use]
pub fn network() -> String {
    let link = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// A file's text without white space at its ends; `None` if it is not there.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// A kernel setting, by its path below `/proc/sys`; numbers separated by one blank.
pub(crate) fn kernel_setting(path: &str) -> Option<String> {
    let text = read(Path::new("/proc/sys").join(path))?;
    Some(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// The hypervisor: the maker's name from its firmware, or only that there is one.
pub(crate) fn virtualisation() -> Option<String> {
    let hypervisor = cpu_info("flags").is_some_and(|flags| has_word(&flags, "hypervisor"));
    // A container's or a bare machine's firmware names the maker of the hardware.
    let names = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| read(Path::new("/sys/class/dmi/id").join(name)));
    let firmware = names.collect::<Vec<_>>().join(" ");
    match (hypervisor, firmware.is_empty()) {
        (false, _) => None,
        (true, true) => Some("a hypervisor (CPU flag)".to_owned()),
        (true, false) => Some(format!("a hypervisor (CPU flag), {firmware}")),
    }
}

/// The governor of the first CPU; `None` where the frequency is not the kernel's to choose.
pub(crate) fn governor() -> Option<String> {
    let first = cpus::allowed().first().copied().unwrap_or(0);
    read(format!("/sys/devices/system/cpu/cpu{first}/cpufreq/scaling_governor"))
}

pub(crate) fn clock_source() -> Option<String> {
    read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

/// The CPUs that share a core with another one that this process may use: lists, blank-separated.
pub(crate) fn thread_siblings() -> Option<String> {
    let mut lists: Vec<String> = cpus::allowed()
        .iter()
        .filter_map(|cpu| {
            read(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
        })
        .filter(|list| cpus::parse_list(list).is_ok_and(|cpus| cpus.len() > 1))
        .collect();
    lists.dedup();
    lists.sort();
    lists.dedup();
    (!lists.is_empty()).then(|| lists.join(" "))
}

/// `2: 0-1`, or with the part that this process may use.
fn cpu_count(online: &[usize], allowed: &[usize]) -> String {
    let all = format!("{}: {}", online.len(), cpus::text(online));
    if online == allowed { all } else { format!("{all}, of which allowed {}", cpus::text(allowed)) }
}

/// The model name of the first CPU; ARM kernels give numbers instead of a name.
fn cpu_model() -> Option<String> {
    cpu_info("model name").or_else(|| {
        Some(format!("implementer {} part {}", cpu_info("CPU implementer")?, cpu_info("CPU part")?))
    })
}

/// The first value of a key in `/proc/cpuinfo`.
fn cpu_info(key: &str) -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    text.lines().find_map(|line| {
        let (its, value) = line.split_once(':')?;
        (its.trim() == key).then(|| value.trim().to_owned())
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_ascii_whitespace().any(|one| one == word)
}

/// `PRETTY_NAME` of os-release(5).
fn operating_system() -> Option<String> {
    let text = read("/etc/os-release")?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// `MemTotal` of `/proc/meminfo`, octets.
fn memory_octets() -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let value = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Name of this host (uname(2)).
#[must_use]
pub fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Octets that the disk under `path` has left for this user; `None` if the system does not say.
#[must_use]
pub fn free_octets(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_its_facts() {
        let facts = facts();
        for name in ["CPUs", "kernel", "memory", "file descriptors", "control groups"] {
            let fact = facts.iter().find(|fact| fact.name == name);
            assert!(fact.is_some_and(|fact| !fact.value.is_empty()), "{name}: {facts:?}");
        }
        let kernel = &facts.iter().find(|fact| fact.name == "kernel").unwrap().value;
        assert!(kernel.starts_with("Linux "), "{kernel}");
    }

    #[test]
    fn cpus_are_told_with_what_is_allowed() {
        assert_eq!(cpu_count(&[0, 1], &[0, 1]), "2: 0-1");
        assert_eq!(cpu_count(&[0, 1, 2, 3], &[1]), "4: 0-3, of which allowed 1");
    }
}
