//! Knot DNS (`knotd`), authoritative. Options: Knot DNS manual, "Configuration Reference"; counters: its
//! module `stats`, through `knotc`, because its protocol has no text form.
//!
//! Blind spots of its counters: a message without a whole header is not counted, but one that is malformed
//! after its header is.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use dnslab_record::CostPart::{DnsLogic, EventLoop, HttpQuic, Log, Tls};
use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;

use super::adapter::{Access, Adapter, Facts, IDLE_SECONDS};
use super::cost_rows::{CostRow, functions, library};
use super::own::OwnConfiguration;
use super::rendered::Rendered;
use super::spec::ServerSpec;
use super::version::Version;
use crate::asked::Question;
use crate::certificate;
use crate::package::Remedy;

const CONFIGURATION: &str = "knot.conf";

/// The control socket is in the run's folder, where the server runs. But Knot makes a relative path absolute,
/// and the kernel allows 107 octets (unix(7)).
const CONTROL_SOCKET: &str = "/proc/self/cwd/knot.sock";

/// The working directory as an absolute path: Knot looks for a certificate with a relative path in /etc/knot,
/// wherever the configuration is.
const HERE: &str = "/proc/self/cwd";

const PATIENCE_SECONDS: &str = "1";

/// The module that counts queries by transport and answers by RCODE.
const COUNTING: &str = "\
mod-stats:
  - id: dnslab
    request-protocol: on
    response-code: on
    server-operation: off
    request-bytes: off
    response-bytes: off
    edns-presence: off
    flag-presence: off
    reply-nodata: off

";

pub(super) struct Knot;

impl Adapter for Knot {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Knot,
            remedy: Remedy::Package { debian: "knot", fedora: "knot" },
            version_argument: "--version",
            counter_source: Some("knotc stats"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        let missing = match transport {
            Transport::Udp | Transport::Tcp => return Ok(()),
            Transport::Dot if version.is_at_least(3, 4) => return Ok(()),
            // 3.2 has it on XDP sockets only.
            Transport::Doq if version.is_at_least(3, 3) => return Ok(()),
            Transport::Dot => "DNS over TLS: it came with 3.4",
            Transport::Doq => "DNS over QUIC on ordinary sockets: it came with 3.3",
            Transport::Doh2 | Transport::Doh3 => "DNS over HTTPS",
        };
        Err(format!("Knot DNS {version} has no {missing}"))
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let command = [program, "-c", CONFIGURATION];
        let (text, notes) = match &spec.own {
            Some(own) => (own_configuration(spec, own), own_notes(own)),
            None => (configuration(spec), notes(spec)),
        };
        Rendered::one(CONFIGURATION, text, &command, notes)
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let beside = access.binary.with_file_name("knotc");
        let program = if beside.exists() { beside } else { PathBuf::from("knotc") };
        // Through a file descriptor: the server's user may not enter all folders above it.
        let folder =
            File::open(&access.directory).map_err(|error| format!("its folder: {error}"))?;
        let arguments = ["-s", CONTROL_SOCKET, "-t", PATIENCE_SECONDS, "-f", "stats"];
        let here = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        let said = Question::new(&program, arguments)
            .within(here)
            .by(access.user.clone())
            .ask(&access.guard)
            .map_err(|error| format!("{}: {error}", program.display()))?;
        match said.succeeded {
            true => Ok(read_statistics(&said.output)),
            false => Err(format!("knotc: {}", said.error.trim_end())),
        }
    }
}

fn configuration(spec: &ServerSpec) -> String {
    format!(
        "\
{place}
    udp-workers: {threads}
    tcp-workers: {threads}
{tcp_reuseport}    background-workers: 1
    tcp-max-clients: {tcp_clients}
    tcp-idle-timeout: {IDLE_SECONDS}
    tcp-io-timeout: {io_timeout}

{control}{module}template:
  - id: default
    storage: \".\"
    zonefile-sync: -1
    journal-content: none
{global}
zone:
  - domain: \"{origin}\"
    file: \"{file}\"
{extra}",
        place = place(spec),
        control = control(),
        threads = spec.threads,
        tcp_reuseport = if spec.threads > 1 { "    tcp-reuseport: on\n" } else { "" },
        tcp_clients = spec.connection_limit(),
        io_timeout = io_timeout_ms(spec),
        module = if spec.counts { COUNTING } else { "" },
        global = if spec.counts { "    global-module: mod-stats/dnslab\n" } else { "" },
        origin = spec.origin(),
        file = spec.zone_file_name(),
        extra = spec.extra_text(),
    )
}

/// That of a user, here.
fn own_configuration(spec: &ServerSpec, own: &OwnConfiguration) -> String {
    let (place, control, extra) = (place(spec), control(), spec.extra_text());
    format!("{place}\n{}\n{control}{}{extra}", own.options, own.text)
}

