//! Who watches the server under test, or why nobody does.

use std::net::SocketAddr;
use std::sync::Arc;

use dnslab_agent::{Agents, FoundServer, FoundThere, LinkError, LoadHosts, WatchedServer};
use dnslab_lab::{ExternalServer, NotFound, version_at};
use dnslab_load::sockets;
use dnslab_record::ServerFacts;
use dnslab_settings::Variant;
use dnslab_wire::Transport;
use dnslab_wire::units::raised_file_limit;

use super::error::TargetError;

pub(super) const SWITCHED_OFF: &str = "it was switched off (`server.watch = false`)";

pub(super) const NOT_COVERED: &str = "the samples do not cover the measured window: did it end, or \
    start anew?";

/// What is watched of an external server, or why nothing is.
pub(super) type Watch = Result<WatchedServer, String>;

/// The facts of an external server that answers already, and what is watched of it.
///
/// # Errors
/// When a named process or unit is not the server, or its host cannot be reached.
pub(super) fn external(
    variant: &Variant,
    agents: &Agents,
) -> Result<(ServerFacts, Watch), TargetError> {
    let unknown = |reason: &str| ServerFacts {
        kind: variant.server.kind_name().to_owned(),
        notes: vec![format!("it was not configured by dnslab, and not watched: {reason}")],
        ..ServerFacts::default()
    };
    if !variant.server.watch {
        return Ok((unknown(SWITCHED_OFF), Err(SWITCHED_OFF.to_owned())));
    }
    let Some(target) = variant.target() else {
        return Ok((unknown(NOT_COVERED), Err(NOT_COVERED.to_owned())));
    };
    if let Some(service) = &variant.server.service {
        let facts = ServerFacts {
            notes: vec![format!(
                "the Service {service} of a cluster was not configured by dnslab; what its pods use is what they publish"
            )],
            ..unknown(NOT_COVERED)
        };
        return Ok((facts, Err(NOT_COVERED.to_owned())));
    }
    match find(variant, target, agents)? {
        Ok(found) => {
            let FoundServer { facts, plain, .. } = &found.found;
            let version = plain.and_then(version_at).unwrap_or_default();
            Ok((ServerFacts { version, ..facts.clone() }, Ok(Arc::new(found).into())))
        }
        Err((reason, true)) => Err(TargetError::NotTheServer(reason)),
        Err((reason, false)) => Ok((unknown(&reason), Err(reason))),
    }
}

/// The server that answers there. `Err` in the answer says why it is not watched, and whether what was named is wrong.
fn find(
    variant: &Variant,
    target: SocketAddr,
    agents: &Agents,
) -> Result<Result<FoundThere, (String, bool)>, LinkError> {
    let link = match &variant.server.host {
        None => Arc::clone(agents.own()),
        Some(host) => agents.link(host)?,
    };
    let (identity, transport) = (variant.server.identity(), variant.load.transport);
    FoundThere::find(&link, &identity, transport, target)
}

/// What is wrong with the process or unit to be watched on this machine; or why it cannot have all connections of the load
/// open.
pub(super) fn lacking(variant: &Variant) -> Option<String> {
    match find_here(variant)? {
        Ok(server) => too_many_for(variant, server.file_limit()),
        Err(error) => (variant.server.watch && error.is_fault()).then(|| error.to_string()),
    }
}

fn too_many_for(variant: &Variant, file_limit: Option<u64>) -> Option<String> {
    let load = &variant.load;
    let is_by_connection = load.transports().all(Transport::runs_over_tcp);
    if !is_by_connection || load.mode.is_played() {
        return None;
    }
    let connections = sockets(load);
    let limit = file_limit.filter(|limit| *limit < connections)?;
    Some(format!(
        "its load has {connections} connections open at once, but the server that runs may open {limit} files: ask \
         with fewer clients, or {}",
        raised_file_limit(connections + OTHER_FILES)
    ))
}

/// Files that a server needs besides its connections.
const OTHER_FILES: u64 = 200;

/// The CPUs in `allowed` that an external server on this machine may use, if not all: the others are free for
/// the load.
pub(super) fn cpus_of(variant: &Variant, allowed: &[usize]) -> Option<Vec<usize>> {
    let server = find_here(variant)?.ok()?;
    let own: Vec<usize> =
        server.cpus().iter().copied().filter(|cpu| allowed.contains(cpu)).collect();
    (!own.is_empty() && own.len() < allowed.len()).then_some(own)
}

/// What a plan knows of a server on this machine; `None` for one that dnslab starts, and for one on another host.
fn find_here(variant: &Variant) -> Option<Result<ExternalServer, NotFound>> {
    let is_here = variant.server.host.is_none() && variant.server.service.is_none();
    let target = variant.target().filter(|_| is_here)?;
    Some(ExternalServer::find(&variant.server.identity(), variant.load.transport, target))
}

/// Why a host of the load cannot be had.
pub(super) fn unreachable_load(variant: &Variant, agents: &Agents) -> Option<String> {
    let hosts = variant.load.hosts.as_ref()?;
    let load = match LoadHosts::reach(agents, hosts) {
        Ok(load) => load,
        Err(error) => return Some(error.to_string()),
    };
    let shared = match &variant.server.host {
        Some(host) => {
            let server = agents.link(host).ok();
            server.and_then(|server| load.same_as(&server).map(str::to_owned))
        }
        None if variant.target().is_none() => load.here().map(str::to_owned),
        None => None,
    };
    shared.map(|name| {
        format!("{name} is the host of the server: a load there would take its CPUs. Leave it out of `load.hosts`")
    })
}

/// Why a server cannot be watched on its host: the host cannot be had, what is named there is not the server, or it cannot
/// have all connections of the load open.
pub(super) fn unreachable(variant: &Variant, agents: &Agents) -> Option<String> {
    let of_upstream = variant.upstream.host.as_ref().map(|host| agents.link(host).err());
    if let Some(error) = of_upstream.flatten() {
        return Some(error.to_string());
    }
    let host = variant.server.host.as_ref()?;
    let Some(target) = variant.target() else {
        return agents.link(host).err().map(|error| error.to_string());
    };
    if !variant.server.watch {
        return None;
    }
    match find(variant, target, agents) {
        Err(error) => Some(error.to_string()),
        Ok(Err((reason, is_fault))) => Some(reason).filter(|_| is_fault),
        Ok(Ok(found)) => too_many_for(variant, found.found.file_limit),
    }
}
