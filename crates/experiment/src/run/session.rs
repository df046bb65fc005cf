//! All runs of an experiment: planned, executed one after another, written to disk before the next begins,
//! and resumed where they stopped.

mod answers;
pub(crate) mod capacity;
pub(crate) mod conditions;
mod enough;
pub(crate) mod kept;
mod profile;
pub(crate) mod rounds;
mod trial;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use dnslab_agent::{Agents, LinkError, needs};
use dnslab_figures::AnswersError;
use dnslab_lab::{GuardProgram, Installed, LabError, host, hosts};
use dnslab_record::{
    CaseId, Compared, CostLimit, Fact, LiveLoad, Looks, RunRecord, RunStatus, SESSION_FORMAT,
    SkippedVariant,
};
use dnslab_results::{FolderName, Holder, ResultsDirectory, ResultsError, SessionLock};
use dnslab_settings::{Common, Experiment, Host, HostsChoice, Mode, Rounds, ServicePlace, Variant};
use dnslab_traffic::SlicePlan;

use super::case::{is_cut_short, leave_out_if_short};
use super::error::{FirstQueryError, NoSlicesError, QueriesError};
use super::first_query;
use super::internet::PrivateInternet;
use super::manifests;
use super::open_load::{OpenLoad, OpenRate};
use super::queries::{self, QueryLists};
use super::split::Cpus;
use super::testbed::reached_at;
use super::{room, watching};
use conditions::Difference;
use rounds::Alternation;

use crate::controls::controls;
use crate::explain::named_program;
use crate::plan::Begun;
use crate::scaling::{lacks_cpus, thread_sweeps};
use crate::sweeps::sweeps;
use crate::{Changes, ExperimentError, Plan, Purpose, Untrusted};

/// What a session needs besides its experiment.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Folder in which the results directory is made. Its name is the time and the experiment's name.
    pub results: PathBuf,
    /// How to start the guard.
    pub guard: GuardProgram,
    /// The command line, for the provenance.
    pub command: Vec<String>,
    /// What the variants may cost, judged after the runs.
    pub limits: Vec<CostLimit>,
    /// A capture that was made for this experiment: it moves into the results directory.
    pub recording: Option<PathBuf>,
    /// The program that each variant is compared with itself on, as it was named; empty without one.
    pub against: String,
    /// Rate of the common load where another session has found it, queries per second.
    pub common_rate_qps: Option<f64>,
}

/// Is told of events as they happen.
pub trait Observer {
    /// The short trial begins that finds the rate of the common load.
    fn trial_begins(&mut self);

    /// A round begins: these runs are made together. The first is the `number`-th (from 1) of `count`.
    fn round_begins(&mut self, cases: &[CaseId], number: usize, count: usize);

