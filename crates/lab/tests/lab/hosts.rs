//! Hosts in network namespaces.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_lab::hosts::{Hosts, LinkSettings};
use dnslab_lab::network::Visit;

use crate::chain::{chain, socket};
use crate::program::guard;
use crate::support::wait_until;

#[test]
fn hosts_are_apart_and_nothing_of_them_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let before = namespaces();
    let link = LinkSettings { delay_ns: 1_000_000, ..LinkSettings::default() };
    let hosts = chain(folder.path(), link, true);
    let names: Vec<_> =
        hosts.addresses().into_iter().map(|(name, ips)| (name, ips.len())).collect();
    assert_eq!(names, [("client", 1), ("server", 2), ("upstream", 1)]);
    let networks: BTreeSet<PathBuf> = ["client", "server", "upstream"]
        .map(|name| fs::read_link(hosts.network(name).unwrap()).unwrap())
        .into();
    assert_eq!(networks.len(), 3);
    assert!(networks.iter().all(|network| !before.contains(network)));
    // The address of a host is nowhere else: neither here nor two links away.
    let upstream: IpAddr = hosts.address("upstream").unwrap();
    assert!(UdpSocket::bind((upstream, 0)).is_err());
    let named = hosts.name().unwrap();
    for (_, name) in &named.names {
        assert!(Path::new("/run/netns").join(name).exists(), "{name}");
    }
    let names = named.names.clone();
    drop(named);
    assert!(names.iter().all(|(_, name)| !Path::new("/run/netns").join(name).exists()));
    drop(hosts);
    wait_until("the namespaces are gone", || namespaces().is_disjoint(&networks));
}

#[test]
fn names_of_a_killed_dnslab_are_swept_when_hosts_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let [stale, own] = [ended.id(), std::process::id()].map(|pid| format!("dnslab-{pid}-sweep"));
    for name in [&stale, &own] {
        let added = std::process::Command::new("ip").args(["netns", "add", name]).status();
        assert!(added.unwrap().success(), "{name}");
    }
    let is_there = |name: &String| Path::new("/run/netns").join(name).exists();
    let _hosts = Hosts::make(&["client"], &[], false, 1, &[], folder.path(), &guard()).unwrap();
    let found = [is_there(&stale), is_there(&own)];
    std::process::Command::new("ip").args(["netns", "delete", &own]).status().unwrap();
    assert_eq!(found, [false, true], "of a process that has ended, and of one that runs");
}

/// The CPUs that handle what the device towards the clients receives, one bit each.
fn steered(network: &Path) -> u128 {
    let _visit = Visit::to(network).unwrap();
    // `/sys` shows the devices of the namespace that mounts it.
    let shown = "mount -t sysfs none /sys && cat /sys/class/net/client/queues/rx-0/rps_cpus";
    let mut command = std::process::Command::new("unshare");
    let output = command.args(["--mount", "sh", "-c", shown]).output().unwrap();
    let digits = String::from_utf8(output.stdout).unwrap().replace(',', "");
    u128::from_str_radix(digits.trim(), 16).unwrap()
}

#[test]
fn what_a_host_receives_is_steered_to_its_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = chain(folder.path(), LinkSettings::default(), false);
    let read = || steered(hosts.network("server").unwrap());
    assert_eq!(read(), 0);
    hosts.steer("server", &[1]).unwrap();
    assert_eq!(read(), 2);
    hosts.steer("server", &[]).unwrap();
    assert_eq!(read(), 2, "no CPUs are no change");
}

fn namespaces() -> BTreeSet<PathBuf> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok()).collect()
}

#[test]
fn clients_may_have_many_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = chain(folder.path(), LinkSettings::default(), false);
    hosts.add_sources("10.99.0.0/24").unwrap();
    let server = socket(&hosts, "server");
    let client = {
        let _visit = Visit::to(hosts.network("client").unwrap()).unwrap();
        UdpSocket::bind("10.99.0.77:0").unwrap()
    };
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.send_to(b"x", server.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 8];
    let (_, from) = server.recv_from(&mut buffer).unwrap();
    assert_eq!(from.ip(), IpAddr::from([10, 99, 0, 77]));
    server.send_to(b"y", from).unwrap();
    assert_eq!(client.recv(&mut buffer).unwrap(), 1);
    let error = hosts.add_sources("nonsense").unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
}
