//! The arguments.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dnslab_wire::units::duration;
use serde::Serialize;

use crate::truth::Kind;

/// Work on dnslab itself.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure dnslab's load engine against dnsperf on this machine, in alternation
    Versus(Options),
    /// Play experiments whose truth is known, and write evidence/TRUTH.md
    Truth(TruthOptions),
    /// Ask every server over every transport that it has, with the counts of both sides
    Matrix(MatrixOptions),
    /// Kill dnslab at many instants, fill up disks, and ask for too much
    Attack(AttackOptions),
    /// Make a release: a static binary, and packages of it
    Dist(DistOptions),
    /// Make the site: the documents as a book, with a report to click and the evidence
    Site(SiteOptions),
}

/// `cargo xtask site`
#[derive(Debug, Args)]
pub(crate) struct SiteOptions {
    /// Folder of the site, new or empty [default: target/site, which is made anew]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Show the report of these results [default: of the default experiment, which is run]
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "dnslab")]
    pub(crate) results: Option<PathBuf>,
    /// The dnslab that runs it [default: built by cargo with the profile dist]
    #[arg(long, value_name = "PATH")]
    pub(crate) dnslab: Option<PathBuf>,
}

/// `cargo xtask dist`
#[derive(Debug, Args)]
pub(crate) struct DistOptions {
    /// Folder of the release [default: target/release-files]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Sign the digests with this key of minisign
    #[arg(long, value_name = "FILE")]
    pub(crate) sign: Option<PathBuf>,
    /// The dnslab to package [default: built by cargo with the profile dist, static]
    #[arg(long, value_name = "PATH")]
    pub(crate) dnslab: Option<PathBuf>,
}

/// `cargo xtask attack`
#[derive(Debug, Args)]
pub(crate) struct AttackOptions {
    /// Kills, spread over the length of an experiment and over four servers
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) instants: u32,
    /// Disks, from one with hardly any room to one with enough
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) disks: u32,
    /// Smoke size: four of each, and results of 50 runs
    #[arg(long, conflicts_with_all = ["instants", "disks"])]
    pub(crate) smoke: bool,
    /// The dnslab to attack [default: built by cargo with the profile dist]
    #[arg(long, value_name = "PATH")]
    pub(crate) dnslab: Option<PathBuf>,
    /// Folder of ATTACKS.md [default: the page is printed]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

/// `cargo xtask matrix`
#[derive(Debug, Args)]
pub(crate) struct MatrixOptions {
    /// Only these servers (`nsd`, `knot-3.4`, `dnsproxy`), or the foreign client `dnsperf`, with
    /// commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Smoke size: one window of 0.3 s
    #[arg(long)]
    pub(crate) smoke: bool,
    /// The dnslab to ask with [default: built by cargo with the profile dist]
    #[arg(long, value_name = "PATH")]
    pub(crate) dnslab: Option<PathBuf>,
    /// AdGuard's dnsproxy, which is left out without it
    #[arg(long, value_name = "PATH")]
    pub(crate) dnsproxy: Option<PathBuf>,
    /// Folder of MATRIX.md [default: the page is printed]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

/// `cargo xtask truth`
#[derive(Debug, Args)]
pub(crate) struct TruthOptions {
    /// How long to play, e.g. 40m; no experiment is begun that would not end in time. With 0s, the
    /// page is written anew from the log
    #[arg(long = "for", value_name = "TIME", default_value = "40m", value_parser = length)]
    pub(crate) length: Duration,
    /// Smoke size: one tiny experiment of each kind; says whether everything works, not how true
    /// the method is
    #[arg(long, conflicts_with = "length")]
    pub(crate) smoke: bool,
    /// Only these kinds, as `truth.jsonl` calls them, e.g. `same,cost-5`
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = kind)]
    pub(crate) only: Vec<Kind>,
    /// The dnslab to measure with [default: built by cargo with the profile dist]
    #[arg(long, value_name = "PATH")]
    pub(crate) dnslab: Option<PathBuf>,
    /// Folder of truth.jsonl and TRUTH.md [default: evidence; with --smoke, a temporary one]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
}

fn kind(name: &str) -> Result<Kind, String> {
    serde_json::from_value(name.into()).map_err(|error| error.to_string())
}

/// `cargo xtask versus`
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs of each program for each case
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Length of the measured window of each run, seconds [max: 30]
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = seconds)]
    pub(crate) seconds: f64,
    /// Only these works, with commas between them
    #[arg(long, value_name = "WORKS", value_enum, value_delimiter = ',')]
    pub(crate) only: Vec<Work>,
    /// Smoke size: one round of 0.3 s, fewer cases; says whether everything works, not how fast
    #[arg(long, conflicts_with_all = ["rounds", "seconds"])]
    pub(crate) smoke: bool,
    /// The dnslab to measure [default: built by cargo with the profile dist]
    #[arg(long, value_name = "PATH")]
    pub(crate) dnslab: Option<PathBuf>,
    /// A dnsperf to measure against, or the root folder of another Debian that has one; can be
    /// given more than once [default: dnsperf on the search path]
    #[arg(long, value_name = "PATH")]
    pub(crate) dnsperf: Vec<PathBuf>,
    /// File for everything that was measured, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// One thing that is measured, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Answered UDP queries per second of one core, against the reflector
    Udp,
    /// Client CPU per answer over TCP, DoT and DoH (HTTP/2), against BIND
    Streams,
    /// Answered rate of 100 clients with one query each over UDP, TCP and DoT, against BIND
    Clients,
    /// Client CPU per answer over DoQ and DoH (HTTP/3) against that over DoT, on `dnslab serve`
    Quic,
    /// What one core of the generator carries over each transport, on `dnslab serve`
    Generator,
    /// Pacing of an open loop, counted at the far end of the wire
    Pacing,
    /// What the batch delay changes, against BIND
    BatchDelay,
    /// What time stamps of the kernel cost and change, against the reflector and BIND
    ReceiveTime,
}

impl Work {
    /// On the command line and in the tables.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl Options {
    /// In the order of their declarations.
    pub(crate) fn works(&self) -> Vec<Work> {
        let asked = |work: &Work| self.only.is_empty() || self.only.contains(work);
        Work::value_variants().iter().copied().filter(asked).collect()
    }

    pub(crate) fn rounds(&self) -> u32 {
        if self.smoke { 1 } else { self.rounds }
    }

    pub(crate) fn duration(&self) -> Duration {
        if self.smoke { Duration::from_millis(300) } else { Duration::from_secs_f64(self.seconds) }
    }

    /// dnslab's load before the measured window. dnsperf has no warm-up.
    pub(crate) fn warm_up(&self) -> Duration {
        Duration::from_millis(if self.smoke { 100 } else { 500 })
    }
}

fn length(text: &str) -> Result<Duration, String> {
    duration::read(text).map_err(|_| format!("`{text}` is not a length such as 0s, 40m or 8h"))
}

/// At most 30 s: beyond that the far end's ring of milliseconds would wrap.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=30.0).contains(&seconds) => Ok(seconds),
        Ok(seconds) => Err(format!("{seconds} is not between 0.1 and 30")),
        Err(error) => Err(error.to_string()),
    }
}