    /// An interval of one of its runs is over.
    fn interval(&mut self, case: &CaseId, live: &LiveLoad<'_>);

    /// The run is over and on disk.
    fn run_ends(&mut self, record: &RunRecord);

    /// A round begins in which the servers are sampled. Its intervals are told, its runs are not.
    fn profile_begins(&mut self);

    /// The answers of two variants that have run are compared, and what differs is asked again.
    fn comparison_begins(&mut self, pair: &Compared);
}

/// Why an experiment cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The experiment on disk cannot be read.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The experiment names code, and may be somebody else's.
    #[error(transparent)]
    Untrusted(Box<Untrusted>),
    /// The results directory cannot be read or written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// This process cannot act on its host.
    #[error(transparent)]
    Agent(LinkError),
    /// The runs are those of another load generator.
    #[error(
        "{} was imported: dnslab did not make its runs, so it cannot make them again\n  hint:    \
         `dnslab report` writes its report again", path.display()
    )]
    Imported {
        /// The results directory.
        path: PathBuf,
    },
    /// There is nothing to ask.
    #[error(transparent)]
    Queries(#[from] QueriesError),
    /// The numbers of a variant are impossible here.
    #[error("variant `{variant}`: {reason}")]
    Variant {
        /// Its name.
        variant: String,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// The variants cannot take turns as was asked for.
    #[error(transparent)]
    Slices(#[from] NoSlicesError),
    /// No variant can run here.
    #[error("no variant can run here\n{}", list(.0))]
    NothingRuns(
        /// The variants and their reasons.
        Vec<SkippedVariant>,
    ),
    /// The baseline cannot run here.
    #[error(
        "the baseline `{}` cannot run here, so there is nothing to compare with: {}\n  hint:    {}",
        .skipped.variant, .skipped.reason,
        if *.is_named { "name a program of this kind of server" }
        else { "name another one with --set baseline=NAME" }
    )]
    NoBaseline {
        /// The baseline and its reason.
        skipped: SkippedVariant,
        /// Its program was named by the user, who may have named a wrong one.
        is_named: bool,
    },
    /// The first query to a server that runs already shows that no run can succeed.
    #[error("variant `{variant}`: {source}")]
    FirstQuery {
        /// Its variant.
        variant: String,
        /// What the query showed.
        source: Box<FirstQueryError>,
    },
    /// The first run of a variant measured nothing, and further ones would not either.
    #[error("variant `{variant}` cannot be measured: {reason}")]
    NotMeasured {
        /// The variant.
        variant: String,
        /// What its server or the load said; may have several lines.
        reason: String,
    },
    /// The trial that finds the rate of the common load failed for a variant.
    #[error(
        "variant `{variant}` failed in the trial that finds the rate of the common load: {reason}\n  \
         hint:    find why its server ends, or set the rate that all variants bear with \
         --set common.rate=QPS"
    )]
    TrialFailed {
        /// The variant.
        variant: String,
        /// What happened.
        reason: String,
    },
    /// What two loads were told cannot be compared.
    #[error("the answers of `{variant}` and `{against}` cannot be compared: {source}")]
    Answers {
        /// The variant whose answers would be compared.
        variant: String,
        /// The variant that they would be compared with.
        against: String,
        /// Why not.
        source: AnswersError,
    },
    /// A host was lost, and cannot be reached again.
    #[error(
        "{reason}\n  hint:    what was measured is kept; when the host is there again: dnslab run --resume {}",
        path.display()
    )]
    HostLost {
        /// What was seen last.
        reason: String,
        /// The results directory.
        path: PathBuf,
    },
    /// Further runs would be made under other conditions than the finished ones.
    #[error(
        "this experiment cannot be resumed: its further runs could not be compared with those that \
         are finished\n{}\n  hint:    begin anew: dnslab run {}", lines(differences),
        experiment.display()
    )]
    Differs {
        /// What has changed.
        differences: Vec<Difference>,
        /// The experiment's file in the results directory.
        experiment: PathBuf,
    },
}

/// Each reason once, with its variants.
fn list(skipped: &[SkippedVariant]) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for SkippedVariant { variant, reason } in skipped {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, variants)) => variants.push(variant),
            None => reasons.push((reason, vec![variant])),
        }
    }
    let line =
        |(reason, variants): (&str, Vec<&str>)| format!("  {}: {reason}", variants.join(", "));
    reasons.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

fn lines(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// How [`Session::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEnd {
    /// True if it was interrupted. The missing runs can be resumed.
    pub interrupted: bool,
}

/// An experiment that is being run.
#[derive(Debug)]
pub struct Session {
    experiment: Experiment,
    results: ResultsDirectory,
    /// Keeps other sessions out of the directory.
    _lock: SessionLock,
    facts: dnslab_record::Session,
    guard: GuardProgram,
    /// Whoever acts on this host, and on others.
    agents: Agents,
    /// The queries, made when the input is checked and kept for the runs.
    lists: RefCell<QueryLists>,
    /// How loads alternate.
    slices: Cell<SlicePlan>,
    taken: Vec<TakenAddress>,
}