fn own_notes(own: &OwnConfiguration) -> Vec<String> {
    let mut notes = own.notes();
    notes.push(
        "Knot counts queries in its module stats alone, and only what the configuration loads is loaded".to_owned(),
    );
    notes
}

/// Where it is.
fn place(spec: &ServerSpec) -> String {
    format!(
        "\
server:
    rundir: \".\"
    pidfile: \"knot.pid\"
{}",
        listeners(spec)
    )
}

/// How it is reached by `knotc`, and where it writes.
fn control() -> String {
    format!(
        "\
control:
    listen: \"{CONTROL_SOCKET}\"

database:
    storage: \".\"

log:
  - target: stderr
    any: info

"
    )
}

/// The addresses, and the certificate for TLS and QUIC.
fn listeners(spec: &ServerSpec) -> String {
    let at = |address: SocketAddr| format!("{}@{}", address.ip(), address.port());
    let mut lines = Vec::new();
    if spec.has_plain() {
        let address = at(spec.socket_address(Transport::Udp));
        lines.push(format!("    listen: \"{address}\""));
    }
    if spec.serves(Transport::Dot) {
        let address = at(spec.socket_address(Transport::Dot));
        lines.push(format!("    listen-tls: \"{address}\""));
    }
    if spec.serves(Transport::Doq) {
        let address = at(spec.socket_address(Transport::Doq));
        lines.push(format!("    listen-quic: \"{address}\""));
        lines.push(format!("    quic-max-clients: {}", quic_clients(spec)));
        lines.push(format!("    quic-idle-close-timeout: {IDLE_SECONDS}"));
    }
    if spec.has_encrypted() {
        let (certificate, key) = (certificate::CERTIFICATE, certificate::KEY);
        lines.push(format!(
            "    cert-file: \"{HERE}/{certificate}\"\n    key-file: \"{HERE}/{key}\""
        ));
    }
    lines.join("\n")
}

/// How long a client may take for one message, milliseconds. 0 means no limit, except with DNS over TLS,
/// where Knot 3.4 takes the same number for the handshake and would give that no time at all.
fn io_timeout_ms(spec: &ServerSpec) -> u32 {
    if spec.serves(Transport::Dot) { IDLE_SECONDS * 1_000 } else { 0 }
}

/// The limit on QUIC connections: Knot's default, unless more are expected.
fn quic_clients(spec: &ServerSpec) -> u32 {
    const PRESET: u32 = 10_000;
    spec.connection_limit().max(PRESET)
}

/// From lines `mod-stats.COUNTER[PART] = NUMBER`.
fn read_statistics(text: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |name: &str, count| *counts.entry(name.to_owned()).or_insert(0) += count;
    for line in text.lines() {
        let Some((name, count)) = line.split_once(" = ") else { continue };
        let Ok(count) = count.parse::<u64>() else { continue };
        let part = name.split_once('[').map_or("", |(_, part)| part.trim_end_matches(']'));
        if name.starts_with("mod-stats.request-protocol[") {
            add(counter::QUERIES, count);
            // `udp4`, `udp6`, maybe with `-xdp` at the end.
            for (prefix, common) in [
                ("udp", counter::QUERIES_UDP),
                ("tcp", counter::QUERIES_TCP),
                ("tls", counter::QUERIES_DOT),
                ("quic", "queries.doq"),
            ] {
                if part.starts_with(prefix) {
                    add(common, count);
                }
            }
        } else if name.starts_with("mod-stats.response-code[") {
            add(counter::RESPONSES, count);
            if part == "SERVFAIL" {
                add("answers.servfail", count);
            }
        }
    }
    counts
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let (threads, tcp_clients) = (spec.threads, spec.connection_limit());
    let mut notes = vec![
        format!(
            "{threads} UDP and {threads} TCP workers: Knot has threads of its own for each \
             (default: one per CPU, and at least 10 for TCP)"
        ),
        format!(
            "tcp-max-clients {tcp_clients} (default: half of the file descriptors), divided among the TCP \
             workers: the limit on clients is not what is measured, and no time-out depends on it"
        ),
        format!(
            "tcp-idle-timeout {IDLE_SECONDS} s (default 10 s): the load alone decides when \
             connections are opened"
        ),
        format!(
            "tcp-io-timeout {} (0 is no limit; default 500 ms): a client that had to wait for its \
             CPU in the middle of a message keeps its connection",
            io_timeout_ms(spec)
        ),
        "10 connections may wait to be accepted (TCP_BACKLOG_SIZE, compiled in)".to_owned(),
        "no journal and no zone file written back; transfers are off, as they are by default"
            .to_owned(),
        "response rate limiting (a module) is off, as it is by default".to_owned(),
        match spec.counts {
            true => {
                "the module stats counts queries by their transport and answers by their RCODE; its \
                 counters are read during the run"
            }
            false => "the module stats is left out, as it is by default: it is not watched",
        }
        .to_owned(),
        "the control socket cannot be switched off: it is a Unix socket in the run's folder"
            .to_owned(),
    ];
    if spec.threads > 1 {
        notes.push(
            "tcp-reuseport on (default off): each TCP worker has a socket of its own, as each UDP worker \
             has by default, and none waits for another at a shared one"
                .to_owned(),
        );
    }
    if spec.serves(Transport::Doq) {
        notes.push(format!(
            "quic-max-clients {} (default 10000), quic-idle-close-timeout {IDLE_SECONDS} s \
             (default 4 s): the load alone decides when connections are opened",
            quic_clients(spec)
        ));
        notes.push(
            "Knot DNS 3.4 raises no limit on streams: a QUIC connection carries 1,024 queries, and the client \
             goes on with another. It counts answers that the client has not acknowledged yet against 10 for \
             each connection, and answers nothing beyond them. It takes a token from NEW_TOKEN for that \
             of a Retry, so the first handshake with one fails, and no further token is used"
                .to_owned(),
        );
    }
    if spec.has_plain() {
        notes.push("Knot opens UDP and TCP together".to_owned());
    }
    notes
}

