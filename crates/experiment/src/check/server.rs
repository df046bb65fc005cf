//! The server of a variant, checked.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use dnslab_lab::root::is_name;
use dnslab_lab::{CertificateKind, Identity, ServerKind};
use dnslab_wire::Transport;

use super::experiment::EXTERNAL;
use super::settings::{Exclusive, Settings};
use super::{Check, ProcessSettings, Server, ServerSettings, Verification, ZoneSettings};
use crate::error::Problem;
use crate::file::Host;

/// Which kinds of server a key means something to.
type Fits = fn(Option<ServerKind>) -> bool;

/// Servers that dnslab starts.
const STARTED: Fits = |kind| kind.is_some();
/// Servers that somebody else wrote and dnslab starts.
const INSTALLED: Fits = |kind| kind.is_some_and(|kind| kind != ServerKind::Embedded);
/// The responder.
const EMBEDDED: Fits = |kind| kind == Some(ServerKind::Embedded);
/// Servers that run already.
const EXTERNAL_ONLY: Fits = |kind| kind.is_none();
/// Servers that ask others.
const FORWARDING: Fits = |kind| kind.is_some_and(ServerKind::forwards);

/// Keys that mean something to some kinds of server only.
const FITS: [(&str, Fits); 30] = [
    ("server.threads", STARTED),
    ("server.cpus", STARTED),
    ("server.certificate", STARTED),
    ("server.binary", INSTALLED),
    ("server.root", INSTALLED),
    ("server.extra", INSTALLED),
    ("server.query_log", INSTALLED),
    ("server.log.to", INSTALLED),
    ("server.log.folder", INSTALLED),
    ("server.log.size_mib", INSTALLED),
    ("server.log.versions", INSTALLED),
    ("server.log.suffix", INSTALLED),
    ("server.log.buffered", INSTALLED),
    ("server.log.print_time", INSTALLED),
    ("server.log.print_category", INSTALLED),
    ("server.log.print_severity", INSTALLED),
    ("server.dnstap", INSTALLED),
    ("server.dnssec", FORWARDING),
    ("server.cache", FORWARDING),
    ("server.delay", EMBEDDED),
    ("server.loss", EMBEDDED),
    ("server.busy", EMBEDDED),
    ("server.port", EXTERNAL_ONLY),
    ("server.dot_port", EXTERNAL_ONLY),
    ("server.doh_port", EXTERNAL_ONLY),
    ("server.doq_port", EXTERNAL_ONLY),
    ("server.tls_name", EXTERNAL_ONLY),
    ("server.authority", EXTERNAL_ONLY),
    ("server.pid", EXTERNAL_ONLY),
    ("server.unit", EXTERNAL_ONLY),
];

