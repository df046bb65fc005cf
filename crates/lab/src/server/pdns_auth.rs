//! PowerDNS Authoritative Server (`pdns_server`) with its bind backend, which reads zone files. Options: its
//! manual, "Authoritative Server Settings"; counters: its web server, `/metrics`.
//!
//! Blind spots of its counters: what the kernel dropped before it was read, and messages that cannot be
//! parsed. What it drops for lack of room is counted separately.

use std::collections::BTreeMap;

use dnslab_record::CostPart::{DnsLogic, EventLoop};
use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::adapter::{Access, Adapter, Facts, IDLE_SECONDS, counts_found};
use super::cost_rows::{CostRow, library};
use super::http;
use super::metrics::Metrics;
use super::rendered::{Rendered, RenderedFile};
use super::spec::{ServerSpec, Signatures};
use super::version::Version;
use crate::package::Remedy;

/// The name that the program looks for in its folder.
const CONFIGURATION: &str = "pdns.conf";

/// The second configuration, a list of zones in BIND's form.
const ZONES: &str = "named.conf";

/// In its folder: what the bind backend knows of a zone beside its file.
const METADATA: &str = "dnssec.db";

/// Says that the zone has its signatures, as an operator does (its manual, "DNSSEC Modes of Operation"), and becomes the
/// server. Told here, `pdnsutil` says nothing of importance on standard output.
const SCRIPT: &str = "start.sh";

pub(super) struct PowerDnsAuthoritative;

impl Adapter for PowerDnsAuthoritative {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::PowerDnsAuthoritative,
            remedy: Remedy::Package { debian: "pdns-server pdns-backend-bind", fedora: "pdns" },
            version_argument: "--version",
            counter_source: Some("/metrics of PowerDNS Authoritative Server's web server"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            _ if !version.is_at_least(4, 2) => "option `webserver-loglevel`: it came with 4.2",
            Transport::Udp | Transport::Tcp => return Ok(()),
            Transport::Dot => "DNS over TLS: dnsdist in front of it is the usual way",
            Transport::Doh2 | Transport::Doh3 => {
                "DNS over HTTPS: dnsdist in front of it is the usual way"
            }
            Transport::Doq => "DNS over QUIC: dnsdist in front of it is the usual way",
        };
        Err(format!("PowerDNS Authoritative Server {version} has no {missing}"))
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let (origin, file) = (spec.origin(), spec.zone_file_name());
        let zones = format!("zone \"{origin}\" {{ type native; file \"{file}\"; }};\n");
        let mut files = vec![
            RenderedFile { name: CONFIGURATION, content: configuration(spec) },
            RenderedFile { name: ZONES, content: zones },
        ];
        let mut command = [program, "--config-dir=."].map(str::to_owned).to_vec();
        if let Some(signatures) = spec.signatures() {
            let content = script(&spec.origin(), signatures);
            files.push(RenderedFile { name: SCRIPT, content });
            command.splice(0..0, ["/bin/sh", SCRIPT].map(str::to_owned));
        }
        Rendered { files, command, notes: notes(spec) }
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let page = http::get(access.address, "/metrics")?;
        Ok(read_metrics(&Metrics::new(&page)))
    }
}

