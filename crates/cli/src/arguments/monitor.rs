//! Who else may watch the runs of a command, and the export of what they would have seen.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use dnslab_wire::units::duration;

/// Metrics while a command measures.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MonitorOptions {
    /// Serve metrics for Prometheus at `http://ADDRESS:PORT/metrics` while it measures: `127.0.0.1:9353`
    #[arg(long, value_name = "ADDRESS:PORT", hide_short_help = true)]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// At the end, wait this long at most until the last metrics have been fetched
    /// [default: 1m if any have been fetched by then, otherwise 0s]
    #[arg(long, value_name = "DURATION", value_parser = linger, requires = "metrics_listen", hide_short_help = true)]
    pub(crate) metrics_linger: Option<Duration>,
    #[command(flatten)]
    pub(crate) remote_write: RemoteWriteOptions,
}

/// An endpoint of Prometheus remote write.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RemoteWriteOptions {
    /// Push metrics by Prometheus remote write: `http://127.0.0.1:9090/api/v1/write`
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub(crate) remote_write: Option<String>,
    /// File with headers for its requests, one `Name: value` a line
    #[arg(long, value_name = "FILE", requires = "remote_write", hide_short_help = true)]
    pub(crate) remote_write_headers: Option<PathBuf>,
    /// File with a bearer token for its requests
    #[arg(long, value_name = "FILE", requires = "remote_write", hide_short_help = true)]
    pub(crate) remote_write_token: Option<PathBuf>,
}

/// `dnslab export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    #[command(subcommand)]
    pub(crate) form: ExportForm,
}

/// A form of results for other programs.
#[derive(Debug, Subcommand)]
pub(crate) enum ExportForm {
    /// The metrics of the runs, with their own time stamps: pushed by remote write, or as a file for
    /// `promtool tsdb create-blocks-from openmetrics`
    Prometheus(ExportPrometheus),
    /// DNS-OARC's dns-metrics: JSON, one object a line, on the standard output
    DnsMetrics {
        /// Results directory
        results: PathBuf,
    },
}

/// `dnslab export prometheus`
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("whither").args(["remote_write", "out"]).required(true).multiple(true)))]
pub(crate) struct ExportPrometheus {
    /// Results directory
    pub(crate) results: PathBuf,
    /// Write OpenMetrics with time stamps into this file; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) remote_write: RemoteWriteOptions,
}

fn linger(text: &str) -> Result<Duration, String> {
    duration::read(text).map_err(|_| "write a duration, e.g. 30s".to_owned())
}
