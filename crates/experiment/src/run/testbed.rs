//! The hosts of a run, and the servers behind the one under test.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dnslab_agent::{
    CounterWatching, Link, LinkError, LoadHosts, PortChoice, ServerWatch, StartedServer,
};
use dnslab_lab::hosts::{self, Hosts, LinkSettings};
use dnslab_lab::{IANA_TRUST_ANCHORS, RootHints, ServerSpec, Upstream, UpstreamTls, certificate};
use dnslab_record::{ChainPart, ExternalUpstream, HostFacts, Span, TestbedFacts};
use dnslab_settings::{
    ChainRole, ChainServer, HostAt, HostPlace, HostsChoice, Install, Load, Queries, ServerKind,
    UpstreamChoice, Variant,
};
use dnslab_wire::units::duration;
use dnslab_wire::{TRUST_ANCHOR_DS, Transport};

use super::error::{QueriesError, TargetError};
use super::external_upstream as external;
use super::internet::PrivateInternet;
use super::place::{Place, Startup};
use super::queries::Asked;
use super::ready::{Question, READY_NAME};
use super::seeds::Role;
use super::split::Cpus;
use super::zone::served_zone;

/// Lines of the server's log that the record of a failed run keeps.
pub(super) const LOG_LINES: usize = 10;

pub(super) struct Testbed {
    /// In the order of the chain. They end before their hosts.
    behind: Vec<RunningChainServer>,
    /// The agents of the hosts, in their order; or the one on the host of the server, for all servers.
    agents: Vec<(&'static str, Arc<Link>)>,
    /// The agent of all else.
    own: Arc<Link>,
    hosts: Option<Hosts>,
    /// What the server under test resolves in, if it resolves by itself.
    internet: Option<PrivateInternet>,
    /// What the last server asks, if that ran before.
    external: Option<(Upstream, ExternalUpstream)>,
}

struct RunningChainServer {
    role: ChainRole,
    transport: Transport,
    server: StartedServer,
}

pub(super) struct Watch {
    sampler: Option<ServerWatch>,
    counters: Option<CounterWatching>,
}

/// What has ended by itself.
pub(super) struct Ended {
    pub(super) what: String,
    /// How, in words.
    pub(super) ending: String,
    pub(super) log_tail: Vec<String>,
}

impl Testbed {
    /// Makes the hosts of a variant and starts what is behind its server, the end of the chain first. All
    /// state lies under `folder`.
    pub(super) fn make(
        variant: &Variant,
        queries: &Asked,
        startup: Startup<'_>,
    ) -> Result<Self, TargetError> {
        let hosts = make_hosts(variant, startup)?;
        let internet = PrivateInternet::of(&variant.upstream).map_err(QueriesError::from)?;
        if let (Some(hosts), Some(internet)) = (&hosts, &internet) {
            hosts.add_internet(&internet.networks())?;
        }
        let external = external::upstream(variant, queries)?;
        let agents = agents(variant, hosts.as_ref(), startup)?;
        let own = Arc::clone(startup.agents.own());
        let mut made = Self { agents, own, hosts, behind: Vec::new(), internet, external };
        for behind in variant.behind().iter().rev() {
            let place = behind.role.name();
            let server = made.start(behind, variant, queries, startup);
            let server = server.map_err(|error| error.of(place))?;
            made.behind.insert(0, server);
        }
        Ok(made)
    }

    /// The agent that starts the servers of a host.
    pub(super) fn agent(&self, host: &str) -> &Arc<Link> {
        let apart = self.agents.iter().find(|(name, _)| *name == host);
        apart.map_or(&self.own, |(_, agent)| agent)
    }

    /// The agents that are processes of this machine.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.agents.iter().filter_map(|(_, agent)| agent.pid()).collect()
    }

    /// The host of the clients, this one or one of the laboratory, with the CPUs of the load.
    pub(super) fn clients(&self, cpus: &Cpus) -> LoadHosts {
        LoadHosts::own(Arc::clone(self.agent("client")), &cpus.load)
    }

