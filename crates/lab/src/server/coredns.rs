//! CoreDNS (`coredns`), as a forwarder with a cache. Options: the manuals of its plugins `forward`, `cache`,
//! `timeouts` and `prometheus`.
//!
//! Blind spots of its counters: those of the upstream have only the answered queries, and not over how many
//! connections they went.

use std::collections::BTreeMap;

use dnslab_record::CostPart::{Crypto, DnsLogic, EventLoop, HttpQuic, Log, Memory, Rest, Tls};
use dnslab_record::counter;
use dnslab_settings::{CacheSize, ServerKind};
use dnslab_wire::Transport;

use super::adapter::{Access, Adapter, Facts, IDLE_SECONDS, counts_found, has_usual_http_path};
use super::cost_rows::{CostRow, functions, library};
use super::http;
use super::metrics::Metrics;
use super::rendered::Rendered;
use super::spec::{ServerSpec, UPSTREAM_AUTHORITY, Upstream};
use super::version::Version;
use crate::certificate;
use crate::package::Remedy;

const CONFIGURATION: &str = "Corefile";

/// Queries that a client may keep outstanding on one connection of HTTPS or QUIC: more than the window of
/// most loads, so that the load decides.
const STREAMS: u32 = 1_000;

/// Transports with a scheme of their own in the addresses.
const SCHEMES: [(Transport, &str); 4] = [
    (Transport::Dot, "tls"),
    (Transport::Doh2, "https"),
    (Transport::Doq, "quic"),
    (Transport::Doh3, "https3"),
];

pub(super) struct CoreDns;

impl Adapter for CoreDns {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::CoreDns,
            remedy: Remedy::Other("`dnslab lab get coredns` fetches it"),
            version_argument: "-version",
            counter_source: Some("the plugin prometheus of CoreDNS"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            Transport::Doh2 | Transport::Doq | Transport::Doh3 if version.is_at_least(1, 15) => {
                return Ok(());
            }
            Transport::Doh2 | Transport::Doq | Transport::Doh3 => {
                "limits on connections over HTTPS and QUIC that can all be raised: 1.15 has"
            }
            _ if version.is_at_least(1, 11) => return Ok(()),
            _ => "timeouts that can be configured: they came with 1.11",
        };
        Err(format!("CoreDNS {version} has no {missing}"))
    }

    fn takes(&self, spec: &ServerSpec) -> Result<(), String> {
        has_usual_http_path(self.title(), spec)
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Tcp | Transport::Dot => Ok(()),
            _ => Err(format!("CoreDNS {version} does not forward over {transport}")),
        }
    }

    fn runs_without_cache(&self) -> bool {
        true
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let threads = format!("GOMAXPROCS={}", spec.threads);
        let command = [&threads, program, "-conf", CONFIGURATION];
        Rendered::one(CONFIGURATION, configuration(spec), &command, notes(spec))
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let page = http::get(access.address, "/metrics")?;
        Ok(read_metrics(&Metrics::new(&page)))
    }
}

/// One block, so that all addresses share cache and connections. The raw text is at its end, where options
/// are; CoreDNS has none outside.
fn configuration(spec: &ServerSpec) -> String {
    let mut keys = Vec::new();
    if spec.has_plain() {
        keys.push(format!("dns://.:{}", spec.ports.plain));
    }
    for (transport, scheme) in SCHEMES {
        if spec.serves(transport) {
            keys.push(format!("{scheme}://.:{}", spec.ports.of(transport)));
        }
    }
    let tls = if spec.has_encrypted() {
        format!("    tls {} {}\n", certificate::CERTIFICATE, certificate::KEY)
    } else {
        String::new()
    };
    format!(
        "\
{keys} {{
    bind {address}
{tls}    timeouts {{
        read {IDLE_SECONDS}s
        idle {IDLE_SECONDS}s
    }}
{limits}    errors
{prometheus}{cache}{forward}{extra}}}
",
        keys = keys.join(" "),
        limits = limits(spec),
        address = spec.address,
        prometheus = match spec.counts {
            true => format!("    prometheus 127.0.0.1:{}\n", spec.ports.control),
            false => String::new(),
        },
        cache = match spec.cache {
            CacheSize::None => String::new(),
            CacheSize::Entries(count) => {
                format!("    cache {{\n        success {count}\n        denial {count}\n    }}\n")
            }
            CacheSize::Default | CacheSize::Mebibytes(_) => "    cache\n".to_owned(),
        },
        forward = spec.upstream.as_ref().map(forward).unwrap_or_default(),
        extra = spec.extra_text(),
    )
}

/// Limits on connections, on the streams of each, and over QUIC on the queries in work of all of them.
fn limits(spec: &ServerSpec) -> String {
    let pool = format!("        worker_pool_size {}\n", pool_size(spec));
    [
        (Transport::Doh2, "https", ""),
        (Transport::Doh3, "https3", ""),
        (Transport::Doq, "quic", &pool),
    ]
    .into_iter()
    .filter(|(transport, ..)| spec.serves(*transport))
    .map(|(_, plugin, more)| limits_of_plugin(plugin, spec.connection_limit(), more))
    .collect()
}

