//! dnsdist, PowerDNS's load balancer, in front of one server. Options: its manual, "Configuration Reference";
//! counters: its web server, `/metrics`.
//!
//! Blind spots of its counters: messages that are no queries are counted separately.

use std::collections::BTreeMap;

use dnslab_record::CostPart::{DnsLogic, Rest};
use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::adapter::{Access, Adapter, Facts, IDLE_SECONDS, counts_found};
use super::cost_rows::{CostRow, library};
use super::http;
use super::metrics::Metrics;
use super::rendered::Rendered;
use super::spec::{ServerSpec, UPSTREAM_AUTHORITY, Upstream};
use super::version::Version;
use crate::certificate;
use crate::package::Remedy;

const CONFIGURATION: &str = "dnsdist.conf";

/// Queries that a client may keep outstanding on one connection: more than the window of most loads, so that
/// the load decides.
const IN_FLIGHT: u32 = 1_000;

pub(super) struct Dnsdist;

impl Adapter for Dnsdist {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Dnsdist,
            remedy: Remedy::Package { debian: "dnsdist", fedora: "dnsdist" },
            version_argument: "--version",
            counter_source: Some("/metrics of dnsdist's web server"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            _ if !version.is_at_least(1, 7) => "configuration that dnslab knows: it came with 1.7",
            Transport::Udp | Transport::Tcp | Transport::Dot | Transport::Doh2 => return Ok(()),
            Transport::Doq => "DNS over QUIC that dnslab configures",
            Transport::Doh3 => "HTTP/3 that dnslab configures",
        };
        Err(format!("dnsdist {version} has no {missing}"))
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Tcp | Transport::Dot => Ok(()),
            _ => Err(format!("dnsdist {version} does not forward over {transport} with dnslab")),
        }
    }

    fn runs_without_cache(&self) -> bool {
        true
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let arguments = [program, "--supervised", "--disable-syslog", "-C", CONFIGURATION];
        Rendered::one(CONFIGURATION, configuration(spec), &arguments, notes(spec))
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let page = http::get(access.address, "/metrics")?;
        Ok(read_metrics(&Metrics::new(&page)))
    }
}

fn configuration(spec: &ServerSpec) -> String {
    format!(
        "\
setSecurityPollSuffix('')
setACL({{ '0.0.0.0/0', '::/0' }})
setMaxTCPClientThreads({threads})
setTCPRecvTimeout({IDLE_SECONDS})
{listeners}{server}webserver('127.0.0.1:{control}')
setWebserverConfig({{ acl = '127.0.0.1', statsRequireAuthentication = false }})
{cache}{extra}",
        threads = spec.threads,
        listeners = listeners(spec),
        server = spec.upstream.as_ref().map(server).unwrap_or_default(),
        control = spec.ports.control,
        cache = match spec.cache_entries() {
            Some(count) => format!("getPool(''):setCache(newPacketCache({count}))\n"),
            None => String::new(),
        },
        extra = spec.extra_text(),
    )
}

/// The addresses, once for each thread: each thread has a socket of its own.
fn listeners(spec: &ServerSpec) -> String {
    let (certificate, key) = (certificate::CERTIFICATE, certificate::KEY);
    let flight = format!("maxInFlight = {IN_FLIGHT}");
    let mut text = String::new();
    for _ in 0..spec.threads {
        if spec.has_plain() {
            let address = spec.socket_address(Transport::Udp);
            text.push_str(&format!("addLocal('{address}', {{ reusePort = true, {flight} }})\n"));
        }
        if spec.serves(Transport::Dot) {
            let address = spec.socket_address(Transport::Dot);
            text.push_str(&format!(
                "addTLSLocal('{address}', '{certificate}', '{key}', {{ reusePort = true, {flight} }})\n"
            ));
        }
        if spec.serves(Transport::Doh2) {
            let address = spec.socket_address(Transport::Doh2);
            text.push_str(&format!(
                "addDOHLocal('{address}', '{certificate}', '{key}', '{path}', {{ reusePort = true, \
                 idleTimeout = {IDLE_SECONDS} }})\n",
                path = spec.http_path,
            ));
        }
    }
    text
}

