//! ISC BIND 9 (`named`), authoritative, as a forwarder, or as a resolver. Options: BIND 9 Administrator Reference Manual,
//! chapter 8.
//!
//! Blind spots of its counters: what the kernel dropped before BIND read it, and whether a query came over
//! TCP, TLS or HTTPS.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use dnslab_record::CostPart::{Crypto, DnsLogic, EventLoop, HttpQuic, Log, Memory, Tls};
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::adapter::{
    Access, Adapter, Facts, IDLE_SECONDS, hints_note, trust_anchor_words, trust_note,
};
use super::cost_rows::{CostRow, functions, library};
use super::logging::{DNSTAP_LOG, Logging};
use super::own::OwnConfiguration;
use super::rendered::Rendered;
use super::spec::{
    LOG, POLICY_ZONE, ROOT_HINTS, RootHints, ServerSpec, UPSTREAM_AUTHORITY, Upstream,
};
use super::version::Version;
use super::{bind_logging, bind_statistics, named_conf};
use crate::certificate;
use crate::package::Remedy;

const CONFIGURATION: &str = "named.conf";

/// Queries over HTTP/2 that a client may keep outstanding on one connection: more than the window of most
/// loads, so that the load decides.
const HTTP_STREAMS: u32 = 1_000;

pub(super) struct Bind;

impl Adapter for Bind {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Bind,
            remedy: Remedy::Package { debian: "bind9", fedora: "bind" },
            version_argument: "-v",
            counter_source: Some("BIND's statistics channel"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            Transport::Udp | Transport::Tcp => return Ok(()),
            Transport::Dot | Transport::Doh2 if version.is_at_least(9, 18) => return Ok(()),
            Transport::Dot => "DNS over TLS: it came with 9.18",
            Transport::Doh2 => "DNS over HTTPS: it came with 9.18",
            Transport::Doq => "DNS over QUIC, as no version of BIND has",
            Transport::Doh3 => "HTTP/3, as no version of BIND has: its DNS over HTTPS is doh2",
        };
        Err(format!("BIND {version} has no {missing}"))
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Tcp => Ok(()),
            Transport::Dot if version.is_at_least(9, 20) => Ok(()),
            Transport::Dot => {
                Err(format!("BIND {version} does not forward over dot: it came with 9.20"))
            }
            _ => Err(format!("BIND {version} does not forward over {transport}")),
        }
    }

    fn resolves(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn validates(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn logs(&self, version: &Version, logging: &Logging) -> Result<(), String> {
        if logging.dnstap && !version.is_at_least(9, 11) {
            return Err(format!("BIND {version} writes no dnstap: it came with 9.11"));
        }
        bind_logging::is_known(version, logging)
    }

    fn policy_way(&self) -> &'static str {
        "without resolving a name first that a rule denies, as other servers do (qname-wait-recurse no, default yes), and to \
         signed answers too (break-dnssec yes, default no); names in it may have any letters (check-names ignore)"
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let threads = spec.threads.to_string();
        // `-f -L` and not `-g`, which would ignore a `logging` statement in the extra text.
        let arguments = [program, "-f", "-c", CONFIGURATION, "-L", LOG, "-n", &threads];
        let (text, notes) = match &spec.own {
            Some(own) => (own_configuration(spec, own), own_notes(spec, own)),
            None => (configuration(spec), notes(spec)),
        };
        Rendered::one(CONFIGURATION, text, &arguments, notes).and(spec.hints_file())
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        bind_statistics::read(access.address)
    }
}

fn configuration(spec: &ServerSpec) -> String {
    let (options, extra) = named_conf::without_options(&spec.extra_text());
    format!(
        "{blocks}options {{
{place}
{role}{policy}    allow-transfer {{ none; }};
    notify no;
{minimal}{cache}    tcp-clients {tcp_clients};
    tcp-listen-queue 1024;
    tcp-initial-timeout {idle};
    tcp-idle-timeout {idle};
    tcp-keepalive-timeout {idle};
    tcp-advertised-timeout {idle};
    querylog {querylog};
{dnstap}    interface-interval 0;
{options}}};

