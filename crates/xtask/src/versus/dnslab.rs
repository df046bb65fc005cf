//! dnslab as a measured program: its command line, and the record that it leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use dnslab_record::{RunRecord, RunStatus};
use dnslab_results::ResultsDirectory;
use dnslab_wire::Transport;

use super::sample::{Finding, Load, Mode};
use crate::process::{Finished, Place, Stop, output, run, write};

/// Exit code for a command line that dnslab does not understand.
const BAD_INPUT: i32 = 2;
/// Time-out of a query, for all programs. dnsperf takes whole seconds.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// What a run may take beyond its windows.
const SLACK: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(crate) struct Dnslab {
    pub(crate) path: PathBuf,
    /// Output of `--version`.
    pub(crate) version: String,
    /// Output of `serve --help`.
    serve_help: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    /// The measured window.
    pub(crate) duration: Duration,
    /// The load before it; dnsperf has none.
    pub(crate) warm_up: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    /// CPU of the load.
    pub(crate) cpu: usize,
    /// For what is written.
    pub(crate) folder: &'a Path,
    /// File of queries.
    pub(crate) queries: &'a Path,
    pub(crate) stop: &'a Stop,
}

impl Dnslab {
    /// Looks at the program at `path`, or builds one as it is distributed.
    ///
    /// # Errors
    /// When there is none, it does not run, or cargo cannot build it.
    pub(crate) fn find(path: Option<&Path>) -> Result<Self> {
        let path = match path {
            Some(path) => fs::canonicalize(path)
                .with_context(|| format!("--dnslab: no program at {}", path.display()))?,
            None => build()?,
        };
        let remedy = "is it a dnslab that runs on this machine?";
        let version = output(Command::new(&path).arg("--version"), remedy)?;
        let serve_help = output(Command::new(&path).args(["serve", "--help"]), remedy)?;
        Ok(Self { path, version: version.trim().to_owned(), serve_help })
    }

    /// The option of `dnslab serve` for the address of a transport; `None` if this dnslab does not serve it.
    pub(crate) fn listen_option(&self, transport: Transport) -> Option<String> {
        let wanted = |word: &&str| {
            word.strip_prefix("--").and_then(|name| name.strip_suffix("-listen"))
                == Some(transport.name())
        };
        self.serve_help.split_whitespace().find(wanted).map(str::to_owned)
    }

    /// Why this dnslab cannot ask over a transport; `None` if it can.
    ///
    /// # Errors
    /// When it does not run.
    pub(crate) fn refusal(&self, transport: Transport, room: &Room<'_>) -> Result<Option<String>> {
        let mut command = Place { cpu: room.cpu, namespace: None }.command(&[&self.path]);
        // Nobody listens there, and nothing is sent: the wrong arguments end it before.
        command.args(["load", "127.0.0.1:1", "--transport", transport.name(), "--insecure"]);
        command.args(["--set", "load.clients=0"]);
        let done = run(&mut command, room.folder, SLACK, room.stop)?;
        let complains = |line: &&str| line.starts_with("error") && line.contains("transport");
        let complaint = done.output.lines().find(complains).map(str::to_owned);
        Ok(complaint.filter(|_| done.ended.status.code() == Some(BAD_INPUT)))
    }

    /// Applies a load and reads the record.
    ///
    /// # Errors
    /// When it cannot run, or the run is not valid.
    pub(crate) fn load(
        &self,
        load: &Load<'_>,
        length: Length,
        room: &Room<'_>,
    ) -> Result<(Finished, Finding)> {
        let results = room.folder.join("results");
        if results.exists() {
            fs::remove_dir_all(&results).context("cannot remove the last run's results")?;
        }
        let mut command = self.command(load, length, room);
        command.arg("--results").arg(&results);
        let limit = length.duration + length.warm_up + SLACK;
        let finished = run(&mut command, room.folder, limit, room.stop)?;
        room.stop.check()?;
        if !finished.ended.status.success() {
            bail!("dnslab failed over {}: {}", load.transport.name(), complaint(&finished));
        }
        let record = read_record(&results)?;
        let finding = finding(&record).with_context(|| {
            format!("dnslab over {}: {}", load.transport.name(), complaint(&finished))
        })?;
        Ok((finished, finding))
    }

