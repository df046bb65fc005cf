//! The keys, each stated once.

use std::path::PathBuf;
use std::time::Duration;

use dnslab_traffic::{
    Connect, Delay, FurtherServers, Loss, NameList, Pace, Rate, Selection, ServerOrder,
    SourceAddresses, Stall, TimeWindows, TransportMix, Truncated, TypeMix,
};
use dnslab_wire::{
    DnstapKind, DnstapSource, EdnsOption, Method, ServerAddresses, ServerPorts, TlsGroup,
    Transport, TsigKey,
};

use crate::entry::Entries;
use crate::key::{Condition, Field, Fields, FlagForm, Key, Setting, When, Written, settings};
use crate::{
    Alternate, CacheSize, CertificateKind, ExpectedCode, Factor, HostAddress, HostPlace,
    HostPlaces, HostsChoice, Install, Kind, LoadShares, LogSuffix, LogTarget, MAX_WORKERS, Metric,
    Mode, PopulationSource, Quickack, QuotaKind, ReceiveTime, Records, Rounds, ServerChoice,
    ServerKind, ServicePlace, Subnets, TimeForm, TlsVersions, UpstreamChoice, Value, VariantNames,
    ZoneSigning,
};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);
const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

/// Most of what is counted by 32 bits.
const MANY: u64 = u32::MAX as u64;

/// Headings of the options in the help.
const CLIENTS: &str = "Clients";
const TLS_AND_HTTP: &str = "TLS and HTTP";
const QUERIES: &str = "Queries";

const HTTP: When =
    When::Transport { uses: Transport::is_http, why: "only DNS over HTTPS has requests" };
const TLS: When =
    When::Transport { uses: Transport::is_encrypted, why: "only encrypted transports have TLS" };
const DOT: When = When::Transport {
    uses: |transport| transport == Transport::Dot,
    why: "HTTP/2 has frames of its own, and QUIC no TLS records",
};
const PADDED: When = When::Transport {
    uses: Transport::is_encrypted,
    why: "in the clear it hides nothing, and must not be sent (RFC 7830, section 6)",
};
const KEPT_ALIVE: When = When::Transport {
    uses: |transport| matches!(transport, Transport::Tcp | Transport::Dot),
    why: "it is for TCP and DoT: UDP and DoQ must not have it (RFC 7828, section 3.2.1; RFC 9250, \
          section 5.5.2), and HTTP keeps connections in its own way",
};
const TRUNCATING: When =
    When::Transport { uses: is_udp, why: "only answers over UDP are truncated" };
const STAMPED: When = When::Transport { uses: is_udp, why: "the kernel stamps datagrams only" };

fn is_udp(transport: Transport) -> bool {
    transport == Transport::Udp
}

/// Servers that dnslab starts.
const STARTED: When = When::Server(|kind| kind.is_some());
/// Servers that somebody else wrote and dnslab starts.
const INSTALLED: When = When::Server(|kind| kind.is_some_and(|kind| kind != ServerKind::Embedded));
/// The responder.
const EMBEDDED: When = When::Server(|kind| kind == Some(ServerKind::Embedded));
/// Servers that run already.
const EXTERNAL: When = When::Server(|kind| kind.is_none());
/// Servers that apply a response policy zone where they ask others.
const POLICED: When = When::Server(|kind| kind.is_some_and(ServerKind::applies_policy));
/// Servers that run a configuration of the user's own.
const CONFIGURED: When = When::Server(|kind| kind.is_some_and(ServerKind::takes_configuration));
const ASKS_OTHERS: When = When::Variant(Condition::AsksOthers);
/// Servers that ask others.
const FORWARDING: When = When::Server(|kind| kind.is_some_and(ServerKind::forwards));

const WITH_ATTEMPTS: When = When::Variant(Condition::AsksAgain);
const WITH_FURTHER: When = When::Variant(Condition::KnowsFurther);
const OPEN_LOOP: When = When::Variant(Condition::OpenLoop);

const LOGGED: When = When::Variant(Condition::Logs);
const LOGGED_TO_A_FILE: When = When::Variant(Condition::LogsToFile);
const ROTATED: When = When::Variant(Condition::RotatesLogs);
const ZONE_SERVED: When = When::Variant(Condition::ZoneServed);
const WITH_RELAY: When = When::Variant(Condition::Relay);
const FORWARDED_TO: When = When::Variant(Condition::ForwardedTo);
const STARTED_UPSTREAM: When = When::Variant(Condition::StartedUpstream);
const INSTALLED_UPSTREAM: When = When::Variant(Condition::InstalledUpstream);
const EMBEDDED_UPSTREAM: When = When::Variant(Condition::EmbeddedUpstream);
const PROGRAMMED_UPSTREAM: When = When::Variant(Condition::ProgrammedUpstream);
const PRIVATE_INTERNET: When = When::Variant(Condition::PrivateInternet);
const EXTERNAL_UPSTREAM: When = When::Variant(Condition::ExternalUpstream);
const EXTERNAL_TLS_UPSTREAM: When = When::Variant(Condition::ExternalTlsUpstream);
const BETWEEN_HOSTS: When = When::Variant(Condition::Hosts);
const OVER_TCP: When = When::Variant(Condition::Tcp);
const REPLAYED: When = When::Variant(Condition::Replayed);
const NOT_REPLAYED: When = When::Variant(Condition::NotReplayed);
const NOT_OF_POPULATION: When = When::Variant(Condition::NotOfPopulation);
const BY_ZIPF: When = When::Variant(Condition::Zipf);
const WITH_COMMON_QUERIES: When = When::Variant(Condition::CommonQueries);
const OF_NAMES: When = When::Variant(Condition::Names);
const WITH_EVENT: When = When::Variant(Condition::Event);
const WITH_QUOTA: When = When::Variant(Condition::Quota);

/// How queries travel from one server to the next.
const LEG: Kind = Kind::Choice(&["udp", "tcp", "dot"]);

/// The name of a variant: the one key that is found in a `[[variant]]` only.
pub static VARIANT_NAME: Key = Key::new(
    "name",
    "Name of the variant, different from all others; it becomes the name of a folder",
    Kind::FolderName,
    || None,
)
.required();

