//! What commands that begin sessions have in common.

use std::path::Path;

use anyhow::Context as _;
use dnslab_experiment::{FirstQueryError, Plan, Session, SessionError, SessionOptions};
use dnslab_lab::GuardProgram;
use dnslab_record::{CostLimit, RunStatus, SkippedVariant};
use dnslab_results::ResultsError;
use dnslab_settings::{Experiment, OptionForm, without_secrets};
use dnslab_wire::units::duration;

use crate::arguments::{DEFAULT_LIMITS, Output, Run};
use crate::exit::{Exit, Failure};
use crate::kept::Place;
use crate::live::{Live, Wanted};
use crate::monitoring::{Both, Doors, Monitor};
use crate::{first_screen, gate, signals, terminal};

/// dnslab itself, as the guard of a server.
pub(crate) fn guard() -> GuardProgram {
    GuardProgram::this_program(["guard"])
}

/// Wrong input has its own exit code.
pub(crate) fn failure(error: SessionError) -> Failure {
    match error {
        SessionError::Experiment(_)
        | SessionError::Untrusted(_)
        | SessionError::Imported { .. }
        | SessionError::Queries(_)
        | SessionError::Variant { .. }
        | SessionError::Slices(_)
        | SessionError::Results(ResultsError::NotResults { .. }) => Failure::bad_input(error),
        _ => error.into(),
    }
}

/// [`failure`] with a remedy. The one variant of `dnslab load` has a name that says nothing, so it is left
/// out.
pub(crate) fn failure_with_remedy(error: SessionError, form: OptionForm) -> Failure {
    let SessionError::FirstQuery { source, .. } = &error else { return failure(error) };
    let what = match form {
        OptionForm::Set => error.to_string(),
        OptionForm::Flag => source.to_string(),
    };
    let hint = source.remedy(form).map(|remedy| format!("\n  hint:    {remedy}"));
    let error = anyhow::anyhow!("{what}{}", hint.unwrap_or_default());
    match **source {
        FirstQueryError::Tls(_) | FirstQueryError::Queries(_) => Failure::bad_input(error),
        _ => error.into(),
    }
}

/// What is judged when the runs are done; nothing by default.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// What the variants may cost.
    pub(crate) limits: Vec<CostLimit>,
    /// The program that each variant is compared with itself on; empty without one.
    pub(crate) against: String,
    /// Rate of the common load where another session has found it, queries per second.
    pub(crate) common_rate_qps: Option<f64>,
}

impl Gate {
    pub(crate) fn of(arguments: &Run) -> Self {
        Self {
            limits: limits(arguments),
            against: arguments.asked.against.clone().unwrap_or_default(),
            common_rate_qps: None,
        }
    }
}

/// `results` is the folder of the results directory, with a recording that is to move there. Remedies name options in
/// this form.
pub(crate) fn begin(
    experiment: Experiment,
    (results, recording): (&Path, Option<&Path>),
    gate: Gate,
    form: OptionForm,
) -> Result<Session, Failure> {
    let options = SessionOptions {
        results: results.to_owned(),
        guard: guard(),
        command: command_line(),
        limits: gate.limits,
        recording: recording.map(Path::to_owned),
        against: gate.against,
        common_rate_qps: gate.common_rate_qps,
    };
    signals::listen().context("cannot listen to signals")?;
    Session::begin(experiment, options).map_err(|error| failure_with_remedy(error, form))
}

/// The command line for the provenance, without the secrets of TSIG keys.
pub(crate) fn command_line() -> Vec<String> {
    without_keys(std::env::args())
}

/// Masks the secrets of TSIG keys, in a word that names the key and in the word after the option `--tsig`.
fn without_keys(words: impl Iterator<Item = String>) -> Vec<String> {
    const OPTION: &str = "--tsig";
    let mut is_key = false;
    let shown = words.map(|word| {
        let whole = if is_key { format!("{OPTION}={word}") } else { word.clone() };
        let whole = without_secrets(&whole);
        let shown = if is_key { whole[OPTION.len() + 1..].to_owned() } else { whole };
        is_key = word == OPTION;
        shown
    });
    shown.collect()
}

/// Those that were given; with `--against` there are always some.
fn limits(arguments: &Run) -> Vec<CostLimit> {
    if arguments.limit.is_empty() && arguments.asked.against.is_some() {
        let read = |limit: &str| limit.parse().expect("the default limits can be read");
        return DEFAULT_LIMITS.split(',').map(read).collect();
    }
    arguments.limit.clone()
}

