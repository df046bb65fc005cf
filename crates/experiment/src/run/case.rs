//! One run of a variant: its servers start, are watched during the load, and stop. One record holds
//! everything. The round decides when the load is applied.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use dnslab_agent::{
    Agents, CounterWatching, LinkError, LoadHosts, NotServed, ServerRecording, ServerWatch,
    StartedServer, WatchedServer,
};
use dnslab_analysis::{BottleneckFigures, backlog_beyond_lead_ns, caveats, unserved};
use dnslab_figures::{Answers, Connections};
use dnslab_lab::event::{EventPlan, PlannedEvent};
use dnslab_lab::perf::Sampled;
use dnslab_lab::services::{SeenService, Service, ServiceWatch};
use dnslab_lab::{GroupWatch, GuardProgram, Latest, cpus};
use dnslab_load::{Job, LoadResult};
use dnslab_record::{
    Bottleneck, BottleneckKind, CaseId, Cause, Caveat, CommonLoad, CounterSeries, CpuProfile,
    CpuShare, InvalidReason, LiveInterval, LiveServer, LoadFacts, LoadHostSeries, Measured,
    NetworkPath, Observation, RECORD_FORMAT, ResourceSeries, RunRecord, RunStatus, ServerFacts,
    ShareLoad, TestbedFacts, Watched,
};
use dnslab_settings::{MAX_WORKERS, ServicePlace, Variant, Verification};

use super::error::{QueriesError, TargetError};
use super::leftovers;
use super::open_load::{CaseOpenLoad, OpenLoad, OpenRate};
use super::place::Startup;
use super::queries::{Asked, with_files};
use super::seeds::Seeds;
use super::split::Cpus;
use super::target::{Target, prepare};
use super::testbed::{self, Ended, LOG_LINES, Testbed, Watch};
use super::validity::{asked_ns, expected, why_invalid};
use super::watching::NOT_COVERED;
use super::ways::Ways;

pub(super) struct Case<'a> {
    pub(super) variant: &'a Variant,
    pub(super) id: &'a CaseId,
    /// In the order of execution.
    pub(super) position: u32,
    pub(super) seed: u64,
    pub(super) queries: &'a Asked,
    pub(super) folder: &'a Path,
    pub(super) guard: &'a GuardProgram,
    /// Whoever acts on this host, and on others.
    pub(super) agents: &'a Agents,
    /// Where what its queries are told is written, if answers are compared.
    pub(super) told: Option<File>,
    /// Stacks that are kept of it, if its server is sampled.
    pub(super) max_stacks: Option<usize>,
}

/// A command line in words. kubectl is led to a cluster.
fn words(line: &str, service: Option<&ServicePlace>) -> Vec<String> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if let Some(ServicePlace { context, namespace, .. }) = service
        && words.first().is_some_and(|word| word == "kubectl")
    {
        let option = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("--{name}={value}"))
        };
        let options = [option("context", context), option("namespace", namespace)];
        words.splice(1..1, options.into_iter().flatten());
    }
    words
}

/// What a server counted, or why nobody knows.
fn counted_by(counters: Result<CounterWatching, String>, origin: Instant) -> CounterSeries {
    match counters {
        Ok(counters) => counters.finish(origin),
        Err(failure) => CounterSeries { failure: Some(failure), ..CounterSeries::default() },
    }
}

/// Samples of each host of the load that a record keeps, at most.
const LOAD_HOST_SAMPLES: usize = 1_000;

const IDLE: &str = "the process that was watched used next to no CPU time for the answers, so the queries reach another \
                    one: name it by `server.pid` or `server.unit`";

pub(super) struct Prepared<'a> {
    pub(super) case: &'a Case<'a>,
    /// RFC 3339, UTC.
    started: String,
    cpus: Cpus,
    pub(super) up: Up,
}

/// What is up for a run. The server goes first, then whoever asks it, then what is behind it and the hosts.
pub(super) struct Up {
    pub(super) target: Target,
    /// Those that have the load.
    pub(super) hosts: LoadHosts,
    pub(super) testbed: Testbed,
}

/// The watch of all servers of a case during one load.
pub(super) struct Watching {
    server: Option<ServerWatch>,
    /// The pods of the Service under test.
    service: Option<ServiceWatch>,
    /// The CPUs of the hosts of the load, each with its name, where the server's watch does not see them.
    load_hosts: Vec<(String, Option<ServerWatch>)>,
    /// The ways between the hosts, with what was counted on them before the load.
    paths: Vec<NetworkPath>,
    /// Why the server under test is not watched.
    unwatched: Option<String>,
    /// What the control groups of dnslab itself say.
    own: Option<GroupWatch>,
    /// An error says why what an external server publishes is not read.
    counters: Option<Result<CounterWatching, String>>,
    chain: Vec<Watch>,
    /// The samples of the server under test, if it is sampled.
    recording: Option<Result<ServerRecording, String>>,
}