fn limits_of_plugin(plugin: &str, connections: u32, more: &str) -> String {
    format!(
        "    {plugin} {{\n        max_connections {connections}\n        max_streams {STREAMS}\n{more}    }}\n"
    )
}

/// Queries over QUIC in work at one time: CoreDNS's default, unless more clients are expected.
fn pool_size(spec: &ServerSpec) -> u32 {
    const PRESET: u32 = 1_024;
    spec.connection_limit().max(PRESET)
}

fn forward(upstream: &Upstream) -> String {
    let scheme = if upstream.tls.is_some() { "tls://" } else { "" };
    let addresses: Vec<String> =
        upstream.addresses().map(|address| format!("{scheme}{address}")).collect();
    let addresses = addresses.join(" ");
    match (&upstream.tls, upstream.transport) {
        (Some(tls), _) => format!(
            "    forward . {addresses} {{\n        tls {UPSTREAM_AUTHORITY}\n        \
             tls_servername {}\n    }}\n",
            tls.name
        ),
        (None, Transport::Tcp) => {
            format!("    forward . {addresses} {{\n        force_tcp\n    }}\n")
        }
        (None, _) => format!("    forward . {addresses} {{\n        prefer_udp\n    }}\n"),
    }
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let mut notes = vec![
        format!(
            "at most {} threads run Go code at one time (GOMAXPROCS), as the experiment says",
            spec.threads
        ),
        match spec.cache {
            CacheSize::None => {
                "no cache: the plugin is left out, so each query goes upstream".to_owned()
            }
            CacheSize::Entries(count) => format!(
                "a cache of {count} answers and {count} denials (success and denial of the plugin cache; default \
                 9984 each), as the experiment says; it takes at least 1024 (the manual of the plugin); an \
                 answer is kept for at least 5 s (its MINTTL), whatever the zone's TTL"
            ),
            CacheSize::Default | CacheSize::Mebibytes(_) => {
                "a cache of 9984 answers and 9984 denials (the plugin cache with its defaults; \
                 without the plugin there is none); an answer is kept for at least 5 s (its MINTTL), \
                 whatever the zone's TTL"
                    .to_owned()
            }
        },
        format!(
            "timeouts read and idle {IDLE_SECONDS} s (default 3 s and 10 s): the load alone decides \
             when connections are opened"
        ),
        "no validation: CoreDNS has none".to_owned(),
        match spec.counts {
            true => "the plugin prometheus is loaded: its counters are read during the run",
            false => "the plugin prometheus is left out: it is not watched",
        }
        .to_owned(),
    ];
    if spec.has_plain() {
        notes.push("CoreDNS opens UDP and TCP together".to_owned());
    }
    if spec.transports.iter().any(|transport| transport.is_http() || transport.is_quic()) {
        notes.push(format!(
            "max_connections {} (default 200: more are rejected) and max_streams {STREAMS} (default 250 for \
             HTTP/2, 256 over QUIC) of the plugins https, https3 and quic; worker_pool_size {} (default \
             1024) for DNS over QUIC: the limits on clients are not what is measured",
            spec.connection_limit(),
            pool_size(spec)
        ));
    }
    let Some(upstream) = &spec.upstream else { return notes };
    notes.push(match (&upstream.tls, upstream.transport) {
        (Some(_), _) => {
            "connections to the upstream are opened, kept (expire 10 s) and resumed as \
                         CoreDNS does by default: one query at a time on each"
                .to_owned()
        }
        (None, Transport::Tcp) => {
            "force_tcp: all queries travel to the upstream over TCP (default: as they came)"
                .to_owned()
        }
        (None, _) => "prefer_udp: all queries travel to the upstream over UDP, and over TCP after \
                      truncation (default: as they came)"
            .to_owned(),
    });
    notes
}

