//! The servers behind the one under test, and the hosts of all of them, checked.

use std::time::Duration;

use dnslab_lab::hosts::LinkSettings;
use dnslab_wire::Transport;

use super::Server;

/// The servers behind the one under test, and where all of them are.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// On which hosts.
    pub hosts: HostsChoice,
    /// The link between the clients and the server under test.
    pub client_link: LinkSettings,
    /// The link between the server under test and its upstream.
    pub upstream_link: LinkSettings,
    /// The servers behind the one under test, in the order of the chain; none for an authoritative
    /// server.
    pub chain: Vec<ChainServer>,
}

/// On which hosts the servers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostsChoice {
    /// All on the loopback interface of this host.
    Loopback,
    /// Clients, server and upstream each in a network namespace.
    Namespaces,
    /// Namespaces where this user may make them, else the loopback interface.
    Auto,
}

impl HostsChoice {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Loopback, Self::Namespaces, Self::Auto];

    /// The word of the experiment file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Namespaces => "namespaces",
            Self::Auto => "auto",
        }
    }
}

/// Which place a server has behind the one under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainRole {
    /// Between the server under test and its upstream, on the host of the former.
    Relay,
    /// The end of the chain, on a host of its own.
    Upstream,
}

impl ChainRole {
    /// The word of the experiment file and of records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Upstream => "upstream",
        }
    }

    /// The host that it is on.
    #[must_use]
    pub fn host(self) -> &'static str {
        match self {
            Self::Relay => "server",
            Self::Upstream => "upstream",
        }
    }
}

/// A server behind the one under test.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainServer {
    /// Its role.
    pub role: ChainRole,
    /// How the server before it reaches it.
    pub transport: Transport,
    /// Which server; never one that runs already.
    pub server: Server,
    /// What the embedded server does as an upstream.
    pub behaviour: UpstreamBehaviour,
}

/// How the embedded server behaves as the upstream of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamBehaviour {
    /// The data of its names is signed.
    pub signed: bool,
    /// Answers after which it closes a connection; `None` for never.
    pub queries_per_connection: Option<u32>,
    /// Time after which it closes an idle connection.
    pub idle_timeout: Duration,
    /// It hands out tickets, so that TLS sessions can be resumed.
    pub tickets: bool,
}

impl Default for UpstreamBehaviour {
    /// What the keys are preset to.
    fn default() -> Self {
        Self {
            signed: false,
            queries_per_connection: None,
            idle_timeout: Duration::from_secs(10),
            tickets: true,
        }
    }
}

impl Topology {
    /// The server that the one under test asks; `None` for an authoritative one.
    #[must_use]
    pub fn next(&self) -> Option<&ChainServer> {
        self.chain.first()
    }

    /// The end of the chain; `None` without one.
    #[must_use]
    pub fn upstream(&self) -> Option<&ChainServer> {
        self.chain.iter().find(|behind| behind.role == ChainRole::Upstream)
    }
}
