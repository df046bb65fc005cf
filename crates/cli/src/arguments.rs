//! The arguments.

pub(crate) mod dnsperf;
mod import;
mod keys;
pub(crate) mod lab;
mod make;
mod monitor;
pub(crate) mod monitoring_stack;
mod output;
pub(crate) mod publish;
mod serve;
mod value;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, value_parser,
};
use dnslab_experiment::{Changes, ExperimentError, Source, load_changed};
use dnslab_lab::dnstap_socket::{DnstapAddress, SocketOwner};
use dnslab_protocol::Role;
use dnslab_record::{CostLimit, Indicator, IndicatorError, Metric, Objective};
use dnslab_settings::{Chosen, Experiment, HostAt, HostPlace, Install};
use dnslab_wire::units::{duration, share};
use dnslab_wire::{DnstapKind, DnstapSource, ServerAddresses, ServerPorts};

use crate::exit;
pub(crate) use import::{Import, ImportDnsperf, Imported};
pub(crate) use keys::KeyOptions;
pub(crate) use make::{Made, Make, MakeInternet, MakePopulation, MakeZone, OutputFile, ZoneForm};
pub(crate) use monitor::{
    Export, ExportForm, ExportPrometheus, MonitorOptions, RemoteWriteOptions,
};
pub(crate) use output::{JsonForm, Output};
pub(crate) use serve::Serve;
use value::rate;

/// Measures what a change to a DNS service costs.
///
/// Without a command, `dnslab run encryption`: what encrypting DNS costs, on the embedded server,
/// in under a minute.
#[derive(Debug, Parser)]
#[command(name = "dnslab", version, after_help = exit::HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment from plan to report
    Run(Run),
    /// Explain an experiment without running it: hosts, links, servers, order, time
    Plan(Plan),
    /// Apply one load to one running server
    Load(Load),
    /// Play the clients of a capture against a server that runs already, each with its own timing
    Replay(Replay),
    /// Find the highest rate that meets an objective, or the window to use
    Capacity(Capacity),
    /// Serve a zone, or play a recursive resolver or all authoritative servers of an internet, with the
    /// embedded responder
    Serve(Box<Serve>),
    /// Write the dnstap that servers send to a socket into a file
    Record(Record),
    /// Find the population of clients behind a capture, without its names and addresses
    Profile(Profile),
    /// Make what a measurement needs: the zone that dnslab asks for, a population of clients, or the root
    /// hints, trust anchor and names of an internet
    Make(Make),
    /// Fetch servers of other releases, and list them
    Lab(lab::Lab),
    /// Start and stop a Prometheus with exporters, to watch runs by
    Monitor(monitoring_stack::MonitorStack),
    /// Make a page that draws what a Prometheus has of runs, of BIND and of the machine
    Dashboard(monitoring_stack::Dashboard),
    /// Write the report of a results directory again
    Report(Report),
    /// Give results to other programs
    Export(Export),
    /// Make a results directory of what another load generator printed
    Import(Import),
    /// Judge a change by two results directories of one experiment, made before it and after it
    Compare(Compare),
    /// Say what holds over several sessions of one experiment, and where the next one will lie
    Pool(Pool),
    /// Show one figure over many results directories, and where its level changed
    History(History),
    /// Say what on this machine would spoil a measurement, and the remedy
    Doctor(Doctor),
    /// Do on this host what dnslab on another one says, over ssh
    Agent(Agent),
    /// Print what lets a shell complete commands, options and their words
    ///
    /// For bash: `dnslab completions bash > /etc/bash_completion.d/dnslab`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write a man page for each command
    ///
    /// For all users: `dnslab man /usr/local/share/man/man1`
    Man {
        /// Folder for the pages: dnslab.1, dnslab-run.1 and so on; it is made
        folder: PathBuf,
    },
}

impl Default for Command {
    fn default() -> Self {
        Self::Run(Run::default())
    }
}

/// What a change may cost if nothing else is said.
pub(crate) const DEFAULT_LIMITS: &str = "qps>-3%,p99<+5%,cpu_per_query<+5%";

