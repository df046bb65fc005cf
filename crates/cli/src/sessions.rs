//! Several sessions of one experiment, one after the other, and what holds over all of them.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use anyhow::Context as _;
use dnslab_experiment::{rest, results_path};
use dnslab_report::{pooled_json, pooled_page, pooled_screen};
use dnslab_settings::{Experiment, OptionForm};

use crate::arguments::{Output, Run, publish};
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

/// One of several sessions.
struct Planned {
    experiment: Experiment,
    /// What is changed in it, beside the others; empty in those that are alike.
    beside: String,
}

/// Runs them all. An interrupt ends the present one.
pub(crate) fn run(arguments: &Run, experiment: &Experiment) -> Result<Exit, Failure> {
    needs_folder(&arguments.results, "several sessions are compared by their results")?;
    let planned = planned(arguments, experiment)?;
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let name = format!("{}-sessions", experiment.name);
    let name = name.parse().context("the name of the experiment is too long for its sessions")?;
    let folder = results_path(&arguments.results.results, &started, &name);
    let place = Place::kept(&folder);
    let output = Output { quiet: arguments.output.is_quiet(), json: None, is_part: true };
    let wanted = Wanted { watch: arguments.watch, output };
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let (mut worst, mut common_rate_qps) = (Exit::Fine, None);
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
fn planned(arguments: &Run, experiment: &Experiment) -> Result<Vec<Planned>, Failure> {
    let alike = (0..experiment.repeat.sessions).map(|number| {
        let mut experiment = experiment.clone();
        experiment.repeat.seed = experiment.repeat.seed.wrapping_add(number.into());
        Planned { experiment, beside: String::new() }
    });
    let mut planned: Vec<Planned> = alike.collect();
    let asked = &arguments.asked;
    let mut beside = asked.beside.clone();
    if asked.publish {
        beside.extend(publish::beside(experiment));
    }
    for set in beside {
        let changed = asked.experiment_beside(Some(&set));
        let (experiment, _) = changed.map_err(|error| failure(error.into()))?;
        planned.push(Planned { experiment, beside: set });
    }
    Ok(planned)
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
