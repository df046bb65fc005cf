//! The arguments of `dnslab import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use dnslab_results::FolderName;

use super::output::Output;

/// `dnslab import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    pub(crate) from: Imported,
}

/// Which output is read.
#[derive(Debug, Subcommand)]
pub(crate) enum Imported {
    /// Make a results directory of what dnsperf printed, or of dns-metrics (JSON)
    Dnsperf(ImportDnsperf),
}

/// `dnslab import dnsperf`
#[derive(Debug, Args)]
pub(crate) struct ImportDnsperf {
    /// What dnsperf printed, or dns-metrics: a variant for each file, named as the file is, or by a name
    /// before it. Files with one name are repetitions of one variant
    #[arg(required = true, value_name = "[NAME=]FILE")]
    pub(crate) files: Vec<String>,
    /// Results directory to make [default: one in `results`, by time and name]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) out: Option<PathBuf>,
    /// Name of the experiment
    #[arg(long, value_name = "NAME", default_value = "dnsperf")]
    pub(crate) name: FolderName,
    #[command(flatten)]
    pub(crate) output: Output,
}
