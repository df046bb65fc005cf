//! Where one of a variant's servers is started, and how it is found to be ready.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dnslab_agent::{
    Agents, Link, LinkError, NotServed, PortChoice, SentServer, ServerPlace, StartedServer,
    server_spec,
};
use dnslab_lab::{GuardProgram, Ports, ServerSpec};
use dnslab_settings::{ChainRole, ChainServer, Load, Variant};

use super::error::TargetError;
use super::ready::Question;
use super::seeds::Seeds;
use super::split::Cpus;

/// With what the servers of a run are started.
#[derive(Clone, Copy)]
pub(super) struct Startup<'a> {
    pub(super) cpus: &'a Cpus,
    pub(super) seeds: Seeds,
    /// All their state is below it.
    pub(super) folder: &'a Path,
    pub(super) guard: &'a GuardProgram,
    /// Whoever waits gives up when it is set.
    pub(super) stop: &'a AtomicBool,
    /// Whoever acts on this host, and on others.
    pub(super) agents: &'a Agents,
}

/// Where a server is started, and with what of its host.
pub(super) struct Place<'a> {
    /// Folder for its whole state, or for what of it is kept here.
    pub(super) directory: PathBuf,
    pub(super) address: IpAddr,
    /// Whoever starts it finds them.
    pub(super) ports: PortChoice,
    /// Empty for those that the agent chooses.
    pub(super) cpus: &'a [usize],
    pub(super) seed: u64,
    /// Whoever starts it.
    pub(super) agent: &'a Arc<Link>,
    /// Its clients are on its host.
    pub(super) has_clients: bool,
}

impl Place<'_> {
    /// A server without what it answers from.
    pub(super) fn spec(&self, variant: &Variant, server: &ChainServer<'_>) -> ServerSpec {
        let place = ServerPlace {
            directory: self.directory.clone(),
            listen: (self.address, Ports::STANDARD),
            cpus: self.cpus,
            seed: self.seed,
        };
        server_spec(variant, server, place)
    }

    /// Starts a server, and waits until it gives the right answer to a client of this load on its host.
    pub(super) fn start(
        &self,
        variant: &Variant,
        role: ChainRole,
        spec: &ServerSpec,
        question: &Question,
        (load, stop): (&Load, &AtomicBool),
    ) -> Result<StartedServer, TargetError> {
        let client = &question.client(load, self.has_clients);
        let sent = SentServer {
            variant,
            role,
            spec,
            ports: self.ports,
            seed: self.seed,
            question: question.known(),
            denied: question.denied(),
            client,
        };
        let is_own = variant.server.host.is_none();
        StartedServer::start(self.agent, &sent, stop).map_err(|error| match error {
            // A host of this machine is known by what it is for.
            NotServed::Link(LinkError::Failed { failure, log, .. }) if is_own => {
                TargetError::NotStarted { failure, log }
            }
            NotServed::Interrupted => TargetError::Interrupted(spec.kind.name()),
            other => other.into(),
        })
    }
}