settings! {
    /// The experiment as a whole.
    pub struct Top, draft TopDraft, at "" {
        /// Name of the experiment; it becomes part of the name of the results directory
        name: String = String::new(), kind(Kind::FolderName), required;
        /// The question that the experiment answers; the first line of the report
        question: String = "What differs between the variants?".to_owned();
        /// Name of the variant that the others are compared with
        baseline: Option<String> = None, absent("the first variant");
        /// The figure that answers the question. The report begins with it, and in its error rate it
        /// weighs as much as all other figures together
        answered_by: Option<Metric> = None,
            absent("the CPU time per query, and the answered rate where nobody saw that; the latency of one query \
                    after the other, and of a given rate through a chain");
    }
}

settings! {
    /// The server under test.
    pub struct Server, draft ServerDraft, at "server." {
        /// Which server is measured: dnslab's own responder, an installed server that dnslab starts and
        /// stops, or one that runs already. Servers that forward or resolve need an upstream
        kind: ServerChoice = ServerChoice::Started(ServerKind::Embedded);
        /// IPv4 or IPv6 address that the server listens on; an external server must have one, or a host
        /// name, with or without the port for UDP and TCP
        address: HostAddress = HostAddress::LOCAL;
        /// Further servers that run already, which the clients know beside this one and ask when it fails:
        /// addresses, with commas. A port is that of `load.transport`; without one, it is the usual port
        further: Option<FurtherServers> = None, absent("none"), when(&[EXTERNAL, OPEN_LOOP]),
            flag("further", "ADDRESSES");
        /// Port of an external server for UDP and TCP; started servers get a free one
        port: Option<u16> = None, count(1, 65_535), absent("53"), when(&[EXTERNAL]),
            flag("udp-port", "PORT");
        /// Port of an external server for DNS over TLS; started servers get a free one
        dot_port: Option<u16> = None, count(1, 65_535), absent("853"), when(&[EXTERNAL]),
            flag("dot-port", "PORT");
        /// Port of an external server for DNS over HTTPS, with HTTP/2 and with HTTP/3; started servers
        /// get a free one for each
        doh_port: Option<u16> = None, count(1, 65_535), absent("443"), when(&[EXTERNAL]),
            flag("doh-port", "PORT");
        /// Port of an external server for DNS over QUIC; started servers get a free one
        doq_port: Option<u16> = None, count(1, 65_535), absent("853"), when(&[EXTERNAL]),
            flag("doq-port", "PORT");
        /// Name that an external server's certificate must have, also sent as SNI and as the host of HTTP
        /// requests
        tls_name: Option<String> = None, kind(Kind::DomainName), absent("its address"),
            when(&[EXTERNAL]), flag("tls-name", "NAME");
        /// PEM file of the authority that signed an external server's certificate
        authority: Option<PathBuf> = None, absent("none"), when(&[EXTERNAL]), flag("authority", "FILE");
        /// Accept any certificate; the results then carry a caveat
        insecure: bool = false, flag("insecure", ""), form(FlagForm::Switch("true")),
            conflicts("authority");
        /// Host of the server: what you give to `ssh`, or the name of a `[host.NAME]`. dnslab must be there, or is copied
        /// (`hosts.install`). ssh must ask nothing. dnslab starts the server there, or watches one that runs already. A path in
        /// `server.binary` is one of that host
        host: Option<HostPlace> = None, absent("this machine"), flag("watch", "HOST"), code;
        /// Service of a cluster that runs already, as `kube-system/kube-dns` or a name in `hosts.namespace`: its address is
        /// the one that is asked. kubectl leads to the cluster. What the pods behind it use and count is what they publish
        /// for Prometheus as CoreDNS does, and what the kubelets know of their CPU limits; nothing there is changed
        service: Option<ServicePlace> = None, absent("none"), when(&[EXTERNAL]);
        /// Manifest with the servers behind `server.service` (Deployments, DaemonSets, Services, ConfigMaps), which are made in
        /// the namespace of the Service before the first run, and are gone after the last: a path with `/`, or the name of one
        /// that dnslab has (kubernetes/README.md)
        manifest: Option<PathBuf> = None, absent("none: they run already"), when(&[EXTERNAL]), code;
        /// Image of the servers of `server.manifest`, in place of its own ones
        image: Option<String> = None, absent("that of the manifest"), when(&[EXTERNAL]), code;
        /// Process of an external server, whose CPU and memory are watched with those of its children
        pid: Option<u32> = None, count(1, 4_194_304), absent("found by the port"), when(&[EXTERNAL]);
        /// systemd unit of an external server, e.g. `named.service`, whose CPU and memory are watched
        unit: Option<String> = None, absent("found by the port"), when(&[EXTERNAL]);
        /// Where an external server publishes what it counts over HTTP: an IP address and a port, as the network of the server
        /// itself reaches it. dnslab sends no password. In a container it needs root. BIND (`statistics-channels`), CoreDNS
        /// (`prometheus`), PowerDNS and dnsdist (`webserver`) publish that. Queries of other clients are counted, too
        statistics: Option<HostAddress> = None, absent("not read"), when(&[EXTERNAL]);
        /// Sample what the servers use while the load runs, and read what they count themselves; without,
        /// only the load is measured, and the results carry a caveat
        watch: bool = true;
        /// Threads that a started server is configured for
        threads: Option<u32> = None, count(1, 1_024), absent("the number of its CPUs"),
            when(&[STARTED]);
        /// Time in which a started server must give its first right answer: a zone of ten million records takes BIND a
        /// minute
        start_limit: Duration = MINUTE, lasting(SECOND, DAY), when(&[STARTED]);
        /// CPUs that a started server is pinned to
        cpus: Vec<usize> = Vec::new(), absent("chosen so that server and load share none"),
            when(&[STARTED]);
        /// Certificate that dnslab makes for a server that it starts: keys and signatures of ECDSA with
        /// P-256, those of RSA with 2048 bits, or P-256 with an intermediate authority, whose certificate
        /// the server sends too
        certificate: CertificateKind = CertificateKind::EcdsaP256, when(&[STARTED, TLS]);
        /// Program of an installed server, e.g. a build of your own
        binary: Option<PathBuf> = None, absent("found on the search path"), when(&[INSTALLED]), code;
        /// Root folder that an installed server is taken from and runs in by chroot, as root: a path with
        /// `/`, or the name of what `dnslab lab get` has fetched, e.g. `bind-9.16`
        root: Option<PathBuf> = None, absent("the system's"), when(&[INSTALLED]), code;
        /// Configuration that you wrote for an installed server (bind, knot, nsd, unbound), with all that it includes:
        /// dnslab changes addresses, ports and paths, takes out what would reach other servers, and says in the report what it
        /// changed. `upstream.kind = "live"` lets it ask whom it says. With `server.host` it is a file of that host
        config: Option<PathBuf> = None, absent("one that dnslab writes"), when(&[CONFIGURED]), code;
        /// Text appended to the configuration of an installed server, in that server's own language. What
        /// stands there in a block `options` of BIND's goes into its one block of options
        extra: Option<String> = None, absent("nothing"), when(&[INSTALLED]), code;
        /// An installed server writes a line for each query into a file; its size is measured. The same as
        /// `server.log.to = "file"`
        query_log: bool = false, when(&[INSTALLED]), short_form;
        /// An installed server writes dnstap messages of queries and answers into a file; its size is
        /// measured
        dnstap: bool = false, when(&[INSTALLED]);
        /// What a forwarder or resolver keeps: as much as by default, or nothing, so that each query goes
        /// upstream (`false`: coredns, dnsmasq, stubby, dnsdist). Or at most so many entries (coredns, dnsdist,
        /// dnsmasq, pdns-recursor), or so much memory (bind, unbound, knot-resolver), as the server counts them
        cache: CacheSize = CacheSize::Default, when(&[FORWARDING]);
        /// Zone file of a response policy zone (RPZ), such as a block list, that the server under test applies as a
        /// forwarder or resolver (bind, unbound, knot-resolver, pdns-recursor)
        policy_zone: Option<PathBuf> = None, absent("no policy"), when(&[POLICED, ASKS_OTHERS]), code;
        /// A forwarder or resolver validates what it is told (RFC 4035), from the trust anchor of its
        /// upstream; on the Internet from those of IANA
        dnssec: bool = false, when(&[FORWARDING]);
        /// Delay program of the embedded server: `5ms`, `uniform:1ms..9ms`, or what else
        /// `dnslab serve --delay` reads
        delay: Option<Delay> = None, absent("none"), when(&[EMBEDDED]);
        /// Loss program of the embedded server, e.g. `1%`
        loss: Option<Loss> = None, absent("none"), when(&[EMBEDDED]);
        /// Stall program of the embedded server, e.g. `every=10s,length=200ms`
        stall: Option<Stall> = None, absent("none"), when(&[EMBEDDED]);
        /// CPU time that each answer of the embedded server costs beside what it needs, e.g. `200ns`
        busy: Duration = Duration::ZERO, lasting(Duration::ZERO, SECOND), when(&[EMBEDDED]);
        /// Time for which each answer of the embedded server keeps its thread, without CPU time, e.g. `2ms`
        hold: Duration = Duration::ZERO, lasting(Duration::ZERO, SECOND), when(&[EMBEDDED]);
        /// Time for which each answer of the embedded server then keeps all its threads, one after the other: work that
        /// more threads do no faster
        serial: Duration = Duration::ZERO, lasting(Duration::ZERO, SECOND), when(&[EMBEDDED]);
    }
}

