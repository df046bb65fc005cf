//! What on this machine would spoil a measurement, and the remedy.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dnslab_record::{Diagnosis, NetworkPath, Severity};
use dnslab_wire::units::share;
use rustix::process::Resource;

use crate::cgroup::{CpuSource, Groups};
use crate::cpu_group::{LimitedGroup, pressure_ns};
use crate::cpus::Cores;
use crate::server::{ServerKind, find, title};
use crate::timers::{ASKED, Sleep};
use crate::{GuardProgram, LabError, cpus, descendants, host, hosts, readings};

/// How long steal and busy processes are watched. Counters tick every 10 ms, so this tells 5 % of a CPU from
/// none.
const WATCH: Duration = Duration::from_millis(200);

/// Looks at everything, in the order in which the list reads best. Takes about 0.2 s.
#[must_use]
pub fn examine(guard: &GuardProgram) -> Vec<Diagnosis> {
    let activity = Activity::watch();
    let mut findings = vec![
        cores(&cpus::allowed()),
        activity.busy(),
        activity.steal(),
        activity.pressure(),
        quota(LimitedGroup::of("self")),
        virtualisation(host::virtualisation()),
        governor(host::governor().as_deref()),
        turbo(
            host::read("/sys/devices/system/cpu/intel_pstate/no_turbo").as_deref(),
            host::read("/sys/devices/system/cpu/cpufreq/boost").as_deref(),
        ),
        clock_source(host::clock_source().as_deref()),
        timers(Sleep::measure()),
        files(rustix::process::getrlimit(Resource::Nofile).current),
        buffers(host::kernel_setting("net/core/rmem_max").as_deref()),
        ports(host::kernel_setting("net/ipv4/ip_local_port_range").as_deref()),
        groups(),
        namespaces(),
    ];
    let servers = ServerKind::ALL.into_iter().filter(|kind| *kind != ServerKind::Embedded);
    findings.extend(servers.map(|kind| installed(kind, guard)));
    findings.extend(confinement());
    findings
}

/// [`examine`] on the host of a server that works, where no load will be: what is busy there is the server itself, and the
/// bounds of this process are none of its own.
#[must_use]
pub fn examine_server_host(guard: &GuardProgram) -> Vec<Diagnosis> {
    const OF_LOAD: [&str; 8] = [
        "CPUs",
        "other load",
        "wait for CPUs",
        "CPU limit",
        "file descriptors",
        "socket buffers",
        "ephemeral ports",
        "short sleeps",
    ];
    let mut found = examine(guard);
    found.retain(|finding| !OF_LOAD.contains(&finding.subject.as_str()));
    found
}

/// What would spoil a measurement between two hosts, by the ways there and back.
#[must_use]
pub fn examine_path(there: &NetworkPath, back: &NetworkPath) -> Vec<Diagnosis> {
    let mut findings = vec![packet_size(there, back)];
    for path in [there, back] {
        findings.extend([receive_queues(path), flows(path), card_speed(path), tracking(path)]);
    }
    findings
}

fn packet_size(there: &NetworkPath, back: &NetworkPath) -> Diagnosis {
    let subject = "path";
    if there.mtu == back.mtu {
        return good(subject, format!("{there}; back {back}"));
    }
    let size = |path: &NetworkPath| format!("MTU {} on {}", path.mtu, path.device_there());
    let found = format!("{}, {}", size(there), size(back));
    let why = "longer packets of one side are fragmented, or lost where fragments are dropped";
    let (least, is_ipv6) = (there.mtu.min(back.mtu), there.to.contains(':'));
    let (prefix, headers) = if is_ipv6 { ("128", 48) } else { ("32", 28) };
    let remedy = format!(
        "try `ping -M do -s {} {to}`; if it fails: ip route replace {to}/{prefix} ... mtu {least}",
        least.saturating_sub(headers),
        to = there.to
    );
    finding(Severity::Note, subject, found, why, &remedy)
}

/// Devices whose packets another program makes, or another device receives.
const WITHOUT_QUEUES: [&str; 8] =
    ["veth", "bridge", "tun", "vlan", "macvlan", "ipvlan", "bond", "wireguard"];

