//! `--publish`: the settings of a measurement that can be defended.

use std::time::Duration;

use dnslab_settings::{Experiment, Mode};

/// Loads are at least this long.
const LOAD: Duration = Duration::from_secs(30);
const COMMON: Duration = Duration::from_secs(10);

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
    let is_own = |key: &str| own.iter().any(|set| set.split('=').next() == Some(key));
    let further = sets.into_iter().filter(|(key, _)| !is_own(key));
    further.map(|(key, value)| format!("{key}={value}")).collect()
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