settings! {
    /// What the server under test writes of each query.
    pub struct Log, draft LogDraft, at "server.log." {
        /// Where an installed server writes a line for each query: into a file, to the syslog daemon at
        /// /dev/log, to standard error (a pipe that dnslab reads into a file), or to BIND's channel null,
        /// which formats it and drops it. The size of what is written is measured, but for syslog
        to: LogTarget = LogTarget::None, when(&[INSTALLED]);
        /// Existing folder in which the file of the query log is written, e.g. on another disk; what is
        /// written there is removed after the run
        folder: Option<PathBuf> = None, absent("the run's folder"), when(&[INSTALLED, LOGGED_TO_A_FILE]),
            code;
        /// Size of the file from which on a new one is begun, in units of 1,048,576 octets
        size_mib: Option<u32> = None, count(1, 1_000_000), absent("no rotation"),
            when(&[INSTALLED, LOGGED_TO_A_FILE]);
        /// Old files that are kept where the file is rotated
        versions: u32 = 5, count(1, 10_000), when(&[INSTALLED, ROTATED]);
        /// How old files are named: by their age, or by their time
        suffix: LogSuffix = LogSuffix::Increment, when(&[INSTALLED, ROTATED]);
        /// The file is written when a buffer is full, not after each line
        buffered: bool = false, when(&[INSTALLED, LOGGED_TO_A_FILE]);
        /// The time that stands before each line
        print_time: TimeForm = TimeForm::Local, when(&[INSTALLED, LOGGED]);
        /// The category stands before each line
        print_category: bool = false, when(&[INSTALLED, LOGGED]);
        /// The severity stands before each line
        print_severity: bool = false, when(&[INSTALLED, LOGGED]);
    }
}

settings! {
    /// The zone that is served and asked for.
    pub struct Zone, draft ZoneDraft, at "server.zone." {
        /// Name of the zone that is served and asked for; of a zone file, that of its SOA record
        name: String = "example.test".to_owned(), kind(Kind::ZoneName), flag("zone", "NAME"),
            conflicts("queries");
        /// Zone file (RFC 1035, section 5) that is served and asked for in place of a zone that dnslab makes. Without
        /// `load.types`, each name is asked for the types that it has
        file: Option<PathBuf> = None, absent("a zone that dnslab makes"), flag("zone-file", "FILE"),
            conflicts("queries"), code;
        /// dnslab signs the zone before a started server gets it, by `dnssec-signzone` of BIND: with a key for the
        /// zone and one for its keys, and NSEC records. Clients that ask for signatures set `load.dnssec_ok`
        signed: ZoneSigning = ZoneSigning::No, when(&[ZONE_SERVED]);
        /// Address records in the zone that dnslab makes
        records: u32 = 1_000, count(1, 10_000_000), flag("records", "N");
        /// Time to live of the records that dnslab makes
        ttl: Duration = SECOND, kind(Kind::Duration {
            least: Duration::ZERO,
            // RFC 2181, section 8.
            most: Duration::from_secs(2_147_483_647),
            whole_seconds: true,
        });
    }
}

