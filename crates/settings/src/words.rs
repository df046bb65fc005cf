//! Words that are values of keys.

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
}

/// In what a server counts the size of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheUnit {
    /// Names, records or answers.
    Entries,
    /// Octets of memory.
    Memory,
}

impl ServerKind {
    /// In what a forwarder or resolver counts the size of its cache; `None` if it has none that can be bounded.
    #[must_use]
    pub fn cache_unit(self) -> Option<CacheUnit> {
        match self {
            Self::Bind | Self::Unbound | Self::KnotResolver => Some(CacheUnit::Memory),
            Self::CoreDns | Self::Dnsdist | Self::Dnsmasq | Self::PowerDnsRecursor => {
                Some(CacheUnit::Entries)
            }
            Self::Embedded
            | Self::Knot
            | Self::Nsd
            | Self::PowerDnsAuthoritative
            | Self::Stubby => None,
        }
    }

    /// The row of this kind.
    #[must_use]
    pub fn profile(self) -> ServerProfile {
        let profile = |title, program, [serves_zones, forwards, resolves]: [bool; 3]| {
            ServerProfile { title, program, serves_zones, forwards, resolves }
        };
        let (authoritative, forwarder) = ([true, false, false], [false, true, false]);
        let resolver = [false, true, true];
        match self {
            Self::Embedded => profile("dnslab", "dnslab", authoritative),
            Self::Bind => profile("BIND", "named", [true, true, true]),
            Self::Knot => profile("Knot DNS", "knotd", authoritative),
            Self::Nsd => profile("NSD", "nsd", authoritative),
            Self::PowerDnsAuthoritative => {
                profile("PowerDNS Authoritative Server", "pdns_server", authoritative)
            }
            Self::Unbound => profile("Unbound", "unbound", resolver),
            Self::KnotResolver => profile("Knot Resolver", "kresd", resolver),
            Self::Dnsmasq => profile("dnsmasq", "dnsmasq", forwarder),
            Self::Stubby => profile("Stubby", "stubby", forwarder),
            Self::CoreDns => profile("CoreDNS", "coredns", forwarder),
            Self::Dnsdist => profile("dnsdist", "dnsdist", forwarder),
            Self::PowerDnsRecursor => profile("PowerDNS Recursor", "pdns_recursor", resolver),
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

    /// True for servers that dnslab starts as resolvers of their own, beginning at root servers.
    #[must_use]
    pub fn resolves(self) -> bool {
        self.profile().resolves
    }
}

words! {
    /// Keys and signatures of the certificates that dnslab makes.
    #[derive(Default)]
    pub enum CertificateKind as "kind of certificate" {
        /// The authority and the server have ECDSA keys with P-256.
        #[default]
        EcdsaP256 = "ecdsa-p256",
        /// The authority and the server have RSA keys of 2048 bits.
        Rsa2048 = "rsa-2048",
        /// ECDSA keys with P-256, and an intermediate authority between the server and the authority that
        /// clients trust. The server sends the intermediate certificate too, as servers with public
        /// certificates must.
        Chain = "chain",
    }
}

words! {
    /// On which hosts the servers run.
    #[derive(Default)]
    pub enum HostsChoice as "choice of hosts" {
        /// All on the loopback interface of this host.
        #[default]
        Loopback = "loopback",
        /// Clients, server and upstream each in a network namespace.
        Namespaces = "namespaces",
        /// Namespaces if this user may make them, otherwise the loopback interface.
        Auto = "auto",
    }
}

words! {
    /// How the variants of a round alternate.
    #[derive(Default)]
    pub enum Alternate as "way to alternate" {
        /// In slices if servers can be up together without changing what is measured.
        #[default]
        Auto = "auto",
        /// In slices.
        Slices = "slices",
        /// One whole run after another.
        Runs = "runs",
    }
}

words! {
    /// When the clients' kernel acknowledges TCP data as soon as it was read (`TCP_QUICKACK`, tcp(7)),
    /// instead of waiting up to 40 ms for the next query to carry the acknowledgement.
    #[derive(Default)]
    pub enum Quickack as "use of quick acknowledgements" {
        /// Never, as is the kernel's default.
        #[default]
        Never = "never",
        /// In an open loop only. In a closed one the next query follows an answer at once, and carries the
        /// acknowledgement for nothing.
        OpenLoop = "open-loop",
        /// In every loop.
        Always = "always",
    }
}

words! {
    /// Whose clock says when a datagram came.
    #[derive(Default)]
    pub enum ReceiveTime as "receive time" {
        /// Our clock, read once for each batch after it was read from the kernel. This is what a client sees,
        /// with the wait for its CPU and for the batch.
        #[default]
        User = "user",
        /// The kernel's clock when the datagram came to the host (`SO_TIMESTAMPNS`, socket(7)), without the
        /// generator's own delay. UDP only.
        Kernel = "kernel",
    }
}

words! {
    /// The TLS versions that clients offer.
    #[derive(Default)]
    pub enum TlsVersions as "versions of TLS" {
        /// Both. The server chooses, and most choose 1.3.
        #[default]
        Both = "both",
        /// TLS 1.2 alone (RFC 5246).
        V12 = "1.2",
        /// TLS 1.3 alone (RFC 8446).
        V13 = "1.3",
    }
}

words! {
    /// How queries of DNS over TLS are put into TLS records (RFC 8446, section 5.1).
    #[derive(Default)]
    pub enum Records as "use of TLS records" {
        /// One record for each query, as real clients send them. Queries that are due together still leave in
        /// one write.
        #[default]
        PerQuery = "per-query",
        /// All queries of a batch in one record, as large as records get. NSD 4.6 answers only the first
        /// query of a record until more data comes.
        Shared = "shared",
    }
}

words! {
    /// Where a query log goes.
    #[derive(Default)]
    pub enum LogTarget as "target of a query log" {
        /// No query log.
        #[default]
        None = "none",
        /// A file in the server's folder, or in the folder of `server.log.folder`.
        File = "file",
        /// syslog(3).
        Syslog = "syslog",
        /// Standard error.
        StandardError = "stderr",
        /// Nowhere: each line is formatted and dropped.
        Null = "null",
    }
}

words! {
    /// How old files of a log are named.
    #[derive(Default)]
    pub enum LogSuffix as "suffix of old logs" {
        /// By their age: `.0` is the youngest, and all are renamed each time.
        #[default]
        Increment = "increment",
        /// By the time at which they were ended.
        Timestamp = "timestamp",
    }
}

words! {
    /// How the time of a line is written (BIND's `print-time`).
    #[derive(Default)]
    pub enum TimeForm as "form of the time" {
        /// Not at all.
        None = "none",
        /// Local custom: `22-Nov-2026 23:14:17.123`.
        #[default]
        Local = "local",
        /// ISO 8601, local: `2026-11-22T23:14:17.123`.
        Iso8601 = "iso8601",
        /// ISO 8601 in UTC: `2026-11-22T23:14:17.123Z`.
        Iso8601Utc = "iso8601-utc",
    }
}

words! {
    /// The meaning of a quota of queries.
    #[derive(Default)]
    pub enum QuotaKind as "kind of quota" {
        /// The mean of a number drawn for each connection.
        #[default]
        Random = "random",
        /// The number itself.
        Exact = "exact",
    }
}
