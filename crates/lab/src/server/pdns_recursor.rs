//! PowerDNS Recursor (`pdns_recursor`), as a forwarder or as a resolver. Options: its manual, "Settings"; counters: its web
//! server, `/metrics`.
//!
//! Blind spots of its counters: what the kernel dropped before it was read, and messages that cannot be
//! parsed. What it drops for lack of room is counted separately, and so is what it answers with SERVFAIL
//! because it is bogus (RFC 4035).

use std::collections::BTreeMap;

use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::adapter::{
    Access, Adapter, Facts, IDLE_SECONDS, counts_found, hints_note, trust_anchor_words, trust_note,
};
use super::cost_rows::CostRow;
use super::http;
use super::metrics::Metrics;
use super::pdns_auth;
use super::rendered::{Rendered, RenderedFile};
use super::spec::{POLICY_ZONE, ROOT_HINTS, RootHints, ServerSpec, Upstream};
use super::version::Version;
use crate::package::Remedy;

/// The name that the program looks for in its folder.
const CONFIGURATION: &str = "recursor.conf";

/// The second configuration, a program in Lua with the trust anchors.
const LUA: &str = "recursor.lua";

/// Queries that a client may keep outstanding on one connection: more than the window of most loads, so that
/// the load decides.
const IN_FLIGHT: u32 = 1_000;

/// The only port to which it speaks TLS (RFC 7858, section 3.1).
const TLS_PORT: u16 = 853;

pub(super) struct PowerDnsRecursor;

impl Adapter for PowerDnsRecursor {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::PowerDnsRecursor,
            remedy: Remedy::Package { debian: "pdns-recursor", fedora: "pdns-recursor" },
            version_argument: "--version",
            counter_source: Some("/metrics of PowerDNS Recursor's web server"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        pdns_auth::COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        if version.is_at_least(5, 2) {
            return Err(format!(
                "PowerDNS Recursor {version} reads old-style settings, which dnslab writes, only with \
                 --enable-old-settings, which dnslab does not give it: 4.7 to 5.1 read them as they are"
            ));
        }
        let missing = match transport {
            _ if !version.is_at_least(4, 7) => {
                "option to ask no root server (hint-file no): 4.7 has"
            }
            Transport::Udp | Transport::Tcp => return Ok(()),
            Transport::Dot => {
                "DNS over TLS to its clients: dnsdist in front of it is the usual way"
            }
            Transport::Doh2 | Transport::Doh3 => "DNS over HTTPS",
            Transport::Doq => "DNS over QUIC",
        };
        Err(format!("PowerDNS Recursor {version} has no {missing}"))
    }

    fn takes(&self, spec: &ServerSpec) -> Result<(), String> {
        let Some(upstream) = &spec.upstream else { return Ok(()) };
        let mut ports = upstream.addresses().map(|address| address.port());
        if upstream.transport == Transport::Dot
            && let Some(port) = ports.find(|port| *port != TLS_PORT)
        {
            return Err(format!(
                "PowerDNS Recursor speaks DNS over TLS to port {TLS_PORT} only, not to {port}"
            ));
        }
        Ok(())
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Dot => Ok(()),
            Transport::Tcp => Err(format!(
                "PowerDNS Recursor {version} forwards over UDP, and over TCP only what was truncated"
            )),
            _ => Err(format!("PowerDNS Recursor {version} does not forward over {transport}")),
        }
    }

    fn resolves(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn validates(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let mut files = vec![RenderedFile { name: CONFIGURATION, content: configuration(spec) }];
        if let Some(content) = lua(spec) {
            files.push(RenderedFile { name: LUA, content });
        }
        files.extend(spec.hints_file());
        Rendered {
            files,
            command: [program, "--config-dir=."].map(str::to_owned).to_vec(),
            notes: notes(spec),
        }
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let page = http::get(access.address, "/metrics")?;
        Ok(read_metrics(&Metrics::new(&page)))
    }
}