settings! {
    /// A forwarder between the server under test and its upstream.
    pub struct Relay, draft RelayDraft, at "relay." {
        /// A further forwarder between the server and its upstream, on the server's host: dnsmasq with
        /// stubby behind it, say
        kind: Option<ServerKind> = None, absent("no relay");
        /// How the server's queries travel to the relay
        transport: Transport = Transport::Udp, kind(LEG), when(&[WITH_RELAY]);
        /// Threads that the relay is configured for
        threads: Option<u32> = None, count(1, 1_024), absent("the number of its CPUs"),
            when(&[WITH_RELAY]);
        /// Program of the relay
        binary: Option<PathBuf> = None, absent("found on the search path"), when(&[WITH_RELAY]), code;
        /// Text appended to the configuration of the relay, in its own language
        extra: Option<String> = None, absent("nothing"), when(&[WITH_RELAY]), code;
    }
}

settings! {
    /// What a forwarder or resolver asks.
    pub struct Upstream, draft UpstreamDraft, at "upstream." {
        /// The server that a forwarder asks, at the end of the chain. The embedded one plays a resolver
        /// that knows every name of the load. With `internet` the server resolves by itself in a private
        /// Internet, on a host of its own; with `live` on the Internet, from the root servers that it was
        /// built with (bind, unbound, knot-resolver, pdns-recursor). `external` is one that runs already
        kind: Option<UpstreamChoice> = None, absent("no upstream: the server is authoritative");
        /// File that describes the private Internet (docs/LABORATORY.md): its root servers, TLDs and
        /// authoritative servers
        hierarchy: Option<PathBuf> = None, absent("the one that is built in"),
            when(&[PRIVATE_INTERNET]);
        /// How queries travel to the upstream
        transport: Transport = Transport::Udp, kind(LEG), when(&[FORWARDED_TO]);
        /// Where an external upstream answers: its IPv4 or IPv6 address or its host name, with or without the
        /// port; without it, port 53, or 853 for DNS over TLS
        address: Option<HostAddress> = None, absent("none"), when(&[EXTERNAL_UPSTREAM]);
        /// Service of a cluster that is the external upstream, as `server.service`
        service: Option<ServicePlace> = None, absent("none"), when(&[EXTERNAL_UPSTREAM]);
        /// Further upstreams that run already, which the forwarder knows beside this one, of the same
        /// `upstream.transport`, `upstream.tls_name` and `upstream.authority`: addresses, with commas
        further: Option<FurtherServers> = None, absent("none"), when(&[EXTERNAL_UPSTREAM]);
        /// Name that the certificate of an external upstream must have
        tls_name: Option<String> = None, kind(Kind::DomainName),
            absent("its host name, if `upstream.address` has it"), when(&[EXTERNAL_TLS_UPSTREAM]);
        /// PEM file of the authorities that an external upstream's certificate may be signed by
        authority: Option<PathBuf> = None, absent("those that this system trusts"),
            when(&[EXTERNAL_TLS_UPSTREAM]);
        /// Host of the upstream, as `server.host` is that of the server
        host: Option<HostPlace> = None, absent("that of the server"), when(&[STARTED_UPSTREAM]), code;
        /// Threads that the upstream is configured for
        threads: Option<u32> = None, count(1, 1_024), absent("the number of its CPUs"),
            when(&[STARTED_UPSTREAM]);
        /// CPUs that the upstream is pinned to
        cpus: Vec<usize> = Vec::new(),
            absent("half of those left to the load, or the only one, shared with it"),
            when(&[STARTED_UPSTREAM]);
        /// Program of the upstream
        binary: Option<PathBuf> = None, absent("found on the search path"), when(&[INSTALLED_UPSTREAM]),
            code;
        /// Text appended to the configuration of the upstream, in its own language
        extra: Option<String> = None, absent("nothing"), when(&[INSTALLED_UPSTREAM]), code;
        /// How long an embedded upstream takes for its answers: `5ms`, `uniform:1ms..20ms`, or what else
        /// `dnslab serve --delay` reads. A private Internet adds it to the round trips of its servers
        delay: Option<Delay> = None, absent("none"), when(&[PROGRAMMED_UPSTREAM]);
        /// Share of the queries that an embedded upstream or a private Internet never answers, e.g. `1%`
        loss: Option<Loss> = None, absent("none"), when(&[PROGRAMMED_UPSTREAM]);
        /// CPU time that each answer of an embedded upstream or a private Internet costs beside what it needs
        busy: Duration = Duration::ZERO, lasting(Duration::ZERO, SECOND), when(&[PROGRAMMED_UPSTREAM]);
        /// An embedded upstream has signatures for all its names (RFC 4035)
        signed: bool = false, when(&[EMBEDDED_UPSTREAM]);
        /// An embedded upstream closes a connection after so many answers
        queries_per_connection: Option<u32> = None, count(1, MANY), absent("no limit"),
            when(&[EMBEDDED_UPSTREAM]);
        /// An embedded upstream closes a connection that has been idle for so long
        idle: Duration = Duration::from_secs(10),
            lasting(Duration::from_millis(10), Duration::from_secs(3_600)), when(&[EMBEDDED_UPSTREAM]);
        /// An embedded upstream hands out tickets, so that TLS sessions can be resumed
        tickets: bool = true, when(&[EMBEDDED_UPSTREAM]);
    }
}

settings! {
    /// The hosts of all servers.
    pub struct Lab, draft LabDraft, at "lab." {
        /// Where clients, server and upstream are: all on the loopback interface, each in a network
        /// namespace (takes root's privileges), or in namespaces where that is possible
        hosts: HostsChoice = HostsChoice::Loopback;
        /// In namespaces the kernel handles what a host receives on the CPUs of this host (receive packet steering,
        /// RPS), as on a machine of its own. By default the sender's CPU does it, as on the loopback interface: in a
        /// virtual machine the interrupts between CPUs cost more than the error is (docs/METHOD.md)
        steer_receive: bool = false, when(&[BETWEEN_HOSTS]);
    }
}

/// What a link does to packets, alike in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// How long a packet takes from one end to the other.
    pub delay: Duration,
    /// By how much that varies to either side; at most the delay.
    pub jitter: Duration,
    /// Share of the packets that are lost, in [0, 1].
    pub loss: f64,
    /// Megabits per second; `None` without a bound.
    pub rate_mbit: Option<u32>,
}