{control}
{logging}
{data}{extra}",
        blocks = blocks(spec),
        place = place(spec),
        role = role(spec),
        policy = match &spec.policy_zone {
            Some(policy) => format!(
                "    response-policy {{ zone \"{}\"; }} qname-wait-recurse no break-dnssec yes;\n",
                policy.name
            ),
            None => String::new(),
        },
        minimal = if spec.is_authoritative() { "    minimal-responses yes;\n" } else { "" },
        cache = match spec.cache_octets().filter(|_| !spec.is_authoritative()) {
            Some(octets) => format!("    max-cache-size {octets};\n"),
            None => String::new(),
        },
        tcp_clients = spec.connection_limit(),
        // In units of 0.1 s.
        idle = IDLE_SECONDS * 10,
        querylog = if spec.logging.query_log.is_some() { "yes" } else { "no" },
        dnstap = if spec.logging.dnstap {
            format!("    dnstap {{ auth; client; }};\n    dnstap-output file \"{DNSTAP_LOG}\";\n")
        } else {
            String::new()
        },
        control = control(spec),
        logging = spec.logging.query_log.as_ref().map(bind_logging::statement).unwrap_or_default(),
        data = data(spec),
    )
}

/// That of a user, here.
fn own_configuration(spec: &ServerSpec, own: &OwnConfiguration) -> String {
    let (options, extra) = named_conf::without_options(&spec.extra_text());
    format!(
        "{blocks}options {{\n{place}\n    notify no;\n{alone}{own_options}{options}}};\n\n{control}\n{text}{extra}",
        blocks = blocks(spec),
        place = place(spec),
        alone = match own.asks_others {
            true => "",
            false => "    recursion no;\n    dnssec-validation no;\n",
        },
        own_options = own.options,
        control = control(spec),
        text = own.text,
    )
}

fn own_notes(spec: &ServerSpec, own: &OwnConfiguration) -> Vec<String> {
    let own_notes = own.notes().into_iter();
    let threads = format!("{} worker threads (-n), as the experiment says", spec.threads);
    let counters = "the statistics channel is open on the loopback interface: its counters are read during the run";
    own_notes.chain([threads, counters.to_owned()]).collect()
}

/// Where it is and what it writes, in its options.
fn place(spec: &ServerSpec) -> String {
    format!(
        "    directory \".\";
    pid-file \"named.pid\";
    session-keyfile \"session.key\";
    managed-keys-directory \".\";
{}",
        listeners(spec)
    )
}

fn control(spec: &ServerSpec) -> String {
    format!(
        "controls {{ }};
statistics-channels {{ inet 127.0.0.1 port {} allow {{ 127.0.0.1; }}; }};",
        spec.ports.control
    )
}

/// The blocks that listeners and forwarders refer to.
fn blocks(spec: &ServerSpec) -> String {
    let mut text = String::new();
    if spec.has_encrypted() {
        text.push_str(&format!(
            "tls dnslab {{\n    cert-file \"{}\";\n    key-file \"{}\";\n}};\n\n",
            certificate::CERTIFICATE,
            certificate::KEY
        ));
    }
    if spec.serves(Transport::Doh2) {
        text.push_str(&format!(
            "http dnslab {{\n    endpoints {{ \"{}\"; }};\n    listener-clients {};\n    \
             streams-per-connection {HTTP_STREAMS};\n}};\n\n",
            spec.http_path,
            spec.connection_limit()
        ));
    }
    if let Some(tls) = spec.upstream.as_ref().and_then(|upstream| upstream.tls.as_ref()) {
        text.push_str(&format!(
            "tls upstream {{\n    ca-file \"{UPSTREAM_AUTHORITY}\";\n    remote-hostname \
             \"{}\";\n}};\n\n",
            tls.name
        ));
    }
    text
}

fn role(spec: &ServerSpec) -> String {
    let validation = if spec.validates() { "yes" } else { "no" };
    if spec.is_authoritative() {
        return format!("    recursion no;\n    dnssec-validation {validation};\n");
    }
    let way = match &spec.upstream {
        Some(upstream) => forward(upstream),
        // It would tell the root servers which anchors it has (RFC 8145), which nobody asked.
        None if spec.validates() => "    trust-anchor-telemetry no;\n".to_owned(),
        None => String::new(),
    };
    format!(
        "    recursion yes;
    allow-query {{ any; }};
    allow-query-cache {{ any; }};
    allow-recursion {{ any; }};
{way}    dnssec-validation {validation};
"
    )
}

