//! Where one of a variant's servers is started, and how it is found to be ready.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dnslab_agent::{
    Agents, Link, LinkError, NotServed, PortChoice, SentServer, ServerPlace, StartedServer, ports,
    server_spec,
};
use dnslab_lab::{GuardProgram, Patience, Ports, RunningServer, ServerSpec, certificate};
use dnslab_settings::{ChainRole, ChainServer, Load, Variant, Verification};
use dnslab_wire::Transport;

use super::error::TargetError;
use super::ready::{Probe, Question};
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
    /// The links to other hosts.
    pub(super) agents: &'a Agents,
}

/// Where a server is started, and with what of its host.
pub(super) struct Place<'a> {
    /// Folder for its whole state, or for what of it is kept here.
    pub(super) directory: PathBuf,
    pub(super) address: IpAddr,
    pub(super) ports: PortChoice,
    /// Empty for those that the agent chooses.
    pub(super) cpus: &'a [usize],
    pub(super) seed: u64,
    /// Whoever starts it; `None` for this process.
    pub(super) agent: Option<&'a Arc<Link>>,
}

/// A client that a server must answer to be ready.
#[derive(Clone, Copy)]
pub(super) struct Client<'a> {
    pub(super) question: &'a Question,
    pub(super) load: &'a Load,
    pub(super) verification: Option<&'a Verification>,
}

impl Place<'_> {
    /// A server without what it answers from. An agent finds free ports by itself.
    pub(super) fn spec(
        &self,
        variant: &Variant,
        server: &ChainServer<'_>,
    ) -> Result<ServerSpec, TargetError> {
        let found = match self.agent {
            Some(_) => Ok(Ports::STANDARD),
            None => ports(self.address, self.ports),
        };
        let path = || PathBuf::from(self.address.to_string());
        let found = found.map_err(|source| TargetError::Io { path: path(), source })?;
        let place = ServerPlace {
            directory: self.directory.clone(),
            listen: (self.address, found),
            cpus: self.cpus,
            seed: self.seed,
        };
        Ok(server_spec(variant, server, place))
    }

    /// Starts a server, and waits until it gives the right answer: to this client, or on another host to one there.
    pub(super) fn start(
        &self,
        variant: &Variant,
        role: ChainRole,
        spec: &ServerSpec,
        client: Client<'_>,
        startup: Startup<'_>,
    ) -> Result<StartedServer, TargetError> {
        let Startup { guard, stop, .. } = startup;
        let Some(agent) = self.agent else {
            let patience = Patience { timeout: variant.server.start_limit, stop };
            return client.start(spec, guard, patience);
        };
        let sent = SentServer {
            variant,
            role,
            spec,
            ports: self.ports,
            seed: self.seed,
            question: client.question.known(),
            denied: client.question.denied(),
        };
        let is_of_laboratory = variant.server.host.is_none();
        StartedServer::there(agent, &sent, stop).map_err(|error| match error {
            // A host of the laboratory is known by what it is for.
            NotServed::Link(LinkError::Failed { failure, log, .. }) if is_of_laboratory => {
                TargetError::NotStarted { failure, log }
            }
            other => other.into(),
        })
    }
}

impl Client<'_> {
    /// Starts a server here.
    pub(super) fn start(
        self,
        spec: &ServerSpec,
        guard: &GuardProgram,
        patience: Patience<'_>,
    ) -> Result<StartedServer, TargetError> {
        let Self { question, load, verification } = self;
        let authority = spec.directory.join(certificate::AUTHORITY);
        let load = &Load { http_path: spec.http_path.clone(), ..load.clone() };
        let probe = Probe { question, load, verification, authority: &authority };
        let probe = |transport: Transport, address: SocketAddr| probe.ask(transport, address);
        let server = RunningServer::start(spec, guard, &probe, patience)?;
        Ok(StartedServer::Here(Box::new(server)))
    }
}