fn receive_queues(path: &NetworkPath) -> Diagnosis {
    let NetworkPath { device, kind, receive_queues, max_queues, is_steered, .. } = path;
    let subject = "receive queues";
    let most = max_queues.map(|most| format!(" of at most {most}")).unwrap_or_default();
    let found = format!("{} receives by {receive_queues}{most}", path.device_there());
    let is_card = device != "lo" && !WITHOUT_QUEUES.contains(&kind.as_str());
    if *receive_queues > 1 || !is_card || *is_steered == Some(true) {
        return good(subject, found);
    }
    let why = "one CPU receives all packets, and is the limit before the server is";
    let remedy = match max_queues {
        Some(most @ 2..) => format!("there: ethtool -L {device} combined {most}"),
        _ => format!(
            "there: echo MASK > /sys/class/net/{device}/queues/rx-0/rps_cpus, with the CPUs as a hexadecimal mask; or give \
             the card of a virtual machine more queues"
        ),
    };
    finding(Severity::Note, subject, found, why, &remedy)
}

/// Whether one generator's queries come by one queue.
fn flows(path: &NetworkPath) -> Diagnosis {
    let subject = "queues of UDP";
    let by = |by: &str| format!("{} chooses by {by}", path.device_there());
    match path.spreads_ports {
        None => good(subject, format!("{} does not say how it chooses", path.device_there())),
        Some(true) => good(subject, by("addresses and ports")),
        Some(false) if path.receive_queues < 2 => good(subject, by("addresses alone; it has one")),
        Some(false) => {
            let why = "one CPU receives all queries of one generator";
            let remedy = format!(
                "there: ethtool -N {device} rx-flow-hash udp4 sdfn, and udp6 too",
                device = path.device
            );
            finding(Severity::Note, subject, by("addresses alone"), why, &remedy)
        }
    }
}

/// Octets on the wire of an answer of 100 octets over UDP and IPv4: with the gap between two frames of Ethernet.
const ANSWER_OCTETS: u32 = 100 + 28 + 38;

/// Cards below this are the limit of a server that has more than one CPU. Mbit/s.
const FAST_MBIT: u32 = 2_500;

fn card_speed(path: &NetworkPath) -> Diagnosis {
    let (subject, device) = ("card speed", path.device_there());
    let Some(mbit) = path.speed_mbit else {
        return good(subject, format!("{device} does not say"));
    };
    let max_qps = u64::from(mbit) * 1_000_000 / 8 / u64::from(ANSWER_OCTETS);
    let found = format!("{device}: {mbit} Mbit/s, {max_qps} answers of 100 octets per second");
    if mbit >= FAST_MBIT {
        return good(subject, found);
    }
    let why = "above that rate the card is measured and not the server";
    finding(Severity::Note, subject, found, why, "ask at a lower rate, or by a faster card")
}

fn tracking(path: &NetworkPath) -> Diagnosis {
    let (subject, host) = ("connection tracking", path.device_there());
    if path.untracked.is_none() {
        return good(subject, format!("none seen on the host of {host}"));
    }
    let why = "it takes CPU time for each packet, and loses some when its table is full";
    let found = format!("the host of {host} tracks connections");
    let remedy = "there: nft 'table inet notrack { chain prerouting { type filter hook prerouting priority raw; udp dport 53 \
                  notrack; }; chain output { type filter hook output priority raw; udp sport 53 notrack; }; }', with the port \
                  of the server, and dport and sport exchanged on a generator; rules with `ct state` must let it through \
                  then. The port of a container needs tracking: raise net.netfilter.nf_conntrack_max instead";
    finding(Severity::Note, subject, found, why, remedy)
}

fn good(subject: &'static str, found: impl Into<String>) -> Diagnosis {
    let (why, remedy) = (String::new(), String::new());
    Diagnosis {
        severity: Severity::Good,
        subject: subject.to_owned(),
        found: found.into(),
        why,
        remedy,
    }
}

