//! dnsmasq, Simon Kelley's forwarder of home routers. Options: dnsmasq(8).
//!
//! Blind spots of its counters: each query over TCP is answered by a process of its own, whose counters are
//! lost when it ends, so only UDP is counted. Answers are not counted.

use std::collections::BTreeMap;

use dnslab_record::CostPart::{DnsLogic, EventLoop, Log};
use dnslab_record::counter;
use dnslab_settings::{CacheSize, ServerKind};
use dnslab_wire::Transport;

use super::adapter::{Access, Adapter, Facts, trust_anchor_words, trust_note};
use super::chaos;
use super::cost_rows::{CostRow, functions, library};
use super::rendered::Rendered;
use super::spec::{ServerSpec, Upstream};
use super::version::Version;
use crate::package::Remedy;

const CONFIGURATION: &str = "dnsmasq.conf";

/// The names of dnsmasq's counters, in the order in which they are asked for. dnsmasq counts these queries
/// too, as answered by itself.
const NAMES: [&str; 4] = ["hits.bind.", "misses.bind.", "auth.bind.", "servers.bind."];

pub(super) struct Dnsmasq;

impl Adapter for Dnsmasq {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Dnsmasq,
            remedy: Remedy::Package { debian: "dnsmasq-base", fedora: "dnsmasq" },
            version_argument: "--version",
            counter_source: Some(
                "hits.bind, misses.bind, auth.bind and servers.bind (CH TXT) of dnsmasq",
            ),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            Transport::Udp => return Ok(()),
            Transport::Tcp if version.is_at_least(2, 90) => return Ok(()),
            Transport::Tcp => "limit on TCP clients that can be raised from 20: 2.90 has",
            Transport::Dot => "DNS over TLS: stubby in front of the upstream is the usual way",
            Transport::Doh2 | Transport::Doh3 => "DNS over HTTPS",
            Transport::Doq => "DNS over QUIC",
        };
        Err(format!("dnsmasq {version} has no {missing}"))
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp => Ok(()),
            Transport::Tcp => {
                Err(format!("dnsmasq {version} forwards over TCP only what came to it over TCP"))
            }
            _ => Err(format!("dnsmasq {version} does not forward over {transport}")),
        }
    }

    fn validates(&self, _version: &Version) -> Result<(), String> {
        Ok(())
    }

    fn takes(&self, spec: &ServerSpec) -> Result<(), String> {
        // 150 is its default.
        let is_small =
            spec.is_without_cache() || spec.cache_entries().is_some_and(|entries| entries < 150);
        if is_small && spec.validates() {
            return Err("dnsmasq validates only with a cache of 150 names or more: it ends with `cannot reduce \
                        cache size from default when DNSSEC enabled`"
                .to_owned());
        }
        Ok(())
    }

    fn runs_without_cache(&self) -> bool {
        true
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let file = format!("--conf-file={CONFIGURATION}");
        let command = [program, "--keep-in-foreground", &file];
        Rendered::one(CONFIGURATION, configuration(spec), &command, notes(spec))
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let mut answers = Vec::new();
        for name in NAMES {
            answers.push(chaos::texts(access.service, name)?);
        }
        let [hits, misses, authoritative, servers] = answers.try_into().expect("one for each name");
        let number = |texts: &[String]| texts.first()?.parse::<u64>().ok();
        let (Some(hits), Some(misses), Some(authoritative)) =
            (number(&hits), number(&misses), number(&authoritative))
        else {
            return Err("its answer to `hits.bind CH TXT` is no number".to_owned());
        };
        // The readings before this one.
        let own = access.earlier * NAMES.len() as u64;
        counts(hits.saturating_sub(own), misses, authoritative, &servers)
    }
}

/// Fails with half a sentence if a line of a server cannot be read.
fn counts(
    hits: u64,
    misses: u64,
    authoritative: u64,
    servers: &[String],
) -> Result<BTreeMap<String, u64>, String> {
    let (mut sent, mut failed) = (0, 0);
    for server in servers {
        // `ADDRESS#PORT SENT FAILED`, for each server.
        let mut numbers = server.split(' ').skip(1).map(|text| text.parse::<u64>().ok());
        let mut number = || numbers.next().flatten();
        let read = number().zip(number());
        let read = read.ok_or_else(|| format!("`{server}` is no server with its counts"))?;
        (sent, failed) = (sent + read.0, failed + read.1);
    }
    let named = [
        (counter::QUERIES_UDP, hits + misses + authoritative),
        (counter::CACHE_HITS, hits),
        (counter::CACHE_MISSES, misses),
        (counter::UPSTREAM_QUERIES, sent),
        ("upstream.failures", failed),
    ];
    Ok(named.map(|(name, count)| (name.to_owned(), count)).into())
}

fn configuration(spec: &ServerSpec) -> String {
    let upstreams = spec.upstream.iter().flat_map(Upstream::addresses);
    let upstreams: String =
        upstreams.map(|at| format!("server={}#{}\n", at.ip(), at.port())).collect();
    format!(
        "\
port={port}
listen-address={address}
bind-interfaces
user=
group=
pid-file=
log-facility=-
no-resolv
no-hosts
{cache}{tcp}{anchor}{upstreams}{extra}",
        port = spec.ports.plain,
        address = spec.address,
        cache = match spec.cache {
            CacheSize::None => "cache-size=0\n".to_owned(),
            CacheSize::Entries(count) => format!("cache-size={count}\n"),
            CacheSize::Default | CacheSize::Mebibytes(_) => String::new(),
        },
        tcp = if spec.serves(Transport::Tcp) {
            format!("max-tcp-connections={}\n", spec.connection_limit())
        } else {
            String::new()
        },
        anchor = validation(&spec.trust_anchors),
        extra = spec.extra_text(),
    )
}

