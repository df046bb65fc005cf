//! The kinds of servers, and what is known of each without asking it.

use dnslab_wire::words;

words! {
    /// The servers that dnslab can start.
    pub enum ServerKind as "server" {
        /// dnslab's own responder, `dnslab serve`.
        Embedded = "embedded",
        /// ISC BIND, `named`.
        Bind = "bind",
        /// Knot DNS, `knotd`.
        Knot = "knot",
        /// NLnet Labs NSD, `nsd`.
        Nsd = "nsd",
        /// PowerDNS Authoritative Server, `pdns_server`.
        PowerDnsAuthoritative = "pdns-auth",
        /// NLnet Labs Unbound, `unbound`.
        Unbound = "unbound",
        /// CZ.NIC's Knot Resolver, `kresd`.
        KnotResolver = "knot-resolver",
        /// Simon Kelley's `dnsmasq`.
        Dnsmasq = "dnsmasq",
        /// The stub resolver of the getdns project, `stubby`.
        Stubby = "stubby",
        /// CoreDNS, `coredns`.
        CoreDns = "coredns",
        /// PowerDNS's load balancer, `dnsdist`.
        Dnsdist = "dnsdist",
        /// PowerDNS Recursor, `pdns_recursor`.
        PowerDnsRecursor = "pdns-recursor",
    }
}

/// What is known of a kind of server without asking it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerProfile {
    /// Its name as its makers write it.
    pub title: &'static str,
    /// File name of its program.
    pub program: &'static str,
    /// dnslab starts it with a zone.
    pub serves_zones: bool,
    /// dnslab starts it with another server behind it.
    pub forwards: bool,
    /// dnslab starts it with the addresses of root servers, and it resolves from there by itself.
    pub resolves: bool,
    /// As a forwarder or resolver it applies a response policy zone (RPZ).
    pub applies_policy: bool,
    /// dnslab runs a configuration that its user wrote.
    pub takes_configuration: bool,
    /// In what it counts the size of its cache as a forwarder or resolver; `None` if it has none that can be bounded.
    pub cache_unit: Option<CacheUnit>,
    /// What bounds the connections that it has at once, as half a sentence after "bounds them". Options are named in its
    /// manual; defaults are those of the versions in docs/SERVERS.md.
    pub connection_bound: &'static str,
    /// Its option for the receive buffer of its UDP sockets, if it has one.
    pub socket_buffer: Option<&'static str>,
}

/// In what a server counts the size of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheUnit {
    /// Names, records or answers.
    Entries,
    /// Octets of memory.
    Memory,
}

/// What bounds connections where no option does.
const BY_DESCRIPTORS: &str = "by its file descriptors (`ulimit -n`)";

/// Before what each kind says of itself.
const UNKNOWN: ServerProfile = ServerProfile {
    title: "",
    program: "",
    serves_zones: false,
    forwards: false,
    resolves: false,
    applies_policy: false,
    takes_configuration: false,
    cache_unit: None,
    connection_bound: BY_DESCRIPTORS,
    socket_buffer: None,
};

