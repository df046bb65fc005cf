//! NLnet Labs NSD (`nsd`), authoritative. Options: nsd.conf(5); counters: nsd-control(8).
//!
//! Blind spots of its counters: what it drops is counted separately from the queries. Before 4.8 its
//! processes are replaced when they are asked for their counters, which closes their connections.

use std::collections::BTreeMap;

use dnslab_record::CostPart::{DnsLogic, EventLoop, Log, Memory};
use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::adapter::{Access, Adapter, Facts, IDLE_SECONDS, counts_found};
use super::control;
use super::cost_rows::{CostRow, functions, library};
use super::own::OwnConfiguration;
use super::rendered::Rendered;
use super::spec::ServerSpec;
use super::version::Version;
use crate::certificate;
use crate::package::Remedy;

const CONFIGURATION: &str = "nsd.conf";

const CONTROL: &str = "nsd.ctl";

pub(super) struct Nsd;

impl Adapter for Nsd {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Nsd,
            remedy: Remedy::Package { debian: "nsd", fedora: "nsd" },
            version_argument: "-v",
            counter_source: Some("nsd-control stats_noreset"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            Transport::Udp | Transport::Tcp => return Ok(()),
            Transport::Dot if version.is_at_least(4, 2) => return Ok(()),
            Transport::Dot => "DNS over TLS: it came with 4.2",
            Transport::Doh2 | Transport::Doh3 => "DNS over HTTPS",
            Transport::Doq => "DNS over QUIC",
        };
        Err(format!("NSD {version} has no {missing}"))
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let command = [program, "-d", "-c", CONFIGURATION];
        let (text, notes) = match &spec.own {
            Some(own) => (own_configuration(spec, own), own.notes()),
            None => (configuration(spec), notes(spec)),
        };
        Rendered::one(CONFIGURATION, text, &command, notes)
    }

    fn counting_disturbs(&self, version: &Version) -> bool {
        !version.is_at_least(4, 8)
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        // What `nsd-control` sends, in the first version of its protocol.
        let text = control::ask(&access.directory, CONTROL, "NSDCT1 stats_noreset\n")?;
        Ok(read_statistics(&text))
    }
}

fn configuration(spec: &ServerSpec) -> String {
    format!(
        "\
server:
    server-count: {threads}
{reuseport}{place}
    rrl-ratelimit: 0
    rrl-whitelist-ratelimit: 0
    minimal-responses: yes
    tcp-count: {tcp_clients}
    tcp-query-count: 0
    tcp-timeout: {IDLE_SECONDS}

{control}
zone:
    name: \"{origin}\"
    zonefile: \"{file}\"
{extra}",
        threads = spec.threads,
        reuseport = if spec.threads > 1 { "    reuseport: yes\n" } else { "" },
        place = place(spec),
        control = control(),
        tcp_clients = spec.halved_connection_limit(),
        origin = spec.origin(),
        file = spec.zone_file_name(),
        extra = spec.extra_text(),
    )
}

/// That of a user, here.
fn own_configuration(spec: &ServerSpec, own: &OwnConfiguration) -> String {
    let (place, control, extra) = (place(spec), control(), spec.extra_text());
    format!("server:\n{place}\n{}\n{control}\n{}{extra}", own.options, own.text)
}

/// Where it is, who it is, and what it writes.
fn place(spec: &ServerSpec) -> String {
    format!(
        "\
{}
    username: \"\"
    chroot: \"\"
    zonesdir: \".\"
    database: \"\"
    pidfile: \"nsd.pid\"
    zonelistfile: \"zone.list\"
    xfrdfile: \"xfrd.state\"
    xfrdir: \".\"
    zonefiles-write: 0",
        listeners(spec)
    )
}

fn control() -> String {
    format!(
        "\
remote-control:
    control-enable: yes
    control-interface: \"/proc/self/cwd/{CONTROL}\"
"
    )
}

/// The addresses; an address at `tls-port` speaks TLS over TCP.
fn listeners(spec: &ServerSpec) -> String {
    let (address, ports) = (spec.address, spec.ports);
    let mut lines = Vec::new();
    if spec.has_plain() {
        lines.push(format!("    ip-address: {address}@{}", ports.plain));
    }
    if spec.serves(Transport::Dot) {
        lines.push(format!("    ip-address: {address}@{}", ports.dot));
        lines.push(format!("    tls-port: {}", ports.dot));
        lines.push(format!("    tls-service-key: \"{}\"", certificate::KEY));
        lines.push(format!("    tls-service-pem: \"{}\"", certificate::CERTIFICATE));
    }
    lines.join("\n")
}