fn finding(
    severity: Severity,
    subject: &'static str,
    found: impl Into<String>,
    why: &str,
    remedy: &str,
) -> Diagnosis {
    let (why, remedy) = (why.to_owned(), remedy.to_owned());
    Diagnosis { severity, subject: subject.to_owned(), found: found.into(), why, remedy }
}

fn cores(allowed: &[usize]) -> Diagnosis {
    let subject = "CPUs";
    let found = format!("{} may be used: {}", allowed.len(), cpus::text(allowed));
    let cores = Cores::of_this_machine();
    let split = match cpus::split(allowed, &cores, None, None) {
        Ok(split) if !split.is_shared() => split,
        _ => {
            let why = "server and load take CPU time from each other";
            let remedy = "measure on a machine with two cores or more";
            return finding(Severity::Spoils, subject, found, why, remedy);
        }
    };
    if !split.on_shared_cores(&cores).is_empty() {
        let siblings = host::thread_siblings().unwrap_or_default();
        let found = format!("{found}; threads of one core: {siblings}");
        let why = "server and load would run on two threads of one core and slow each other";
        let remedy = "measure on a machine with two cores or more";
        return finding(Severity::Spoils, subject, found, why, remedy);
    }
    good(subject, format!("{found}; {}", split.describe()))
}

/// What other processes and the hypervisor took within [`WATCH`].
struct Activity {
    /// The busiest other process: its share of one CPU, its id and name.
    busiest: Option<(f64, String)>,
    /// Share of all CPUs' time.
    stolen: f64,
    /// Share of the time for which some program of the machine waited for a CPU; `None` where the kernel does
    /// not say.
    waited: Option<f64>,
    /// Over one minute.
    load_average: Option<f64>,
}

impl Activity {
    fn watch() -> Self {
        let pressure = || pressure_ns(Path::new("/proc/pressure/cpu"));
        let pressed = pressure();
        let (before, stolen, began) =
            (cpu_times(), readings::MachineTime::now().steal_ns, Instant::now());
        thread::sleep(WATCH);
        let (after, stolen_after) = (cpu_times(), readings::MachineTime::now().steal_ns);
        let elapsed = began.elapsed().as_nanos() as f64;
        let waited = pressure().zip(pressed).map(|(after, before)| after.saturating_sub(before));
        let busiest = after
            .iter()
            .filter(|(pid, _)| **pid != std::process::id())
            .map(|(pid, ns)| (ns.saturating_sub(*before.get(pid).unwrap_or(ns)), *pid))
            .max();
        let share = (stolen_after - stolen) as f64 / elapsed / cpus::allowed().len() as f64;
        Self {
            busiest: busiest.map(|(ns, pid)| {
                let name = descendants::name(pid).unwrap_or_default();
                (ns as f64 / elapsed, format!("{pid} {name}"))
            }),
            stolen: share,
            waited: waited.map(|ns| (ns as f64 / elapsed).min(1.0)),
            load_average: host::read("/proc/loadavg")
                .and_then(|text| text.split(' ').next()?.parse().ok()),
        }
    }

    fn busy(&self) -> Diagnosis {
        let subject = "other load";
        let average =
            self.load_average.map_or_else(String::new, |load| format!("load average {load:.2}"));
        match &self.busiest {
            Some((share, name)) if *share >= 0.1 => {
                let share = share::percent(*share, 0);
                let found = format!("process {name} uses {share} of a CPU; {average}");
                let why = "it takes CPU time from the server or the load";
                let remedy = "end it, or wait until it has ended";
                finding(Severity::Spoils, subject, found, why, remedy)
            }
            _ => good(subject, format!("no other process is busy; {average}")),
        }
    }

    /// A wait of a tenth of the time is twice what takes every word from a comparison.
    fn pressure(&self) -> Diagnosis {
        let subject = "wait for CPUs";
        let Some(waited) = self.waited else { return good(subject, "the kernel does not say") };
        let found = format!(
            "some program waited for one for {} of the time within 0.2 s",
            share::percent(waited, 0)
        );
        if waited >= 0.1 {
            let why = "server and load would wait too: their figures are those of a shared machine, and no \
                       difference is certain";
            let remedy = "end what else runs here, or wait until it has ended";
            return finding(Severity::Spoils, subject, found, why, remedy);
        }
        good(subject, found)
    }