impl Watching {
    /// What the server under test and the CPUs of the load do now.
    pub(super) fn latest(&self) -> Option<(LiveServer, Vec<CpuShare>)> {
        let Latest { server, load_cpus } = self.server.as_ref()?.latest()?;
        let load_cpus = match &self.load_hosts[..] {
            [] => load_cpus,
            [(_, only)] => {
                let latest = only.as_ref().and_then(ServerWatch::latest);
                latest.map(|latest| latest.load_cpus).unwrap_or_default()
            }
            // Two CPUs of one number would be shown as one.
            _ => Vec::new(),
        };
        Some((server, load_cpus))
    }
}

/// One load that was applied to its end.
struct Loaded {
    result: LoadResult,
    watched: Watched,
    /// Why the server under test was not watched.
    unwatched: Option<String>,
}

/// An open loop after the main load that was applied to its end.
struct OpenLoaded {
    rate: OpenRate,
    loaded: Loaded,
}

/// What ran, when all of it has stopped.
struct Ran {
    /// RFC 3339, UTC.
    started: String,
    server: ServerFacts,
    main: Loaded,
    open: Vec<OpenLoaded>,
    wants_common: bool,
    testbed: Option<TestbedFacts>,
}

/// One load, as its rules look at it.
pub(super) struct SeenLoad<'a> {
    pub(super) run: Observation<'a>,
    pub(super) figures: BottleneckFigures,
    pub(super) result: &'a LoadResult,
    unwatched: Option<&'a str>,
    /// Length of the measured window that was asked for.
    asked_ns: u64,
}

impl<'a> SeenLoad<'a> {
    fn of(loaded: &'a Loaded, server: &'a ServerFacts, asked_ns: u64) -> Self {
        let Loaded { result, watched, unwatched } = loaded;
        let LoadResult { facts: load, measured, .. } = result;
        let run = Observation { load, server, measured, watched };
        let figures = BottleneckFigures::of(&run);
        Self { run, figures, result, unwatched: unwatched.as_deref(), asked_ns }
    }
}

pub(super) struct Applied {
    pub(super) result: Result<LoadResult, String>,
    /// What was seen of the servers meanwhile.
    pub(super) watched: Watched,
    /// Why the server under test was not watched.
    unwatched: Option<String>,
    /// What ended the load early.
    pub(super) fault: Option<Fault>,
    /// Where the CPU time of the server went, or why that is not known, if it was sampled.
    pub(super) profile: Option<Result<CpuProfile, String>>,
}

impl Applied {
    pub(super) fn went_well(&self) -> bool {
        self.fault.is_none() && self.result.is_ok()
    }

    /// 0 if nothing was measured.
    pub(super) fn answered_qps(&self) -> f64 {
        self.result.as_ref().map_or(0.0, |result| result.measured.answered_qps())
    }
}

/// An open loop that was applied after the main load.
pub(super) struct OpenApplied {
    pub(super) rate: OpenRate,
    pub(super) applied: Applied,
}

/// The loads of a case.
pub(super) struct CaseLoads<'a> {
    pub(super) main: Applied,
    /// Those that were applied.
    pub(super) open: Vec<OpenApplied>,
    /// No load was left out because of an interrupt.
    pub(super) is_whole: bool,
    /// The open loops that were planned.
    pub(super) planned: &'a [OpenLoad],
}