    /// Where the server under test listens: on its own host at that address and the usual ports, otherwise at
    /// `fallback` and free ports.
    pub(super) fn listen(&self, fallback: IpAddr) -> (IpAddr, PortChoice) {
        match self.hosts.as_ref().and_then(|hosts| hosts.address("server")) {
            Some(address) => (address, PortChoice::Standard),
            None => (fallback, PortChoice::Free),
        }
    }

    /// The server that the one under test forwards to.
    pub(super) fn upstream(&self) -> Option<Upstream> {
        self.behind
            .first()
            .map(RunningChainServer::as_upstream)
            .or_else(|| Some(self.external.clone()?.0))
    }

    /// What the server under test asks, for the record, if that ran before.
    pub(super) fn external_upstream(&self) -> Option<ExternalUpstream> {
        self.external.as_ref().filter(|_| self.behind.is_empty()).map(|(_, facts)| facts.clone())
    }

    /// Where a server under test that resolves by itself begins.
    pub(super) fn root_hints(&self, variant: &Variant) -> Option<RootHints> {
        match variant.upstream.kind? {
            UpstreamChoice::Server(_) | UpstreamChoice::External => None,
            UpstreamChoice::Internet => {
                Some(RootHints::Zone(self.internet.as_ref()?.internet.root_hints()))
            }
            UpstreamChoice::Live => Some(RootHints::BuiltIn),
        }
    }

    /// What a server under test validates from.
    pub(super) fn trust_anchors(&self, variant: &Variant) -> Result<Vec<String>, TargetError> {
        Ok(match (variant.upstream.kind, &self.internet) {
            (Some(UpstreamChoice::Live | UpstreamChoice::External), _) => {
                IANA_TRUST_ANCHORS.map(str::to_owned).to_vec()
            }
            (_, Some(internet)) => vec![internet.trust_anchor().map_err(QueriesError::from)?],
            (_, None) => vec![TRUST_ANCHOR_DS.to_owned()],
        })
    }

    /// Watches the servers behind the one under test, unless that is switched off.
    pub(super) fn watch(&self, variant: &Variant, cpus: &Cpus) -> Vec<Watch> {
        let is_on = variant.server.watch;
        let watches = self.behind.iter().map(|behind| {
            let watched = behind.server.watched().beside_load(&cpus.load);
            let watched = match behind.role {
                // Interrupts on these CPUs count for the server under test alone.
                ChainRole::Server | ChainRole::Relay => watched.without_interrupts(),
                ChainRole::Upstream => watched,
            };
            // That a host is lost is the fault of the case.
            Watch {
                sampler: is_on.then(|| watched.watch(Vec::new()).ok()).flatten(),
                counters: is_on
                    .then(|| behind.server.watched().count(None).ok().flatten())
                    .flatten(),
            }
        });
        watches.collect()
    }

    /// A server behind the one under test, a host or a link that has ended by itself.
    pub(super) fn ended(&self) -> Option<Ended> {
        let server = self.behind.iter().find_map(|behind| {
            let (ending, log_tail) = behind.server.exited(LOG_LINES)?;
            Some(Ended { what: behind.role.name().to_owned(), ending, log_tail })
        });
        server.or_else(|| {
            let ended = self.hosts.as_ref()?.ended(LOG_LINES)?;
            let (what, ending) = (ended.what, ended.report.ending.to_string());
            Some(Ended { what, ending, log_tail: ended.log_tail })
        })
    }

    /// Why one of the agents is lost; `None` while all are there.
    pub(super) fn lost(&self) -> Option<LinkError> {
        self.agents.iter().find_map(|(_, agent)| agent.ended())
    }

    /// What the watch has seen since `origin`, the start of the load, with the busiest threads of the
    /// measured window.
    pub(super) fn parts(
        &self,
        watches: Vec<Watch>,
        origin: Instant,
        window: Span,
    ) -> Vec<ChainPart> {
        let parts = self.behind.iter().zip(watches);
        let mut parts: Vec<ChainPart> =
            parts.map(|(behind, watch)| behind.part(watch, origin, window)).collect();
        if let Some(last) = parts.last_mut() {
            last.server.upstream = self.external.as_ref().map(|(_, facts)| facts.clone());
        }
        parts
    }

