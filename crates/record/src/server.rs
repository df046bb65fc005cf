//! A server as it ran.

use std::fmt;
use std::net::SocketAddr;

use dnslab_settings::ServerKind;
use serde::{Deserialize, Serialize};

/// The server as it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `embedded`, `bind`, `knot`, `nsd` or `external`.
    pub kind: String,
    /// What the server says of its version; empty when unknown.
    pub version: String,
    /// The command line.
    pub command: Vec<String>,
    /// Path of the configuration inside the run's folder, if one was written.
    pub configuration: Option<String>,
    /// Threads that it was configured for, of an external server all that it has; 0 when unknown.
    pub threads: u32,
    /// CPUs that it was pinned to, of an external server those that it may use; empty if not pinned, or
    /// not known.
    pub cpus: Vec<usize>,
    /// CPUs that are threads of the same cores as those, and are not among them; empty in records that
    /// do not have it.
    #[serde(default)]
    pub core_siblings: Vec<usize>,
    /// What the adapter changed from the server's defaults and why, one sentence each.
    pub notes: Vec<String>,
    /// Decides every draw of the programs of the embedded server: the same for all variants of a
    /// repetition. `None` for other servers, which draw for themselves, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Where it forwards to, if that server ran before; `None` for other servers, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<ExternalUpstream>,
    /// Library that it has TLS from, with the version: `OpenSSL 3.0.17`; empty without encryption, when
    /// unknown, and in records that do not have it.
    #[serde(default)]
    pub tls_library: String,
    /// Name of the user that it ran as; empty when unknown, and in records that do not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Of a server that ran before, which process it was: its number and when it started. Empty for others, when
    /// unknown, and in records that do not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// The name of its host, if that is not the host of the load: its CPUs are others. Empty otherwise, and in records
    /// that do not have it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
}

/// Servers that a forwarder asks and that ran before. What they did is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalUpstream {
    /// Where they answer.
    pub addresses: Vec<SocketAddr>,
    /// How queries travel to them.
    pub transport: String,
    /// The name that their certificate must have; `None` without encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_name: Option<String>,
    /// The Service of a cluster that they are behind, whose CPU time belongs to what is compared, and is not seen; `None`
    /// of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
}

impl fmt::Display for ExternalUpstream {
    /// As one text: `192.0.2.1:853 (dns.example)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        formatter.write_str(&addresses.join(", "))?;
        match &self.tls_name {
            Some(name) => write!(formatter, " ({name})"),
            None => Ok(()),
        }
    }
}

impl ServerFacts {
    /// Kind and version as one text: `bind 9.18.33`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} {}", self.kind, self.version).trim().to_owned()
    }

    /// Whether its host is not that of the load, so that their CPUs are not the same ones.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        !self.host.is_empty()
    }

    /// Whether somebody else started it.
    #[must_use]
    pub fn is_external(&self) -> bool {
        self.kind == "external"
    }

    /// Its kind; of one that dnslab did not start the kind of its program, where that is known.
    #[must_use]
    pub fn program(&self) -> &str {
        if !self.is_external() {
            return &self.kind;
        }
        let path = self.command.first().map_or("", String::as_str);
        let program = path.rsplit('/').next().unwrap_or(path);
        let is_it = |kind: &ServerKind| kind.profile().program == program;
        let others = ServerKind::ALL.into_iter().filter(|kind| *kind != ServerKind::Embedded);
        others.into_iter().find(is_it).map_or("external", ServerKind::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_server_is_known_by_its_program() {
        let server = |kind: &str, program: &str| ServerFacts {
            kind: kind.to_owned(),
            command: vec![program.to_owned()],
            ..ServerFacts::default()
        };
        assert_eq!(server("external", "/usr/sbin/named").program(), "bind");
        assert_eq!(server("external", "unbound").program(), "unbound");
        assert_eq!(server("external", "python3").program(), "external");
        assert_eq!(server("nsd", "/usr/sbin/named").program(), "nsd");
        assert_eq!(
            ServerFacts { command: Vec::new(), ..server("external", "") }.program(),
            "external"
        );
    }
}
