//! The runs of a search for the capacity: each step is a run of a session whose plan grows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dnslab_analysis::judge_run;
use dnslab_record::{
    CAPACITY_FORMAT, Capacity, CaseId, End, LiveLoad, Objective, Phase, RateSearch, RunRecord,
    Sought, Step, StepFigures, Threshold,
};
use dnslab_results::ResultsDirectory;
use dnslab_settings::{Draft, Experiment, Variant};
use dnslab_traffic::Rate;

use super::{Session, SessionError, SessionOptions, TakenAddress, seed_of};
use crate::capacity::{Next, Search, Spread, Sweep};
use crate::run::case::is_cut_short;
use crate::{ExperimentError, Here, Source};

/// What is searched for, and on which experiment.
#[derive(Clone, Debug)]
pub struct CapacityPlan {
    /// Who is asked, as the user wrote it.
    pub target: String,
    /// An experiment of one variant. Each step gives it a name and a rate or window.
    pub draft: Draft,
    /// The machine that it is checked on.
    pub here: Here,
    /// The rate or window that is searched for.
    pub sought: Sought,
}

/// Is told of events in a search as they happen.
pub trait CapacityObserver {
    /// A step begins, the `number`-th from 1.
    fn step_begins(&mut self, number: usize, phase: Phase, at: f64);

    /// An interval of the current step, which is this run, is over.
    fn interval(&mut self, case: &CaseId, live: &LiveLoad<'_>);

    /// The run of the current step is over and on disk.
    fn run_ends(&mut self, record: &RunRecord);

    /// The step is over and on disk.
    fn step_ends(&mut self, number: usize, step: &Step);
}

/// Why a search cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// Its runs cannot be made.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A server that answers nothing would meet the objective.
    #[error(
        "the objective `{demand}` says nothing: a lost query counts with the time-out of \
         {timeout:?}, so a server that answers nothing meets it\n  hint:    give a longer \
         --timeout, or a smaller bound"
    )]
    BeyondTimeout {
        /// The demand.
        demand: Threshold,
        /// The time-out.
        timeout: Duration,
    },
    /// A step at the first rate would last too long.
    #[error(
        "whether `{objective}` is met takes {queries:.0} queries to tell, and at {from_qps} qps \
         (--from) those are {seconds:.0} s for one step\n  hint:    begin at a higher rate (--from), \
         or give a looser bound"
    )]
    TooFewQueries {
        /// The objective.
        objective: Objective,
        /// Queries that a run needs.
        queries: f64,
        /// The first rate, `--from`.
        from_qps: f64,
        /// Length of the first step.
        seconds: f64,
    },
    /// There is no rate to try.
    #[error("the search begins at {from_qps} qps (--from), above its end at {max_qps} qps (--max)")]
    Empty {
        /// The first rate, `--from`.
        from_qps: f64,
        /// The last rate, `--max`.
        max_qps: f64,
    },
}

/// Seconds. A user waits a minute in silence at the lowest rate.
const MAX_STEP: f64 = 60.0;

/// A search that is being run.
#[derive(Debug)]
pub struct CapacitySession {
    session: Session,
    plan: CapacityPlan,
    capacity: Capacity,
    driver: Driver,
}

#[derive(Debug)]
enum Driver {
    Rate(Search),
    Window(Sweep),
}

impl CapacitySession {
    /// Checks everything and makes the results directory.
    ///
    /// # Errors
    /// When the plan is wrong, a query file cannot be read, or the directory cannot be made.
    pub fn begin(mut plan: CapacityPlan, options: SessionOptions) -> Result<Self, CapacityError> {
        let (driver, experiment) = plan.first_step()?;
        let mut session = Session::begin(experiment, options)?;
        // All steps ask the address that answered.
        if let [variant, ..] = &session.experiment.variants[..] {
            plan.draft.variants[0].server.address.set(variant.server.address.clone());
        }
        // The first step is planned when it begins, like all others.
        session.facts.plan.clear();
        let capacity = Capacity {
            format: CAPACITY_FORMAT,
            target: plan.target.clone(),
            sought: plan.sought.clone(),
            steps: Vec::new(),
            end: None,
        };
        let own = Self { session, plan, capacity, driver };
        own.write()?;
        Ok(own)
    }