/// Which experiment, and what the command line changes in it: of `dnslab run` and of `dnslab plan`.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// A built-in experiment by its name, or a file by its path
    #[arg(default_value = "encryption")]
    pub(crate) experiment: String,
    /// Override a key: `server.kind=bind`, or `variant.dot.load.clients=200` in one variant
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Take these variants and no others
    #[arg(long, value_name = "VARIANT,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Leave out these variants
    #[arg(long, value_name = "VARIANT,...", value_delimiter = ',')]
    pub(crate) without: Vec<String>,
    /// Measure each variant with this program of the server too, in the same rounds, as `NAME-base`, and
    /// compare each with its own
    ///
    /// Limits without `--limit` are those of `dnslab compare`.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) against: Option<String>,
    /// Start the servers on this host, by ssh, or in pods, with `kubernetes`
    ///
    /// It is the same as `--set server.host=HOST`. With `kubernetes`, the server and the load are pods of the cluster of
    /// kubectl's current context, with the names `server` and `load`: `--set host.server.nodes=pool=dns`.
    #[arg(long, value_name = "HOST")]
    pub(crate) on: Option<HostPlace>,
    /// Do not verify certificates; the same as `--set server.insecure=true`
    #[arg(long, hide_short_help = true)]
    pub(crate) insecure: bool,
    /// After the rounds, one more in which `perf` samples the servers, so that the report says where their CPU
    /// time goes; the same as `--set repeat.profile=true`
    #[arg(long)]
    pub(crate) profile: bool,
    /// Measure what can be defended, for hours: several sessions, and where the next one lies
    ///
    /// It is `repeat.sessions=5`, `repeat.session_pause=5m`, `repeat.until=1%` with at most 30 rounds, and two sessions
    /// beside them with other settings. A pilot load of each variant says how long the warm-up and the loads are: the
    /// loads at least 30 s. Where there is a common load, each variant is also asked at 10, 50 and 80 % of its own rate.
    #[arg(long)]
    pub(crate) publish: bool,
    /// One more session with this key changed, beside those of `repeat.sessions`: what the choice moves
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true)]
    pub(crate) beside: Vec<String>,
}

impl Asked {
    /// Reads and checks the experiment.
    pub(crate) fn experiment(&self) -> Result<(Experiment, Source), ExperimentError> {
        self.experiment_with(&[])
    }

    /// With more keys changed.
    pub(crate) fn experiment_with(
        &self,
        sets: &[String],
    ) -> Result<(Experiment, Source), ExperimentError> {
        let mut further = sets.to_vec();
        if self.publish {
            // What is named goes before what is published.
            let own = [&self.set[..], sets].concat();
            let published = publish::sets(&self.loaded(&[])?.0, &own);
            further.extend(self.with_effect(published));
        }
        self.loaded(&further)
    }

    /// The keys of the sessions beside those that are alike, one session each.
    pub(crate) fn sessions_beside(&self, experiment: &Experiment) -> Vec<String> {
        let own = self.beside.iter().cloned();
        let published = match self.publish {
            true => self.with_effect(publish::beside(experiment)),
            false => Vec::new(),
        };
        own.chain(published).collect()
    }

    /// Without those that change nothing, because each variant has the key itself.
    pub(crate) fn with_effect(&self, mut sets: Vec<String>) -> Vec<String> {
        sets.retain(|set| {
            !set.starts_with("load.") || self.loaded(std::slice::from_ref(set)).is_ok()
        });
        sets
    }

    /// Whether a pilot says how long its loads are.
    pub(crate) fn wants_pilot(&self, experiment: &Experiment) -> bool {
        self.publish && publish::wants_pilot(experiment, &self.set)
    }

    fn loaded(&self, further: &[String]) -> Result<(Experiment, Source), ExperimentError> {
        let insecure = self.insecure.then(|| "server.insecure=true".to_owned());
        let profile = self.profile.then(|| "repeat.profile=true".to_owned());
        let on = self.on.iter().flat_map(on);
        let all = self.set.iter().chain(further).cloned();
        let sets: Vec<String> = all.chain(on).chain(insecure).chain(profile).collect();
        let compares_otherwise = self.against.is_some();
        let chosen = Chosen { only: &self.only, without: &self.without, compares_otherwise };
        let changes = Changes { sets: &sets, chosen, against: self.against.as_deref() };
        load_changed(&self.experiment, &changes)
    }
}

