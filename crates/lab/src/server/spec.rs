//! What is asked of a server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use dnslab_settings::{CacheSize, CertificateKind, ServerKind};
use dnslab_wire::Transport;

use super::logging::Logging;
use super::own::OwnConfiguration;
use super::rendered::RenderedFile;
use crate::error::LabError;

/// What is asked of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// Which server.
    pub kind: ServerKind,
    /// Folder for its whole state: configuration, zone, certificate, log, sockets, journals. Made if missing.
    pub directory: PathBuf,
    /// A configuration that a user wrote, which says all but addresses, ports and paths; `None` for one that the adapter
    /// writes.
    pub own: Option<OwnConfiguration>,
    /// The zone that it serves; `None` for a server that forwards or resolves.
    pub zone: Option<ZoneFile>,
    /// Where it forwards to; `None` for one that does not forward.
    pub upstream: Option<Upstream>,
    /// Where it begins to resolve by itself; `None` for an authoritative server or a forwarder.
    pub root_hints: Option<RootHints>,
    /// The trust anchors from which a forwarder or resolver validates (RFC 4035): DS records of the root in
    /// presentation format. Empty to leave validation off.
    pub trust_anchors: Vec<String>,
    /// The response policy zone that a forwarder or resolver applies.
    pub policy_zone: Option<PolicyZone>,
    /// How much a forwarder or resolver keeps.
    pub cache: CacheSize,
    /// It counts its queries even if it does so only when told to. Otherwise there may be no counters to
    /// read.
    pub counts: bool,
    /// What it writes of each query.
    pub logging: Logging,
    /// Address of this machine that it listens on.
    pub address: IpAddr,
    /// Ports that it listens on; [`crate::ports::free`] finds some.
    pub ports: Ports,
    /// Transports that it serves; at least one.
    pub transports: Vec<Transport>,
    /// Threads or processes that answer queries; at least 1.
    pub threads: u32,
    /// Connections that will be open to it at one time; its own limit is set above that.
    pub connections: u32,
    /// Kind of the certificate that is made for it, if it has an encrypted transport.
    pub certificate: CertificateKind,
    /// Path of DNS over HTTPS, with its first `/`.
    pub http_path: String,
    /// CPUs that it may use; empty for all that dnslab may use.
    pub cpus: Vec<usize>,
    /// Its program; `None` for the installed one.
    pub binary: Option<PathBuf>,
    /// Root folder that it is taken from and runs in by chroot, or the name of one in the cache
    /// ([`crate::root`]); `None` for the system's.
    pub root: Option<PathBuf>,
    /// Raw text that is appended to the configuration; for the embedded server, further arguments separated
    /// by white space.
    pub extra: Option<String>,
    /// Settings of the embedded server.
    pub embedded: EmbeddedSettings,
}

/// Settings that only the embedded server has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddedSettings {
    /// Programmed delay, in the syntax of `dnslab serve --delay`.
    pub delay: Option<String>,
    /// Added delay of a simulated path, in the syntax of `dnslab serve --path-delay`.
    pub path_delay: Option<String>,
    /// Programmed loss, in the syntax of `dnslab serve --loss`.
    pub loss: Option<String>,
    /// Programmed stalls, in the syntax of `dnslab serve --stall`.
    pub stall: Option<String>,
    /// CPU time of each answer, in the syntax of `dnslab serve --busy`.
    pub busy: Option<String>,
    /// Time of its thread that each answer takes, in the syntax of `dnslab serve --hold`.
    pub hold: Option<String>,
    /// Time of all its threads that each answer takes, in the syntax of `dnslab serve --serial`.
    pub serial: Option<String>,
    /// Decides every draw of these programs; `None` for the program's own default.
    pub seed: Option<u64>,
    /// It takes early data (RFC 8446, section 2.3); the other servers never do.
    pub early_data: bool,
    /// File of the names of which it knows everything, like a resolver with a full cache; one per line.
    /// Replaces the zone.
    pub names: Option<PathBuf>,
    /// Description of an Internet (docs/LABORATORY.md) of which it is all servers, at the usual port of all their
    /// addresses. Replaces the zone.
    pub hierarchy: Option<String>,
    /// The data of these names is signed.
    pub signed: bool,
    /// Answers after which it closes a connection; `None` for never.
    pub queries_per_connection: Option<u32>,
    /// Time after which it closes an idle connection, in the syntax of `dnslab serve --idle-timeout`.
    pub idle_timeout: Option<String>,
    /// It issues no tickets, so no TLS session is resumed.
    pub no_tickets: bool,
}

