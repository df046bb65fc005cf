//! The arguments of `dnslab monitor` and `dnslab dashboard`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};

/// `dnslab monitor`
#[derive(Debug, Args)]
pub(crate) struct MonitorStack {
    #[command(subcommand)]
    pub(crate) command: MonitorCommand,
}

/// What is to be done with the monitoring stack.
#[derive(Debug, Subcommand)]
pub(crate) enum MonitorCommand {
    /// Start Prometheus, and the exporters of BIND and of this machine if they are installed; they live on when
    /// this command has ended
    Up(MonitorUp),
    /// Stop what `dnslab monitor up` has started, and keep the data
    Down(StackFolder),
    /// Say what runs, and where
    Status(StackFolder),
}

/// Which stack.
#[derive(Debug, Args)]
pub(crate) struct StackFolder {
    /// Folder of the stack: configuration, data, logs, and which processes it has
    #[arg(long, value_name = "DIR", default_value = "monitor")]
    pub(crate) folder: PathBuf,
}

/// `dnslab monitor up`
#[derive(Debug, Args)]
pub(crate) struct MonitorUp {
    #[command(flatten)]
    pub(crate) folder: StackFolder,
    /// Port of Prometheus on the loopback interface
    #[arg(long, value_name = "PORT", default_value_t = 9090, value_parser = value_parser!(u16).range(1..))]
    pub(crate) prometheus_port: u16,
    /// Port of the BIND exporter on the loopback interface
    #[arg(long, value_name = "PORT", default_value_t = 9119, value_parser = value_parser!(u16).range(1..))]
    pub(crate) bind_exporter_port: u16,
    /// Port of the node exporter on the loopback interface
    #[arg(long, value_name = "PORT", default_value_t = 9100, value_parser = value_parser!(u16).range(1..))]
    pub(crate) node_exporter_port: u16,
    /// Where dnslab will serve its metrics, as its `--metrics-listen` says
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9353")]
    pub(crate) metrics: SocketAddr,
    /// Statistics channel of the BIND that the BIND exporter asks
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8053")]
    pub(crate) bind_statistics: SocketAddr,
    /// File in which that BIND has the number of its process, for its CPU and memory
    #[arg(long, value_name = "FILE", default_value = "/run/named/named.pid")]
    pub(crate) bind_pid_file: PathBuf,
}

/// `dnslab dashboard`
#[derive(Debug, Args)]
pub(crate) struct Dashboard {
    /// Address of the Prometheus, or of what has its interface, as the reader's browser reaches it
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090")]
    pub(crate) prometheus: String,
    /// File to write, whole or not at all
    #[arg(long, short, value_name = "FILE", default_value = "dashboard.html")]
    pub(crate) output: PathBuf,
    /// Replace the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
}