    /// Hosts and links for the record; `None` if one host was asked for.
    pub(super) fn facts(&self, variant: &Variant, cpus: &Cpus) -> Option<TestbedFacts> {
        if variant.lab.hosts == HostsChoice::Loopback {
            return None;
        }
        let networks_of = |name: &str| match (&self.internet, name) {
            (Some(internet), "upstream") => internet.networks(),
            _ => Vec::new(),
        };
        let host = |(name, addresses): (&str, Vec<IpAddr>)| HostFacts {
            name: name.to_owned(),
            addresses: addresses.iter().map(ToString::to_string).chain(networks_of(name)).collect(),
            cpus: cpus_of(name, cpus).to_vec(),
        };
        let (addresses, links) = match &self.hosts {
            Some(hosts) => (hosts.addresses(), hosts.links()),
            None => (names(variant).into_iter().map(|name| (name, Vec::new())).collect(), vec![]),
        };
        Some(TestbedFacts {
            namespaces: self.hosts.is_some(),
            steers_receive: self.hosts.is_some() && variant.lab.steer_receive,
            hosts: addresses.into_iter().map(host).collect(),
            links,
        })
    }

    pub(super) fn hosts(&self) -> Option<&Hosts> {
        self.hosts.as_ref()
    }

    /// The servers behind the one under test and where they answer, a line each.
    pub(super) fn describe(&self) -> Vec<String> {
        let external = self.external.as_ref().map(|(_, facts)| {
            format!("upstream: one that ran before answers over {} at {facts}", facts.transport)
        });
        self.behind.iter().map(RunningChainServer::describe).chain(external).collect()
    }

    /// The nearest server ends first.
    pub(super) fn stop(self) {
        for behind in self.behind {
            behind.server.stop();
        }
    }

    /// The servers behind it are running already.
    fn start(
        &self,
        behind: &ChainServer<'_>,
        variant: &Variant,
        queries: &Asked,
        startup: Startup<'_>,
    ) -> Result<RunningChainServer, TargetError> {
        let Startup { cpus, seeds, folder, stop, .. } = startup;
        let agent = self.agent(behind.role.host());
        let (address, choice) = self.listen_behind(behind.role, variant)?;
        // The first of all addresses that a private Internet has.
        let root = self.internet.as_ref().map(|internet| internet.internet.root_addresses());
        let root = root.and_then(|addresses| addresses.first().copied());
        let place = Place {
            directory: folder.join(behind.role.name()),
            address: root.unwrap_or(address),
            ports: choice,
            cpus: match behind.role {
                ChainRole::Server | ChainRole::Relay => &cpus.server,
                ChainRole::Upstream => &cpus.upstream,
            },
            seed: seeds.of(Role::Upstream),
            agent,
            has_clients: false,
        };
        let mut spec = place.spec(variant, behind);
        spec.upstream = self.upstream();
        match &self.internet {
            Some(internet) => spec.embedded.hierarchy = Some(internet.description.clone()),
            None => give_data(&mut spec, variant, queries, stop)?,
        }
        if spec.kind == ServerKind::Embedded && self.internet.is_none() {
            self.play_delay(&mut spec, variant);
        }
        let question = Question::of(variant, queries)?;
        let server =
            place.start(variant, behind.role, &spec, &question, (&Load::default(), stop))?;
        Ok(RunningChainServer { role: behind.role, transport: behind.transport, server })
    }

    fn listen_behind(
        &self,
        role: ChainRole,
        variant: &Variant,
    ) -> Result<(IpAddr, PortChoice), TargetError> {
        let fallback = variant.server.address.ip();
        if let (ChainRole::Upstream, Some(_)) = (role, &variant.upstream.host) {
            return Ok((reached_at(self.agent("upstream"))?, PortChoice::Free));
        }
        let Some(hosts) = &self.hosts else { return Ok((fallback, PortChoice::Free)) };
        Ok(match (role, hosts.address("upstream")) {
            (ChainRole::Upstream, Some(address)) => (address, PortChoice::Standard),
            _ if fallback.is_ipv6() => (Ipv6Addr::LOCALHOST.into(), PortChoice::Beside),
            _ => (Ipv4Addr::LOCALHOST.into(), PortChoice::Beside),
        })
    }

