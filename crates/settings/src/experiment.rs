//! The experiment as checked, in which every variant is complete, and what follows from its keys.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_traffic::{
    Attempts, ClientBehaviour, Delay, Loss, NameList, Quota, Rate, SearchList, SlicePlan, Stall,
    Truncated, TypeMix,
};
use dnslab_wire::{Edns, Method, QueryOptions, Transport, rcode};
use serde::{Deserialize, Serialize};

use crate::entry::Entries;
use crate::key::{Field, Fields as _};
use crate::{
    ClientLink, ClientLinkDraft, Common, Compare, CompareDraft, Event, EventDraft, Expect,
    ExpectDraft, ExpectedCode, HostDefaults, HostPlace, Identity, Key, Lab, LabDraft, Load,
    LoadDraft, Log, LogDraft, LogTarget, Metric, Mode, Published, QuotaKind, Relay, RelayDraft,
    Repeat, RightCodes, Server, ServerChoice, ServerDraft, ServerKind, Top, Upstream,
    UpstreamChoice, UpstreamDraft, UpstreamLink, UpstreamLinkDraft, Value, Written, Zone,
    ZoneDraft,
};

/// An experiment that can be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Fit for the name of a folder.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// Name of the variant that the others are compared with.
    pub baseline: String,
    /// The figure that answers the question; `None` if the load decides.
    pub answered_by: Option<Metric>,
    /// How often the variants run, and in which order.
    pub repeat: Repeat,
    /// The load at one rate for all variants.
    pub common: Common,
    /// What holds for hosts of which nothing else was said.
    pub host_defaults: HostDefaults,
    /// In the order of the file: at least one, each with its own name.
    pub variants: Vec<Variant>,
    /// What others published of such an experiment, in the order of the file.
    pub published: Vec<Published>,
}