/// What an experiment on a host is told. In a cluster the load comes from a pod of its own: from outside it would not
/// reach the server.
fn on(host: &HostPlace) -> Vec<String> {
    match host.at {
        HostAt::Kubernetes => [
            "server.host=server",
            "host.server.at=kubernetes",
            "load.hosts=load",
            "host.load.at=kubernetes",
        ]
        .map(str::to_owned)
        .to_vec(),
        _ => vec![format!("server.host={host}")],
    }
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            experiment: "encryption".to_owned(),
            set: Vec::new(),
            only: Vec::new(),
            without: Vec::new(),
            against: None,
            on: None,
            insecure: false,
            profile: false,
            publish: false,
            beside: Vec::new(),
        }
    }
}

/// `dnslab run`
#[derive(Debug, Default, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) asked: Asked,
    #[command(flatten)]
    pub(crate) results: ResultsFolder,
    /// Go on with an interrupted experiment: repeat only what is missing
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = [
        "experiment", "set", "only", "without", "against", "on", "insecure", "profile", "publish", "beside", "results",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// So many rounds more than the experiment had. Its intervals are then those that hold though somebody
    /// looked before, and are wider
    #[arg(long, value_name = "ROUNDS", requires = "resume", hide_short_help = true, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(crate) more: Option<u32>,
    #[arg(
        long,
        value_name = "FIGURE=PERCENT|FIGURE<BOUND",
        value_delimiter = ',',
        help = format!(
            "Fail (exit code 4) when a variant for certain is worse than the baseline by more than this, \
             `p99=10%` or `p99<+10%`, or beyond this bound, `p99<10ms`: of {}; several are separated by commas",
            Metric::WORDS.join(", ")
        )
    )]
    pub(crate) limit: Vec<CostLimit>,
    /// Run an experiment file that names programs, hosts, configuration text or a folder to write to, or resume a
    /// results directory, though it is not yours alone: another user owns it or may write it
    #[arg(long, hide_short_help = true)]
    pub(crate) trust: bool,
    /// Show the plan and stop; the same as `dnslab plan`
    #[arg(long, hide_short_help = true)]
    pub(crate) dry_run: bool,
    /// When the runs are done, start the servers of a variant (by default the baseline) once more and leave
    /// them up, with how to enter their hosts, until Ctrl-C
    #[arg(long, value_name = "VARIANT", num_args = 0..=1, require_equals = true, default_missing_value = "",
          hide_short_help = true)]
    pub(crate) keep: Option<String>,
    #[command(flatten)]
    pub(crate) watch: Watch,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) monitor: MonitorOptions,
}

/// Where results go.
#[derive(Clone, Debug, Args)]
pub(crate) struct ResultsFolder {
    /// Folder in which the results directory is made; `none` keeps nothing but what is printed
    #[arg(long, value_name = "FOLDER|none", default_value = DEFAULT_RESULTS)]
    pub(crate) results: PathBuf,
}

const DEFAULT_RESULTS: &str = "results";

impl Default for ResultsFolder {
    fn default() -> Self {
        Self { results: DEFAULT_RESULTS.into() }
    }
}

/// What a capture says itself, so `replay` refuses it.
const SAID_BY_CAPTURE: [&str; 12] = [
    "clients",
    "outstanding",
    "rate",
    "pace",
    "connections",
    "queries",
    "types",
    "edns-payload",
    "dnssec-ok",
    "recursion-desired",
    "edns-option",
    "keepalive",
];

/// The command line that is read, and that help, man pages and completions show. A capture is played for as long as
/// it lasts, and most of the options of a load are not for it.
pub(crate) fn program() -> clap::Command {
    Arguments::command().mut_subcommand("replay", |replay| {
        let replay = SAID_BY_CAPTURE
            .into_iter()
            .fold(replay, |replay, name| replay.mut_arg(name, |option| option.hide(true)));
        replay
            .mut_arg("duration", |option| {
                option.help("Length of the measured window [default: to the end of the capture]")
            })
            .mut_arg("warm-up", |option| {
                option.help("Load before the measured window, kept apart [default: 0s]")
            })
            .mut_arg("capture-ports", |option| option.hide_short_help(false))
    })
}

