//! The hosts of a run, and the servers behind the one under test.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use dnslab_agent::{Agents, give};
use dnslab_lab::hosts::{self, EndedPart, Hosts, LinkSettings};
use dnslab_lab::network::Visit;
use dnslab_lab::{
    CounterWatch, GuardProgram, IANA_TRUST_ANCHORS, LabError, Patience, Ports, RootHints,
    RunningServer, Sampler, ServerSpec, Upstream, UpstreamTls, certificate, ports,
};
use dnslab_record::{ChainPart, ExternalUpstream, HostFacts, Span, TestbedFacts};
use dnslab_settings::{
    ChainRole, ChainServer, HostsChoice, Link, Load, Queries, ServerKind, UpstreamChoice, Variant,
    Verification,
};
use dnslab_wire::units::duration;
use dnslab_wire::{TRUST_ANCHOR_DS, Transport};

use super::error::{QueriesError, TargetError};
use super::external_upstream as external;
use super::internet::PrivateInternet;
use super::queries::Asked;
use super::ready::{Probe, Question, READY_NAME};
use super::seeds::{Role, Seeds};
use super::split::Cpus;
use super::zone::served_zone;

/// Ports of a relay that shares a host with the server under test.
const RELAY_PORTS: Ports =
    Ports { plain: 5_353, dot: 8_853, doh2: 8_443, doq: 8_853, doh3: 8_443, control: 8_054 };

/// Lines of the server's log that the record of a failed run keeps.
pub(super) const LOG_LINES: usize = 10;

pub(super) struct Testbed {
    /// In the order of the chain. They end before their hosts.
    behind: Vec<RunningChainServer>,
    hosts: Option<Hosts>,
    /// What the server under test resolves in, if it resolves by itself.
    internet: Option<PrivateInternet>,
    /// What the last server asks, if that ran before.
    external: Option<Upstream>,
}

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

struct RunningChainServer {
    role: ChainRole,
    transport: Transport,
    server: RunningServer,
}

