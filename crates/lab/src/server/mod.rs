//! DNS servers: what is asked of them, what is installed, and how their configuration is written.
//!
//! One adapter per server knows its program, its version, what that version can do, and its
//! configuration. A server that somebody else runs has no adapter: nothing is started.

mod bind;
mod bind_logging;
mod bind_statistics;
pub(crate) mod chaos;
mod control;
mod coredns;
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
mod pdns_auth;
mod pdns_recursor;
mod spec;
mod stubby;
mod unbound;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) use dnslab_settings::ServerKind;
use dnslab_wire::Transport;
use dnslab_wire::units::raised_file_limit;

use crate::users::User;
use crate::{GuardProgram, LabError};
pub use installed::{Installed, Needs, Version, find, is_installed, named_program};
pub(crate) use installed::{ask_version, is_executable, look_up, looked_in};
pub use logging::{
    DNSTAP_LOG, LogDestination, LogFile, LogPrefix, Logging, QUERY_LOG, QUERY_LOG_FOLDER, QueryLog,
    Rotation, SYSLOG_SOCKET,
};
pub use spec::{
    EmbeddedSettings, IANA_TRUST_ANCHORS, Ports, ROOT_HINTS, RootHints, ServerSpec,
    UPSTREAM_AUTHORITY, Upstream, UpstreamTls, ZoneFile,
};

/// The name of a server as its makers write it.
#[must_use]
pub fn title(kind: ServerKind) -> &'static str {
    kind.profile().title
}

pub(crate) fn adapter(kind: ServerKind) -> &'static dyn Adapter {
    match kind {
        ServerKind::Embedded => &embedded::Embedded,
        ServerKind::Bind => &bind::Bind,
        ServerKind::Knot => &knot::Knot,
        ServerKind::Nsd => &nsd::Nsd,
        ServerKind::PowerDnsAuthoritative => &pdns_auth::PowerDnsAuthoritative,
        ServerKind::Unbound => &unbound::Unbound,
        ServerKind::KnotResolver => &knot_resolver::KnotResolver,
        ServerKind::Dnsmasq => &dnsmasq::Dnsmasq,
        ServerKind::Stubby => &stubby::Stubby,
        ServerKind::CoreDns => &coredns::CoreDns,
        ServerKind::Dnsdist => &dnsdist::Dnsdist,
        ServerKind::PowerDnsRecursor => &pdns_recursor::PowerDnsRecursor,
    }
}

/// A server's configuration as text. All paths are relative to the server's folder, in which the command
/// runs. So the folder can be moved and read elsewhere, and its name never needs quoting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The files to write, in the server's folder.
    pub files: Vec<RenderedFile>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What differs from the server's defaults and why, one sentence each.
    pub notes: Vec<String>,
}

impl Rendered {
    /// The configuration in one file.
    fn one(name: &'static str, content: String, command: &[&str], notes: Vec<String>) -> Self {
        let command = command.iter().map(|&word| word.to_owned()).collect();
        Self { files: vec![RenderedFile { name, content }], command, notes }
    }

    /// With a further file, if there is one.
    fn and(mut self, file: Option<RenderedFile>) -> Self {
        self.files.extend(file);
        self
    }
}

/// One file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFile {
    /// Name in the server's folder.
    pub name: &'static str,
    /// Its content.
    pub content: String,
}

/// What is the same for every version of a server.
pub(crate) struct Facts {
    pub(crate) kind: ServerKind,
    /// How to install it.
    pub(crate) remedy: &'static str,
    /// The argument that makes it say its version.
    pub(crate) version_argument: &'static str,
    /// Where it publishes its counters, for the record; `None` if it publishes none.
    pub(crate) counter_source: Option<&'static str>,
}

/// What dnslab knows of one server.
pub(crate) trait Adapter: Sync {
    fn facts(&self) -> Facts;

    fn title(&self) -> &'static str {
        self.facts().kind.profile().title
    }

    /// Whether this version serves `transport`; if not, why, as a sentence.
    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String>;

    /// Whether it can do what this specification asks for, with its paths and ports; if not, why, as a
    /// sentence.
    fn takes(&self, spec: &ServerSpec) -> Result<(), String> {
        let _ = spec;
        Ok(())
    }

    /// Whether this version forwards over `transport`; if not, why, as a sentence. A server that forwards is
    /// started with an upstream, one that resolves by itself with root hints, any other with a zone.
    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let _ = (version, transport);
        Err(format!("{} is authoritative here: it forwards nothing", self.title()))
    }

    /// Whether this version resolves by itself, beginning at root servers; if not, why, as a sentence.
    fn resolves(&self, version: &Version) -> Result<(), String> {
        let _ = version;
        Err(format!("{} does not resolve by itself here", self.title()))
    }

    /// Whether this version validates signatures (RFC 4035); if not, why, as a sentence.
    fn validates(&self, version: &Version) -> Result<(), String> {
        let _ = version;
        Err(format!("{} does not validate signatures", self.title()))
    }

    fn runs_without_cache(&self) -> bool {
        false
    }

    /// Whether this version can write these logs; if not, why, as a sentence.
    fn logs(&self, version: &Version, logging: &Logging) -> Result<(), String> {
        let _ = version;
        match logging {
            Logging { query_log: None, dnstap: false } => Ok(()),
            Logging { query_log: Some(_), .. } => {
                Err(format!("dnslab does not know how {} logs queries", self.title()))
            }
            Logging { dnstap: true, .. } => {
                Err(format!("dnslab does not know how {} writes dnstap", self.title()))
            }
        }
    }

    /// `spec` was checked.
    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered;

    /// Whether asking this version for its counters disturbs its clients. Then it is asked only before and
    /// after the load.
    fn counting_disturbs(&self, version: &Version) -> bool {
        let _ = version;
        false
    }

    /// What the server counted since it started, by the names of [`dnslab_record::counter`] where one fits,
    /// otherwise by the server's own. Called on a thread inside the server's network. Fails with half a
    /// sentence.
    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let _ = access;
        Ok(BTreeMap::new())
    }
}

