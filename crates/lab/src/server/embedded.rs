//! dnslab's own responder, in a separate process so that its cost is counted separately.
//!
//! Blind spots of its counters: they are up to 100 ms old, as old as the file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;

use dnslab_record::CostPart::{Crypto, DnsLogic, EventLoop, HttpQuic, Memory, Tls};
use dnslab_record::counter;
use dnslab_settings::ServerKind;
use dnslab_wire::Transport;
use serde_json::Value;

use super::adapter::{Access, Adapter, Facts};
use super::cost_rows::{CostRow, functions};
use super::rendered::{Rendered, RenderedFile};
use super::spec::ServerSpec;
use super::version::Version;
use crate::certificate;
use crate::package::Remedy;
use crate::regular::open_regular;

/// In its folder; written ten times a second.
const COUNTERS: &str = "counters.json";

/// In its folder.
const HIERARCHY: &str = "hierarchy.toml";

/// In its folder.
const NAMES: &str = "names.txt";

/// Most octets of its counters: a few for each transport.
const MAX_SIZE: u64 = 1 << 20;

pub(super) struct Embedded;

impl Adapter for Embedded {
    fn facts(&self) -> Facts {
        Facts {
            kind: ServerKind::Embedded,
            remedy: Remedy::Other("it is a part of dnslab: build it with `cargo build --release`"),
            version_argument: "--version",
            counter_source: Some("dnslab serve --counters"),
        }
    }

    fn cost_rows(&self) -> &'static [CostRow] {
        COST_ROWS
    }

    fn supports(&self, _version: &Version, _transport: Transport) -> Result<(), String> {
        Ok(())
    }

    fn render(&self, spec: &ServerSpec, program: &str) -> Rendered {
        let mut command = vec![program.to_owned(), "serve".to_owned()];
        let mut option = |name: &str, value: String| command.extend([name.to_owned(), value]);
        let hierarchy = &spec.embedded.hierarchy;
        if hierarchy.is_some() {
            option("--hierarchy", HIERARCHY.to_owned());
            option("--port", spec.ports.plain.to_string());
        } else if spec.embedded.names.is_some() {
            option("--names", NAMES.to_owned());
        } else {
            option("--zone", spec.zone_file_name());
            option("--origin", spec.origin());
        }
        if spec.has_plain() && hierarchy.is_none() {
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
        for (name, value) in [
            ("--delay", &spec.embedded.delay),
            ("--path-delay", &spec.embedded.path_delay),
            ("--loss", &spec.embedded.loss),
            ("--stall", &spec.embedded.stall),
            ("--busy", &spec.embedded.busy),
            ("--hold", &spec.embedded.hold),
            ("--serial", &spec.embedded.serial),
        ] {
            if let Some(value) = value {
                option(name, value.clone());
            }
        }
        if let Some(seed) = spec.embedded.seed {
            option("--seed", seed.to_string());
        }
        if let Some(queries) = spec.embedded.queries_per_connection {
            option("--queries-per-connection", queries.to_string());
        }
        if let Some(time) = &spec.embedded.idle_timeout {
            option("--idle-timeout", time.clone());
        }
        option("--counters", COUNTERS.to_owned());
        for (is_set, name) in [
            (spec.embedded.signed, "--sign"),
            (spec.embedded.no_tickets, "--no-tickets"),
            (spec.embedded.early_data && spec.has_encrypted(), "--early-data"),
        ] {
            if is_set {
                command.push(name.to_owned());
            }
        }
        let extra = spec.extra.as_deref().unwrap_or_default();
        command.extend(extra.split_ascii_whitespace().map(str::to_owned));
        let file = |text: &String| RenderedFile { name: HIERARCHY, content: text.clone() };
        Rendered { files: hierarchy.iter().map(file).collect(), command, notes: notes(spec) }
    }

    fn counters(&self, access: &Access) -> Result<BTreeMap<String, u64>, String> {
        let path = access.directory.join(COUNTERS);
        let mut text = String::new();
        open_regular(&path, File::options().read(true))
            .and_then(|file| file.take(MAX_SIZE).read_to_string(&mut text))
            .map_err(|error| format!("its file {COUNTERS}: {error}"))?;
        let json = serde_json::from_str(&text)
            .map_err(|error| format!("its file {COUNTERS} is no JSON: {error}"))?;
        Ok(read_counters(&json))
    }
}

