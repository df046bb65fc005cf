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
use dnslab_lab::{
    CounterWatch, ExternalServer, GuardProgram, LabError, OwnConfiguration, Patience,
    RunningServer, Signatures, Watched, ZoneFile, certificate, cpus, host, ports,
};
use dnslab_load::{Job, TlsSettings, Verification};
use dnslab_protocol::{Answer, Failure, FromAgent, SentZone, ServerOrder, Serving};
use dnslab_settings::{Load, ServerKind, Variant, check_text, on_one_line};
use dnslab_traffic::QueryList;
use dnslab_wire::{Query, Transport};

use crate::readiness::{Ready, answered};
use crate::scratch::{Folder, Scratch};
use crate::serving::{ServerPlace, needs, server_spec};

/// Servers and files at once, at most.
const MOST: usize = 64;

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
    /// It goes after the server.
    folder: Folder,
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
}

impl Servers {
    /// Without a server yet. All folders are among those of `scratch`.
    pub(crate) fn within(scratch: Scratch) -> Self {
        Self { known: Arc::default(), files: Arc::default(), scratch }
    }

    pub(crate) fn found(&self, number: u32, server: ExternalServer) -> Result<(), Failure> {
        self.place(number, Known::Found(Box::new(server)))
    }

    fn place(&self, number: u32, server: Known) -> Result<(), Failure> {
        let mut known = self.known();
        if known.len() >= MOST || known.contains_key(&number) {
            return Err(Failure::of(format!("it knows {MOST} servers, or one of number {number}")));
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
        if files.len() >= MOST {
            return Err(Failure::of(format!("it has {MOST} files already")));
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
        let ServerOrder { variant, connections, seed, question, has_record, zone, start_limit_ns } =
            order;
        let variant = variant_of(&variant)?;
        let kind = variant.server.kind.started();
        let configured = variant.own_configuration().map(|(kind, path)| (kind, path.to_owned()));
        let kind = kind.filter(|kind| kind.serves_zones() || configured.is_some());
        let kind =
            kind.ok_or_else(|| Failure::of("it starts servers with a zone, and no others"))?;
        if variant.relay.kind.is_some() || variant.upstream.kind.is_some() {
            return Err(Failure::of("it starts servers that ask no others"));
        }
        if is_bounded {
            check_bounds(&variant)?;
        }
        let address = variant.server.address.ip();
        let free = ports::free(address).map_err(|error| {
            Failure::of(format!(
                "no server can listen there at {address}: {error}; set `server.address` to an address of that host"
            ))
        })?;
        let allowed = cpus::allowed();
        let own = match &variant.server.cpus[..] {
            [] => allowed.clone(),
            named => named.to_vec(),
        };
        if let Some(other) = own.iter().find(|cpu| !allowed.contains(cpu)) {
            let all = cpus::text(&allowed);
            return Err(Failure::of(format!(
                "it may not use CPU {other}: `server.cpus` has some of {all}"
            )));
        }
        let folder = self.scratch.folder()?;
        let place = ServerPlace {
            directory: folder.path().join("server"),
            listen: (address, free),
            network: None,
            cpus: &own,
            connections,
            seed,
        };
        let mut spec = server_spec(&variant, place);
        match (configured, zone) {
            (Some((kind, path)), _) => {
                let read = OwnConfiguration::read(kind, &path, false);
                spec.own = Some(read.map_err(|error| failure(&error))?);
            }
            (None, Some(zone)) => spec.zone = Some(self.zone(&variant, zone, is_bounded)?),
            (None, None) => return Err(Failure::of("a server has no zone")),
        }
        let ready = if has_record { Ready::Record } else { Ready::NameOrNone };
        let question = question.queries(1).map_err(|error| failure(&error))?;
        let question = question.first().ok_or_else(|| Failure::of("a server has no question"))?;
        let authority = spec.directory.join(certificate::AUTHORITY);
        let probe = |transport: Transport, at: SocketAddr| {
            answers((question, ready), transport, at, (&spec.http_path, &authority))
        };
        let timeout = Duration::from_nanos(start_limit_ns);
        let started = RunningServer::start(&spec, guard, &probe, Patience { timeout, stop });
        let server = started.map_err(|error| not_started(&error))?;
        let authority = server.authority().map(fs::read_to_string).transpose();
        let authority = authority.map_err(|error| Failure::of(error.to_string()))?;
        let address = |(transport, at): &(Transport, SocketAddr)| (transport.to_string(), *at);
        let serving = Serving {
            facts: server.facts().clone(),
            addresses: server.addresses().iter().map(address).collect(),
            authority,
        };
        Ok((Started { server, kind, is_told: AtomicBool::new(false), folder }, serving))
    }

    fn zone(
        &self,
        variant: &Variant,
        zone: SentZone,
        is_bounded: bool,
    ) -> Result<ZoneFile, Failure> {
        let path = {
            let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.get(&zone.file).map(|folder| folder.path().join(FILE))
        };
        let path = path.ok_or_else(|| Failure::of(format!("it has no file {}", zone.file)))?;
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
                if let Some(Started { server, folder, .. }) = Arc::into_inner(started) {
                    server.stop().ok();
                    drop(folder);
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
            let no_room = || format!("no room was left in {}", started.folder.path().display());
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
    fn is_out_of_room(&self) -> bool {
        host::free_octets(self.folder.path()).is_some_and(|octets| octets < ROOM)
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

/// Why a server did not start, with the end of its log.
fn not_started(error: &LabError) -> Failure {
    let log = match error {
        LabError::Exited(exited) => exited.log_tail.clone(),
        LabError::NotReady(waited) => waited.log_tail.clone(),
        _ => Vec::new(),
    };
    let reason = error.to_string();
    let lines = reason.lines().map(str::trim).filter(|line| !line.is_empty());
    // The end of the log is said apart from it.
    let lines: Vec<&str> =
        lines.filter(|line| !log.iter().any(|of_log| line.contains(of_log.as_str()))).collect();
    let reason = lines.join("; ").trim_end_matches(':').to_owned();
    Failure { reason, causes: log }
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
    guard: &GuardProgram,
    is_bounded: bool,
) -> Result<Answer, Failure> {
    let variant = variant_of(variant)?;
    if is_bounded {
        check_bounds(&variant)?;
    }
    let front = variant.front();
    let kind = front.kind.ok_or_else(|| Failure::of("nothing is to be started"))?;
    let found = dnslab_lab::find(kind, front.binary, guard).and_then(|installed| {
        installed.can(&needs(&variant, &front, None)).map_err(LabError::Unsupported)?;
        Ok(installed.version.to_string())
    });
    Ok(match found {
        Ok(version) => Answer::CanServe { version, lacks: String::new() },
        Err(error) => {
            let lacks = on_one_line(&error.to_string());
            Answer::CanServe { version: String::new(), lacks }
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

/// Whether a server answers the question.
fn answers(
    (question, ready): (&Query, Ready),
    transport: Transport,
    at: SocketAddr,
    (http_path, authority): (&str, &Path),
) -> Result<(), String> {
    let tls = transport.is_encrypted().then(|| {
        TlsSettings::new(&at.ip().to_string(), &Verification::Authority(authority.to_owned()))
    });
    let tls = tls.transpose().map_err(|error| error.to_string())?;
    let load = Load { transport, http_path: http_path.to_owned(), ..Load::default() };
    let list = QueryList::from_queries(vec![question.clone()], "readiness".to_owned());
    let job = Job { tls, ..Job::new(load, at, Arc::new(list)) };
    answered(&job, question, ready)
}
