//! One experiment: `dnslab run`, and what its report says.

use std::collections::HashMap;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context as _, Result, bail};
use dnslab_lab::ServerKind;
use dnslab_record::RunStatus;
use dnslab_results::ResultsDirectory;
use serde::Deserialize;

use super::experiment::Experiment;
use super::log::{Compared, Estimate, METHOD, Played};
use super::plan::Kind;
use super::planter::Planter;
use crate::machine::{self, CpuTime};
use crate::process::Running;
use crate::versus::dnslab::{Dnslab, only_folder};

/// Limit of an experiment. The default one takes less than a minute.
const MAX_LENGTH: Duration = Duration::from_secs(600);
/// Each look takes microseconds.
const LOOK: Duration = Duration::from_millis(100);
/// Exit code for a command line or an experiment file that dnslab does not understand.
const BAD_INPUT: i32 = 2;
pub(crate) const CPU: &str = "server-cpu-per-query";

#[derive(Debug)]
pub(crate) struct Player {
    dnslab: Dnslab,
    folder: PathBuf,
    smoke: bool,
    /// CPU time per answer of each server and transport without a planted cost, as far as it was measured.
    cpu_ns: HashMap<(ServerKind, &'static str), f64>,
    /// What plants CPU time into servers of others, once it is made.
    planter: Option<Planter>,
}

/// What is read of `summary.json`.
#[derive(Debug, Deserialize)]
struct Report {
    variants: Vec<Variant>,
    #[serde(default)]
    comparisons: Vec<Comparison>,
}

#[derive(Debug, Deserialize)]
struct Variant {
    name: String,
    #[serde(default)]
    metrics: HashMap<String, Estimate>,
    outcomes: Outcomes,
}

#[derive(Debug, Deserialize)]
struct Outcomes {
    due: u64,
    answered: u64,
}

#[derive(Debug, Deserialize)]
struct Comparison {
    variant: String,
    metric: String,
    difference: Estimate,
    #[serde(default)]
    absolute: Option<Estimate>,
    verdict: Verdict,
}

#[derive(Debug, Deserialize)]
struct Verdict {
    verdict: String,
}

impl Player {
    /// `folder` exists and stays.
    pub(crate) fn new(dnslab: Dnslab, folder: &Path, smoke: bool) -> Self {
        Self { dnslab, folder: folder.to_owned(), smoke, cpu_ns: HashMap::new(), planter: None }
    }