/// Makes the struct of a variant, and its draft, from the groups of keys that a variant may override.
macro_rules! variant {
    ($($(#[$of_group:meta])* $group:ident: $type:ident, $draft:ident;)+) => {
        /// One case of the experiment. Keys that mean nothing to it have their defaults.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Variant {
            /// Fit for the name of a folder.
            pub name: String,
            /// The host name that an external server's address was found under; `None` if the address was
            /// written.
            pub host_name: Option<String>,
            $($(#[$of_group])* pub $group: $type,)+
        }

        /// A [`Variant`] as written.
        #[derive(Clone, Debug)]
        pub struct VariantDraft {
            pub(crate) name: String,
            pub(crate) host_name: Option<String>,
            $($(#[$of_group])* pub $group: $draft,)+
        }

        impl Variant {
            /// The keys that a variant may override.
            pub(crate) const KEYS: [&'static [Key]; [$(stringify!($group)),+].len()] =
                [$($type::KEYS),+];

            /// Those of its keys, group by group; `None` where there is nothing to write.
            pub(crate) fn values(&self) -> [Vec<Option<Value>>; Self::KEYS.len()] {
                [$(self.$group.values()),+]
            }
        }

        impl VariantDraft {
            /// The variant's own entries on top of those of the experiment.
            pub(crate) fn of(name: &str, experiment: &Entries, variant: &Entries) -> Self {
                let mut entries = experiment.clone();
                entries.extend(variant.iter().map(|(path, entry)| (*path, entry.clone())));
                Self { name: name.to_owned(), host_name: None, $($group: $draft::of(&entries),)+ }
            }

            pub(crate) fn checked(&self) -> Variant {
                Variant {
                    name: self.name.clone(),
                    host_name: self.host_name.clone(),
                    $($group: self.$group.checked(),)+
                }
            }

            pub(crate) fn fields(&mut self) -> Vec<&mut dyn Field> {
                let mut fields = Vec::new();
                $(fields.extend(self.$group.fields());)+
                fields
            }
        }
    };
}

variant! {
    /// The server under test.
    server: Server, ServerDraft;
    /// The query log of the server under test.
    log: Log, LogDraft;
    /// The zone that the server or its upstream serves, and that names are taken from.
    zone: Zone, ZoneDraft;
    /// The relay behind the server under test.
    relay: Relay, RelayDraft;
    /// The end of the chain.
    upstream: Upstream, UpstreamDraft;
    /// The hosts of the servers.
    lab: Lab, LabDraft;
    /// The link between the clients and the server.
    client_link: ClientLink, ClientLinkDraft;
    /// The link between the server and its upstream.
    upstream_link: UpstreamLink, UpstreamLinkDraft;
    /// The load.
    load: Load, LoadDraft;
    /// What the operator does during the load.
    event: Event, EventDraft;
    /// What a right answer is.
    expect: Expect, ExpectDraft;
    /// What it is compared with.
    compare: Compare, CompareDraft;
}

/// All keys, in the order of the file.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    let groups = [Top::KEYS].into_iter().chain(Variant::KEYS);
    let groups = groups.chain([Common::KEYS, Repeat::KEYS, HostDefaults::KEYS]);
    groups.flatten()
}

impl Experiment {
    /// The variant of this name.
    #[must_use]
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// The hosts of all variants, each once.
    #[must_use]
    pub fn hosts(&self) -> Vec<&HostPlace> {
        let mut all: Vec<&HostPlace> = Vec::new();
        for Variant { server, upstream, load, .. } in &self.variants {
            let of_load = load.hosts.iter().flat_map(|hosts| &hosts.0);
            for host in server.host.iter().chain(&upstream.host).chain(of_load) {
                if !all.contains(&host) {
                    all.push(host);
                }
            }
        }
        all
    }

    /// The slices in which variants alternate. The guard is their lead.
    #[must_use]
    pub fn slices(&self) -> SlicePlan {
        let Repeat { slice, guard: lead, .. } = self.repeat;
        SlicePlan { slice, lead, tail: Duration::ZERO, mirrored: true }
    }

    /// The variants that a variant is compared with.
    #[must_use]
    pub fn compared_with<'a>(&'a self, variant: &'a Variant) -> Vec<&'a Variant> {
        let names: Vec<&str> = match &variant.compare.with {
            Some(names) => names.0.iter().map(String::as_str).collect(),
            None => vec![self.baseline.as_str()],
        };
        let others = self.variants.iter().filter(|other| other.name != variant.name);
        others.filter(|other| names.contains(&other.name.as_str())).collect()
    }

    /// The load at one rate for all variants; `None` without one.
    #[must_use]
    pub fn common_load(&self) -> Option<&Common> {
        Some(&self.common).filter(|common| !common.duration.is_zero())
    }
}

/// How the certificate of a server is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Against the authority that dnslab makes for the run.
    RunAuthority,
    /// Against the authority in this PEM file.
    Authority(PathBuf),
    /// Not at all.
    Off,
}

/// The place of a server in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainRole {
    /// The server under test, at the front.
    Server,
    /// Between the server under test and its upstream, on the host of the server under test.
    Relay,
    /// The end of the chain, on a host of its own.
    Upstream,
}

impl ChainRole {
    /// The word of the experiment file and of records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Relay => "relay",
            Self::Upstream => "upstream",
        }
    }

    /// The host that it is on.
    #[must_use]
    pub fn host(self) -> &'static str {
        match self {
            Self::Server | Self::Relay => "server",
            Self::Upstream => "upstream",
        }
    }
}