/// Name of the file of a response policy zone in the server's folder.
pub(crate) const POLICY_ZONE: &str = "policy.zone";

/// Name of a response policy zone whose file does not say it.
pub const POLICY_NAME: &str = "policy.dnslab";

/// The data of an NSEC3PARAM record (RFC 5155, section 4.3), which goes into a script.
fn is_nsec3(data: &str) -> bool {
    let words: Vec<&str> = data.split(' ').collect();
    match &words[..] {
        [algorithm, flags, iterations, salt] => {
            [algorithm, flags, iterations].iter().all(|number| number.parse::<u16>().is_ok())
                && (*salt == "-" || salt.bytes().all(|octet| octet.is_ascii_hexdigit()))
        }
        _ => false,
    }
}

/// A zone in the format of RFC 1035, section 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneFile {
    /// Name of the zone, with or without the final dot.
    pub origin: String,
    /// Copied into the server's folder, unless it is there already.
    pub path: PathBuf,
    /// Its signatures (RFC 4035), which the server sends to whom asks for them; `None` without.
    pub signatures: Option<Signatures>,
}

/// How a zone is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signatures {
    /// The data of its NSEC3PARAM record (RFC 5155, section 4.3), such as `1 0 0 -`; `None` with NSEC records.
    pub nsec3: Option<String>,
}

/// A response policy zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyZone {
    /// Its name. Nobody asks for it.
    pub name: String,
    /// Copied into the server's folder as [`POLICY_ZONE`].
    pub path: PathBuf,
    /// A name that it denies, by which one sees that it is applied; `None` if none was found.
    pub denied: Option<String>,
}

/// A server that another one forwards to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Where it answers on `transport`.
    pub address: SocketAddr,
    /// Where further ones answer that the forwarder knows beside it.
    pub further: Vec<SocketAddr>,
    /// How queries travel to it: UDP (with TCP for truncated answers), TCP, or DNS over TLS.
    pub transport: Transport,
    /// For DNS over TLS. The file is copied into the forwarder's folder as [`UPSTREAM_AUTHORITY`].
    pub tls: Option<UpstreamTls>,
}

impl Upstream {
    /// [`Upstream::address`] and the further ones.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.address).chain(self.further.iter().copied())
    }

    /// Behind "all queries are forwarded to": how many it is.
    pub(super) fn in_words(&self) -> String {
        match self.further.len() {
            0 => "the one upstream server".to_owned(),
            further => format!("{} upstream servers", 1 + further),
        }
    }
}

/// How the certificate of an upstream server is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// PEM file of the authority.
    pub authority: PathBuf,
    /// Name that the certificate must have.
    pub name: String,
}

/// The root servers at which a resolver begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootHints {
    /// Those that the server was built or installed with: the Internet's.
    BuiltIn,
    /// These: a zone file (RFC 1035, section 5) with the NS records of the root, and A and AAAA records of
    /// their names. It is written into the server's folder as [`ROOT_HINTS`].
    Zone(String),
}

/// The trust anchors of the Internet's root, KSK-2017 and KSK-2024, as IANA publishes them
/// (<https://data.iana.org/root-anchors/root-anchors.xml>).
pub const IANA_TRUST_ANCHORS: [&str; 2] = [
    ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D",
    ". IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16",
];

/// Name of the root hints inside a resolver's folder.
pub const ROOT_HINTS: &str = "root.hints";

