//! The server of one run, started here or running already.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dnslab_agent::{Agents, SentServer, ServerPlace, StartedServer, server_spec};
use dnslab_lab::{GuardProgram, Patience, RunningServer, ServerSpec};
use dnslab_load::{Endpoint, TlsSettingsError};
use dnslab_record::ServerFacts;
use dnslab_settings::{HostPlace, Load, OptionForm, TlsVersions, Variant, Verification};
use dnslab_wire::{TlsGroup, Transport};

use super::error::TargetError;
use super::first_query::is_answered;
use super::queries::{Asked, with_files};
use super::ready::{Probe, Question};
use super::remedies::hint;
use super::seeds::Role;
use super::testbed::{Startup, Testbed, visit};
use super::watching::{self, SWITCHED_OFF, Watch};
use super::ways::{Ways, tls};
use super::zone::served_zone;

/// A server that is ready for the load.
pub(super) struct Target {
    pub(super) ways: Ways,
    /// The ports of a server that was started here.
    ports: Vec<(Transport, u16)>,
    /// `None` for a server that was not started here.
    pub(super) server: Option<StartedServer>,
    pub(super) watch: Watch,
    pub(super) facts: ServerFacts,
}

impl Target {
    /// Where the clients of another transport than the first reach a server that was started here.
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
/// answers.
pub(super) fn prepare(
    variant: &Variant,
    testbed: &Testbed,
    startup: Startup<'_>,
    asked: &Asked,
) -> Result<Target, TargetError> {
    let mut target = match (Ways::to_running(variant)?, &variant.server.host) {
        (Some(ways), _) => external(variant, ways, asked, startup.agents)?,
        (None, Some(host)) => started_there(variant, host, startup, asked)?,
        (None, None) => started(variant, testbed, startup, asked)?,
    };
    if !variant.server.watch {
        target.watch = Err(SWITCHED_OFF.to_owned());
    }
    Ok(target)
}

/// A server that is started for the run. It is ready when it answers clients with default settings of TLS; then it is
/// asked with those of the load.
fn started(
    variant: &Variant,
    testbed: &Testbed,
    startup: Startup<'_>,
    asked: &Asked,
) -> Result<Target, TargetError> {
    let load = with_files(variant)?;
    let transport = load.transport;
    let client = Client {
        transport,
        load: &load,
        verification: variant.verification(),
        network: testbed.network("client"),
        start_limit: variant.server.start_limit,
    };
    let spec = spec(variant, testbed, startup, asked)?;
    let question = Question::of(variant, asked)?.with_policy(spec.policy_zone.as_ref())?;
    let mut target = start(&spec, &client, &question, startup.guard, startup.stop)?;
    target.facts.upstream = testbed.external_upstream();
    target.ways.tls = target.ways.tls.map(|tls| tls.of_load(&load));
    for mixed in load.mixed().iter().copied() {
        let endpoint = target.endpoint(variant, mixed)?;
        target.ways.others.push(endpoint);
    }
    let Some(tls) = &target.ways.tls else { return Ok(target) };
    if let Some((offered, key)) = own_tls(&load) {
        let _visit = testbed.visit("client")?;
        let answered = question.ask(&load, transport, target.ways.address, Some(tls));
        answered.map_err(|reason| {
            let library = match target.facts.tls_library.as_str() {
                "" => "the server's TLS library".to_owned(),
                library => format!("the server's TLS library ({library})"),
            };
            TargetError::NoCommonTls { offered, key, library, reason }
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
    Ok(Target { ways, ports: Vec::new(), server: None, watch, facts })
}

/// The server under test as it is to be started.
fn spec(
    variant: &Variant,
    testbed: &Testbed,
    startup: Startup<'_>,
    asked: &Asked,
) -> Result<ServerSpec, TargetError> {
    let place = ServerPlace {
        directory: startup.folder.join("server"),
        listen: testbed.listen(variant.server.address.ip())?,
        network: testbed.network("server"),
        cpus: &startup.cpus.server,
        connections: super::room::connections(&variant.load),
        seed: startup.seeds.of(Role::Server),
    };
    let mut spec = server_spec(variant, place);
    spec.upstream = testbed.upstream().filter(|_| !variant.resolves());
    spec.root_hints = testbed.root_hints(variant);
    spec.own = asked.own.as_deref().cloned();
    if spec.upstream.is_none() && spec.root_hints.is_none() && spec.own.is_none() {
        let own = asked.zone.as_deref();
        spec.zone = Some(served_zone(&variant.zone, own, &spec.directory, startup.stop)?);
    }
    if variant.server.dnssec {
        spec.trust_anchors = testbed.trust_anchors(variant)?;
    }
    spec.policy_zone = asked.policy.as_deref().cloned();
    Ok(spec)
}

/// Starts the server on another host. It answers there; then it is asked from here, as the load will ask it.
fn started_there(
    variant: &Variant,
    host: &HostPlace,
    startup: Startup<'_>,
    asked: &Asked,
) -> Result<Target, TargetError> {
    let link = startup.agents.link(host)?;
    let (load, folder) = (with_files(variant)?, startup.folder.join("server"));
    let question = Question::of(variant, asked)?;
    let own = asked.zone.as_deref();
    // A configuration of one's own has zones of its own, and is read there.
    let zone = match variant.own_configuration() {
        None => Some(served_zone(&variant.zone, own, &folder, startup.stop)?),
        Some(_) => None,
    };
    let sent = SentServer {
        variant,
        connections: super::room::connections(&variant.load),
        seed: startup.seeds.of(Role::Server),
        question: question.known(),
        zone: zone.as_ref(),
        folder: &folder,
    };
    let server = StartedServer::there(&link, &sent, startup.stop)?;
    let transport = load.transport;
    let address = server.addresses().iter().find(|(known, _)| *known == transport);
    let address = address.map_or(variant.server.address.at(0), |(_, address)| *address);
    let (name, verification) = (address.ip().to_string(), variant.verification());
    let tls = tls(transport, verification.as_ref(), &name, server.authority())?;
    let ports = server.addresses().iter().map(|(transport, at)| (*transport, at.port())).collect();
    let (facts, watch) = (server.facts().clone(), Ok(server.watched()));
    let ways = Ways::one(address, tls);
    let mut target = Target { ways, ports, server: Some(server), watch, facts };
    target.ways.tls = target.ways.tls.map(|tls| tls.of_load(&load));
    for mixed in load.mixed().iter().copied() {
        let endpoint = target.endpoint(variant, mixed)?;
        target.ways.others.push(endpoint);
    }
    // Other hosts may reach it where this one does not.
    if load.hosts.is_none() {
        let answered =
            asked_often(|| question.ask(&load, transport, address, target.ways.tls.as_ref()));
        answered.map_err(|reason| TargetError::NotReached {
            host: host.name.clone(),
            address,
            transport,
            reason,
        })?;
    }
    Ok(target)
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

/// For servers of no variant.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The certificate is verified against the authority made for the run.
pub(super) fn start_with_run_authority(
    spec: &ServerSpec,
    transport: Transport,
    guard: &GuardProgram,
) -> Result<Target, TargetError> {
    let origin = spec.zone.as_ref().map_or(".", |zone| zone.origin.as_str());
    let question = Question::soa(origin)?;
    let load = &Load::default();
    let verification = Some(Verification::RunAuthority);
    let client = Client { transport, load, verification, network: None, start_limit: START_LIMIT };
    start(spec, &client, &question, guard, &AtomicBool::new(false))
}

/// A client that a server must answer to be ready.
struct Client<'a> {
    transport: Transport,
    load: &'a Load,
    verification: Option<Verification>,
    /// Of its host; `None` for that of dnslab.
    network: Option<PathBuf>,
    /// Time until it must have its first right answer.
    start_limit: Duration,
}

/// Waits until the server gives the right answer to this client.
fn start(
    spec: &ServerSpec,
    client: &Client<'_>,
    question: &Question,
    guard: &GuardProgram,
    stop: &AtomicBool,
) -> Result<Target, TargetError> {
    let (transport, verification) = (client.transport, client.verification.as_ref());
    let address = spec.socket_address(transport);
    let name = address.ip().to_string();
    let authority = spec.directory.join("authority.pem");
    let load = Load { http_path: spec.http_path.clone(), ..client.load.clone() };
    let probe = Probe { question, load: &load, verification, authority: &authority };
    let probe = |transport: Transport, address: SocketAddr| {
        let _visit = visit(client.network.as_deref()).map_err(|error| error.to_string())?;
        probe.ask(transport, address)
    };
    let server =
        RunningServer::start(spec, guard, &probe, Patience { timeout: client.start_limit, stop })?;
    let tls = tls(transport, verification, &name, Some(&authority))?;
    let server = StartedServer::Here(Box::new(server));
    let (facts, watch) = (server.facts().clone(), Ok(server.watched()));
    let port = |transport: &Transport| (*transport, spec.socket_address(*transport).port());
    let ports = spec.transports.iter().map(port).collect();
    Ok(Target { ways: Ways::one(address, tls), ports, server: Some(server), watch, facts })
}