fn read_statistics(text: &str) -> BTreeMap<String, u64> {
    let lines = control::numbers(text);
    let table = [
        (counter::QUERIES, &["num.queries"] as &[&str]),
        (counter::QUERIES_UDP, &["num.udp", "num.udp6"]),
        (counter::QUERIES_TCP, &["num.tcp", "num.tcp6"]),
        (counter::QUERIES_DOT, &["num.tls", "num.tls6"]),
        ("answers.servfail", &["num.rcode.SERVFAIL"]),
        ("answers.truncated", &["num.truncated"]),
        ("dropped", &["num.dropped"]),
        ("receive-errors", &["num.rxerr"]),
        ("send-errors", &["num.txerr"]),
    ];
    counts_found(table, |names| {
        names.iter().filter_map(|name| lines.get(name).copied()).reduce(|sum, count| sum + count)
    })
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let tcp_clients = spec.halved_connection_limit();
    let mut notes = vec![
        format!("{} server processes (server-count), as the experiment says", spec.threads),
        "rrl-ratelimit 0 and rrl-whitelist-ratelimit 0 (default 200 and 2000 answers per second \
         and source): the limiter is not what is measured"
            .to_owned(),
        "minimal-responses yes: the answer alone is compared, not optional records beside it"
            .to_owned(),
        format!(
            "tcp-count {tcp_clients} per process (default 100), twice the expected clients and some: above \
             half of it NSD gives a new connection an idle time-out of 200 ms (handle_tcp_accept in its \
             server.c; nsd.conf(5) does not say it); tcp-query-count 0 (no limit, the default)"
        ),
        format!(
            "tcp-timeout {IDLE_SECONDS} s (the default): the load alone decides when \
             connections are opened"
        ),
        "receive-buffer-size and send-buffer-size are left: NSD asks for receive buffers of 1 MiB for its UDP \
         sockets (open_udp_socket in its server.c; nsd.conf(5) does not say it), which it gets beyond \
         net.core.rmem_max only where it opens them as root; here it does not"
            .to_owned(),
        "no database, nothing written back; transfers are off, as they are by default".to_owned(),
        "remote control is a Unix socket in the run's folder: its counters are read by way of it, before \
         NSD 4.8 only before and after the load, because it replaces its processes to count"
            .to_owned(),
    ];
    if spec.threads > 1 {
        notes.push(
            "reuseport yes (default no): each server process has a socket of its own, and none waits \
             for another at a shared one"
                .to_owned(),
        );
    }
    if spec.has_plain() || spec.has_encrypted() {
        notes.push("NSD opens UDP and TCP together, beside the TLS port too".to_owned());
    }
    notes
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[
    functions("nsd", &["handle_udp", "handle_tcp", "handle_tls", "event_", "netio_"], EventLoop),
    functions("nsd", &["region_"], Memory),
    functions("nsd", &["dt_", "log_"], Log),
    library("nsd", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{shown, spec};

    #[test]
    fn all_transports() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot];
        insta::assert_snapshot!(shown(&spec(ServerKind::Nsd, &all)));
    }

    #[test]
    fn what_a_version_serves() {
        let new = Version { text: "4.6.1".to_owned(), numbers: [4, 6, 1] };
        let served = Transport::ALL.map(|transport| Nsd.supports(&new, transport).is_ok());
        assert_eq!(served, [true, true, true, false, false, false]);
        let reason = Nsd.supports(&new, Transport::Doh3).unwrap_err();
        assert_eq!(reason, "NSD 4.6.1 has no DNS over HTTPS");
    }

    #[test]
    fn one_process_shares_its_socket_with_nobody() {
        let mut spec = spec(ServerKind::Nsd, &[Transport::Udp]);
        assert!(shown(&spec).contains("reuseport"));
        spec.threads = 1;
        assert!(!shown(&spec).contains("reuseport"));
    }

    #[test]
    fn tls_alone_on_ipv6_with_extra_text() {
        let mut spec = spec(ServerKind::Nsd, &[Transport::Dot]);
        spec.address = "::1".parse().unwrap();
        spec.extra = Some("server:\n    verbosity: 2".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn statistics_have_common_names() {
        let text = "server0.queries=5\nnum.queries=5\nnum.udp=2\nnum.udp6=1\nnum.tls=2\n\
                    time.boot=1.5\nnum.dropped=0\n";
        let counts = read_statistics(text);
        assert_eq!(counts.get(counter::QUERIES), Some(&5));
        assert_eq!(counts.get(counter::QUERIES_UDP), Some(&3));
        assert_eq!(counts.get(counter::QUERIES_DOT), Some(&2));
        assert_eq!(counts.get(counter::QUERIES_TCP), None);
        assert_eq!(counts.get("dropped"), Some(&0));
        let version = |minor| Version { text: format!("4.{minor}.0"), numbers: [4, minor, 0] };
        assert!(Nsd.counting_disturbs(&version(6)) && !Nsd.counting_disturbs(&version(8)));
    }
}
