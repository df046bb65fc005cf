//! DNS servers: what is asked of them, what is installed, and how their configuration is written.
//!
//! One adapter per server knows its program, its version, what that version can do, and its
//! configuration. A server that somebody else runs has no adapter: nothing is started.

mod adapter;
mod adapters;
mod bind;
mod bind_logging;
mod bind_statistics;
pub(crate) mod chaos;
mod control;
mod coredns;
mod cost_rows;
mod dnsdist;
mod dnsmasq;
mod embedded;
pub(crate) mod http;
mod installed;
mod knot;
mod knot_resolver;
mod logging;
mod metrics;
mod named_conf;
mod nsd;
mod own;
mod pdns_auth;
mod pdns_recursor;
mod published;
mod rendered;
mod spec;
mod stubby;
mod unbound;
mod version;

use dnslab_wire::units::raised_file_limit;

pub(crate) use adapter::Access;
pub(crate) use adapters::adapter;
pub(crate) use cost_rows::{CostRow, functions, library};
pub(crate) use dnslab_settings::ServerKind;
pub use installed::{Installed, Needs, find, is_installed, named_program};
pub(crate) use installed::{ask_version, is_executable, look_up, looked_in};
pub use logging::{
    DNSTAP_LOG, LogDestination, LogFile, LogPrefix, Logging, QUERY_LOG, QUERY_LOG_FOLDER, QueryLog,
    Rotation, SYSLOG_SOCKET,
};
pub use own::{OWN_FILE, OwnConfiguration, OwnConfigurationError, OwnFile};
pub(crate) use published::{Published, published};
pub use rendered::{Rendered, RenderedFile};
use spec::SPARE_CONNECTIONS;
pub use spec::{
    EmbeddedSettings, IANA_TRUST_ANCHORS, POLICY_NAME, PolicyZone, Ports, ROOT_HINTS, RootHints,
    ServerSpec, Signatures, UPSTREAM_AUTHORITY, Upstream, UpstreamTls, ZoneFile,
};
pub(crate) use spec::{LOG, POLICY_ZONE};
pub use version::Version;

use crate::error::LabError;
use crate::launch;

/// The name of a server as its makers write it.
#[must_use]
pub fn title(kind: ServerKind) -> &'static str {
    kind.profile().title
}

/// File descriptors that a server needs besides those of its clients: listening sockets and event queues of
/// each thread, zone, logs. BIND needs the most, about 50 with two threads.
const OTHER_FILES: u64 = 200;

/// Writes the configuration and the command line of `spec` for the program `binary`.
///
/// # Errors
/// When the specification cannot be written as a configuration.
pub fn render(spec: &ServerSpec, binary: &std::path::Path) -> Result<Rendered, LabError> {
    spec.check()?;
    let program = binary.to_str().ok_or_else(|| LabError::Specification {
        field: "binary",
        value: binary.display().to_string(),
        reason: "the path must be UTF-8".to_owned(),
    })?;
    let adapter = adapter(spec.kind);
    let mut rendered = adapter.render(spec, program);
    if spec.policy_zone.is_some() {
        let how = adapter.policy_way();
        rendered
            .notes
            .push(format!("the response policy zone of the file {POLICY_ZONE} is applied, {how}"));
    }
    Ok(rendered)
}

/// Checks that a server started here may open a socket for each of so many connections over TCP. Before a run
/// this is an error; in the middle of a load it would be refused connections that look like a slow server.
/// (Connections over QUIC share one socket.)
///
/// # Errors
/// When the hard limit on file descriptors (to which a server's soft limit is raised) is too low.
pub fn check_connections(connections: u32) -> Result<(), LabError> {
    check_files(connections, launch::file_limit())
}

fn check_files(connections: u32, limit: u64) -> Result<(), LabError> {
    let most = limit.saturating_sub(OTHER_FILES + u64::from(SPARE_CONNECTIONS));
    if u64::from(connections) <= most {
        return Ok(());
    }
    Err(LabError::Specification {
        field: "connections",
        value: connections.to_string(),
        reason: format!(
            "a server may open {limit} files, enough for {most} connections over TCP: use \
             fewer clients, or start dnslab with more: {}",
            raised_file_limit(u64::from(connections) + OTHER_FILES + u64::from(SPARE_CONNECTIONS))
        ),
    })
}

#[cfg(test)]
pub(crate) mod tests;