fn forward(upstream: &Upstream) -> String {
    let tls = if upstream.tls.is_some() { " tls upstream" } else { "" };
    let each = |at: SocketAddr| format!(" {} port {}{tls};", at.ip(), at.port());
    let forwarders: String = upstream.addresses().map(each).collect();
    format!("    forward only;\n    forwarders {{{forwarders} }};\n    empty-zones-enable no;\n")
}

/// The zone of an authoritative server, or what another one knows of its upstream or the root, and trusts.
fn data(spec: &ServerSpec) -> String {
    let mut text = String::new();
    if matches!(spec.root_hints, Some(RootHints::Zone(_))) {
        text.push_str(&format!("zone \".\" {{\n    type hint;\n    file \"{ROOT_HINTS}\";\n}};\n"));
    }
    if spec.zone.is_some() || spec.is_authoritative() {
        text.push_str(&format!(
            "zone \"{}\" {{\n    type primary;\n    file \"{}\";\n    check-names ignore;\n}};\n",
            spec.origin(),
            spec.zone_file_name()
        ));
    }
    if let Some(policy) = &spec.policy_zone {
        text.push_str(&format!(
            "zone \"{}\" {{\n    type primary;\n    file \"{POLICY_ZONE}\";\n    check-names ignore;\n    \
             allow-query {{ none; }};\n}};\n",
            policy.name
        ));
    }
    let over_tcp = spec.upstream.as_ref().filter(|its| its.transport == Transport::Tcp);
    let over_tcp: BTreeSet<IpAddr> =
        over_tcp.into_iter().flat_map(Upstream::addresses).map(|at| at.ip()).collect();
    for ip in over_tcp {
        text.push_str(&format!("server {ip} {{ tcp-only yes; }};\n"));
    }
    for anchor in &spec.trust_anchors {
        let [tag, algorithm, digest_type, digest] = trust_anchor_words(anchor);
        text.push_str(&format!(
            "trust-anchors {{ \".\" static-ds {tag} {algorithm} {digest_type} \"{digest}\"; }};\n"
        ));
    }
    text
}

/// The statements for the address, and those that silence the other IP version.
fn listeners(spec: &ServerSpec) -> String {
    let (used, unused) = match spec.address {
        IpAddr::V4(_) => ("listen-on", "listen-on-v6"),
        IpAddr::V6(_) => ("listen-on-v6", "listen-on"),
    };
    let mut lines = vec![format!("    {unused} {{ none; }};")];
    let (address, ports) = (spec.address, spec.ports);
    let mut listen = |port: u16, how: &str| {
        lines.push(format!("    {used} port {port}{how} {{ {address}; }};"));
    };
    if spec.has_plain() {
        listen(ports.plain, "");
    }
    if spec.serves(Transport::Dot) {
        listen(ports.dot, " tls dnslab");
    }
    if spec.serves(Transport::Doh2) {
        listen(ports.doh2, " tls dnslab http dnslab");
    }
    lines.join("\n")
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let tcp_clients = spec.connection_limit();
    let mut notes = vec![
        format!("{} worker threads (-n), as the experiment says", spec.threads),
        format!(
            "tcp-clients {tcp_clients} (default 150), tcp-listen-queue 1024 (default 10): the \
             limits on clients are not what is measured"
        ),
        format!(
            "tcp-initial-timeout, tcp-idle-timeout, and with EDNS TCP keepalive tcp-keepalive-timeout and \
             tcp-advertised-timeout {IDLE_SECONDS} s (default 30 s each): the load alone decides when \
             connections are opened"
        ),
        "response rate limiting is off, as it is by default".to_owned(),
        "the statistics channel is open on the loopback interface: its counters are read during the \
         run; they have TCP, TLS and HTTPS together"
            .to_owned(),
    ];
    notes.extend(match (&spec.upstream, &spec.root_hints) {
        (None, None) => vec![
            "check-names ignore for the zone (default fail): the other servers take any names"
                .to_owned(),
            "minimal-responses yes: the answer alone is compared, not optional records beside it"
                .to_owned(),
            "recursion, validation, transfers, notifies and remote control are off".to_owned(),
        ],
        (Some(upstream), _) => forwarder_notes(spec, upstream),
        (None, Some(hints)) => resolver_notes(spec, hints),
    });
    notes.push(match &spec.logging.query_log {
        Some(log) => bind_logging::note(log),
        None => "the query log is off".to_owned(),
    });
    if spec.logging.dnstap {
        notes.push(format!(
            "dnstap {{ auth; client; }}: queries and answers go to the file {DNSTAP_LOG}, with the \
             default buffers; what it drops when their queue is full is among its counters \
             (fstrm-set-input-queue-size 512, the default)"
        ));
    }
    if spec.serves(Transport::Doh2) {
        notes.push(format!(
            "listener-clients {tcp_clients} (default 300), streams-per-connection {HTTP_STREAMS} \
             (default 100): the window of the load decides how many queries are outstanding"
        ));
    }
    if spec.has_plain() {
        notes.push("BIND opens UDP and TCP together".to_owned());
    }
    notes
}

