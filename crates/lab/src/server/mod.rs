//! DNS servers: what is asked of them, what is installed, and how their configuration is written.
//!
//! One adapter per server knows its program, its version, what that version can do, and its
//! configuration. A server that somebody else runs has no adapter: nothing is started.

mod bind;
mod embedded;
mod installed;
mod knot;
mod nsd;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use dnslab_wire::Transport;

use crate::LabError;
pub use installed::{Installed, Version, find};

/// The servers that dnslab can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerKind {
    /// dnslab's own responder, `dnslab serve`.
    Embedded,
    /// ISC BIND, `named`.
    Bind,
    /// Knot DNS, `knotd`.
    Knot,
    /// NLnet Labs NSD, `nsd`.
    Nsd,
}

/// The text names no server that dnslab can start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown server `{0}`: it is one of embedded, bind, knot, nsd")]
pub struct UnknownServer(
    /// The text.
    pub String,
);

impl ServerKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Embedded, Self::Bind, Self::Knot, Self::Nsd];

    /// The name in experiment files and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Bind => "bind",
            Self::Knot => "knot",
            Self::Nsd => "nsd",
        }
    }

    /// The adapter.
    fn adapter(self) -> &'static dyn Adapter {
        match self {
            Self::Embedded => &embedded::Embedded,
            Self::Bind => &bind::Bind,
            Self::Knot => &knot::Knot,
            Self::Nsd => &nsd::Nsd,
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for ServerKind {
    type Err = UnknownServer;

    fn from_str(text: &str) -> Result<Self, UnknownServer> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == text);
        kind.ok_or_else(|| UnknownServer(text.to_owned()))
    }
}

/// What is asked of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// Which one.
    pub kind: ServerKind,
    /// Folder for its whole state: configuration, zone, certificate, log, sockets, journals. Made
    /// if it is missing.
    pub directory: PathBuf,
    /// The zone that it serves.
    pub zone: ZoneFile,
    /// Address of this machine that it listens on.
    pub address: IpAddr,
    /// Ports that it listens on; [`crate::ports::free`] finds some.
    pub ports: Ports,
    /// Transports that it serves; at least one.
    pub transports: Vec<Transport>,
    /// Threads or processes that answer queries; at least 1.
    pub threads: u32,
    /// Connections that will be open to it at one time: its own limit on them is set above.
    pub connections: u32,
    /// Path that DNS over HTTPS is asked for, with its first `/`.
    pub http_path: String,
    /// The embedded server takes early data (RFC 8446, section 2.3); the others never do.
    pub early_data: bool,
    /// CPUs that it may use; empty for all that dnslab may use.
    pub cpus: Vec<usize>,
    /// Its program; `None` for the installed one.
    pub binary: Option<PathBuf>,
    /// Raw text that is appended to the configuration; for the embedded server further arguments,
    /// separated by white space.
    pub extra: Option<String>,
    /// Programmed delay of the embedded server, in the syntax of `dnslab serve --delay`.
    pub delay: Option<String>,
    /// Programmed loss of the embedded server, in the syntax of `dnslab serve --loss`.
    pub loss: Option<String>,
}

/// A zone in the format of RFC 1035, section 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneFile {
    /// Name of the zone, with or without the final dot.
    pub origin: String,
    /// The file. It is copied into the server's folder unless it lies there already.
    pub path: PathBuf,
}

/// The ports of a server: one for each transport, but UDP and TCP share one (RFC 7766, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// UDP and TCP.
    pub plain: u16,
    /// DNS over TLS.
    pub dot: u16,
    /// DNS over HTTPS with HTTP/2.
    pub doh2: u16,
    /// DNS over QUIC.
    pub doq: u16,
    /// DNS over HTTPS with HTTP/3.
    pub doh3: u16,
}

impl Ports {
    /// The port of one transport.
    #[must_use]
    pub fn of(&self, transport: Transport) -> u16 {
        match transport {
            Transport::Udp | Transport::Tcp => self.plain,
            Transport::Dot => self.dot,
            Transport::Doh2 => self.doh2,
            Transport::Doq => self.doq,
            Transport::Doh3 => self.doh3,
        }
    }
}

/// A server's configuration as text. All paths are relative to the server's folder, in which the
/// command runs: so the folder can be moved and read elsewhere, and its name never needs quoting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The files to write, in the server's folder.
    pub files: Vec<RenderedFile>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What differs from the server's defaults and why, one sentence each.
    pub notes: Vec<String>,
}

/// One file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFile {
    /// Its name inside the server's folder.
    pub name: &'static str,
    /// Its content.
    pub content: String,
}

/// What dnslab knows of one server.
trait Adapter: Sync {
    /// Name of the program.
    fn program(&self) -> &'static str;

    /// How an operator gets it.
    fn remedy(&self) -> String;

    /// Argument that makes the program say its version.
    fn version_argument(&self) -> &'static str;

    /// Whether this version serves `transport`; why not, as a sentence.
    ///
    /// # Errors
    /// When it does not.
    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String>;

    /// The configuration; `spec` was checked.
    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered;
}

