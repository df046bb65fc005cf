//! The arguments of `dnslab make`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use dnslab_traffic::{DirectorySuffix, UpdateServer};

use super::value::rate;

/// `dnslab make`
#[derive(Debug, Args)]
pub(crate) struct Make {
    #[command(subcommand)]
    pub(crate) made: Made,
}

/// What is made.
#[derive(Debug, Subcommand)]
pub(crate) enum Made {
    /// Make the zone that dnslab asks for, for a server that runs already
    Zone(MakeZone),
    /// Make what a resolver and its clients need for the internet of `dnslab serve --hierarchy`
    Internet(MakeInternet),
    /// Make a file with a typical population of clients, to be edited
    ///
    /// It is played with `load.population`, or with `dnslab load TARGET --population FILE`.
    Population(MakePopulation),
}

/// `dnslab make internet`
#[derive(Debug, Args)]
pub(crate) struct MakeInternet {
    /// Description of the internet (docs/LABORATORY.md)
    pub(crate) hierarchy: PathBuf,
    /// Folder for root.hints, root.zone, trust-anchor.key, bind.keys and names; it is made
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Names that clients may ask for, the most popular first
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = value_parser!(u64).range(..=100_000_000))]
    pub(crate) names: u64,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Where what was made goes.
#[derive(Debug, Args)]
pub(crate) struct OutputFile {
    /// File to write, whole or not at all [default: the standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// `dnslab make population`
#[derive(Debug, Args)]
pub(crate) struct MakePopulation {
    /// Clients
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1_000_000))]
    pub(crate) clients: Option<u32>,
    /// Queries per second of all clients together [default: a tenth of the clients]
    #[arg(long, value_name = "QPS", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    #[command(flatten)]
    pub(crate) output: OutputFile,
}

/// `dnslab make zone`
#[derive(Debug, Args)]
pub(crate) struct MakeZone {
    /// Name of the zone, as in `server.zone.name`
    pub(crate) name: String,
    /// Hosts, each with an A record, as in `server.zone.records`
    #[arg(long, value_name = "N", default_value_t = 1_000,
          value_parser = value_parser!(u32).range(1..))]
    pub(crate) records: u32,
    /// TTL of every record
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub(crate) ttl: String,
    /// Form in which the zone is written
    #[arg(long, value_enum, default_value_t = ZoneForm::Bind)]
    pub(crate) format: ZoneForm,
    #[command(flatten)]
    pub(crate) output: OutputFile,
    /// ldif: suffix of the directory: dc=example,dc=test
    #[arg(long, value_name = "DN")]
    pub(crate) suffix: Option<DirectorySuffix>,
    /// nsupdate: server that takes the updates [default: the one in the zone's SOA record]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub(crate) server: Option<UpdateServer>,
    /// ipa, nsupdate: most records in one request [default: ipa 500, nsupdate as many as fit]
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<NonZeroU32>,
}

/// The word for a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ZoneForm {
    /// Master file (RFC 1035), which any server reads
    Bind,
    /// Shell script of FreeIPA's `ipa` commands
    Ipa,
    /// Entries of FreeIPA's directory, for ldapadd
    Ldif,
    /// Commands for nsupdate, which adds the records to a zone that is there
    Nsupdate,
}