fn validation(anchors: &[String]) -> String {
    let mut text = if anchors.is_empty() { String::new() } else { "dnssec\n".to_owned() };
    for anchor in anchors {
        let [tag, algorithm, digest_type, digest] = trust_anchor_words(anchor);
        text.push_str(&format!("trust-anchor=.,{tag},{algorithm},{digest_type},{digest}\n"));
    }
    text
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let mut notes = vec![
        "one thread, whatever the experiment says: dnsmasq has no more".to_owned(),
        "it does not read the system's configuration, hosts and resolvers (--conf-file, no-hosts, \
         no-resolv), and stays the user that it is (user, group)"
            .to_owned(),
        "queries travel to the upstream over UDP; those that came over TCP over TCP".to_owned(),
        match spec.cache {
            CacheSize::None => {
                "no cache (cache-size 0; default 150 names): each query goes upstream".to_owned()
            }
            CacheSize::Entries(count) => {
                format!(
                    "a cache of {count} names (cache-size; default 150), as the experiment says"
                )
            }
            CacheSize::Default | CacheSize::Mebibytes(_) => {
                "a cache of 150 names (cache-size, the default)".to_owned()
            }
        },
        "at most 150 queries in work (dns-forward-max, the default): more are refused".to_owned(),
        trust_note(spec, "no validation, as it is by default"),
        "dnsmasq opens UDP and TCP together".to_owned(),
        "its counts are those of UDP; they are read by queries to it, which are taken off again"
            .to_owned(),
    ];
    if spec.serves(Transport::Tcp) {
        notes.push(format!(
            "max-tcp-connections {} (default 20): the limit on clients is not what is measured; it \
             answers each connection in a process of its own, which ends after 100 queries or 150 s \
             (TCP_MAX_QUERIES and CHILD_LIFETIME, compiled in): clients connect anew then",
            spec.connection_limit()
        ));
    }
    notes
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[
    functions("dnsmasq", &["poll_", "do_poll"], EventLoop),
    functions("dnsmasq", &["my_syslog", "log_"], Log),
    library("dnsmasq", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{forwarder, shown};

    #[test]
    fn both_transports() {
        let both = [Transport::Udp, Transport::Tcp];
        insta::assert_snapshot!(shown(&forwarder(ServerKind::Dnsmasq, &both, Transport::Udp)));
    }

    #[test]
    fn validating_on_ipv6_with_extra_text() {
        let mut spec = forwarder(ServerKind::Dnsmasq, &[Transport::Udp], Transport::Udp);
        spec.address = "::1".parse().unwrap();
        spec.upstream.as_mut().unwrap().address = "[fd00::2]:53".parse().unwrap();
        spec.trust_anchors = vec![". 3600 IN DS 20326 8 2 E06D 44B8".to_owned()];
        spec.extra = Some("cache-size=10000".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn without_a_cache() {
        let mut spec = forwarder(ServerKind::Dnsmasq, &[Transport::Udp], Transport::Udp);
        spec.cache = CacheSize::None;
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn validation_without_a_cache_is_refused() {
        let mut spec = forwarder(ServerKind::Dnsmasq, &[Transport::Udp], Transport::Udp);
        spec.trust_anchors = vec![". 3600 IN DS 20326 8 2 E06D 44B8".to_owned()];
        assert_eq!(Dnsmasq.takes(&spec), Ok(()));
        spec.cache = CacheSize::None;
        assert_eq!(
            Dnsmasq.takes(&spec).unwrap_err(),
            "dnsmasq validates only with a cache of 150 names or more: it ends with `cannot reduce cache size \
             from default when DNSSEC enabled`"
        );
        spec.cache = CacheSize::Entries(149);
        assert!(Dnsmasq.takes(&spec).is_err());
        spec.cache = CacheSize::Entries(150);
        assert_eq!(Dnsmasq.takes(&spec), Ok(()));
        spec.cache = CacheSize::None;
        spec.trust_anchors.clear();
        assert_eq!(Dnsmasq.takes(&spec), Ok(()));
    }

    #[test]
    fn what_a_version_serves() {
        let version = |minor| Version { text: format!("2.{minor}"), numbers: [2, minor, 0] };
        let reason = Dnsmasq.supports(&version(85), Transport::Tcp).unwrap_err();
        assert_eq!(
            reason,
            "dnsmasq 2.85 has no limit on TCP clients that can be raised from 20: 2.90 has"
        );
        assert_eq!(Dnsmasq.supports(&version(90), Transport::Tcp), Ok(()));
        let reason = Dnsmasq.forwards(&version(90), Transport::Dot).unwrap_err();
        assert_eq!(reason, "dnsmasq 2.90 does not forward over dot");
    }

    #[test]
    fn counts_have_common_names() {
        let servers = ["127.0.0.1#53 4 1", "::1#53 2 0"].map(str::to_owned);
        let found = counts(7, 5, 1, &servers).unwrap();
        assert_eq!(found.get(counter::QUERIES_UDP), Some(&13));
        assert_eq!(found.get(counter::CACHE_HITS), Some(&7));
        assert_eq!(found.get(counter::UPSTREAM_QUERIES), Some(&6));
        assert_eq!(found.get("upstream.failures"), Some(&1));
        assert_eq!(found.get(counter::QUERIES), None);
        for unreadable in ["127.0.0.1#53", "127.0.0.1#53 4", "127.0.0.1#53 4 x"] {
            let error = counts(7, 5, 1, &[unreadable.to_owned()]).unwrap_err();
            assert_eq!(error, format!("`{unreadable}` is no server with its counts"));
        }
    }
}