/// The keys of a link between two hosts. Those of both links are the same, their words are not.
macro_rules! link {
    ($name:ident, $draft:ident, $path:literal, $what:literal, $delay:literal, $loss:literal, $rate:literal) => {
        settings! {
            #[doc = $what]
            pub struct $name, draft $draft, at $path {
                #[doc = $delay]
                delay: Duration = Duration::ZERO, lasting(Duration::ZERO, MINUTE), when(&[BETWEEN_HOSTS]);
                /// By how much that varies to either side; at most the delay
                jitter: Duration = Duration::ZERO, lasting(Duration::ZERO, MINUTE), when(&[BETWEEN_HOSTS]);
                #[doc = $loss]
                loss: f64 = 0.0, when(&[BETWEEN_HOSTS]);
                #[doc = $rate]
                rate_mbit: Option<u32> = None, count(1, 400_000), absent("no bound"),
                    when(&[BETWEEN_HOSTS]);
            }
        }

        impl $name {
            /// The link, whichever it is.
            #[must_use]
            pub fn link(&self) -> Link {
                let Self { delay, jitter, loss, rate_mbit } = *self;
                Link { delay, jitter, loss, rate_mbit }
            }
        }
    };
}

link! {
    ClientLink, ClientLinkDraft, "link.server.",
    "The link between the clients and the server under test.",
    "How long a packet takes between the clients and the server, one way; links need hosts",
    "Share of the packets between the clients and the server that is lost, in each direction",
    "Megabits per second between the clients and the server, in each direction"
}

link! {
    UpstreamLink, UpstreamLinkDraft, "link.upstream.",
    "The link between the server under test and its upstream.",
    "How long a packet takes between the server and its upstream, one way. Without namespaces an embedded upstream answers later by twice as long",
    "Share of the packets between the server and its upstream that is lost, in each direction",
    "Megabits per second between the server and its upstream, in each direction"
}

