//! `dnslab replay`: the clients of a capture, played once against a server that runs already.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use dnslab_experiment::{Census, capture_options};
use dnslab_lab::dnstap_socket::{DnstapAddress, ReceiveUntil};
use dnslab_settings::{Alternate, Document, Draft, Experiment, find};
use dnslab_wire::units::duration;

use crate::arguments::{Load, Replay};
use crate::exit::{Exit, Failure};
use crate::kept::needs_folder;
use crate::load::{aim, apply, check, draft_without_target};
use crate::monitoring::Doors;
use crate::record::{self, Live};
use crate::{signals, terminal};

/// A whole capture has no more than a week, the longest load.
const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A server may send what it was asked so much later: Unbound collects messages for a second.
const LATE: Duration = Duration::from_secs(2);

pub(crate) fn replay(arguments: &Replay) -> Result<Exit, Failure> {
    match live_address(&arguments.capture)? {
        Some(address) => replay_live(arguments, &address),
        None => {
            let ((experiment, census), traffic) = (found(arguments)?, &arguments.load.traffic);
            if !traffic.output.is_quiet() {
                for text in census.iter().flat_map(Census::remarks) {
                    terminal::remark(&format!("note: {text}"), traffic.output);
                }
            }
            let doors = Doors::open(&traffic.monitor, traffic.output)?;
            apply(experiment, doors, traffic, None)
        }
    }
}

/// The socket that is named in the place of a capture.
pub(crate) fn live_address(capture: &Path) -> Result<Option<DnstapAddress>, Failure> {
    let text = capture.to_str().filter(|text| DnstapAddress::is_meant(text));
    text.map(|text| text.parse().map_err(Failure::bad_input)).transpose()
}

#[cfg(test)]
pub(crate) fn experiment(arguments: &Replay) -> Result<Experiment, Failure> {
    found(arguments).map(|(experiment, _)| experiment)
}

/// The experiment, and what the capture has, where its length is that of the load.
fn found(arguments: &Replay) -> Result<(Experiment, Option<Census>), Failure> {
    // The folder that a command is given in is that of its paths.
    let path = std::path::absolute(&arguments.capture).context("there is no current folder")?;
    let mut draft = draft_of(arguments, &path)?;
    let load = &draft.variants[0].load;
    let mut census = None;
    if !load.duration.is_written() {
        let options = capture_options(&load.checked());
        let taken = Census::take(&path, &options, WEEK).map_err(Failure::bad_input)?;
        let taken = census.insert(taken);
        if taken.goes_on || !last_as_long_as(taken, &mut draft) {
            return Err(Failure::bad_input(anyhow!(
                "the load would last longer than a week: say how long it is to be with --duration"
            )));
        }
    }
    Ok((check(draft)?, census))
}

/// The experiment of the command line, with the capture at this path.
fn draft_of(arguments: &Replay, path: &Path) -> Result<Draft, Failure> {
    let Replay { capture, compare_answers, load: Load { traffic, options }, .. } = arguments;
    let text = path.to_str().ok_or_else(|| {
        Failure::bad_input(anyhow!("the path `{}` is not UTF-8: rename it", path.display()))
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
    Ok(draft)
}

/// Lets a load last as long as its capture: all chunks side by side have the whole of it, and the last query is
/// within. Returns false if that is beyond all loads.
fn last_as_long_as(census: &Census, draft: &mut Draft) -> bool {
    let load = &draft.variants[0].load;
    let chunks = load.factor.value.0.ceil().max(1.0);
    let speed = load.speed.value.0;
    let seconds = census.length.as_secs_f64() / (speed * chunks);
    let length = Duration::try_from_secs_f64(seconds).ok().filter(|length| *length < WEEK);
    let Some(length) = length else { return false };
    // The last query is within, and no more of the capture is asked for than there is.
    let length = length + Duration::from_millis(1).div_f64(speed.max(1.0));
    let duration = length.saturating_sub(load.warm_up.value).max(Duration::from_millis(1));
    draft.variants.iter_mut().for_each(|variant| variant.load.duration.set(duration));
    true
}

/// Records what comes to a socket, for as long as the load needs it, and plays it from there.
fn replay_live(arguments: &Replay, address: &DnstapAddress) -> Result<Exit, Failure> {
    let traffic = &arguments.load.traffic;
    needs_folder(&traffic.results, "what comes is recorded, and played from the recording")?;
    let recording = record::create_in(&traffic.results.results)?;
    let path = recording.path().to_owned();
    let mut draft = draft_of(arguments, &path)?;
    if !draft.variants[0].load.duration.is_written() {
        return Err(Failure::bad_input(anyhow!(
            "a socket has no end: say how long its clients are to be recorded and played with --duration"
        )));
    }
    // What is wrong with the load is said before anybody waits.
    check(draft.clone())?;
    let load = &draft.variants[0].load;
    let length = load.warm_up.value.saturating_add(load.duration.value);
    let wanted = length.mul_f64(load.speed.value.0 * load.factor.value.0.ceil().max(1.0));
    let doors = Doors::open(&traffic.monitor, traffic.output)?;
    let stop = signals::stop_flag().context("cannot listen to signals")?;
    let live = Live::open(address, &arguments.access, traffic.output.is_quiet())?;
    let file = recording.reopen().with_context(|| format!("cannot write {}", path.display()))?;
    let until = ReceiveUntil { duration: Some(wanted.saturating_add(LATE)), queries: None };
    let options = capture_options(&load.checked());
    let received = live.receive(file, (until, options.clone()), &stop)?;
    live.conclude(&received, path.display())?;
    drop(live);
    let (_, path) = recording.keep().context("cannot keep the recording")?;
    let how = format!("dnslab replay {} {}", path.display(), traffic.target);
    if record::was_interrupted(&stop) {
        tell!("interrupted; to play what came: {how}");
        return Ok(Exit::Interrupted);
    }
    let hint = |failure: Failure| Failure {
        exit: failure.exit,
        error: anyhow!("{}\n  hint:    the recording is kept: {how}", failure.error),
    };
    let census = Census::take(&path, &options, wanted).map_err(Failure::bad_input).map_err(hint)?;
    if census.length < wanted && !census.goes_on {
        // Nobody asked at the end of it.
        last_as_long_as(&census, &mut draft);
        if !traffic.output.is_quiet() {
            let has = duration::rounded(census.length.as_nanos() as f64);
            tell!("the queries that came are from {has}: the load lasts as long");
        }
    }
    check(draft)
        .and_then(|experiment| apply(experiment, doors, traffic, Some(&path)))
        .map_err(|failure| if path.exists() { hint(failure) } else { failure })
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