/// The upstream is taken to be up, without a check.
fn server(upstream: &Upstream) -> String {
    let how = match (&upstream.tls, upstream.transport) {
        (Some(tls), _) => format!(
            ", tls = 'openssl', caStore = '{UPSTREAM_AUTHORITY}', subjectName = '{}', \
             validateCertificates = true",
            tls.name
        ),
        (None, Transport::Tcp) => ", tcpOnly = true".to_owned(),
        (None, _) => String::new(),
    };
    let each = |address| format!("newServer({{ address = '{address}'{how} }}):setUp()\n");
    upstream.addresses().map(each).collect()
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let threads = spec.threads;
    let mut notes = vec![
        format!(
            "{threads} sockets with reusePort and a thread each for UDP, and for DNS over HTTPS; \
             {threads} threads for TCP and TLS (setMaxTCPClientThreads, default 10); and one more for \
             the upstream's answers over UDP"
        ),
        match spec.cache_entries() {
            Some(count) => format!(
                "a cache of {count} answers for all clients (newPacketCache; by default there is none), as \
                 the experiment says"
            ),
            None => "no cache: dnsdist has none by default (`server.cache` with a number of entries makes one)"
                .to_owned(),
        },
        format!(
            "setTCPRecvTimeout {IDLE_SECONDS} s (default 2 s), idleTimeout {IDLE_SECONDS} s (default \
             30 s): the load alone decides when connections are opened"
        ),
        format!(
            "maxInFlight {IN_FLIGHT} (default 0, one query at a time on a connection): the window of \
             the load decides how many queries are outstanding"
        ),
        "no limit on the number, the queries or the age of clients' connections (setMaxTCPConnectionsPerClient, \
         setMaxTCPQueriesPerConnection, setMaxTCPConnectionDuration, maxConcurrentTCPConnections: 0, the \
         defaults); 10000 may wait for a thread (setMaxTCPQueuedConnections, the default)"
            .to_owned(),
        "any client may ask; there are no rules, so no rate limits; it does not ask its makers for \
         security news"
            .to_owned(),
        "its health checks of the upstream are off (setUp): they would be queries that nobody asked"
            .to_owned(),
        "the web server is open on the loopback interface: its counters are read during the run"
            .to_owned(),
    ];
    if spec.has_plain() {
        notes.push("dnsdist opens UDP and TCP together".to_owned());
    }
    let Some(upstream) = &spec.upstream else { return notes };
    notes.push(match (&upstream.tls, upstream.transport) {
        (Some(_), _) => {
            "connections to the upstream are opened, kept (10 idle ones for each thread, \
                         setMaxCachedTCPConnectionsPerDownstream) and resumed as dnsdist does by default: one \
                         query at a time on each (maxInFlight of newServer 0); its certificate is verified \
                         (OpenSSL)"
                .to_owned()
        }
        (None, Transport::Tcp) => {
            "tcpOnly: all queries travel to the upstream over TCP (default: as they came)"
                .to_owned()
        }
        (None, _) => "queries travel to the upstream as they came: those over UDP and HTTPS over \
                      UDP, those over TCP and TLS over TCP"
            .to_owned(),
    });
    notes
}

fn read_metrics(metrics: &Metrics<'_>) -> BTreeMap<String, u64> {
    let frontend = "dnsdist_frontend_queries";
    let table = [
        (counter::QUERIES, ("dnsdist_queries", &[] as &[&str])),
        (counter::QUERIES_UDP, (frontend, &["proto=\"UDP\""])),
        (counter::QUERIES_TCP, (frontend, &["proto=\"TCP\""])),
        (counter::QUERIES_DOT, (frontend, &["proto=\"TCP (DNS over TLS)\""])),
        (counter::QUERIES_DOH, (frontend, &["proto=\"TCP (DNS over HTTPS)\""])),
        (counter::RESPONSES, ("dnsdist_responses", &[])),
        ("answers.servfail", ("dnsdist_servfail_responses", &[])),
        (counter::CACHE_HITS, ("dnsdist_cache_hits", &[])),
        (counter::CACHE_MISSES, ("dnsdist_cache_misses", &[])),
        (counter::UPSTREAM_QUERIES, ("dnsdist_server_queries", &[])),
        (counter::UPSTREAM_TIMEOUTS, ("dnsdist_downstream_timeouts", &[])),
        ("upstream.connections.opened", ("dnsdist_server_tcpnewconnections", &[])),
        ("upstream.connections.reused", ("dnsdist_server_tcpreusedconnections", &[])),
        ("upstream.handshakes.resumed", ("dnsdist_server_tlsresumptions", &[])),
        (counter::HANDSHAKES_FULL, ("dnsdist_frontend_tlsnewsessions", &[])),
        (counter::HANDSHAKES_RESUMED, ("dnsdist_frontend_tlsresumptions", &[])),
        ("noncompliant-queries", ("dnsdist_noncompliant_queries", &[])),
    ];
    counts_found(table, |(metric, labels)| metrics.sum(metric, labels))
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[
    library("libluajit", DnsLogic),
    library("libre2", DnsLogic),
    library("libcdb", DnsLogic),
    library("liblmdb", DnsLogic),
    library("libedit", Rest),
    library("dnsdist", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{forwarder, shown};

    #[test]
    fn all_transports_to_udp() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doh2];
        insta::assert_snapshot!(shown(&forwarder(ServerKind::Dnsdist, &all, Transport::Udp)));
    }

    #[test]
    fn to_tls_on_ipv6_with_extra_text() {
        let mut spec = forwarder(ServerKind::Dnsdist, &[Transport::Udp], Transport::Dot);
        spec.address = "::1".parse().unwrap();
        spec.upstream.as_mut().unwrap().address = "[fd00::2]:853".parse().unwrap();
        spec.extra = Some("getPool(''):setCache(newPacketCache(10000))".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn metrics_have_common_names() {
        let page = "dnsdist_queries 6\n\
                    dnsdist_frontend_queries{frontend=\"a:1\",proto=\"UDP\",thread=\"0\"} 2\n\
                    dnsdist_frontend_queries{frontend=\"a:1\",proto=\"UDP\",thread=\"1\"} 1\n\
                    dnsdist_frontend_queries{frontend=\"a:1\",proto=\"TCP\",thread=\"0\"} 1\n\
                    dnsdist_frontend_queries{frontend=\"a:2\",proto=\"TCP (DNS over TLS)\"} 2\n\
                    dnsdist_server_queries{server=\"x\"} 5\n";
        let counts = read_metrics(&Metrics::new(page));
        assert_eq!(counts.get(counter::QUERIES), Some(&6));
        assert_eq!(counts.get(counter::QUERIES_UDP), Some(&3));
        assert_eq!(counts.get(counter::QUERIES_TCP), Some(&1));
        assert_eq!(counts.get(counter::QUERIES_DOT), Some(&2));
        assert_eq!(counts.get(counter::UPSTREAM_QUERIES), Some(&5));
    }
}