/// Reads a command line, which begins with the program.
///
/// # Errors
/// When clap refuses it.
pub(crate) fn parse<T: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = T>,
) -> Result<Arguments, clap::Error> {
    let mut program = program();
    let mut matches = program.try_get_matches_from_mut(words)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut program))
}

/// The words of a command line with `--json` and the form behind it as one word. Without this, clap would take a
/// target or a directory behind `--json` for the form.
pub(crate) fn with_json_forms(words: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for word in words {
        let is_form = word.to_str().is_some_and(|word| JsonForm::from_str(word, false).is_ok());
        match joined.last_mut().filter(|last| is_form && *last == "--json") {
            Some(last) => {
                last.push("=");
                last.push(word);
            }
            None => joined.push(word),
        }
    }
    joined
}

/// How a load is watched while it runs.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Watch {
    /// Show the live view however small the terminal is, and also if the output goes elsewhere [default: from 80x24
    /// on]
    #[arg(long, conflicts_with_all = ["plain", "quiet"], hide_short_help = true)]
    pub(crate) live: bool,
    /// Print a line for each second of a load and each run, as without a terminal
    #[arg(long, hide_short_help = true)]
    pub(crate) plain: bool,
}

impl Output {
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet || self.json.is_some()
    }
}

/// `dnslab plan`
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) asked: Asked,
}

/// `dnslab load`
#[derive(Debug, Args)]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) traffic: Traffic,
    #[command(flatten)]
    pub(crate) options: KeyOptions<false>,
}

/// `dnslab replay`
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Capture (pcap, pcapng, dnstap; plain or compressed), or a socket for dnstap
    ///
    /// Compressed with gzip or zstd. Servers send dnstap to the socket, `unix:PATH` or `tcp:[ADDRESS:]PORT`: what comes
    /// is recorded first, for as long as the load lasts.
    pub(crate) capture: PathBuf,
    /// Play it against this server too, and compare the answers query by query
    ///
    /// It is written as the target is. Exit code 5 when some differ again whenever they are asked.
    #[arg(long, value_name = "OTHER")]
    pub(crate) compare_answers: Option<String>,
    #[command(flatten)]
    pub(crate) access: SocketOptions,
    #[command(flatten)]
    pub(crate) load: Load,
}

/// Who may connect to a socket.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SocketOptions {
    /// Owner of the socket `unix:PATH`, by name or number [default: as its folder if root makes it]
    #[arg(long, value_name = "USER[:GROUP]", hide_short_help = true)]
    pub(crate) socket_owner: Option<SocketOwner>,
    /// Mode of the socket `unix:PATH` [default: 660]
    #[arg(long, value_name = "OCTAL", value_parser = mode, hide_short_help = true)]
    pub(crate) socket_mode: Option<u32>,
}

fn mode(text: &str) -> Result<u32, String> {
    let reason = || "write three octal digits, e.g. 666 for everybody".to_owned();
    u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777).ok_or_else(reason)
}

/// `dnslab record`
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Socket that servers send dnstap to: `unix:PATH`, or `tcp:[ADDRESS:]PORT`
    pub(crate) socket: DnstapAddress,
    /// File to write, which is dnstap (a frame stream)
    pub(crate) file: PathBuf,
    /// End so long after the first message [default: Ctrl-C ends it]
    #[arg(long, value_name = "DURATION", value_parser = value::a_while)]
    pub(crate) duration: Option<Duration>,
    /// End after so many queries of clients
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub(crate) queries: Option<u64>,
    #[command(flatten)]
    pub(crate) access: SocketOptions,
    /// Replace the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
    /// Say nothing of what comes
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `dnslab profile`
///
/// The population goes to the standard output, and what to know about it to the error output.
#[derive(Debug, Args)]
pub(crate) struct Profile {
    /// Capture: pcap, pcapng or dnstap, plain or compressed with gzip or zstd; or a socket that servers send dnstap
    /// to, `unix:PATH` or `tcp:[ADDRESS:]PORT`
    pub(crate) capture: PathBuf,
    /// Only queries to these servers count: addresses, with a port or with any, and networks [default: any]
    #[arg(long, value_name = "ADDRESSES")]
    pub(crate) capture_server: Option<ServerAddresses>,
    /// Ports of servers in packets
    #[arg(long, value_name = "PORT,...", default_value = "53")]
    pub(crate) capture_ports: ServerPorts,
    /// Messages of dnstap that count: client, auth, resolver, forwarder, stub, tool
    #[arg(long, value_name = "KIND,...", default_value = "client,auth", value_delimiter = ',')]
    pub(crate) dnstap_messages: Vec<DnstapKind>,
    /// dnstap: take queries, or responses of servers that write no others
    #[arg(long, value_name = "WHICH", default_value = "queries")]
    pub(crate) dnstap_source: DnstapSource,
    /// Socket: listen until so long after the first message [default: until Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = value::a_while)]
    pub(crate) duration: Option<Duration>,
    #[command(flatten)]
    pub(crate) access: SocketOptions,
    #[command(flatten)]
    pub(crate) output: OutputFile,
}

