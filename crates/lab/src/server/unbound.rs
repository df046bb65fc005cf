//! NLnet Labs Unbound (`unbound`), as a forwarder or as a resolver. Options: unbound.conf(5); counters: unbound-control(8).
//!
//! Blind spots of its counters: what the kernel dropped before Unbound read it, and messages that it cannot
//! parse. Towards the upstream over TCP or TLS it counts connections, not the queries on them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use dnslab_record::CostPart::{DnsLogic, EventLoop, HttpQuic, Log, Memory};
use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;
use dnslab_wire::units::raised_file_limit;

use super::adapter::{Access, Adapter, Facts, IDLE_SECONDS, counts_found, hints_note, trust_note};
use super::control;
use super::cost_rows::{CostRow, functions, library};
use super::own::OwnConfiguration;
use super::rendered::Rendered;
use super::spec::{
    POLICY_ZONE, PolicyZone, ROOT_HINTS, RootHints, ServerSpec, UPSTREAM_AUTHORITY, Upstream,
};
use super::version::Version;
use crate::package::Remedy;
use crate::{certificate, launch};

const CONFIGURATION: &str = "unbound.conf";

/// The Unix socket for commands, in the server's folder. Unbound takes a name without a leading `/` for a
/// host's, and the folder's own path may be longer than a socket's may be.
const CONTROL: &str = "unbound.ctl";

/// Queries that a client may keep outstanding on one connection of HTTP/2: more than the window of most
/// loads, so that the load decides.
const HTTP_STREAMS: u32 = 1_000;

/// File descriptors that a thread of Unbound counts besides the buffers of its TCP clients, rounded up
/// (`checkrlimits` in its daemon/unbound.c).
const OTHER_FILES_OF_A_THREAD: u64 = 50;

pub(super) struct Unbound;

impl Adapter for Unbound {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Unbound,
            remedy: Remedy::Package { debian: "unbound", fedora: "unbound" },
            version_argument: "-V",
            counter_source: Some("unbound-control stats_noreset"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            Transport::Udp | Transport::Tcp | Transport::Dot => return Ok(()),
            Transport::Doh2 if version.is_at_least(1, 12) => return Ok(()),
            Transport::Doh2 => "DNS over HTTPS: it came with 1.12",
            Transport::Doq => "DNS over QUIC in its packages: it came with 1.22, as a build option",
            Transport::Doh3 => "HTTP/3, as no version of Unbound has: its DNS over HTTPS is doh2",
        };
        Err(format!("Unbound {version} has no {missing}"))
    }

    fn takes(&self, spec: &ServerSpec) -> Result<(), String> {
        // How many it opens is for a configuration of one's own to say.
        match spec.own {
            Some(_) => Ok(()),
            None => has_files(spec, launch::hard_file_limit()),
        }
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Tcp | Transport::Dot => Ok(()),
            _ => Err(format!("Unbound {version} does not forward over {transport}")),
        }
    }

    fn resolves(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn validates(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let command = [program, "-d", "-p", "-c", CONFIGURATION];
        let (text, notes) = match &spec.own {
            Some(own) => (own_configuration(spec, own), own.notes()),
            None => (configuration(spec), notes(spec)),
        };
        Rendered::one(CONFIGURATION, text, &command, notes).and(spec.hints_file())
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        // What `unbound-control` sends, in the first version of its protocol.
        let text = control::ask(&access.directory, CONTROL, "UBCT1 stats_noreset\n")?;
        Ok(read_statistics(&text))
    }
}

/// Refuses what would end Unbound with `too much tcp. not enough fds.`: each thread counts a file descriptor
/// for each of its TCP buffers at each of its addresses.
fn has_files(spec: &ServerSpec, limit: Option<u64>) -> Result<(), String> {
    let Some(limit) = limit else { return Ok(()) };
    let addresses = listening_ports(spec).count() as u64;
    let buffers = u64::from(spec.halved_connection_limit());
    let needed = u64::from(spec.threads) * (addresses * buffers + OTHER_FILES_OF_A_THREAD);
    if needed <= limit {
        return Ok(());
    }
    Err(format!(
        "Unbound with {} threads and {} TCP clients counts {needed} file descriptors, but a process may \
         open {limit}: use fewer clients or fewer threads, or start dnslab with more: {}",
        spec.threads,
        spec.connections,
        raised_file_limit(needed)
    ))
}

