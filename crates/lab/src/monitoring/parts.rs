//! The programs of the stack, how each is called, and the configuration of Prometheus.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How often Prometheus fetches.
pub const SCRAPE_SECONDS: u32 = 5;

/// A program of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Stores what is measured, and answers queries.
    Prometheus,
    /// Reads the statistics channel of a BIND.
    BindExporter,
    /// Reads the CPUs, the memory and the network of this machine.
    NodeExporter,
}

/// Addresses and ports of a stack. All of it is on the loopback interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSettings {
    /// Port of Prometheus.
    pub prometheus: u16,
    /// Port of the BIND exporter.
    pub bind_exporter: u16,
    /// Port of the node exporter.
    pub node_exporter: u16,
    /// Where dnslab will serve its metrics.
    pub metrics: SocketAddr,
    /// Statistics channel of the BIND that is watched.
    pub bind_statistics: SocketAddr,
    /// File with the number of its process.
    #[serde(default = "bind_pid_file")]
    pub bind_pid_file: PathBuf,
}

/// Where Debian's BIND has it.
fn bind_pid_file() -> PathBuf {
    "/run/named/named.pid".into()
}

impl StackSettings {
    /// Where a part listens.
    #[must_use]
    pub fn address(&self, part: Part) -> SocketAddr {
        let port = match part {
            Part::Prometheus => self.prometheus,
            Part::BindExporter => self.bind_exporter,
            Part::NodeExporter => self.node_exporter,
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }
}

impl Part {
    /// All, Prometheus first.
    pub const ALL: [Self; 3] = [Self::Prometheus, Self::BindExporter, Self::NodeExporter];

    /// As it is called in texts.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Prometheus => "Prometheus",
            Self::BindExporter => "BIND exporter",
            Self::NodeExporter => "node exporter",
        }
    }

    /// How to get it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Prometheus => "on Debian: apt-get install prometheus",
            Self::BindExporter => "on Debian: apt-get install prometheus-bind-exporter",
            Self::NodeExporter => "on Debian: apt-get install prometheus-node-exporter",
        }
    }

    /// The option of its port.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Prometheus => "--prometheus-port",
            Self::BindExporter => "--bind-exporter-port",
            Self::NodeExporter => "--node-exporter-port",
        }
    }

    /// The program, as Debian has it.
    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::BindExporter => "prometheus-bind-exporter",
            Self::NodeExporter => "prometheus-node-exporter",
        }
    }

    /// Its folder below that of the stack; its record and its log have the name too.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::BindExporter => "bind-exporter",
            Self::NodeExporter => "node-exporter",
        }
    }

    /// Its label `job`.
    fn job(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::BindExporter => "bind",
            Self::NodeExporter => "node",
        }
    }

    /// A path that answers with 200 when it is ready.
    pub(super) fn ready_path(self) -> &'static str {
        match self {
            Self::Prometheus => "/-/ready",
            // What they fetch is nothing that they need to be ready for.
            Self::BindExporter | Self::NodeExporter => "/",
        }
    }

    pub(super) fn arguments(self, settings: &StackSettings) -> Vec<String> {
        let listen = format!("--web.listen-address={}", settings.address(self));
        match self {
            Self::Prometheus => vec![
                format!("--config.file={CONFIGURATION}"),
                format!("--storage.tsdb.path={DATA}"),
                // Measurements are compared with those of last year; by default it forgets after 15 days.
                "--storage.tsdb.retention.time=5y".to_owned(),
                "--web.enable-remote-write-receiver".to_owned(),
                listen,
            ],
            Self::BindExporter => {
                let pid_file = format!("--bind.pid-file={}", settings.bind_pid_file.display());
                vec![
                    format!("--bind.stats-url=http://{}/", settings.bind_statistics),
                    pid_file,
                    listen,
                ]
            }
            Self::NodeExporter => vec![listen],
        }
    }
}

/// In the folder of Prometheus.
pub(super) const CONFIGURATION: &str = "prometheus.yml";

/// In the folder of Prometheus.
pub(super) const DATA: &str = "data";

/// The configuration of Prometheus. It names all parts: one that is not installed today may be so tomorrow.
pub(super) fn configuration(settings: &StackSettings) -> String {
    let mut text = format!(
        "# Made by `dnslab monitor up`, which writes it anew each time.
global:
  scrape_interval: {SCRAPE_SECONDS}s
  scrape_timeout: {SCRAPE_SECONDS}s

storage:
  tsdb:
    # Results are pushed later too: `dnslab export prometheus RESULTS --remote-write URL`.
    out_of_order_time_window: 30d

scrape_configs:
"
    );
    let jobs = Part::ALL.map(|part| (part.job(), settings.address(part)));
    for (name, address) in [("dnslab", settings.metrics)].into_iter().chain(jobs) {
        text.push_str(&format!(
            "  - job_name: {name}\n    static_configs:\n      - targets: [\"{address}\"]\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_is_told_whom_to_fetch_from() {
        let settings = StackSettings {
            prometheus: 9090,
            bind_exporter: 9119,
            node_exporter: 9100,
            metrics: "127.0.0.1:9353".parse().unwrap(),
            bind_statistics: "127.0.0.1:8053".parse().unwrap(),
            bind_pid_file: bind_pid_file(),
        };
        let lines = Part::ALL.map(|part| {
            format!(
                "{}: {} {}\n",
                part.title(),
                part.program(),
                part.arguments(&settings).join(" ")
            )
        });
        insta::assert_snapshot!(lines.concat() + &configuration(&settings));
    }
}