impl Check<'_> {
    /// The server of a variant, for a load on `transport`.
    pub(super) fn server(
        &mut self,
        settings: &mut Settings,
        transport: Transport,
    ) -> ServerSettings {
        let word = settings.text("server.kind").unwrap_or_default();
        let kind = match word.as_str() {
            EXTERNAL => None,
            word => Some(word.parse().unwrap_or(ServerKind::Embedded)),
        };
        if !settings.is_broken("server.kind") {
            self.unfit_keys(settings, kind);
        }
        self.program_or_root(settings);
        let (binary, root) = (self.binary_at(settings, "server.binary"), self.root(settings));
        let authority = self.file(settings, "server.authority", "authority file");
        let server = match kind {
            Some(ServerKind::Embedded) => Server::Embedded {
                process: self.process(settings),
                delay: self.parsed(settings, "server.delay"),
                loss: self.parsed(settings, "server.loss"),
                busy: settings.duration("server.busy"),
            },
            Some(software) => Server::Installed {
                software,
                process: self.process(settings),
                binary,
                root,
                extra: settings.text("server.extra"),
            },
            None => self.external(settings, transport),
        };
        let verification = transport
            .is_encrypted()
            .then(|| self.verification(settings, kind, transport, authority));
        ServerSettings {
            server,
            verification,
            certificate: certificate(settings, kind, transport),
            zone: zone(settings),
            logging: self.logging(settings),
            dnssec: settings.is_true("server.dnssec"),
            without_cache: !settings.is_true("server.cache"),
            watch: settings.is_true("server.watch"),
        }
    }

    /// Keys that another kind of server would understand.
    fn unfit_keys(&mut self, settings: &Settings, kind: Option<ServerKind>) {
        for (path, fits) in FITS {
            let Some(place) = settings.place(path) else { continue };
            if fits(kind) || settings.is_preset(path) {
                continue;
            }
            let all = ServerKind::ALL.into_iter().map(Some).chain([None]);
            let names: Vec<&str> = all.filter(|kind| fits(*kind)).map(word_of).collect();
            let names = names.join(", ");
            let why = match settings.place("server.kind") {
                Some(_) => "",
                None => ", the default",
            };
            let message =
                format!("`{path}` does not fit a server of kind `{}`{why}", word_of(kind));
            let problem = Problem::new(message, place.mark(format!("only for {names}")));
            let problem = match settings.place("server.kind") {
                Some(place) => problem.with(place.mark("the kind")),
                None => problem,
            };
            self.problems.push(problem.help(format!(
                "remove it, or write it only in variants whose `server.kind` is one of: {names}"
            )));
        }
    }

    /// Where and how a started server runs.
    fn process(&mut self, settings: &Settings) -> ProcessSettings {
        let (host, port) = host(settings);
        let place = settings.place("server.address");
        if let (Host::Name(_), Some(place)) = (&host, place) {
            let message = "a started server needs an address to listen on, not a host name";
            let problem = Problem::new(message, place.mark("a name"));
            self.problems.push(problem.help(
                "write \"127.0.0.1\", or ask the server that runs there: `server.kind = \"external\"`",
            ));
        }
        let address = match host {
            Host::Address(address) => address,
            Host::Name(_) => Ipv4Addr::LOCALHOST.into(),
        };
        if let (Some(_), Some(place)) = (port, place) {
            let message = "`server.address` has a port, but a started server gets a free one";
            let mark = place.mark("has a port");
            self.problems
                .push(Problem::new(message, mark).help(format!("write \"{address}\" alone")));
        }
        ProcessSettings {
            address,
            threads: settings.count("server.threads"),
            cpus: settings.cpus("server.cpus"),
        }
    }

    /// A program: a path, which must be there, or a bare name, which the search path finds.
    pub(super) fn binary_at(&mut self, settings: &Settings, path: &str) -> Option<PathBuf> {
        match settings.entry(path).and(settings.text(path)) {
            Some(name) if !name.contains('/') => Some(PathBuf::from(name)),
            _ => self.file(settings, path, "program"),
        }
    }

    /// A root has its own program: of the two keys, that of the later layer holds.
    fn program_or_root(&mut self, settings: &mut Settings) {
        if let Exclusive::Both(binary, root) = settings.exclusive("server.binary", "server.root") {
            let message = "`server.binary` and `server.root` exclude each other";
            let problem = Problem::new(message, binary.mark("a program of this system"))
                .with(root.mark("has the server's program in it"))
                .help("remove one of them");
            self.problems.push(problem);
        }
    }

    /// A root folder: a path, or the name of one in the cache. Either must be there.
    fn root(&mut self, settings: &Settings) -> Option<PathBuf> {
        let written = settings.entry("server.root").and(settings.text("server.root"))?;
        let place = settings.place("server.root")?;
        let named = PathBuf::from(&written);
        let root = if is_name(&named) { named } else { self.folder_of(place).join(named) };
        if let Err(error) = (self.paths.find_root)(&root) {
            let problem = Problem::new(error.to_string(), place.mark("no root folder"));
            self.problems.push(problem.help(error.hint().unwrap_or_default()));
        }
        Some(root)
    }

    /// A server that runs already.
    fn external(&mut self, settings: &mut Settings, transport: Transport) -> Server {
        let (host, address_port) = host(settings);
        if let (None, Some(kind)) =
            (settings.place("server.address"), settings.place("server.kind"))
        {
            let message = "an external server needs `server.address`";
            self.problems.push(
                Problem::new(message, kind.mark("runs already, but where?"))
                    .help("add for example `server.address = \"192.0.2.1\"`"),
            );
        }
        let plain_port = self.plain_port(settings, address_port, transport);
        let port =
            if transport.is_encrypted() { settings.port(port_key(transport)) } else { plain_port };
        let port = port.unwrap_or(transport.default_port());
        let (address, name) = self.look_up(settings, host);
        let own_name = name.clone().filter(|_| transport.is_encrypted());
        Server::External {
            target: SocketAddr::new(address, port),
            name,
            tls_name: settings.text("server.tls_name").or(own_name),
            identity: self.identity(settings),
        }
    }

    /// The address of a host, and its name if it was written by name. A name is looked up once, so that
    /// all variants ask the same address.
    fn look_up(&mut self, settings: &Settings, host: Host) -> (IpAddr, Option<String>) {
        let name = match host {
            Host::Address(address) => return (address, None),
            Host::Name(name) => name,
        };
        let found = match self.names.iter().find(|(known, _)| *known == name) {
            Some((_, found)) => found.clone(),
            None => {
                let found = (self.paths.find_address)(&name);
                self.names.push((name.clone(), found.clone()));
                found
            }
        };
        let reason = match found {
            Ok(address) => return (address, Some(name)),
            Err(reason) => reason,
        };
        if let Some(place) = settings.place("server.address") {
            let message = format!("`server.address` cannot be looked up: {reason}");
            let problem = Problem::new(message, place.mark("no address"));
            self.problems.push(problem.help("write its address, or mend its name"));
        }
        (Ipv4Addr::LOCALHOST.into(), Some(name))
    }

    /// How the processes of an external server are found: of the two keys, that of the later layer
    /// holds.
    fn identity(&mut self, settings: &mut Settings) -> Identity {
        if let Exclusive::Both(pid, unit) = settings.exclusive("server.pid", "server.unit") {
            let message = "`server.pid` and `server.unit` exclude each other";
            let problem = Problem::new(message, pid.mark("one process"))
                .with(unit.mark("all processes of a unit"))
                .help("remove one of them");
            self.problems.push(problem);
        }
        let pid = settings.count("server.pid");
        match (pid, settings.text("server.unit"), settings.place("server.unit")) {
            (Some(pid), ..) => Identity::Process(pid),
            (None, Some(unit), Some(place)) => {
                if unit.is_empty() || unit.contains('/') {
                    let mark = place.mark("no name of a unit");
                    let problem = Problem::new("`server.unit` must be the name of a unit", mark);
                    self.problems.push(problem.help("write for example \"named.service\""));
                }
                Identity::Unit(unit)
            }
            _ => Identity::Address,
        }
    }

    /// The port for UDP and TCP, by itself or behind the address.
    fn plain_port(
        &mut self,
        settings: &mut Settings,
        address_port: Option<u16>,
        transport: Transport,
    ) -> Option<u16> {
        let chosen = match address_port {
            None => Exclusive::First,
            Some(_) => settings.ranked("server.port", "server.address"),
        };
        if let Exclusive::Both(port, address) = &chosen {
            let message = "the port of the server is written twice";
            let problem = Problem::new(message, port.mark("here"))
                .with(address.mark("and here"))
                .help("remove `server.port`, or the port from `server.address`");
            self.problems.push(problem);
        }
        let (path, port) = match chosen {
            Exclusive::Second => ("server.address", address_port),
            _ => ("server.port", settings.port("server.port")),
        };
        if let (Some(_), Some(place)) = (port, settings.place(path)) {
            self.note_plain_port(place, transport);
        }
        port
    }

    /// How the certificate is verified.
    fn verification(
        &mut self,
        settings: &Settings,
        kind: Option<ServerKind>,
        transport: Transport,
        authority: Option<PathBuf>,
    ) -> Verification {
        let insecure = settings.is_true("server.insecure");
        if kind.is_some() {
            return if insecure { Verification::Off } else { Verification::RunAuthority };
        }
        let ranked = settings.ranked("server.authority", "server.insecure");
        match (authority, ranked) {
            (Some(_), Exclusive::Both(authority, at_insecure)) if insecure => {
                let message = "`server.authority` and `server.insecure` exclude each other";
                let problem = Problem::new(message, at_insecure.mark("verifies nothing"))
                    .with(authority.mark("verifies"))
                    .help("remove `server.insecure` to verify");
                self.problems.push(problem);
                Verification::Off
            }
            (Some(_), Exclusive::Second) if insecure => Verification::Off,
            (Some(authority), _) => Verification::Authority(authority),
            (None, _) => {
                if !insecure && !settings.is_broken("server.authority") {
                    self.unverifiable(settings, transport);
                }
                Verification::Off
            }
        }
    }

    /// An encrypted load on a server that dnslab has no authority for.
    fn unverifiable(&mut self, settings: &Settings, transport: Transport) {
        let message = "nothing says how to verify the certificate of the external server";
        let marks = [
            ("load.transport", words(transport)),
            ("server.kind", "a server that dnslab made no certificate for"),
        ];
        let marks = marks
            .iter()
            .filter_map(|(path, label)| settings.place(path).map(|place| place.mark(*label)));
        let problem = Problem { message: message.to_owned(), marks: marks.collect(), help: None };
        self.problems.push(problem.help(
            "add `server.authority = \"ca.pem\"`, or `server.insecure = true` to accept any",
        ));
    }
}

