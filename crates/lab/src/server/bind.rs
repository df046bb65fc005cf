//! ISC BIND 9 (`named`), authoritative. Options: BIND 9 Administrator Reference Manual, chapter 8.

use std::net::IpAddr;

use dnslab_wire::Transport;

use super::{Adapter, IDLE_SECONDS, Rendered, RenderedFile, ServerSpec, Version};
use crate::certificate;
use crate::running::LOG;

/// Name of the configuration.
const CONFIGURATION: &str = "named.conf";

/// Queries over HTTP/2 that a client may keep outstanding on one connection: more than the window of
/// most loads, which shall decide.
const HTTP_STREAMS: u32 = 1_000;

/// The adapter of `named`.
pub(super) struct Bind;

impl Adapter for Bind {
    fn title(&self) -> &'static str {
        "BIND"
    }

    fn program(&self) -> &'static str {
        "named"
    }

    fn remedy(&self) -> String {
        "on Debian: apt-get install bind9".to_owned()
    }

    fn version_argument(&self) -> &'static str {
        "-v"
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

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let content = configuration(spec);
        let threads = spec.threads.to_string();
        // `-f -L` and not `-g`: that one would ignore a `logging` statement in the extra text.
        let arguments = [program, "-f", "-c", CONFIGURATION, "-L", LOG, "-n", &threads];
        Rendered {
            files: vec![RenderedFile { name: CONFIGURATION, content }],
            command: arguments.map(str::to_owned).to_vec(),
            notes: notes(spec),
        }
    }
}

/// The whole configuration.
fn configuration(spec: &ServerSpec) -> String {
    let tls = if spec.has_encrypted() {
        format!(
            "tls dnslab {{\n    cert-file \"{}\";\n    key-file \"{}\";\n}};\n\n",
            certificate::CERTIFICATE,
            certificate::KEY
        )
    } else {
        String::new()
    };
    let http = if spec.serves(Transport::Doh2) {
        format!(
            "http dnslab {{\n    endpoints {{ \"{}\"; }};\n    listener-clients {};\n    \
             streams-per-connection {HTTP_STREAMS};\n}};\n\n",
            spec.http_path,
            spec.connection_limit()
        )
    } else {
        String::new()
    };
    format!(
        "{tls}{http}options {{
    directory \".\";
    pid-file \"named.pid\";
    session-keyfile \"session.key\";
    managed-keys-directory \".\";
{listeners}
    recursion no;
    dnssec-validation no;
    allow-transfer {{ none; }};
    notify no;
    minimal-responses yes;
    tcp-clients {tcp_clients};
    tcp-listen-queue 1024;
    tcp-idle-timeout {idle};
    querylog no;
    interface-interval 0;
}};

controls {{ }};

zone \"{origin}\" {{
    type primary;
    file \"{file}\";
}};
{extra}",
        listeners = listeners(spec),
        tcp_clients = spec.connection_limit(),
        // In units of 0.1 s.
        idle = IDLE_SECONDS * 10,
        origin = spec.origin(),
        file = spec.zone_file_name(),
        extra = spec.extra_text(),
    )
}

/// The statements for the address, and the ones that silence the other IP version.
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
        "minimal-responses yes: the answer alone is compared, not optional records beside it"
            .to_owned(),
        format!(
            "tcp-clients {tcp_clients} (default 150), tcp-listen-queue 1024 (default 10): the \
             limits on clients are not what is measured"
        ),
        format!(
            "tcp-idle-timeout {IDLE_SECONDS} s (default 30 s): the load alone decides when \
             connections are opened"
        ),
        "recursion, validation, transfers, notifies, remote control and the query log are off"
            .to_owned(),
        "response rate limiting is off, as it is by default".to_owned(),
    ];
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{shown, spec};

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
        let served = |version| Transport::ALL.map(|it| Bind.supports(version, it).is_ok());
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
}
