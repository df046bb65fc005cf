//! `dnslab run`: an experiment from plan to report.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use dnslab_experiment::{Session, Source, Untrusted, doubt_of_results};
use dnslab_report::beforehand;
use dnslab_settings::{Experiment, OptionForm, Variant};

use crate::arguments::{Output, Run};
use crate::exit::{Exit, Failure};
use crate::kept::{Place, needs_folder};
use crate::live::Wanted;
use crate::monitoring::Doors;
use crate::session::{Gate, begin, carry_out, failure, failure_with_remedy, guard};
use crate::{sessions, signals, terminal};

pub(crate) fn run(arguments: &Run) -> Result<Exit, Failure> {
    let may_run = |untrusted: &Untrusted| arguments.trust || trust(untrusted);
    let open = || Doors::open(&arguments.monitor, arguments.output);
    // clap forgets what an option requires beside an option that this excludes.
    if arguments.more.is_some() && arguments.resume.is_none() {
        return Err(Failure::bad_input(anyhow!(
            "--more adds rounds to an experiment that was run\n  hint:    name its results: --resume RESULTS --more N; a new \
             one takes --set repeat.runs=N"
        )));
    }
    let (place, mut session, doors) = match &arguments.resume {
        Some(path) => {
            let doors = open()?;
            let place = Place::of(&arguments.results)?;
            signals::listen().context("cannot listen to signals")?;
            let session = Session::resume(path, arguments.more.unwrap_or(0), guard(), &may_run)
                .map_err(|error| failure_with_remedy(error, OptionForm::Set))?;
            (place, session, doors)
        }
        None => {
            let (experiment, source) = experiment(arguments)?;
            if arguments.dry_run {
                return crate::plan::show(&experiment, &arguments.asked);
            }
            if let Some(untrusted) = source.untrusted.filter(|untrusted| !may_run(untrusted)) {
                return Err(Failure::bad_input(*untrusted));
            }
            if experiment.repeat.profile {
                needs_folder(&arguments.results, "where the CPU time goes is in the report")?;
            }
            let place = Place::of(&arguments.results)?;
            let doubt = doubt_of_results(place.folder()).filter(|_| starts_servers(&experiment));
            if let Some(untrusted) = doubt.filter(|untrusted| !may_run(untrusted)) {
                return Err(Failure::bad_input(untrusted));
            }
            if experiment.repeat.sessions > 1 || !arguments.asked.beside.is_empty() {
                return sessions::run(arguments, &experiment);
            }
            let doors = open()?;
            let gate = Gate::of(arguments);
            let session = begin(experiment, (place.folder(), None), gate, OptionForm::Set)?;
            (place, session, doors)
        }
    };
    session.set_limits(&arguments.limit).map_err(failure)?;
    if !arguments.output.is_quiet() {
        beforehand(session.facts()).iter().for_each(|line| say!("note: {line}"));
    }
    let wanted = Wanted { watch: arguments.watch, output: arguments.output };
    let exit = carry_out(&mut session, doors, wanted, &place)?;
    match &arguments.keep {
        Some(variant) if !matches!(exit, Exit::Interrupted) => {
            keep(&session, variant, arguments.output)?;
        }
        _ => {}
    }
    Ok(exit)
}

pub(crate) fn experiment(arguments: &Run) -> Result<(Experiment, Source), Failure> {
    arguments.asked.experiment().map_err(|error| failure(error.into()))
}

fn starts_servers(experiment: &Experiment) -> bool {
    let mut servers = experiment.variants.iter().flat_map(Variant::servers);
    servers.any(|server| server.kind.is_some())
}

/// Asks the user at the terminal. Without a terminal the answer is no.
fn trust(untrusted: &Untrusted) -> bool {
    terminal::confirm(&format!("{}. Run it?", untrusted.statement()))
}

/// How often to look whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// Leaves the servers of a variant up until Ctrl-C, or until one ends. An empty `variant` is the baseline.
fn keep(session: &Session, variant: &str, output: Output) -> Result<(), Failure> {
    let variant = if variant.is_empty() { &session.experiment().baseline } else { variant };
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let kept = session.keep(variant, &stop).map_err(failure)?;
    terminal::remark(&format!("\nthe servers of {variant} are up; Ctrl-C ends them"), output);
    for line in kept.describe() {
        terminal::remark(&format!("  {line}"), output);
    }
    while !stop.load(Ordering::Relaxed) && !kept.has_ended() {
        std::thread::sleep(LOOK);
    }
    if kept.has_ended() {
        let path = session.results().path().display();
        let text = format!("a server has ended by itself: its log is in {path}");
        terminal::remark(&text, output);
    }
    Ok(())
}
