//! The server of one run, started for it or running already.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dnslab_agent::{Agents, LoadHosts, StartedServer};
use dnslab_lab::ServerSpec;
use dnslab_lab::services::Service;
use dnslab_load::{Endpoint, TlsSettingsError};
use dnslab_record::ServerFacts;
use dnslab_settings::{ChainRole, Load, OptionForm, TlsVersions, Variant, Verification};
use dnslab_wire::{TlsGroup, Transport};

use super::error::TargetError;
use super::first_query::is_answered;
use super::place::{Place, Startup};
use super::queries::{Asked, with_files};
use super::ready::Question;
use super::remedies::hint;
use super::seeds::Role;
use super::testbed::Testbed;
use super::watching::{self, SWITCHED_OFF, Watch};
use super::ways::{Ways, tls};
use super::zone::served_zone;

/// A server that is ready for the load.
pub(super) struct Target {
    pub(super) ways: Ways,
    /// The ports of a server that was started.
    ports: Vec<(Transport, u16)>,
    /// `None` for a server that ran before.
    pub(super) server: Option<StartedServer>,
    pub(super) watch: Watch,
    /// Whose pods are watched.
    pub(super) service: Option<Arc<Service>>,
    pub(super) facts: ServerFacts,
}

impl Target {
    /// A server that has been started, as its first clients reach it.
    fn of(
        server: StartedServer,
        transport: Transport,
        verification: Option<&Verification>,
    ) -> Result<Self, TargetError> {
        let known = server.addresses().iter();
        let ports = known.clone().map(|(transport, at)| (*transport, at.port())).collect();
        let address = known.copied().find(|(known, _)| *known == transport);
        let (_, address) = address.expect("it was started with this transport");
        let tls = tls(transport, verification, &address.ip().to_string(), server.authority())?;
        let (facts, watch) = (server.facts().clone(), Ok(server.watched()));
        let ways = Ways::one(address, tls);
        Ok(Self { ways, ports, server: Some(server), watch, service: None, facts })
    }

    /// Where the clients of another transport than the first reach a server that was started.
    fn endpoint(
        &self,
        variant: &Variant,
        (transport, share): (Transport, f64),
    ) -> Result<Endpoint, TlsSettingsError> {
        let address = self.ways.address;
        let port = self.ports.iter().find(|(known, _)| *known == transport);
        let target = port.map_or(address, |(_, port)| SocketAddr::new(address.ip(), *port));
        let authority = self.server.as_ref().and_then(StartedServer::authority);
        let name = address.ip().to_string();
        let tls = tls(transport, variant.verification().as_ref(), &name, authority)?;
        let tls = tls.map(|tls| tls.of_load(&variant.load));
        Ok(Endpoint { transport, target, tls, share })
    }
}

/// Starts the variant's server with all its state under the run's folder, or checks that the external one
/// answers. It is asked from the hosts of the load.
pub(super) fn prepare(
    variant: &Variant,
    testbed: &Testbed,
    startup: Startup<'_>,
    (asked, hosts): (&Asked, &LoadHosts),
) -> Result<Target, TargetError> {
    let mut target = match Ways::to_running(variant)? {
        Some(ways) => external(variant, ways, asked, startup.agents)?,
        None => started(variant, testbed, startup, (asked, hosts))?,
    };
    if !variant.server.watch {
        target.watch = Err(SWITCHED_OFF.to_owned());
    }
    Ok(target)
}

