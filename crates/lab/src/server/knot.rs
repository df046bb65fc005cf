//! Knot DNS (`knotd`), authoritative. Options: Knot DNS manual, "Configuration Reference".

use std::net::SocketAddr;

use dnslab_wire::Transport;

use super::{Adapter, Rendered, RenderedFile, ServerSpec, TCP_IDLE_SECONDS, Version};
use crate::certificate;

/// Name of the configuration.
const CONFIGURATION: &str = "knot.conf";

/// Path of the control socket. It is in the run's folder, where the server runs; but Knot makes a
/// relative path absolute, and the kernel allows 107 octets (unix(7)).
const CONTROL_SOCKET: &str = "/proc/self/cwd/knot.sock";

/// The adapter of `knotd`.
pub(super) struct Knot;

impl Adapter for Knot {
    fn program(&self) -> &'static str {
        "knotd"
    }

    fn remedy(&self) -> String {
        "on Debian: apt-get install knot".to_owned()
    }

    fn version_argument(&self) -> &'static str {
        "--version"
    }

    fn supports(&self, version: &Version, transport: Transport) -> Result<(), String> {
        if transport == Transport::Dot && !version.is_at_least(3, 4) {
            return Err(format!("Knot DNS {version} has no DNS over TLS: it came with 3.4"));
        }
        Ok(())
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        Rendered {
            files: vec![RenderedFile { name: CONFIGURATION, content: configuration(spec) }],
            command: [program, "-c", CONFIGURATION].map(str::to_owned).to_vec(),
            notes: notes(spec),
        }
    }
}

/// The whole configuration.
fn configuration(spec: &ServerSpec) -> String {
    format!(
        "\
server:
    rundir: \".\"
    pidfile: \"knot.pid\"
{listeners}
    udp-workers: {threads}
    tcp-workers: {threads}
    background-workers: 1
    tcp-max-clients: {tcp_clients}
    tcp-idle-timeout: {TCP_IDLE_SECONDS}
    tcp-io-timeout: 0

control:
    listen: \"{CONTROL_SOCKET}\"

database:
    storage: \".\"

log:
  - target: stderr
    any: info

template:
  - id: default
    storage: \".\"
    zonefile-sync: -1
    journal-content: none

zone:
  - domain: \"{origin}\"
    file: \"{file}\"
{extra}",
        listeners = listeners(spec),
        threads = spec.threads,
        tcp_clients = spec.tcp_client_limit(),
        origin = spec.origin(),
        file = spec.zone_file_name(),
        extra = spec.extra_text(),
    )
}

/// The addresses, and for TLS the certificate.
fn listeners(spec: &ServerSpec) -> String {
    let at = |address: SocketAddr| format!("{}@{}", address.ip(), address.port());
    let mut lines = Vec::new();
    if spec.has_plain() {
        let address = at(spec.socket_address(Transport::Udp));
        lines.push(format!("    listen: \"{address}\""));
    }
    if spec.has_encrypted() {
        let address = at(spec.socket_address(Transport::Dot));
        let (certificate, key) = (certificate::CERTIFICATE, certificate::KEY);
        lines.push(format!("    listen-tls: \"{address}\""));
        lines.push(format!("    cert-file: \"{certificate}\"\n    key-file: \"{key}\""));
    }
    lines.join("\n")
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let (threads, tcp_clients) = (spec.threads, spec.tcp_client_limit());
    let mut notes = vec![
        format!(
            "{threads} UDP and {threads} TCP workers: Knot has threads of its own for each \
             (default: one per CPU, and at least 10 for TCP)"
        ),
        format!(
            "tcp-max-clients {tcp_clients} (default: half of the file descriptors): the limit on \
             clients is not what is measured"
        ),
        format!(
            "tcp-idle-timeout {TCP_IDLE_SECONDS} s (default 10 s): the load alone decides when \
             connections are opened"
        ),
        "tcp-io-timeout 0 (no limit; default 500 ms): a client that had to wait for its CPU in the \
         middle of a message keeps its connection"
            .to_owned(),
        "no journal and no zone file written back; transfers are off, as they are by default"
            .to_owned(),
        "response rate limiting (a module) is off, as it is by default".to_owned(),
        "the control socket cannot be switched off: it is a Unix socket in the run's folder"
            .to_owned(),
    ];
    if spec.has_plain() {
        notes.push("Knot opens UDP and TCP together".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{shown, spec};

    #[test]
    fn all_transports() {
        insta::assert_snapshot!(shown(&spec(ServerKind::Knot, &Transport::ALL)));
    }

    #[test]
    fn udp_on_ipv6_with_extra_text() {
        let mut spec = spec(ServerKind::Knot, &[Transport::Udp]);
        spec.address = "::1".parse().unwrap();
        spec.extra = Some("mod-stats:\n  - id: default".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }
}