/// Name of the upstream's authority inside a forwarder's folder.
pub const UPSTREAM_AUTHORITY: &str = "upstream-authority.pem";

/// Name of the file in a server's folder that its standard output and error are appended to.
pub(crate) const LOG: &str = "server.log";

/// The ports of a server: one for each transport, except that UDP and TCP share one (RFC 7766, section 4).
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
    /// Port of its counters on the loopback address, for servers that publish them over TCP.
    pub control: u16,
}

impl Ports {
    /// The ports of the standards (RFC 1035, 7858, 8484, 9250), for a server that has its own address. The
    /// one for counters is BIND's usual one.
    pub const STANDARD: Self =
        Self { plain: 53, dot: 853, doh2: 443, doq: 853, doh3: 443, control: 8053 };

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

/// Concurrent connections that every server is configured for at least, so that experiments with few clients
/// differ only in their number.
const LEAST_CONNECTIONS: u32 = 1_000;

/// Connections beyond the expected ones that a server is configured for: those that are still being closed,
/// and those of the readiness probe.
pub(super) const SPARE_CONNECTIONS: u32 = 100;

impl ServerSpec {
    /// A server of this kind with its state in `directory` that answers over `transports`. Everything else is
    /// minimal: one thread, no zone, no upstream.
    #[must_use]
    pub fn new(
        kind: ServerKind,
        directory: PathBuf,
        (address, ports): (IpAddr, Ports),
        transports: &[Transport],
    ) -> Self {
        Self {
            kind,
            directory,
            own: None,
            zone: None,
            upstream: None,
            root_hints: None,
            trust_anchors: Vec::new(),
            policy_zone: None,
            cache: CacheSize::Default,
            counts: true,
            logging: Logging::default(),
            address,
            ports,
            transports: transports.to_vec(),
            threads: 1,
            connections: 0,
            certificate: CertificateKind::default(),
            http_path: "/dns-query".to_owned(),
            cpus: Vec::new(),
            binary: None,
            root: None,
            extra: None,
            embedded: EmbeddedSettings::default(),
        }
    }

    pub(super) fn connection_limit(&self) -> u32 {
        self.connections.saturating_add(SPARE_CONNECTIONS).max(LEAST_CONNECTIONS)
    }

    /// Twice [`ServerSpec::connection_limit`], for servers that shorten their time-outs from half of their
    /// limit on: the expected connections never take more than that half.
    pub(super) fn halved_connection_limit(&self) -> u32 {
        self.connection_limit().saturating_mul(2)
    }

    /// True if it answers from a zone.
    pub(super) fn is_authoritative(&self) -> bool {
        self.upstream.is_none() && self.root_hints.is_none()
    }

    /// The signatures of its zone.
    pub(super) fn signatures(&self) -> Option<&Signatures> {
        self.zone.as_ref()?.signatures.as_ref()
    }

    /// The file of its root hints, if it was given some.
    pub(super) fn hints_file(&self) -> Option<RenderedFile> {
        match &self.root_hints {
            Some(RootHints::Zone(zone)) => {
                Some(RenderedFile { name: ROOT_HINTS, content: zone.clone() })
            }
            Some(RootHints::BuiltIn) | None => None,
        }
    }

    /// True if each query goes upstream.
    pub(super) fn is_without_cache(&self) -> bool {
        self.cache == CacheSize::None
    }

    /// The bound of its cache, octets, if it has one.
    pub(super) fn cache_octets(&self) -> Option<u64> {
        match self.cache {
            CacheSize::Mebibytes(count) => Some(count << 20),
            CacheSize::Default | CacheSize::None | CacheSize::Entries(_) => None,
        }
    }

    /// The bound of its cache, entries, if it has one.
    pub(super) fn cache_entries(&self) -> Option<u64> {
        match self.cache {
            CacheSize::Entries(count) => Some(count),
            CacheSize::Default | CacheSize::None | CacheSize::Mebibytes(_) => None,
        }
    }

    pub(super) fn validates(&self) -> bool {
        !self.trust_anchors.is_empty()
    }

