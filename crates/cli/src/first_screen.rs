//! What is printed when an experiment is over: the first screen, the place of the report, and what to do
//! next.

use std::path::Path;

use dnslab_analysis::Summary;
use dnslab_lab::{is_installed, title};
use dnslab_record::Capacity;
use dnslab_report::{Terminal, capacity_screen, dns_metrics, more_rounds, screen, write_report};
use dnslab_results::ResultsDirectory;
use dnslab_settings::{Experiment, ServerKind};
use dnslab_wire::Transport;

use crate::arguments::{JsonForm, Output};
use crate::exit::Failure;
use crate::terminal;

/// Writes the report of an experiment, if its results are kept, and shows its first screen, or `summary.json`. Without `experiment`
/// there is no hint what to do next.
pub(crate) fn show(
    (results, is_kept): (&ResultsDirectory, bool),
    experiment: Option<&Experiment>,
    output: Output,
) -> Result<Summary, Failure> {
    let (session, records) = (results.session()?, results.runs()?);
    let summary = Summary::whole(
        &session,
        &records,
        results.answer_comparisons()?,
        results.cpu_profiles()?.as_ref(),
    );
    if output.is_part {
        write_report(results)?;
        return Ok(summary);
    }
    if let Some(form) = output.json {
        print_json(results, form)?;
        return Ok(summary);
    }
    let place = is_kept.then(|| results.path());
    let next = experiment.and_then(|experiment| next(experiment, &summary, place));
    // The lines on how to go on.
    let unfinished = if summary.missing_runs > 0 { 2 } else { 0 };
    let following = 1 + usize::from(next.is_some()) + unfinished;
    let terminal = Terminal { width: terminal::width(), following };
    terminal::show(&screen(&session, &records, &summary, terminal));
    say_report(results, is_kept)?;
    if let Some(next) = next {
        say!("next:   {next}");
    }
    Ok(summary)
}

pub(crate) fn show_search(
    (results, is_kept): (&ResultsDirectory, bool),
    capacity: &Capacity,
    output: Output,
) -> Result<(), Failure> {
    if let Some(form) = output.json {
        return print_json(results, form);
    }
    let (session, records) = (results.session()?, results.runs()?);
    let terminal = Terminal { width: terminal::width(), following: 1 };
    terminal::show(&capacity_screen(&session, &records, capacity, terminal));
    say_report(results, is_kept)
}

/// Writes the report, if it is kept, and says where it is.
fn say_report(results: &ResultsDirectory, is_kept: bool) -> Result<(), Failure> {
    match is_kept {
        true => say!("report: {}", write_report(results)?.page.display()),
        false => say!("report: none, and no results are kept (--results none)"),
    }
    Ok(())
}

fn print_json(results: &ResultsDirectory, form: JsonForm) -> Result<(), Failure> {
    write_report(results)?;
    let text = match form {
        JsonForm::Summary => results.written("summary.json")?,
        JsonForm::DnsMetrics => dns_metrics(&results.session()?, &results.runs()?),
    };
    say!("{}", text.trim_end());
    Ok(())
}

/// One hint: how many more rounds would probably make the answer certain, or the same experiment on an
/// installed server. None if runs are missing: another note says how to make them.
fn next(experiment: &Experiment, summary: &Summary, place: Option<&Path>) -> Option<String> {
    if summary.missing_runs > 0 {
        return None;
    }
    if let Some(more) = more_rounds(summary) {
        return Some(match place {
            Some(place) => {
                let path = place.display();
                format!("more rounds may make it certain: dnslab run --resume {path} --more {more}")
            }
            None => {
                let made = summary.variants.iter().map(|its| its.valid_runs + its.other_runs);
                let rounds = made.max().unwrap_or_default() + more;
                format!("more rounds may make it certain: --set repeat.runs={rounds}")
            }
        });
    }
    let plain = [Transport::Udp, Transport::Tcp, Transport::Dot];
    let could_be_another = experiment.variants.iter().all(|variant| {
        variant.server.kind.started() == Some(ServerKind::Embedded)
            && variant.behind().is_empty()
            && plain.contains(&variant.load.transport)
    });
    // Both serve all three transports as Debian installs them.
    let mut known = [ServerKind::Bind, ServerKind::Nsd].into_iter().filter(|_| could_be_another);
    let kind = known.find(|kind| is_installed(*kind))?;
    let (title, name) = (title(kind), kind.name());
    Some(format!("the same on {title}, which is installed here: --set server.kind={name}"))
}