/// What it is told in Lua: trust anchors and policies.
fn lua(spec: &ServerSpec) -> Option<String> {
    let mut text = String::new();
    if spec.validates() {
        text.push_str("clearTA('.')\n");
        for anchor in &spec.trust_anchors {
            text.push_str(&format!("addTA('.', '{}')\n", trust_anchor_words(anchor).join(" ")));
        }
    }
    if let Some(policy) = &spec.policy_zone {
        let name = &policy.name;
        text.push_str(&format!("rpzFile('{POLICY_ZONE}', {{ policyName = '{name}' }})\n"));
    }
    (!text.is_empty()).then_some(text)
}

fn configuration(spec: &ServerSpec) -> String {
    let by_lua = match lua(spec) {
        Some(_) => format!("lua-config-file={LUA}\n"),
        None => String::new(),
    };
    let validation = match spec.validates() {
        true => "dnssec=validate\n".to_owned(),
        // Other resolvers ask with DO set also where they do not validate, and give a client that sets it what they
        // got.
        false if spec.root_hints.is_some() => "dnssec=process-no-validate\n".to_owned(),
        false => "dnssec=off\n".to_owned(),
    };
    // It asks over IPv4 alone unless it is told otherwise.
    let begins = match &spec.root_hints {
        None => "dont-query=\nexport-etc-hosts=no\nhint-file=no\nserve-rfc1918=no\n".to_owned(),
        Some(RootHints::BuiltIn) => "export-etc-hosts=no\n".to_owned(),
        Some(RootHints::Zone(_)) => {
            format!(
                "dont-query=\nexport-etc-hosts=no\nhint-file={ROOT_HINTS}\n\
                 query-local-address=0.0.0.0,::\n"
            )
        }
    };
    format!(
        "\
daemon=no
setuid=
setgid=
chroot=
socket-dir=.
write-pid=no
disable-syslog=yes
local-address={address}
local-port={port}
allow-from=0.0.0.0/0,::/0
{begins}security-poll-suffix=
threads={threads}
max-tcp-clients={tcp_clients}
client-tcp-timeout={IDLE_SECONDS}
max-concurrent-requests-per-tcp-connection={IN_FLIGHT}
webserver=yes
webserver-address=127.0.0.1
webserver-port={control}
webserver-allow-from=127.0.0.1
webserver-loglevel=none
{validation}{by_lua}{cache}{upstream}{extra}",
        address = spec.address,
        port = spec.ports.plain,
        threads = spec.threads,
        tcp_clients = spec.connection_limit(),
        control = spec.ports.control,
        cache = match spec.cache_entries() {
            Some(count) => {
                let packets = packet_entries(count);
                format!("max-cache-entries={count}\nmax-packetcache-entries={packets}\n")
            }
            None => String::new(),
        },
        upstream = spec.upstream.as_ref().map(forward).unwrap_or_default(),
        extra = spec.extra_text(),
    )
}

/// Packets for so many records, in the proportion of the defaults.
fn packet_entries(records: u64) -> u64 {
    (records / 2).max(1)
}