    /// Without links the embedded server plays their delay itself.
    fn play_delay(&self, spec: &mut ServerSpec, variant: &Variant) {
        let both_ways = 2 * variant.upstream_link.delay;
        if self.hosts.is_none() && !both_ways.is_zero() {
            spec.embedded.path_delay = Some(duration::write(both_ways));
        }
    }
}

impl RunningChainServer {
    /// Where it answers, in a line.
    fn describe(&self) -> String {
        let at =
            |(transport, address): &(Transport, SocketAddr)| format!("{transport} at {address}");
        let addresses: Vec<String> = self.server.addresses().iter().map(at).collect();
        let (place, kind) = (self.role.name(), &self.server.facts().kind);
        format!("{place}: {kind} answers over {}", addresses.join(", "))
    }

    /// What it did since `origin`, as its watch has seen it.
    fn part(&self, watch: Watch, origin: Instant, window: Span) -> ChainPart {
        ChainPart {
            role: self.role.name().to_owned(),
            host: self.role.host().to_owned(),
            transport: self.transport.to_string(),
            server: self.server.facts().clone(),
            counters: watch.counters.map(|counters| counters.finish(origin)),
            resources: watch
                .sampler
                .and_then(|sampler| sampler.finish_over(origin, window).ok())
                .unwrap_or_default(),
        }
    }

    /// As the server before it sees it.
    fn as_upstream(&self) -> Upstream {
        let addresses = self.server.addresses().iter();
        let address = addresses.copied().find(|(transport, _)| *transport == self.transport);
        let authority = self.server.authority().filter(|_| self.transport.is_encrypted());
        Upstream {
            address: address.expect("it was started with this transport").1,
            further: Vec::new(),
            transport: self.transport,
            tls: authority.map(|authority| UpstreamTls {
                authority: authority.to_owned(),
                name: certificate::NAME.to_owned(),
            }),
        }
    }
}

/// The address at which other hosts reach one.
pub(super) fn reached_at(link: &Link) -> Result<IpAddr, TargetError> {
    // By a tunnel sshd may be reached at a loopback address of its own.
    let is_of_us = |address: &IpAddr| !address.is_loopback() || link.is_this_machine();
    let unknown = || TargetError::NoAddress { host: link.name().to_owned() };
    link.address().filter(is_of_us).ok_or_else(unknown)
}

/// In the order of the line.
pub(super) fn names(variant: &Variant) -> Vec<&'static str> {
    let end = variant.upstream.kind.and_then(UpstreamChoice::started).map(|_| "upstream");
    ["client", "server"].into_iter().chain(end).collect()
}

/// The CPUs of a host.
fn cpus_of<'a>(name: &str, cpus: &'a Cpus) -> &'a [usize] {
    match name {
        "client" => &cpus.load,
        "server" => &cpus.server,
        _ => &cpus.upstream,
    }
}

/// True if a variant must have its own hosts, or may and this user can make them.
pub(crate) fn has_hosts(variant: &Variant) -> bool {
    match variant.lab.hosts {
        HostsChoice::Loopback => false,
        HostsChoice::Namespaces => true,
        HostsChoice::Auto => {
            let is_apart = has_other_hosts(variant);
            let is_here = !is_apart && variant.external_upstream().is_none();
            is_here && hosts::possible().is_ok()
        }
    }
}

/// Whether a part of a variant is on a host that is reached.
fn has_other_hosts(variant: &Variant) -> bool {
    let servers = [&variant.server.host, &variant.upstream.host];
    variant.load.hosts.is_some() || servers.into_iter().any(Option::is_some)
}

/// Why a variant that may have its own hosts has none.
pub(crate) fn no_hosts(variant: &Variant) -> Option<String> {
    if has_other_hosts(variant) {
        return Some("the server or the load is on other hosts, with real ways between".to_owned());
    }
    match variant.external_upstream() {
        Some(_) => Some("a host in a namespace would not reach the external upstream".to_owned()),
        None => hosts::possible().err(),
    }
}