    fn steal(&self) -> Diagnosis {
        let found = format!("{} of the time within 0.2 s", share::percent(self.stolen, 1));
        if self.stolen >= 0.01 {
            let why = "another machine on the same hardware takes time from this one";
            let remedy = "measure on dedicated hardware, or repeat when it is quiet";
            return finding(Severity::Spoils, "steal", found, why, remedy);
        }
        good("steal", found)
    }
}

/// The quota of dnslab's own control groups, which holds for the servers that it starts too.
fn quota(limit: Option<LimitedGroup>) -> Diagnosis {
    let subject = "CPU limit";
    let Some(LimitedGroup { folder, cpus }) = limit else {
        return good(subject, "no control group of dnslab has a CPU quota");
    };
    let found = format!("{cpus:.2} CPUs, the quota of the control group {}", folder.display());
    let why = "dnslab, and the servers that it starts, stand still for the rest of each period in which it is \
               used up";
    let remedy = "raise it or lift it: `cpu.max`, `cpu.cfs_quota_us`, `CPUQuota=` of a unit, `--cpus` of a \
                  container";
    finding(Severity::Spoils, subject, found, why, remedy)
}

/// CPU time of every process by its id, nanoseconds in steps of a tick.
fn cpu_times() -> HashMap<u32, u64> {
    let times = descendants::all().into_iter().filter_map(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, readings::ticks_ns(&text)?))
    });
    times.collect()
}

fn virtualisation(found: Option<String>) -> Diagnosis {
    let subject = "virtualisation";
    match found {
        None => good(subject, "none seen"),
        Some(found) => {
            let why = "neighbours may slow this machine; figures compare only within one run";
            finding(Severity::Note, subject, found, why, "watch the steal time of each run")
        }
    }
}

fn governor(found: Option<&str>) -> Diagnosis {
    let subject = "CPU frequency governor";
    match found {
        None => good(subject, "not the kernel's to choose here"),
        Some("performance") => good(subject, "performance"),
        Some(other) => {
            let why = "the frequency follows the load, so a server that waits is also slower";
            finding(Severity::Note, subject, other, why, "cpupower frequency-set -g performance")
        }
    }
}

fn turbo(no_turbo: Option<&str>, boost: Option<&str>) -> Diagnosis {
    let subject = "turbo";
    let (on, remedy) = match (no_turbo, boost) {
        (Some(no_turbo), _) => {
            (no_turbo == "0", "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo")
        }
        (None, Some(boost)) => (boost == "1", "echo 0 > /sys/devices/system/cpu/cpufreq/boost"),
        (None, None) => return good(subject, "not the kernel's to choose here"),
    };
    if on {
        let why = "the frequency depends on the temperature and on the other cores";
        return finding(Severity::Note, subject, "on", why, remedy);
    }
    good(subject, "off")
}

fn clock_source(found: Option<&str>) -> Diagnosis {
    let subject = "clock source";
    match found {
        Some(slow @ ("hpet" | "acpi_pm" | "jiffies")) => {
            let why = "reading the clock costs a system call of a microsecond, for every query";
            let remedy = "boot with a usable TSC (see the kernel's log for why it is not)";
            finding(Severity::Spoils, subject, slow, why, remedy)
        }
        Some(fast) => good(subject, fast),
        None => good(subject, "unknown"),
    }
}

/// What a load worker pays for each of its rounds.
fn timers(sleep: Sleep) -> Diagnosis {
    let subject = "short sleeps";
    let Sleep { lasts, cpu } = sleep;
    let us = |time: Duration| time.as_nanos() as f64 / 1e3;
    let found = format!(
        "one of {:.0} us lasts {:.0} us and takes {:.1} us of CPU time",
        us(ASKED),
        us(lasts),
        us(cpu)
    );
    // A tenth of that time for each round is about what the queries of a round cost.
    if lasts > ASKED + ASKED / 4 || cpu > ASKED / 10 {
        let why = "the load sleeps once a round, so that its CPU time for each query is mostly this \
                   where rates are low, and what it gathers waits longer";
        let remedy = "compare generators by their CPU time on another machine (iron, not virtual); \
                      answered rates and latencies of milliseconds do not mind";
        return finding(Severity::Note, subject, found, why, remedy);
    }
    good(subject, found)
}