fn forward(upstream: &Upstream) -> String {
    let has = |is_ipv6| upstream.addresses().any(|address| address.is_ipv6() == is_ipv6);
    let local = match (has(false), has(true)) {
        (true, true) => "query-local-address=0.0.0.0, ::\n",
        (false, true) => "query-local-address=::\n",
        _ => "",
    };
    let tls = if upstream.transport == Transport::Dot { "yes" } else { "no" };
    let addresses: Vec<String> = upstream.addresses().map(|at| at.to_string()).collect();
    let addresses = addresses.join(";");
    format!("forward-zones-recurse=.={addresses}\n{local}dot-to-port-853={tls}\n")
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let no_validation = match &spec.root_hints {
        Some(_) => {
            "no validation (dnssec process-no-validate, which asks with DO as other resolvers do; default \
             process, which validates when a client asks)"
        }
        None => "no validation (dnssec off; default process, which validates when a client asks)",
    };
    let mut notes = vec![
        format!(
            "{} worker threads (threads), as the experiment says, and those that it has besides: up to 4.8 \
             one that hands out the queries, from 5.0 on one for all queries over TCP (tcp-threads, the \
             default), and one for the web server",
            spec.threads
        ),
        format!(
            "max-tcp-clients {} (default 128; max-tcp-per-client and max-tcp-queries-per-connection have no \
             limit, the default), client-tcp-timeout {IDLE_SECONDS} s (default 2 s), \
             max-concurrent-requests-per-tcp-connection {IN_FLIGHT} (default 10): the limits on \
             clients are not what is measured",
            spec.connection_limit()
        ),
        match spec.cache_entries() {
            Some(count) => format!(
                "max-cache-entries {count} (default 1000000 records), as the experiment says, and half of it \
                 for max-packetcache-entries, {} (default 500000 packets)",
                packet_entries(count)
            ),
            None => "the caches are the defaults (1000000 records, 500000 packets)".to_owned(),
        },
        "the shortest time in the cache and the limit on queries in work are the defaults \
         (minimum-ttl-override 1 s, max-mthreads 2048); there are no rate limits; an upstream that \
         leaves 64 queries in succession unanswered is not asked for 60 s (server-down-max-fails, \
         server-down-throttle-time, the defaults)"
            .to_owned(),
        trust_note(spec, no_validation),
    ];
    notes.extend(match &spec.root_hints {
        None => [
            "any client may ask (allow-from), and the upstream may be on any address (dont-query empty); names of private \
             addresses are forwarded too (serve-rfc1918 no)"
                .to_owned(),
            "it asks nothing of its own accord: neither the root's servers (hint-file no) nor its makers \
             for security news; it does not read the system's hosts (export-etc-hosts no, the default)"
                .to_owned(),
        ]
        .to_vec(),
        Some(hints) => resolver_notes(hints),
    });
    notes.extend([
        "the web server is open on the loopback interface: its counters are read during the run"
            .to_owned(),
        "PowerDNS Recursor opens UDP and TCP together".to_owned(),
    ]);
    if let Some(upstream) = &spec.upstream {
        notes.push(match upstream.transport {
            Transport::Dot => {
                "the upstream's certificate is not verified: PowerDNS Recursor 4.7 to 5.1 \
                               cannot (its TLS is opportunistic); connections to it are opened, kept \
                               and resumed as it does by default"
                    .to_owned()
            }
            _ => {
                "queries travel to the upstream over UDP, and over TCP after truncation".to_owned()
            }
        });
    }
    notes
}

fn resolver_notes(hints: &RootHints) -> Vec<String> {
    let families = match hints {
        RootHints::BuiltIn => "it asks over IPv4 alone, as by default",
        RootHints::Zone(_) => {
            "it asks over IPv4 and IPv6 (query-local-address 0.0.0.0, ::; default IPv4 alone)"
        }
    };
    vec![
        format!(
            "{}, which it asks for their names at the start (RFC 9609); any client may ask (allow-from)",
            hints_note(hints, "hint-file")
        ),
        format!(
            "{families}; dont-query is the default: nothing of 198.18.0.0/15 or 2001:2::/48 is in it; \
             qname-minimization yes, aggressive-nsec-cache-size 100000 and serve-rfc1918 yes are the \
             defaults"
        ),
        "the caches are in memory, so they are empty at the start; max-negative-ttl and \
         packetcache-ttl are the defaults (3600 s each in 4.8)"
            .to_owned(),
        "it asks nothing of its makers for security news (security-poll-suffix empty); it does not read \
         the system's hosts (export-etc-hosts no, the default)"
            .to_owned(),
    ]
}

