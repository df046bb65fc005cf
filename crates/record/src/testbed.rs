//! The laboratory of a run: its hosts, its links, and the servers behind the one that is asked.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::counter::CounterSeries;
use crate::load::LoadFacts;
use crate::resources::ResourceSeries;
use crate::server::ServerFacts;

/// What the server under test is called beside the roles of [`ChainPart`].
pub const UNDER_TEST: &str = "server";

/// Where a run took place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestbedFacts {
    /// True if each host is a network namespace; false if all is on the loopback interface of one.
    pub namespaces: bool,
    /// What a host receives is handled on its own CPUs (RPS), and not on the sender's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steers_receive: bool,
    /// The hosts, from the clients to the end of the chain.
    pub hosts: Vec<HostFacts>,
    /// The links between neighbours; empty without namespaces.
    pub links: Vec<LinkFacts>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `client`, `server` or `upstream`.
    pub name: String,
    /// Its addresses, one for each link.
    pub addresses: Vec<String>,
    /// CPUs that its processes were pinned to; empty if they were not.
    pub cpus: Vec<usize>,
}

/// One link between two hosts, alike in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkFacts {
    /// The host on the clients' side.
    pub from: String,
    /// The host on the other side.
    pub to: String,
    /// How long a packet takes from one end to the other, nanoseconds.
    pub delay_ns: u64,
    /// By how much that varies to either side, uniformly, nanoseconds.
    pub jitter_ns: u64,
    /// Share of the packets that are lost, in [0, 1], independently of each other.
    pub loss: f64,
    /// Bits per second; `None` without a bound.
    pub rate_bps: Option<u64>,
    /// What carries the packets: `veth`, `netem`, or `user space`.
    pub carrier: String,
    /// CPUs that the process of a link in user space was pinned to; empty if it was not, or if the kernel
    /// carries the packets.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// Decides what it loses and how late each packet is: the same for all variants of a repetition.
    /// `None` for a plain link, where tc knows no seeds, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

/// A server of the chain behind the one that is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainPart {
    /// `relay` (between the server under test and its upstream) or `upstream` (the end of the chain).
    pub role: String,
    /// The host that it runs on.
    pub host: String,
    /// Over which transport the server before it reaches it.
    pub transport: String,
    /// The server as it ran.
    pub server: ServerFacts,
    /// What it used.
    pub resources: ResourceSeries,
    /// What it counted; `None` if it tells nobody.
    pub counters: Option<CounterSeries>,
}

impl ChainPart {
    /// The folder of the server's state in that of the run: the first part of the path of its
    /// configuration, or else its role.
    #[must_use]
    pub fn folder(&self) -> &str {
        let configuration = self.server.configuration.as_deref();
        let folder = configuration.and_then(|path| path.split_once('/')).map(|(folder, _)| folder);
        // A record was written by a program, but it is a file: nothing outside the run is read.
        folder.filter(|name| !matches!(*name, "" | "." | "..")).unwrap_or(&self.role)
    }
}

/// The CPUs that servers and load were pinned to; `None` if somebody was not.
#[must_use]
pub fn pinned_cpus(
    load: &LoadFacts,
    server: &ServerFacts,
    chain: &[ChainPart],
) -> Option<BTreeSet<usize>> {
    let mut all = std::iter::once(load.cpus.as_slice()).chain(servers_cpus(server, chain));
    all.try_fold(BTreeSet::new(), |mut all, cpus| {
        all.extend(cpus);
        (!cpus.is_empty()).then_some(all)
    })
}

/// The CPUs that each server of a chain was pinned to, the one under test first; empty where it was not.
pub fn servers_cpus<'a>(
    server: &'a ServerFacts,
    chain: &'a [ChainPart],
) -> impl Iterator<Item = &'a [usize]> {
    let behind = chain.iter().map(|part| part.server.cpus.as_slice());
    std::iter::once(server.cpus.as_slice()).chain(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_recorded_without_its_cpus_is_read() {
        let text = r#"{"from":"client","to":"server","delay_ns":1,"jitter_ns":0,"loss":0.0,
            "rate_bps":null,"carrier":"netem"}"#;
        let link: LinkFacts = serde_json::from_str(text).unwrap();
        assert_eq!((link.carrier.as_str(), link.cpus), ("netem", vec![]));
    }

    #[test]
    fn the_folder_of_a_server_is_inside_the_run() {
        for (configuration, expected) in [
            (Some("stubby/stubby.yml"), "stubby"),
            (None, "relay"),
            (Some("stubby.yml"), "relay"),
            (Some("../../etc/passwd"), "relay"),
            (Some("/etc/passwd"), "relay"),
        ] {
            let configuration = configuration.map(str::to_owned);
            let part = ChainPart {
                role: "relay".to_owned(),
                host: "server".to_owned(),
                transport: "udp".to_owned(),
                server: ServerFacts { configuration, ..ServerFacts::default() },
                resources: ResourceSeries::default(),
                counters: None,
            };
            assert_eq!(part.folder(), expected, "{:?}", part.server.configuration);
        }
    }
}