/// A server that is started for the run. It is ready when it answers a client with default settings of TLS; then it is
/// asked with those of the load, and from where that comes.
fn started(
    variant: &Variant,
    testbed: &Testbed,
    startup: Startup<'_>,
    (asked, hosts): (&Asked, &LoadHosts),
) -> Result<Target, TargetError> {
    let load = with_files(variant)?;
    let transport = load.transport;
    let (address, ports) = testbed.listen(variant.server.address.ip());
    let place = Place {
        directory: startup.folder.join("server"),
        address,
        ports,
        cpus: &startup.cpus.server,
        seed: startup.seeds.of(Role::Server),
        agent: testbed.agent("server"),
        has_clients: hosts.links().iter().any(|link| Arc::ptr_eq(link, testbed.agent("server"))),
    };
    let spec = spec(variant, testbed, (&place, startup.stop), asked)?;
    let question = Question::of(variant, asked)?.with_policy(spec.policy_zone.as_ref())?;
    let verification = variant.verification();
    let server =
        place.start(variant, ChainRole::Server, &spec, &question, (&load, startup.stop))?;
    let mut target = Target::of(server, transport, verification.as_ref())?;
    target.facts.upstream = testbed.external_upstream();
    target.ways.tls = target.ways.tls.map(|tls| tls.of_load(&load));
    for mixed in load.mixed().iter().copied() {
        let endpoint = target.endpoint(variant, mixed)?;
        target.ways.others.push(endpoint);
    }
    let address = target.ways.address;
    let ask = || {
        let tls = target.ways.tls.as_ref();
        question.ask_from(hosts, &load, (transport, address), tls)
    };
    if let Some((offered, key)) = own_tls(&load).filter(|_| target.ways.tls.is_some()) {
        ask().map_err(|reason| {
            let library = match target.facts.tls_library.as_str() {
                "" => "the server's TLS library".to_owned(),
                library => format!("the server's TLS library ({library})"),
            };
            TargetError::NoCommonTls { offered, key, library, reason }
        })?;
    }
    // Other hosts may reach it where this one does not.
    if let Some(host) = variant.server.host.as_ref().filter(|_| variant.load.hosts.is_none()) {
        asked_often(ask).map_err(|reason| TargetError::NotReached {
            host: host.name.clone(),
            address,
            transport,
            reason,
        })?;
    }
    Ok(target)
}

/// What clients offer in TLS that is not the default, and the key that says so.
fn own_tls(load: &Load) -> Option<(String, &'static str)> {
    if load.tls_groups != TlsGroup::PRESET {
        let groups: Vec<&str> = load.tls_groups.iter().map(|group| group.name()).collect();
        return Some((
            format!("the key exchange groups {}", groups.join(", ")),
            "`load.tls_groups`",
        ));
    }
    let has_own = load.tls_versions != TlsVersions::Both;
    has_own.then(|| (format!("TLS {}", load.tls_versions), "`load.tls_versions`"))
}

fn external(
    variant: &Variant,
    ways: Ways,
    asked: &Asked,
    agents: &Agents,
) -> Result<Target, TargetError> {
    // The run judges whether the answer is right. Here somebody must answer.
    let job = ways.job(variant, asked)?;
    let is_answered = |server| is_answered((&job, variant), server, agents);
    if let Err(silent) = is_answered(0)
        && !(1..ways.servers()).any(|further| is_answered(further).is_ok())
    {
        let hint = hint(&silent, OptionForm::Set);
        return Err(TargetError::Silent { source: Box::new(silent), hint });
    }
    // A service that waits for its first query has started by now.
    let (facts, watch) = watching::external(variant, agents)?;
    let service = variant.server.service.as_ref().filter(|_| variant.server.watch);
    // It was found when the session began.
    let service = service.and_then(|place| agents.service(place).ok());
    Ok(Target { ways, ports: Vec::new(), server: None, watch, service, facts })
}

/// The server under test as it is to be started.
fn spec(
    variant: &Variant,
    testbed: &Testbed,
    (place, stop): (&Place<'_>, &AtomicBool),
    asked: &Asked,
) -> Result<ServerSpec, TargetError> {
    let mut spec = place.spec(variant, &variant.front());
    spec.connections = super::room::connections(&variant.load);
    spec.upstream = testbed.upstream().filter(|_| !variant.resolves());
    spec.root_hints = testbed.root_hints(variant);
    // A configuration of one's own has zones of its own.
    let has_own = variant.own_configuration().is_some();
    if spec.upstream.is_none() && spec.root_hints.is_none() && !has_own {
        let own = asked.zone.as_deref();
        spec.zone = Some(served_zone(&variant.zone, own, &spec.directory, stop)?);
    }
    if variant.server.dnssec {
        spec.trust_anchors = testbed.trust_anchors(variant)?;
    }
    spec.policy_zone = asked.policy.as_deref().cloned();
    Ok(spec)
}

/// Attempts to reach a server that has answered on its host: packets are lost.
const ATTEMPTS: u32 = 5;

/// The last error, if no attempt had an answer.
fn asked_often(ask: impl Fn() -> Result<(), String>) -> Result<(), String> {
    let mut answered = ask();
    for _ in 1..ATTEMPTS {
        if answered.is_ok() {
            break;
        }
        answered = ask();
    }
    answered
}