pub(super) fn read_metrics(metrics: &Metrics<'_>) -> BTreeMap<String, u64> {
    let requests = "coredns_dns_requests_total";
    let plain = "server=\"dns://";
    let table = [
        (counter::QUERIES, (requests, &[] as &[&str])),
        (counter::QUERIES_UDP, (requests, &[plain, "proto=\"udp\""])),
        (counter::QUERIES_TCP, (requests, &[plain, "proto=\"tcp\""])),
        (counter::QUERIES_DOT, (requests, &["server=\"tls://"])),
        (counter::QUERIES_DOH, (requests, &["server=\"https"])),
        ("queries.doq", (requests, &["server=\"quic://"])),
        (counter::RESPONSES, ("coredns_dns_responses_total", &[])),
        ("answers.servfail", ("coredns_dns_responses_total", &["rcode=\"SERVFAIL\""])),
        (counter::CACHE_HITS, ("coredns_cache_hits_total", &[])),
        (counter::CACHE_MISSES, ("coredns_cache_misses_total", &[])),
        (counter::UPSTREAM_QUERIES, ("coredns_proxy_request_duration_seconds_count", &[])),
        ("upstream.connections.opened", ("coredns_proxy_conn_cache_misses_total", &[])),
        ("upstream.connections.reused", ("coredns_proxy_conn_cache_hits_total", &[])),
        ("panics", ("coredns_panics_total", &[])),
    ];
    let mut counts = counts_found(table, |(metric, labels)| metrics.sum(metric, labels));
    if let Some(ns) = metrics.sum_of_seconds_ns("coredns_proxy_request_duration_seconds_sum") {
        counts.insert(counter::UPSTREAM_WAITED_NS.to_owned(), ns);
    }
    counts
}

/// Go has one program with everything in it, and its own runtime.
const COST_ROWS: &[CostRow] = &[
    functions("coredns", &["crypto/tls."], Tls),
    functions(
        "coredns",
        &["crypto/", "vendor/golang.org/x/crypto", "golang.org/x/crypto", "math/big", "hash/"],
        Crypto,
    ),
    functions(
        "coredns",
        &[
            "net/http",
            "golang.org/x/net/http2",
            "vendor/golang.org/x/net/http2",
            "github.com/quic-go",
        ],
        HttpQuic,
    ),
    functions(
        "coredns",
        &[
            "runtime.malloc",
            "runtime.newobject",
            "runtime.makeslice",
            "runtime.growslice",
            "runtime.gc",
            "runtime.scan",
            "runtime.mark",
            "runtime.sweep",
            "runtime.bgsweep",
            "runtime.grey",
            "runtime.heap",
            "runtime.memmove",
            "runtime.memclr",
            "runtime.(*mspan)",
            "runtime.(*mcache)",
            "runtime.(*mheap)",
            "runtime.(*mcentral)",
            "runtime.(*gc",
            "runtime.(*sweep",
            "runtime.typePointers",
            "runtime.bulkBarrier",
            "runtime.wb",
            "runtime.findObject",
            "runtime.nextFree",
            "runtime.deductAssist",
            "runtime.tryDeferTo",
        ],
        Memory,
    ),
    functions("coredns", &["log.", "log/"], Log),
    functions(
        "coredns",
        &[
            "runtime.",
            "runtime/",
            "internal/poll",
            "internal/runtime",
            "net.",
            "syscall.",
            "sync.",
            "time.",
            "aeshash",
            "gogo",
            "type:",
        ],
        EventLoop,
    ),
    functions("coredns", &["internal/"], Rest),
    library("coredns", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{forwarder, shown};

    #[test]
    fn all_transports_to_udp() {
        let spec = forwarder(ServerKind::CoreDns, &Transport::ALL, Transport::Udp);
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn to_tls_on_ipv6_with_extra_text() {
        let mut spec = forwarder(ServerKind::CoreDns, &[Transport::Udp], Transport::Dot);
        spec.address = "::1".parse().unwrap();
        spec.upstream.as_mut().unwrap().address = "[fd00::2]:853".parse().unwrap();
        spec.extra = Some("    loadbalance".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn metrics_have_common_names() {
        let page = "coredns_dns_requests_total{proto=\"udp\",server=\"dns://127.0.0.1:1\"} 3\n\
                    coredns_dns_requests_total{proto=\"tcp\",server=\"tls://127.0.0.1:2\"} 4\n\
                    coredns_dns_requests_total{proto=\"tcp\",server=\"https3://127.0.0.1:3\"} 5\n\
                    coredns_cache_misses_total{server=\"dns://127.0.0.1:1\"} 2\n";
        let counts = read_metrics(&Metrics::new(page));
        assert_eq!(counts.get(counter::QUERIES), Some(&12));
        assert_eq!(counts.get(counter::QUERIES_UDP), Some(&3));
        assert_eq!(counts.get(counter::QUERIES_TCP), None);
        assert_eq!(counts.get(counter::QUERIES_DOT), Some(&4));
        assert_eq!(counts.get(counter::QUERIES_DOH), Some(&5));
        assert_eq!(counts.get(counter::CACHE_MISSES), Some(&2));
    }

    #[test]
    fn another_path_is_refused() {
        let mut spec = forwarder(ServerKind::CoreDns, &[Transport::Doh2], Transport::Udp);
        assert_eq!(CoreDns.takes(&spec), Ok(()));
        spec.http_path = "/resolve".to_owned();
        let reason = CoreDns.takes(&spec).unwrap_err();
        assert_eq!(reason, "CoreDNS answers DNS over HTTPS at `/dns-query` only");
        spec.transports = vec![Transport::Udp];
        assert_eq!(CoreDns.takes(&spec), Ok(()));
    }
}
