//! The server of one run, started here or running already.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_lab::{
    GuardProgram, LabError, LogDestination, LogFile, LogPrefix, Logging, NotFound, Patience,
    QueryLog, Rotation, RunningServer, ServerSpec, ZoneFile,
};
use dnslab_load::{
    AskError, Asker, Endpoint, Job, TlsSettings, TlsSettingsError, Verification as Verify, ask,
};
use dnslab_record::ServerFacts;
use dnslab_settings::{
    ChainServer, Load, Log, LogTarget, OptionForm, Queries, ServerKind, TlsVersions, Variant,
    Verification,
};
use dnslab_traffic::{QueryList, SyntheticZone};
use dnslab_wire::units::duration;
use dnslab_wire::{Query, QueryOptions, Response, TlsGroup, Transport, rcode_name};
use domain::base::Name;
use domain::base::iana::Rtype;

use super::first_query::{hint, is_answered};
use super::queries::{Asked, QueriesError, with_files, zone};
use super::seeds::{Role, Seeds};
use super::stoppable::Stoppable;
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
    /// Server and clients seem to have nothing in common in TLS: with other settings the server answered.
    #[error(
        "the server does not answer clients that offer {offered} alone: {reason}\n  hint:    {library} may have \
         none of them; name others in {key}"
    )]
    NoCommonTls {
        /// Groups or versions.
        offered: String,
        key: &'static str,
        /// What the server has TLS from.
        library: String,
        /// What happened instead of an answer.
        reason: String,
    },
    /// The server that should be running does not answer.
    #[error("{0}{hint}", hint = hint(.0, OptionForm::Set))]
    Silent(AskError),
}

impl TargetError {
    /// Marks the error as that of a server behind the one under test.
    pub(super) fn of(self, place: &'static str) -> Self {
        Self::ChainServer { place, source: Box::new(self) }
    }
}

/// How the clients of a load reach their servers.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    pub(super) address: SocketAddr,
    tls: Option<TlsSettings>,
    /// Where the clients of other transports go.
    others: Vec<Endpoint>,
    /// The further servers that clients know.
    further: Vec<Vec<Endpoint>>,
}

impl Ways {
    /// One way to one server.
    fn one(address: SocketAddr, tls: Option<TlsSettings>) -> Self {
        Self { address, tls, others: Vec::new(), further: Vec::new() }
    }

    /// Those to servers that run already; `None` for a server that is started.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn to_running(variant: &Variant) -> Result<Option<Self>, TlsSettingsError> {
        let Some(address) = variant.target() else { return Ok(None) };
        let load = &variant.load;
        let tls = |transport, target| external_tls_over(variant, transport, target);
        let endpoint = |transport, target, share| {
            let tls = tls(transport, target)?;
            Ok::<_, TlsSettingsError>(Endpoint { transport, target, tls, share })
        };
        let mut ways = Self::one(address, tls(load.transport, address)?);
        for (transport, share) in load.mixed().iter().copied() {
            let target = variant.target_over(transport).unwrap_or(address);
            ways.others.push(endpoint(transport, target, share)?);
        }
        for transport in load.transports() {
            for (place, target) in variant.further_over(transport).enumerate() {
                if ways.further.len() <= place {
                    ways.further.push(Vec::new());
                }
                ways.further[place].push(endpoint(transport, target, 0.0)?);
            }
        }
        Ok(Some(ways))
    }

    /// The servers that the clients know.
    pub(super) fn servers(&self) -> u8 {
        u8::try_from(1 + self.further.len()).unwrap_or(u8::MAX)
    }

    /// The load of a variant over these ways: what its clients send, before the load and in it.
    ///
    /// # Errors
    /// When a file that the queries need cannot be read.
    pub(super) fn job(&self, variant: &Variant, asked: &Asked) -> Result<Job, QueriesError> {
        let job = self.job_of(with_files(variant)?, Arc::clone(&asked.list));
        Ok(Job { played: asked.played(), ..job })
    }

    /// A load with these settings, whose files have been read, and this list of queries.
    pub(super) fn job_of(&self, load: Load, queries: Arc<QueryList>) -> Job {
        Job {
            tls: self.tls.clone(),
            others: self.others.clone(),
            further: self.further.clone(),
            ..Job::new(load, self.address, queries)
        }
    }
}