impl Session {
    /// Finds out what can run here, plans it, and makes the results directory.
    ///
    /// # Errors
    /// When nothing can run, a query file cannot be read, or the directory cannot be made.
    pub fn begin(
        mut experiment: Experiment,
        options: SessionOptions,
    ) -> Result<Self, SessionError> {
        let skipped = skipped(&experiment, NamedPrograms::Asked, &options.guard)?;
        answers::check_workers(&experiment)?;
        let inputs = conditions::inputs(&experiment, &options.guard)?;
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let plan = Plan::new(&experiment, &skipped);
        // A wrong query file or a faulty external server is reported before anything is made.
        let mut lists = QueryLists::default();
        for variant in variants_of(&experiment, &plan) {
            lists.of(variant, seed_of(experiment.repeat.seed, 1))?;
            queries::with_files(variant)?;
        }
        let agents = Agents::new(options.guard.clone()).map_err(SessionError::Agent)?;
        reach_hosts(&experiment, &plan, &agents)?;
        take_services(&mut experiment, &agents)?;
        let there = ServedThere::ask(&experiment, &plan, &agents)?;
        let skipped = without(&experiment, [skipped, there.skipped].concat())?;
        let alternation = rounds::alternation(&experiment, &skipped)?;
        let plan = Plan::new(&experiment, &skipped);
        let taken = ask_first(&mut experiment, &plan, &mut lists, &agents)?;
        // Those that are found hold for this session, and not for one that resumes it.
        take_addresses(&mut experiment.clone(), &agents)?;
        let mut facts = dnslab_record::Session {
            format: SESSION_FORMAT,
            dnslab: env!("CARGO_PKG_VERSION").to_owned(),
            name: experiment.name.clone(),
            question: experiment.question.clone(),
            baseline: experiment.baseline.clone(),
            variants: experiment.variants.iter().map(|variant| variant.name.clone()).collect(),
            skipped,
            answered_by: experiment.answered_by,
            margin: experiment.repeat.margin,
            seed: experiment.repeat.seed,
            started: now.clone(),
            command: options.command,
            host: [host_facts(&experiment), agents.facts(), there.facts].concat(),
            inputs,
            compared: rounds::compared(&experiment),
            controls: Vec::new(),
            sweeps: sweeps(&experiment),
            scaling: thread_sweeps(&experiment),
            slice_ns: (alternation == Alternation::Slices)
                .then(|| u64::try_from(experiment.repeat.slice.as_nanos()).unwrap_or(u64::MAX)),
            whole_runs_because: match alternation {
                Alternation::Slices => String::new(),
                Alternation::Runs(reason) => reason,
            },
            common_rate_qps: options.common_rate_qps,
            limits: options.limits,
            against: options.against,
            looks: match experiment.repeat.until > 0.0 {
                true => Looks::EachRound,
                false => Looks::Once,
            },
            published: experiment.published.clone(),
            plan: plan.cases,
        };
        facts.controls = controls(&experiment, &facts.compared());
        let name = experiment.name.parse().expect("an experiment is named as a folder may be");
        let path = results_path(&options.results, &now, &name);
        let results = ResultsDirectory::create(&path, &facts)?;
        let lock = results.lock(&holder())?;
        if let Some(recording) = &options.recording {
            move_recording(&mut experiment, recording, &results)?;
            // They hold the path.
            lists = QueryLists::default();
            facts.inputs = conditions::inputs(&experiment, &options.guard)?;
            results.write_session(&facts)?;
        }
        results.write_experiment(&experiment.to_toml())?;
        take_addresses(&mut experiment, &agents)?;
        let lists = RefCell::new(lists);
        let slices = Cell::new(experiment.slices());
        let guard = options.guard;
        let _lock = lock;
        Ok(Self { experiment, results, _lock, facts, guard, agents, lists, slices, taken })
    }

    /// Resumes an experiment, with so many `more` rounds than it had. From then on its intervals are those that hold
    /// though somebody looked ([`Looks::EachRound`]). Old runs that a kill left put aside are brought back or removed
    /// first.
    /// `may_run` decides about an experiment that names code and may be somebody else's.
    ///
    /// # Errors
    /// When the folder is no results directory or another session is in it; when the experiment cannot be
    /// read or may not run; when runs are missing and dnslab, the host or a query file has changed since the
    /// experiment began.
    pub fn resume(
        path: &Path,
        more: u32,
        guard: GuardProgram,
        may_run: &dyn Fn(&Untrusted) -> bool,
    ) -> Result<Self, SessionError> {
        let results = ResultsDirectory::open(path)?;
        let lock = results.lock(&holder())?;
        if results.runs()?.iter().any(|record| record.imported.is_some()) {
            return Err(SessionError::Imported { path: path.to_owned() });
        }
        let (path, file) = results.open_experiment()?;
        let (experiment, source) =
            crate::load_file(&path, file.into(), &Changes::default(), Purpose::Resume)?;
        if let Some(untrusted) = source.untrusted.filter(|untrusted| !may_run(untrusted)) {
            return Err(SessionError::Untrusted(untrusted));
        }
        let facts = results.session()?;
        let lists = RefCell::new(QueryLists::default());
        let slices = Cell::new(experiment.slices());
        let agents = Agents::new(guard.clone()).map_err(SessionError::Agent)?;
        let (taken, _lock) = (Vec::new(), lock);
        let mut session =
            Self { experiment, results, _lock, facts, guard, agents, lists, slices, taken };
        for case in &session.facts.plan {
            session.results.settle(case)?;
        }
        session.plan_more(more);
        if session.remaining()?.cases.is_empty() && !session.lacks_profile()? {
            return Ok(session);
        }
        let inputs = conditions::inputs(&session.experiment, &session.guard)?;
        let remaining = session.remaining()?;
        reach_hosts(&session.experiment, &remaining, &session.agents)?;
        take_services(&mut session.experiment, &session.agents)?;
        let there = ServedThere::ask(&session.experiment, &remaining, &session.agents)?;
        if let Some(SkippedVariant { variant, reason }) = there.skipped.into_iter().next() {
            return Err(SessionError::Variant { variant, reason });
        }
        let differences = conditions::differences(
            &session.facts,
            env!("CARGO_PKG_VERSION"),
            &[host::facts(), session.agents.facts(), there.facts].concat(),
            &inputs,
        );
        if !differences.is_empty() {
            return Err(SessionError::Differs { differences, experiment: path });
        }
        if more > 0 {
            session.results.write_session(&session.facts)?;
            session.results.write_experiment(&session.experiment.to_toml())?;
        }
        let remaining = session.remaining()?;
        let lists = session.lists.get_mut();
        session.taken = ask_first(&mut session.experiment, &remaining, lists, &session.agents)?;
        take_addresses(&mut session.experiment, &session.agents)?;
        Ok(session)
    }

