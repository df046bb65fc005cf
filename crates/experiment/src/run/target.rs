//! The server of one run, started here or running already.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_lab::{
    GuardProgram, LabError, LogDestination, LogFile, LogPrefix, Logging, NotFound, QueryLog,
    Rotation, RunningServer, ServerSpec, ZoneFile,
};
use dnslab_load::{AskError, Endpoint, TlsSettings, TlsSettingsError, Verification as Verify, ask};
use dnslab_measure::ServerFacts;
use dnslab_settings::{
    ChainServer, HttpSettings, Load, Log, LogTarget, Queries, ServerKind, Variant, Verification,
};
use dnslab_traffic::{QueryList, SyntheticZone};
use dnslab_wire::units::duration;
use dnslab_wire::{Query, QueryOptions, Response, TlsGroup, Transport, rcode_name};
use domain::base::Name;
use domain::base::iana::Rtype;

use super::first_query::{OptionForm, is_answered, remedy};
use super::queries::{QueriesError, zone};
use super::seeds::{Role, Seeds};
use super::testbed::{READY_NAME, Testbed, visit};
use super::watching::{self, SWITCHED_OFF, Watch};

/// Time from a server's start to its first right answer. BIND loads 750,000 records in some seconds.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(60);

const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Tls(#[from] TlsSettingsError),
    #[error(transparent)]
    Zone(#[from] QueriesError),
    #[error(transparent)]
    NotFound(#[from] NotFound),
    #[error("cannot write {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("the {place}: {source}")]
    ChainServer {
        /// As in the experiment file.
        place: &'static str,
        source: Box<TargetError>,
    },
    /// Server and clients seem to have no key exchange group in common: with other groups the server
    /// answered.
    #[error(
        "the server does not answer clients that offer the key exchange groups {groups} alone: \
         {reason}\n  hint:    {library} may have none of them; name another in load.tls_groups"
    )]
    NoGroup {
        groups: String,
        /// What the server has TLS from.
        library: String,
        /// What happened instead of an answer.
        reason: String,
    },
    /// The server that should be running does not answer.
    #[error("{0}\n  hint:    {remedy}", remedy = remedy(.0, OptionForm::Set))]
    Silent(AskError),
}

impl TargetError {
    /// Marks the error as that of a server behind the one under test.
    pub(super) fn of(self, place: &'static str) -> Self {
        Self::ChainServer { place, source: Box::new(self) }
    }
}

/// A server that is ready for the load.
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<TlsSettings>,
    /// The ports of a server that was started here.
    ports: Vec<(Transport, u16)>,
    /// Where the clients of other transports go.
    pub(super) others: Vec<Endpoint>,
    /// The further servers that clients know.
    pub(super) further: Vec<Vec<Endpoint>>,
    /// `None` for a server that was not started here.
    pub(super) server: Option<RunningServer>,
    pub(super) watch: Watch,
    pub(super) facts: ServerFacts,
}

impl Target {
    /// Where the server answers over another transport than the first.
    fn address_over(&self, variant: &Variant, transport: Transport) -> SocketAddr {
        let started = self.ports.iter().find(|(known, _)| *known == transport);
        let started = started.map(|(_, port)| SocketAddr::new(self.address.ip(), *port));
        started.or_else(|| variant.target_over(transport)).unwrap_or(self.address)
    }

    /// TLS for another transport than the first, with default settings.
    fn tls_over(
        &self,
        variant: &Variant,
        transport: Transport,
    ) -> Result<Option<TlsSettings>, TlsSettingsError> {
        match &self.server {
            None => external_tls_over(variant, transport, self.address),
            Some(server) => {
                let name = self.address.ip().to_string();
                tls(transport, variant.verification().as_ref(), &name, server.authority())
            }
        }
    }
}

pub(super) struct Site<'a> {
    /// The hosts, and what runs behind the server.
    pub(super) testbed: &'a Testbed,
    pub(super) cpus: &'a [usize],
    pub(super) seeds: Seeds,
    pub(super) folder: &'a Path,
    pub(super) guard: &'a GuardProgram,
}

