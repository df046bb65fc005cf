//! The laboratory of a run: its hosts, its links, and the servers behind the one that is asked.

use serde::{Deserialize, Serialize};

use crate::{CounterSeries, ResourceSeries, ServerFacts};

/// Where a run took place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Laboratory {
    /// True if each host is a network namespace; false if all is on the loopback interface of one.
    pub namespaces: bool,
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
