//! dnslab's own responder, as a process of its own so that its cost is counted apart.

use dnslab_wire::Transport;

use super::{Adapter, Rendered, ServerSpec, Version};
use crate::certificate;

/// The adapter of `dnslab serve`.
pub(super) struct Embedded;

impl Adapter for Embedded {
    fn title(&self) -> &'static str {
        "dnslab"
    }

    fn program(&self) -> &'static str {
        "dnslab"
    }

    fn remedy(&self) -> String {
        "it is a part of dnslab: build it with `cargo build --release`".to_owned()
    }

    fn version_argument(&self) -> &'static str {
        "--version"
    }

    fn supports(&self, _version: &Version, _transport: Transport) -> Result<(), String> {
        Ok(())
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let mut command = vec![program.to_owned(), "serve".to_owned()];
        let mut option = |name: &str, value: String| command.extend([name.to_owned(), value]);
        option("--zone", spec.zone_file_name());
        option("--origin", spec.origin());
        if spec.has_plain() {
            option("--listen", spec.socket_address(Transport::Udp).to_string());
        }
        for (transport, name) in [
            (Transport::Dot, "--dot-listen"),
            (Transport::Doh2, "--doh2-listen"),
            (Transport::Doq, "--doq-listen"),
            (Transport::Doh3, "--doh3-listen"),
        ] {
            if spec.serves(transport) {
                option(name, spec.socket_address(transport).to_string());
            }
        }
        if spec.has_encrypted() {
            option("--certificate", certificate::CERTIFICATE.to_owned());
            option("--key", certificate::KEY.to_owned());
        }
        if spec.transports.iter().any(|transport| transport.is_http()) {
            option("--http-path", spec.http_path.clone());
        }
        option("--threads", spec.threads.to_string());
        for (name, value) in [("--delay", &spec.embedded.delay), ("--loss", &spec.embedded.loss)] {
            if let Some(value) = value {
                option(name, value.clone());
            }
        }
        if spec.embedded.early_data && spec.has_encrypted() {
            command.push("--early-data".to_owned());
        }
        let extra = spec.extra.as_deref().unwrap_or_default();
        command.extend(extra.split_ascii_whitespace().map(str::to_owned));
        let mut notes = Vec::new();
        if spec.embedded.delay.is_some() || spec.embedded.loss.is_some() {
            notes
                .push("delay or loss is programmed: latencies are those of the program".to_owned());
        }
        if spec.embedded.early_data && spec.has_encrypted() {
            notes.push("early data is taken: most servers do not, unless told to".to_owned());
        }
        Rendered { files: Vec::new(), command, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;
    use crate::server::tests::{shown, spec};

    #[test]
    fn plain() {
        let spec = spec(ServerKind::Embedded, &[Transport::Udp, Transport::Tcp]);
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn all_transports() {
        insta::assert_snapshot!(shown(&spec(ServerKind::Embedded, &Transport::ALL)));
    }

    #[test]
    fn encrypted_with_a_program() {
        let mut spec = spec(ServerKind::Embedded, &[Transport::Dot]);
        spec.address = "::1".parse().unwrap();
        spec.embedded.delay = Some("normal 5ms 1ms".to_owned());
        spec.embedded.loss = Some("0.01".to_owned());
        spec.embedded.early_data = true;
        spec.extra = Some("--verbose  --x 1".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }
}