/// Starts the variant's server with all its state under the run's folder, or checks that the external one
/// answers.
pub(super) fn prepare(
    variant: &Variant,
    site: &Site<'_>,
    queries: &QueryList,
) -> Result<Target, TargetError> {
    let mut target = begin(variant, site, queries)?;
    if !variant.server.watch {
        target.watch = Err(SWITCHED_OFF.to_owned());
    }
    target.tls = target.tls.map(|tls| as_chosen(tls, &variant.load));
    for (transport, share) in variant.load.mixed().iter().copied() {
        let tls = target.tls_over(variant, transport)?.map(|tls| as_chosen(tls, &variant.load));
        let address = target.address_over(variant, transport);
        target.others.push(Endpoint { transport, target: address, tls, share });
    }
    target.further = further(variant)?;
    let has_own_groups = variant.load.tls_groups != TlsGroup::PRESET;
    if let Some(tls) = target.tls.as_ref().filter(|_| has_own_groups) {
        agree(variant, site, (&target, tls), queries)?;
    }
    Ok(target)
}

/// The further servers that the clients know, each with its endpoint for each transport.
fn further(variant: &Variant) -> Result<Vec<Vec<Endpoint>>, TlsSettingsError> {
    let mut servers = Vec::new();
    for transport in variant.load.transports() {
        for (place, target) in variant.further_over(transport).enumerate() {
            let tls = external_tls_over(variant, transport, target)?;
            let tls = tls.map(|tls| as_chosen(tls, &variant.load));
            if servers.len() <= place {
                servers.push(Vec::new());
            }
            servers[place].push(Endpoint { transport, target, tls, share: 0.0 });
        }
    }
    Ok(servers)
}

/// TLS as a load wants it.
fn as_chosen(tls: TlsSettings, load: &Load) -> TlsSettings {
    tls.with_versions(load.tls_versions)
        .with_resumption(load.resumption)
        .with_early_data(load.early_data)
        .with_records(load.tls_records)
        .with_groups(&load.tls_groups)
}

/// TLS with default settings to an external server. `None` without encryption, and for a server that is
/// started.
fn external_tls(variant: &Variant) -> Result<Option<TlsSettings>, TlsSettingsError> {
    let Some(target) = variant.target() else { return Ok(None) };
    external_tls_over(variant, variant.load.transport, target)
}

/// The same over this transport and to this server.
pub(super) fn external_tls_over(
    variant: &Variant,
    transport: Transport,
    target: SocketAddr,
) -> Result<Option<TlsSettings>, TlsSettingsError> {
    let name = variant.server.tls_name.clone().unwrap_or_else(|| target.ip().to_string());
    tls(transport, variant.verification().as_ref(), &name, None)
}

/// Checks that the server has one of the groups that its clients will offer. Before this it was asked with
/// the groups that every server has.
fn agree(
    variant: &Variant,
    site: &Site<'_>,
    (target, tls): (&Target, &TlsSettings),
    queries: &QueryList,
) -> Result<(), TargetError> {
    let load = &variant.load;
    let asked = if variant.target().is_none() {
        let _visit = site.testbed.visit("client")?;
        let question = Question::of(variant)?;
        question.ask(target.address, load.transport, Some(tls), &load.http())
    } else {
        let answered = is_answered(variant, target.address, Some(tls), queries);
        answered.map_err(|error| error.to_string())
    };
    asked.map_err(|reason| {
        let groups: Vec<&str> = load.tls_groups.iter().map(|group| group.name()).collect();
        let library = match target.facts.tls_library.as_str() {
            "" => "the server's TLS library".to_owned(),
            library => format!("the server's TLS library ({library})"),
        };
        TargetError::NoGroup { groups: groups.join(", "), library, reason }
    })
}

/// [`prepare`] with default TLS settings.
fn begin(variant: &Variant, site: &Site<'_>, queries: &QueryList) -> Result<Target, TargetError> {
    if let Some(target) = variant.target() {
        return external(variant, target, external_tls(variant)?, queries);
    }
    let (transport, verification) = (variant.load.transport, variant.verification());
    let client = site.testbed.network("client");
    let sides = (verification.as_ref(), client.as_deref());
    start(&spec(variant, site)?, transport, sides, &Question::of(variant)?, site.guard)
}

fn external(
    variant: &Variant,
    target: SocketAddr,
    tls: Option<TlsSettings>,
    queries: &QueryList,
) -> Result<Target, TargetError> {
    // The run judges whether the answer is right. Here somebody must answer.
    if let Err(silent) = is_answered(variant, target, tls.as_ref(), queries) {
        let transport = variant.load.transport;
        let is_answered_by = |further: SocketAddr| {
            let tls = external_tls_over(variant, transport, further).ok().flatten();
            is_answered(variant, further, tls.as_ref(), queries).is_ok()
        };
        if !variant.further_over(transport).any(is_answered_by) {
            return Err(TargetError::Silent(silent));
        }
    }
    // A service that waits for its first query has started by now.
    let (facts, watch) = watching::external(variant)?;
    let (ports, others, further) = (Vec::new(), Vec::new(), Vec::new());
    Ok(Target { address: target, tls, ports, others, further, server: None, watch, facts })
}