fn configuration(spec: &ServerSpec) -> String {
    let connections = spec.halved_connection_limit();
    let policy = if spec.policy_zone.is_some() { "respip " } else { "" };
    let modules = if spec.validates() { "validator iterator" } else { "iterator" };
    format!(
        "{place}    access-control: 0.0.0.0/0 allow
    access-control: ::/0 allow
{way}    module-config: \"{policy}{modules}\"
    num-threads: {threads}
    so-reuseport: yes
    incoming-num-tcp: {connections}
    tcp-idle-timeout: {idle}
    ratelimit: 0
    ip-ratelimit: 0
{cache}    extended-statistics: {statistics}
{tls}{anchor}
{control}{rpz}{forward}{extra}",
        place = place(spec),
        control = control(),
        threads = spec.threads,
        way = match &spec.root_hints {
            Some(RootHints::Zone(_)) => format!("    root-hints: \"{ROOT_HINTS}\"\n"),
            Some(RootHints::BuiltIn) => String::new(),
            None => "    do-not-query-localhost: no\n    local-zone: \"test.\" nodefault\n    \
                 unblock-lan-zones: yes\n"
                .to_owned(),
        },
        cache = match spec.cache_octets().map(cache_parts) {
            Some([messages, rrsets]) => {
                format!("    msg-cache-size: {messages}\n    rrset-cache-size: {rrsets}\n")
            }
            None => String::new(),
        },
        statistics = if spec.counts { "yes" } else { "no" },
        // In milliseconds.
        idle = IDLE_SECONDS * 1_000,
        tls = tls(spec),
        anchor = anchors(spec),
        rpz = match &spec.policy_zone {
            Some(PolicyZone { name, .. }) => {
                format!("rpz:\n    name: \"{name}\"\n    zonefile: \"{POLICY_ZONE}\"\n\n")
            }
            None => String::new(),
        },
        forward = spec.upstream.as_ref().map(forward_zone).unwrap_or_default(),
        extra = spec.extra_text(),
    )
}

/// That of a user, here.
fn own_configuration(spec: &ServerSpec, own: &OwnConfiguration) -> String {
    let (place, tls, control, extra) = (place(spec), tls(spec), control(), spec.extra_text());
    format!("{place}{tls}{}\n{control}{}{extra}", own.options, own.text)
}

/// Where it is, who it is, and what it writes.
fn place(spec: &ServerSpec) -> String {
    format!(
        "server:
    directory: \".\"
    chroot: \"\"
    username: \"\"
    pidfile: \"unbound.pid\"
    use-syslog: no
    log-time-ascii: yes
{}",
        listeners(spec)
    )
}

fn control() -> String {
    format!(
        "remote-control:
    control-enable: yes
    control-interface: \"/proc/self/cwd/{CONTROL}\"
    control-use-cert: no

"
    )
}

/// Octets of the caches of messages and of RRsets.
fn cache_parts(octets: u64) -> [u64; 2] {
    [octets / 3, octets - octets / 3]
}

fn anchors(spec: &ServerSpec) -> String {
    let anchors = spec.trust_anchors.iter();
    let mut text: String =
        anchors.map(|anchor| format!("    trust-anchor: \"{anchor}\"\n")).collect();
    if spec.validates() {
        // Unbound would tell the upstream which anchors it has (RFC 8145), which nobody asked.
        text.push_str("    trust-anchor-signaling: no\n");
    }
    text
}

fn listeners(spec: &ServerSpec) -> String {
    let line = |port| format!("    interface: {}@{port}\n", spec.address);
    listening_ports(spec).map(line).collect()
}

/// UDP and TCP share one.
fn listening_ports(spec: &ServerSpec) -> impl Iterator<Item = u16> {
    let plain = spec.has_plain().then_some(spec.ports.plain);
    let encrypted = [Transport::Dot, Transport::Doh2].into_iter();
    let encrypted = encrypted.filter(|transport| spec.serves(*transport));
    plain.into_iter().chain(encrypted.map(|transport| spec.ports.of(transport)))
}

fn tls(spec: &ServerSpec) -> String {
    let mut text = String::new();
    if spec.has_encrypted() {
        text.push_str(&format!(
            "    tls-service-pem: \"{}\"\n    tls-service-key: \"{}\"\n",
            certificate::CERTIFICATE,
            certificate::KEY
        ));
    }
    if spec.serves(Transport::Dot) {
        text.push_str(&format!("    tls-port: {}\n", spec.ports.dot));
    }
    if spec.serves(Transport::Doh2) {
        text.push_str(&format!(
            "    https-port: {}\n    http-endpoint: \"{}\"\n    http-max-streams: {HTTP_STREAMS}\n",
            spec.ports.doh2, spec.http_path
        ));
    }
    if spec.upstream.as_ref().is_some_and(|upstream| upstream.tls.is_some()) {
        text.push_str(&format!("    tls-cert-bundle: \"{UPSTREAM_AUTHORITY}\"\n"));
    }
    text
}