fn notes(spec: &ServerSpec) -> Vec<String> {
    let mut notes = Vec::new();
    let settings = &spec.embedded;
    if settings.delay.is_some() || settings.loss.is_some() {
        notes.push("delay or loss is programmed: latencies are those of the program".to_owned());
    }
    if let Some(busy) = &settings.busy {
        notes.push(format!("each answer costs {busy} of CPU more than it needs"));
    }
    if let Some(hold) = &settings.hold {
        notes.push(format!("each answer keeps its thread for {hold}"));
    }
    if let Some(serial) = &settings.serial {
        notes.push(format!("each answer keeps all threads for {serial}, one after the other"));
    }
    if settings.early_data && spec.has_encrypted() {
        notes.push("early data is taken: most servers do not, unless told to".to_owned());
    }
    if settings.names.is_some() {
        notes.push(
            "it answers as a recursive resolver does that has everything in its cache".to_owned(),
        );
    }
    if settings.hierarchy.is_some() {
        notes.push(
            "it answers as each server of a private Internet does, at its own address; its round trips and \
             losses are those of its description (docs/LABORATORY.md)"
                .to_owned(),
        );
    }
    if settings.signed {
        notes.push("its data is signed, with the key of the laboratory's root".to_owned());
    }
    if let Some(queries) = settings.queries_per_connection {
        notes.push(format!("it closes a connection after {queries} answers"));
    }
    if let Some(time) = &settings.idle_timeout {
        notes.push(format!("it closes a connection that is idle for {time}"));
    }
    if settings.no_tickets {
        notes.push("it hands out no tickets: no TLS session is resumed".to_owned());
    }
    notes
}

fn read_counters(json: &Value) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut add = |name: &str, value: &Value| {
        if let Some(count) = value.as_u64() {
            *counts.entry(name.to_owned()).or_insert(0) += count;
        }
    };
    let transports = json["transports"].as_object().into_iter().flatten();
    for (transport, messages) in transports {
        add(counter::QUERIES, &messages["received"]);
        add(counter::RESPONSES, &messages["answered"]);
        let name = match transport.parse() {
            Ok(Transport::Doh2 | Transport::Doh3) => counter::QUERIES_DOH.to_owned(),
            // By the name of the transport, e.g. `queries.udp`.
            _ => format!("{}.{transport}", counter::QUERIES),
        };
        add(&name, &messages["received"]);
    }
    let life = &json["connections"];
    for (key, common) in [
        ("accepted", counter::CONNECTIONS),
        ("open", "connections.open"),
        ("full_handshakes", counter::HANDSHAKES_FULL),
        ("resumed_handshakes", counter::HANDSHAKES_RESUMED),
        ("failed_handshakes", "handshakes.failed"),
        ("early_data", "handshakes.early-data"),
        ("closed_by_quota", counter::CLOSED_BY_QUOTA),
        ("closed_by_client", "connections.closed-by-client"),
        ("timed_out", counter::CLOSED_BY_IDLENESS),
        ("broken", "connections.broken"),
    ] {
        add(common, &life[key]);
    }
    for (key, name) in [
        ("connections", "queries-per-connection.connections"),
        ("sum", "queries-per-connection.sum"),
        ("least", "queries-per-connection.least"),
        ("most", "queries-per-connection.most"),
    ] {
        add(name, &life["queries"][key]);
    }
    for (key, name) in [("answers", counter::DELAYED), ("late_ns", counter::DELAYED_LATE_NS)] {
        add(name, &json["delayed"][key]);
    }
    counts
}