fn forwarder_notes(spec: &ServerSpec, upstream: &Upstream) -> Vec<String> {
    let way = match upstream.transport {
        Transport::Udp => "queries travel to the upstream over UDP, and over TCP after truncation",
        Transport::Tcp => "all queries travel to the upstream over TCP (tcp-only yes)",
        _ => {
            "connections to the upstream are opened, kept and resumed as BIND does by default; its \
             certificate is verified"
        }
    };
    vec![
        format!(
            "all queries are forwarded to {} (forward only); any client may ask",
            upstream.in_words()
        ),
        trust_note(spec, NO_VALIDATION),
        "names of private addresses are forwarded too (empty-zones-enable no)".to_owned(),
        way.to_owned(),
        format!(
            "the cache is in memory; {}; prefetch 2 9, the default; the limits on queries in work are the \
             defaults (recursive-clients 1000, clients-per-query 10 rising to 100): {BEYOND_LIMITS}",
            cache_note(spec)
        ),
        "transfers, notifies and remote control are off".to_owned(),
    ]
}

/// How large the cache of a forwarder or resolver is.
fn cache_note(spec: &ServerSpec) -> String {
    match spec.cache_octets() {
        Some(octets) => format!(
            "it has {} MiB (max-cache-size; default 90 % of the memory), as the experiment says, and never less \
             than 2",
            octets >> 20
        ),
        None => "it is as large as by default (max-cache-size 90 % of the memory)".to_owned(),
    }
}

/// What BIND does with a query too many: its soft limit is nine tenths of `recursive-clients`
/// (`ns_client_killoldestquery`).
const BEYOND_LIMITS: &str = "beyond nine tenths of recursive-clients BIND gives up the oldest query for each new one, \
                             and answers it with SERVFAIL; beyond the others it drops, which is loss in the results";

const NO_VALIDATION: &str = "no validation (dnssec-validation no; default auto)";