/// Does the missing runs, then shows and writes the results of all runs.
pub(crate) fn carry_out(
    session: &mut Session,
    doors: Option<Doors>,
    wanted: Wanted,
    place: &Place,
) -> Result<Exit, Failure> {
    let output = wanted.output;
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let remaining = session.remaining().map_err(failure)?;
    if !output.is_quiet() {
        session.taken_addresses().iter().for_each(|taken| say!("note: {taken}"));
        if let Some(reason) = session.cannot_profile() {
            say!("note: no server will be sampled: {reason}");
        }
        show_plan(session.experiment(), &remaining, &session.facts().skipped);
        say!();
    }
    let runs = remaining.cases.len();
    let all = (runs, remaining.time.whole());
    let mut live = Live::of_runs(session.experiment(), all, wanted, &stop)?;
    let mut monitor = doors.map(|doors| Monitor::new(doors, session.experiment(), runs));
    let mut both = Both { view: &mut live, monitor: monitor.as_mut() };
    let end = session.run(&stop, &mut both);
    drop(live);
    let end = end.map_err(failure).map_err(|failure| match place.is_kept() {
        true => keep_hint(failure, session),
        false => failure,
    });
    let concluded = end.and_then(|end| Ok((end, conclude(session, output, place)?)));
    // Whatever happened: what was measured leaves.
    if let Some(monitor) = monitor {
        monitor.finish(session.results().path(), &stop, output);
    }
    let (end, exit) = concluded?;
    if end.interrupted {
        let path = session.results().path().display();
        let how = match place.is_kept() {
            true => format!("\ninterrupted; to go on: dnslab run --resume {path}"),
            false => "\ninterrupted; nothing was kept (--results none)".to_owned(),
        };
        terminal::remark(&how, output);
        return Ok(Exit::Interrupted);
    }
    Ok(exit)
}

/// Says how to go on if the failed session has finished runs.
fn keep_hint(failure: Failure, session: &Session) -> Failure {
    if session.results().runs().is_ok_and(|runs| runs.is_empty()) {
        return failure;
    }
    let path = session.results().path().display();
    let hint = format!(
        "{}\n  hint:    finished runs are kept; to go on: dnslab run --resume {path}",
        failure.error
    );
    Failure { exit: failure.exit, error: anyhow::anyhow!(hint) }
}

fn show_plan(experiment: &Experiment, plan: &Plan, skipped: &[SkippedVariant]) {
    say!("{}", experiment.question);
    let (runs, variants) = (plan.cases.len(), experiment.variants.len());
    let lasts = duration::spoken(plan.time.whole());
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let (of_runs, of_variants) = (plural(runs), plural(variants));
    say!("{runs} run{of_runs} of {variants} variant{of_variants}, about {lasts}");
    for skip in skipped {
        say!("not run: {}: {}", skip.variant, skip.reason);
    }
}

fn conclude(session: &Session, output: Output, place: &Place) -> Result<Exit, Failure> {
    let results = session.results();
    let summary =
        first_screen::show((results, place.is_kept()), Some(session.experiment()), output)?;
    let ruling = summary.ruling();
    let all_count = results.runs()?.iter().all(|record| record.status == RunStatus::Valid);
    Ok(match gate::exit(ruling) {
        // What is certain stays so, whatever became of other runs.
        Exit::OverLimit => Exit::OverLimit,
        _ if !all_count => Exit::Invalid,
        Exit::Fine => gate::exit_of_answers(&summary),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provenance_holds_no_secret() {
        let check = |line: &str, expected: &str| {
            let words = line.split(' ').map(str::to_owned);
            assert_eq!(without_keys(words).join(" "), expected);
        };
        check(
            "dnslab load ::1 --tsig a:c2Vj --clients 4",
            "dnslab load ::1 --tsig a:**** --clients 4",
        );
        check("dnslab load ::1 --tsig=md5:a:c2Vj", "dnslab load ::1 --tsig=md5:a:****");
        check("run --set load.tsig=c2Vj --set x=1", "run --set load.tsig=**** --set x=1");
        check("run --set variant.a.load.tsig=a:b:c", "run --set variant.a.load.tsig=a:b:*");
        check("load ::1 --tsig-file key:x", "load ::1 --tsig-file key:x");
    }
}