settings! {
    /// What is sent, when, by whom and how; by and large in the order in which one thinks of it.
    pub struct Load, draft LoadDraft, at "load.",
        with
        /// Closed loop, open loop, or clients that are played: what is written of `load.outstanding`, `load.rate`,
        /// `load.pace`, `load.capture` and `load.population`.
        mode: Mode
    {
        /// How queries travel: UDP, TCP, DNS over TLS, DNS over HTTPS with HTTP/2, DNS over QUIC, or DNS
        /// over HTTPS with HTTP/3
        transport: Transport = Transport::Udp, flag("transport", "TRANSPORT");
        /// Shares of the clients that use other transports than `load.transport`, e.g. `"dot:30%,doh2:5%"`.
        /// Each client keeps its transport
        mix: Option<TransportMix> = None, absent("all clients use `load.transport`"),
            flag("mix", "TRANSPORT:SHARE,..."), under(CLIENTS);
        /// Simulated clients, each with sockets, tickets and cookies of its own; without it, a population
        /// has as many as it says
        clients: u32 = 100, count(1, 1_000_000), flag("clients", "N"), when(&[NOT_REPLAYED]);
        /// Closed loop: queries that each client keeps outstanding
        [mode] outstanding: Option<u32> = None, count(1, 65_535), absent("1, if there is no `load.rate`"),
            flag("outstanding", "N"), searched, when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Open loop: intended rate over all clients, which does not wait for the server; steps of equal
        /// length or a ramp, too, counted from the start of the warm-up, the last rate going on. Without it,
        /// each client of a population is as active as that says
        [mode] rate: Option<Rate> = None, absent("closed loop"), flag("rate", "QPS"), searched, when(&[NOT_REPLAYED]);
        /// Open loop: equal gaps between the queries, or those of a Poisson process
        [mode] pace: Option<Pace> = None, absent("constant, if there is a `load.rate`"), flag("pace", "PACE"), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Capture (pcap, pcapng or dnstap, plain or compressed) whose clients are played, each with its own
        /// timing, sockets, connections and tickets
        [mode] capture: Option<PathBuf> = None, absent("queries of the load's own");
        /// Servers whose clients are played: addresses, each with a port or with any, and networks, e.g.
        /// `"192.0.2.53, 2001:db8::53"`. At a resolver its address for clients leaves out what it asks others
        capture_server: Option<ServerAddresses> = None, absent("any server"), when(&[REPLAYED]),
            flag("capture-server", "ADDRESSES"), under(QUERIES);
        /// Ports of the servers in captured packets; by default with those that `load.capture_server` names
        capture_ports: ServerPorts = ServerPorts::default(), when(&[REPLAYED]),
            flag("capture-ports", "PORT,..."), under(QUERIES);
        /// Messages of a dnstap capture that are played: those of clients that ask the server to resolve or as
        /// an authoritative one, or what a server asks itself. Take `resolver` alone to play what a resolver
        /// sends
        dnstap_messages: Vec<DnstapKind> = vec![DnstapKind::Client, DnstapKind::Auth], when(&[REPLAYED]),
            flag("dnstap-messages", "KIND,..."), under(QUERIES);
        /// Where the queries of a dnstap capture come from: messages about queries, or those about responses,
        /// for servers that write no others
        dnstap_source: DnstapSource = DnstapSource::Queries, when(&[REPLAYED]),
            flag("dnstap-source", "WHICH"), under(QUERIES);
        /// Clients of a population, each with its own timing, sockets, connections and tickets: `"typical"`,
        /// or the path of a file that `dnslab make population` or `dnslab profile` has written. It has
        /// `load.clients` clients and asks `load.rate` queries per second on average
        [mode] population: Option<PopulationSource> = None, absent("no population"),
            flag("population", "typical|FILE"), under(CLIENTS);
        /// How many times as many clients as in the capture: so many of its chunks, each as long as
        /// the load, are played side by side, each with clients of its own. Of a last fraction of a
        /// chunk, that share of the clients is played
        factor: Factor = Factor(1.0), when(&[REPLAYED]), flag("factor", "N"), under(CLIENTS);
        /// How many times as fast as in the capture each client asks. More clients (`load.factor`) are
        /// closer to more users than faster ones
        speed: Factor = Factor(1.0), when(&[REPLAYED]), flag("speed", "N"), under(CLIENTS);
        /// Length of the measured window; with `load.queries_in_all`, the longest
        duration: Duration = Duration::from_secs(10), lasting(MS, WEEK), flag("duration", "DURATION"),
            searched;
        /// Queries after which the load ends, warm-up included: with as many names, each is asked once
        queries_in_all: Option<u64> = None, count(1, i64::MAX as u64),
            absent("the load ends by the clock"), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Load before the measured window, kept apart
        warm_up: Duration = Duration::from_secs(2), lasting(Duration::ZERO, WEEK),
            flag("warm-up", "DURATION");
        /// Named parts of the measured window that are counted for themselves too, from its beginning:
        /// `"cold:0s..60s,warm:60s..120s"`. A query belongs to those in which it became due. They may overlap
        windows: Option<TimeWindows> = None, absent("none");
        /// A query without an answer for this long has timed out. With `load.attempts`, how long the first
        /// of them waits
        timeout: Duration = Duration::from_secs(2),
            // Durations are recorded up to 100 s; a longer time-out could not be told from it.
            lasting(MS, Duration::from_secs(100)), flag("timeout", "DURATION");
        /// Times that a client asks each of its servers before it gives up, as `attempts` of
        /// resolv.conf(5). It asks again where no answer came in time, where the connection ended, and
        /// after SERVFAIL, NOTIMP and REFUSED. The latency of a query counts from its first attempt
        attempts: u32 = 1, count(1, 10), flag("attempts", "N"), under(CLIENTS);
        /// How many times as long each further attempt at a server waits as the one before: 1 as glibc
        /// does, 2 as others do
        backoff: u32 = 1, count(1, 10), when(&[WITH_ATTEMPTS]), flag("backoff", "N"), under(CLIENTS);
        /// Which server a client asks first that knows several: the first of the list, as glibc does; the
        /// next of the list from query to query, as glibc does with `rotate`; or the one that answered last,
        /// as systemd-resolved does. If its attempt fails, the next of the list follows
        server_order: ServerOrder = ServerOrder::InOrder, when(&[WITH_FURTHER]),
            flag("server-order", "ORDER"), under(CLIENTS);
        /// Threads of the load generator, at most one per client
        workers: Option<u32> = None, count(1, MAX_WORKERS as u64),
            absent("one for each CPU that is left to the load; in a closed loop no more than leave each a \
                    window of five queries"),
            flag("workers", "N");
        /// CPUs that the workers are pinned to, one for each
        cpus: Vec<usize> = Vec::new(), absent("chosen so that server and load share none");
        /// Hosts that share the load, with commas: `"gen1.example.net,gen2.example.net"`. Each is what you give to `ssh`, the
        /// name of a `[host.NAME]`, or `here` for this machine. dnslab must be there, or is copied (`hosts.install`). ssh must
        /// ask nothing. Each host has as many of the workers as it has of all their CPUs, and as many of the clients as of the
        /// workers
        hosts: Option<HostPlaces> = None, absent("this machine"), flag("hosts", "HOST,..."), code;
        /// Batching: how long sends and receives wait at most to be done in one system call
        batch_delay: Duration = Duration::from_micros(20), lasting(Duration::ZERO, SECOND);
        /// UDP: when a datagram has come, by the clock of the generator once it has read it, or by the
        /// time stamp of the kernel
        receive_time: ReceiveTime = ReceiveTime::User, when(&[STAMPED]), flag("receive-time", "CLOCK"),
            under(CLIENTS);
        /// TCP, DoT and DoH2: when clients acknowledge at once what comes (TCP_QUICKACK, tcp(7)). By
        /// default the acknowledgement waits for the client's next query, 40 ms at most, and answers of a
        /// server with Nagle's algorithm wait for it. In a closed loop the next query follows at once:
        /// `open-loop` is for the rate that is asked, or the common one, only
        quickack: Quickack = Quickack::Never, when(&[OVER_TCP]), flag("quickack", ""),
            form(FlagForm::Switch("always")), under(CLIENTS);
        /// Addresses of this machine that the clients send from, in turn: a prefix (`"127.0.1.0/24"`), a
        /// range (`"127.0.0.1-127.0.0.9"`) or a list with commas; each has its own ports
        sources: Option<SourceAddresses> = None, absent("chosen by the kernel"),
            flag("sources", "ADDRESSES"), under(CLIENTS);
        /// Connections of each client, used in turn; with UDP, sockets
        connections: u32 = 1, count(1, 1_000), flag("connections", "N"), under(CLIENTS), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// A client closes a connection after so many queries, and opens another; with UDP, it takes
        /// another source port
        queries_per_connection: Option<u32> = None, count(1, MANY), absent("no limit"),
            flag("queries-per-connection", "N"), under(CLIENTS);
        /// What `load.queries_per_connection` is: the mean of a number that is drawn anew for each
        /// connection (geometric distribution), so that clients come and go independently of each other,
        /// or the exact number, with which clients that begin together also reconnect together
        connection_quota: QuotaKind = QuotaKind::Random, when(&[WITH_QUOTA]),
            flag("connection-quota", "HOW"), under(CLIENTS);
        /// A client closes a connection that was idle for so long; with UDP, its next query comes from
        /// another source port, as those of real clients do
        idle: Option<Duration> = None, lasting(MS, DAY), absent("never"), flag("idle", "DURATION"),
            under(CLIENTS);
        /// When a client opens its connections: all before its first query, or each when a query needs
        /// it. One that was closed is opened again at once, or with `load.idle` when a query needs it
        connect: Connect = Connect::AtStart, flag("connect", "WHEN"), under(CLIENTS);
        /// UDP: truncated answers are counted as they are, or asked again over TCP as real clients do
        /// (RFC 7766, section 5)
        truncated: Truncated = Truncated::Count, when(&[TRUNCATING]), flag("truncated", "WHAT"),
            under(CLIENTS);
        /// Versions of TLS that clients offer; QUIC has 1.3 alone (RFC 9001, section 4.2)
        tls_versions: TlsVersions = TlsVersions::Both, when(&[TLS]), flag("tls-versions", "VERSIONS"),
            under(TLS_AND_HTTP);
        /// Key exchange groups that clients offer, the one they prefer first: it has a key share in the
        /// first packet. `x25519mlkem768` is the hybrid with ML-KEM-768 (draft-ietf-tls-ecdhe-mlkem) and
        /// needs TLS 1.3. With it first, `x25519` has a key share too, if it is offered
        tls_groups: Vec<TlsGroup> = TlsGroup::PRESET.to_vec(), when(&[TLS]), flag("tls-groups", "GROUPS"),
            under(TLS_AND_HTTP);
        /// DNS over TLS: each query has a TLS record of its own, as those of real clients, or queries that
        /// are sent together share one
        tls_records: Records = Records::PerQuery, when(&[DOT]), flag("tls-records", "HOW"),
            under(TLS_AND_HTTP);
        /// Clients keep session tickets, each its own, and resume with them (RFC 8446, section 2.2); over
        /// QUIC they keep the server's tokens, too (RFC 9000, section 8.1.3)
        resumption: bool = true, when(&[TLS]), flag("resumption", "on|off"), form(FlagForm::OnOff),
            under(TLS_AND_HTTP);
        /// Clients with a ticket send queries with the first packet (0-RTT: RFC 8446, section 2.3); over
        /// HTTP by GET alone (RFC 8470, section 4)
        early_data: bool = false, when(&[TLS]), flag("early-data", ""), form(FlagForm::Switch("true")),
            under(TLS_AND_HTTP);
        /// DNS over HTTPS: the method of the requests (RFC 8484, section 4.1)
        http_method: Method = Method::Post, kind(Kind::Choice(&["post", "get"])), when(&[HTTP]),
            flag("http-method", "METHOD"), under(TLS_AND_HTTP);
        /// DNS over HTTPS: the path that is asked for, without `{?dns}`
        http_path: String = "/dns-query".to_owned(), kind(Kind::HttpPath), when(&[HTTP]),
            flag("http-path", "PATH"), under(TLS_AND_HTTP);
        /// Query file in the format of dnsperf: a name and a type on each line
        queries: Option<PathBuf> = None, absent("the names of the zone"), flag("queries", "FILE"), when(&[NOT_REPLAYED]);
        /// Names that are asked for, with commas, each for each of `load.types` as often as for the others
        names: Option<NameList> = None, absent("the names of the zone"), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Search list of the clients (resolv.conf(5)): domains, with commas. A client asks for a name of `load.names` in one
        /// domain after the other until one exists, as glibc does after NXDOMAIN and SERVFAIL, and the time of all these queries
        /// is that of the name. A time-out ends it. A name that ends with a dot is asked for as it stands
        search: Option<NameList> = None, absent("none"), when(&[OF_NAMES]);
        /// Names with fewer dots are sought in the search list first, others as they stand first; in pods of a cluster it is 5
        ndots: u32 = 1, count(0, 15), when(&[OF_NAMES]);
        /// Ask for the addresses of so many made-up names in as many domains, of which an embedded
        /// upstream knows everything; with a private Internet, for those of its most popular names
        popular_names: Option<u32> = None, count(1, 100_000), absent("the names of the zone"), when(&[NOT_REPLAYED]);
        /// Types that the names of the zone are asked for, with their weights, e.g.
        /// `"A:70,AAAA:25,HTTPS:5"`
        types: Option<TypeMix> = None, absent("`\"A\"`"), flag("types", "TYPE:WEIGHT,..."), under(QUERIES), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Which query comes next: the following one, any with equal chance, or by popularity, as clients
        /// ask: the first of the list most often, the r-th in proportion to r to the power of minus
        /// `load.zipf_exponent` (Zipf's law)
        selection: Selection = Selection::InOrder, when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Exponent of Zipf's law: the larger, the more queries are for the first of the list. About 0.9 was
        /// measured for names (docs/POPULATIONS.md)
        zipf_exponent: Factor = Factor(0.91), when(&[NOT_REPLAYED, NOT_OF_POPULATION, BY_ZIPF]);
        /// Set the RD bit (RFC 1035, section 4.1.1); a forwarder may refuse queries without it
        recursion_desired: Option<bool> = None,
            absent("`true` if the server has an upstream, else `false`"), flag("recursion-desired", ""),
            form(FlagForm::Switch("true")), under(QUERIES), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Send an OPT record with this UDP payload size in octets (RFC 6891, section 6.2.3)
        edns_payload: Option<u16> = None, count(512, 65_535),
            absent("1232 where another key asks for an OPT record, else no OPT record"),
            flag("edns-payload", "OCTETS"), under(QUERIES), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Set the DO bit (RFC 3225)
        dnssec_ok: bool = false, flag("dnssec-ok", ""), form(FlagForm::Switch("true")), under(QUERIES), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// EDNS options that every query carries, as code and octets in hexadecimal
        edns_options: Vec<EdnsOption> = Vec::new(), absent("none"), flag("edns-option", "CODE:HEX"),
            form(FlagForm::Repeated), under(QUERIES), when(&[NOT_REPLAYED, NOT_OF_POPULATION]);
        /// Pad queries to a multiple of so many octets (RFC 7830), `true` for 128 (RFC 8467, section 4.1);
        /// on encrypted transports only. Clients of a capture or a population do so by default, as stub
        /// resolvers do
        padding: u16 = 0, kind(Kind::Padding), when(&[PADDED]), flag("padding", "OCTETS"),
            form(FlagForm::Optional("true")), under(QUERIES);
        /// TCP and DoT: ask with each query for the server's idle time-out (RFC 7828)
        keepalive: bool = false, when(&[KEPT_ALIVE, NOT_REPLAYED, NOT_OF_POPULATION]), flag("keepalive", ""),
            form(FlagForm::Switch("true")), under(QUERIES);
        /// Send DNS cookies; each client has its own, and keeps the server's (RFC 7873)
        cookies: bool = false, flag("cookies", ""), form(FlagForm::Switch("true")), under(QUERIES);
        /// Client subnets that the clients claim to come from, in turn (RFC 7871): one
        /// (`"192.0.2.0/24"`), all of a length in a prefix (`"10.0.0.0/8 by /24"`), or a file with one on
        /// each line
        client_subnets: Option<Subnets> = None, absent("none"), flag("client-subnets", "SUBNETS"),
            under(QUERIES);
        /// TSIG key (RFC 8945) that queries are signed with, as dnsperf has it:
        /// `"[algorithm:]name:secret"`, the algorithm hmac-sha256 unless another one is named. The secret
        /// is written to no result, so that such an experiment cannot be resumed
        tsig: Option<TsigKey> = None, absent("none"), flag("tsig", "[ALGORITHM:]NAME:SECRET"),
            under(QUERIES);
        /// File with the TSIG key in the form of `load.tsig`
        tsig_file: Option<PathBuf> = None, absent("none"), flag("tsig-file", "FILE"), under(QUERIES);
    }
}

