//! What differs between two sessions beside what is compared.

use dnslab_record::RunRecord;
use dnslab_settings::{Document, SettingChange, differences};
use serde::Serialize;

use crate::fact_change::{FactChange, changed_facts};
use crate::whole_session::WholeSession;

/// Facts of the host that a machine is known by. Nothing else says which machine it was: two rented machines
/// with the same of all of these are taken for one.
const MACHINE: [&str; 5] = ["CPU", "CPUs", "threads of one core", "memory", "virtualisation"];

/// Facts of the host that a figure may depend on.
const SYSTEM: [&str; 7] = [
    "kernel",
    "operating system",
    "CPU frequency governor",
    "clock source",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.somaxconn",
];

/// What the names of facts of an input begin with. The other inputs are servers, which the records know.
const FILES: [&str; 6] =
    ["query file", "capture", "population file", "client subnets", "hierarchy", "hosts"];

/// What a change is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Another machine: figures of two machines do not compare.
    Machine,
    /// dnslab itself.
    Dnslab,
    /// The experiment, or a file that its load is made from.
    Experiment,
    /// The system of the machine.
    System,
    /// The server under test. It is what is compared, if nothing else has changed.
    Server,
}

/// One thing that differs between the two sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConditionChange {
    /// What it is of.
    pub condition: Condition,
    /// Its name, e.g. `kernel` or `load.clients`.
    pub name: String,
    /// The variants in question; none if it is of all that ran in both.
    pub variants: Vec<String>,
    /// The value before; `None` if there is none, or it is not known.
    pub then: Option<String>,
    /// The value after.
    pub now: Option<String>,
}

/// What differs, the gravest first; `variants` are those that ran in both.
pub(crate) fn changed(
    base: WholeSession<'_>,
    new: WholeSession<'_>,
    variants: &[String],
) -> Vec<ConditionChange> {
    let sessions = [base.session, new.session];
    let mut found = Vec::new();
    for change in changed_facts(&base.session.host, &new.session.host) {
        let name = change.name.as_str();
        if MACHINE.contains(&name) {
            found.push(ConditionChange::of_fact(Condition::Machine, change));
        } else if SYSTEM.contains(&name) {
            found.push(ConditionChange::of_fact(Condition::System, change));
        }
    }
    let inputs = changed_facts(&base.session.inputs, &new.session.inputs).into_iter();
    let files = inputs.filter(|input| FILES.iter().any(|kind| input.name.starts_with(kind)));
    found.extend(files.map(|file| ConditionChange::of_fact(Condition::Experiment, file)));
    let dnslab = sessions.map(|session| session.dnslab.as_str());
    found.extend(ConditionChange::of_values(Condition::Dnslab, "dnslab", dnslab));
    let turns = sessions.map(|session| match session.slice_ns {
        Some(_) => "slices",
        None => "whole runs",
    });
    found.extend(ConditionChange::of_values(Condition::Experiment, "alternation", turns));
    found.extend(settings(base, new, variants));
    found.extend(of_records(base, new, variants));
    found.sort_by_key(|change| change.condition);
    found
}

impl ConditionChange {
    fn of_fact(condition: Condition, fact: FactChange) -> Self {
        let FactChange { name, then, now } = fact;
        Self { condition, name, variants: Vec::new(), then: Some(then), now }
    }

    /// `None` if the values are equal.
    fn of_values(condition: Condition, name: &str, [then, now]: [&str; 2]) -> Option<Self> {
        let fact =
            FactChange { name: name.to_owned(), then: then.to_owned(), now: Some(now.to_owned()) };
        (then != now).then(|| Self::of_fact(condition, fact))
    }

    /// A setting that differs, in these of the variants that ran in both; `None` if it is of none of them.
    fn of_setting(change: SettingChange, variants: &[String]) -> Option<Self> {
        let SettingChange { variants: mut concerned, key, then, now } = change;
        let is_of_all = concerned.is_empty();
        concerned.retain(|name| variants.contains(name));
        if !is_of_all && concerned.is_empty() {
            return None;
        }
        if concerned.len() == variants.len() {
            concerned.clear();
        }
        // The program of the server is what a gate compares.
        let is_program = ["server.binary", "server.root"].contains(&key);
        let condition = if is_program { Condition::Server } else { Condition::Experiment };
        Some(Self { condition, name: key.to_owned(), variants: concerned, then, now })
    }
}

/// What the two experiments have otherwise; nothing if one of them cannot be read.
fn settings(
    base: WholeSession<'_>,
    new: WholeSession<'_>,
    variants: &[String],
) -> Vec<ConditionChange> {
    let [then, now] = [base.experiment, new.experiment].map(|experiment| {
        let known = Some(experiment).filter(|experiment| !experiment.is_empty());
        known.and_then(|experiment| Document::of_file(experiment).ok())
    });
    let (Some(then), Some(now)) = (then, now) else { return Vec::new() };
    let changes = differences(&then, &now).into_iter();
    changes.filter_map(|change| ConditionChange::of_setting(change, variants)).collect()
}

/// A fact of a run.
type OfRun = (Condition, &'static str, fn(&RunRecord) -> String);

/// Facts of the runs as they were. The user of a server is none: dnslab makes a new one for each run.
const OF_RUNS: [OfRun; 5] = [
    (Condition::Server, "version", |record| record.server.title()),
    (Condition::Server, "TLS library", |record| record.server.tls_library.clone()),
    (Condition::Experiment, "CPUs of the server", |record| format!("{:?}", record.server.cpus)),
    (Condition::Experiment, "CPUs of the load", |record| format!("{:?}", record.load.cpus)),
    (Condition::Experiment, "threads of the server", |record| record.server.threads.to_string()),
];

/// What differs between the first runs that count of each variant.
fn of_records(
    base: WholeSession<'_>,
    new: WholeSession<'_>,
    variants: &[String],
) -> Vec<ConditionChange> {
    let mut found: Vec<ConditionChange> = Vec::new();
    for (condition, name, fact) in OF_RUNS {
        let mut of_fact: Vec<ConditionChange> = Vec::new();
        for variant in variants {
            let [then, now] = [base, new].map(|whole| {
                whole.valid_runs(variant).next().map(fact).filter(|value| !value.is_empty())
            });
            // What an older dnslab did not note is not compared.
            if then.is_none() || now.is_none() || then == now {
                continue;
            }
            match of_fact.iter_mut().find(|known| (&known.then, &known.now) == (&then, &now)) {
                Some(known) => known.variants.push(variant.clone()),
                None => of_fact.push(ConditionChange {
                    condition,
                    name: name.to_owned(),
                    variants: vec![variant.clone()],
                    then,
                    now,
                }),
            }
        }
        for change in &mut of_fact {
            if change.variants.len() == variants.len() {
                change.variants.clear();
            }
        }
        found.append(&mut of_fact);
    }
    found
}
