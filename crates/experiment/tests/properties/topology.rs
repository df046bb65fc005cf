//! Any chain of servers, on any hosts, that fits its front.

use std::net::IpAddr;
use std::time::Duration;

use dnslab_experiment::{
    ChainRole, ChainServer, HostsChoice, ProcessSettings, Queries, Server, ServerSettings,
    Topology, UpstreamBehaviour,
};
use dnslab_lab::ServerKind;
use dnslab_lab::hosts::LinkSettings;
use dnslab_wire::Transport;
use proptest::option;
use proptest::prelude::*;

use super::{busy, cpus, delay, duration, loss, path, text};

/// Anything that may stand behind a server, before it is known which one that is.
pub(crate) fn topology() -> impl Strategy<Value = Topology> {
    let hosts = prop::sample::select(&HostsChoice::ALL[..]);
    let relay = option::of(behind(ChainRole::Relay).boxed());
    (hosts, link(), link(), relay, behind(ChainRole::Upstream).boxed()).prop_map(
        |(hosts, client_link, upstream_link, relay, upstream)| Topology {
            hosts,
            client_link,
            upstream_link,
            chain: relay.into_iter().chain([upstream]).collect(),
        },
    )
}

/// What of it fits this server and these queries, which may have to change with it.
pub(crate) fn fitting(
    mut topology: Topology,
    server: &mut ServerSettings,
    queries: &mut Queries,
) -> Topology {
    let kind = server.kind();
    if kind.is_none() {
        topology.hosts = HostsChoice::Loopback;
    }
    if topology.hosts == HostsChoice::Loopback {
        topology.client_link = LinkSettings::default();
        topology.upstream_link = LinkSettings::default();
    }
    if !kind.is_some_and(ServerKind::forwards) {
        topology.chain.clear();
    }
    let address = server.process().map(|process| process.address);
    for behind in &mut topology.chain {
        if let (
            Server::Embedded { process, .. } | Server::Installed { process, .. },
            Some(address),
        ) = (&mut behind.server, address)
        {
            process.address = address;
        }
        if let Queries::Zone(_) = queries {
            behind.behaviour.signed = false;
        }
    }
    let upstream = topology.upstream();
    let knows_all = upstream.is_some_and(|it| it.server.kind() == Some(ServerKind::Embedded));
    if let (Queries::Popular(_), false) = (&*queries, knows_all) {
        *queries = Queries::File("names.txt".into());
    }
    server.dnssec &= upstream.is_some_and(|it| it.behaviour.signed);
    topology
}

/// A server at a role of the chain.
fn behind(role: ChainRole) -> impl Strategy<Value = ChainServer> {
    let legs = prop::sample::select(&[Transport::Udp, Transport::Tcp, Transport::Dot][..]);
    (legs, server(role), behaviour()).prop_map(move |(transport, server, behaviour)| {
        let is_embedded = server.kind() == Some(ServerKind::Embedded);
        let behaviour = if is_embedded { behaviour } else { UpstreamBehaviour::default() };
        ChainServer { role, transport, server, behaviour }
    })
}

fn server(place: ChainRole) -> impl Strategy<Value = Server> {
    let is_upstream = place == ChainRole::Upstream;
    let fits = move |kind: &ServerKind| {
        *kind != ServerKind::Embedded
            && if is_upstream { kind.serves_zones() } else { kind.forwards() }
    };
    let kinds: Vec<ServerKind> = ServerKind::ALL.into_iter().filter(fits).collect();
    let process = (option::of(1u32..=1_024), cpus()).prop_map(move |(threads, cpus)| {
        let address = IpAddr::from([127, 0, 0, 1]);
        ProcessSettings { address, threads, cpus: if is_upstream { cpus } else { Vec::new() } }
    });
    let further =
        (option::of(path()), option::of(text()), (option::of(delay()), option::of(loss())), busy());
    (prop::sample::select(kinds), process, further, any::<bool>()).prop_map(
        move |(software, process, (binary, extra, (delay, loss), busy), is_embedded)| {
            if is_upstream && is_embedded {
                return Server::Embedded { process, delay, loss, busy };
            }
            Server::Installed { software, process, binary, root: None, extra }
        },
    )
}

fn behaviour() -> impl Strategy<Value = UpstreamBehaviour> {
    let idle = duration(Duration::from_secs(1), Duration::from_secs(3_600));
    (any::<bool>(), option::of(1u32..), idle, any::<bool>()).prop_map(
        |(signed, queries_per_connection, idle_timeout, tickets)| UpstreamBehaviour {
            signed,
            queries_per_connection,
            idle_timeout,
            tickets,
        },
    )
}

fn link() -> impl Strategy<Value = LinkSettings> {
    let delay = || (0u64..=1_000).prop_map(|ms| ms * 1_000_000);
    (delay(), delay(), 0.0..=1.0f64, option::of(1u64..=400_000)).prop_map(
        |(one, other, loss, mbit)| LinkSettings {
            delay_ns: one.max(other),
            jitter_ns: one.min(other),
            loss,
            rate_bps: mbit.map(|mbit| mbit * 1_000_000),
        },
    )
}