impl ServerKind {
    /// The row of this kind.
    #[must_use]
    pub fn profile(self) -> ServerProfile {
        let authoritative = ServerProfile { serves_zones: true, ..UNKNOWN };
        let forwarder = ServerProfile { forwards: true, ..UNKNOWN };
        let resolver = ServerProfile { resolves: true, ..forwarder };
        match self {
            Self::Embedded => ServerProfile {
                title: "dnslab",
                program: "dnslab",
                connection_bound: "by `--max-connections`",
                ..authoritative
            },
            Self::Bind => ServerProfile {
                title: "BIND",
                program: "named",
                takes_configuration: true,
                serves_zones: true,
                applies_policy: true,
                cache_unit: Some(CacheUnit::Memory),
                connection_bound: "by `tcp-clients` (default 150), over HTTPS by `http-listener-clients` (300)",
                socket_buffer: Some("udp-receive-buffer"),
                ..resolver
            },
            Self::Knot => ServerProfile {
                title: "Knot DNS",
                program: "knotd",
                takes_configuration: true,
                connection_bound: "by `tcp-max-clients`, over QUIC by `quic-max-clients`",
                ..authoritative
            },
            Self::Nsd => ServerProfile {
                title: "NSD",
                program: "nsd",
                takes_configuration: true,
                connection_bound: "by `tcp-count` (default 100)",
                socket_buffer: Some("receive-buffer-size"),
                ..authoritative
            },
            Self::PowerDnsAuthoritative => ServerProfile {
                title: "PowerDNS Authoritative Server",
                program: "pdns_server",
                connection_bound: "by `max-tcp-connections` (default 20) and `max-tcp-connections-per-client`",
                ..authoritative
            },
            Self::Unbound => ServerProfile {
                title: "Unbound",
                program: "unbound",
                takes_configuration: true,
                applies_policy: true,
                cache_unit: Some(CacheUnit::Memory),
                connection_bound: "by `incoming-num-tcp` (default 10 for each thread)",
                socket_buffer: Some("so-rcvbuf"),
                ..resolver
            },
            Self::KnotResolver => ServerProfile {
                title: "Knot Resolver",
                program: "kresd",
                applies_policy: true,
                cache_unit: Some(CacheUnit::Memory),
                ..resolver
            },
            Self::Dnsmasq => ServerProfile {
                title: "dnsmasq",
                program: "dnsmasq",
                cache_unit: Some(CacheUnit::Entries),
                connection_bound: "by `max-tcp-connections` (default 20)",
                ..forwarder
            },
            Self::Stubby => ServerProfile { title: "Stubby", program: "stubby", ..forwarder },
            Self::CoreDns => ServerProfile {
                title: "CoreDNS",
                program: "coredns",
                cache_unit: Some(CacheUnit::Entries),
                connection_bound: "over HTTPS, HTTP/3 and QUIC by `max_connections` of the plugins `https`, `https3` and \
                                   `quic` (default 200), over TCP and TLS by its file descriptors (`ulimit -n`)",
                ..forwarder
            },
            Self::Dnsdist => ServerProfile {
                title: "dnsdist",
                program: "dnsdist",
                cache_unit: Some(CacheUnit::Entries),
                connection_bound: "by `maxConcurrentTCPConnections` of each listener and by \
                                   `setMaxTCPConnectionsPerClient` (no limit by default), and those that wait for a \
                                   thread by `setMaxTCPQueuedConnections` (10,000)",
                socket_buffer: Some("setUDPSocketBufferSizes"),
                ..forwarder
            },
            Self::PowerDnsRecursor => ServerProfile {
                title: "PowerDNS Recursor",
                program: "pdns_recursor",
                applies_policy: true,
                cache_unit: Some(CacheUnit::Entries),
                connection_bound: "by `max-tcp-clients` (default 128) and `max-tcp-per-client`",
                ..resolver
            },
        }
    }

    /// True for servers that dnslab starts with a zone.
    #[must_use]
    pub fn serves_zones(self) -> bool {
        self.profile().serves_zones
    }

    /// True for servers that dnslab starts with another server behind them.
    #[must_use]
    pub fn forwards(self) -> bool {
        self.profile().forwards
    }

    /// True for forwarders and resolvers that apply a response policy zone.
    #[must_use]
    pub fn applies_policy(self) -> bool {
        self.profile().applies_policy
    }

    /// True for servers of which dnslab runs a configuration that its user wrote.
    #[must_use]
    pub fn takes_configuration(self) -> bool {
        self.profile().takes_configuration
    }

    /// True for servers that dnslab starts as resolvers of their own, beginning at root servers.
    #[must_use]
    pub fn resolves(self) -> bool {
        self.profile().resolves
    }
}