impl Case<'_> {
    /// Makes the hosts and starts all servers. The record holds whatever goes wrong.
    pub(super) fn prepare(&self, stop: &AtomicBool) -> Result<Prepared<'_>, Box<RunRecord>> {
        let started = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let cpus = match Cpus::of(self.variant) {
            Ok(cpus) => cpus,
            Err(error) => return Err(self.failed(started, error.to_string(), Vec::new()).into()),
        };
        if stop.load(Ordering::Relaxed) {
            let reason = "interrupted before its servers were started".to_owned();
            let mut record = self.failed(started, reason, Vec::new());
            record.caveats.push(self.cut_short(0));
            return Err(record.into());
        }
        match self.start(&cpus, stop) {
            Ok(up) => Ok(Prepared { case: self, started, cpus, up }),
            Err(error) => {
                let log = log_tail_of(&error);
                let mut record = self.failed(started, error.to_string(), log);
                // Ctrl-C at a terminal also ends the tools that make hosts, which says nothing about the
                // hosts. And a host that cannot be reached now may be when the session is resumed.
                if stop.load(Ordering::Relaxed) || error.is_of_host() {
                    record.caveats.push(self.cut_short(0));
                }
                // Before the record is written, which needs room.
                leftovers::clear(self.folder);
                Err(record.into())
            }
        }
    }

    /// The server under test is the last to start.
    pub(super) fn start(&self, cpus: &Cpus, stop: &AtomicBool) -> Result<Up, TargetError> {
        let seeds = Seeds::of_run(self.seed);
        let Self { folder, guard, agents, .. } = *self;
        let hosts = self.variant.load.hosts.as_ref();
        let hosts = hosts.map(|hosts| LoadHosts::reach(agents, hosts)).transpose()?;
        let startup = Startup { cpus, seeds, folder, guard, stop, agents };
        let testbed = Testbed::make(self.variant, self.queries, startup)?;
        let hosts = hosts.unwrap_or_else(|| testbed.clients(cpus));
        let target = prepare(self.variant, &testbed, startup, (self.queries, &hosts))?;
        Ok(Up { target, hosts, testbed })
    }

    /// True if the server writes logs and has no room left for them.
    fn disk_is_full(&self) -> bool {
        let folders = [Some(self.folder), self.variant.log.folder.as_deref()];
        let is_here = self.variant.server.host.is_none();
        is_here
            && self.variant.writes_logs()
            && folders.into_iter().flatten().any(leftovers::is_full)
    }

    /// The main load as it is asked for, or an open one after it, on a server that is up.
    pub(super) fn job(
        &self,
        ways: &Ways,
        (cpus, hosts): (&Cpus, &LoadHosts),
        open: Option<&CaseOpenLoad>,
    ) -> Result<Job, QueriesError> {
        let main = &self.variant.load;
        let workers = main.workers.unwrap_or_else(|| Job::default_workers(hosts.cpus(), main));
        let settings = with_files(self.variant)?;
        let settings = match open {
            Some(open) => open.load(settings),
            None => settings,
        };
        let played = self.queries.played();
        Ok(Job {
            workers: workers.max(hosts.count()).min(MAX_WORKERS),
            cpus: cpus.load.clone(),
            seed: self.seed,
            // What a captured client may be told is not known.
            expected: played.is_none().then(|| expected(self.variant)),
            // The answers of an open load are those of other queries.
            tells: self.told.is_some() && open.is_none(),
            played,
            ..ways.job_of(settings, Arc::clone(&self.queries.list))
        })
    }

    /// The record of what ran.
    fn record(&self, ran: Ran, end: &Ending) -> RunRecord {
        let Ran { started, server, main, open, wants_common, testbed } = ran;
        let seen = SeenLoad::of(&main, &server, asked_ns(self.variant));
        let (bottleneck, mut caveats) = self.doubts(&seen, end);
        let result = &main.result;
        // Why nothing was answered: what the server said outweighs how connections ended.
        let last_end = result.last_connection_end.as_ref();
        let connection = last_end.map(|end| Cause::Connection { end: end.clone() });
        let http = result.measured.http_refusals();
        let http = (!http.is_empty()).then_some(Cause::Http { statuses: http });
        let signature = result.signature_example.clone();
        let signature = signature.map(|example| Cause::Signature { example });
        let cause = signature.or(http).or(connection);
        let status = match (self.status(&seen, end, cause), unserved(&seen.run)) {
            (RunStatus::Valid, Some(reason)) => RunStatus::Invalid { reason },
            (status, _) => status,
        };
        let (mut common_load, mut share_loads) = (None, Vec::new());
        for OpenLoaded { rate, loaded } in open {
            match (self.open_load(rate, loaded, &server, end), rate) {
                (Ok(load), OpenRate::Common(_)) => common_load = Some(load),
                (Ok(load), OpenRate::Share(share)) => share_loads.push(ShareLoad { share, load }),
                (Err(reason), OpenRate::Common(_)) => {
                    caveats.push(Caveat::CommonLoadInvalid { reason });
                }
                (Err(reason), OpenRate::Share(share)) => {
                    caveats.push(Caveat::ShareLoadInvalid { share, reason });
                }
            }
        }
        let LoadResult { facts, measured, .. } = main.result;
        RunRecord {
            imported: None,
            watched: main.watched,
            testbed,
            measured: Some(measured),
            lacks_common_load: wants_common && common_load.is_none(),
            common_load,
            share_loads,
            caveats,
            bottleneck,
            ..self.empty(started, status, facts, server)
        }
    }

    /// An open load, or why it does not count.
    fn open_load(
        &self,
        rate: OpenRate,
        loaded: Loaded,
        server: &ServerFacts,
        end: &Ending,
    ) -> Result<CommonLoad, InvalidReason> {
        let seen = SeenLoad::of(&loaded, server, loaded.result.facts.duration_ns);
        let (bottleneck, caveats) = self.doubts(&seen, end);
        if let Some(reason) = self.why_no_open_load(rate, &seen, &bottleneck, end) {
            return Err(reason);
        }
        let Loaded { result: LoadResult { facts: load, measured, .. }, watched, .. } = loaded;
        Ok(CommonLoad { load, measured, watched, caveats, bottleneck })
    }

    /// Why the latencies of an open load do not count: it was no valid run by itself, or a side had no CPU time
    /// left for it. At a share of its own rate a server may be as busy as it gets.
    fn why_no_open_load(
        &self,
        rate: OpenRate,
        seen: &SeenLoad<'_>,
        bottleneck: &Bottleneck,
        end: &Ending,
    ) -> Option<InvalidReason> {
        let last_end = seen.result.last_connection_end.clone();
        let cause = last_end.map(|end| Cause::Connection { end });
        match self.status(seen, end, cause) {
            RunStatus::Invalid { reason } => return Some(reason),
            // Then the whole run failed.
            RunStatus::Failed { .. } => return None,
            RunStatus::Valid => {}
        }
        let has_servers_full =
            matches!(rate, OpenRate::Common(_)) && bottleneck.kind.has_servers_full();
        let is_full = has_servers_full
            || matches!(bottleneck.kind, BottleneckKind::Generator | BottleneckKind::OtherPrograms);
        let too_high = || InvalidReason::RateTooHigh { evidence: bottleneck.evidence.clone() };
        unserved(&seen.run).or_else(|| is_full.then(too_high))
    }

    fn doubts(&self, seen: &SeenLoad<'_>, end: &Ending) -> (Bottleneck, Vec<Caveat>) {
        let SeenLoad { run, result, unwatched, asked_ns, .. } = *seen;
        let measured = run.measured;
        let is_watched = run.server_busy_share().is_some();
        let unwatched = (!is_watched).then(|| unwatched.unwrap_or(NOT_COVERED).to_owned());
        let bottleneck = seen.figures.bottleneck();
        let mut caveats = caveats(&run, cpus::allowed().len());
        self.add_caveats(&mut caveats, result, unwatched);
        if let Some(example) = &result.signature_example {
            // A load whose every signature is refused ends in its warm-up.
            let phases = [&measured.warm_up, &measured.counters];
            let count = phases.map(|counters| counters.answers.bad_signature).iter().sum();
            caveats.push(Caveat::BadSignatures { count, example: example.clone() });
        }
        if result.cut_short && end.fault.is_none() {
            let in_flight = measured.counters.outcomes.interrupted;
            caveats.push(Caveat::CutShort { measured_ns: measured.own_ns(), asked_ns, in_flight });
        }
        let Connections { attempted, failed, lost, .. } = measured.counters.connections;
        if let Some(example) = result.last_connection_end.clone().filter(|_| failed + lost > 0) {
            caveats.push(Caveat::ConnectionsFailed { attempted, failed, lost, example });
        }
        (bottleneck, caveats)
    }

    fn add_caveats(
        &self,
        caveats: &mut Vec<Caveat>,
        result: &LoadResult,
        unwatched: Option<String>,
    ) {
        let measured = &result.measured;
        let Answers { wrong, checked, malformed, .. } = measured.counters.answers;
        if wrong > 0 {
            let example = result.wrong_example.clone().unwrap_or_default();
            caveats.push(Caveat::WrongAnswers { count: wrong, example });
        }
        if malformed > 0 {
            let example = result.malformed_example.clone().unwrap_or_default();
            caveats.push(Caveat::MalformedAnswers { malformed, checked, example });
        }
        if let Some(window) = self.variant.load.window()
            && let Some(ns) = backlog_beyond_lead_ns(measured, window)
        {
            caveats.push(Caveat::TurnBacklog { ns: ns as u64 });
        }
        if let Some(reason) = testbed::not_played(self.variant) {
            caveats.push(Caveat::LinksNotPlayed { reason });
        }
        caveats.extend(unwatched.map(|reason| Caveat::ServerNotWatched { reason }));
        if self.variant.verification() == Some(Verification::Off) {
            caveats.push(Caveat::CertificateNotVerified);
        }
    }

    fn cut_short(&self, measured_ns: u64) -> Caveat {
        Caveat::CutShort { measured_ns, asked_ns: asked_ns(self.variant), in_flight: 0 }
    }

    /// Whether a load counts. `cause` may explain that nothing, or too little, was answered.
    fn status(&self, seen: &SeenLoad<'_>, end: &Ending, cause: Option<Cause>) -> RunStatus {
        if let Some(reason) = &end.fault {
            return RunStatus::Failed { reason: reason.clone(), log_tail: end.log.clone() };
        }
        match why_invalid(self.variant, &seen.run, &seen.figures, seen.result, cause) {
            Some(reason) => RunStatus::Invalid { reason },
            None => RunStatus::Valid,
        }
    }

    fn failed(&self, started: String, reason: String, log_tail: Vec<String>) -> RunRecord {
        let load = &self.variant.load;
        let target = self.variant.target();
        // Without a started server there is no known address.
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let queries = Arc::clone(&self.queries.list);
        let asked = Job::new(load.clone(), target.unwrap_or(unknown), queries);
        let asked = Job { played: self.queries.played(), ..asked };
        let facts = LoadFacts {
            target: target.map_or_else(String::new, |target| target.to_string()),
            workers: load.workers.unwrap_or(0),
            seed: self.seed,
            ..dnslab_load::facts(&asked)
        };
        let kind = self.variant.server.kind_name().to_owned();
        let server = ServerFacts { kind, ..ServerFacts::default() };
        self.empty(started, RunStatus::Failed { reason, log_tail }, facts, server)
    }

    fn empty(
        &self,
        started: String,
        status: RunStatus,
        load: LoadFacts,
        server: ServerFacts,
    ) -> RunRecord {
        RunRecord {
            imported: None,
            format: RECORD_FORMAT,
            variant: self.id.variant.clone(),
            repetition: self.id.repetition,
            position: self.position,
            started,
            status,
            load,
            server,
            watched: Watched::default(),
            testbed: None,
            measured: None,
            common_load: None,
            lacks_common_load: false,
            share_loads: Vec::new(),
            caveats: Vec::new(),
            bottleneck: Bottleneck { kind: BottleneckKind::Unknown, evidence: Vec::new() },
        }
    }
}

