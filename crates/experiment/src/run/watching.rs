//! Who watches the server under test, or why nobody does.

use dnslab_lab::{ExternalServer, Identity, NotFound, Watched};
use dnslab_load::sockets;
use dnslab_record::ServerFacts;
use dnslab_settings::Variant;
use dnslab_wire::Transport;
use dnslab_wire::units::raised_file_limit;

pub(super) const SWITCHED_OFF: &str = "it was switched off (`server.watch = false`)";

pub(super) const NOT_COVERED: &str = "the samples do not cover the measured window: did it end, or \
    start anew?";

/// What is watched of an external server, or why nothing is.
pub(super) type Watch = Result<Watched, String>;

/// The facts of an external server that answers already, and what is watched of it.
///
/// # Errors
/// When a named process or unit is not the server.
pub(super) fn external(variant: &Variant) -> Result<(ServerFacts, Watch), NotFound> {
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
    match ExternalServer::find(&identity(variant), variant.load.transport, target) {
        Ok(server) => {
            let version = server.version(variant.load.transport, target).unwrap_or_default();
            Ok((ServerFacts { version, ..server.facts().clone() }, Ok(server.watched())))
        }
        Err(error) if error.is_fault() => Err(error),
        Err(error) => {
            let reason = error.to_string();
            Ok((unknown(&reason), Err(reason)))
        }
    }
}

fn identity(variant: &Variant) -> Identity {
    match (variant.server.pid, &variant.server.unit) {
        (Some(pid), _) => Identity::Process(pid),
        (None, Some(unit)) => Identity::Unit(unit.clone()),
        (None, None) => Identity::Address,
    }
}

/// What is wrong with the process or unit to be watched.
pub(super) fn lacking(variant: &Variant) -> Option<String> {
    let error = find(variant)?.err().filter(NotFound::is_fault)?;
    variant.server.watch.then(|| error.to_string())
}

/// Why an external server on this machine cannot have all connections of the load open; `None` if it can, or nobody
/// knows.
pub(super) fn too_few_files(variant: &Variant) -> Option<String> {
    let load = &variant.load;
    let is_by_connection = load.transports().all(Transport::runs_over_tcp);
    if !is_by_connection || load.mode.is_played() {
        return None;
    }
    let connections = sockets(load);
    let limit = find(variant)?.ok()?.file_limit().filter(|limit| *limit < connections)?;
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

/// `None` for a server that dnslab starts.
fn find(variant: &Variant) -> Option<Result<ExternalServer, NotFound>> {
    let target = variant.target()?;
    Some(ExternalServer::find(&identity(variant), variant.load.transport, target))
}