/// A server of a variant, in any role.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainServer<'a> {
    /// Its place in the chain.
    pub role: ChainRole,
    /// `None` for a server that runs already.
    pub kind: Option<ServerKind>,
    /// The transport on which it is asked.
    pub transport: Transport,
    /// Threads; `None` for the number of its CPUs.
    pub threads: Option<u32>,
    /// CPUs to pin it to, each once; empty to let dnslab choose.
    pub cpus: &'a [usize],
    /// The program; `None` to find it. A name without `/` is looked up on the search path.
    pub binary: Option<&'a Path>,
    /// Root folder that it is taken from and runs in; `None` for the system's. A name without `/` is one in
    /// the cache. Never together with `binary`.
    pub root: Option<&'a Path>,
    /// Text appended to its configuration.
    pub extra: Option<&'a str>,
    /// Delay program of the embedded server.
    pub delay: Option<Delay>,
    /// Loss program of the embedded server.
    pub loss: Option<Loss>,
    /// Stall program of the embedded server.
    pub stall: Option<Stall>,
    /// CPU time added to each of its answers; 0 for none.
    pub busy: Duration,
    /// Time for which each of its answers keeps its thread; 0 for none.
    pub hold: Duration,
    /// Time for which each of its answers keeps all its threads; 0 for none.
    pub serial: Duration,
}

/// A server at the end of a chain that runs already, with those beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalUpstream<'a> {
    /// Where it answers, and then where those beside it do.
    pub addresses: Vec<SocketAddr>,
    /// How queries travel to it.
    pub transport: Transport,
    /// The name that its certificate must have; `None` without encryption.
    pub tls_name: Option<&'a str>,
    /// PEM file of the authorities that it may be signed by; `None` for those that this system trusts.
    pub authority: Option<&'a Path>,
}