/// What every command that applies a load has beside options that are keys.
#[derive(Debug, Args)]
pub(crate) struct Traffic {
    /// Address or name of the server, with or without port: `127.0.0.1:5300`, `ns1`
    pub(crate) target: String,
    /// Override any further key of an experiment: `load.selection=uniform`
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) results: ResultsFolder,
    #[command(flatten)]
    pub(crate) watch: Watch,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) monitor: MonitorOptions,
}

/// `dnslab capacity`
#[derive(Debug, Args)]
pub(crate) struct Capacity {
    #[command(flatten)]
    pub(crate) traffic: Traffic,
    #[command(flatten)]
    pub(crate) options: KeyOptions<true>,
    /// What has to be met, separated by commas: lost, answered, mean, max, or a percentile as p99.9
    /// [default: lost<0.1%, p99<10ms; with --window-sweep none]
    #[arg(long, value_name = "FIGURE<BOUND,...")]
    pub(crate) objective: Option<Objective>,
    /// Sweep the windows of a closed loop instead, and name the one to use
    #[arg(long)]
    pub(crate) window_sweep: bool,
    /// Length of each step's measured window
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = step_duration)]
    pub(crate) step_duration: Duration,
    /// Runs at each rate around the edge, or at each window
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..=1_000))]
    pub(crate) repeats: u32,
    /// First rate of the ramp [default: 1000]
    #[arg(long, value_name = "QPS", value_parser = rate, conflicts_with = "window_sweep")]
    pub(crate) from: Option<f64>,
    /// No higher rate is tried
    #[arg(long, value_name = "QPS", value_parser = rate, conflicts_with = "window_sweep")]
    pub(crate) max: Option<f64>,
    /// Width of the bracket, relative to its lower end, from which on its rates are repeated
    /// [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = tolerance, conflicts_with = "window_sweep")]
    pub(crate) tolerance: Option<f64>,
    /// No more queries are outstanding over all clients in the sweep
    #[arg(long, value_name = "N", default_value_t = 16_384, requires = "window_sweep",
          value_parser = value_parser!(u64).range(1..=1 << 30))]
    pub(crate) max_window: u64,
}

/// Bounded as the duration of a load is.
fn step_duration(text: &str) -> Result<Duration, String> {
    let reason = || "write a duration of 1ms or more, e.g. 2s".to_owned();
    duration::read(text).ok().filter(|length| length.as_millis() > 0).ok_or_else(reason)
}

/// A share: `5%`.
fn tolerance(text: &str) -> Result<f64, String> {
    let reason = || "write a percentage between 0.1% and 50%".to_owned();
    share::read_percentage(text).filter(|share| (0.001..=0.5).contains(share)).ok_or_else(reason)
}

/// `dnslab report`
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Results directory
    pub(crate) results: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `dnslab compare`