impl Prepared<'_> {
    /// The main load as it is asked for, or an open one after it.
    pub(super) fn job(&self, open: Option<&CaseOpenLoad>) -> Result<Job, QueriesError> {
        self.case.job(&self.up.target.ways, (&self.cpus, &self.up.hosts), open)
    }

    pub(super) fn watch(&self) -> Watching {
        let load_cpus = &self.cpus.load;
        // What agents use is dnslab's own all the same.
        let mut own = self.up.testbed.processes();
        own.push(std::process::id());
        let begun = self.up.target.watch.clone().and_then(|server| {
            server.beside_load(load_cpus).watch(own).map_err(|error| error.to_string())
        });
        let (server, unwatched) = match begun {
            Ok(server) => (Some(server), None),
            Err(reason) => (None, Some(reason)),
        };
        let is_elsewhere = server.as_ref().is_some_and(ServerWatch::is_elsewhere);
        // That a host is lost is the fault of the case.
        let load_hosts = self.up.hosts.watch(is_elsewhere);
        let own = GroupWatch::start();
        let (counters, chain, recording) = (None, Vec::new(), None);
        let paths = self.paths();
        let service = self.up.target.service.as_ref().map(Service::watch);
        Watching { server, service, load_hosts, paths, unwatched, own, counters, chain, recording }
    }

    /// The ways between the hosts, if packets leave this one or a namespace.
    fn paths(&self) -> Vec<NetworkPath> {
        let Up { target, hosts, .. } = &self.up;
        let to = target.ways.address.ip();
        let mut paths = match to.is_loopback() {
            true => Vec::new(),
            false => hosts.paths_to(to),
        };
        let back = paths.first().and_then(|path| path.from.parse().ok());
        // A server that runs where the load comes from has no other way back.
        let server = self.server().filter(|server| !hosts.has_server(server));
        paths.extend(back.and_then(|from| server?.path_to(from)));
        paths
    }

    /// The server under test, if it was started or is watched.
    fn server(&self) -> Option<WatchedServer> {
        let Target { server, watch, .. } = &self.up.target;
        server.as_ref().map(StartedServer::watched).or_else(|| watch.as_ref().ok().cloned())
    }

    /// Lets perf sample the server from here on, if it is to be sampled.
    pub(super) fn sample(&self, watching: &mut Watching) {
        if self.case.max_stacks.is_none() {
            return;
        }
        let load = &self.case.variant.load;
        let watched = self.up.target.watch.clone();
        let watched = watched.map(|watched| watched.beside_load(&self.cpus.load));
        watching.recording = Some(watched.and_then(|watched| {
            let folder = self.case.folder.join("perf");
            let begun = watched.sample(load.warm_up + load.duration, &folder);
            begun.map_err(|error| error.to_string())
        }));
    }

    /// What is done during the load, from when its beginning is known on.
    pub(super) fn event(&self, latest: &LiveInterval) -> Option<PlannedEvent> {
        let Variant { event, load, server, .. } = self.case.variant;
        let command = words(event.command.as_ref()?, server.service.as_ref());
        let until = event.until.as_ref().map(|until| words(until, server.service.as_ref()));
        let folder = std::path::absolute(self.case.folder).ok()?;
        let plan = EventPlan { command, until: until.unwrap_or_default(), folder };
        let began = SystemTime::UNIX_EPOCH + Duration::from_nanos(latest.began_unix_ns);
        let since = load.warm_up + event.at.unwrap_or(load.duration / 4);
        let left = (began + since).duration_since(SystemTime::now()).unwrap_or_default();
        Some(PlannedEvent::begin(plan, Instant::now() + left, self.case.guard))
    }

    /// Lets the servers count from here on.
    pub(super) fn count(&self, watching: &mut Watching) {
        let target = &self.up.target;
        let started = target.server.as_ref().filter(|_| self.case.variant.server.watch);
        let counters = match started.map(|server| server.watched().count(None)) {
            Some(counters) => counters.ok().flatten().map(Ok),
            // A server that ran before, if it is said where it publishes that.
            None => self.case.variant.statistics().and_then(|statistics| {
                let counters = target.watch.as_ref().ok()?.count(Some(statistics));
                counters.map_err(|error| error.to_string()).transpose()
            }),
        };
        watching.counters = counters;
        watching.chain = self.up.testbed.watch(self.case.variant, &self.cpus);
    }

    /// Ends the watch, and adds what was seen to what was measured. All watches end before the servers, whose
    /// data goes away with them.
    pub(super) fn seen(
        &self,
        (watching, event): (Watching, Option<PlannedEvent>),
        result: Result<LoadResult, String>,
        mut fault: Option<Fault>,
    ) -> Applied {
        let Watching {
            server,
            service,
            load_hosts,
            paths,
            mut unwatched,
            own,
            counters,
            chain,
            recording,
        } = watching;
        let Ok(LoadResult { origin, facts: load, measured, .. }) = &result else {
            let watched = Watched::default();
            return Applied { result, watched, unwatched, fault, profile: None };
        };
        let (origin, window) = (*origin, measured.window());
        // An interrupt ends the load before its time, and what is done in it at once.
        let event = event.filter(|_| result.as_ref().is_ok_and(|result| !result.cut_short));
        let event = event.map(|event| event.finish(origin)).transpose();
        let event = event.unwrap_or_else(|reason| {
            fault = fault.take().or(Some(Fault::Event { reason }));
            None
        });
        let own = own.map(|own| own.finish(origin, window)).unwrap_or_default();
        let resources = match server.map(|server| server.finish_over(origin, window)) {
            Some(Ok(series)) => series,
            Some(Err(error)) => {
                unwatched = Some(error.to_string());
                ResourceSeries::default()
            }
            None => ResourceSeries::default(),
        };
        let seen = service.map(|service| service.finish(origin));
        let (resources, counted, service) = match seen {
            Some(SeenService { resources, counters, series }) => {
                unwatched = series.unseen.first().cloned();
                (resources, Some(counters), Some(series))
            }
            None => (resources, None, None),
        };
        let resources = match self.is_idle(&resources, measured) {
            true => {
                unwatched = Some(IDLE.to_owned());
                ResourceSeries::default()
            }
            false => resources,
        };
        let load_hosts = load_hosts.into_iter().map(|(host, watch)| {
            let series = watch.and_then(|watch| watch.finish_over(origin, window).ok());
            // What is judged of them are sums over the window.
            let resources = series.unwrap_or_default().thinned(LOAD_HOST_SAMPLES);
            LoadHostSeries { host, resources }
        });
        // A quota of this process holds up no load elsewhere.
        let is_here = self.up.hosts.is_of_this_machine();
        let watched = Watched {
            resources,
            load_hosts: load_hosts.collect(),
            paths: self.paths().into_iter().filter_map(|now| now.since(&paths)).collect(),
            counters: counted.or_else(|| counters.map(|counters| counted_by(counters, origin))),
            service,
            event,
            chain: self.up.testbed.parts(chain, origin, window),
            others_cpu_ns: 0,
            observing_cpu_ns: 0,
            load_cpu_limit: own.limit.filter(|_| is_here),
            load_pressure_share: own.pressure_share.filter(|_| is_here),
        };
        let server = &self.up.target.facts;
        let run = Observation { load, server, measured, watched: &watched };
        let profile = recording.map(|recording| self.profile(recording?, origin, &run));
        Applied { result, watched, unwatched, fault, profile }
    }

    /// What was watched of a server that ran before cannot have answered: no answer takes so little.
    fn is_idle(&self, resources: &ResourceSeries, measured: &Measured) -> bool {
        const LEAST_NS: u64 = 200;
        let (window, answered) = (measured.window(), measured.counters.outcomes.answered);
        let used = resources.cpu_ns(window).filter(|_| self.up.target.facts.is_external());
        answered > 10_000 && used.is_some_and(|used_ns| used_ns < LEAST_NS * answered)
    }

    /// Where the CPU time of the server went during a load that began at `origin`.
    fn profile(
        &self,
        recording: ServerRecording,
        origin: Instant,
        run: &Observation<'_>,
    ) -> Result<CpuProfile, String> {
        let measured = run.measured;
        let max_stacks = self.case.max_stacks.unwrap_or(0);
        let kind = self.case.variant.server.kind.started();
        let sampled = Sampled { kind, origin, window: measured.window(), max_stacks };
        let profile = recording.finish(&sampled).map_err(|error| error.to_string())?;
        let cpu_per_query_ns = run
            .server_cpu_per_query_ns()
            .ok_or("its CPU time for each query could not be measured")?;
        Ok(CpuProfile {
            variant: self.case.variant.name.clone(),
            answered_qps: measured.answered_qps(),
            cpu_per_query_ns,
            ..profile
        })
    }

    /// The fault of the servers, hosts and disk of this case.
    pub(super) fn fault(&self) -> Option<Fault> {
        let server = self.up.target.server.as_ref().and_then(|server| {
            let (ending, log_tail) = server.exited(LOG_LINES)?;
            Some(Fault::Ended { what: "server".to_owned(), ending, log_tail })
        });
        let full = || self.case.disk_is_full().then_some(Fault::DiskFull);
        let of_testbed = || {
            let Ended { what, ending, log_tail } = self.up.testbed.ended()?;
            Some(Fault::Ended { what, ending, log_tail })
        };
        server.or_else(of_testbed).or_else(full).or_else(|| self.lost_host())
    }

    /// A host of the server or of the load that is lost.
    fn lost_host(&self) -> Option<Fault> {
        let Up { hosts, testbed, .. } = &self.up;
        let of_server = self.server().and_then(|server| server.lost());
        let error = of_server.or_else(|| hosts.lost()).or_else(|| testbed.lost())?;
        Some(Fault::HostLost { reason: error.to_string() })
    }

    /// Stops everything and makes the record.
    pub(super) fn finish(self, loads: CaseLoads<'_>) -> RunRecord {
        let CaseLoads { main, open: applied, is_whole, planned } = loads;
        let Self { case, started, cpus, up: Up { target, hosts, testbed } } = self;
        let wants_common = planned.iter().any(|load| matches!(load.rate, OpenRate::Common(_)));
        let (mut open, mut open_fault) = (Vec::new(), None);
        for OpenApplied { rate, applied } in applied {
            let Applied { result, watched, unwatched, fault, .. } = applied;
            let refused = match result {
                Ok(result) => {
                    open.push(OpenLoaded { rate, loaded: Loaded { result, watched, unwatched } });
                    None
                }
                Err(reason) => Some(Fault::Refused { reason }),
            };
            open_fault = open_fault.or(fault).or(refused);
        }
        let facts = testbed.facts(case.variant, &cpus);
        let Applied { result, watched, unwatched, fault, .. } = main;
        let is_lost = |fault: &Option<Fault>| matches!(fault, Some(Fault::HostLost { .. }));
        let is_whole = is_whole && !is_lost(&fault) && !is_lost(&open_fault);
        let end = Ending::of(target.server, fault.or(open_fault), case.folder);
        drop(hosts);
        testbed.stop();
        let mut record = match result {
            Ok(result) => {
                let main = Loaded { result, watched, unwatched };
                let (server, testbed) = (target.facts, facts);
                case.record(Ran { started, server, main, open, wants_common, testbed }, &end)
            }
            Err(error) => case.failed(started, end.fault.unwrap_or(error), end.log),
        };
        if !is_whole && !is_cut_short(&record) {
            let measured_ns = record.measured.as_ref().map_or(0, Measured::own_ns);
            record.caveats.push(case.cut_short(measured_ns));
        }
        // Before the record is written, which needs room.
        leftovers::clear(case.folder);
        record
    }
}