/// A server that is ready for the load.
pub(super) struct Target {
    pub(super) ways: Ways,
    /// The ports of a server that was started here.
    ports: Vec<(Transport, u16)>,
    /// `None` for a server that was not started here.
    pub(super) server: Option<RunningServer>,
    pub(super) watch: Watch,
    pub(super) facts: ServerFacts,
}

impl Target {
    /// Where the clients of another transport than the first reach a server that was started here.
    fn endpoint(
        &self,
        variant: &Variant,
        (transport, share): (Transport, f64),
    ) -> Result<Endpoint, TlsSettingsError> {
        let address = self.ways.address;
        let port = self.ports.iter().find(|(known, _)| *known == transport);
        let target = port.map_or(address, |(_, port)| SocketAddr::new(address.ip(), *port));
        let authority = self.server.as_ref().and_then(RunningServer::authority);
        let name = address.ip().to_string();
        let tls = tls(transport, variant.verification().as_ref(), &name, authority)?;
        let tls = tls.map(|tls| tls.of_load(&variant.load));
        Ok(Endpoint { transport, target, tls, share })
    }
}

pub(super) struct Site<'a> {
    /// The hosts, and what runs behind the server.
    pub(super) testbed: &'a Testbed,
    pub(super) cpus: &'a [usize],
    pub(super) seeds: Seeds,
    pub(super) folder: &'a Path,
    pub(super) guard: &'a GuardProgram,
    /// Whoever waits gives up when it is set.
    pub(super) stop: &'a AtomicBool,
}

/// Starts the variant's server with all its state under the run's folder, or checks that the external one
/// answers.
pub(super) fn prepare(
    variant: &Variant,
    site: &Site<'_>,
    asked: &Asked,
) -> Result<Target, TargetError> {
    let mut target = match Ways::to_running(variant)? {
        Some(ways) => external(variant, ways, asked)?,
        None => started(variant, site)?,
    };
    if !variant.server.watch {
        target.watch = Err(SWITCHED_OFF.to_owned());
    }
    Ok(target)
}

/// TLS to this external server over this transport, as the load wants it; `None` without encryption.
fn external_tls_over(
    variant: &Variant,
    transport: Transport,
    target: SocketAddr,
) -> Result<Option<TlsSettings>, TlsSettingsError> {
    let name = variant.server.tls_name.clone().unwrap_or_else(|| target.ip().to_string());
    let tls = tls(transport, variant.verification().as_ref(), &name, None)?;
    Ok(tls.map(|tls| tls.of_load(&variant.load)))
}

/// A server that is started for the run. It is ready when it answers clients with default settings of TLS; then it is
/// asked with those of the load.
fn started(variant: &Variant, site: &Site<'_>) -> Result<Target, TargetError> {
    let load = with_files(variant)?;
    let (transport, verification) = (load.transport, variant.verification());
    let client = site.testbed.network("client");
    let sides = (verification.as_ref(), client.as_deref());
    let question = Question::of(variant)?;
    let spec = spec(variant, site)?;
    let mut target = start(&spec, (transport, &load), sides, &question, (site.guard, site.stop))?;
    target.ways.tls = target.ways.tls.map(|tls| tls.of_load(&load));
    for mixed in load.mixed().iter().copied() {
        let endpoint = target.endpoint(variant, mixed)?;
        target.ways.others.push(endpoint);
    }
    let Some(tls) = &target.ways.tls else { return Ok(target) };
    if let Some((offered, key)) = own_tls(&load) {
        let _visit = site.testbed.visit("client")?;
        let answered = question.ask(&load, (target.ways.address, transport), Some(tls));
        answered.map_err(|reason| {
            let library = match target.facts.tls_library.as_str() {
                "" => "the server's TLS library".to_owned(),
                library => format!("the server's TLS library ({library})"),
            };
            TargetError::NoCommonTls { offered, key, library, reason }
        })?;
    }
    Ok(target)
}