fn forward_zone(upstream: &Upstream) -> String {
    let name = upstream.tls.as_ref().map(|tls| format!("#{}", tls.name)).unwrap_or_default();
    let how = match upstream.transport {
        Transport::Dot => "    forward-tls-upstream: yes\n",
        Transport::Tcp => "    forward-tcp-upstream: yes\n",
        _ => "",
    };
    let each = |at: SocketAddr| format!("    forward-addr: {}@{}{name}\n", at.ip(), at.port());
    let addresses: String = upstream.addresses().map(each).collect();
    format!("forward-zone:\n    name: \".\"\n{addresses}{how}")
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let connections = spec.halved_connection_limit();
    let signaling = match spec.validates() {
        true => {
            ", and does not tell the upstream which one it has (trust-anchor-signaling no; default yes)"
        }
        false => "",
    };
    let no_validation = "no validation: the module validator is left out (module-config)";
    let mut notes = vec![
        format!("{} threads (num-threads), as the experiment says", spec.threads),
        match &spec.root_hints {
            Some(hints) => format!(
                "{}, which Unbound asks for their names at its first query (RFC 9609)",
                hints_note(hints, "root-hints")
            ),
            None => format!(
                "all queries are forwarded to {}, and it may be asked on the \
                 loopback address (do-not-query-localhost no), also for names below `test` \
                 (local-zone nodefault; by default Unbound itself says that there are none, RFC 6761) and of private addresses \
                 (unblock-lan-zones yes)",
                spec.upstream.as_ref().map(Upstream::in_words).unwrap_or_default()
            ),
        },
        format!("{}{signaling}", trust_note(spec, no_validation)),
        format!(
            "incoming-num-tcp {connections} in each thread (default 10), twice the expected clients and \
             some: below half of them free Unbound cuts its idle time-out to 1 %, then to 0.2 %, below a \
             fifth to 200 ms (unbound.conf(5), tcp-idle-timeout); a buffer takes 5 KB of memory before \
             it is used"
        ),
        format!(
            "tcp-idle-timeout {IDLE_SECONDS} s (default 30 s): the load alone decides when connections are \
             opened"
        ),
        match spec.cache_octets().map(cache_parts) {
            Some([messages, rrsets]) => format!(
                "the caches have {} MiB together, as the experiment says: msg-cache-size {messages} (default 4 \
                 MB), and twice as much for rrset-cache-size, {rrsets} (default 4 MB); those of validation are the defaults (key-cache-size 4 MB, neg-cache-size 1 MB)",
                (messages + rrsets) >> 20
            ),
            None => {
                "the caches are the defaults (msg-cache-size 4 MB, rrset-cache-size 4 MB)".to_owned()
            }
        },
        "rate limits are off, as they are by default; any client may ask; the limits on queries in work \
         are the defaults (num-queries-per-thread 1024 with jostle-timeout 200 ms; in 1.20 and in Debian's \
         1.17.1 also wait-limit 1000 for one address and discard-timeout 1.9 s): beyond them it drops, \
         which is loss in the results"
            .to_owned(),
        match spec.counts {
            true => {
                "extended-statistics yes (default no): its counters are read during the run; of an \
                 upstream over TCP or TLS they have the connections only"
            }
            false => "extended-statistics no, the default: it is not watched",
        }
        .to_owned(),
    ];
    if spec.serves(Transport::Doh2) {
        notes.push(format!(
            "http-max-streams {HTTP_STREAMS} (default 100): the window of the load decides how many \
             queries are outstanding"
        ));
    }
    notes.extend(spec.upstream.as_ref().map(way_to));
    if spec.root_hints.is_some() {
        notes.extend(resolver_notes());
    }
    notes
}

/// What a resolver has beside a forwarder.
fn resolver_notes() -> [String; 3] {
    [
        "the caches are in memory, so they are empty at the start; prefetch and serve-expired are no, the \
         default"
            .to_owned(),
        "outgoing-range is the default (4096 sockets to other servers in each thread), outgoing-num-tcp too \
         (10 connections); if the process may open too few files for them, Unbound takes fewer sockets and \
         says so in its log"
            .to_owned(),
        "qname-minimisation yes, aggressive-nsec yes where it validates, and the local zones that are \
         built in (AS112) are the defaults: none of them is in 198.18.0.0/15 or 2001:2::/48; it asks \
         over IPv4 and IPv6"
            .to_owned(),
    ]
}

