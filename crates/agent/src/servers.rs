//! The servers that an agent knows: those that it has found, and those that it has started.

use std::collections::HashMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use dnslab_lab::cpus::{self, Cores, joined};
use dnslab_lab::{
    CounterWatch, ExternalServer, GuardProgram, LabError, OwnConfiguration, Patience, PolicyZone,
    RootHints, RunningServer, ServerSpec, Signatures, Upstream, UpstreamTls, Watched, ZoneFile,
    certificate, host,
};
use dnslab_load::{Job, TlsSettings, Verification};
use dnslab_protocol::{
    Answer, Failure, FromAgent, PortChoice, SentFile, SentPolicy, SentQueries, SentRootHints,
    SentSource, SentUpstream, SentZone, ServerOrder, Serving,
};
use dnslab_settings::{
    ChainRole, Load, ServerKind, UpstreamChoice, Variant, check_text, on_one_line,
};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, Transport, UnknownWord};

use crate::readiness::{Ready, answered};
use crate::scratch::{Folder, Scratch};
use crate::serving::{ServerPlace, needs, ports, server_spec};

/// Name of a file that was sent, in a folder of its own.
const FILE: &str = "file";

/// Octets of all files, at most.
const MAX_FILES: u64 = 4 << 30;

/// Octets. A disk with less room is full for a server that writes logs.
const ROOM: u64 = 16 << 20;

/// Lines of a log that are told, at most.
const MAX_LINES: usize = 50;

#[derive(Debug)]
enum Known {
    Found(Box<ExternalServer>),
    /// It is given up when this is set.
    Starting(Arc<AtomicBool>),
    Started(Arc<Started>),
}

/// A server that the agent has started. It ends with this.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) server: RunningServer,
    kind: ServerKind,
    /// That it has ended by itself was told.
    is_told: AtomicBool,
    /// Folder of its state.
    state: PathBuf,
    /// The agent's own, if its state is there. It goes after the server.
    _folder: Option<Folder>,
}

/// What a server is watched and sampled by.
pub(crate) struct ToWatch {
    pub(crate) watched: Watched,
    /// CPUs that it may use.
    pub(crate) cpus: usize,
    /// `None` for one that somebody else started.
    pub(crate) kind: Option<ServerKind>,
}

/// The servers of an agent, and files that they are to have.
#[derive(Clone, Debug)]
pub(crate) struct Servers {
    known: Arc<Mutex<HashMap<u32, Known>>>,
    files: Arc<Mutex<HashMap<u32, Folder>>>,
    scratch: Scratch,
    /// Servers, and files, at once at most.
    most: usize,
}

impl Servers {
    /// Without a server yet. All folders are among those of `scratch`.
    pub(crate) fn within(scratch: Scratch, most: usize) -> Self {
        Self { known: Arc::default(), files: Arc::default(), scratch, most }
    }

    pub(crate) fn found(&self, number: u32, server: ExternalServer) -> Result<(), Failure> {
        self.place(number, Known::Found(Box::new(server)))
    }

    fn place(&self, number: u32, server: Known) -> Result<(), Failure> {
        let (mut known, most) = (self.known(), self.most);
        if known.len() >= most || known.contains_key(&number) {
            return Err(Failure::of(format!("it knows {most} servers, or one of number {number}")));
        }
        known.insert(number, server);
        Ok(())
    }

    pub(crate) fn to_watch(&self, number: u32) -> Result<ToWatch, Failure> {
        match self.known().get(&number) {
            Some(Known::Found(server)) => {
                Ok(ToWatch { watched: server.watched(), cpus: server.cpus().len(), kind: None })
            }
            Some(Known::Started(started)) => Ok(ToWatch {
                watched: started.server.watched(),
                cpus: started.server.facts().cpus.len(),
                kind: Some(started.kind),
            }),
            Some(Known::Starting(_)) | None => Err(no_server(number)),
        }
    }