/// Which functions of it are which part.
const COST_ROWS: &[CostRow] = &[
    functions("libknot", &["knot_tls_", "knot_creds_"], Tls),
    functions("libknot", &["knot_quic_", "quic_", "ngtcp2_"], HttpQuic),
    functions("libknot", &["knot_xdp_", "knot_eth_", "knot_tcp_"], EventLoop),
    library("libknot", DnsLogic),
    library("libdnssec", DnsLogic),
    library("libzscanner", DnsLogic),
    library("liblmdb", DnsLogic),
    functions("knotd", &["tls_"], Tls),
    functions("knotd", &["quic_"], HttpQuic),
    functions(
        "knotd",
        &[
            "udp_", "tcp_", "net_", "fdset_", "iface_", "dthread", "server_", "sweep_", "worker_",
            "evsched_",
        ],
        EventLoop,
    ),
    functions("knotd", &["log_"], Log),
    library("knotd", DnsLogic),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{shown, spec};

    #[test]
    fn all_transports() {
        let all = [Transport::Udp, Transport::Tcp, Transport::Dot, Transport::Doq];
        insta::assert_snapshot!(shown(&spec(ServerKind::Knot, &all)));
    }

    #[test]
    fn what_a_version_serves() {
        let version = |minor| Version { text: format!("3.{minor}.6"), numbers: [3, minor, 6] };
        let served = |minor| {
            Transport::ALL.map(|transport| Knot.supports(&version(minor), transport).is_ok())
        };
        assert_eq!(served(2), [true, true, false, false, false, false]);
        assert_eq!(served(3), [true, true, false, false, true, false]);
        assert_eq!(served(4), [true, true, true, false, true, false]);
        let reason = Knot.supports(&version(2), Transport::Doq).unwrap_err();
        assert_eq!(
            reason,
            "Knot DNS 3.2.6 has no DNS over QUIC on ordinary sockets: it came with 3.3"
        );
    }

    #[test]
    fn one_worker_shares_its_socket_with_nobody() {
        let mut spec = spec(ServerKind::Knot, &[Transport::Tcp]);
        assert!(shown(&spec).contains("tcp-reuseport: on"));
        spec.threads = 1;
        assert!(!shown(&spec).contains("reuseport"));
    }

    #[test]
    fn udp_on_ipv6_with_extra_text() {
        let mut spec = spec(ServerKind::Knot, &[Transport::Udp]);
        spec.address = "::1".parse().unwrap();
        spec.extra = Some("mod-rrl:\n  - id: default\n    rate-limit: 200".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn statistics_have_common_names() {
        let text = "server.zone-count = 1\nmod-stats.request-protocol[udp4] = 2\n\
                    mod-stats.request-protocol[udp6] = 3\nmod-stats.request-protocol[quic4] = 4\n\
                    mod-stats.response-code[NOERROR] = 8\nmod-stats.response-code[SERVFAIL] = 1\n";
        let counts = read_statistics(text);
        assert_eq!(counts.get(counter::QUERIES), Some(&9));
        assert_eq!(counts.get(counter::QUERIES_UDP), Some(&5));
        assert_eq!(counts.get("queries.doq"), Some(&4));
        assert_eq!(counts.get(counter::RESPONSES), Some(&9));
        assert_eq!(counts.get("answers.servfail"), Some(&1));
        assert_eq!(counts.get(counter::QUERIES_TCP), None);
    }
}