/// The certificate of a server that is started for an encrypted load.
fn certificate(
    settings: &Settings,
    kind: Option<ServerKind>,
    transport: Transport,
) -> CertificateKind {
    let word = settings.text("server.certificate").and_then(|word| word.parse().ok());
    word.filter(|_| kind.is_some() && transport.is_encrypted()).unwrap_or_default()
}

/// The word of the experiment file for a kind of server.
fn word_of(kind: Option<ServerKind>) -> &'static str {
    kind.map_or(EXTERNAL, ServerKind::name)
}

/// The key of an external server's port for a transport.
#[must_use]
pub fn port_key(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp | Transport::Tcp => "server.port",
        Transport::Dot => "server.dot_port",
        Transport::Doh2 | Transport::Doh3 => "server.doh_port",
        Transport::Doq => "server.doq_port",
    }
}

/// What an operator calls the transport.
pub(super) fn words(transport: Transport) -> &'static str {
    match transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
        Transport::Dot => "DNS over TLS",
        Transport::Doh2 | Transport::Doh3 => "DNS over HTTPS",
        Transport::Doq => "DNS over QUIC",
    }
}

/// The host and the port behind it.
fn host(settings: &Settings) -> (Host, Option<u16>) {
    let local = Host::Address(Ipv4Addr::LOCALHOST.into());
    settings.address("server.address").unwrap_or((local, None))
}