impl Variant {
    /// The server under test.
    #[must_use]
    pub fn front(&self) -> ChainServer<'_> {
        let server = &self.server;
        ChainServer {
            role: ChainRole::Server,
            kind: server.kind.started(),
            transport: self.load.transport,
            threads: server.threads,
            cpus: &server.cpus,
            binary: server.binary.as_deref(),
            root: server.root.as_deref(),
            extra: server.extra.as_deref(),
            delay: server.delay,
            loss: server.loss,
            stall: server.stall,
            busy: server.busy,
            hold: server.hold,
            serial: server.serial,
        }
    }

    /// The servers behind the one under test, in the order of the chain. An authoritative server has none.
    #[must_use]
    pub fn behind(&self) -> Vec<ChainServer<'_>> {
        let (relay, upstream) = (&self.relay, &self.upstream);
        let relay = relay.kind.map(|kind| ChainServer {
            role: ChainRole::Relay,
            kind: Some(kind),
            transport: relay.transport,
            threads: relay.threads,
            cpus: &[],
            binary: relay.binary.as_deref(),
            root: None,
            extra: relay.extra.as_deref(),
            delay: None,
            loss: None,
            stall: None,
            busy: Duration::ZERO,
            hold: Duration::ZERO,
            serial: Duration::ZERO,
        });
        let end = upstream.kind.and_then(UpstreamChoice::started);
        let upstream = end.map(|kind| ChainServer {
            role: ChainRole::Upstream,
            kind: Some(kind),
            transport: upstream.transport,
            threads: upstream.threads,
            cpus: &upstream.cpus,
            binary: upstream.binary.as_deref(),
            root: None,
            extra: upstream.extra.as_deref(),
            delay: upstream.delay,
            loss: upstream.loss,
            stall: None,
            busy: upstream.busy,
            hold: Duration::ZERO,
            serial: Duration::ZERO,
        });
        relay.into_iter().chain(upstream).collect()
    }

    /// True if the server under test resolves by itself, beginning at root servers.
    #[must_use]
    pub fn resolves(&self) -> bool {
        self.upstream.kind.is_some_and(|kind| !kind.is_forwarded_to())
    }

    /// True if the server under test forwards.
    #[must_use]
    pub fn forwards(&self) -> bool {
        self.upstream.kind.is_some_and(UpstreamChoice::is_forwarded_to)
    }

    /// The end of the chain, if it runs already.
    #[must_use]
    pub fn external_upstream(&self) -> Option<ExternalUpstream<'_>> {
        let Upstream { kind, address, further, transport, tls_name, authority, .. } =
            &self.upstream;
        let address = address.as_ref().filter(|_| *kind == Some(UpstreamChoice::External))?;
        let usual = transport.default_port();
        let first = address.at(address.port.unwrap_or(usual));
        let further = further.iter().flat_map(|further| &further.0);
        let further =
            further.map(|(address, port)| SocketAddr::new(*address, port.unwrap_or(usual)));
        Some(ExternalUpstream {
            addresses: std::iter::once(first).chain(further).collect(),
            transport: *transport,
            tls_name: tls_name.as_deref().filter(|_| transport.is_encrypted()),
            authority: authority.as_deref(),
        })
    }

    /// The host that one of its servers is started on; `None` for this one.
    #[must_use]
    pub fn host_of(&self, role: ChainRole) -> Option<&HostPlace> {
        let own = match role {
            ChainRole::Server | ChainRole::Relay => None,
            ChainRole::Upstream => self.upstream.host.as_ref(),
        };
        own.or(self.server.host.as_ref())
    }

    /// All servers, the one under test first.
    #[must_use]
    pub fn servers(&self) -> Vec<ChainServer<'_>> {
        std::iter::once(self.front()).chain(self.behind()).collect()
    }

    /// Where an external server answers; `None` for one that is started.
    #[must_use]
    pub fn target(&self) -> Option<SocketAddr> {
        self.target_over(self.load.transport)
    }

    /// Where an external server answers over this transport; `None` for one that is started.
    #[must_use]
    pub fn target_over(&self, transport: Transport) -> Option<SocketAddr> {
        let server = &self.server;
        let port = server.port_for(transport).unwrap_or(transport.default_port());
        (server.kind == ServerChoice::External).then(|| server.address.at(port))
    }

    /// Where the further servers that clients know answer over this transport.
    pub fn further_over(&self, transport: Transport) -> impl Iterator<Item = SocketAddr> {
        let usual = transport.default_port();
        let is_own = usual == self.load.transport.default_port();
        let listed = self.server.further.iter().flat_map(|further| &further.0);
        listed.map(move |(address, port)| {
            SocketAddr::new(*address, port.filter(|_| is_own).unwrap_or(usual))
        })
    }

    /// Where an external server publishes what it counts.
    #[must_use]
    pub fn statistics(&self) -> Option<SocketAddr> {
        let address = self.server.statistics.as_ref()?;
        Some(address.at(address.port?))
    }

    /// True if a server that dnslab starts has the zone: it is authoritative, or the end of a chain that is asked for
    /// names of the zone. A configuration of the user's own has zones of its own.
    #[must_use]
    pub fn serves_zone(&self) -> bool {
        let is_started = self.server.kind.started().is_some() && self.own_configuration().is_none();
        let is_asked = matches!(self.asked(), Queries::Zone(_) | Queries::ZoneFile { .. });
        is_started
            && match self.upstream.kind {
                None => true,
                Some(kind) => is_asked && kind.server().is_some(),
            }
    }

    /// The configuration that the user wrote for a server that dnslab starts.
    #[must_use]
    pub fn own_configuration(&self) -> Option<(ServerKind, &Path)> {
        self.server.kind.started().zip(self.server.config.as_deref())
    }

    /// What is asked. Of a population, the source of its names: a private Internet has names of its own.
    #[must_use]
    pub fn asked(&self) -> Queries {
        let is_internet = self.upstream.kind == Some(UpstreamChoice::Internet);
        match (self.load.asked(), &self.zone.file) {
            (Queries::Zone(_), _) if is_internet && self.load.mode.population().is_some() => {
                Queries::Internet
            }
            (Queries::Zone(_), Some(path)) => {
                Queries::ZoneFile { path: path.clone(), types: self.load.types.clone() }
            }
            (asked, _) => asked,
        }
    }

    /// The response codes of right answers.
    #[must_use]
    pub fn right_codes(&self) -> RightCodes {
        match (self.expect.rcode, self.asked()) {
            (Some(ExpectedCode::Any), _) => RightCodes::Any,
            (Some(ExpectedCode::One(code)), _) => RightCodes::One(code),
            // An alias may lead to a name that there is not.
            (None, Queries::File(_) | Queries::Names { .. } | Queries::ZoneFile { .. }) => {
                RightCodes::Answers
            }
            (None, _) => RightCodes::One(rcode::NOERROR),
        }
    }

    /// How the certificate is verified; `None` if no transport has one.
    #[must_use]
    pub fn verification(&self) -> Option<Verification> {
        let Server { kind, insecure, authority, .. } = &self.server;
        let is_encrypted = self.load.transports().any(Transport::is_encrypted);
        is_encrypted.then(|| match (kind, authority) {
            (ServerChoice::Started(_), _) if !insecure => Verification::RunAuthority,
            (ServerChoice::External, Some(path)) => Verification::Authority(path.clone()),
            _ => Verification::Off,
        })
    }

    /// The first key that makes this variant's queries others than those of another variant; `None` if both
    /// have the same ones. Transports, connections and servers do not matter.
    #[must_use]
    pub fn other_queries(&self, other: &Self) -> Option<&'static str> {
        let (own, its) = (&self.load, &other.load);
        let names = |load: &Load| {
            (load.queries.clone(), load.names.clone(), load.search_list(), load.popular_names)
        };
        let asks_zone = matches!(own.asked(), Queries::Zone(_));
        let files = (&self.zone.file, &other.zone.file);
        let rd = |load: &Load| load.query_options().recursion_desired;
        let edns =
            |load: &Load| load.query_options().edns.map(|edns| (edns.dnssec_ok, edns.options));
        let keys = [
            ("load.capture", own.mode.capture() == its.mode.capture()),
            ("load.capture_server", own.capture_server == its.capture_server),
            ("load.capture_ports", own.capture_ports == its.capture_ports),
            ("load.dnstap_messages", own.dnstap_messages == its.dnstap_messages),
            ("load.dnstap_source", own.dnstap_source == its.dnstap_source),
            ("load.padding", own.pads_clients() == its.pads_clients()),
            ("load.population", own.mode.population() == its.mode.population()),
            ("load.factor", own.factor == its.factor),
            ("load.speed", own.speed == its.speed),
            ("load.queries", names(own) == names(its)),
            ("upstream.hierarchy", self.source_of_names() == other.source_of_names()),
            ("load.types", own.types == its.types),
            ("server.zone.name", !asks_zone || self.zone.name == other.zone.name),
            ("server.zone.file", !asks_zone || files.0 == files.1),
            ("server.zone.records", !asks_zone || self.zone.records == other.zone.records),
            ("load.selection", own.selection == its.selection),
            ("load.zipf_exponent", own.zipf_exponent == its.zipf_exponent),
            ("load.rate", own.mode.rate() == its.mode.rate()),
            ("load.pace", own.mode.pace() == its.mode.pace()),
            ("load.clients", own.clients == its.clients),
            ("load.connections", own.connections == its.connections),
            ("load.duration", own.duration == its.duration),
            ("load.warm_up", own.warm_up == its.warm_up),
            ("load.queries_in_all", own.queries_in_all == its.queries_in_all),
            ("load.client_subnets", own.client_subnets == its.client_subnets),
            ("load.recursion_desired", rd(own) == rd(its)),
            ("load.edns_payload", edns(own) == edns(its)),
            // By their CPUs there are workers, which deal the queries.
            ("load.hosts", own.workers.is_some() || own.hosts == its.hosts),
        ];
        keys.into_iter().find(|(_, is_same)| !is_same).map(|(key, _)| key)
    }

    /// The upstream whose names are asked for, if they are those of an upstream.
    fn source_of_names(&self) -> Option<(Option<UpstreamChoice>, Option<&Path>)> {
        let Self { load, upstream, .. } = self;
        let asks_it = load.popular_names.is_some() || load.mode.population().is_some();
        asks_it.then_some((upstream.kind, upstream.hierarchy.as_deref()))
    }

    /// True if the server under test writes something for each query.
    #[must_use]
    pub fn writes_logs(&self) -> bool {
        self.log.to != LogTarget::None || self.server.dnstap
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queries {
    /// The names of the zone, for these types.
    Zone(TypeMix),
    /// The names of a zone file.
    ZoneFile {
        /// The file.
        path: PathBuf,
        /// The types that each name is asked for; `None` for those that it has.
        types: Option<TypeMix>,
    },
    /// The lines of a query file in the format of dnsperf.
    File(PathBuf),
    /// These names, each for each of the types.
    Names {
        /// The names.
        names: NameList,
        /// The types.
        types: TypeMix,
        /// The search list of the clients.
        search: Option<SearchList>,
    },
    /// What the clients of this capture asked.
    Capture(PathBuf),
    /// The addresses of so many popular names in as many domains ([`dnslab_traffic::popular_names`]).
    Popular(u32),
    /// What the clients of a population ask of a private Internet, with all its names.
    Internet,
}

impl Server {
    /// The word of the experiment file.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        ServerChoice::name_of(self.kind.started())
    }

    /// How the processes of one that runs already are found.
    #[must_use]
    pub fn identity(&self) -> Identity {
        match (self.pid, &self.unit) {
            (Some(pid), _) => Identity::Process(pid),
            (None, Some(unit)) => Identity::Unit(unit.clone()),
            (None, None) => Identity::Address,
        }
    }

    /// The port written for a transport.
    #[must_use]
    pub fn port_for(&self, transport: Transport) -> Option<u16> {
        match transport {
            Transport::Udp | Transport::Tcp => self.port,
            Transport::Dot => self.dot_port,
            Transport::Doh2 | Transport::Doh3 => self.doh_port,
            Transport::Doq => self.doq_port,
        }
    }
}