    /// True if a transport takes a socket of the server for each connection.
    pub(crate) fn has_stream(&self) -> bool {
        self.transports.iter().any(|transport| transport.runs_over_tcp())
    }

    /// The socket address of one transport.
    #[must_use]
    pub fn socket_address(&self, transport: Transport) -> SocketAddr {
        SocketAddr::new(self.address, self.ports.of(transport))
    }

    pub(super) fn serves(&self, transport: Transport) -> bool {
        self.transports.contains(&transport)
    }

    pub(super) fn has_plain(&self) -> bool {
        self.transports.iter().any(|transport| !transport.is_encrypted())
    }

    /// True if a transport needs a certificate.
    pub(crate) fn has_encrypted(&self) -> bool {
        self.transports.iter().any(|transport| transport.is_encrypted())
    }

    /// Name of the zone with one final dot; the root if there is no zone.
    pub(super) fn origin(&self) -> String {
        let origin = self.zone.as_ref().map_or("", |zone| zone.origin.as_str());
        format!("{}.", origin.trim_end_matches('.'))
    }

    pub(crate) fn zone_file_name(&self) -> String {
        // RFC 2317 names zones `0/25.2.0.192.in-addr.arpa`.
        let name = self.origin().trim_end_matches('.').replace('/', "_");
        if name.is_empty() { "root.zone".to_owned() } else { format!("{name}.zone") }
    }

    /// The raw text with one line end.
    pub(super) fn extra_text(&self) -> String {
        match self.extra.as_deref().map(str::trim_end) {
            None | Some("") => String::new(),
            Some(text) => format!("\n{text}\n"),
        }
    }

    /// Refuses what no adapter could write, so that none of them has to escape anything.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
        if let Some(ZoneFile { origin, .. }) = &self.zone
            && (origin.is_empty() || !origin.chars().all(plain))
        {
            let reason = "a zone name here has letters, digits, `-`, `_`, `/` and dots only";
            return wrong("zone name", origin, reason);
        }
        let nsec3 = self.zone.as_ref().and_then(|zone| zone.signatures.as_ref()?.nsec3.as_ref());
        if let Some(data) = nsec3.filter(|data| !is_nsec3(data)) {
            return wrong("NSEC3PARAM", data, "it is three numbers, and a salt in hex or `-`");
        }
        let name = self.upstream.as_ref().and_then(|upstream| upstream.tls.as_ref());
        if let Some(UpstreamTls { name, .. }) = name
            && (name.is_empty() || !name.chars().all(plain))
        {
            let reason = "the name in a certificate has letters, digits, `-`, `_` and dots only";
            return wrong("upstream's name", name, reason);
        }
        if self.upstream.is_some() && self.root_hints.is_some() {
            let reason = "a server that resolves by itself has no upstream";
            return wrong("root hints", ROOT_HINTS, reason);
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
        let EmbeddedSettings { delay, loss, stall, busy, hold, serial, .. } = &self.embedded;
        let embedded = [
            ("delay", delay),
            ("loss", loss),
            ("stall", stall),
            ("busy", busy),
            ("hold", hold),
            ("serial", serial),
        ];
        for (field, value) in embedded {
            if let (Some(value), true) = (value, self.kind != ServerKind::Embedded) {
                return wrong(
                    field,
                    value,
                    "only the embedded server has programs of delay, loss, stalls and CPU time",
                );
            }
        }
        Ok(())
    }
}

/// The refusal of a field of a specification.
fn wrong(field: &'static str, value: &str, reason: &str) -> Result<(), LabError> {
    Err(LabError::Specification { field, value: value.to_owned(), reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_nsec3_are_no_text_of_a_script() {
        assert!(is_nsec3("1 0 0 -") && is_nsec3("1 0 5 aabbccdd"));
        for data in ["", "1 0 0", "1 0 0 - x", "1 0 0 -'; reboot; '", "1 0 0 $(x)", "1 0 99999 -"] {
            assert!(!is_nsec3(data), "{data}");
        }
    }
}
