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
    let of_fact = |condition: Condition| {
        move |FactChange { name, then, now }: FactChange| ConditionChange {
            condition,
            name,
            variants: Vec::new(),
            then: Some(then),
            now,
        }
    };
    let host = changed_facts(&base.session.host, &new.session.host);
    let of_host = |condition: Condition, names: &'static [&'static str]| {
        let host = host.clone().into_iter();
        host.filter(move |it| names.contains(&it.name.as_str())).map(of_fact(condition))
    };
    let is_file = |it: &FactChange| FILES.iter().any(|kind| it.name.starts_with(kind));
    let inputs = changed_facts(&base.session.inputs, &new.session.inputs).into_iter();
    let mut found: Vec<ConditionChange> = of_host(Condition::Machine, &MACHINE)
        .chain(of_host(Condition::System, &SYSTEM))
        .chain(inputs.filter(is_file).map(of_fact(Condition::Experiment)))
        .collect();
    let mut note = |condition, name: &str, then: String, now: String| {
        if then != now {
            let (name, variants) = (name.to_owned(), Vec::new());
            let (then, now) = (Some(then), Some(now));
            found.push(ConditionChange { condition, name, variants, then, now });
        }
    };
    note(Condition::Dnslab, "dnslab", base.session.dnslab.clone(), new.session.dnslab.clone());
    let turns = |ns: Option<u64>| if ns.is_some() { "slices" } else { "whole runs" }.to_owned();
    note(
        Condition::Experiment,
        "alternation",
        turns(base.session.slice_ns),
        turns(new.session.slice_ns),
    );
    found.extend(settings(base, new, variants));
    found.extend(of_records(base, new, variants));
    found.sort_by_key(|change| change.condition);
    found
}

/// What the two experiments have otherwise; nothing if one of them cannot be read.
fn settings(
    base: WholeSession<'_>,
    new: WholeSession<'_>,
    variants: &[String],
) -> Vec<ConditionChange> {
    let read = |whole: WholeSession<'_>| Document::of_file(whole.experiment).ok();
    let is_known = !base.experiment.is_empty() && !new.experiment.is_empty();
    let Some((then, now)) = read(base).zip(read(new)).filter(|_| is_known) else {
        return Vec::new();
    };
    let change = |SettingChange { variants: mut of, key, then, now }: SettingChange| {
        let is_of_all = of.is_empty();
        of.retain(|name| variants.contains(name));
        if !is_of_all && of.is_empty() {
            return None;
        }
        if of.len() == variants.len() {
            of.clear();
        }
        // The program of the server is what a gate compares.
        let is_program = ["server.binary", "server.root"].contains(&key);
        let condition = if is_program { Condition::Server } else { Condition::Experiment };
        Some(ConditionChange { condition, name: key.to_owned(), variants: of, then, now })
    };
    differences(&then, &now).into_iter().filter_map(change).collect()
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
            let of = |whole: WholeSession<'_>| {
                let is_own = |record: &&RunRecord| record.variant == *variant && record.is_valid();
                whole.records.iter().find(is_own).map(fact).filter(|value| !value.is_empty())
            };
            // What an older dnslab did not note is not compared.
            let Some((then, now)) = of(base).zip(of(new)) else { continue };
            if then == now {
                continue;
            }
            let (then, now) = (Some(then), Some(now));
            match of_fact.iter_mut().find(|of| (&of.then, &of.now) == (&then, &now)) {
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