fn files(soft: Option<u64>) -> Diagnosis {
    let subject = "file descriptors";
    match soft {
        Some(soft) if soft < 4_096 => {
            let why = "every simulated client has a socket of its own";
            let found = format!("at most {soft}");
            finding(Severity::Note, subject, found, why, "ulimit -n 65536")
        }
        Some(soft) => good(subject, format!("at most {soft}")),
        None => good(subject, "unlimited"),
    }
}

fn buffers(rmem_max: Option<&str>) -> Diagnosis {
    let subject = "socket buffers";
    let Some(octets) = rmem_max.and_then(|text| text.parse::<u64>().ok()) else {
        return good(subject, "unknown");
    };
    let found = format!("net.core.rmem_max is {octets}");
    // A datagram of 100 octets is charged with about 1 KiB: 1 MiB holds 10 ms at 100,000 qps.
    if octets < 1 << 20 {
        let why = "a burst of answers overflows the sockets, which looks like loss";
        return finding(
            Severity::Note,
            subject,
            found,
            why,
            "sysctl -w net.core.rmem_max=16777216 net.core.wmem_max=16777216",
        );
    }
    good(subject, found)
}

fn ports(range: Option<&str>) -> Diagnosis {
    let subject = "ephemeral ports";
    let bounds = range.and_then(|range| {
        let (first, last) = range.split_once(' ')?;
        Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?))
    });
    let Some((first, last)) = bounds else { return good(subject, "unknown") };
    let found = format!("{first} to {last}");
    if last.saturating_sub(first) < 20_000 {
        let why = "connections that were closed keep their port for a minute, so ports run out";
        let remedy = "sysctl -w net.ipv4.ip_local_port_range='15000 65000'";
        return finding(Severity::Note, subject, found, why, remedy);
    }
    good(subject, found)
}

/// Makes a group and removes it again: the only sure way to know.
fn groups() -> Diagnosis {
    let groups = Groups::create();
    groups.remove();
    let (cpu, memory) = (groups.sources.cpu.describe(), groups.sources.memory.describe());
    let found = format!("CPU time from {cpu}, memory from {memory}");
    if groups.sources.cpu == CpuSource::Processes {
        let why = "CPU time of threads that end between two samples is not counted";
        let remedy = "run as root, or in a delegated group: systemd-run --user --scope dnslab ...";
        return finding(Severity::Note, "control groups", found, why, remedy);
    }
    good("control groups", found)
}

fn namespaces() -> Diagnosis {
    match hosts::possible() {
        Ok(()) => good("hosts", "network namespaces can be made"),
        Err(reason) => {
            let why =
                "clients, server and upstream share the loopback interface, and no link is played";
            let remedy = "run as root, with iproute2 installed and CAP_SYS_ADMIN in a container";
            finding(Severity::Note, "hosts", reason, why, remedy)
        }
    }
}

fn installed(kind: ServerKind, guard: &GuardProgram) -> Diagnosis {
    let subject = title(kind);
    match find(kind, None, guard) {
        Ok(found) => good(subject, format!("{} at {}", found.version, found.binary.display())),
        Err(error) => {
            let (found, remedy) = match &error {
                LabError::NotInstalled(missing) => (missing.to_string(), missing.hint.as_str()),
                _ => (error.to_string(), ""),
            };
            finding(Severity::Note, subject, found, "it cannot be measured here", remedy)
        }
    }
}