/// The server under test as it is to be started.
fn spec(variant: &Variant, site: &Site<'_>) -> Result<ServerSpec, TargetError> {
    let directory = site.folder.join("server");
    let (server, front) = (&variant.server, variant.front());
    let kind = front.kind.unwrap_or(ServerKind::Embedded);
    let listen = site.testbed.listen(server.address.ip())?;
    let transports: Vec<Transport> = variant.load.transports().collect();
    let mut spec = ServerSpec::new(kind, directory, listen, &transports);
    spec.upstream = site.testbed.upstream().filter(|_| !variant.resolves());
    spec.root_hints = site.testbed.root_hints(variant);
    if spec.upstream.is_none() && spec.root_hints.is_none() {
        let origin = variant.zone.name.clone();
        let path = write_zone(&zone(&variant.zone)?, &origin, &spec.directory)?;
        spec.zone = Some(ZoneFile { origin, path });
    }
    if server.dnssec {
        spec.trust_anchors = site.testbed.trust_anchors(variant)?;
    }
    spec.cache = server.cache;
    spec.certificate = server.certificate;
    spec.logging = logging(variant);
    spec.network = site.testbed.network("server");
    spec.connections = super::room::connections(&variant.load);
    spec.http_path = variant.load.http_path.clone();
    spec.embedded.early_data = variant.load.early_data;
    spec.root = server.root.clone();
    spec.counts = server.watch;
    give(&mut spec, &front, site.cpus, site.seeds.of(Role::Server));
    Ok(spec)
}

/// Gives a server what it has in every role: CPUs, program and text, and the programs of the embedded server.
pub(super) fn give(spec: &mut ServerSpec, server: &ChainServer<'_>, cpus: &[usize], seed: u64) {
    spec.cpus = cpus.to_vec();
    let threads = || u32::try_from(cpus.len()).unwrap_or(1);
    spec.threads = server.threads.unwrap_or_else(threads).max(1);
    spec.binary = server.binary.map(Path::to_owned);
    spec.extra = server.extra.map(str::to_owned);
    if spec.kind == ServerKind::Embedded {
        spec.embedded.delay = server.delay.map(|delay| delay.to_string());
        spec.embedded.loss = server.loss.map(|loss| loss.to_string());
        spec.embedded.busy = (!server.busy.is_zero()).then(|| duration::write(server.busy));
        spec.embedded.seed = Some(seed);
    }
}

pub(super) fn logging(variant: &Variant) -> Logging {
    let Log { to, folder, size_mib, versions, suffix, buffered, .. } = &variant.log;
    let to = match to {
        LogTarget::None => None,
        LogTarget::File => Some(LogDestination::File(LogFile {
            folder: folder.clone(),
            is_buffered: *buffered,
            rotation: size_mib.map(|size_mib| Rotation {
                size_mib,
                versions: *versions,
                suffix: *suffix,
            }),
        })),
        LogTarget::Syslog => Some(LogDestination::Syslog),
        LogTarget::StandardError => Some(LogDestination::StandardError),
        LogTarget::Null => Some(LogDestination::Null),
    };
    let print = LogPrefix {
        time: variant.log.print_time,
        category: variant.log.print_category,
        severity: variant.log.print_severity,
    };
    Logging { query_log: to.map(|to| QueryLog { to, print }), dnstap: variant.server.dnstap }
}

/// Writes the zone into the server's folder, and returns its path.
pub(super) fn write_zone(
    zone: &SyntheticZone,
    name: &str,
    directory: &Path,
) -> Result<PathBuf, TargetError> {
    let path = directory.join(format!("{name}.zone"));
    let written =
        fs::create_dir_all(directory).and_then(|()| File::create(&path)).and_then(|file| {
            let mut writer = BufWriter::new(file);
            zone.write_to(&mut writer)?;
            writer.flush()
        });
    written.map_err(|source| TargetError::Io { path: path.clone(), source })?;
    Ok(path)
}

/// The certificate is verified against the authority made for the run.
pub(super) fn start_with_run_authority(
    spec: &ServerSpec,
    transport: Transport,
    guard: &GuardProgram,
) -> Result<Target, TargetError> {
    let origin = spec.zone.as_ref().map_or(".", |zone| zone.origin.as_str());
    let question = Question::soa(origin)?;
    start(spec, transport, (Some(&Verification::RunAuthority), None), &question, guard)
}