    /// The rounds of the plan.
    fn planned_rounds(&self) -> u32 {
        self.facts.plan.iter().map(|case| case.repetition).max().unwrap_or(0)
    }

    /// The plan with further rounds, which a longer experiment would have had from the beginning.
    fn plan_more(&mut self, more: u32) {
        if more > 0 {
            self.experiment.repeat.runs = Rounds::Count(self.planned_rounds().saturating_add(more));
            self.facts.plan = Plan::new(&self.experiment, &self.facts.skipped).cases;
            self.facts.looks = Looks::EachRound;
        }
    }

    /// Replaces the limits that the session began with, unless `limits` is empty.
    ///
    /// # Errors
    /// When the results directory cannot be written.
    pub fn set_limits(&mut self, limits: &[CostLimit]) -> Result<(), SessionError> {
        if !limits.is_empty() && self.facts.limits != limits {
            self.facts.limits = limits.to_vec();
            self.results.write_session(&self.facts)?;
        }
        Ok(())
    }

    /// The hosts that are asked at another address than their first.
    #[must_use]
    pub fn taken_addresses(&self) -> &[TakenAddress] {
        &self.taken
    }

    /// Where the results are.
    #[must_use]
    pub fn results(&self) -> &ResultsDirectory {
        &self.results
    }

    /// What is known before the first run.
    #[must_use]
    pub fn facts(&self) -> &dnslab_record::Session {
        &self.facts
    }

    /// The experiment.
    #[must_use]
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The runs that are not on disk, and those that an interrupt cut short.
    ///
    /// # Errors
    /// When a record on disk cannot be read.
    pub fn remaining(&self) -> Result<Plan, SessionError> {
        let records = self.results.runs()?;
        let done: BTreeSet<(&str, u32)> = records
            .iter()
            .filter(|record| !is_cut_short(record))
            .map(|record| (record.variant.as_str(), record.repetition))
            .collect();
        let whole = rounds::whole_repetitions(&self.facts.plan, &done);
        let is_done = |case: &CaseId| match self.facts.slice_ns {
            Some(_) => whole.contains(&case.repetition),
            None => done.contains(&(case.variant.as_str(), case.repetition)),
        };
        let begun = Begun {
            alternates_in_slices: self.facts.slice_ns.is_some(),
            knows_rate: self.facts.common_rate_qps.is_some(),
            is_profiled: !self.lacks_profile()?,
        };
        Ok(Plan::remaining(&self.experiment, &self.facts.plan, begun, is_done))
    }

    /// Reaches the hosts of a round that were lost since.
    fn reach_again(&self, round: &[CaseId]) -> Result<(), SessionError> {
        let variants = round.iter().filter_map(|id| self.experiment.variant(&id.variant));
        let lost = variants.filter_map(|variant| unreachable(variant, &self.agents)).next();
        lost.map_or(Ok(()), |reason| {
            Err(SessionError::HostLost { reason, path: self.results.path().to_owned() })
        })
    }

