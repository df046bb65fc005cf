//! What can go wrong with a server under test.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_wire::Transport;

use crate::certificate::CertificateError;
use crate::ending::Ending;
use crate::root_error::RootError;
use crate::sockets::Owner;

/// Why a server cannot be measured. Long messages have further, indented lines for the command, the log and a
/// hint.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The program is not there.
    #[error("{0}{hint}", hint = hint_line(Some(&.0.hint)))]
    NotInstalled(NotInstalled),
    /// Nobody waits for the server any more.
    #[error("interrupted before {kind} was ready")]
    Interrupted {
        /// Its kind.
        kind: &'static str,
    },
    /// The program does not say its version, so nobody knows what it can do.
    #[error("cannot read the version of {}: {reason}", binary.display())]
    Version {
        /// The program.
        binary: PathBuf,
        /// What it did instead.
        reason: String,
    },
    /// The installed version cannot do what is asked.
    #[error("{0}")]
    Unsupported(
        /// What and why, as a sentence.
        String,
    ),
    /// The specification cannot be written as a configuration.
    #[error("{field} `{value}`: {reason}")]
    Specification {
        /// Which part of it.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is wrong and what would be right.
        reason: String,
    },
    /// A file of the server's folder or of the cache could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `find`, `read`, `write`, `create`, `copy`, `lock`, `remove`, `rename`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server cannot run in the root folder.
    #[error("{0}{hint}", hint = hint_line(.0.hint()))]
    Root(#[from] RootError),
    /// The certificate of the run could not be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The guard could not do its work.
    #[error("cannot start the guard {}: {reason}", program.display())]
    Guard {
        /// Its program.
        program: PathBuf,
        /// Why.
        reason: String,
    },
    /// A zone could not be signed.
    #[error("cannot sign the zone {name}: {reason}")]
    Signing {
        /// The zone.
        name: String,
        /// What the program said, or what is missing.
        reason: String,
    },
    /// The hosts of the laboratory could not be made or changed.
    #[error("cannot {what}: {reason}")]
    Hosts {
        /// What was tried.
        what: String,
        /// What the system said, or what is missing.
        reason: String,
    },
    /// Another process has the address.
    #[error(transparent)]
    AddressTaken(Box<AddressTaken>),
    /// The server ended before it answered.
    #[error(transparent)]
    Exited(Box<Exited>),
    /// The server runs, but did not answer rightly in time.
    #[error(transparent)]
    NotReady(Box<NotReady>),
}

/// The program of a server is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} is not installed: no `{program}` in {}", looked_in.join(", "))]
pub struct NotInstalled {
    /// The server.
    pub kind: &'static str,
    /// Name of its program.
    pub program: String,
    /// Where it was looked for.
    pub looked_in: Vec<String>,
    /// How to get it.
    pub hint: String,
}

/// Another process has the server's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot start {kind} on {address} ({transport}): another process owns the address: {owner}\n  \
     hint:    end that process, or choose another port"
)]
pub struct AddressTaken {
    /// The server.
    pub kind: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// Over which transport.
    pub transport: Transport,
    /// Who has it.
    pub owner: Owner,
}

/// The server ended before it answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Exited {
    /// The server.
    pub kind: &'static str,
    /// How it ended.
    pub ending: Ending,
    /// The command line.
    pub command: Vec<String>,
    /// Its log.
    pub log: PathBuf,
    /// The log's last lines.
    pub log_tail: Vec<String>,
    /// What to do, if the signs say.
    pub hint: Option<String>,
}

/// The server runs, but was not ready in time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NotReady {
    /// The server.
    pub kind: &'static str,
    /// How long it was waited for.
    pub waited: Duration,
    /// What was missing, one entry per transport.
    pub missing: Vec<String>,
    /// The command line.
    pub command: Vec<String>,
    /// Its log.
    pub log: PathBuf,
    /// The log's last lines.
    pub log_tail: Vec<String>,
    /// What to do, if the signs say.
    pub hint: Option<String>,
}

impl fmt::Display for Exited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} before answering", self.kind, self.ending)?;
        context(formatter, &self.command, &self.log, &self.log_tail, self.hint.as_deref())
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.waited.as_secs_f64();
        write!(formatter, "{} was not ready after {seconds:.1} s", self.kind)?;
        for missing in &self.missing {
            write!(formatter, "\n  missing: {missing}")?;
        }
        context(formatter, &self.command, &self.log, &self.log_tail, self.hint.as_deref())
    }
}

fn context(
    formatter: &mut fmt::Formatter<'_>,
    command: &[String],
    log: &Path,
    log_tail: &[String],
    hint: Option<&str>,
) -> fmt::Result {
    let folder = log.parent().unwrap_or(log).display();
    write!(formatter, "\n  command: {} (in {folder})", command.join(" "))?;
    write!(formatter, "\n  log:     {}", log.display())?;
    match log_tail {
        [] => write!(formatter, ", which is empty")?,
        lines => {
            write!(formatter, ", last lines:")?;
            for line in lines {
                write!(formatter, "\n    {line}")?;
            }
        }
    }
    formatter.write_str(&hint_line(hint))
}

fn hint_line(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!("\n  hint:    {hint}"))
}

/// Turns the system's refusal of `action` on `path` into an error.
pub(crate) fn refused<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl Fn(io::Error) -> LabError + 'a {
    move |source| LabError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_command_log_and_remedy() {
        let mut exited = Exited {
            kind: "bind",
            ending: Ending::Exited(1),
            command: ["/usr/sbin/named", "-f"].map(str::to_owned).to_vec(),
            log: "results/udp-1/server/server.log".into(),
            log_tail: vec!["could not bind".to_owned(), "exiting".to_owned()],
            hint: Some("end the other one".to_owned()),
        };
        insta::assert_snapshot!("exited", exited.to_string());
        exited.log_tail.clear();
        exited.hint = None;
        let text = exited.to_string();
        assert!(text.ends_with("/server.log, which is empty"), "{text}");
        let not_ready = NotReady {
            kind: "nsd",
            waited: Duration::from_millis(2_500),
            missing: vec!["dot at [::1]:8530: no socket yet".to_owned()],
            command: exited.command,
            log: exited.log,
            log_tail: Vec::new(),
            hint: None,
        };
        insta::assert_snapshot!("not_ready", not_ready.to_string());
        let taken = AddressTaken {
            kind: "knot",
            address: "127.0.0.1:53".parse().unwrap(),
            transport: Transport::Udp,
            owner: Owner { process: Some((7, "named".to_owned())) },
        };
        insta::assert_snapshot!("taken", taken.to_string());
        let missing = NotInstalled {
            kind: "bind",
            program: "named".to_owned(),
            looked_in: vec!["PATH".to_owned(), "/usr/sbin".to_owned()],
            hint: "on Debian: apt-get install bind9".to_owned(),
        };
        insta::assert_snapshot!("not_installed", LabError::NotInstalled(missing).to_string());
        let (root, missing) = ("/srv/root".into(), "CAP_SYS_ADMIN".to_owned());
        let root = LabError::from(RootError::NotPrivileged { root, missing }).to_string();
        assert!(root.ends_with("(CAP_SYS_ADMIN)\n  hint:    run dnslab as root"), "{root}");
    }
}