/// AppArmor's profile for BIND allows the system's folders only, not a run's folder.
fn confinement() -> Option<Diagnosis> {
    let enabled = host::read("/sys/module/apparmor/parameters/enabled")?;
    let profile = Path::new("/etc/apparmor.d/usr.sbin.named");
    let disabled = Path::new("/etc/apparmor.d/disable/usr.sbin.named").exists();
    (enabled == "Y" && profile.exists() && !disabled).then(|| {
        let found = "a profile confines /usr/sbin/named";
        let why = "it may forbid BIND to read its configuration in a run's folder";
        finding(Severity::Note, "AppArmor", found, why, "aa-complain /usr/sbin/named")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_path(there: &NetworkPath, back: &NetworkPath, expected: &[&str]) {
        let found = examine_path(there, back).into_iter();
        let doubts = found.filter(|finding| finding.severity != Severity::Good);
        let subjects: Vec<String> = doubts.map(|finding| finding.subject).collect();
        assert_eq!(subjects, expected, "{there}; {back}");
    }

    #[test]
    fn what_lies_between_hosts_is_looked_at() {
        let card = NetworkPath {
            host: "ns1".to_owned(),
            device: "eth0".to_owned(),
            kind: "ixgbe".to_owned(),
            mtu: 1_500,
            receive_queues: 8,
            speed_mbit: Some(10_000),
            ..NetworkPath::default()
        };
        check_path(&card, &card, &[]);
        check_path(&card, &NetworkPath { mtu: 9_000, ..card.clone() }, &["path"]);
        let slow = NetworkPath { receive_queues: 1, speed_mbit: Some(1_000), ..card.clone() };
        check_path(&slow, &card, &["receive queues", "card speed"]);
        let by_address = NetworkPath { spreads_ports: Some(false), ..card.clone() };
        check_path(&card, &by_address, &["queues of UDP"]);
        let tracked = NetworkPath { untracked: Some(0), ..card.clone() };
        check_path(&card, &tracked, &["connection tracking"]);
        let veth = NetworkPath { kind: "veth".to_owned(), receive_queues: 1, ..card };
        check_path(&veth, &veth, &[]);
    }

    #[test]
    fn every_doubt_has_a_reason() {
        let guard = GuardProgram { path: "/nonexistent/guard".into(), arguments: Vec::new() };
        let findings = examine(&guard);
        assert!(findings.len() >= 14, "{findings:?}");
        for finding in findings {
            assert!(!finding.found.is_empty(), "{finding:?}");
            assert_eq!(finding.severity == Severity::Good, finding.why.is_empty(), "{finding:?}");
        }
    }

    fn activity(share: f64, stolen: f64) -> Activity {
        let busiest = Some((share, "7 x".to_owned()));
        Activity { busiest, stolen, waited: Some(share), load_average: None }
    }

    #[test]
    fn what_spoils_is_told_from_what_does_not() {
        use Severity::{Good, Note, Spoils};
        let us = Duration::from_micros;
        let sleep = |lasts, cpu| Sleep { lasts: us(lasts), cpu: us(cpu) };
        let cases = [
            (cores(&[3]), Spoils),
            (activity(0.5, 0.0).busy(), Spoils),
            (activity(0.05, 0.0).busy(), Good),
            (activity(0.1, 0.0).pressure(), Spoils),
            (activity(0.09, 0.0).pressure(), Good),
            (quota(None), Good),
            (quota(Some(LimitedGroup { folder: "/x".into(), cpus: 0.5 })), Spoils),
            (activity(0.0, 0.02).steal(), Spoils),
            (activity(0.0, 0.0).steal(), Good),
            (governor(Some("performance")), Good),
            (governor(Some("powersave")), Note),
            (governor(None), Good),
            (turbo(Some("0"), None), Note),
            (turbo(Some("1"), Some("1")), Good),
            (turbo(None, Some("1")), Note),
            (clock_source(Some("tsc")), Good),
            (clock_source(Some("hpet")), Spoils),
            (timers(sleep(58, 2)), Good),
            (timers(sleep(70, 2)), Note),
            (timers(sleep(58, 20)), Note),
            (files(Some(1_024)), Note),
            (files(None), Good),
            (buffers(Some("212992")), Note),
            (buffers(Some("16777216")), Good),
            (ports(Some("32768 60999")), Good),
            (ports(Some("50000 60000")), Note),
            (virtualisation(None), Good),
            (virtualisation(Some("KVM".to_owned())), Note),
        ];
        for (finding, expected) in cases {
            assert_eq!(finding.severity, expected, "{finding:?}");
        }
    }
}
