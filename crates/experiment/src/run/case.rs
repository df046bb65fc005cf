//! One run: the server starts, the load is applied while the server is watched, the server stops,
//! and everything is in one record.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use dnslab_lab::hosts::EndedPart;
use dnslab_lab::{GuardProgram, Logging, RunningServer, Sampler, cpus};
use dnslab_load::{Expected, LoadResult, LoadSpec, Progress};
use dnslab_measure::{
    CaseId, Caveat, ChainPart, Connections, CounterSeries, Interval, Laboratory as LaboratoryFacts,
    Limit, LimitFigures, LimitKind, LoadFacts, Measured, RECORD_FORMAT, ResourceSeries, RunRecord,
    RunStatus, ServerFacts,
};
use dnslab_traffic::{QueryList, TypeMix};

use super::laboratory::{self, Laboratory};
use super::leftovers;
use super::queries::{QueriesError, subnets, tsig};
use super::split::Cpus;
use super::target::{Site, Target, TargetError, prepare};
use crate::{Queries, Server, Variant, Verification};

/// Lines of the server's log that a failed run keeps in its record.
pub(super) const LOG_LINES: usize = 10;

/// Samples are wanted on both sides of the load, so that nothing at its ends is extrapolated.
const SAMPLES_AROUND: Duration = Duration::from_millis(120);

/// What a run is made of.
pub(super) struct Case<'a> {
    pub(super) variant: &'a Variant,
    pub(super) id: &'a CaseId,
    /// Place in the order of execution.
    pub(super) position: u32,
    /// Seed of everything drawn in this run.
    pub(super) seed: u64,
    pub(super) queries: &'a Arc<QueryList>,
    /// The run's folder.
    pub(super) folder: &'a Path,
    pub(super) guard: &'a GuardProgram,
}