    /// Reads what a server that was found publishes at an address of its host.
    pub(crate) fn count_found(
        &self,
        number: u32,
        statistics: SocketAddr,
        guard: &GuardProgram,
    ) -> Result<CounterWatch, Failure> {
        let found = match self.known().get(&number) {
            Some(Known::Found(server)) => ExternalServer::clone(server),
            _ => return Err(no_server(number)),
        };
        found.count(statistics, guard).map_err(Failure::of)
    }

    pub(crate) fn started(&self, number: u32) -> Result<Arc<Started>, Failure> {
        match self.known().get(&number) {
            Some(Known::Started(started)) => Ok(Arc::clone(started)),
            _ => Err(no_server(number)),
        }
    }

    /// Appends octets to a file that a server is to have.
    pub(crate) fn write(&self, file: u32, octets: &str) -> Result<Answer, Failure> {
        let octets = BASE64.decode(octets).map_err(|error| Failure::of(error.to_string()))?;
        let path = self.file(file)?.join(FILE);
        let failed = |error: std::io::Error| Failure::of(format!("{}: {error}", path.display()));
        let mut opened =
            OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        let all = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let sizes = all.values().map(|folder| fs::metadata(folder.path().join(FILE)));
        let known: u64 = sizes.flatten().map(|facts| facts.len()).sum();
        drop(all);
        let free = host::free_octets(&path).unwrap_or(u64::MAX);
        if known + octets.len() as u64 > MAX_FILES || free < ROOM + octets.len() as u64 {
            return Err(Failure::of(format!(
                "it has {MAX_FILES} octets of files at most, and {free} octets of room"
            )));
        }
        opened.write_all(&octets).map_err(failed)?;
        Ok(Answer::Taken)
    }