pub(super) struct Watch {
    sampler: Option<Sampler>,
    counters: Option<CounterWatch>,
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
        let mut made = Self { hosts, behind: Vec::new(), internet, external };
        for behind in variant.behind().iter().rev() {
            let place = behind.role.name();
            let server = made.start(behind, variant, queries, startup);
            let server = server.map_err(|error| error.of(place))?;
            made.behind.insert(0, server);
        }
        Ok(made)
    }

    /// `None` without hosts.
    pub(super) fn network(&self, host: &str) -> Option<PathBuf> {
        self.hosts.as_ref()?.network(host).map(Path::to_owned)
    }

    /// Where the server under test listens: on its own host at that address and the usual ports, otherwise at
    /// `fallback` and free ports.
    pub(super) fn listen(&self, fallback: IpAddr) -> Result<(IpAddr, Ports), TargetError> {
        match self.hosts.as_ref().and_then(|hosts| hosts.address("server")) {
            Some(address) => Ok((address, Ports::STANDARD)),
            None => Ok((fallback, free_ports(fallback)?)),
        }
    }

    /// The server that the one under test forwards to.
    pub(super) fn upstream(&self) -> Option<Upstream> {
        self.behind.first().map(RunningChainServer::as_upstream).or_else(|| self.external.clone())
    }

    /// What the server under test asks, for the record, if that ran before.
    pub(super) fn external_upstream(&self) -> Option<ExternalUpstream> {
        self.external.as_ref().filter(|_| self.behind.is_empty()).map(external::facts)
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

    /// Moves this thread to a host until the visit is dropped. Without hosts it stays.
    pub(super) fn visit(&self, host: &'static str) -> Result<Option<Visit>, TargetError> {
        visit(self.network(host).as_deref())
    }

    /// Watches the servers behind the one under test, unless that is switched off.
    pub(super) fn watch(&self, variant: &Variant, cpus: &Cpus) -> Vec<Watch> {
        let is_on = variant.server.watch;
        let watches = self.behind.iter().map(|behind| {
            let watched = behind.server.watched().beside_load(&cpus.load);
            let watched = match behind.role {
                // Interrupts on these CPUs count for the server under test alone.
                ChainRole::Server | ChainRole::Relay => watched.pinned_to(&[]),
                ChainRole::Upstream => watched,
            };
            Watch {
                sampler: is_on.then(|| Sampler::start(watched)),
                counters: behind.server.count().filter(|_| is_on),
            }
        });
        watches.collect()
    }

    /// A server behind the one under test, a host or a link that has ended by itself.
    pub(super) fn ended(&self) -> Option<EndedPart> {
        let server = self.behind.iter().find_map(|behind| {
            let report = behind.server.exited()?;
            let (what, log_tail) =
                (behind.role.name().to_owned(), behind.server.log_tail(LOG_LINES));
            Some(EndedPart { what, report, log_tail })
        });
        server.or_else(|| self.hosts.as_ref()?.ended(LOG_LINES))
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
            last.server.upstream = self.external.as_ref().map(external::facts);
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
        let external = self.external.as_ref().map(external::facts);
        let external = external.map(|facts| {
            format!("upstream: one that ran before answers over {} at {facts}", facts.transport)
        });
        self.behind.iter().map(RunningChainServer::describe).chain(external).collect()
    }

    /// The nearest server ends first.
    pub(super) fn stop(self) {
        for behind in self.behind {
            // A server that ended by itself was noticed before.
            behind.server.stop().ok();
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
        let Startup { cpus, seeds, folder, guard, stop, .. } = startup;
        let directory = folder.join(behind.role.name());
        let listen = self.listen_behind(behind.role, variant.server.address.ip())?;
        // The first of all addresses that a private Internet has.
        let root = self.internet.as_ref().map(|internet| internet.internet.root_addresses());
        let root = root.and_then(|addresses| addresses.first().copied());
        let listen = (root.unwrap_or(listen.0), listen.1);
        let kind = behind.kind.unwrap_or(ServerKind::Embedded);
        let mut spec = ServerSpec::new(kind, directory.clone(), listen, &transports(behind));
        spec.network = self.network(behind.role.host());
        let own_cpus = match behind.role {
            ChainRole::Server | ChainRole::Relay => &cpus.server,
            ChainRole::Upstream => &cpus.upstream,
        };
        spec.upstream = self.upstream();
        spec.counts = variant.server.watch;
        give(&mut spec, behind, own_cpus, seeds.of(Role::Upstream));
        match &self.internet {
            Some(internet) => spec.embedded.hierarchy = Some(internet.description.clone()),
            None => give_data(&mut spec, variant, queries, stop)?,
        }
        if kind == ServerKind::Embedded && self.internet.is_none() {
            self.give_behaviour(&mut spec, variant);
        }
        let authority = directory.join(certificate::AUTHORITY);
        let (question, load) = (&Question::of(variant, queries)?, &Load::default());
        let verification = Some(&Verification::RunAuthority);
        let probe = Probe { question, load, verification, authority: &authority };
        let ask = |transport: Transport, address: SocketAddr| {
            // The server that will ask it is on this host.
            let _visit = self.visit("server").map_err(|error| error.to_string())?;
            probe.ask(transport, address)
        };
        let patience = Patience { timeout: variant.server.start_limit, stop };
        let server = RunningServer::start(&spec, guard, &ask, patience)?;
        Ok(RunningChainServer { role: behind.role, transport: behind.transport, server })
    }

    fn listen_behind(
        &self,
        role: ChainRole,
        fallback: IpAddr,
    ) -> Result<(IpAddr, Ports), TargetError> {
        let Some(hosts) = &self.hosts else { return Ok((fallback, free_ports(fallback)?)) };
        match (role, hosts.address("upstream")) {
            (ChainRole::Upstream, Some(address)) => Ok((address, Ports::STANDARD)),
            _ if fallback.is_ipv6() => Ok((Ipv6Addr::LOCALHOST.into(), RELAY_PORTS)),
            _ => Ok((Ipv4Addr::LOCALHOST.into(), RELAY_PORTS)),
        }
    }

    /// Without links the embedded server plays their delay itself.
    fn give_behaviour(&self, spec: &mut ServerSpec, variant: &Variant) {
        let upstream = &variant.upstream;
        spec.embedded.signed = upstream.signed;
        spec.embedded.queries_per_connection = upstream.queries_per_connection;
        spec.embedded.idle_timeout = Some(duration::write(upstream.idle));
        spec.embedded.no_tickets = !upstream.tickets;
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
                .map(|sampler| sampler.finish_over(origin, window))
                .unwrap_or_default(),
        }
    }

    /// As the server before it sees it.
    fn as_upstream(&self) -> Upstream {
        let address = self.server.address(self.transport);
        let authority = self.server.authority().filter(|_| self.transport.is_encrypted());
        Upstream {
            address: address.expect("it was started with this transport"),
            further: Vec::new(),
            transport: self.transport,
            tls: authority.map(|authority| UpstreamTls {
                authority: authority.to_owned(),
                name: certificate::NAME.to_owned(),
            }),
        }
    }
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
            let is_apart = variant.load.hosts.is_some() || variant.server.host.is_some();
            let is_here = !is_apart && variant.external_upstream().is_none();
            is_here && hosts::possible().is_ok()
        }
    }
}

/// Why a variant that may have its own hosts has none.
pub(crate) fn no_hosts(variant: &Variant) -> Option<String> {
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

fn link_settings(Link { delay, jitter, loss, rate_mbit }: Link) -> LinkSettings {
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

/// Moves this thread to a network until the visit is dropped.
pub(super) fn visit(network: Option<&Path>) -> Result<Option<Visit>, TargetError> {
    let Some(network) = network else { return Ok(None) };
    let refused = |error: std::io::Error| LabError::Hosts {
        what: format!("enter the host at {}", network.display()),
        reason: error.to_string(),
    };
    Ok(Some(Visit::to(network).map_err(refused)?))
}

/// What a server behind another must serve: its own transport, and TCP for what UDP truncates.
fn transports(behind: &ChainServer<'_>) -> Vec<Transport> {
    match behind.transport {
        Transport::Udp => vec![Transport::Udp, Transport::Tcp],
        other => vec![other],
    }
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

pub(super) fn free_ports(address: IpAddr) -> Result<Ports, TargetError> {
    ports::free(address)
        .map_err(|source| TargetError::Io { path: PathBuf::from(address.to_string()), source })
}