impl ServerDraft {
    /// The port key of a transport.
    pub fn port_for(&mut self, transport: Transport) -> &mut Written<Option<u16>> {
        match transport {
            Transport::Udp | Transport::Tcp => &mut self.port,
            Transport::Dot => &mut self.dot_port,
            Transport::Doh2 | Transport::Doh3 => &mut self.doh_port,
            Transport::Doq => &mut self.doq_port,
        }
    }
}

/// How DNS messages become HTTP requests (RFC 8484).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// GET or POST.
    pub method: Method,
    /// Path of the resource, without the variable `dns`.
    pub path: String,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Load::default().http()
    }
}

impl LoadDraft {
    /// The clients of a capture or a population, an open loop with a rate, or a closed loop.
    pub(crate) fn mode(&self) -> Mode {
        let Self { outstanding, rate, pace, capture, population, .. } = self;
        match (&capture.value, &population.value, &rate.value) {
            (Some(path), ..) => Mode::Capture(path.clone()),
            (None, Some(source), rate) => {
                // The check puts the population's own rate where none is written.
                let rate = rate.clone().unwrap_or(Rate::Constant(0.0));
                Mode::Population { source: source.clone(), rate }
            }
            (None, None, Some(rate)) => {
                Mode::Open { rate: rate.clone(), pace: pace.value.unwrap_or_default() }
            }
            (None, None, None) => Mode::Closed { outstanding: outstanding.value.unwrap_or(1) },
        }
    }
}