    /// Does the remaining runs. `stop` ends the current run early, keeps it with a caveat, and begins no
    /// other.
    ///
    /// # Errors
    /// When the results directory cannot be written, when there is nothing to ask, or when the first run of a
    /// variant measured nothing. That run leaves no record, so that it is repeated when the session is
    /// resumed.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<SessionEnd, SessionError> {
        let remaining = self.remaining()?.cases;
        let mut number = self.facts.plan.len() - remaining.len() + 1;
        let rounds = rounds::rounds(remaining, self.facts.slice_ns.is_some());
        let earlier = self.results.runs()?;
        let variants_with = |is_so: &dyn Fn(&RunRecord) -> bool| -> BTreeSet<String> {
            let found = earlier.iter().filter(|record| is_so(record));
            found.map(|record| record.variant.clone()).collect()
        };
        let is_whole =
            |record: &RunRecord| record.status == RunStatus::Valid && !is_cut_short(record);
        let mut measured = variants_with(&|record| record.measured.is_some());
        let mut whole = variants_with(&is_whole);
        let rate = match rounds.is_empty() {
            true => None,
            false => self.common_rate(stop, observer)?,
        };
        let mut last = None;
        let mut put_off = Vec::new();
        for round in rounds {
            // A repetition has several rounds if whole runs alternate.
            let repetition = round.first().map(|case| case.repetition);
            if last.replace(repetition).is_some_and(|last| last != repetition) {
                if self.ends_before(repetition)? {
                    break;
                }
                rest(self.experiment.repeat.pause, stop);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(SessionEnd { interrupted: true });
            }
            self.reach_again(&round)?;
            take_services(&mut self.experiment, &self.agents)?;
            take_addresses(&mut self.experiment, &self.agents)?;
            observer.round_begins(&round, number, self.facts.plan.len());
            number += round.len();
            let mut end = None;
            for mut record in self.run_round(&round, rate, stop, observer)? {
                let is_first = !measured.contains(&record.variant);
                if let Some(error) = came_to_nothing(&record).filter(|_| is_first) {
                    end = end.or(Some(error));
                    continue;
                }
                if record.measured.is_some() {
                    measured.insert(record.variant.clone());
                }
                if is_whole(&record) {
                    whole.insert(record.variant.clone());
                } else if whole.contains(&record.variant) {
                    leave_out_if_short(&mut record);
                }
                let id = CaseId { variant: record.variant.clone(), repetition: record.repetition };
                let written = self.results.write_run(&record);
                // This also holds when the disk refused: an old record takes its place again.
                let settled = self.results.settle(&id);
                written?;
                settled?;
                observer.run_ends(&record);
            }
            if let Some(error) = end {
                return Err(error);
            }
            // What cannot be compared now must not end the measurement. It is tried once more after the last round.
            self.compare_answers(&mut put_off, stop, observer).ok();
        }
        // Also those of rounds that ended before an interrupt.
        self.compare_answers(&mut Vec::new(), stop, observer)?;
        self.profile(stop, observer)?;
        Ok(SessionEnd { interrupted: stop.load(Ordering::Relaxed) })
    }

    /// Whether the rounds before `next` say enough. The plan then ends with them.
    fn ends_before(&mut self, next: Option<u32>) -> Result<bool, SessionError> {
        let until = self.experiment.repeat.until;
        let is_enough = until > 0.0 && enough::is_enough(&self.facts, &self.results.runs()?, until);
        if is_enough {
            self.facts.plan.retain(|case| Some(case.repetition) < next);
            self.results.write_session(&self.facts)?;
        }
        Ok(is_enough)
    }

    /// What follows the main load of each round: the common load at this rate, and those at shares of each variant's own.
    fn open_loads(&self, common_qps: Option<f64>) -> Vec<OpenLoad> {
        let Some(Common { duration, warm_up, shares, .. }) = self.experiment.common_load() else {
            return Vec::new();
        };
        // Where it is `None`, a main load is an open loop, or nothing was answered.
        let common = common_qps.into_iter().map(OpenRate::Common);
        let shares = shares.iter().filter(|_| common_qps.is_some()).flat_map(|shares| &shares.0);
        let rates = common.chain(shares.copied().map(OpenRate::Share));
        rates.map(|rate| OpenLoad { rate, duration: *duration, warm_up: *warm_up }).collect()
    }

    fn run_round(
        &self,
        ids: &[CaseId],
        rate_qps: Option<f64>,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<Vec<RunRecord>, SessionError> {
        let mut runs = Vec::new();
        for id in ids {
            let variant = self.experiment.variant(&id.variant);
            let variant = variant.ok_or_else(|| SessionError::Variant {
                variant: id.variant.clone(),
                reason: "it is in the plan but not in experiment.toml".to_owned(),
            })?;
            runs.push((variant, id));
        }
        for id in ids {
            self.results.begin_run(id)?;
        }
        let open = self.open_loads(rate_qps);
        let folder = |id: &CaseId| self.results.run_path(id);
        let seed = seed_of(self.experiment.repeat.seed, ids.first().map_or(0, |id| id.repetition));
        self.play(&runs, seed, &folder, &open, stop, &mut |place, live| {
            observer.interval(&ids[place], live);
        })
    }
}

