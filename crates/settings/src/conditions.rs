//! To which variants a key means something.

use dnslab_traffic::Selection;

use crate::experiment::Variant;
use crate::key::{Condition, Key, Unused, When};
use crate::server_kind::ServerKind;
use crate::types::UpstreamChoice;
use crate::words::{HostsChoice, LogTarget};

impl Key {
    /// True if it means something to a variant.
    #[must_use]
    pub fn is_used(&self, variant: &Variant) -> bool {
        self.when.iter().all(|when| match when {
            When::Transport { uses, .. } => variant.load.transports().any(*uses),
            When::Server(fits) => fits(variant.server.kind.started()),
            When::Variant(condition) => condition.check(variant).is_ok(),
        })
    }
}

impl Condition {
    /// Whether it holds for a variant.
    ///
    /// # Errors
    /// When it does not: why, and what to do about it.
    pub fn check(self, variant: &Variant) -> Result<(), Unused> {
        match self {
            Self::AsksAgain => {
                let help = "add `load.attempts = 2`, or remove it";
                used_if(variant.load.attempts > 1, "clients ask once", help)
            }
            Self::KnowsFurther => {
                let help = "add `server.further`, or remove it";
                used_if(variant.server.further.is_some(), "the clients know one server", help)
            }
            Self::OpenLoop => {
                let is_open = !variant.load.mode.is_closed();
                let why = "a closed loop has its window at one server";
                used_if(is_open, why, "add `load.rate`, or remove it")
            }
            Self::Logs => {
                let help = "add `server.log.to`, or remove it";
                used_if(variant.log.to != LogTarget::None, "there is no query log", help)
            }
            Self::LogsToFile => {
                let help = "add `server.log.to = \"file\"`";
                used_if(variant.log.to == LogTarget::File, "no query log goes into a file", help)
            }
            Self::RotatesLogs => {
                let is_rotated =
                    variant.log.to == LogTarget::File && variant.log.size_mib.is_some();
                used_if(is_rotated, "no file is rotated", "add `server.log.size_mib`, or remove it")
            }
            Self::AsksOthers => {
                let help = "add `upstream.kind`, or remove it";
                used_if(variant.upstream.kind.is_some(), "the server answers from a zone", help)
            }
            Self::ZoneServed => {
                let why = match (variant.server.kind.started(), &variant.server.config) {
                    (Some(_), Some(_)) => "the configuration has its own zones",
                    (Some(_), None) => "no server here has a zone",
                    (None, _) => "the server runs already",
                };
                used_if(variant.serves_zone(), why, "remove it")
            }
            Self::Relay => {
                let help = "add `relay.kind`, or remove it";
                used_if(variant.relay.kind.is_some(), "there is no relay", help)
            }
            Self::ForwardedTo => {
                let (why, help) = match variant.upstream.kind {
                    None => ("there is no upstream", "add `upstream.kind`, or remove it"),
                    Some(_) => {
                        ("a server that resolves by itself decides how it asks", "remove it")
                    }
                };
                let is_server = variant.upstream.kind.is_some_and(UpstreamChoice::is_forwarded_to);
                used_if(is_server, why, help)
            }
            Self::StartedUpstream => {
                let why = match variant.upstream.kind {
                    None => "there is no upstream",
                    Some(UpstreamChoice::External) => "the upstream runs already",
                    Some(_) => "dnslab does not start the servers of the Internet",
                };
                let is_started = variant.upstream.kind.is_some_and(|kind| kind.started().is_some());
                used_if(is_started, why, "add `upstream.kind`, or remove it")
            }
            Self::InstalledUpstream => {
                let kind = variant.upstream.kind;
                let (why, help) = match kind {
                    None => ("there is no upstream", "add `upstream.kind`, or remove it"),
                    Some(UpstreamChoice::Server(_)) => (
                        "the embedded server is dnslab itself",
                        "remove it, or choose another `upstream.kind`",
                    ),
                    Some(UpstreamChoice::Internet) => (
                        "the private Internet is dnslab itself",
                        "remove it, or choose another `upstream.kind`",
                    ),
                    Some(UpstreamChoice::Live) => {
                        ("dnslab does not start the servers of the Internet", "remove it")
                    }
                    Some(UpstreamChoice::External) => ("the upstream runs already", "remove it"),
                };
                let installed = kind.and_then(UpstreamChoice::server);
                used_if(installed.is_some_and(|kind| kind != ServerKind::Embedded), why, help)
            }
            Self::EmbeddedUpstream => {
                let kind = variant.upstream.kind;
                let why = match kind {
                    Some(kind) => format!("an upstream of kind `{}` does not know it", kind.name()),
                    None => "there is no upstream".to_owned(),
                };
                let help = "only for `upstream.kind = \"embedded\"`";
                used_if(kind == Some(UpstreamChoice::Server(ServerKind::Embedded)), &why, help)
            }
            Self::ProgrammedUpstream => {
                let kind = variant.upstream.kind;
                let why = match kind {
                    Some(kind) => format!("an upstream of kind `{}` does not know it", kind.name()),
                    None => "there is no upstream".to_owned(),
                };
                let help = "only for `upstream.kind = \"embedded\"` or `\"internet\"`";
                used_if(
                    kind.and_then(UpstreamChoice::started) == Some(ServerKind::Embedded),
                    &why,
                    help,
                )
            }
            Self::PrivateInternet => {
                let why = "there is no private Internet, whose servers it names";
                let help = "add `upstream.kind = \"internet\"`, or remove it";
                used_if(variant.upstream.kind == Some(UpstreamChoice::Internet), why, help)
            }
            Self::ExternalUpstream => external_upstream(variant),
            Self::ExternalTlsUpstream => {
                let why = "queries travel to the upstream in the clear";
                let help = "add `upstream.transport = \"dot\"`, or remove it";
                let is_encrypted = variant.upstream.transport.is_encrypted();
                external_upstream(variant).and_then(|()| used_if(is_encrypted, why, help))
            }
            Self::Hosts => {
                let why = "links need hosts, and all is on the loopback interface";
                let has_hosts = variant.lab.hosts != HostsChoice::Loopback;
                used_if(has_hosts, why, "add `lab.hosts = \"auto\"`, or remove it")
            }
            Self::Tcp => {
                let why = "only TCP has acknowledgements that the client's kernel delays";
                let help = "remove it, or choose one of the transports tcp, dot, doh2";
                used_if(variant.load.has_tcp(), why, help)
            }
            Self::Replayed => {
                let why = "no capture is played";
                let help = "add `load.capture`, or remove it";
                used_if(variant.load.mode.capture().is_some(), why, help)
            }
            Self::NotReplayed => {
                let why = "the capture says who asks what, and when";
                let help = "remove it, or `load.capture`";
                used_if(variant.load.mode.capture().is_none(), why, help)
            }
            Self::NotOfPopulation => {
                let why = "the population says how its clients ask, and when";
                let help = "remove it, or `load.population`";
                used_if(variant.load.mode.population().is_none(), why, help)
            }
            Self::Zipf => {
                let help = "add `load.selection = \"zipf\"`, or remove it";
                used_if(
                    variant.load.selection == Selection::Zipf,
                    "the next query is not drawn by it",
                    help,
                )
            }
            Self::CommonQueries => {
                let why = "in a closed loop each client asks when it was answered, so no two loads have the same queries";
                let help = "add `load.capture`, `load.population` or `load.rate`, or remove it";
                used_if(!variant.load.mode.is_closed(), why, help)
            }
            Self::Names => {
                let help = "remove it, or write for example `load.names = \"www.example.com\"`";
                used_if(variant.load.names.is_some(), "no names are listed", help)
            }
            Self::Event => {
                let help = "remove it, or write for example `event.command = \"rndc reload\"`";
                used_if(variant.event.command.is_some(), "nothing is done during the load", help)
            }
            Self::Quota => {
                let why = "no client closes a connection after a number of queries";
                let help = "remove it, or write for example `load.queries_per_connection = 20`";
                used_if(variant.load.queries_per_connection.is_some(), why, help)
            }
        }
    }
}

fn external_upstream(variant: &Variant) -> Result<(), Unused> {
    let why = match variant.upstream.kind {
        None => "there is no upstream",
        Some(_) => "the upstream is none that runs already",
    };
    let is_external = variant.upstream.kind == Some(UpstreamChoice::External);
    used_if(is_external, why, "only for `upstream.kind = \"external\"`")
}

/// The key is used if the condition holds; else why it is not, and what to do about it.
fn used_if(condition: bool, why: &str, help: &str) -> Result<(), Unused> {
    let unused = || Unused { why: why.to_owned(), help: help.to_owned() };
    condition.then_some(()).ok_or_else(unused)
}