settings! {
    /// What a right answer is.
    pub struct Expect, draft ExpectDraft, at "expect." {
        /// Response code of a right answer, or `any`. Those that a query file asks for need not all exist, so without
        /// it NXDOMAIN is right there, too
        rcode: Option<ExpectedCode> = None, absent("`NOERROR`; for a query file also `NXDOMAIN`"),
            flag("expect", "RCODE|any");
        /// Share of wrong answers beyond which a run is invalid
        wrong_limit: f64 = 0.001;
        /// Share of unanswered queries beyond which a run is invalid
        lost_limit: f64 = 0.5;
        /// Open loop, the common load too: share of the intended rate that the load generator may fail to send,
        /// beyond which a run is invalid
        unsent_limit: f64 = 0.05;
        /// Open loop, the common load too: how late queries may leave, beyond which a run is invalid. Half of
        /// those of a rate may be later, and one in a hundred of a capture or a population
        lag_limit: Duration = Duration::from_millis(10), lasting(Duration::ZERO, MINUTE);
    }
}

settings! {
    /// What the operator does during the load.
    pub struct Event, draft EventDraft, at "event." {
        /// Command that is run on this machine during each load of its own pace, as `rndc reload` or `kubectl rollout restart
        /// deployment/coredns`: a program and its arguments, with blanks between. No shell reads them. A command that begins
        /// with `kubectl` is told the context and the namespace of `server.service`
        command: Option<String> = None, absent("none"), code;
        /// When it is run, since the beginning of the measured window
        at: Option<Duration> = None, lasting(Duration::ZERO, WEEK), absent("a quarter of `load.duration`"), when(&[WITH_EVENT]);
        /// Command that ends when what the first one began is over, as `kubectl rollout status deployment/coredns`
        until: Option<String> = None, absent("it is over with its command"), when(&[WITH_EVENT]), code;
    }
}