/// Name of a recorded capture in the results directory.
const RECORDING: &str = "capture.dnstap";

/// Moves a recording into the results directory, where the experiment finds it from then on, also when it is resumed
/// from elsewhere.
fn move_recording(
    experiment: &mut Experiment,
    recording: &Path,
    results: &ResultsDirectory,
) -> Result<(), SessionError> {
    let moved = results.take_in(RECORDING, recording)?;
    let moved = std::path::absolute(&moved).unwrap_or(moved);
    for variant in &mut experiment.variants {
        if variant.load.mode.capture() == Some(recording) {
            variant.load.mode = Mode::Capture(moved.clone());
        }
    }
    Ok(())
}

/// In the order of the experiment.
fn variants_of<'a>(
    experiment: &'a Experiment,
    plan: &'a Plan,
) -> impl Iterator<Item = &'a Variant> {
    let has_run = |variant: &&Variant| plan.cases.iter().any(|case| case.variant == variant.name);
    experiment.variants.iter().filter(has_run)
}

/// A host that does not answer at its first address, and does at another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is asked at {taken}, since it does not answer at {silent}")]
pub struct TakenAddress {
    /// The name of the host.
    pub name: String,
    /// The address that is not asked.
    pub silent: IpAddr,
    /// The address that is asked.
    pub taken: IpAddr,
}

/// Asks each external server of a plan the first query of its load. One that does not answer is asked at the other
/// addresses of its name, and the first that answers is taken.
fn ask_first(
    experiment: &mut Experiment,
    plan: &Plan,
    lists: &mut QueryLists,
    agents: &Agents,
) -> Result<Vec<TakenAddress>, SessionError> {
    let (mut taken, seed) = (Vec::new(), seed_of(experiment.repeat.seed, 1));
    for variant in &mut experiment.variants {
        if plan.cases.iter().all(|case| case.variant != variant.name) {
            continue;
        }
        let queries = lists.of(variant, seed)?;
        let Err(source) = first_query::ask_first(variant, &queries, agents) else { continue };
        let silent = variant.server.address.ip();
        let other = first_query::answering_address(variant, &source, &queries, agents);
        let (Some(other), Some(name)) = (other, variant.host_name.clone()) else {
            let variant = variant.name.clone();
            return Err(SessionError::FirstQuery { variant, source: Box::new(source) });
        };
        variant.server.address.host = Host::Address(other);
        let found = TakenAddress { name, silent, taken: other };
        if !taken.contains(&found) {
            taken.push(found);
        }
    }
    Ok(taken)
}

/// Why a host of a variant cannot be had: one of its load, or that of its server.
fn unreachable(variant: &Variant, agents: &Agents) -> Option<String> {
    let load = watching::unreachable_load(variant, agents);
    load.or_else(|| watching::unreachable(variant, agents))
}

/// Gives servers that are started on other hosts the addresses at which ssh reached these, where none is named.
fn take_addresses(experiment: &mut Experiment, agents: &Agents) -> Result<(), SessionError> {
    for variant in &mut experiment.variants {
        let Some(host) = &variant.server.host else { continue };
        // A pod that is made again has another address.
        let is_to_be_found = variant.server.address.ip().is_loopback() || host.pod.is_some();
        if variant.target().is_some() || !is_to_be_found {
            continue;
        }
        let wrong =
            |reason: String| SessionError::Variant { variant: variant.name.clone(), reason };
        let link = agents.link(host);
        let link = link.map_err(|error| wrong(error.to_string()))?;
        let address = reached_at(&link).map_err(|error| wrong(error.to_string()))?;
        variant.server.address.host = Host::Address(address);
    }
    Ok(())
}

/// Gives Services of a cluster the addresses that they have there, and makes first what has to be there.
fn take_services(experiment: &mut Experiment, agents: &Agents) -> Result<(), SessionError> {
    for variant in &mut experiment.variants {
        let wrong =
            |reason: String| SessionError::Variant { variant: variant.name.clone(), reason };
        if let Some(plan) = manifests::plan(variant).map_err(wrong)? {
            let first = variant.load.hosts.as_ref().and_then(|hosts| hosts.0.first());
            agents.make(&plan, first).map_err(|error| wrong(error.to_string()))?;
        }
        let address = |place: &ServicePlace| service_address(place, agents).map_err(wrong);
        let server = variant.server.service.as_ref().map(address).transpose()?;
        let upstream = variant.upstream.service.as_ref().map(address).transpose()?;
        if let Some(address) = server {
            variant.server.address.host = Host::Address(address);
        }
        if let (Some(address), Some(known)) = (upstream, &mut variant.upstream.address) {
            known.host = Host::Address(address);
        }
    }
    Ok(())
}