    fn file(&self, file: u32) -> Result<PathBuf, Failure> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = files.get(&file) {
            return Ok(folder.path().to_owned());
        }
        if files.len() >= self.most {
            return Err(Failure::of(format!("it has {} files already", self.most)));
        }
        let folder = self.scratch.folder()?;
        let path = folder.path().to_owned();
        files.insert(file, folder);
        Ok(path)
    }

    /// Makes room for a server that is about to be started. It is given up when the flag is set.
    pub(crate) fn await_server(&self, number: u32) -> Result<Arc<AtomicBool>, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        self.place(number, Known::Starting(Arc::clone(&stop)))?;
        Ok(stop)
    }

    /// Starts a server that is awaited, and waits until it answers the question here.
    pub(crate) fn serve(
        &self,
        (number, stop): (u32, &AtomicBool),
        order: ServerOrder,
        guard: &GuardProgram,
        is_bounded: bool,
    ) -> Result<Answer, Failure> {
        let begun = self.start(order, guard, is_bounded, stop);
        let mut known = self.known();
        // Unless it was left meanwhile.
        let is_wanted = known.contains_key(&number);
        match begun {
            Ok((started, serving)) if is_wanted => {
                known.insert(number, Known::Started(Arc::new(started)));
                Ok(Answer::Serving(Box::new(serving)))
            }
            Ok(_) => Err(Failure::of("it was left before it answered")),
            Err(failure) => {
                known.remove(&number);
                Err(failure)
            }
        }
    }

    fn start(
        &self,
        order: ServerOrder,
        guard: &GuardProgram,
        is_bounded: bool,
        stop: &AtomicBool,
    ) -> Result<(Started, Serving), Failure> {
        let variant = variant_of(&order.variant)?;
        let server = variant.servers().into_iter().find(|server| server.role == order.role);
        let server = server.ok_or_else(|| Failure::of("its variant has no such server"))?;
        let kind = server.kind.ok_or_else(|| Failure::of("nothing is to be started"))?;
        if is_bounded {
            check_bounds(&variant)?;
            self.check_order(&variant, &order)?;
        }
        let address = order.address;
        let ports = ports(address, order.ports).map_err(|error| {
            Failure::of(format!(
                "no server can listen there at {address}: {error}; set `server.address` to an address of that host"
            ))
        })?;
        let cpus = match &order.cpus[..] {
            [] => own_cpus(&variant, order.role)?,
            given => check_cpus(given)?,
        };
        let (folder, directory) = match order.folder {
            Some(folder) => (None, folder),
            None => {
                let folder = self.scratch.folder()?;
                let directory = folder.path().join("server");
                (Some(folder), directory)
            }
        };
        let ServerOrder { connections, seed, source, start_limit_ns, .. } = order;
        let place = ServerPlace { directory, listen: (address, ports), cpus: &cpus, seed };
        let mut spec = server_spec(&variant, &server, place);
        spec.connections = connections;
        self.give_source(&mut spec, &variant, source, is_bounded)?;
        if order.role == ChainRole::Server
            && let Some((kind, path)) = variant.own_configuration()
        {
            let asks_others = variant.upstream.kind == Some(UpstreamChoice::Live);
            let read = OwnConfiguration::read(kind, path, asks_others);
            spec.own = Some(read.map_err(|error| failure(&error))?);
        }
        let ready = if order.has_record { Ready::Record } else { Ready::NameOrNone };
        let question = one_query(order.question)?;
        let denied = order.denied.map(one_query).transpose()?;
        let authority = spec.directory.join(certificate::AUTHORITY);
        let asked = QueryList::from_queries(vec![question.clone()], "readiness".to_owned());
        let client = order.client.with_queries(Arc::new(asked)).map_err(|error| failure(&error))?;
        let load = Load { http_path: spec.http_path.clone(), ..client.settings };
        let probe = Probe { question, ready, denied, load, authority: &authority };
        let probe = |transport: Transport, at: SocketAddr| probe.ask(transport, at);
        let timeout = Duration::from_nanos(start_limit_ns);
        let started = RunningServer::start(&spec, guard, &probe, Patience { timeout, stop });
        let server = started.map_err(|error| not_started(&error))?;
        let text = |path: &Path| {
            let read = fs::read_to_string(path);
            read.map_err(|error| Failure::of(format!("{}: {error}", path.display())))
        };
        let configuration = server.facts().configuration.as_deref().map(Path::new);
        let configuration = configuration.and_then(Path::file_name).map(|name| {
            let written = text(&spec.directory.join(name))?;
            Ok::<_, Failure>((name.to_string_lossy().into_owned(), written))
        });
        let address = |(transport, at): &(Transport, SocketAddr)| (transport.to_string(), *at);
        let serving = Serving {
            facts: server.facts().clone(),
            addresses: server.addresses().iter().map(address).collect(),
            authority: server.authority().map(text).transpose()?,
            configuration: configuration.transpose()?,
        };
        let (is_told, state) = (AtomicBool::new(false), spec.directory);
        Ok((Started { server, kind, is_told, state, _folder: folder }, serving))
    }

    /// Gives a server what it answers from.
    fn give_source(
        &self,
        spec: &mut ServerSpec,
        variant: &Variant,
        source: SentSource,
        is_bounded: bool,
    ) -> Result<(), Failure> {
        let SentSource { zone, upstream, root_hints, trust_anchors, policy, .. } = source;
        spec.zone = zone.map(|zone| self.zone(variant, zone, is_bounded)).transpose()?;
        spec.upstream = upstream.map(|upstream| self.upstream(upstream)).transpose()?;
        spec.root_hints = root_hints.map(|hints| match hints {
            SentRootHints::BuiltIn => RootHints::BuiltIn,
            SentRootHints::Zone(text) => RootHints::Zone(text),
        });
        spec.trust_anchors = trust_anchors;
        let policy = policy.map(|SentPolicy { name, file }| {
            Ok::<_, Failure>(PolicyZone { name, path: self.path_of(&file)?, denied: None })
        });
        spec.policy_zone = policy.transpose()?;
        if spec.kind == ServerKind::Embedded {
            let names = source.names.map(|names| self.names(&names, &spec.directory));
            spec.embedded.names = names.transpose()?;
            spec.embedded.hierarchy = source.hierarchy;
            spec.embedded.path_delay = source.path_delay;
        }
        let knows = spec.embedded.names.is_some() || spec.embedded.hierarchy.is_some();
        let asks = spec.upstream.is_some() || spec.root_hints.is_some();
        match &spec.zone {
            Some(_) if !spec.kind.serves_zones() => {
                Err(Failure::of("such a server serves no zone"))
            }
            None if !knows && !asks && variant.own_configuration().is_none() => {
                Err(Failure::of("a server has nothing to answer from"))
            }
            _ => Ok(()),
        }
    }

    fn upstream(&self, sent: SentUpstream) -> Result<Upstream, Failure> {
        let SentUpstream { addresses, transport, tls } = sent;
        let transport =
            transport.parse().map_err(|word: UnknownWord| Failure::of(word.to_string()))?;
        let (address, further) = addresses
            .split_first()
            .ok_or_else(|| Failure::of("a server forwards to no address"))?;
        let tls = tls.map(|(authority, name)| {
            Ok::<_, Failure>(UpstreamTls { authority: self.path_of(&authority)?, name })
        });
        let (address, further) = (*address, further.to_vec());
        Ok(Upstream { address, further, transport, tls: tls.transpose()? })
    }

    /// What nobody may ask for whose rights are bounded: a server that asks others than were started here, or text that is
    /// none of what it is to be.
    fn check_order(&self, variant: &Variant, order: &ServerOrder) -> Result<(), Failure> {
        let refused = |what: &str| {
            Err(Failure::of(format!(
                "its host does not allow {what} (`dnslab agent --allow`: servers are asked, and ask nobody)"
            )))
        };
        let source = &order.source;
        if order.ports != PortChoice::Free || !order.cpus.is_empty() {
            return refused("ports or CPUs of its own");
        }
        // A referral would lead it elsewhere.
        let follows = variant.server.kind.started() == Some(ServerKind::PowerDnsRecursor);
        if follows && order.role == ChainRole::Server {
            return refused("a forwarder that may resolve, too");
        }
        let files = [&source.names].into_iter().flatten();
        let files = files.chain(source.zone.iter().map(|zone| &zone.file));
        let tls = source.upstream.iter().flat_map(|upstream| &upstream.tls);
        let mut files = files.chain(tls.clone().map(|(authority, _)| authority));
        if order.folder.is_some() || files.any(|file| matches!(file, SentFile::There(_))) {
            return refused("files of its own");
        }
        if source.root_hints.is_some() || source.hierarchy.is_some() || variant.resolves() {
            return refused("a server that resolves");
        }
        if source.policy.is_some() {
            return refused("`server.policy_zone`");
        }
        let is_plain = |text: &String| {
            text.bytes().all(|octet| octet.is_ascii_alphanumeric() || b" .-".contains(&octet))
        };
        let mut texts = source.trust_anchors.iter().chain(tls.map(|(_, name)| name));
        if !texts.all(is_plain) {
            return refused("such a trust anchor or name");
        }
        let known = self.known();
        let started = known.values().filter_map(|known| match known {
            Known::Started(started) => Some(started.server.addresses()),
            Known::Found(_) | Known::Starting(_) => None,
        });
        let own: Vec<SocketAddr> = started.flatten().map(|(_, address)| *address).collect();
        let mut asked = source.upstream.iter().flat_map(|upstream| &upstream.addresses);
        match asked.find(|address| !own.contains(address)) {
            Some(other) => refused(&format!("a server that asks {other}")),
            None => Ok(()),
        }
    }

    /// Names that the embedded server reads itself, as the user that it becomes.
    fn names(&self, file: &SentFile, directory: &Path) -> Result<PathBuf, Failure> {
        let from = self.path_of(file)?;
        if matches!(file, SentFile::There(_)) {
            return Ok(from);
        }
        let path = directory.join("names.txt");
        let failed = |error: io::Error| Failure::of(format!("{}: {error}", path.display()));
        let octets = fs::metadata(&from).map_err(failed)?.len();
        fs::create_dir_all(directory).map_err(failed)?;
        if host::free_octets(directory).is_some_and(|free| free < ROOM + octets) {
            return Err(Failure::of(format!("no room is left in {}", directory.display())));
        }
        fs::copy(&from, &path).map_err(failed)?;
        Ok(path)
    }

    /// Where a file is.
    fn path_of(&self, file: &SentFile) -> Result<PathBuf, Failure> {
        let number = match file {
            SentFile::There(path) => return Ok(path.clone()),
            SentFile::Sent(number) => number,
        };
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let path = files.get(number).map(|folder| folder.path().join(FILE));
        path.ok_or_else(|| Failure::of(format!("it has no file {number}")))
    }

    fn zone(
        &self,
        variant: &Variant,
        zone: SentZone,
        is_bounded: bool,
    ) -> Result<ZoneFile, Failure> {
        let path = self.path_of(&zone.file)?;
        if is_bounded {
            check_directives(&path)?;
        }
        Ok(ZoneFile {
            origin: variant.zone.name.clone(),
            path,
            signatures: zone.signatures.map(|signatures| Signatures { nsec3: signatures.nsec3 }),
        })
    }

    /// A server is of no interest any more. One that was started has ended when this returns.
    pub(crate) fn forget(&self, number: u32) {
        let left = self.known().remove(&number);
        match left {
            Some(Known::Starting(stop)) => stop.store(true, Ordering::Relaxed),
            Some(Known::Started(started)) => {
                // Whoever counts holds it no longer than that takes.
                if let Some(Started { server, _folder, .. }) = Arc::into_inner(started) {
                    server.stop().ok();
                }
            }
            Some(Known::Found(_)) | None => {}
        }
    }

    /// A file is of no interest any more, if there is one of this number.
    pub(crate) fn leave(&self, number: u32) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }

    /// Ends all that was started.
    pub(crate) fn end_all(&self) {
        let numbers: Vec<u32> = self.known().keys().copied().collect();
        numbers.into_iter().for_each(|number| self.forget(number));
    }

    /// Those that have ended by themselves since this was asked before, or had no room left for their logs, which ends
    /// them.
    pub(crate) fn ended(&self) -> Vec<FromAgent> {
        let (mut ended, mut full) = (Vec::new(), Vec::new());
        for (number, server) in self.known().iter() {
            let Known::Started(started) = server else { continue };
            let exited = started.server.exited().map(|report| report.ending.to_string());
            let is_full = exited.is_none() && started.is_out_of_room();
            let no_room = || format!("no room was left in {}", started.state.display());
            let Some(ending) = exited.or_else(|| is_full.then(no_room)) else { continue };
            if started.is_told.swap(true, Ordering::Relaxed) {
                continue;
            }
            let log = started.server.log_tail(MAX_LINES);
            ended.push(FromAgent::Exited { server: *number, ending, log });
            full.extend(is_full.then_some(*number));
        }
        for number in full {
            let servers = self.clone();
            // Without a thread it ends when the coordinator has heard of it.
            thread::Builder::new().spawn(move || servers.forget(number)).ok();
        }
        ended
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u32, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Started {
    /// In a folder of the agent's own. Whoever gave another one looks after it.
    fn is_out_of_room(&self) -> bool {
        self._folder.is_some() && host::free_octets(&self.state).is_some_and(|octets| octets < ROOM)
    }

    pub(crate) fn log(&self, lines: usize) -> Vec<String> {
        self.server.log_tail(lines.min(MAX_LINES))
    }
}

fn no_server(number: u32) -> Failure {
    Failure::of(format!("it knows no server {number}"))
}

fn failure(error: &(dyn Error + 'static)) -> Failure {
    Failure::from(error)
}

/// Why a server did not start, with the end of its log, which its reason has already.
fn not_started(error: &LabError) -> Failure {
    let log = match error {
        LabError::Exited(exited) => exited.log_tail.clone(),
        LabError::NotReady(waited) => waited.log_tail.clone(),
        _ => Vec::new(),
    };
    Failure { reason: error.to_string(), causes: log }
}

/// The CPUs of a server of a variant on this host. Where none are named, the end of a chain has the second half of the
/// cores, rounded down, or shares the only one.
fn own_cpus(variant: &Variant, role: ChainRole) -> Result<Vec<usize>, Failure> {
    let allowed = cpus::allowed();
    let named = |key: &str, cpus: &[usize]| match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(Some(cpus.to_vec()).filter(|cpus| !cpus.is_empty())),
        Some(other) => {
            let all = cpus::text(&allowed);
            Err(Failure::of(format!("it may not use CPU {other}: `{key}` has some of {all}")))
        }
    };
    let server = named("server.cpus", &variant.server.cpus)?;
    if variant.upstream.kind.and_then(UpstreamChoice::started).is_none() {
        return Ok(server.unwrap_or(allowed));
    }
    let upstream = named("upstream.cpus", &variant.upstream.cpus)?;
    let cores = Cores::of_this_machine().apart(&allowed);
    let (first, second) = cores.split_at(cores.len().div_ceil(2));
    let halves = [first, if second.is_empty() { first } else { second }].map(joined);
    let [of_server, of_upstream] = halves;
    // What the other side does not name.
    let left = |other: &Option<Vec<usize>>, half: Vec<usize>| {
        let Some(taken) = other else { return half };
        let left: Vec<usize> = allowed.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
        if left.is_empty() { allowed.clone() } else { left }
    };
    Ok(match role {
        ChainRole::Server | ChainRole::Relay => {
            server.unwrap_or_else(|| left(&upstream, of_server))
        }
        ChainRole::Upstream => upstream.unwrap_or_else(|| left(&server, of_upstream)),
    })
}

/// CPUs that a server is given, each once.
fn check_cpus(given: &[usize]) -> Result<Vec<usize>, Failure> {
    let (allowed, mut once) = (cpus::allowed(), given.to_vec());
    once.sort_unstable();
    once.dedup();
    match once.len() == given.len() && once.iter().all(|cpu| allowed.contains(cpu)) {
        true => Ok(once),
        false => Err(Failure::of(format!("it may use the CPUs {}", cpus::text(&allowed)))),
    }
}

fn one_query(sent: SentQueries) -> Result<Query, Failure> {
    let queries = sent.queries(1).map_err(|error| failure(&error))?;
    queries.into_iter().next().ok_or_else(|| Failure::of("a server has no question"))
}

/// The one variant of a text that another host has written.
fn variant_of(text: &str) -> Result<Variant, Failure> {
    let experiment = check_text(text, &[]);
    let experiment = experiment.map_err(|problems| {
        Failure::of(format!("a server has settings that are none: {problems}"))
    })?;
    let first = experiment.variants.into_iter().next();
    first.ok_or_else(|| Failure::of("a server has no settings"))
}

/// Whether the server of a variant is installed here, and can do what is needed of it.
pub(crate) fn can_serve(
    variant: &str,
    role: ChainRole,
    guard: &GuardProgram,
    is_bounded: bool,
) -> Result<Answer, Failure> {
    let variant = variant_of(variant)?;
    if is_bounded {
        check_bounds(&variant)?;
    }
    let servers = variant.servers();
    let place = servers.iter().position(|server| server.role == role);
    let place = place.ok_or_else(|| Failure::of(format!("it has no {}", role.name())))?;
    let upstream = servers.get(place + 1).map(|behind| behind.transport);
    let server = &servers[place];
    let kind = server.kind.ok_or_else(|| Failure::of("nothing is to be started"))?;
    let found = dnslab_lab::find(kind, server.binary, guard).and_then(|installed| {
        installed.can(&needs(&variant, server, upstream)).map_err(LabError::Unsupported)?;
        Ok(installed.version.to_string())
    });
    Ok(match found {
        Ok(version) => Answer::CanServe { version, lacks: String::new() },
        Err(error) => {
            Answer::CanServe { version: String::new(), lacks: on_one_line(&error.to_string()) }
        }
    })
}

/// What nobody may ask for whose rights are bounded: it would be any program, or any folder.
fn check_bounds(variant: &Variant) -> Result<(), Failure> {
    let server = &variant.server;
    let named = [
        ("server.binary", server.binary.is_some()),
        ("server.root", server.root.is_some()),
        ("server.extra", server.extra.is_some()),
        ("server.config", server.config.is_some()),
        ("server.policy_zone", server.policy_zone.is_some()),
        ("server.log.folder", variant.log.folder.is_some()),
        ("relay.binary", variant.relay.binary.is_some()),
        ("relay.extra", variant.relay.extra.is_some()),
        ("upstream.binary", variant.upstream.binary.is_some()),
        ("upstream.extra", variant.upstream.extra.is_some()),
    ];
    match named.into_iter().find(|(_, is_named)| *is_named) {
        None => Ok(()),
        Some((key, _)) => Err(Failure::of(format!(
            "its host does not allow `{key}` (`dnslab agent --allow` starts what is installed there)"
        ))),
    }
}

/// What would read other files of the host, or make a zone of any size.
const DIRECTIVES: [&str; 2] = ["INCLUDE", "GENERATE"];

/// Whether a zone file has directives that nobody may give whose rights are bounded. Servers find them behind a bracket, in
/// quotes, and behind a return: so they are nowhere in it.
fn check_directives(path: &Path) -> Result<(), Failure> {
    let unreadable = |error: io::Error| Failure::of(error.to_string());
    let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
    // Before each `$`, and what follows it up to the next one.
    let mut piece = Vec::new();
    while reader.read_until(b'$', &mut piece).map_err(unreadable)? > 0 {
        let begins = |name: &str| {
            let word = piece.get(..name.len());
            word.is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        if let Some(directive) = DIRECTIVES.into_iter().find(|name| begins(name)) {
            return Err(Failure::of(format!(
                "its host does not allow `${directive}` in a zone (`dnslab agent --allow`)"
            )));
        }
        piece.clear();
    }
    Ok(())
}

/// What a server must answer to be ready.
struct Probe<'a> {
    question: Query,
    ready: Ready,
    /// What its policy denies, if it has one.
    denied: Option<Query>,
    /// As a client of this load asks.
    load: Load,
    /// The authority of its certificate.
    authority: &'a Path,
}

impl Probe<'_> {
    fn ask(&self, transport: Transport, at: SocketAddr) -> Result<(), String> {
        self.answers((&self.question, self.ready), transport, at)?;
        let Some(denied) = &self.denied else { return Ok(()) };
        self.answers((denied, Ready::Denied), transport, at)
            .map_err(|said| format!("the policy is not applied: {said}"))
    }

    fn answers(
        &self,
        (question, ready): (&Query, Ready),
        transport: Transport,
        at: SocketAddr,
    ) -> Result<(), String> {
        let tls = transport.is_encrypted().then(|| {
            let verification = Verification::Authority(self.authority.to_owned());
            TlsSettings::new(&at.ip().to_string(), &verification)
        });
        let tls = tls.transpose().map_err(|error| error.to_string())?;
        let load = Load { transport, ..self.load.clone() };
        let list = QueryList::from_queries(vec![question.clone()], "readiness".to_owned());
        let job = Job { tls, ..Job::new(load, at, Arc::new(list)) };
        answered(&job, question, ready)
    }
}