    /// The hosts that are asked at another address than their first.
    #[must_use]
    pub fn taken_addresses(&self) -> &[TakenAddress] {
        self.session.taken_addresses()
    }

    /// Where the results are.
    #[must_use]
    pub fn results(&self) -> &ResultsDirectory {
        self.session.results()
    }

    /// Does all steps. `stop` ends the current step early, whose run is kept but says nothing, and begins no
    /// other.
    ///
    /// # Errors
    /// When the results directory cannot be written.
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        observer: &mut dyn CapacityObserver,
    ) -> Result<&Capacity, CapacityError> {
        let end = loop {
            if stop.load(Ordering::Relaxed) {
                break End::Interrupted;
            }
            let (phase, at) = match self.driver.next() {
                Next::Done(end) => break end,
                Next::Step { phase, at } => (phase, at),
            };
            let number = self.capacity.steps.len() + 1;
            observer.step_begins(number, phase, at);
            let Some(step) = self.step(phase, at, stop, observer)? else {
                break End::Interrupted;
            };
            self.driver.push(&step);
            self.capacity.steps.push(step);
            self.write()?;
            let step = &self.capacity.steps[number - 1];
            observer.step_ends(number, step);
        };
        self.capacity.end = Some(end);
        self.write()?;
        Ok(&self.capacity)
    }

    /// `None` if the step was cut short.
    fn step(
        &mut self,
        phase: Phase,
        at: f64,
        stop: &AtomicBool,
        observer: &mut dyn CapacityObserver,
    ) -> Result<Option<Step>, CapacityError> {
        let experiment = self.plan.experiment(at)?;
        let variant = &experiment.variants[0];
        let case = self.plan_run(&variant.name);
        self.write()?;
        let record = self.run_case(variant, &case, stop, observer)?;
        self.session.results.write_run(&record).map_err(SessionError::from)?;
        observer.run_ends(&record);
        if stop.load(Ordering::Relaxed) && is_cut_short(&record) {
            return Ok(None);
        }
        Ok(Some(Step {
            case,
            phase,
            at,
            judged: judge_run(&record, self.plan.sought.objective()),
            figures: StepFigures::of(&record),
        }))
    }

    fn plan_run(&mut self, variant: &str) -> CaseId {
        let facts = &mut self.session.facts;
        let earlier = facts.plan.iter().filter(|case| case.variant == variant).count();
        let repetition = u32::try_from(earlier + 1).unwrap_or(u32::MAX);
        let case = CaseId { variant: variant.to_owned(), repetition };
        if !facts.variants.contains(&case.variant) {
            facts.variants.push(case.variant.clone());
        }
        facts.plan.push(case.clone());
        case
    }

    fn run_case(
        &self,
        variant: &Variant,
        id: &CaseId,
        stop: &AtomicBool,
        observer: &mut dyn CapacityObserver,
    ) -> Result<RunRecord, CapacityError> {
        let session = &self.session;
        let folder = session.results.begin_run(id).map_err(SessionError::from)?;
        let number = u32::try_from(session.facts.plan.len()).unwrap_or(u32::MAX);
        // No two runs get the same arrivals: an oddity of one set would be in all runs.
        let seed = seed_of(session.experiment.repeat.seed, number);
        let mut observe = |_, live: &LiveLoad<'_>| observer.interval(id, live);
        let mut records =
            session.play(&[(variant, id)], seed, &|_| folder.clone(), &[], stop, &mut observe)?;
        Ok(records.pop().expect("one case has one record"))
    }

    fn write(&self) -> Result<(), SessionError> {
        self.session.results.write_session(&self.session.facts)?;
        Ok(self.session.results.write_capacity(&self.capacity)?)
    }
}

