//! Several sessions of one experiment, one after the other, and what holds over all of them.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use anyhow::Context as _;
use dnslab_experiment::{PilotFindings, UnsteadyVariant, pilot_of, rest, results_path};
use dnslab_report::{pooled_json, pooled_page, pooled_screen};
use dnslab_settings::{Experiment, OptionForm};
use dnslab_wire::units::duration;

use crate::arguments::{Output, Run, Watch, publish};
use crate::compare::write;
use crate::exit::{Exit, Failure};
use crate::kept::{Place, needs_folder};
use crate::live::Wanted;
use crate::monitoring::Doors;
use crate::pool::pooled;
use crate::session::{Gate, begin, carry_out, failure};
use crate::{signals, terminal};

/// Page and figures of all sessions, in their folder.
const PAGE: &str = "sessions.html";
const FIGURES: &str = "sessions.json";
/// Results of the pilots, in a folder of their own there.
const PILOT: &str = "pilot";
/// Standard error that a load's rate may have, if the user wants no width of the interval.
const USUAL_ERROR: f64 = 0.01;

/// One of several sessions.
struct Planned {
    experiment: Experiment,
    /// What is changed in it, beside the others; empty in those that are alike.
    beside: String,
}

/// Runs them all. An interrupt ends the present one.
pub(crate) fn run(arguments: &Run, experiment: &Experiment) -> Result<Exit, Failure> {
    needs_folder(&arguments.results, "several sessions are compared by their results")?;
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let name = format!("{}-sessions", experiment.name);
    let name = name.parse().context("the name of the experiment is too long for its sessions")?;
    let folder = results_path(&arguments.results.results, &started, &name);
    let place = Place::kept(&folder);
    let output = Output { quiet: arguments.output.is_quiet(), json: None, is_part: true };
    let wanted = Wanted { watch: arguments.watch, output };
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let (mut worst, mut common_rate_qps) = (Exit::Fine, None);
    let mut found = Vec::new();
    if arguments.asked.wants_pilot(experiment) {
        let Some(sets) = pilot(arguments, experiment, &folder)? else {
            return Ok(interrupted(&folder, arguments.output));
        };
        found = sets;
    }
    let planned = planned(arguments, &found)?;
    for (number, session) in planned.iter().enumerate() {
        if number > 0 {
            rest(experiment.repeat.session_pause, &stop);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(interrupted(&folder, arguments.output));
        }
        let beside = match session.beside.as_str() {
            "" => String::new(),
            beside => format!(", beside the others with {beside}"),
        };
        let text = format!("\nsession {} of {}{beside}", number + 1, planned.len());
        terminal::remark(&text, arguments.output);
        let doors = Doors::open(&arguments.monitor, arguments.output)?;
        let gate = Gate { common_rate_qps, ..Gate::of(arguments) };
        let mut session =
            begin(session.experiment.clone(), (&folder, None), gate, OptionForm::Set)?;
        match carry_out(&mut session, doors, wanted, &place)? {
            Exit::Interrupted => return Ok(interrupted(&folder, arguments.output)),
            Exit::Fine => {}
            exit => worst = exit,
        }
        // Latencies of one rate can be compared, from session to session as well.
        common_rate_qps =
            session.results().session().map_err(|error| failure(error.into()))?.common_rate_qps;
    }
    show(&folder, arguments.output)?;
    Ok(worst)
}

/// Those that are alike but for their seeds, then those with another setting.
fn planned(arguments: &Run, found: &[String]) -> Result<Vec<Planned>, Failure> {
    let asked = &arguments.asked;
    let with = |sets: &[String]| asked.experiment_with(sets).map_err(|error| failure(error.into()));
    let (experiment, _) = with(found)?;
    let alike = (0..experiment.repeat.sessions).map(|number| {
        let mut experiment = experiment.clone();
        experiment.repeat.seed = experiment.repeat.seed.wrapping_add(number.into());
        Planned { experiment, beside: String::new() }
    });
    let mut planned: Vec<Planned> = alike.collect();
    for set in asked.sessions_beside(&experiment) {
        let (experiment, _) = with(&[found, std::slice::from_ref(&set)].concat())?;
        planned.push(Planned { experiment, beside: set });
    }
    Ok(planned)
}

/// How long a warm-up and the loads have to be, as settings; `None` after an interrupt. One load of each variant says
/// it, and a longer one if a load still changes at its end.
fn pilot(
    arguments: &Run,
    experiment: &Experiment,
    folder: &Path,
) -> Result<Option<Vec<String>>, Failure> {
    let output = Output { quiet: true, json: None, is_part: true };
    let wanted = Wanted { watch: Watch::default(), output };
    let folder = folder.join(PILOT);
    let error_share = match experiment.repeat.until {
        0.0 => USUAL_ERROR,
        until => until,
    };
    let mut found = PilotFindings::of(&[], error_share);
    for length in publish::pilots(experiment) {
        let text = format!("\na pilot load of {} for each variant", duration::spoken(length));
        terminal::remark(&text, arguments.output);
        let pilot = pilot_of(experiment, length);
        let mut session = begin(pilot, (&folder, None), Gate::default(), OptionForm::Set)?;
        if let Exit::Interrupted = carry_out(&mut session, None, wanted, &Place::kept(&folder))? {
            return Ok(None);
        }
        let records = session.results().runs().map_err(|error| failure(error.into()))?;
        found = PilotFindings::of(&records, error_share);
        if !found.wants_longer() {
            break;
        }
    }
    let asked = &arguments.asked;
    let sets = asked.with_effect(publish::found_sets(experiment, &found, &asked.set));
    let text = format!("found: {}{}", sets.join(", "), of_unsteady(&found));
    terminal::remark(&text, arguments.output);
    Ok(Some(sets))
}

fn of_unsteady(found: &PilotFindings) -> String {
    let texts = found.unsteady.iter().map(|UnsteadyVariant { name, why }| match why {
        Some(why) => format!("; the load of {name} does not say it: {why}"),
        None => format!("; the load of {name} does not say it: it failed"),
    });
    texts.collect()
}

fn show(folder: &Path, output: Output) -> Result<(), Failure> {
    let pooled = pooled(&[folder.to_owned()])?;
    let page = folder.join(PAGE);
    write(&page, &pooled_page(&pooled))?;
    write(&folder.join(FIGURES), &pooled_json(&pooled))?;
    if output.json.is_some() {
        say!("{}", pooled_json(&pooled).trim_end());
        return Ok(());
    }
    say!();
    terminal::show(&pooled_screen(&pooled, terminal::width()));
    say!("report: {}", page.display());
    Ok(())
}

fn interrupted(folder: &Path, output: Output) -> Exit {
    let path = folder.display();
    let text = format!(
        "\ninterrupted; what the finished sessions say: dnslab pool {path}\nto go on with one: dnslab run --resume \
         {path}/SESSION"
    );
    terminal::remark(&text, output);
    Exit::Interrupted
}