fn way_to(upstream: &Upstream) -> String {
    const KEPT: &str = "connections to it are kept as by default (tcp-reuse-timeout 60 s, \
                        max-reuse-tcp-queries 200)";
    match upstream.transport {
        Transport::Dot => format!(
            "the upstream's certificate is verified (tls-cert-bundle); {KEPT}, and no TLS session \
             is resumed: Unbound (1.17) does not"
        ),
        Transport::Tcp => {
            format!("all queries travel to the upstream over TCP (forward-tcp-upstream); {KEPT}")
        }
        _ => "queries travel to the upstream over UDP, and over TCP after truncation".to_owned(),
    }
}

fn read_statistics(text: &str) -> BTreeMap<String, u64> {
    let lines = control::numbers(text);
    let table = [
        (counter::QUERIES, "total.num.queries"),
        ("upstream.queries.udp", "num.query.udpout"),
        ("upstream.connections.opened", "num.query.tcpout"),
        (counter::CACHE_HITS, "total.num.cachehits"),
        (counter::CACHE_MISSES, "total.num.cachemiss"),
        ("recursive-replies", "total.num.recursivereplies"),
        (counter::QUERIES_DOT, "num.query.tls"),
        (counter::QUERIES_DOH, "num.query.https"),
        ("answers.secure", "num.answer.secure"),
        ("answers.bogus", "num.answer.bogus"),
        ("answers.servfail", "num.answer.rcode.SERVFAIL"),
    ];
    let mut counts = counts_found(table, |name| lines.get(name).copied());
    // Queries on an existing connection are not counted.
    if let (Some(sent), Some(0)) = (lines.get("num.query.udpout"), lines.get("num.query.tcpout")) {
        counts.insert(counter::UPSTREAM_QUERIES.to_owned(), *sent);
    }
    counts
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[
    functions(
        "unbound",
        &["comm_", "fptr_", "ub_event", "ub_winsock", "listen_", "outnet_", "tcp_", "ub_c_"],
        EventLoop,
    ),
    functions("unbound", &["http2_", "doq_"], HttpQuic),
    functions("unbound", &["dt_", "log_"], Log),
    functions("unbound", &["regional_", "alloc_"], Memory),
    library("unbound", DnsLogic),
    library("libunbound", DnsLogic),
    library("libpython", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{forwarder, live, resolver, shown};

    #[test]
    fn all_transports_to_udp() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];
        insta::assert_snapshot!(shown(&forwarder(ServerKind::Unbound, &all, Transport::Udp)));
    }

    #[test]
    fn validating_over_tls_on_ipv6_with_extra_text() {
        let mut spec = forwarder(ServerKind::Unbound, &[Transport::Udp], Transport::Dot);
        spec.address = "::1".parse().unwrap();
        spec.trust_anchors = vec![". DS 20326 8 2 E06D44B8".to_owned()];
        spec.extra = Some("server:\n    verbosity: 2".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn more_buffers_than_files_are_refused() {
        let mut spec = forwarder(ServerKind::Unbound, &[Transport::Dot], Transport::Udp);
        spec.connections = 9_500;
        spec.threads = 1;
        assert_eq!(has_files(&spec, Some(20_000)), Ok(()));
        spec.threads = 2;
        assert_eq!(has_files(&spec, None), Ok(()));
        assert_eq!(
            has_files(&spec, Some(20_000)).unwrap_err(),
            "Unbound with 2 threads and 9500 TCP clients counts 38500 file descriptors, but a process \
             may open 20000: use fewer clients or fewer threads, or start dnslab with more: raise the limit to \
             38500: `ulimit -n 38500` in the shell that starts it (as root beyond the hard limit), \
             `LimitNOFILE=38500` in its unit of systemd"
        );
    }

    #[test]
    fn statistics_have_common_names() {
        let begin = "thread0.num.queries=3\ntotal.num.queries=7\ntotal.num.cachehits=2\n\
                     total.recursion.time.avg=0.5\nnum.query.udpout=4\n";
        let text = |connections| format!("{begin}num.query.tcpout={connections}\n");
        let counts = read_statistics(&text(0));
        assert_eq!(counts.get(counter::QUERIES), Some(&7));
        assert_eq!(counts.get(counter::CACHE_HITS), Some(&2));
        assert_eq!(counts.get(counter::UPSTREAM_QUERIES), Some(&4));
        assert_eq!(counts.get(counter::CACHE_MISSES), None);
        let counts = read_statistics(&text(1));
        assert_eq!(counts.get(counter::UPSTREAM_QUERIES), None);
        assert_eq!(counts.get("upstream.connections.opened"), Some(&1));
    }

    #[test]
    fn resolving_from_given_root_servers() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];
        insta::assert_snapshot!(shown(&resolver(ServerKind::Unbound, &all)));
    }

    #[test]
    fn resolving_on_the_internet() {
        insta::assert_snapshot!(shown(&live(ServerKind::Unbound)));
    }
}
