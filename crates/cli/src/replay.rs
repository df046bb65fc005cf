//! `dnslab replay`: the clients of a capture, played once against a server that runs already.

use std::time::Duration;

use anyhow::Context as _;
use dnslab_experiment::Census;
use dnslab_settings::{Document, Experiment, find};

use crate::arguments::{Load, Replay};
use crate::exit::{Exit, Failure};
use crate::load::{apply, check, draft};

/// A whole capture has no more than a week, the longest load.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

pub(crate) fn replay(arguments: &Replay) -> Result<Exit, Failure> {
    apply(experiment(arguments)?, &arguments.load.traffic)
}

pub(crate) fn experiment(arguments: &Replay) -> Result<Experiment, Failure> {
    let Replay { capture, load: Load { traffic, options } } = arguments;
    // The folder that a command is given in is that of its paths.
    let path = std::path::absolute(capture).context("there is no current folder")?;
    let text = path.to_str().ok_or_else(|| {
        Failure::bad_input(anyhow::anyhow!("the path `{}` is not UTF-8: rename it", path.display()))
    })?;
    let mut document = Document::of_options("replay");
    document.argument(find("load.capture").expect("there is such a key"), text);
    let question = format!(
        "What does {} answer the clients of {}?",
        traffic.target,
        capture.file_name().unwrap_or_default().to_string_lossy()
    );
    let mut draft = draft(("replay", document), traffic, options, question)?;
    let load = &mut draft.variants[0].load;
    load.warm_up.set_default(Duration::ZERO);
    if !load.duration.is_written() {
        let census = Census::take(&path, WEEK).map_err(Failure::bad_input)?;
        // All chunks side by side have the whole of it; the last query is within.
        let chunks = load.factor.value.0.ceil().max(1.0);
        let seconds = census.length.as_secs_f64() / (load.speed.value.0 * chunks);
        let length = Duration::try_from_secs_f64(seconds).ok().filter(|length| *length < WEEK);
        let Some(length) = length.filter(|_| !census.goes_on) else {
            return Err(Failure::bad_input(anyhow::anyhow!(
                "the load would last longer than a week: say how long it is to be with --duration"
            )));
        };
        let length = length + Duration::from_millis(1);
        load.duration.set(length.saturating_sub(load.warm_up.value).max(Duration::from_millis(1)));
    }
    check(draft)
}