/// Leaves out what had less than half of its time: it is too little to stand beside whole runs of its variant.
pub(super) fn leave_out_if_short(record: &mut RunRecord) {
    if let Some(reason) = record.caveats.iter().find_map(too_short) {
        if record.status == RunStatus::Valid {
            record.status = RunStatus::Invalid { reason };
        }
        return;
    }
    let common = record.common_load.as_ref();
    if let Some(reason) = common.and_then(|common| common.caveats.iter().find_map(too_short)) {
        let measured_ns = record.measured.as_ref().map_or(0, Measured::own_ns);
        record.caveats.push(Caveat::CutShort { measured_ns, asked_ns: measured_ns, in_flight: 0 });
        record.caveats.push(Caveat::CommonLoadInvalid { reason });
        (record.common_load, record.lacks_common_load) = (None, true);
    }
    let (caveats, loads) = (&mut record.caveats, &mut record.share_loads);
    loads.retain(|ShareLoad { share, load }| {
        let Some(reason) = load.caveats.iter().find_map(too_short) else { return true };
        caveats.push(Caveat::ShareLoadInvalid { share: *share, reason });
        false
    });
}

/// It was left early: a session that is resumed makes it again.
pub(super) fn is_cut_short(record: &RunRecord) -> bool {
    let open = record.open_loads().flat_map(|open| &open.caveats);
    record.caveats.iter().chain(open).any(|caveat| matches!(caveat, Caveat::CutShort { .. }))
}

