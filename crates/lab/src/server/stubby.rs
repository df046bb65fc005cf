//! Stubby, the stub resolver of the getdns project that speaks DNS over TLS. Options: its example
//! `stubby.yml`, and the API of getdns. It has neither counters nor a cache.

use std::net::{IpAddr, SocketAddr};

use dnslab_record::CostPart::DnsLogic;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::adapter::{Adapter, Facts};
use super::cost_rows::{CostRow, library};
use super::rendered::Rendered;
use super::spec::{ServerSpec, UPSTREAM_AUTHORITY, Upstream};
use super::version::Version;
use crate::package::Remedy;

/// The ending makes it YAML.
const CONFIGURATION: &str = "stubby.yml";

pub(super) struct Stubby;

impl Adapter for Stubby {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Stubby,
            remedy: Remedy::Package { debian: "stubby", fedora: "getdns-stubby" },
            version_argument: "-V",
            counter_source: None,
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Tcp => Ok(()),
            _ => Err(format!(
                "Stubby {version} serves UDP and TCP, not {transport}: only what it forwards is \
                 encrypted"
            )),
        }
    }

    fn forwards(&self, version: &Version, transport: Transport) -> Result<(), String> {
        match transport {
            Transport::Udp | Transport::Tcp | Transport::Dot => Ok(()),
            _ => Err(format!("Stubby {version} does not forward over {transport}")),
        }
    }

    fn validates(&self, _version: &Version) -> Result<(), String> {
        Err("dnslab does not configure validation in Stubby".to_owned())
    }

    fn runs_without_cache(&self) -> bool {
        true
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let command = [program, "-C", CONFIGURATION];
        Rendered::one(CONFIGURATION, configuration(spec), &command, notes(spec))
    }
}

fn configuration(spec: &ServerSpec) -> String {
    format!(
        "\
resolution_type: GETDNS_RESOLUTION_STUB
namespaces:
  - GETDNS_NAMESPACE_DNS
appdata_dir: \".\"
listen_addresses:
  - {address}@{port}
{upstream}{extra}",
        address = scalar(spec.address),
        port = spec.ports.plain,
        upstream = spec.upstream.as_ref().map(upstream).unwrap_or_default(),
        extra = spec.extra_text(),
    )
}

/// An address that YAML takes for text and Stubby for an address: one that begins with colons is neither,
/// with or without quotation marks.
fn scalar(address: IpAddr) -> String {
    let text = address.to_string();
    if text.starts_with(':') { format!("0{text}") } else { text }
}

fn upstream(upstream: &Upstream) -> String {
    let list = |transports: &[&str]| -> String {
        let line = |transport: &&str| format!("  - GETDNS_TRANSPORT_{transport}\n");
        format!("dns_transport_list:\n{}", transports.iter().map(line).collect::<String>())
    };
    let begin = match (&upstream.tls, upstream.transport) {
        (Some(_), _) => format!(
            "{}tls_authentication: GETDNS_AUTHENTICATION_REQUIRED\ntls_ca_file: \
             \"{UPSTREAM_AUTHORITY}\"\n",
            list(&["TLS"])
        ),
        (None, Transport::Tcp) => list(&["TCP"]),
        (None, _) => list(&["UDP", "TCP"]),
    };
    let servers: String = upstream.addresses().map(|at| target(upstream, at)).collect();
    format!("{begin}upstream_recursive_servers:\n{servers}")
}

fn target(upstream: &Upstream, at: SocketAddr) -> String {
    let (ip, port) = (scalar(at.ip()), at.port());
    let how = match &upstream.tls {
        Some(tls) => format!("tls_port: {port}\n    tls_auth_name: \"{}\"", tls.name),
        None => format!("port: {port}"),
    };
    format!("  - address_data: {ip}\n    {how}\n")
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let mut notes = vec![
        "one thread, whatever the experiment says: Stubby has no more".to_owned(),
        "it has no cache: each query is forwarded".to_owned(),
        "it reads the system's hosts and resolvers as it starts, and uses neither (namespaces, \
         upstream_recursive_servers)"
            .to_owned(),
        "Stubby opens UDP and TCP together".to_owned(),
        "it counts nothing that could be read".to_owned(),
        "clients' connections over TCP are closed after 5 s without a query, and 16 may wait to be accepted \
         (DOWNSTREAM_IDLE_TIMEOUT and TCP_LISTEN_BACKLOG in the server.c of getdns, compiled in)"
            .to_owned(),
        "timeout 5 s (the default) for an answer; an upstream whose connections over TLS fail twice in \
         succession is left alone for longer and longer, up to an hour (tls_connection_retries 2, \
         tls_backoff_time 3600, the defaults)"
            .to_owned(),
    ];
    let Some(upstream) = &spec.upstream else { return notes };
    notes.push(match (&upstream.tls, upstream.transport) {
        (Some(_), _) => "the upstream's certificate is verified (tls_authentication required, the \
                         strict profile); connections to it are kept and padded as Stubby does by \
                         default (idle_timeout 10 s, blocks of 256 octets), and no TLS session is resumed"
            .to_owned(),
        (None, Transport::Tcp) => {
            "queries travel to the upstream over TCP, on connections that are \
                                   kept for 10 s (idle_timeout, the default)"
                .to_owned()
        }
        (None, _) => "queries travel to the upstream over UDP, and over TCP after truncation; its \
                      default is TLS alone"
            .to_owned(),
    });
    notes
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[library("libgetdns", DnsLogic), library("stubby", DnsLogic)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{forwarder, shown};

    #[test]
    fn to_udp() {
        let both = [Transport::Udp, Transport::Tcp];
        insta::assert_snapshot!(shown(&forwarder(ServerKind::Stubby, &both, Transport::Udp)));
    }

    #[test]
    fn to_tls_on_ipv6_with_extra_text() {
        let mut spec = forwarder(ServerKind::Stubby, &[Transport::Udp], Transport::Dot);
        spec.address = "::1".parse().unwrap();
        spec.upstream.as_mut().unwrap().address = "[fd00::2]:853".parse().unwrap();
        spec.extra = Some("idle_timeout: 60000".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn what_it_serves_and_does_not_do() {
        let version = Version { text: "0.3.0".to_owned(), numbers: [0, 3, 0] };
        let served = Transport::ALL.map(|transport| Stubby.supports(&version, transport).is_ok());
        assert_eq!(served, [true, true, false, false, false, false]);
        let reason = Stubby.validates(&version).unwrap_err();
        assert_eq!(reason, "dnslab does not configure validation in Stubby");
    }
}