settings! {
    /// What a variant is compared with.
    pub struct Compare, draft CompareDraft, at "compare." {
        /// Names of the variants that a variant is compared with, separated by commas; `-` for none, as
        /// for one that others are compared with
        with: Option<VariantNames> = None, absent("the baseline");
        /// Compare the answers of a variant, query by query, with those of the variants that it is compared
        /// with. Their loads must ask the same. What differs is asked again when both have run
        answers: bool = false, when(&[WITH_COMMON_QUERIES]);
    }
}

settings! {
    /// A load at one rate for all variants.
    pub struct Common, draft CommonDraft, at "common." {
        /// Length of the common load of each variant: after its closed loop, each is asked at one and the
        /// same rate by the clock (Poisson), so that latencies can be compared; 0 for none
        duration: Duration = Duration::ZERO, lasting(Duration::ZERO, WEEK);
        /// Rate of the common load, queries per second over all clients
        rate: Option<u32> = None, count(1, 1_000_000_000),
            absent("half of what the slowest variant answers in a short trial, in two digits");
        /// Shares of the rate that a variant answers in its closed loop, as in `10%,50%,80%`: after the common load,
        /// each variant is also asked at these shares of its own rate, each for `common.duration`
        shares: Option<LoadShares> = None, absent("none");
        /// Common load, and each load at a share, before its measured window
        warm_up: Duration = Duration::from_millis(200), lasting(Duration::ZERO, WEEK);
    }
}

settings! {
    /// What holds for each host of which nothing else is said.
    pub struct HostDefaults, draft HostDefaultsDraft, at "hosts." {
        /// Path of dnslab on hosts, of letters, digits and `/._+-`
        program: Option<PathBuf> = None,
            absent("`dnslab`; on this machine the program that runs"), code;
        /// Whether dnslab is on hosts: with `present` it is; with `copy` the running program is copied there by ssh, and
        /// its file is gone when it has begun. A host of another architecture, or with an older C library, has to have
        /// its own
        install: Install = Install::Present;
        /// Context of kubectl that leads to the cluster of hosts that are pods
        context: Option<String> = None, absent("the current one"), code;
        /// Namespace of hosts that are pods
        namespace: Option<String> = None, absent("that of the context");
        /// Image that has dnslab in it, for hosts that are pods: that of a release, by its digest
        image: Option<String> = None, absent("`dnslab:` and the version"), code;
    }
}

settings! {
    /// How often, in which order.
    pub struct Repeat, draft RepeatDraft, at "repeat." {
        /// Rounds: runs of each variant, every time with servers that are freshly started. Of a duration, as many
        /// rounds as its plan has time for, at least 5: what a round takes is estimated before the first one, so
        /// their number depends on no figure
        runs: Rounds = Rounds::Count(5);
        /// End of the rounds before there are `runs` of them: when the difference that answers the question has
        /// an interval that reaches no further than this to either side, for each pair of variants. Its
        /// intervals hold though somebody looked after each round, and are wider. With 0 there are `runs`
        until: f64 = 0.0;
        /// Sessions: the whole experiment so many times, with a pause in between. What differs from session to
        /// session is in no interval of one of them (docs/METHOD.md)
        sessions: u32 = 1, count(1, 100);
        /// Time between two sessions
        session_pause: Duration = MINUTE, lasting(Duration::ZERO, DAY);
        /// How the variants of a round alternate: `slices` has all their servers up together, and the
        /// load goes to them in turns; with `runs` one whole run follows another. `auto` takes slices
        /// where servers can be up together without changing what is measured
        alternate: Alternate = Alternate::Auto;
        /// Length of one turn
        slice: Duration = Duration::from_millis(50), lasting(Duration::from_millis(5), MINUTE);
        /// Beginning of each turn that is not counted; shorter than a slice
        guard: Duration = Duration::from_millis(10), lasting(Duration::ZERO, Duration::from_secs(30));
        /// Time between two rounds in which nothing is done: CPUs cool down, and connections leave TIME-WAIT
        pause: Duration = Duration::ZERO, lasting(Duration::ZERO, Duration::from_secs(3_600));
        /// Seed of the order of the runs and of everything drawn at random
        seed: u64 = 1, count(0, i64::MAX as u64), flag("seed", "N");
        /// Relative difference below which a difference does not matter
        margin: f64 = 0.02;
        /// After the rounds, one more in which `perf` samples the servers under test, so that the report says
        /// where their CPU time goes (docs/PROFILE.md). That round is in no other figure
        profile: bool = false, flag("profile", ""), form(FlagForm::Switch("true")), searched;
    }
}
