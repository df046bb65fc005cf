//! `cargo xtask versus`: dnslab's load engine and its peers on this machine, in alternation, pinned the same
//! way. `evidence/BENCHMARKS.md` says what is measured, and what can mislead.

mod bench;
pub(crate) mod dnslab;
mod dnsperf;
pub(crate) mod figures;
mod reflector;
mod sample;
mod server;
mod table;
mod windows;
mod works;
mod zone;

use std::cell::RefCell;
use std::path::Path;

use anyhow::{Context as _, Result};
use bench::Bench;
use dnslab::Dnslab;
use dnslab_lab::cpus;
use dnslab_record::Fact;
use dnsperf::Dnsperf;
use rustix::thread::{CpuSet, sched_setaffinity};
use sample::Sample;
use serde::Serialize;
use table::{BatchDelayRow, Comparison, GeneratorRow, PacingRow};

use crate::arguments::{Options, Work};
use crate::machine;
use crate::process::{Stop, scratch, write};

/// The results of one work, and in the end of all works.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcome {
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) pacing: Vec<PacingRow>,
    pub(crate) generators: Vec<GeneratorRow>,
    pub(crate) batch_delays: Vec<BatchDelayRow>,
    /// What was left out, or must be known to read the tables.
    pub(crate) notes: Vec<String>,
    pub(crate) samples: Vec<Sample>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.comparisons.extend(other.comparisons);
        self.pacing.extend(other.pacing);
        self.generators.extend(other.generators);
        self.batch_delays.extend(other.batch_delays);
        self.notes.extend(other.notes);
        self.samples.extend(other.samples);
    }
}

#[derive(Debug, Serialize)]
struct File<'a> {
    /// The lines above the tables.
    machine: &'a [Fact],
    /// Runs of each program for each case.
    rounds: u32,
    /// Length of the measured window.
    seconds: f64,
    outcome: &'a Outcome,
    /// What could not be measured.
    failures: &'a [String],
}

/// Measures and prints the results. `false` if a work could not be measured. A missed aim is a finding, not a
/// failure.
///
/// # Errors
/// When nothing can be measured, or a signal came.
pub(crate) fn versus(options: &Options) -> Result<bool> {
    let stop = Stop::listen()?;
    let allowed = cpus::allowed();
    let (server_cpu, load_cpu) = choose(&allowed);
    let folder = scratch("versus")?;
    let (dnslab, mut outcome) = (Dnslab::find(options.dnslab.as_deref())?, Outcome::default());
    let peers = Dnsperf::find(&options.dnsperf).unwrap_or_else(|error| {
        outcome.notes.push(format!("{error:#}"));
        Vec::new()
    });
    if server_cpu == load_cpu {
        let note = "one CPU only: server and load share it, so no figure says what it should";
        outcome.notes.push(note.to_owned());
    }
    let mut machine = machine::facts();
    stay_away(&allowed, load_cpu);
    let bench = Bench {
        options,
        stop,
        folder: folder.path().to_owned(),
        zone: zone::write(folder.path())?,
        server_cpu,
        load_cpu,
        dnslab,
        peers,
        repeated: RefCell::default(),
    };
    let before = [server_cpu, load_cpu].map(machine::CpuTime::now);
    let failures = measure(&bench, &mut outcome)?;
    outcome.notes.extend(bench.repeated.take());
    let after = [server_cpu, load_cpu].map(machine::CpuTime::now);
    let stolen = [0, 1].map(|place| after[place].stolen_since(before[place]) * 100.0);
    machine.extend(facts_of(&bench, stolen));
    print(&machine, options, &outcome, &failures);
    if let Some(path) = &options.json {
        write_json(path, &machine, options, &outcome, &failures)?;
    }
    Ok(failures.is_empty())
}