/// Waits until the server gives the right answer to a client on the host `client`.
fn start(
    spec: &ServerSpec,
    transport: Transport,
    (verification, client): (Option<&Verification>, Option<&Path>),
    question: &Question,
    guard: &GuardProgram,
) -> Result<Target, TargetError> {
    let address = spec.socket_address(transport);
    let name = address.ip().to_string();
    let authority = spec.directory.join("authority.pem");
    let http = HttpSettings { path: spec.http_path.clone(), ..HttpSettings::default() };
    let probe = |transport: Transport, address: SocketAddr| {
        let _visit = visit(client).map_err(|error| error.to_string())?;
        // The start makes the authority, so these settings are made here.
        let tls = tls(transport, verification, &name, Some(&authority))
            .map_err(|error| error.to_string())?;
        question.ask(address, transport, tls.as_ref(), &http)
    };
    let server = RunningServer::start(spec, guard, &probe, READY_WITHIN)?;
    let tls = tls(transport, verification, &name, Some(&authority))?;
    let facts = server.facts().clone();
    let watch = Ok(server.watched());
    let port = |transport: &Transport| (*transport, spec.socket_address(*transport).port());
    let ports = spec.transports.iter().map(port).collect();
    let (others, further) = (Vec::new(), Vec::new());
    Ok(Target { address, tls, ports, others, further, server: Some(server), watch, facts })
}

/// The query that shows whether a server answers rightly, with records.
pub(super) struct Question(Query);

impl Question {
    /// The SOA record of the zone. If the load would fill a cache, a name that an upstream knows and no load
    /// asks for; for a resolver the SOA record of the root, which leaves no other name in its cache.
    pub(super) fn of(variant: &Variant) -> Result<Self, QueriesError> {
        if variant.resolves() {
            return Self::soa(".");
        }
        let has_names = !matches!(variant.asked(), Queries::Zone(_));
        match has_names && !variant.behind().is_empty() {
            true => Self::new(READY_NAME, Rtype::A),
            false => Self::soa(&variant.zone.name),
        }
    }

    fn soa(origin: &str) -> Result<Self, QueriesError> {
        Self::new(origin, Rtype::SOA)
    }

    fn new(name: &str, rtype: Rtype) -> Result<Self, QueriesError> {
        let wrong = |reason: String| QueriesError::Zone { name: name.to_owned(), reason };
        let parsed: Name<Vec<u8>> = name
            .parse()
            .map_err(|error: domain::base::name::FromStrError| wrong(error.to_string()))?;
        // A forwarder may refuse a query without RD.
        let options = QueryOptions { recursion_desired: true, ..QueryOptions::default() };
        let query = Query::new(&parsed, rtype, &options);
        query.map(Self).map_err(|error| wrong(error.to_string()))
    }

    fn ask(
        &self,
        address: SocketAddr,
        transport: Transport,
        tls: Option<&TlsSettings>,
        http: &HttpSettings,
    ) -> Result<(), String> {
        let answer = ask(address, transport, &self.0, tls, http, PROBE_TIMEOUT)
            .map_err(|error| error.to_string())?;
        let response = Response::parse(&answer).map_err(|error| error.to_string())?;
        if response.rcode != 0 || response.answers == 0 {
            let (rcode, records) = (rcode_name(response.rcode.into()), response.answers);
            return Err(format!("{} was answered with {rcode} and {records} records", self.0));
        }
        Ok(())
    }
}

/// Asks a server behind the one under test. `authority` signed its certificate.
pub(super) fn probe(
    transport: Transport,
    address: SocketAddr,
    question: &Question,
    authority: Option<&Path>,
) -> Result<(), String> {
    let name = address.ip().to_string();
    let tls = tls(transport, Some(&Verification::RunAuthority), &name, authority)
        .map_err(|error| error.to_string())?;
    question.ask(address, transport, tls.as_ref(), &HttpSettings::default())
}

/// `own_authority` is the one made for the run.
fn tls(
    transport: Transport,
    verification: Option<&Verification>,
    name: &str,
    own_authority: Option<&Path>,
) -> Result<Option<TlsSettings>, TlsSettingsError> {
    if !transport.is_encrypted() {
        return Ok(None);
    }
    let verify = match (verification, own_authority) {
        (Some(Verification::Authority(path)), _) => Verify::Authority(path.clone()),
        (Some(Verification::RunAuthority), Some(path)) => Verify::Authority(path.to_owned()),
        _ => Verify::Off,
    };
    TlsSettings::new(name, &verify).map(Some)
}
