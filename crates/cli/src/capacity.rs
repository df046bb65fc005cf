//! `dnslab capacity`: the highest rate that meets an objective, or the window to use.

use anyhow::Context as _;
use dnslab_analysis::{Answer, answer};
use dnslab_experiment::{CapacityError, CapacityPlan, CapacitySession, SessionOptions};
use dnslab_record::{End, Objective, RateSearch, Sought, WindowSweep};
use dnslab_report::number;
use dnslab_settings::{Document, OptionForm};

use crate::arguments::Capacity;
use crate::exit::{Exit, Failure};
use crate::kept::Place;
use crate::live::{Live, Wanted};
use crate::load::{draft, here};
use crate::monitoring::{Both, Doors, Monitor};
use crate::{first_screen, session, signals, terminal};

/// A common demand on a DNS service: hardly a loss, and answers before anybody notices the wait.
const OBJECTIVE: &str = "lost<0.1%, p99<10ms";

/// First rate of the ramp, queries per second. Any server carries it, and each factor of two above takes one
/// step.
const FROM_QPS: f64 = 1_000.0;

/// Highest rate if none is given, queries per second: more than any server on one machine answers.
const MAX_QPS: f64 = 50e6;

/// Width of the bracket: two runs of a real server differ by as much.
const TOLERANCE: f64 = 0.05;

pub(crate) fn capacity(arguments: Capacity) -> Result<Exit, Failure> {
    let plan = plan(&arguments)?;
    signals::listen().context("cannot listen to signals")?;
    let place = Place::of(&arguments.traffic.results)?;
    let options = SessionOptions {
        results: place.folder().to_owned(),
        guard: session::guard(),
        command: session::command_line(),
        limits: Vec::new(),
        recording: None,
        against: String::new(),
        common_rate_qps: None,
    };
    let sought = plan.sought.clone();
    let first = plan.first_experiment().map_err(failure)?;
    let doors = Doors::open(&arguments.traffic.monitor, arguments.traffic.output)?;
    let mut session = CapacitySession::begin(plan, options).map_err(failure)?;
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let output = arguments.traffic.output;
    if !output.is_quiet() {
        session.taken_addresses().iter().for_each(|taken| say!("note: {taken}"));
        say!("{}\n", intent(&sought));
    }
    let wanted = Wanted { watch: arguments.traffic.watch, output };
    let mut live = Live::of_search(&sought, &intent(&sought), &first.variants[0], wanted, &stop)?;
    let mut monitor = doors.map(|doors| Monitor::of_search(doors, &first));
    let mut both = Both { view: &mut live, monitor: monitor.as_mut() };
    let outcome = session.run(&stop, &mut both).cloned();
    drop(live);
    let shown = outcome.map_err(failure).and_then(|capacity| {
        first_screen::show_search((session.results(), place.is_kept()), &capacity, output)?;
        Ok(capacity)
    });
    // Whatever happened: what was measured leaves.
    if let Some(monitor) = monitor {
        monitor.finish(session.results().path(), &stop, output);
    }
    let capacity = shown?;
    Ok(match (&capacity.end, answer(&capacity)) {
        (Some(End::Interrupted), _) => {
            let where_it_is = match place.is_kept() {
                true => "what was measured is in the report",
                false => "nothing was kept (--results none)",
            };
            terminal::remark(&format!("\ninterrupted; {where_it_is}"), output);
            Exit::Interrupted
        }
        (Some(End::Failed { .. }), _) => Exit::Impossible,
        (_, Answer::Found { .. } | Answer::AtLeast { .. } | Answer::Window(_)) => Exit::Fine,
        (_, Answer::Below { .. } | Answer::Nothing { .. }) => Exit::Invalid,
    })
}

pub(crate) fn plan(arguments: &Capacity) -> Result<CapacityPlan, Failure> {
    let traffic = &arguments.traffic;
    let target = traffic.target.clone();
    let mut draft = draft(
        ("capacity", Document::of_options("capacity")),
        traffic,
        &arguments.options,
        String::new(),
    )?;
    let load = &mut draft.variants[0].load;
    if arguments.window_sweep && (load.population.is_written() || load.capture.is_written()) {
        let message = "there is no window to sweep: clients of a population or a capture do not wait for \
                       answers; search for their rate without --window-sweep";
        return Err(Failure::bad_input(anyhow::anyhow!(message)));
    }
    if draft.repeat.profile.value {
        let message = "a search has no round in which the server could be sampled; profile it at the rate that the \
                       search finds: `dnslab load ... --rate N --profile`";
        return Err(Failure::bad_input(anyhow::anyhow!(message)));
    }
    load.duration.set_default(arguments.step_duration);
    let (seed, clients) = (draft.repeat.seed.value, load.clients.value);
    let sought = if arguments.window_sweep {
        Sought::Window(WindowSweep {
            objective: arguments.objective.clone(),
            clients,
            largest: arguments.max_window,
            repeats: arguments.repeats,
            seed,
        })
    } else {
        let default = || OBJECTIVE.parse::<Objective>().context("the default objective");
        Sought::Rate(RateSearch {
            objective: arguments.objective.clone().map_or_else(default, Ok)?,
            from_qps: arguments
                .from
                .unwrap_or_else(|| arguments.max.map_or(FROM_QPS, |max| max.min(FROM_QPS))),
            max_qps: arguments.max.unwrap_or(MAX_QPS),
            tolerance: arguments.tolerance.unwrap_or(TOLERANCE),
            repeats: arguments.repeats,
            seed,
        })
    };
    draft.top.question.set(match &sought {
        Sought::Rate(search) => {
            format!("Up to which rate does {target} meet {}?", search.objective)
        }
        Sought::Window(_) => format!("How many queries outstanding does {target} need?"),
    });
    Ok(CapacityPlan { target, draft, here: here()?, sought })
}

/// Wrong input has its own exit code.
pub(crate) fn failure(error: CapacityError) -> Failure {
    match error {
        CapacityError::Session(error) => session::failure_with_remedy(error, OptionForm::Flag),
        CapacityError::BeyondTimeout { .. }
        | CapacityError::TooFewQueries { .. }
        | CapacityError::Empty { .. } => Failure::bad_input(error),
    }
}

fn intent(sought: &Sought) -> String {
    match sought {
        Sought::Rate(search) => format!(
            "looking for the highest rate with {}: from {} qps by factors of two, then between, then \
             {} runs at each rate around the edge",
            search.objective,
            number::qps(search.from_qps),
            search.repeats
        ),
        Sought::Window(sweep) => format!(
            "looking for the window to use: 1, 2, 4, ... outstanding over up to {} clients, {} runs \
             each",
            sweep.clients, sweep.repeats
        ),
    }
}
