//! `dnslab replay`: the clients of a capture, played once against a server that runs already.

use std::time::Duration;

use anyhow::Context as _;
use dnslab_experiment::Census;
use dnslab_settings::{Alternate, Document, Draft, Experiment, find};

use crate::arguments::{Load, Replay};
use crate::exit::{Exit, Failure};
use crate::load::{aim, apply, check, draft_without_target};

/// A whole capture has no more than a week, the longest load.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

pub(crate) fn replay(arguments: &Replay) -> Result<Exit, Failure> {
    apply(experiment(arguments)?, &arguments.load.traffic)
}

pub(crate) fn experiment(arguments: &Replay) -> Result<Experiment, Failure> {
    let Replay { capture, compare_answers, load: Load { traffic, options } } = arguments;
    // The folder that a command is given in is that of its paths.
    let path = std::path::absolute(capture).context("there is no current folder")?;
    let text = path.to_str().ok_or_else(|| {
        Failure::bad_input(anyhow::anyhow!("the path `{}` is not UTF-8: rename it", path.display()))
    })?;
    let mut document = Document::of_options("replay");
    document.argument(find("load.capture").expect("there is such a key"), text);
    let name = capture.file_name().unwrap_or_default().to_string_lossy();
    let target = &traffic.target;
    let question = match compare_answers {
        None => format!("What does {target} answer the clients of {name}?"),
        Some(other) => {
            format!("Do {target} (target) and {other} (other) tell the clients of {name} the same?")
        }
    };
    let mut draft = draft_without_target(("replay", document), traffic, options, question);
    if let Some(other) = compare_answers {
        add_other(&mut draft, other)?;
    }
    aim(&mut draft.variants[0], target)?;
    for variant in &mut draft.variants {
        variant.load.warm_up.set_default(Duration::ZERO);
    }
    let load = &draft.variants[0].load;
    if !load.duration.is_written() {
        let census = Census::take(&path, WEEK).map_err(Failure::bad_input)?;
        // All slices side by side have the whole of it; the last query is within.
        let slices = load.factor.value.0.ceil().max(1.0);
        let seconds = census.length.as_secs_f64() / (load.speed.value.0 * slices);
        let length = Duration::try_from_secs_f64(seconds).ok().filter(|length| *length < WEEK);
        let Some(length) = length.filter(|_| !census.goes_on) else {
            return Err(Failure::bad_input(anyhow::anyhow!(
                "the load would last longer than a week: say how long it is to be with --duration"
            )));
        };
        let length = length + Duration::from_millis(1);
        let duration = length.saturating_sub(load.warm_up.value).max(Duration::from_millis(1));
        draft.variants.iter_mut().for_each(|variant| variant.load.duration.set(duration));
    }
    check(draft)
}

/// Adds the server whose answers those of the target are compared with. It is the baseline.
fn add_other(draft: &mut Draft, other: &str) -> Result<(), Failure> {
    const OTHER: &str = "other";
    let place = draft.add(OTHER);
    aim(&mut draft.variants[place], other)?;
    draft.rename(0, "target");
    draft.top.baseline.set(Some(OTHER.to_owned()));
    // They would not take turns anyway; so nobody is told why.
    draft.repeat.alternate.set_default(Alternate::Runs);
    draft.variants.iter_mut().for_each(|variant| variant.compare.answers.set(true));
    Ok(())
}