    /// `dnslab run` of an experiment that is written to `folder`, and the folder of its results, which is empty.
    ///
    /// # Errors
    /// When a file cannot be written or removed.
    pub(crate) fn experiment(&self, file: &str, folder: &Path) -> Result<(Command, PathBuf)> {
        let (path, results) = (folder.join("experiment.toml"), folder.join("results"));
        write(&path, file)?;
        if results.exists() {
            fs::remove_dir_all(&results).context("cannot remove the last results")?;
        }
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(&self.path).arg("run").arg(&path);
        command.arg("--results").arg(&results);
        Ok((command, results))
    }

    /// Without the folder of the results.
    fn command(&self, load: &Load<'_>, length: Length, room: &Room<'_>) -> Command {
        let place = Place { cpu: room.cpu, namespace: load.namespace };
        let mut command = place.command(&[&self.path]);
        let target = load.target.to_string();
        let clients = load.clients.to_string();
        command.args(["load", &target, "--transport", load.transport.name()]);
        command.args(["--clients", &clients]);
        let (option, value) = match load.mode {
            Mode::Window(window) => ("--outstanding", window / load.clients),
            Mode::Rate(rate) => ("--rate", rate),
        };
        command.args([option, &value.to_string(), "--workers", "1"]);
        let milliseconds = |duration: Duration| format!("{}ms", duration.as_millis());
        command.args(["--duration", &milliseconds(length.duration)]);
        command.args(["--warm-up", &milliseconds(length.warm_up)]);
        command.args(["--timeout", &milliseconds(TIMEOUT)]);
        command.arg("--queries").arg(room.queries);
        // As dnsperf always does, so that every server gets the same octets.
        command.args(["--set", "load.recursion_desired=true"]);
        if let Some(batch_delay) = load.batch_delay {
            command.args(["--set", &format!("load.batch_delay={batch_delay}")]);
        }
        if let Some(clock) = load.receive_time {
            command.args(["--receive-time", clock]);
        }
        if load.shared_records {
            command.args(["--set", "load.tls_records=shared"]);
        }
        if let Some(authority) = load.authority {
            command.arg("--authority").arg(authority);
        }
        command
    }
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--profile", "dist", "--package", "dnslab-cli"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    // Its progress and errors are for the user.
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit());
    let built = command.output().context("cannot run cargo (or name a program with --dnslab)")?;
    if !built.status.success() {
        bail!("cargo cannot build dnslab: mend it, or name a program with --dnslab PATH");
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let executable = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    executable.context("cargo built dnslab, but did not say where")
}

/// The only folder of results in `results`; `None` if there is none.
pub(crate) fn only_folder(results: &Path) -> Option<PathBuf> {
    Some(fs::read_dir(results).ok()?.flatten().next()?.path())
}

/// The record of the only run below `results`.
fn read_record(results: &Path) -> Result<RunRecord> {
    let mut entries =
        fs::read_dir(results).with_context(|| format!("no results in {}", results.display()))?;
    let entry = entries.next().context("dnslab wrote no results")?.context("cannot list them")?;
    let records = ResultsDirectory::open(&entry.path())?.runs()?;
    records.into_iter().next().context("dnslab wrote no record")
}

/// The lines in which dnslab says what was wrong, or the last ones.
fn complaint(finished: &Finished) -> String {
    let words = ["FAILED", "INVALID", "error:"];
    let is_one = |line: &&str| words.iter().any(|word| line.contains(word));
    let lines: Vec<&str> = finished.output.lines().filter(is_one).collect();
    if lines.is_empty() { finished.tail() } else { lines.join(" | ") }
}

fn finding(record: &RunRecord) -> Result<Finding> {
    if record.status != RunStatus::Valid {
        bail!("the run is not valid: {:?}", record.status);
    }
    let measured = record.measured.as_ref().context("the run measured nothing")?;
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
    let (window, warm_up) = (&measured.counters.outcomes, &measured.warm_up.outcomes);
    if window.answered == 0 {
        bail!("no query was answered");
    }
    Ok(Finding {
        answered: window.answered + warm_up.answered,
        lost: window.lost() + warm_up.lost(),
        answered_qps: measured.answered_qps(),
        worker_us_per_answer: measured.generator_cpu_per_query_ns().map(|ns| ns / 1e3),
        p50_us: us(measured.latency.quantile_ns(0.5)),
        p99_us: us(measured.latency.quantile_ns(0.99)),
        send_lag_p50_us: us(measured.send_lag.quantile_ns(0.5)),
        limit: serde_json::to_value(record.bottleneck.kind)?.as_str().map(str::to_owned),
    })
}