    /// Plays experiment number `done` of a kind, from 0. An experiment without a report is a line, too.
    ///
    /// # Errors
    /// When dnslab cannot be started, or does not understand the experiment.
    pub(crate) fn play(&mut self, kind: Kind, done: u32) -> Result<Played> {
        let (transport, seed) = (kind.transport(done), kind.seed(done));
        let busy_ns = match kind.cost() {
            Some(share) => {
                Some((self.cpu_ns(kind.server(), transport, seed)? * share).round() as u64)
            }
            None => None,
        };
        let busy = busy_ns.map(|busy_ns| self.busy(kind.server(), busy_ns)).transpose()?;
        let experiment = Experiment::of(kind, transport, &busy.unwrap_or_default());
        let (begun, before) = (Instant::now(), CpuTime::of_all());
        let result = self.run(experiment, seed);
        let mut played = Played {
            method: METHOD,
            date: String::new(),
            cpu: fact("CPU"),
            kernel: fact("kernel"),
            dnslab: self.dnslab.version.clone(),
            seconds: (begun.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            stolen: CpuTime::of_all().stolen_since(before),
            kind,
            transport: transport.to_owned(),
            seed,
            busy_ns,
            comparisons: Vec::new(),
            lost: None,
            limits: Vec::new(),
            invalid_runs: 0,
            failure: None,
        };
        match result? {
            Ok(path) => take(&path, &mut played)?,
            Err(failure) => played.failure = Some(failure),
        }
        Ok(played)
    }

    /// The line of a variant whose answers cost so much CPU time more.
    fn busy(&mut self, server: ServerKind, busy_ns: u64) -> Result<String> {
        if server == ServerKind::Embedded {
            return Ok(format!("server.busy = \"{busy_ns}ns\""));
        }
        if self.planter.is_none() {
            self.planter = Some(Planter::new()?);
        }
        let planter = self.planter.as_ref().context("it has just been made")?;
        Ok(format!("server.binary = \"{}\"", planter.program(server, busy_ns)?.display()))
    }

    /// The server's CPU time per answer without a planted cost. It is measured once for each transport.
    fn cpu_ns(&mut self, server: ServerKind, transport: &'static str, seed: u64) -> Result<f64> {
        if let Some(known) = self.cpu_ns.get(&(server, transport)) {
            return Ok(*known);
        }
        let path = match self.run(Experiment::calibration(server, transport), seed)? {
            Ok(path) => path,
            Err(failure) => bail!("cannot measure the CPU time of an answer: {failure}"),
        };
        let report = report(&path)?;
        let cpu = report.variants.first().and_then(|variant| variant.metrics.get(CPU)?.value);
        let cpu = cpu.with_context(|| format!("{} has no {CPU}", path.display()))?;
        self.cpu_ns.insert((server, transport), cpu);
        Ok(cpu)
    }

    /// Runs an experiment to its end, even when a signal comes. Returns its results directory, or what dnslab
    /// said if it left none.
    fn run(&self, experiment: Experiment, seed: u64) -> Result<Result<PathBuf, String>> {
        let experiment = if self.smoke { experiment.tiny() } else { experiment };
        let (mut command, results) = self.dnslab.experiment(&experiment.file, &self.folder)?;
        command.args(["--set", &format!("repeat.seed={seed}")]);
        for setting in &experiment.settings {
            command.args(["--set", setting]);
        }
        // Ctrl-C goes to a whole process group, and this process is to end its work.
        command.process_group(0);
        let output = self.folder.join("output");
        let mut running = Running::start(&mut command, &output)?;
        let begun = Instant::now();
        let ended = loop {
            if let Some(ended) = running.collect()? {
                break ended;
            }
            if begun.elapsed() > MAX_LENGTH {
                return Ok(Err(format!("it was not done after {MAX_LENGTH:?}")));
            }
            thread::sleep(LOOK);
        };
        let said = fs::read(&output).context("cannot read what dnslab said")?;
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        if ended.status.code() == Some(BAD_INPUT) {
            bail!("dnslab does not understand an experiment; is it of another version? {said}");
        }
        let path = only_folder(&results).filter(|folder| folder.join("summary.json").exists());
        let last = || said.lines().last().unwrap_or("it said nothing").to_owned();
        Ok(path.ok_or_else(last))
    }
}

/// What this machine is, by the name of the fact; empty if that is not known.
fn fact(name: &str) -> String {
    let facts = machine::facts();
    facts.into_iter().find(|fact| fact.name == name).map_or(String::new(), |fact| fact.value)
}

fn report(path: &Path) -> Result<Report> {
    let file = path.join("summary.json");
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot understand {}", file.display()))
}

fn take(path: &Path, played: &mut Played) -> Result<()> {
    let report = report(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The name begins with the time of the start: 20261122T110130Z.
    if let (Some(year), Some(month), Some(day)) = (name.get(..4), name.get(4..6), name.get(6..8)) {
        played.date = format!("{year}-{month}-{day}");
    }
    if played.kind == Kind::Loss {
        let lossy = report.variants.iter().find(|variant| variant.name == "lossy");
        let lost = |variant: &Variant| {
            [variant.outcomes.due - variant.outcomes.answered, variant.outcomes.due]
        };
        played.lost = lossy.map(lost);
    }
    played.comparisons = report.comparisons.into_iter().map(compared).collect();
    for record in ResultsDirectory::open(path)?.runs()? {
        if record.status != RunStatus::Valid {
            played.invalid_runs += 1;
        } else if played.kind.limit().is_some() {
            let kind =
                serde_json::to_value(record.bottleneck.kind).context("a limit has no name")?;
            played.limits.push(kind.as_str().unwrap_or("unnamed").to_owned());
        }
    }
    Ok(())
}

fn compared(comparison: Comparison) -> Compared {
    Compared {
        variant: comparison.variant,
        metric: comparison.metric,
        difference: comparison.difference,
        absolute: comparison.absolute,
        verdict: comparison.verdict.verdict,
    }
}