/// Concurrent connections that every server is configured for at least, so that experiments with few
/// clients differ in nothing but their number.
const LEAST_CONNECTIONS: u32 = 1_000;

/// Connections above the expected ones that a server is configured for: those that are still being
/// closed, and those of the readiness probe.
const SPARE_CONNECTIONS: u32 = 100;

/// File descriptors that a server needs besides those of its clients: listening sockets and event
/// queues of each thread, zone, logs. BIND, the hungriest, takes about 50 with two threads.
const OTHER_FILES: u64 = 200;

/// Seconds for which a server keeps an idle connection: longer than any pause of a run, so that only
/// the load decides when connections are opened. The most that BIND accepts.
const IDLE_SECONDS: u32 = 120;

/// Writes the configuration and the command line of `spec` for the program `binary`.
///
/// # Errors
/// When the specification contains what cannot be written as a configuration.
pub fn render(spec: &ServerSpec, binary: &std::path::Path) -> Result<Rendered, LabError> {
    spec.check()?;
    let program = binary.to_str().ok_or_else(|| LabError::Specification {
        field: "binary",
        value: binary.display().to_string(),
        reason: "the path must be UTF-8".to_owned(),
    })?;
    Ok(spec.kind.adapter().render(spec, program))
}

/// Checks that a server started here may open a socket for each of so many connections over TCP: at
/// plan time this is an error; in the middle of a load it would be refused connections that look like
/// a slow server. (Connections over QUIC share one socket.)
///
/// # Errors
/// When the limit on file descriptors (the hard one: a server's soft limit is raised to it) is too
/// low.
pub fn check_connections(connections: u32) -> Result<(), LabError> {
    check_files(connections, crate::launch::file_limit())
}

/// [`check_connections`] for a server that may open `limit` files.
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
             fewer clients, or raise the hard limit (`ulimit -Hn`)"
        ),
    })
}

impl ServerSpec {
    /// The limit on concurrent connections that the server is configured with.
    fn connection_limit(&self) -> u32 {
        self.connections.saturating_add(SPARE_CONNECTIONS).max(LEAST_CONNECTIONS)
    }

    /// True if a transport is asked for that takes a socket of the server for each connection.
    pub(crate) fn has_stream(&self) -> bool {
        self.transports.iter().any(|transport| transport.runs_over_tcp())
    }

    /// The socket address of one transport.
    #[must_use]
    pub fn socket_address(&self, transport: Transport) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.of(transport))
    }

    /// True if this transport is asked for.
    fn serves(&self, transport: Transport) -> bool {
        self.transports.contains(&transport)
    }

    /// True if UDP or TCP is asked for.
    fn has_plain(&self) -> bool {
        self.transports.iter().any(|transport| !transport.is_encrypted())
    }

    /// True if a transport is asked for that needs a certificate.
    pub(crate) fn has_encrypted(&self) -> bool {
        self.transports.iter().any(|transport| transport.is_encrypted())
    }

    /// Name of the zone with one final dot.
    fn origin(&self) -> String {
        format!("{}.", self.zone.origin.trim_end_matches('.'))
    }

    /// Name of the zone's file inside the server's folder.
    pub(crate) fn zone_file_name(&self) -> String {
        // RFC 2317 names zones `0/25.2.0.192.in-addr.arpa`.
        let name = self.origin().trim_end_matches('.').replace('/', "_");
        if name.is_empty() { "root.zone".to_owned() } else { format!("{name}.zone") }
    }

    /// The raw text, with one line end at its end.
    fn extra_text(&self) -> String {
        match self.extra.as_deref().map(str::trim_end) {
            None | Some("") => String::new(),
            Some(text) => format!("\n{text}\n"),
        }
    }

    /// Refuses what no adapter could write, so that none of them has to escape anything.
    fn check(&self) -> Result<(), LabError> {
        let wrong = |field, value: &str, reason: &str| {
            Err(LabError::Specification {
                field,
                value: value.to_owned(),
                reason: reason.to_owned(),
            })
        };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
        if self.zone.origin.is_empty() || !self.zone.origin.chars().all(plain) {
            let reason = "a zone name here has letters, digits, `-`, `_`, `/` and dots only";
            return wrong("zone name", &self.zone.origin, reason);
        }
        if self.transports.is_empty() {
            let reason = "name at least one of udp, tcp, dot, doh2, doq, doh3";
            return wrong("transports", "", reason);
        }
        let in_path = |letter: char| letter.is_ascii_alphanumeric() || "-_.~/".contains(letter);
        if !self.http_path.starts_with('/') || !self.http_path.chars().all(in_path) {
            let reason = "a path begins with `/` and has letters, digits, `-`, `_`, `.`, `~`, `/`";
            return wrong("http path", &self.http_path, reason);
        }
        if self.threads == 0 {
            return wrong("threads", "0", "at least 1 must answer");
        }
        for (field, value) in [("delay", &self.delay), ("loss", &self.loss)] {
            if let (Some(value), true) = (value, self.kind != ServerKind::Embedded) {
                return wrong(
                    field,
                    value,
                    "only the embedded server has a delay and loss program",
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