fn script(origin: &str, signatures: &Signatures) -> String {
    let nsec3 = match &signatures.nsec3 {
        Some(data) => {
            format!("pdnsutil --config-dir=. set-nsec3 '{origin}' '{data}' > /dev/null\n")
        }
        None => String::new(),
    };
    format!(
        "\
set -e
PATH=$(dirname \"$1\"):$PATH
rm -f {METADATA}
pdnsutil --config-dir=. create-bind-db {METADATA} > /dev/null
{nsec3}pdnsutil --config-dir=. set-presigned '{origin}' > /dev/null
exec \"$@\"
"
    )
}

fn configuration(spec: &ServerSpec) -> String {
    format!(
        "\
launch=bind
{metadata}bind-config={ZONES}
bind-check-interval=0
daemon=no
guardian=no
setuid=
setgid=
chroot=
socket-dir=.
write-pid=no
disable-syslog=yes
security-poll-suffix=
local-address={address}
local-port={port}
receiver-threads={threads}
distributor-threads=1
{reuseport}max-tcp-connections={tcp_clients}
tcp-idle-timeout={IDLE_SECONDS}
webserver=yes
webserver-address=127.0.0.1
webserver-port={control}
webserver-allow-from=127.0.0.1
webserver-loglevel=none
{extra}",
        address = spec.address,
        port = spec.ports.plain,
        threads = spec.threads,
        metadata = match spec.signatures().is_some() {
            true => format!("bind-dnssec-db={METADATA}\n"),
            false => String::new(),
        },
        reuseport = if spec.threads > 1 { "reuseport=yes\n" } else { "" },
        tcp_clients = spec.connection_limit(),
        control = spec.ports.control,
        extra = spec.extra_text(),
    )
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let mut notes = vec![
        format!(
            "{} threads receive queries over UDP (receiver-threads), as the experiment says, and each looks \
             up itself what its cache does not have (distributor-threads 1, default 3, which are threads \
             besides); over TCP each connection has a thread of its own",
            spec.threads
        ),
        format!(
            "max-tcp-connections {} (default 20), tcp-idle-timeout {IDLE_SECONDS} s (default 5 s): the load \
             alone decides when connections are opened; queries on a connection have no limit \
             (max-tcp-transactions-per-conn 0, the default)",
            spec.connection_limit()
        ),
        "the caches are the defaults: an answer is kept for 20 s (cache-ttl) and sent again to the same \
         question, as in operation"
            .to_owned(),
        "the bind backend reads the zone file once (bind-check-interval 0, the default); no database, no \
         guardian process, no question to its makers for security news (security-poll-suffix empty)"
            .to_owned(),
        "the web server is open on the loopback interface: its counters are read during the run"
            .to_owned(),
        "PowerDNS Authoritative Server opens UDP and TCP together".to_owned(),
    ];
    if spec.signatures().is_some() {
        notes
            .push("the zone is served with its own signatures (pdnsutil set-presigned)".to_owned());
    }
    if spec.threads > 1 {
        notes.push(
            "reuseport yes (default no): each receiving thread has a socket of its own, and none waits \
             for another at a shared one"
                .to_owned(),
        );
    }
    notes
}

fn read_metrics(metrics: &Metrics<'_>) -> BTreeMap<String, u64> {
    let sum = |name: &str| metrics.sum(&format!("pdns_auth_{name}"), &[]);
    let table = [
        (counter::QUERIES_UDP, "udp_queries"),
        (counter::QUERIES_TCP, "tcp_queries"),
        (counter::CACHE_HITS, "packetcache_hit"),
        (counter::CACHE_MISSES, "packetcache_miss"),
        ("answers.servfail", "servfail_packets"),
        ("dropped", "overload_drops"),
        ("dropped.late", "timedout_packets"),
        ("corrupt", "corrupt_packets"),
    ];
    let mut counts = counts_found(table, sum);
    if let (Some(udp), Some(tcp)) = (sum("udp_queries"), sum("tcp_queries")) {
        counts.insert(counter::QUERIES.to_owned(), udp + tcp);
    }
    counts
}

/// Which functions of it are which part.
pub(super) const COST_ROWS: &[CostRow] = &[
    library("libbindbackend", DnsLogic),
    library("libsqlite3", DnsLogic),
    library("libluajit", DnsLogic),
    library("liblua", DnsLogic),
    // The tasks of the recursor, between which it changes stacks.
    library("libboost_context", EventLoop),
    library("pdns_server", DnsLogic),
    library("pdns_recursor", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{shown, spec};

    const KIND: ServerKind = ServerKind::PowerDnsAuthoritative;

    #[test]
    fn both_transports() {
        insta::assert_snapshot!(shown(&spec(KIND, &[Transport::Udp, Transport::Tcp])));
    }

    #[test]
    fn one_thread_on_ipv6_with_extra_text() {
        let mut spec = spec(KIND, &[Transport::Udp]);
        spec.threads = 1;
        spec.address = "::1".parse().unwrap();
        spec.extra = Some("cache-ttl=0".to_owned());
        let text = shown(&spec);
        assert!(
            text.contains("\nlocal-address=::1\n") && text.contains("\ncache-ttl=0\n"),
            "{text}"
        );
        assert!(!text.contains("reuseport"), "{text}");
    }

    #[test]
    fn what_a_version_serves() {
        let version = |numbers: [u32; 3]| Version { text: format!("{numbers:?}"), numbers };
        let served = |numbers| {
            let version = version(numbers);
            Transport::ALL
                .map(|transport| PowerDnsAuthoritative.supports(&version, transport).is_ok())
        };
        assert_eq!(served([4, 7, 3]), [true, true, false, false, false, false]);
        assert_eq!(served([4, 1, 14]), [false; 6]);
    }

    #[test]
    fn metrics_have_common_names() {
        let page = "pdns_auth_udp_queries 7\npdns_auth_tcp_queries 2\npdns_auth_udp4_queries 7\n\
                    pdns_auth_packetcache_hit 4\n";
        let counts = read_metrics(&Metrics::new(page));
        assert_eq!(counts.get(counter::QUERIES), Some(&9));
        assert_eq!(counts.get(counter::QUERIES_UDP), Some(&7));
        assert_eq!(counts.get(counter::QUERIES_TCP), Some(&2));
        assert_eq!(counts.get(counter::CACHE_HITS), Some(&4));
        assert_eq!(counts.get("dropped"), None);
    }
}
