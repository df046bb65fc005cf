//! `cargo xtask truth`: plays experiments whose truth is known, and writes the page that says how often
//! dnslab was right.
//!
//! Every experiment is one line of `truth.jsonl`, so portions from several days and machines add up. The page
//! is made of that file alone.

mod answer;
mod earlier;
mod experiment;
mod figures;
mod log;
mod page;
mod plan;
mod planter;
mod play;
mod shown;
mod tables;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use log::{Log, Played};
use plan::KINDS;
pub(crate) use plan::Kind;
use play::Player;

use crate::arguments::TruthOptions;
use crate::process::{Stop, scratch, write};
use crate::versus::dnslab::Dnslab;

/// Expected length of an experiment before one of its kind was played.
const EXPECTED: Duration = Duration::from_secs(75);
const LOG: &str = "truth.jsonl";
const PAGE: &str = "TRUTH.md";

/// Plays experiments for a time, and writes the page anew.
///
/// # Errors
/// When dnslab cannot be run, when two experiments in succession leave no report, or when the log
/// or the page cannot be read or written.
pub(crate) fn truth(options: &TruthOptions) -> Result<()> {
    let stop = Stop::listen()?;
    let scratch = scratch("truth")?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let default = root.context("xtask has no workspace around it")?.join("evidence");
    let folder = match &options.folder {
        Some(folder) => folder.clone(),
        None if options.smoke => scratch.path().to_owned(),
        None => default,
    };
    let (log_path, page_path) = (folder.join(LOG), folder.join(PAGE));
    let Log { mut played, earlier } = log::read(&log_path)?;
    let mut player = None;
    let (begun, mut failed_before) = (Instant::now(), false);
    for number in 0.. {
        let kind = if options.smoke {
            let Some((kind, ..)) = KINDS.get(number) else { break };
            *kind
        } else {
            let is_wanted = |kind| options.only.is_empty() || options.only.contains(&kind);
            let done = |kind| if is_wanted(kind) { count(&played, kind) } else { kind.target() };
            let Some(kind) = plan::next(done) else {
                println!("these kinds have reached their targets");
                break;
            };
            kind
        };
        let late = begun.elapsed() + expected(&played, kind) > options.length;
        if stop.is_set() || (late && !options.smoke) {
            break;
        }
        if player.is_none() {
            let dnslab = Dnslab::find(options.dnslab.as_deref())?;
            player = Some(Player::new(dnslab, scratch.path(), options.smoke));
        }
        let Some(player) = &mut player else { break };
        let line = player.play(kind, count(&played, kind))?;
        log::append(&log_path, &line)?;
        println!("{}", said(&line));
        if let (true, Some(failure)) = (failed_before, &line.failure) {
            bail!("two experiments in succession left no report, the last one: {failure}");
        }
        failed_before = line.failure.is_some();
        played.push(line);
    }
    let log = Log { played, earlier };
    write(&page_path, page::page(&log))?;
    println!("{} experiments in all: {}", log.played.len(), page_path.display());
    Ok(())
}

fn count(played: &[Played], kind: Kind) -> u32 {
    played.iter().filter(|played| played.kind == kind).count() as u32
}

/// As long as the longest of its kind so far.
fn expected(played: &[Played], kind: Kind) -> Duration {
    let seconds = played.iter().filter(|played| played.kind == kind).map(|played| played.seconds);
    seconds.reduce(f64::max).map_or(EXPECTED, Duration::from_secs_f64)
}

fn said(played: &Played) -> String {
    let marks: Vec<String> = played
        .comparisons
        .iter()
        .filter(|comparison| comparison.is_mark())
        .map(|comparison| {
            format!("{} {} {}", comparison.variant, comparison.verdict, comparison.metric)
        })
        .collect();
    let found = match (&played.failure, played.kind.limit()) {
        (Some(failure), _) => format!("no report: {failure}"),
        (None, Some(_)) => format!("bottleneck: {}", played.limits.join(", ")),
        (None, None) if marks.is_empty() => "no marks".to_owned(),
        (None, None) => marks.join(", "),
    };
    let name = played.kind.name();
    format!("{name}, {}, {:.0} s: {found}", played.transport, played.seconds)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_page_is_that_of_the_log() {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evidence");
        let made = page::page(&log::read(&kept.join(LOG)).unwrap());
        let written = fs::read_to_string(kept.join(PAGE)).unwrap();
        assert_eq!(written, made, "write it anew: cargo xtask truth --for 0s");
    }

    #[test]
    fn the_next_experiment_is_expected_to_take_as_long_as_the_longest() {
        let lasting = |seconds| Played { seconds, ..page::tests::played(Kind::Same, 0) };
        let played = [lasting(40.0), lasting(50.0), lasting(45.0)];
        assert_eq!(expected(&played, Kind::Same), Duration::from_secs(50));
        assert_eq!(expected(&played, Kind::Loss), EXPECTED);
        assert_eq!((count(&played, Kind::Same), count(&played, Kind::Loss)), (3, 0));
    }
}
