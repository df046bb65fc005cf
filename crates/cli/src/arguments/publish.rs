//! `--publish`: the settings of a measurement that can be defended.

use std::time::Duration;

use dnslab_experiment::PilotFindings;
use dnslab_settings::{Experiment, Load, Mode, Variant};
use dnslab_wire::units::duration;

/// Loads are at least this long.
const LOAD: Duration = Duration::from_secs(30);
const COMMON: Duration = Duration::from_secs(10);
/// In less, a pilot has too few intervals.
const PILOT: Duration = Duration::from_secs(10);

/// As many sessions as give an interval of prediction that is not much wider than that of more.
const SESSIONS: &str = "5";
/// Others of the machine, its clock rate and its temperature have changed by then.
const PAUSE: &str = "5m";
/// How far the interval of each session may reach, and the most rounds that it takes.
const UNTIL: &str = "1%";
const ROUNDS: &str = "30";

/// The settings, without those that the user named himself.
pub(crate) fn sets(experiment: &Experiment, own: &[String]) -> Vec<String> {
    let mut sets = vec![
        ("repeat.sessions", SESSIONS),
        ("repeat.session_pause", PAUSE),
        ("repeat.until", UNTIL),
        ("repeat.runs", ROUNDS),
    ];
    if experiment.variants.iter().any(|variant| variant.load.duration < LOAD) {
        sets.push(("load.duration", "30s"));
    }
    if experiment.common_load().is_some_and(|common| common.duration < COMMON) {
        sets.push(("common.duration", "10s"));
    }
    if experiment.common_load().is_some() {
        sets.push(("common.shares", "10%,50%,80%"));
    }
    let further = sets.into_iter().filter(|(key, _)| !is_own(own, key));
    further.map(|(key, value)| format!("{key}={value}")).collect()
}

/// Whether the user named this key himself.
fn is_own(own: &[String], key: &str) -> bool {
    own.iter().any(|set| set.split('=').next() == Some(key))
}

/// Whether a pilot is to say how long loads are: all are closed loops, and the user did not say it himself.
pub(crate) fn wants_pilot(experiment: &Experiment, own: &[String]) -> bool {
    let is_closed = |variant: &Variant| matches!(variant.load.mode, Mode::Closed { .. });
    let is_said = ["load.warm_up", "load.duration"].iter().all(|key| is_own(own, key));
    !is_said && experiment.variants.iter().all(is_closed)
}

/// What the pilot found, without what the user named himself.
pub(crate) fn found_sets(
    experiment: &Experiment,
    found: &PilotFindings,
    own: &[String],
) -> Vec<String> {
    let longest = |time: fn(&Load) -> Duration| {
        experiment.variants.iter().map(|variant| time(&variant.load)).max().unwrap_or_default()
    };
    let warm_up = found.warm_up.max(longest(|load| load.warm_up));
    let length = found.length.max(longest(|load| load.duration));
    let sets = [("load.warm_up", warm_up), ("load.duration", length)];
    let further = sets.into_iter().filter(|(key, _)| !is_own(own, key));
    further.map(|(key, value)| format!("{key}={}", duration::write(value))).collect()
}

/// The lengths of the pilots: as long as a load, and each twice as long as the one before, for where that had not settled.
pub(crate) fn pilots(experiment: &Experiment) -> [Duration; 4] {
    let loads = experiment.variants.iter().map(|variant| variant.load.duration);
    let first = loads.max().unwrap_or_default().max(PILOT);
    [1, 2, 4, 8].map(|times| first * times)
}

/// What is measured beside it: without the batching of the load generator, and with twice as many clients.
pub(crate) fn beside(experiment: &Experiment) -> Vec<String> {
    let is_closed = |mode: &Mode| matches!(mode, Mode::Closed { .. });
    if !experiment.variants.iter().all(|variant| is_closed(&variant.load.mode)) {
        return Vec::new();
    }
    let mut beside = vec!["load.batch_delay=0s".to_owned()];
    let mut clients = experiment.variants.iter().map(|variant| variant.load.clients);
    if let Some(first) = clients.next().filter(|first| clients.all(|other| other == *first)) {
        beside.push(format!("load.clients={}", first.saturating_mul(2)));
    }
    beside
}