/// Why the links of a variant are not played, if they were to be played where possible.
pub(super) fn not_played(variant: &Variant) -> Option<String> {
    let [client, upstream] = links(variant);
    // The way to an upstream that runs already is the real one.
    let is_external = variant.external_upstream().is_some();
    let has_links = !client.is_plain() || !upstream.is_plain() && !is_external;
    if variant.lab.hosts != HostsChoice::Auto || !has_links {
        return None;
    }
    no_hosts(variant)
}

/// The link between the clients and the server, and that between the server and its upstream.
fn links(variant: &Variant) -> [LinkSettings; 2] {
    [variant.client_link.link(), variant.upstream_link.link()].map(link_settings)
}

fn link_settings(
    dnslab_settings::Link { delay, jitter, loss, rate_mbit }: dnslab_settings::Link,
) -> LinkSettings {
    let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    LinkSettings {
        delay_ns: ns(delay),
        jitter_ns: ns(jitter),
        loss,
        rate_bps: rate_mbit.map(|mbit| u64::from(mbit) * 1_000_000),
    }
}

fn make_hosts(variant: &Variant, startup: Startup<'_>) -> Result<Option<Hosts>, TargetError> {
    let Startup { cpus, seeds, folder, guard, .. } = startup;
    if !has_hosts(variant) {
        return Ok(None);
    }
    let ipv6 = variant.server.address.ip().is_ipv6();
    let links = links(variant);
    let (names, folder) = (names(variant), folder.join("hosts"));
    let seed = seeds.of(Role::Links);
    let made = Hosts::make(&names, &links, ipv6, seed, &cpus.load, &folder, guard)?;
    if let Some(sources) = &variant.load.sources {
        made.add_sources(&sources.to_string())?;
    }
    if variant.lab.steer_receive {
        for name in names {
            made.steer(name, cpus_of(name, cpus))?;
        }
    }
    Ok(Some(made))
}

/// The agents that start the servers of a variant elsewhere than on this host, each by the name of its host.
fn agents(
    variant: &Variant,
    hosts: Option<&Hosts>,
    startup: Startup<'_>,
) -> Result<Vec<(&'static str, Arc<Link>)>, LinkError> {
    if let Some(host) = &variant.upstream.host {
        let server = match &variant.server.host {
            Some(host) => startup.agents.link(host)?,
            None => Arc::clone(startup.agents.own()),
        };
        return Ok(vec![("server", server), ("upstream", startup.agents.link(host)?)]);
    }
    if let (Some(host), None) = (&variant.server.host, variant.target()) {
        let agent = startup.agents.link(host)?;
        return Ok(["server", "upstream"].map(|name| (name, Arc::clone(&agent))).to_vec());
    }
    let Some(hosts) = hosts else { return Ok(Vec::new()) };
    let opened = names(variant).into_iter().filter_map(|name| {
        let at = HostAt::Namespace(hosts.network(name)?.to_owned());
        let place = HostPlace {
            name: name.to_owned(),
            at,
            program: None,
            install: Install::Present,
            pod: None,
        };
        Some(Link::open(&place).map(|agent| (name, Arc::new(agent))))
    });
    opened.collect()
}

/// Gives the end of a chain what it answers from: the zone, or the names of the load.
fn give_data(
    spec: &mut ServerSpec,
    variant: &Variant,
    queries: &Asked,
    stop: &AtomicBool,
) -> Result<(), TargetError> {
    if spec.upstream.is_some() {
        return Ok(());
    }
    if let Queries::Zone(_) | Queries::ZoneFile { .. } = variant.asked() {
        let own = queries.zone.as_deref();
        spec.zone = Some(served_zone(&variant.zone, own, &spec.directory, stop)?);
        return Ok(());
    }
    let list = &queries.list;
    let mut text = format!("{READY_NAME} A\n");
    for place in 0..list.len() {
        text.push_str(&format!("{}\n", list.get(place)));
    }
    let path = spec.directory.join("names.txt");
    let written = fs::create_dir_all(&spec.directory).and_then(|()| fs::write(&path, text));
    written.map_err(|source| TargetError::Io { path: path.clone(), source })?;
    spec.embedded.names = Some(path);
    Ok(())
}
