//! The way that packets take from this host to another: the device by which they leave, and what that is like.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dnslab_record::NetworkPath;
use serde_json::Value;

use crate::host::read;

/// The way from here, in the network namespace of this thread; `None` if ip(8) does not know one.
#[must_use]
pub fn way_to(address: IpAddr) -> Option<NetworkPath> {
    let route = json(&["route", "get", &address.to_string()])?;
    let text = |key: &str| route[key].as_str().unwrap_or_default().to_owned();
    let device = text("dev");
    let link = json(&["-details", "-stats", "-stats", "link", "show", "dev", &device])?;
    let number = |key: &str| link[key].as_u64().and_then(|number| u32::try_from(number).ok());
    let received = &link["stats64"]["rx"];
    let count = |key: &str| received[key].as_u64().unwrap_or(0);
    let queues = queues(&device, number("ifindex"));
    let kind = link["linkinfo"]["info_kind"].as_str().map(str::to_owned);
    Some(NetworkPath {
        host: String::new(),
        to: address.to_string(),
        from: text("prefsrc"),
        kind: kind.or_else(|| driver(&device)).unwrap_or_default(),
        next_hop: text("gateway"),
        mtu: number("mtu").unwrap_or(0),
        receive_queues: queues.or_else(|| number("num_rx_queues")).unwrap_or(1),
        max_queues: max_queues(&device),
        is_steered: queues.and_then(|_| is_steered(&device)),
        spreads_ports: spreads_ports(&device),
        speed_mbit: speed(&device),
        offloads: offloads(&device),
        missed: ["missed_errors", "fifo_errors", "over_errors"].map(count).into_iter().sum(),
        dropped: count("dropped"),
        untracked: untracked(),
        device,
    })
}

/// The folder of a device; `None` if the one of this name is in another network namespace than this thread.
fn folder(device: &str, index: Option<u32>) -> Option<PathBuf> {
    let folder = Path::new("/sys/class/net").join(device);
    let seen = read(folder.join("ifindex"))?.parse().ok();
    (seen.is_some() && seen == index).then_some(folder)
}

/// The queues that a device receives by now, which may be fewer than it has.
fn queues(device: &str, index: Option<u32>) -> Option<u32> {
    let queues = fs::read_dir(folder(device, index)?.join("queues")).ok()?;
    let names = queues.flatten().map(|queue| queue.file_name());
    let count = names.filter(|name| name.to_string_lossy().starts_with("rx-")).count();
    u32::try_from(count).ok().filter(|count| *count > 0)
}

/// Whether the kernel spreads over CPUs (RPS) what the first queue of a device receives.
fn is_steered(device: &str) -> Option<bool> {
    let masks = read(Path::new("/sys/class/net").join(device).join("queues/rx-0/rps_cpus"))?;
    Some(masks.chars().any(|digit| !matches!(digit, '0' | ',')))
}

/// The most queues that a device can be set to.
fn max_queues(device: &str) -> Option<u32> {
    let said = said("ethtool", &["-l", device])?;
    let (most, _) = said.split_once("Current hardware settings")?;
    let numbers = most.lines().filter_map(|line| {
        let (name, number) = line.split_once(':')?;
        matches!(name, "RX" | "Combined").then(|| number.trim().parse::<u32>().ok())?
    });
    numbers.max()
}

/// Whether the queue of a datagram depends on its ports, or on its addresses alone.
fn spreads_ports(device: &str) -> Option<bool> {
    let said = said("ethtool", &["-n", device, "rx-flow-hash", "udp4"])?;
    said.contains("IP SA").then(|| said.contains("L4 bytes"))
}

/// The first object that ip(8) says.
fn json(words: &[&str]) -> Option<Value> {
    let said = said("ip", &[&["-json"], words].concat())?;
    let mut all: Vec<Value> = serde_json::from_str(&said).ok()?;
    (!all.is_empty()).then(|| all.swap_remove(0))
}

fn said(program: &str, words: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let output = command.args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn driver(device: &str) -> Option<String> {
    let said = said("ethtool", &["-i", device])?;
    said.lines().find_map(|line| line.strip_prefix("driver: ")).map(str::to_owned)
}

fn speed(device: &str) -> Option<u32> {
    let said = said("ethtool", &[device])?;
    let speed = said.lines().find_map(|line| line.trim().strip_prefix("Speed: "))?;
    speed.strip_suffix("Mb/s")?.parse().ok()
}

/// Names of ethtool, with those that its short options have.
const OFFLOADS: [(&str, &str); 5] = [
    ("rx-checksumming", "rx"),
    ("tx-checksumming", "tx"),
    ("tcp-segmentation-offload", "tso"),
    ("generic-segmentation-offload", "gso"),
    ("generic-receive-offload", "gro"),
];

/// Those that are on.
fn offloads(device: &str) -> Option<Vec<String>> {
    let said = said("ethtool", &["-k", device])?;
    let features = said.lines().filter_map(|line| line.split_once(": "));
    let on: Vec<&str> =
        features.filter(|(_, state)| state.starts_with("on")).map(|(name, _)| name).collect();
    let shown = OFFLOADS.iter().filter(|(name, _)| on.contains(name));
    Some(shown.map(|(_, short)| (*short).to_owned()).collect())
}

/// Packets for which connection tracking failed; `None` where no connection is tracked.
fn untracked() -> Option<u64> {
    let tracked = read("/proc/sys/net/netfilter/nf_conntrack_count")?;
    if tracked == "0" {
        return None;
    }
    // An older kernel does not count per CPU there.
    let Some(text) = read("/proc/thread-self/net/stat/nf_conntrack") else { return Some(0) };
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let wanted = ["insert_failed", "drop", "early_drop"]
        .map(|name| names.iter().position(|known| *known == name));
    let of_cpu = |line: &str| -> u64 {
        let counts: Vec<&str> = line.split_ascii_whitespace().collect();
        let count = |place: Option<usize>| u64::from_str_radix(counts.get(place?)?, 16).ok();
        wanted.into_iter().filter_map(count).sum()
    };
    Some(lines.map(of_cpu).sum())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_way_to_this_host_is_its_loopback() {
        let path = way_to(Ipv4Addr::LOCALHOST.into()).unwrap();
        let (device, from) = (path.device.as_str(), path.from.as_str());
        assert_eq!((device, from, path.receive_queues), ("lo", "127.0.0.1", 1), "{path:?}");
        assert!(path.mtu >= 1_280 && path.offloads.is_some() && path.speed_mbit.is_none());
        let again = way_to(Ipv4Addr::LOCALHOST.into()).unwrap();
        assert_eq!(again.since(&[path]).unwrap().dropped, 0);
    }
}