/// What ended a load early.
#[derive(Debug)]
pub(super) enum Fault {
    /// A server, a host or a link ended by itself.
    Ended {
        what: String,
        /// How, in words.
        ending: String,
        log_tail: Vec<String>,
    },
    /// The server has no room for what it was told to write.
    DiskFull,
    /// An open load could not be applied.
    Refused { reason: String },
    /// A host of the server or of the load is lost.
    HostLost { reason: String },
    /// What was to be done during the load was not.
    Event { reason: String },
}

struct Ending {
    /// Why the run failed.
    fault: Option<String>,
    log: Vec<String>,
}

impl Ending {
    /// Stops the server under test, if there is one.
    fn of(server: Option<StartedServer>, fault: Option<Fault>, folder: &Path) -> Self {
        let log = match &fault {
            Some(Fault::Ended { log_tail, .. }) => log_tail.clone(),
            _ => server.as_ref().map(|server| server.log_tail(LOG_LINES)).unwrap_or_default(),
        };
        if let Some(server) = server {
            server.stop();
        }
        let fault = fault.map(|fault| match fault {
            Fault::Ended { what, ending, .. } => {
                format!("the {what} ended in the middle of the load ({ending})")
            }
            Fault::Refused { reason } => format!("the common load: {reason}"),
            Fault::HostLost { reason } => reason,
            Fault::Event { reason } => format!("what was to be done during the load: {reason}"),
            Fault::DiskFull => format!(
                "the disk under the logs in {} is full: give --results a folder with more room, or the \
                 load a shorter time",
                folder.display()
            ),
        });
        Self { fault, log }
    }
}

fn log_tail_of(error: &TargetError) -> Vec<String> {
    match error {
        TargetError::NotStarted { log, .. }
        | TargetError::NotServed(NotServed::Link(LinkError::Failed { log, .. })) => {
            log[log.len().saturating_sub(LOG_LINES)..].to_vec()
        }
        TargetError::ChainServer { source, .. } => log_tail_of(source),
        _ => Vec::new(),
    }
}

fn too_short(caveat: &Caveat) -> Option<InvalidReason> {
    match *caveat {
        Caveat::CutShort { measured_ns, asked_ns, .. } if measured_ns < asked_ns / 2 => {
            Some(InvalidReason::TooShort { measured_ns, asked_ns })
        }
        _ => None,
    }
}