/// Does one work after another, also after a failure. Returns the failures.
fn measure(bench: &Bench<'_>, outcome: &mut Outcome) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    for work in bench.options.works() {
        let done = match work {
            Work::Udp => works::udp(bench),
            Work::Streams => works::streams(bench),
            Work::Clients => works::clients(bench),
            Work::Quic => works::quic(bench),
            Work::Generator => works::generator(bench),
            Work::Pacing => works::pacing(bench),
            Work::BatchDelay => works::batch_delay(bench),
            Work::ReceiveTime => works::receive_time(bench),
        };
        bench.stop.check()?;
        match done {
            Ok(done) => outcome.add(done),
            Err(error) => failures.push(format!("{} was not measured: {error:#}", work.name())),
        }
    }
    Ok(failures)
}

/// CPU of the servers and CPU of the load: the first two that this process may use.
fn choose(allowed: &[usize]) -> (usize, usize) {
    let server = allowed.first().copied().unwrap_or(0);
    (server, allowed.get(1).copied().unwrap_or(server))
}

/// Keeps this process off the CPU of the load.
fn stay_away(allowed: &[usize], load_cpu: usize) {
    let mut set = CpuSet::new();
    allowed.iter().filter(|cpu| **cpu != load_cpu).for_each(|cpu| set.set(*cpu));
    // With one CPU the set is empty, and the kernel refuses it: there is nothing to keep off.
    sched_setaffinity(None, &set).ok();
}

/// Facts about these runs that stand beside those of the machine.
fn facts_of(bench: &Bench<'_>, stolen_percent: [f64; 2]) -> Vec<Fact> {
    let fact = |name: &str, value| Fact { name: name.to_owned(), value };
    let peers: Vec<&str> = bench.peers.iter().map(|peer| peer.name.as_str()).collect();
    vec![
        fact(
            "pinned",
            format!("server on CPU {}, load on CPU {}", bench.server_cpu, bench.load_cpu),
        ),
        fact(
            "stolen while measuring",
            format!(
                "{:.2} % of the server's CPU, {:.2} % of the load's",
                stolen_percent[0], stolen_percent[1]
            ),
        ),
        fact("measured", bench.dnslab.version.clone()),
        fact("against", peers.join(", ")),
    ]
}

/// Failures go to standard error.
fn print(machine: &[Fact], options: &Options, outcome: &Outcome, failures: &[String]) {
    for fact in machine {
        println!("{:24} {}", fact.name, fact.value);
    }
    println!("{:24} {} of {:?} each", "runs", options.rounds(), options.duration());
    let titled = |title: &str, is_empty: bool, text: String| {
        if !is_empty {
            println!("\n{title}\n{text}");
        }
    };
    titled(
        "medians of all rounds; ratio of the medians, and of the pairs of one round",
        outcome.comparisons.is_empty(),
        table::comparisons(&outcome.comparisons),
    );
    titled(
        "one core of each generator, on dnslab serve with the other core",
        outcome.generators.is_empty(),
        table::generators(&outcome.generators),
    );
    titled(
        "pacing, counted at the far end in windows of 10 ms",
        outcome.pacing.is_empty(),
        table::pacing(&outcome.pacing),
    );
    titled(
        "dnslab alone: batch delays against BIND, clocks against the reflector (windows) and BIND (rates)",
        outcome.batch_delays.is_empty(),
        table::batch_delays(&outcome.batch_delays),
    );
    for note in &outcome.notes {
        println!("note: {note}");
    }
    for failure in failures {
        eprintln!("error: {failure}");
    }
}

fn write_json(
    path: &Path,
    machine: &[Fact],
    options: &Options,
    outcome: &Outcome,
    failures: &[String],
) -> Result<()> {
    let seconds = options.duration().as_secs_f64();
    let file = File { machine, rounds: options.rounds(), seconds, outcome, failures };
    let text = serde_json::to_string_pretty(&file).context("cannot write the figures as JSON")?;
    write(path, text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_load_get_a_cpu_each() {
        let check = |allowed: &[usize], expected| assert_eq!(choose(allowed), expected);
        check(&[0, 1], (0, 1));
        check(&[3, 5, 7], (3, 5));
        check(&[2], (2, 2));
        check(&[], (0, 0));
    }
}