/// The zone under test.
fn zone(settings: &Settings) -> ZoneSettings {
    let ttl_s = settings.duration("server.zone.ttl").as_secs();
    ZoneSettings {
        name: settings.text("server.zone.name").unwrap_or_default(),
        records: settings.count("server.zone.records").unwrap_or(1),
        // The table of keys keeps it below 2^31.
        ttl_s: u32::try_from(ttl_s).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::path::Path;

    use super::super::{PathRules, check};
    use super::*;

    /// Checks an external server at this address, asked over UDP and over TLS; the targets, and the
    /// names that were looked up.
    fn external(address: &str) -> (Result<Vec<Server>, String>, Vec<String>) {
        let asked = RefCell::new(Vec::new());
        let here = PathRules {
            file_folder: Path::new(""),
            current_folder: Path::new(""),
            is_file: &|_| true,
            find_root: &|root| Ok(root.to_owned()),
            find_address: &|name| {
                asked.borrow_mut().push(name.to_owned());
                match name {
                    "ns1.example" => Ok("192.0.2.7".parse().unwrap()),
                    other => Err(format!("`{other}` is unknown")),
                }
            },
        };
        let text = format!(
            "name = \"x\"\n[server]\nkind = \"external\"\naddress = \"{address}\"\ninsecure = true\n\
             [[variant]]\nname = \"udp\"\n[[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n"
        );
        let servers = check(&text, &[], &here)
            .map(|of| of.variants.into_iter().map(|variant| variant.server.server).collect())
            .map_err(|problems| problems.as_slice()[0].message.clone());
        (servers, asked.into_inner())
    }

    #[test]
    fn a_name_is_looked_up_once_and_verified() {
        let (servers, asked) = external("ns1.example:5300");
        assert_eq!(asked, ["ns1.example"]);
        let servers = servers.unwrap();
        let of = |server: &Server| match server {
            Server::External { target, name, tls_name, .. } => {
                (target.to_string(), name.clone(), tls_name.clone())
            }
            other => panic!("{other:?}"),
        };
        let name = Some("ns1.example".to_owned());
        assert_eq!(of(&servers[0]), ("192.0.2.7:5300".to_owned(), name.clone(), None));
        assert_eq!(of(&servers[1]), ("192.0.2.7:853".to_owned(), name.clone(), name));
        let (servers, asked) = external("192.0.2.1");
        assert_eq!((of(&servers.unwrap()[1]).2, asked), (None, Vec::new()));
        let (servers, asked) = external("nowhere.example");
        let message = "`server.address` cannot be looked up: `nowhere.example` is unknown";
        assert_eq!(servers.unwrap_err(), message);
        assert_eq!(asked.len(), 1, "a name that is not found is looked up once, too");
    }
}