fn resolver_notes(spec: &ServerSpec, hints: &RootHints) -> Vec<String> {
    let telemetry = match spec.validates() {
        true => {
            "; it does not tell the root servers which trust anchor it has (trust-anchor-telemetry no; \
             default yes)"
        }
        false => "",
    };
    vec![
        format!(
            "{}; BIND asks the root servers for their names at its first query (RFC 9609); any client \
             may ask",
            hints_note(hints, "zone \".\" of type hint")
        ),
        format!("{}{telemetry}", trust_note(spec, NO_VALIDATION)),
        format!(
            "the cache is in memory, so it is empty at the start; {}; names that are asked for shortly before \
             they run out are asked for anew (prefetch 2 9, the default)",
            cache_note(spec)
        ),
        format!(
            "the limits on queries in work are the defaults (recursive-clients 1000, clients-per-query 10 \
             rising to 100, fetches-per-server and fetches-per-zone 0, no limit): {BEYOND_LIMITS}"
        ),
        "qname-minimization relaxed, the default; BIND answers for the empty zones that are built in, as by \
         default (RFC 6303): none of them is in 198.18.0.0/15 or 2001:2::/48"
            .to_owned(),
        "it asks over IPv4 and IPv6, as by default; transfers, notifies and remote control are off"
            .to_owned(),
    ]
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[
    functions("libisc-", &["isc_log", "isc__log"], Log),
    functions("libisc-", &["isc__mem", "isc_mem", "isc_mempool", "isc__mempool"], Memory),
    functions("libisc-", &["isc_tls", "isc__nm_tls", "isc__tls", "tls_", "isc_nm_tls"], Tls),
    functions("libisc-", &["isc_nm_http", "isc__nm_http", "http_", "isc_nm_listenhttp"], HttpQuic),
    functions("libisc-", &["isc_hmac", "isc_md", "isc_iterated_hash"], Crypto),
    // Of names, for tables.
    functions("libisc-", &["isc_siphash", "isc_halfsiphash", "isc_hash"], DnsLogic),
    library("libisc-", EventLoop),
    functions("libdns-", &["dns_dt_"], Log),
    functions("libns-", &["ns_client_log", "ns_client_dump", "log_query", "log_response"], Log),
    library("libdns-", DnsLogic),
    library("libns-", DnsLogic),
    library("libisccfg-", DnsLogic),
    library("libbind9-", DnsLogic),
    library("libirs-", DnsLogic),
    library("libisccc-", DnsLogic),
    library("liblmdb", DnsLogic),
    library("libmaxminddb", DnsLogic),
    library("named", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tests::{forwarder, live, resolver, shown, spec};
    use crate::server::{QueryLog, ServerKind};

    #[test]
    fn all_transports() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];
        insta::assert_snapshot!(shown(&spec(ServerKind::Bind, &all)));
    }

    #[test]
    fn https_alone_on_a_path_of_its_own() {
        let mut spec = spec(ServerKind::Bind, &[Transport::Doh2]);
        spec.http_path = "/resolve".to_owned();
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn what_a_version_serves() {
        let old = Version { text: "9.16.50".to_owned(), numbers: [9, 16, 50] };
        let new = Version { text: "9.18.0".to_owned(), numbers: [9, 18, 0] };
        let served =
            |version| Transport::ALL.map(|transport| Bind.supports(version, transport).is_ok());
        assert_eq!(served(&old), [true, true, false, false, false, false]);
        assert_eq!(served(&new), [true, true, true, true, false, false]);
        let reason = Bind.supports(&old, Transport::Doh2).unwrap_err();
        assert_eq!(reason, "BIND 9.16.50 has no DNS over HTTPS: it came with 9.18");
    }

    #[test]
    fn tls_alone_on_ipv6_with_extra_text() {
        let mut spec = spec(ServerKind::Bind, &[Transport::Dot]);
        spec.address = "::1".parse().unwrap();
        spec.extra = Some("logging { category queries { default_logfile; }; };\n\n".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }
    #[test]
    fn forwarding_to_udp_with_both_logs() {
        let both = [Transport::Udp, Transport::Tcp];
        let mut spec = forwarder(ServerKind::Bind, &both, Transport::Udp);
        spec.logging = Logging { query_log: Some(QueryLog::default()), dnstap: true };
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn validating_over_tls() {
        let mut spec = forwarder(ServerKind::Bind, &[Transport::Udp], Transport::Dot);
        spec.trust_anchors = vec![". DS 20326 8 2 E06D44B8".to_owned()];
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn forwarding_over_tcp() {
        let spec = forwarder(ServerKind::Bind, &[Transport::Udp], Transport::Tcp);
        assert!(shown(&spec).contains("\nserver 10.53.2.2 { tcp-only yes; };\n"));
    }

    #[test]
    fn what_a_version_forwards() {
        let version = |minor| Version { text: format!("9.{minor}.1"), numbers: [9, minor, 1] };
        let forwards = |minor| {
            Transport::ALL.map(|transport| Bind.forwards(&version(minor), transport).is_ok())
        };
        assert_eq!(forwards(18), [true, true, false, false, false, false]);
        assert_eq!(forwards(20), [true, true, true, false, false, false]);
        let logging = Logging { query_log: Some(QueryLog::default()), dnstap: true };
        assert_eq!(
            Bind.logs(&version(10), &logging).unwrap_err(),
            "BIND 9.10.1 writes no dnstap: it came with 9.11"
        );
        assert_eq!(Bind.logs(&version(18), &logging), Ok(()));
    }

    #[test]
    fn resolving_from_given_root_servers() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];
        insta::assert_snapshot!(shown(&resolver(ServerKind::Bind, &all)));
    }

    #[test]
    fn resolving_on_the_internet() {
        insta::assert_snapshot!(shown(&live(ServerKind::Bind)));
    }
}