impl Load {
    /// The transports of its clients, [`Load::transport`] first.
    pub fn transports(&self) -> impl Iterator<Item = Transport> + '_ {
        std::iter::once(self.transport).chain(self.mixed().iter().map(|(transport, _)| *transport))
    }

    /// The other transports, each with the share of the clients that use it.
    #[must_use]
    pub fn mixed(&self) -> &[(Transport, f64)] {
        self.mix.as_ref().map_or(&[], |mix| mix.shares())
    }

    /// Queries that a closed loop keeps outstanding over all clients; `None` for an open loop.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        let outstanding = self.mode.outstanding()?;
        Some(u64::from(self.clients) * u64::from(outstanding))
    }

    /// True if queries have a TSIG.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.tsig.is_some() || self.tsig_file.is_some()
    }

    /// When clients connect, how often, and for how long.
    #[must_use]
    pub fn behaviour(&self) -> ClientBehaviour {
        let quota = match self.connection_quota {
            QuotaKind::Exact => Quota::Exact,
            QuotaKind::Random => Quota::Random,
        };
        ClientBehaviour {
            connections: self.connections,
            queries_per_connection: self.queries_per_connection.map(quota),
            idle: self.idle,
            connect: self.connect,
            truncated: self.truncated,
            attempts: self.attempts,
        }
    }

    /// Flags and EDNS of the queries. Whatever the OPT record carries (RFC 6891) asks for one.
    #[must_use]
    pub fn query_options(&self) -> QueryOptions {
        let edns = Edns {
            dnssec_ok: self.dnssec_ok,
            options: self.edns_options.clone(),
            // Clients with queries of their own pad them when they know their transport.
            padding: Some(self.padding).filter(|block| *block > 0 && !self.mode.is_played()),
            keepalive: self.keepalive,
            ..Edns::default()
        };
        let clients_add = self.cookies || self.client_subnets.is_some();
        let is_wanted = self.edns_payload.is_some() || edns != Edns::default() || clients_add;
        let payload_size = self.edns_payload.unwrap_or(edns.payload_size);
        QueryOptions {
            recursion_desired: self.recursion_desired.unwrap_or(false),
            edns: is_wanted.then_some(Edns { payload_size, ..edns }),
        }
    }

    /// The search list of the clients, if they have one.
    #[must_use]
    pub fn search_list(&self) -> Option<SearchList> {
        let domains = self.search.clone().filter(|_| self.names.is_some())?;
        Some(SearchList { domains, ndots: self.ndots })
    }

    /// What is asked, whatever the upstream is ([`Variant::asked`]).
    #[must_use]
    pub fn asked(&self) -> Queries {
        let types = || self.types.clone().unwrap_or_default();
        match (self.mode.capture(), &self.queries, &self.names, self.popular_names) {
            (Some(path), ..) => Queries::Capture(path.to_owned()),
            (None, Some(path), ..) => Queries::File(path.clone()),
            (None, None, Some(names), _) => {
                Queries::Names { names: names.clone(), types: types(), search: self.search_list() }
            }
            (None, None, None, Some(count)) => Queries::Popular(count),
            (None, None, None, None) => Queries::Zone(types()),
        }
    }

    /// How often clients ask that know so many servers beside the first.
    #[must_use]
    pub fn attempts(&self, further: u32) -> Attempts {
        Attempts {
            rounds: self.attempts,
            servers: 1 + further,
            timeout: self.timeout,
            backoff: self.backoff,
            order: self.server_order,
        }
    }

    /// Clients with queries of their own add an OPT record with padding to them (RFC 8467).
    fn pads_clients(&self) -> bool {
        let is_encrypted = self.transports().any(Transport::is_encrypted);
        self.mode.is_played() && self.padding > 0 && is_encrypted
    }

    /// Method and path of HTTP.
    #[must_use]
    pub fn http(&self) -> HttpSettings {
        HttpSettings { method: self.http_method, path: self.http_path.clone() }
    }

    /// True if clients may have connections over TCP.
    #[must_use]
    pub fn has_tcp(&self) -> bool {
        let asks_again = self.truncated == Truncated::AskOverTcp;
        self.transports()
            .any(|transport| transport.runs_over_tcp() || transport == Transport::Udp && asks_again)
    }
}