impl Case<'_> {
    /// Runs it. Whatever goes wrong is in the record; nothing is thrown away.
    pub(super) fn run(&self, stop: &AtomicBool, observe: &mut dyn FnMut(&Interval)) -> RunRecord {
        let started = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let cpus = match Cpus::of(self.variant) {
            Ok(cpus) => cpus,
            Err(error) => return self.failed(started, error.to_string(), Vec::new()),
        };
        let record = match self.start(&cpus) {
            Ok((laboratory, target)) => {
                self.load(started, (laboratory, target), &cpus, stop, observe)
            }
            Err(error) => {
                let log = log_tail_of(&error);
                let mut record = self.failed(started, error.to_string(), log);
                // Ctrl-C at a terminal ends the tools that make hosts, too: that says nothing of them.
                if stop.load(Ordering::Relaxed) {
                    record.caveats.push(Caveat::CutShort { measured_ns: 0 });
                }
                record
            }
        };
        // Before the record is written, which needs room.
        leftovers::clear(self.folder);
        record
    }

    /// Makes the hosts and starts all servers, the one under test last.
    pub(super) fn start(&self, cpus: &Cpus) -> Result<(Laboratory, Target), TargetError> {
        let (folder, guard) = (self.folder, self.guard);
        let seeded = (cpus, self.seed);
        let laboratory = Laboratory::make(self.variant, self.queries, seeded, folder, guard)?;
        let site = Site { laboratory: &laboratory, cpus: &cpus.server, folder, guard };
        let target = prepare(self.variant, &site, self.queries.get(0))?;
        Ok((laboratory, target))
    }

    fn load(
        &self,
        started: String,
        (laboratory, target): (Laboratory, Target),
        cpus: &Cpus,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(&Interval),
    ) -> RunRecord {
        let spec = match self.spec(&target, cpus) {
            Ok(spec) => spec,
            Err(error) => return self.failed(started, error.to_string(), Vec::new()),
        };
        let sampler = target.server.as_ref().map(|server| Sampler::start(server.watched()));
        if sampler.is_some() {
            std::thread::sleep(SAMPLES_AROUND);
        }
        // After the pause: what the embedded server tells is up to 100 ms old, and the probes of its
        // readiness shall not count.
        let counters = target.server.as_ref().and_then(RunningServer::count);
        let watches = laboratory.watch();
        let stop_here = AtomicBool::new(false);
        let mut fault = None;
        let find_fault = || {
            let server = target.server.as_ref().and_then(|server| {
                let (what, report) = ("server".to_owned(), server.exited()?);
                Some(EndedPart { what, report, log_tail: server.log_tail(LOG_LINES) })
            });
            let full = || self.disk_is_full().then_some(Fault::DiskFull);
            server.or_else(|| laboratory.ended()).map(Fault::Ended).or_else(full)
        };
        let result = self.apply(&spec, &laboratory, &stop_here, &mut |progress| {
            fault = fault.take().or_else(find_fault);
            if fault.is_some() || stop.load(Ordering::Relaxed) {
                stop_here.store(true, Ordering::Relaxed);
            }
            if let Progress::Interval(interval) = progress {
                observe(interval);
            }
        });
        fault = fault.or_else(find_fault);
        if sampler.is_some() && fault.is_none() {
            std::thread::sleep(SAMPLES_AROUND);
        }
        let Target { server, facts, .. } = target;
        // All watches end before the servers: what they read goes away with these.
        let mut seen = Seen { laboratory: laboratory.facts(self.variant, cpus), ..Seen::default() };
        if let Ok(result) = &result {
            seen.resources = sampler.map(|sampler| sampler.finish(result.origin));
            seen.counters = counters.map(|counters| counters.finish(result.origin));
            seen.chain = laboratory.parts(watches, result.origin);
        }
        let end = Ending::of(server, fault, self.folder);
        laboratory.stop();
        match result {
            Ok(result) => self.record(started, facts, result, seen, &end),
            Err(error) => self.failed(started, error, end.log),
        }
    }

    /// Applies the load from the clients' host.
    fn apply(
        &self,
        spec: &LoadSpec,
        laboratory: &Laboratory,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<LoadResult, String> {
        let _visit = laboratory.visit("client").map_err(|error| error.to_string())?;
        dnslab_load::run(spec, stop, progress).map_err(|error| error.to_string())
    }

    /// True if the server writes logs and has no room left for them.
    fn disk_is_full(&self) -> bool {
        let logging = &self.variant.server.logging;
        let folders = [Some(self.folder), logging.folder()];
        *logging != Logging::default() && folders.into_iter().flatten().any(leftovers::is_full)
    }

    fn spec(&self, target: &Target, cpus: &Cpus) -> Result<LoadSpec, QueriesError> {
        let load = &self.variant.load;
        let most = u32::try_from(cpus.load.len()).unwrap_or(1).clamp(1, load.clients);
        Ok(LoadSpec {
            target: target.address,
            transport: load.transport,
            clients: load.clients,
            mode: load.mode.clone(),
            duration: load.duration,
            warm_up: load.warm_up,
            most_queries: load.most_queries,
            timeout: load.timeout,
            workers: load.workers.unwrap_or(most),
            cpus: cpus.load.clone(),
            queries: Arc::clone(self.queries),
            selection: load.selection,
            seed: self.seed,
            expected: Some(self.expected()),
            tls: target.tls.clone(),
            horizon: load.horizon,
            behaviour: load.behaviour.clone(),
            sources: load.sources.clone(),
            subnets: subnets(self.variant)?,
            keepalive: load.options.edns.as_ref().is_some_and(|edns| edns.keepalive),
            cookies: load.cookies,
            tsig: tsig(self.variant)?,
            http: load.http.clone(),
            receive_time: load.receive_time,
        })
    }

    /// Every name of the zone has an address of type A, so its answer has a record; what else is asked
    /// for may have none.
    fn expected(&self) -> Expected {
        let rcode = self.variant.expect.rcode;
        let has_record =
            rcode == 0 && self.variant.load.queries == Queries::Zone(TypeMix::default());
        Expected { rcode, answers: u16::from(has_record) }
    }

    fn record(
        &self,
        started: String,
        server: ServerFacts,
        result: LoadResult,
        seen: Seen,
        end: &Ending,
    ) -> RunRecord {
        let LoadResult { facts, mut measured, wrong_example, last_connection_end, .. } = result;
        let signature_example = result.signature_example;
        measured.resources = seen.resources.unwrap_or_default();
        measured.server_counters = seen.counters;
        let watched = measured.server_busy_share().is_some();
        let limit = Limit::decide(&LimitFigures::of(&facts, &server, &seen.chain, &measured));
        let mut caveats =
            Caveat::find(&facts, &server, &seen.chain, &measured, cpus::allowed().len());
        self.add_caveats(&mut caveats, &measured, watched, wrong_example.as_deref());
        if let Some(example) = &signature_example {
            // A load whose every signature is refused ends in its warm-up.
            let phases = [&measured.warm_up, &measured.counters];
            let count = phases.map(|counters| counters.answers.bad_signature).iter().sum();
            caveats.push(Caveat::BadSignatures { count, example: example.clone() });
        }
        if result.cut_short && end.fault.is_none() {
            caveats.push(Caveat::CutShort { measured_ns: measured.window_ns });
        }
        let Connections { attempted, failed, lost, .. } = measured.counters.connections;
        if let Some(example) = last_connection_end.clone().filter(|_| failed + lost > 0) {
            caveats.push(Caveat::ConnectionsFailed { attempted, failed, lost, example });
        }
        // Why nothing was answered: what the server said outweighs how connections ended.
        let connection = last_connection_end.map(|end| format!("the last connection: {end}"));
        let why = signature_example.or(connection);
        let status = self.status(&measured, end, wrong_example.as_deref(), why.as_deref());
        RunRecord {
            chain: seen.chain,
            laboratory: seen.laboratory,
            measured: Some(measured),
            caveats,
            limit,
            ..self.empty(started, status, facts, server)
        }
    }

    fn add_caveats(
        &self,
        caveats: &mut Vec<Caveat>,
        measured: &Measured,
        watched: bool,
        wrong_example: Option<&str>,
    ) {
        let wrong = measured.counters.answers.wrong;
        if wrong > 0 {
            let example = wrong_example.unwrap_or_default().to_owned();
            caveats.push(Caveat::WrongAnswers { count: wrong, example });
        }
        if let Some(reason) = laboratory::not_played(self.variant) {
            caveats.push(Caveat::LinksNotPlayed { reason });
        }
        if !watched {
            let reason = match self.variant.server.process() {
                None => "dnslab did not start it, so it does not know its processes",
                Some(_) => "the samples do not cover the measured window",
            };
            caveats.push(Caveat::ServerNotWatched { reason: reason.to_owned() });
        }
        let server = &self.variant.server;
        let unverified = server.verification == Some(Verification::Off);
        if unverified && self.variant.load.transport.is_encrypted() {
            caveats.push(Caveat::CertificateNotVerified);
        }
    }

    /// Whether the run counts. `why` is said where nothing was answered.
    fn status(
        &self,
        measured: &Measured,
        end: &Ending,
        wrong_example: Option<&str>,
        why: Option<&str>,
    ) -> RunStatus {
        if let Some(reason) = &end.fault {
            return RunStatus::Failed { reason: reason.clone(), log_tail: end.log.clone() };
        }
        let (outcomes, answers) = (&measured.counters.outcomes, &measured.counters.answers);
        if outcomes.answered == 0 {
            let why = why.map(|why| format!("; {why}")).unwrap_or_default();
            let reason = match outcomes.due + measured.warm_up.outcomes.due {
                0 => format!("no query was sent{why}"),
                due => format!("none of {due} queries was answered{why}"),
            };
            return RunStatus::Invalid { reason };
        }
        let limit = self.variant.expect.wrong_limit;
        // What cannot be read is no right answer either.
        let wrong = answers.wrong + outcomes.malformed;
        let came = outcomes.answered + outcomes.malformed;
        if wrong as f64 > limit * came as f64 {
            let expected = dnslab_wire::rcode_name(self.variant.expect.rcode.into());
            let record = if self.expected().answers > 0 { " with a record" } else { "" };
            let example = wrong_example.unwrap_or("they could not be read as DNS messages");
            let reason = format!(
                "{wrong} of {came} answers were not {expected}{record}, more than the limit of \
                 {} %: {example}",
                limit * 100.0
            );
            return RunStatus::Invalid { reason };
        }
        let (measured_for, asked) = (measured.window_ns, self.variant.load.duration.as_nanos());
        let due = outcomes.due + measured.warm_up.outcomes.due;
        let sent_all = self.variant.load.most_queries.is_some_and(|most| due >= most);
        if u128::from(measured_for) * 2 < asked && !sent_all {
            let reason = format!(
                "interrupted after {:.3} s of {:.3} s: too little to stand beside whole runs",
                measured_for as f64 / 1e9,
                asked as f64 / 1e9
            );
            return RunStatus::Invalid { reason };
        }
        RunStatus::Valid
    }

    fn failed(&self, started: String, reason: String, log_tail: Vec<String>) -> RunRecord {
        let load = &self.variant.load;
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let facts = LoadFacts {
            transport: load.transport.to_string(),
            target: match &self.variant.server.server {
                Server::External { target, .. } => target.to_string(),
                _ => String::new(),
            },
            clients: load.clients,
            mode: load.mode.facts(load.warm_up, load.duration),
            duration_ns: nanos(load.duration),
            warm_up_ns: nanos(load.warm_up),
            timeout_ns: nanos(load.timeout),
            workers: load.workers.unwrap_or(0),
            cpus: Vec::new(),
            queries: self.queries.description().to_owned(),
            seed: self.seed,
            send_path: String::new(),
            horizon_ns: nanos(load.horizon),
            behaviour: load.behaviour.to_string(),
            tls: None,
            http_method: None,
            edns: String::new(),
            receive_time: load.receive_time.to_string(),
            sources: load.sources.as_ref().map(ToString::to_string),
            most_queries: load.most_queries,
        };
        let kind = self.variant.server.kind_name().to_owned();
        let server = ServerFacts { kind, ..ServerFacts::default() };
        self.empty(started, RunStatus::Failed { reason, log_tail }, facts, server)
    }

    /// A record without a measurement.
    fn empty(
        &self,
        started: String,
        status: RunStatus,
        load: LoadFacts,
        server: ServerFacts,
    ) -> RunRecord {
        RunRecord {
            format: RECORD_FORMAT,
            variant: self.id.variant.clone(),
            repetition: self.id.repetition,
            position: self.position,
            started,
            status,
            load,
            server,
            chain: Vec::new(),
            laboratory: None,
            measured: None,
            caveats: Vec::new(),
            limit: Limit { kind: LimitKind::Unclear, evidence: "nothing was measured".to_owned() },
        }
    }
}