///
/// Exit codes: 0 within all limits, 4 certainly worse than a limit, 3 it cannot be told; 2 and 1 as with every command.
#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Results directory of the session before the change, or a folder that has some: its oldest one
    pub(crate) base: PathBuf,
    /// Results directory of the session after the change, or a folder that has some: its newest one
    pub(crate) new: PathBuf,
    #[arg(
        long,
        value_name = "FIGURE<CHANGE|FIGURE<BOUND",
        value_delimiter = ',',
        default_value = DEFAULT_LIMITS,
        help = format!(
            "What may change by how much, separated by commas: `qps>-3%`, `p99<+5%`, or what the session after the \
             change must keep, `p99<10ms`; of {}",
            Metric::WORDS.join(", ")
        )
    )]
    pub(crate) limit: Vec<CostLimit>,
    /// Write the comparison in Markdown too, for a pull request
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write it as JUnit XML too, for GitLab and GitHub
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Compare sessions of different machines all the same
    #[arg(long)]
    pub(crate) across_machines: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `dnslab pool`
#[derive(Debug, Args)]
pub(crate) struct Pool {
    /// Results directories of one experiment, in any order, and folders of such directories
    #[arg(required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Write a page with the answer and all differences
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `dnslab history`
#[derive(Debug, Args)]
pub(crate) struct History {
    /// Results directories, in any order: those of one experiment, made over time
    #[arg(required = true)]
    pub(crate) results: Vec<PathBuf>,
    #[arg(
        long,
        value_name = "FIGURE",
        default_value = "qps",
        value_parser = compared_metric,
        help = format!("Which figure: {}", Metric::WORDS.join(", "))
    )]
    pub(crate) figure: Metric,
    /// Write a page with a picture of each variant
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Write a table for spreadsheets, a row for each variant of each session
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// A figure that variants are compared by.
fn compared_metric(text: &str) -> Result<Metric, String> {
    let indicator: Indicator = text.parse().map_err(|error: IndicatorError| error.to_string())?;
    indicator.compared().ok_or_else(|| format!("it is one of {}", Metric::WORDS.join(", ")))
}

/// `dnslab agent`
///
/// It speaks on its standard input and output, and ends when they end. In `authorized_keys` a forced command bounds what a
/// key may do: `restrict,command="dnslab agent --allow load --targets 192.0.2.0/24 --max-rate 200000" ssh-ed25519 ...`
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Do this and nothing else: `watch` sees what a server uses that runs here, and sends nothing; `load` has a share of
    /// a load; `serve` starts servers that are installed here
    #[arg(long, value_name = "ROLE,...", value_delimiter = ',', value_parser = role)]
    pub(crate) allow: Vec<Role>,
    /// Servers that a load may ask: addresses, each with a port or with any, and networks
    #[arg(long, value_name = "ADDRESSES")]
    pub(crate) targets: Option<ServerAddresses>,
    /// Queries per second that the share of a load may ask here, at most; a closed loop has no bound and is refused
    #[arg(long, value_name = "QPS", value_parser = rate)]
    pub(crate) max_rate: Option<f64>,
    /// The program was copied for this agent: its folder is removed at once
    #[arg(long, hide = true)]
    pub(crate) copied: bool,
    /// Put the program into this folder, for another container of a pod
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) put: Option<PathBuf>,
    /// Be the process that holds a pod until no agent is in it
    #[arg(long, hide = true)]
    pub(crate) stay: bool,
}

/// A role by its name.
fn role(name: &str) -> Result<Role, String> {
    let named = Role::ALL.into_iter().find(|role| role.name() == name);
    let known = || Role::ALL.map(Role::name).join(", ");
    named.ok_or_else(|| format!("an agent can be allowed: {}", known()))
}

/// What a host is for that doctor looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Examined {
    /// A server that runs there.
    Server,
    /// A load that comes from there.
    Load,
}

/// `dnslab doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Calibrate: a programmed delay, loss and stall must be measured as they were programmed
    #[arg(long)]
    pub(crate) calibrate: bool,
    /// Look at this host, by ssh, in place of this machine
    #[arg(long, value_name = "HOST", conflicts_with = "calibrate")]
    pub(crate) on: Option<HostPlace>,
    /// What that host is for
    #[arg(long = "for", value_name = "WHAT", default_value = "server", requires = "on")]
    pub(crate) of: Examined,
    /// Path of dnslab on that host
    #[arg(long, value_name = "PATH", requires = "on")]
    pub(crate) program: Option<PathBuf>,
    /// `copy` copies this program there, if it has none
    #[arg(long, value_name = "HOW", default_value = "present", requires = "on")]
    pub(crate) install: Install,
}