fn read_metrics(metrics: &Metrics<'_>) -> BTreeMap<String, u64> {
    let sum = |name: &str| metrics.sum(&format!("pdns_recursor_{name}"), &[]);
    let table = [
        (counter::QUERIES, "questions"),
        (counter::QUERIES_TCP, "tcp_questions"),
        ("answers.servfail", "servfail_answers"),
        ("answers.secure", "dnssec_result_secure"),
        ("answers.bogus", "dnssec_result_bogus"),
        (counter::CACHE_MISSES, "cache_misses"),
        (counter::UPSTREAM_QUERIES, "all_outqueries"),
        ("upstream.queries.tcp", "tcp_outqueries"),
        ("upstream.queries.dot", "dot_outqueries"),
        (counter::UPSTREAM_TIMEOUTS, "outgoing_timeouts"),
        ("dropped", "over_capacity_drops"),
    ];
    let mut counts = counts_found(table, sum);
    // A query is answered from the packet cache, or otherwise from the record cache.
    if let (Some(packets), Some(records)) = (sum("packetcache_hits"), sum("cache_hits")) {
        counts.insert(counter::CACHE_HITS.to_owned(), packets + records);
    }
    if let (Some(all), Some(tcp)) = (sum("questions"), sum("tcp_questions")) {
        counts.insert(counter::QUERIES_UDP.to_owned(), all.saturating_sub(tcp));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{forwarder, live, resolver, shown};

    const KIND: ServerKind = ServerKind::PowerDnsRecursor;

    #[test]
    fn both_transports_to_udp() {
        let both = [Transport::Udp, Transport::Tcp];
        insta::assert_snapshot!(shown(&forwarder(KIND, &both, Transport::Udp)));
    }

    #[test]
    fn validating_over_tls_on_ipv6_with_extra_text() {
        let mut spec = forwarder(KIND, &[Transport::Udp], Transport::Dot);
        spec.address = "::1".parse().unwrap();
        spec.upstream.as_mut().unwrap().address = "[fd00::2]:853".parse().unwrap();
        spec.trust_anchors = vec![". 3600 IN DS 20326 8 2 E06D 44B8".to_owned()];
        spec.extra = Some("max-cache-entries=1000".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn tls_at_another_port_is_refused() {
        let mut spec = forwarder(KIND, &[Transport::Udp], Transport::Dot);
        assert_eq!(PowerDnsRecursor.takes(&spec), Ok(()));
        spec.upstream.as_mut().unwrap().address.set_port(8530);
        assert_eq!(
            PowerDnsRecursor.takes(&spec).unwrap_err(),
            "PowerDNS Recursor speaks DNS over TLS to port 853 only, not to 8530"
        );
    }

    #[test]
    fn what_a_version_serves() {
        let version = |numbers: [u32; 3]| Version { text: format!("{numbers:?}"), numbers };
        let served = |numbers| {
            Transport::ALL
                .map(|transport| PowerDnsRecursor.supports(&version(numbers), transport).is_ok())
        };
        assert_eq!(served([4, 8, 8]), [true, true, false, false, false, false]);
        assert_eq!(served([4, 6, 0]), [false; 6]);
        assert_eq!(served([5, 0, 0]), served([4, 8, 8]));
        assert_eq!(served([5, 1, 10]), served([4, 8, 8]));
        assert_eq!(served([5, 2, 0]), [false; 6]);
        let reason = PowerDnsRecursor.supports(&version([5, 2, 0]), Transport::Udp).unwrap_err();
        assert!(reason.contains("--enable-old-settings"), "{reason}");
    }

    #[test]
    fn metrics_have_common_names() {
        let page = "pdns_recursor_questions 9\npdns_recursor_tcp_questions 2\n\
                    pdns_recursor_packetcache_hits 3\npdns_recursor_cache_hits 1\n\
                    pdns_recursor_cache_misses 5\npdns_recursor_all_outqueries 5\n";
        let counts = read_metrics(&Metrics::new(page));
        assert_eq!(counts.get(counter::QUERIES), Some(&9));
        assert_eq!(counts.get(counter::QUERIES_UDP), Some(&7));
        assert_eq!(counts.get(counter::CACHE_HITS), Some(&4));
        assert_eq!(counts.get(counter::UPSTREAM_QUERIES), Some(&5));
    }

    #[test]
    fn resolving_from_given_root_servers() {
        let all = [Transport::Udp, Transport::Tcp];
        insta::assert_snapshot!(shown(&resolver(ServerKind::PowerDnsRecursor, &all)));
    }

    #[test]
    fn resolving_on_the_internet() {
        insta::assert_snapshot!(shown(&live(ServerKind::PowerDnsRecursor)));
    }
}