/// What was seen of the servers while the load ran.
#[derive(Default)]
struct Seen {
    /// What the server under test used.
    resources: Option<ResourceSeries>,
    /// What it counted.
    counters: Option<CounterSeries>,
    /// The servers behind it.
    chain: Vec<ChainPart>,
    /// Hosts and links.
    laboratory: Option<LaboratoryFacts>,
}

/// What ended a load before its time.
#[derive(Debug)]
enum Fault {
    /// A server, a host or a link ended by itself.
    Ended(EndedPart),
    /// The server has no room for what it was told to write.
    DiskFull,
}

/// How the server ended.
struct Ending {
    /// Why the run failed, if it did.
    fault: Option<String>,
    log: Vec<String>,
}

impl Ending {
    /// Stops the server under test, if there is one.
    fn of(server: Option<RunningServer>, fault: Option<Fault>, folder: &Path) -> Self {
        let log = match &fault {
            Some(Fault::Ended(part)) => part.log_tail.clone(),
            _ => server.as_ref().map(|server| server.log_tail(LOG_LINES)).unwrap_or_default(),
        };
        // A server that has ended already cannot be stopped; that is the fault, not a second one.
        server.map(|server| server.stop().ok());
        let fault = fault.map(|fault| match fault {
            Fault::Ended(EndedPart { what, report, .. }) => {
                format!("the {what} ended in the middle of the load ({})", report.ending)
            }
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
    use dnslab_lab::LabError;
    match error {
        TargetError::Lab(LabError::Exited(exited)) => exited.log_tail.clone(),
        TargetError::Lab(LabError::NotReady(waited)) => waited.log_tail.clone(),
        TargetError::Behind { source, .. } => log_tail_of(source),
        _ => Vec::new(),
    }
}
