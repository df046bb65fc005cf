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
    /// Clients that will connect to it at one time over a stream transport (TCP, TLS): its own limit
    /// on them is set above.
    pub tcp_clients: u32,
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

/// The ports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// UDP and TCP.
    pub plain: u16,
    /// DNS over TLS.
    pub dot: u16,
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

/// Concurrent TCP or TLS clients that every server is configured for at least, so that experiments
/// with few clients differ in nothing but their number.
const LEAST_TCP_CLIENTS: u32 = 1_000;

/// Connections above the expected clients that a server is configured for: those that are still
/// being closed, and those of the readiness probe.
const SPARE_TCP_CLIENTS: u32 = 100;

/// File descriptors that a server needs besides those of its clients: listening sockets and event
/// queues of each thread, zone, logs. BIND, the hungriest, takes about 50 with two threads.
const OTHER_FILES: u64 = 200;

/// Seconds for which a server keeps an idle TCP or TLS connection: longer than any pause of a run,
/// so that only the load decides when connections are opened. The most that BIND accepts.
const TCP_IDLE_SECONDS: u32 = 120;

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

/// Checks that a server started here may open a socket for each of `tcp_clients`: at plan time this
/// is an error; in the middle of a load it would be refused connections that look like a slow server.
///
/// # Errors
/// When the limit on file descriptors (the hard one: a server's soft limit is raised to it) is too
/// low.
pub fn check_tcp_clients(tcp_clients: u32) -> Result<(), LabError> {
    check_files(tcp_clients, crate::launch::file_limit())
}

/// [`check_tcp_clients`] for a server that may open `limit` files.
fn check_files(tcp_clients: u32, limit: u64) -> Result<(), LabError> {
    let most = limit.saturating_sub(OTHER_FILES + u64::from(SPARE_TCP_CLIENTS));
    if u64::from(tcp_clients) <= most {
        return Ok(());
    }
    Err(LabError::Specification {
        field: "clients",
        value: tcp_clients.to_string(),
        reason: format!(
            "a server may open {limit} files here, enough for {most} TCP or TLS clients: use fewer, \
             or raise the hard limit (`ulimit -Hn`)"
        ),
    })
}

impl ServerSpec {
    /// The limit on concurrent TCP or TLS clients that the server is configured with.
    fn tcp_client_limit(&self) -> u32 {
        self.tcp_clients.saturating_add(SPARE_TCP_CLIENTS).max(LEAST_TCP_CLIENTS)
    }

    /// True if a transport over a connection is asked for.
    pub(crate) fn has_stream(&self) -> bool {
        self.transports.iter().any(|transport| transport.is_stream())
    }

    /// The socket address of one transport.
    #[must_use]
    pub fn socket_address(&self, transport: Transport) -> SocketAddr {
        let port = if transport.is_encrypted() { self.ports.dot } else { self.ports.plain };
        SocketAddr::new(self.address, port)
    }

    /// True if UDP or TCP is asked for.
    fn has_plain(&self) -> bool {
        self.transports.iter().any(|transport| !transport.is_encrypted())
    }

    /// True if DNS over TLS is asked for.
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
            return wrong("transports", "", "name at least one of udp, tcp, dot");
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
pub(crate) mod tests {
    use super::*;

    /// A specification with everything at its plainest.
    pub(crate) fn spec(kind: ServerKind, transports: &[Transport]) -> ServerSpec {
        ServerSpec {
            kind,
            directory: PathBuf::from("/results/runs/udp-1/server"),
            zone: ZoneFile { origin: "melmac.univ".to_owned(), path: "/tmp/melmac.zone".into() },
            address: "127.0.0.1".parse().unwrap(),
            ports: Ports { plain: 5300, dot: 8530 },
            transports: transports.to_vec(),
            threads: 2,
            tcp_clients: 4,
            cpus: vec![0],
            binary: None,
            extra: None,
            delay: None,
            loss: None,
        }
    }

    /// The rendered text of all files, the command and the notes, for snapshots.
    pub(crate) fn shown(spec: &ServerSpec) -> String {
        let program = format!("/usr/sbin/{}", spec.kind.adapter().program());
        let rendered = render(spec, program.as_ref()).unwrap();
        let mut text = format!("$ {}\n", rendered.command.join(" "));
        for file in &rendered.files {
            text.push_str(&format!("--- {}\n{}", file.name, file.content));
        }
        text.push_str("--- notes\n");
        rendered.notes.iter().for_each(|note| text.push_str(&format!("{note}\n")));
        text
    }

    #[test]
    fn names_are_read_back() {
        for kind in ServerKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("unbound".parse::<ServerKind>().is_err());
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        type Change = fn(&mut ServerSpec);
        let cases: [(Change, &str); 5] = [
            (|spec| spec.zone.origin = "a\"; b".to_owned(), "zone name `a\"; b`: "),
            (|spec| spec.zone.origin.clear(), "zone name ``: "),
            (|spec| spec.transports.clear(), "transports ``: "),
            (|spec| spec.threads = 0, "threads `0`: "),
            (|spec| spec.delay = Some("5ms".to_owned()), "delay `5ms`: only the embedded server"),
        ];
        for (change, expected) in cases {
            let mut spec = spec(ServerKind::Bind, &[Transport::Udp]);
            change(&mut spec);
            let error = render(&spec, "/usr/sbin/named".as_ref()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn limits_on_clients_are_above_the_clients() {
        let kinds = [(ServerKind::Bind, "tcp-clients "), (ServerKind::Knot, "tcp-max-clients: ")];
        for (kind, key) in kinds.into_iter().chain([(ServerKind::Nsd, "tcp-count: ")]) {
            for (clients, limit) in [(0, 1_000), (900, 1_000), (901, 1_001), (5_000, 5_100)] {
                let mut spec = spec(kind, &[Transport::Tcp]);
                spec.tcp_clients = clients;
                let text = shown(&spec);
                assert!(text.contains(&format!("    {key}{limit}")), "{clients}: {text}");
                // The note tells the same limit.
                assert_eq!(text.matches(&format!(" {limit}")).count(), 2, "{clients}: {text}");
            }
        }
    }

    #[test]
    fn more_clients_than_files_are_refused() {
        for (clients, limit, expected) in [
            (724, 1_024, None),
            (725, 1_024, Some("clients `725`: a server may open 1024 files here, enough for 724 ")),
            (1, 100, Some("clients `1`: a server may open 100 files here, enough for 0 ")),
            (u32::MAX, u64::MAX, None),
        ] {
            let found = check_files(clients, limit).err().map(|error| error.to_string());
            match (expected, &found) {
                (None, None) => {}
                (Some(start), Some(text)) => assert!(text.starts_with(start), "{text}"),
                _ => panic!("{clients} {limit}: {found:?}"),
            }
        }
    }

    #[test]
    fn zones_have_file_names() {
        let cases = [
            ("melmac.univ.", "melmac.univ.zone"),
            (".", "root.zone"),
            ("0/25.2.0.192.in-addr.arpa", "0_25.2.0.192.in-addr.arpa.zone"),
        ];
        for (origin, expected) in cases {
            let mut spec = spec(ServerKind::Bind, &[Transport::Udp]);
            spec.zone.origin = origin.to_owned();
            assert_eq!(spec.zone_file_name(), expected);
        }
    }
}
