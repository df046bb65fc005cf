//! Who watches the server under test, or why nobody does.

use std::net::SocketAddr;
use std::sync::Arc;

use dnslab_agent::{Agents, Beside, FoundThere, LinkError, LoadHosts, WatchedServer};
use dnslab_lab::{CounterWatch, ExternalServer, GuardProgram, NotFound, version_at};
use dnslab_load::sockets;
use dnslab_record::ServerFacts;
use dnslab_settings::{HostPlace, Variant};
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
    let found = match &variant.server.host {
        None => here(variant, target),
        Some(host) => there(variant, target, host, agents)?,
    };
    match found {
        Ok((facts, plain, server)) => {
            let version = plain.and_then(version_at).unwrap_or_default();
            Ok((ServerFacts { version, ..facts }, Ok(server)))
        }
        Err((reason, true)) => Err(TargetError::NotTheServer(reason)),
        Err((reason, false)) => Ok((unknown(&reason), Err(reason))),
    }
}

/// The facts of a server, where it answers plain DNS, and what is watched. Or why it is not watched, and whether what was
/// named is wrong.
type Found = Result<(ServerFacts, Option<SocketAddr>, WatchedServer), (String, bool)>;

fn here(variant: &Variant, target: SocketAddr) -> Found {
    let transport = variant.load.transport;
    let server = ExternalServer::find(&variant.server.identity(), transport, target);
    let server = server.map_err(|error| (error.to_string(), error.is_fault()))?;
    let plain = server.plain_address(transport, target);
    Ok((server.facts().clone(), plain, WatchedServer::Here(Box::new(server.watched()))))
}

fn there(
    variant: &Variant,
    target: SocketAddr,
    host: &HostPlace,
    agents: &Agents,
) -> Result<Found, LinkError> {
    let link = agents.link(host)?;
    let (identity, transport) = (variant.server.identity(), variant.load.transport);
    let found = FoundThere::find(&link, &identity, transport, target)?;
    Ok(found.map(|found| {
        let (facts, plain) = (found.found.facts.clone(), found.found.plain);
        (facts, plain, WatchedServer::There(Arc::new(found), Beside::default()))
    }))
}

/// Begins to read what an external server on this machine publishes of what it counts.
pub(super) fn count(
    variant: &Variant,
    statistics: SocketAddr,
    guard: &GuardProgram,
) -> Option<Result<CounterWatch, String>> {
    Some(find(variant)?.ok()?.count(statistics, guard))
}

/// What is wrong with the process or unit to be watched.
pub(super) fn lacking(variant: &Variant) -> Option<String> {
    let error = find(variant)?.err().filter(NotFound::is_fault)?;
    variant.server.watch.then(|| error.to_string())
}

/// Why an external server on this machine cannot have all connections of the load open; `None` if it can, or nobody
/// knows.
pub(super) fn too_few_files(variant: &Variant) -> Option<String> {
    too_many_for(variant, find(variant)?.ok()?.file_limit())
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
    let server = find(variant)?.ok()?;
    let own: Vec<usize> =
        server.cpus().iter().copied().filter(|cpu| allowed.contains(cpu)).collect();
    (!own.is_empty() && own.len() < allowed.len()).then_some(own)
}

/// `None` for a server that dnslab starts, and for one on another host.
fn find(variant: &Variant) -> Option<Result<ExternalServer, NotFound>> {
    let target = variant.target().filter(|_| variant.server.host.is_none())?;
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
    let host = variant.server.host.as_ref()?;
    let Some(target) = variant.target() else {
        return agents.link(host).err().map(|error| error.to_string());
    };
    if !variant.server.watch {
        return None;
    }
    match there(variant, target, host, agents) {
        Err(error) => Some(error.to_string()),
        Ok(Err((reason, is_fault))) => Some(reason).filter(|_| is_fault),
        Ok(Ok(found)) => match found.2 {
            WatchedServer::There(there, _) => too_many_for(variant, there.found.file_limit),
            WatchedServer::Here(_) => None,
        },
    }
}
