//! What was seen of the servers during one load.

use serde::{Deserialize, Serialize};

use crate::counter::CounterSeries;
use crate::event::EventFacts;
use crate::path::NetworkPath;
use crate::resources::{CpuLimit, ResourceSeries};
use crate::server::ServerFacts;
use crate::service::ServiceSeries;
use crate::testbed::ChainPart;

/// What was seen of the servers, and of dnslab itself, on the timeline of one load. Nothing of it is known by the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// Resources of the server under test; no samples when it could not be watched.
    pub resources: ResourceSeries,
    /// What the CPUs of the hosts of the load did, where the server has another; none where one series is of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_hosts: Vec<LoadHostSeries>,
    /// The ways between the hosts: from each of the load to the server, and from the server's to the first of the load,
    /// where that is another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<NetworkPath>,
    /// What that server itself counted; `None` if it tells nobody.
    pub counters: Option<CounterSeries>,
    /// The servers behind it, in the order of the chain; none in most runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<ChainPart>,
    /// The pods behind the Service that was asked; `None` of other servers. What they did together is in `resources` and
    /// `counters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceSeries>,
    /// What the operator did meanwhile; `None` if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventFacts>,
    /// CPU time that the servers of loads used that took turns with this one, between the samples of its own server that
    /// enclose the measured window ([`ResourceSeries::rise`]), nanoseconds.
    #[serde(default, skip_serializing_if = "crate::omitted::is_zero")]
    pub others_cpu_ns: u64,
    /// CPU time that dnslab used in the measured window beside the workers of its loads, nanoseconds: it watches the
    /// servers, on any CPU.
    #[serde(default, skip_serializing_if = "crate::omitted::is_zero")]
    pub observing_cpu_ns: u64,
    /// The CPU quota of dnslab itself; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpu_limit: Option<CpuLimit>,
    /// Share of the measured window for which some thread of dnslab's control group waited for a CPU, in
    /// [0, 1] (`cpu.pressure`); `None` where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_pressure_share: Option<f64>,
}

/// What the CPUs of a host of the load did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadHostSeries {
    /// The name by which it is reached; empty for the host of whoever measured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// As of a server that is dnslab there, with all that it has started.
    pub resources: ResourceSeries,
}

impl Watched {
    /// The samples of the hosts that the load runs on, each with its name.
    pub fn of_load_hosts(&self) -> impl Iterator<Item = (&str, &ResourceSeries)> {
        let both = self.load_hosts.is_empty().then_some(("", &self.resources));
        let apart = self.load_hosts.iter().map(|host| (host.host.as_str(), &host.resources));
        both.into_iter().chain(apart)
    }

    /// Whether a Service is behind the server under test: its pods serve, too, and are not watched.
    pub(crate) fn lacks_servers_behind(&self, server: &ServerFacts) -> bool {
        let servers = std::iter::once(server).chain(self.chain.iter().map(|part| &part.server));
        let mut upstreams = servers.filter_map(|server| server.upstream.as_ref());
        upstreams.any(|upstream| upstream.service.is_some())
    }

    /// The servers behind the one under test whose use counts as that of the service. An embedded upstream stands for
    /// servers of others and is left out.
    pub fn behind(&self) -> impl Iterator<Item = &ChainPart> {
        self.chain.iter().filter(|part| part.server.kind != "embedded")
    }
}