/// What clients offer in TLS that is not the default, and the key that says so.
fn own_tls(load: &Load) -> Option<(String, &'static str)> {
    if load.tls_groups != TlsGroup::PRESET {
        let groups: Vec<&str> = load.tls_groups.iter().map(|group| group.name()).collect();
        return Some((
            format!("the key exchange groups {}", groups.join(", ")),
            "`load.tls_groups`",
        ));
    }
    let has_own = load.tls_versions != TlsVersions::Both;
    has_own.then(|| (format!("TLS {}", load.tls_versions), "`load.tls_versions`"))
}

fn external(variant: &Variant, ways: Ways, asked: &Asked) -> Result<Target, TargetError> {
    // The run judges whether the answer is right. Here somebody must answer.
    let job = ways.job(variant, asked)?;
    if let Err(silent) = is_answered(&job, 0)
        && !(1..ways.servers()).any(|further| is_answered(&job, further).is_ok())
    {
        return Err(TargetError::Silent(silent));
    }
    // A service that waits for its first query has started by now.
    let (facts, watch) = watching::external(variant)?;
    Ok(Target { ways, ports: Vec::new(), server: None, watch, facts })
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
        let path = write_zone(&zone(&variant.zone)?, &origin, &spec.directory, site.stop)?;
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
    stop: &AtomicBool,
) -> Result<PathBuf, TargetError> {
    let path = directory.join(format!("{name}.zone"));
    let written =
        fs::create_dir_all(directory).and_then(|()| File::create(&path)).and_then(|file| {
            let mut writer = BufWriter::new(Stoppable { inner: file, stop });
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
    let sides = (Some(&Verification::RunAuthority), None);
    let waiting = (guard, &AtomicBool::new(false));
    start(spec, (transport, &Load::default()), sides, &question, waiting)
}

/// Waits until the server gives the right answer to a client of this load on the host `client`.
fn start(
    spec: &ServerSpec,
    (transport, load): (Transport, &Load),
    (verification, client): (Option<&Verification>, Option<&Path>),
    question: &Question,
    (guard, stop): (&GuardProgram, &AtomicBool),
) -> Result<Target, TargetError> {
    let address = spec.socket_address(transport);
    let name = address.ip().to_string();
    let authority = spec.directory.join("authority.pem");
    let load = Load { http_path: spec.http_path.clone(), ..load.clone() };
    let probe = |transport: Transport, address: SocketAddr| {
        let _visit = visit(client).map_err(|error| error.to_string())?;
        // The start makes the authority, so these settings are made here.
        let tls = tls(transport, verification, &name, Some(&authority))
            .map_err(|error| error.to_string())?;
        question.ask(&load, (address, transport), tls.as_ref())
    };
    let server =
        RunningServer::start(spec, guard, &probe, Patience { timeout: READY_WITHIN, stop })?;
    let tls = tls(transport, verification, &name, Some(&authority))?;
    let facts = server.facts().clone();
    let watch = Ok(server.watched());
    let port = |transport: &Transport| (*transport, spec.socket_address(*transport).port());
    let ports = spec.transports.iter().map(port).collect();
    Ok(Target { ways: Ways::one(address, tls), ports, server: Some(server), watch, facts })
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

    /// Asks as the first client of this load does, over this transport.
    fn ask(
        &self,
        load: &Load,
        (address, transport): (SocketAddr, Transport),
        tls: Option<&TlsSettings>,
    ) -> Result<(), String> {
        let load = Load { transport, mix: None, ..load.clone() };
        let list = QueryList::from_queries(vec![self.0.clone()], "readiness".to_owned());
        let job = Job { tls: tls.cloned(), ..Job::new(load, address, Arc::new(list)) };
        let asker = Asker { client: 0, transport, server: 0 };
        let answer = ask(&job, asker, &self.0, PROBE_TIMEOUT).map_err(|error| error.to_string())?;
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
    question.ask(&Load::default(), (address, transport), tls.as_ref())
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