/// The counts of `table` that `find` finds, by the names of the table.
fn counts_found<K, const N: usize>(
    table: [(&str, K); N],
    find: impl Fn(K) -> Option<u64>,
) -> BTreeMap<String, u64> {
    let found = table.into_iter().filter_map(|(name, key)| Some((name.to_owned(), find(key)?)));
    found.collect()
}

/// How a running server is asked for its counters.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Its folder, with its Unix sockets.
    pub(crate) directory: PathBuf,
    /// Where it publishes its counters on the loopback interface, [`Ports::control`].
    pub(crate) address: SocketAddr,
    pub(crate) service: SocketAddr,
    /// Its program; its control program is in the same folder.
    pub(crate) binary: PathBuf,
    /// `None` for the user of this process.
    pub(crate) user: Option<User>,
    /// What a control program runs under.
    pub(crate) guard: GuardProgram,
    /// How often it has been asked before, for a server that also counts these queries.
    pub(crate) earlier: u64,
}

/// Concurrent connections that every server is configured for at least, so that experiments with few clients
/// differ only in their number.
const LEAST_CONNECTIONS: u32 = 1_000;

/// Connections beyond the expected ones that a server is configured for: those that are still being closed,
/// and those of the readiness probe.
const SPARE_CONNECTIONS: u32 = 100;

/// File descriptors that a server needs besides those of its clients: listening sockets and event queues of
/// each thread, zone, logs. BIND needs the most, about 50 with two threads.
const OTHER_FILES: u64 = 200;

/// Refuses DNS over HTTPS at another path than [`USUAL_HTTP_PATH`], for a server that has no other.
fn has_usual_http_path(title: &str, spec: &ServerSpec) -> Result<(), String> {
    let is_asked_for = spec.transports.iter().any(|transport| transport.is_http());
    if is_asked_for && spec.http_path != USUAL_HTTP_PATH {
        return Err(format!("{title} answers DNS over HTTPS at `{USUAL_HTTP_PATH}` only"));
    }
    Ok(())
}

/// The path of the examples in RFC 8484.
const USUAL_HTTP_PATH: &str = "/dns-query";

/// Where a resolver begins, for its notes. `option` is how it is told.
fn hints_note(hints: &RootHints, option: &str) -> String {
    match hints {
        RootHints::BuiltIn => {
            "it resolves by itself, beginning at the Internet's root servers, which it knows"
                .to_owned()
        }
        RootHints::Zone(_) => format!(
            "it resolves by itself, beginning at the root servers of the file {ROOT_HINTS} ({option})"
        ),
    }
}

/// What a server validates from, for its notes; `none` if it does not.
fn trust_note(spec: &ServerSpec, none: &str) -> String {
    match (spec.validates(), &spec.root_hints) {
        (false, _) => none.to_owned(),
        (true, Some(RootHints::BuiltIn)) => {
            "it validates, from IANA's trust anchors of the Internet's root".to_owned()
        }
        (true, _) => "it validates, from the trust anchor of the laboratory's root".to_owned(),
    }
}

/// Words of a DS record in presentation format (RFC 4034, section 5.3) from its key tag on, with its digest
/// as one word, even if it is written as several.
fn trust_anchor_words(anchor: &str) -> [String; 4] {
    let mut words = anchor.split_ascii_whitespace().skip_while(|word| *word != "DS").skip(1);
    let mut word = || words.next().unwrap_or_default().to_owned();
    let numbers = [word(), word(), word()];
    let [tag, algorithm, digest_type] = numbers;
    [tag, algorithm, digest_type, words.collect()]
}

/// Seconds for which a server keeps an idle connection: longer than any pause of a run, so that only the load
/// decides when connections are opened. It is the most that BIND accepts.
const IDLE_SECONDS: u32 = 120;

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
    Ok(adapter(spec.kind).render(spec, program))
}

/// Checks that a server started here may open a socket for each of so many connections over TCP. Before a run
/// this is an error; in the middle of a load it would be refused connections that look like a slow server.
/// (Connections over QUIC share one socket.)
///
/// # Errors
/// When the hard limit on file descriptors (to which a server's soft limit is raised) is too low.
pub fn check_connections(connections: u32) -> Result<(), LabError> {
    check_files(connections, crate::launch::file_limit())
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