fn service_address(place: &ServicePlace, agents: &Agents) -> Result<IpAddr, String> {
    let service = agents.service(place);
    service.map(|service| service.address).map_err(|error| format!("the Service {place}: {error}"))
}

/// Reaches the hosts that have the load, those that have the servers, and those on which external servers are watched.
fn reach_hosts(experiment: &Experiment, plan: &Plan, agents: &Agents) -> Result<(), SessionError> {
    let wrong = variants_of(experiment, plan)
        .into_iter()
        .find_map(|variant| Some((variant, unreachable(variant, agents)?)));
    match wrong {
        None => Ok(()),
        Some((variant, reason)) => {
            Err(SessionError::Variant { variant: variant.name.clone(), reason })
        }
    }
}

/// Why the first run of a variant measured nothing: its server did not start or could not be reached, or the
/// load could not begin. `None` if something was measured, or if the run was interrupted.
fn came_to_nothing(record: &RunRecord) -> Option<SessionError> {
    let RunStatus::Failed { reason, .. } = &record.status else { return None };
    (record.measured.is_none() && !is_cut_short(record)).then(|| SessionError::NotMeasured {
        variant: record.variant.clone(),
        reason: reason.clone(),
    })
}

/// The variants of one repetition share a seed, so that they get the same arrivals and queries; repetitions
/// differ. The constant is the odd one next to 2^64 divided by the golden ratio.
fn seed_of(seed: u64, repetition: u32) -> u64 {
    seed ^ u64::from(repetition).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn holder() -> Holder {
    Holder {
        pid: std::process::id(),
        host: host::name(),
        since: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
    }
}

/// A results directory in `folder` that is not there yet, by the time of its beginning (RFC 3339) and the name of its
/// experiment.
#[must_use]
pub fn results_path(folder: &Path, started: &str, name: &FolderName) -> PathBuf {
    let compact: String = started.chars().filter(|letter| !"-:".contains(*letter)).collect();
    unused(&folder.join(format!("{compact}-{}", name.as_str())))
}

/// A path that does not exist yet: two experiments may begin in the same second.
fn unused(path: &Path) -> PathBuf {
    if !path.exists() {
        return path.to_owned();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = |number: u32| path.with_file_name(format!("{name}-{number}"));
    (2..).map(numbered).find(|path| !path.exists()).unwrap_or_else(|| path.to_owned())
}

/// What happens before the runs to programs that an experiment names ([`dnslab_settings::Key::is_code`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedPrograms {
    /// They are run to ask for their version, which decides what they can do.
    Asked,
    /// They are looked for but not run, so what they can do is not known.
    LeftAlone,
}

/// The variants that cannot run here, with the reason. Programs are asked under `guard`.
///
/// # Errors
/// When a variant's numbers cannot be, or when no variant or not even the baseline can run.
pub fn skipped(
    experiment: &Experiment,
    named: NamedPrograms,
    guard: &GuardProgram,
) -> Result<Vec<SkippedVariant>, SessionError> {
    let mut skipped = Vec::new();
    for variant in &experiment.variants {
        let fits = |reason: Option<String>| match reason {
            Some(reason) => Err(SessionError::Variant { variant: variant.name.clone(), reason }),
            None => Ok(()),
        };
        let cpus = Cpus::of(variant);
        fits(cpus.as_ref().err().map(ToString::to_string))?;
        fits(room::lacking(variant))?;
        fits(watching::lacking(variant))?;
        fits(PrivateInternet::lacking(variant))?;
        // How many another host has is known there.
        let is_here = variant.server.host.is_none();
        let cpus = cpus.ok().filter(|_| is_here).map_or(usize::MAX, |cpus| cpus.server.len());
        let can_run = can_run(variant, named, guard).err().map(|error| error.to_string());
        if let Some(reason) = can_run.or_else(|| lacks_cpus(experiment, variant, cpus)) {
            skipped.push(SkippedVariant { variant: variant.name.clone(), reason });
        }
    }
    without(experiment, skipped)
}

/// The variants that are left out, if there are others, and the baseline is none of them.
fn without(
    experiment: &Experiment,
    skipped: Vec<SkippedVariant>,
) -> Result<Vec<SkippedVariant>, SessionError> {
    if skipped.len() == experiment.variants.len() {
        return Err(SessionError::NothingRuns(skipped));
    }
    match skipped.iter().find(|skip| skip.variant == experiment.baseline) {
        Some(skipped) => {
            let is_baseline = |variant: &&Variant| variant.name == experiment.baseline;
            let baseline = experiment.variants.iter().find(is_baseline);
            let is_named = baseline.is_some_and(|variant| variant.server.binary.is_some());
            Err(SessionError::NoBaseline { skipped: skipped.clone(), is_named })
        }
        None => Ok(skipped),
    }
}

/// What is installed on other hosts for the servers of a plan.
struct ServedThere {
    /// The versions, each with the name of its host.
    facts: Vec<Fact>,
    /// The variants whose servers cannot be started there.
    skipped: Vec<SkippedVariant>,
}

impl ServedThere {
    fn ask(experiment: &Experiment, plan: &Plan, agents: &Agents) -> Result<Self, SessionError> {
        let (mut facts, mut skipped) = (Vec::new(), Vec::new());
        for variant in variants_of(experiment, plan) {
            for server in variant.servers() {
                let (Some(host), Some(installed)) =
                    (variant.host_of(server.role), conditions::installed_name(&server))
                else {
                    continue;
                };
                let answer =
                    agents.link(host).and_then(|link| link.can_serve(variant, server.role));
                let name = variant.name.clone();
                match answer {
                    Ok(Ok(value)) => {
                        let fact = Fact { name: format!("{host}: {installed}"), value };
                        if !facts.contains(&fact) {
                            facts.push(fact);
                        }
                    }
                    Ok(Err(reason)) => {
                        skipped.push(SkippedVariant { variant: name, reason });
                        break;
                    }
                    Err(error) => {
                        let reason = error.to_string();
                        return Err(SessionError::Variant { variant: name, reason });
                    }
                }
            }
        }
        Ok(Self { facts, skipped })
    }
}

/// Whether the variant's servers are installed and can do what it asks for.
fn can_run(variant: &Variant, named: NamedPrograms, guard: &GuardProgram) -> Result<(), LabError> {
    // What is there says its host when it starts.
    if variant.server.host.is_some() {
        return Ok(());
    }
    if variant.lab.hosts == HostsChoice::Namespaces {
        let lacking = |reason| LabError::Hosts { what: "make hosts".to_owned(), reason };
        hosts::possible().map_err(lacking)?;
    }
    if variant.load.transport.runs_over_tcp() && variant.target().is_none() {
        dnslab_lab::check_connections(room::connections(&variant.load))?;
    }
    let servers = variant.servers();
    for (place, server) in servers.iter().enumerate() {
        // Of what is elsewhere, that host knows.
        let Some(kind) = server.kind.filter(|_| variant.host_of(server.role).is_none()) else {
            continue;
        };
        let left_alone = named_program(server).filter(|_| named == NamedPrograms::LeftAlone);
        let installed = match (left_alone.transpose()?, server.root) {
            (Some((binary, Some(version))), _) => Installed { kind, binary, version },
            // Only its version would tell what it can do.
            (Some((_, None)), _) => continue,
            (None, Some(root)) => dnslab_lab::find_in_root(kind, root, guard)?,
            (None, None) => dnslab_lab::find(kind, server.binary, guard)?,
        };
        let upstream = servers.get(place + 1).map(|behind| behind.transport);
        let needs = needs(variant, server, upstream);
        installed.can(&needs).map_err(LabError::Unsupported)?;
    }
    Ok(())
}

fn host_facts(experiment: &Experiment) -> Vec<Fact> {
    let mut facts = host::facts();
    let cpus = experiment.variants.iter().filter_map(|variant| Cpus::of(variant).ok());
    let mut divisions: Vec<String> = cpus.map(|cpus| cpus.describe()).collect();
    divisions.dedup();
    facts.push(Fact { name: "CPUs of server and load".to_owned(), value: divisions.join("; ") });
    for variant in &experiment.variants {
        let Some(name) = &variant.host_name else { continue };
        let value = variant.server.address.ip().to_string();
        let fact = Fact { name: format!("address of {name}"), value };
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts
}

/// Waits for this long, or until `stop` is set.
pub fn rest(pause: Duration, stop: &AtomicBool) {
    let end = Instant::now() + pause;
    while !stop.load(Ordering::Relaxed) && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests;