impl CapacityPlan {
    /// The experiment of the first step, which is kept in the results.
    ///
    /// # Errors
    /// When the plan is wrong.
    pub fn first_experiment(&self) -> Result<Experiment, CapacityError> {
        self.first_step().map(|(_, experiment)| experiment)
    }

    fn first_step(&self) -> Result<(Driver, Experiment), CapacityError> {
        let driver = match &self.sought {
            Sought::Rate(search) if search.from_qps > search.max_qps => {
                let (from_qps, max_qps) = (search.from_qps, search.max_qps);
                return Err(CapacityError::Empty { from_qps, max_qps });
            }
            Sought::Rate(search) => {
                check_resolution(search)?;
                Driver::Rate(Search::new(search.clone()))
            }
            Sought::Window(sweep) => Driver::Window(Sweep::new(sweep.clone())),
        };
        let first = match driver.next() {
            Next::Step { at, .. } => at,
            Next::Done(_) => 1.0,
        };
        let experiment = self.experiment(first)?;
        check_timeout(self, &experiment)?;
        Ok((driver, experiment))
    }

    /// The experiment of one step, with one variant. It lasts longer than asked if the objective needs more
    /// queries than come in that time.
    fn experiment(&self, at: f64) -> Result<Experiment, SessionError> {
        let mut draft = self.draft.clone();
        let variant = &mut draft.variants[0];
        let load = &mut variant.load;
        let name = match &self.sought {
            Sought::Rate(search) => {
                load.rate.set(Some(Rate::Constant(at)));
                // The objective decides how much may be lost; a rate beyond the capacity loses more.
                variant.expect.lost_limit.set(1.0);
                let needed =
                    Duration::from_secs_f64((search.objective.least_queries() / at).ceil());
                if needed > load.duration.value {
                    load.duration.set(needed);
                }
                // The name of a folder has no point.
                format!("rate-{at}").replace('.', "-")
            }
            Sought::Window(sweep) => {
                let Spread { clients, outstanding } = Spread::of(at as u64, sweep.clients);
                load.clients.set(clients);
                load.outstanding.set(Some(outstanding));
                if let Some(workers) = load.workers.value {
                    load.workers.set(Some(workers.min(clients)));
                }
                format!("window-{at}")
            }
        };
        draft.rename(0, &name);
        draft.check(&self.here).map_err(|problems| {
            let source_text = Source::of_arguments();
            ExperimentError::Invalid { problems, source_text }.into()
        })
    }
}

/// Checks that the first step, which has the lowest rate, need not last too long.
fn check_resolution(search: &RateSearch) -> Result<(), CapacityError> {
    let (queries, from_qps) = (search.objective.least_queries(), search.from_qps);
    let seconds = queries / from_qps;
    if seconds > MAX_STEP {
        let objective = search.objective.clone();
        return Err(CapacityError::TooFewQueries { objective, queries, from_qps, seconds });
    }
    Ok(())
}

/// Checks that the bounds on latency are below the time-out.
fn check_timeout(plan: &CapacityPlan, experiment: &Experiment) -> Result<(), CapacityError> {
    let timeout = experiment.variants[0].load.timeout;
    let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
    match plan.sought.objective().and_then(|objective| objective.beyond_timeout(timeout_ns)) {
        Some(demand) => Err(CapacityError::BeyondTimeout { demand, timeout }),
        None => Ok(()),
    }
}

impl Driver {
    fn next(&self) -> Next {
        match self {
            Self::Rate(search) => search.next(),
            Self::Window(sweep) => sweep.next(),
        }
    }

    fn push(&mut self, step: &Step) {
        match self {
            Self::Rate(search) => search.push(&step.judged),
            Self::Window(sweep) => {
                let answered_qps = step.figures.map_or(0.0, |figures| figures.answered_qps);
                sweep.push(&step.judged, answered_qps);
            }
        }
    }
}