/// One program too: Rust, with the crates that dnslab is made of. Its server runs as the program that it was built as.
const COST_ROWS: &[CostRow] = &[
    functions("", &["rustls::", "rustls_pki_types::", "webpki::"], Tls),
    functions(
        "",
        &[
            "ring::",
            "ring_core",
            "aes_",
            "aesni_",
            "gcm_",
            "vpaes_",
            "chacha20",
            "ChaCha20",
            "poly1305",
            "sha256_",
            "sha512_",
            "x25519",
            "p256_",
            "ecp_",
            "bn_",
            "bignum",
            "LIMBS_",
            "limbs_",
            "fiat_",
            "aws_lc",
            "ml_kem::",
            "sha3::",
            "keccak::",
            "GFp_",
            "openssl_",
        ],
        Crypto,
    ),
    functions(
        "",
        &["dnslab_transport::", "quinn_proto::", "h2::", "http::", "tokio::", "bytes::"],
        HttpQuic,
    ),
    functions("", &["alloc::", "__rust_", "__rdl_", "__rg_"], Memory),
    functions("", &["dnslab_socket::", "dnslab_responder::server", "rustix::", "mio::"], EventLoop),
    functions(
        "",
        &[
            "dnslab_responder::",
            "dnslab_wire::",
            "dnslab_internet::",
            "dnslab_traffic::",
            "domain::",
            "octseq::",
        ],
        DnsLogic,
    ),
];

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
        spec.embedded.busy = Some("200ns".to_owned());
        spec.embedded.hold = Some("2ms".to_owned());
        spec.embedded.serial = Some("100us".to_owned());
        spec.embedded.seed = Some(7);
        spec.embedded.early_data = true;
        spec.extra = Some("--verbose  --x 1".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn as_a_public_resolver() {
        let mut spec = spec(ServerKind::Embedded, &[Transport::Udp, Transport::Dot]);
        spec.zone = None;
        spec.embedded.names = Some("/tmp/names".into());
        spec.embedded.signed = true;
        spec.embedded.queries_per_connection = Some(100);
        spec.embedded.idle_timeout = Some("10s".to_owned());
        spec.embedded.no_tickets = true;
        insta::assert_snapshot!(shown(&spec));
    }

    #[test]
    fn as_an_internet() {
        let mut spec = spec(ServerKind::Embedded, &[Transport::Udp, Transport::Tcp]);
        spec.zone = None;
        spec.ports.plain = 53;
        spec.embedded.hierarchy = Some("seed = 7\n".to_owned());
        insta::assert_snapshot!(shown(&spec));
    }

    /// As `dnslab serve --counters` writes it.
    #[test]
    fn counters_have_common_names() {
        let json = serde_json::json!({
            "at_ns": 123_456_789_012_u64,
            "transports": {
                "udp": { "received": 5, "answered": 4, "lost_by_program": 1, "ignored": 0, "unsent": 0 },
                "doh2": { "received": 2, "answered": 2 },
                "doh3": { "received": 3, "answered": 3 },
            },
            "connections": {
                "accepted": 2, "open": 1, "full_handshakes": 1, "resumed_handshakes": 1,
                "failed_handshakes": 0, "early_data": 0, "closed_by_quota": 1, "timed_out": 0,
                "queries": { "connections": 2, "sum": 5, "least": 1, "most": 4, "powers_of_two": [1, 0, 1] },
            },
            "delayed": { "answers": 9, "late_ns": 180_000, "latest_ns": 60_000 },
        });
        let counts = read_counters(&json);
        assert_eq!(counts.get(counter::QUERIES), Some(&10));
        assert_eq!(counts.get(counter::QUERIES_UDP), Some(&5));
        assert_eq!(counts.get(counter::QUERIES_DOH), Some(&5));
        assert_eq!(counts.get(counter::RESPONSES), Some(&9));
        assert_eq!(counts.get(counter::HANDSHAKES_RESUMED), Some(&1));
        assert_eq!(counts.get(counter::CLOSED_BY_QUOTA), Some(&1));
        assert_eq!(counts.get("queries-per-connection.most"), Some(&4));
        assert_eq!(counts.get(counter::DELAYED), Some(&9));
        assert_eq!(counts.get(counter::DELAYED_LATE_NS), Some(&180_000));
        assert_eq!(counts.get("connections.broken"), None);
    }
}
