//! Helpers of the adapters' tests, and the tests of specifications.

use std::path::PathBuf;

use dnslab_wire::Transport;

use super::*;

pub(crate) fn spec(kind: ServerKind, transports: &[Transport]) -> ServerSpec {
    let address = "127.0.0.1".parse().unwrap();
    let ports = Ports { plain: 5300, dot: 8530, doh2: 4430, doq: 8531, doh3: 4431, control: 8053 };
    let directory = PathBuf::from("/results/runs/udp-1/server");
    ServerSpec {
        zone: Some(example()),
        threads: 2,
        connections: 4,
        cpus: vec![0],
        ..ServerSpec::new(kind, directory, (address, ports), transports)
    }
}

fn example() -> ZoneFile {
    ZoneFile {
        origin: "example.test".to_owned(),
        path: "/tmp/example.zone".into(),
        signatures: None,
    }
}

/// `upstream` is the transport to its upstream.
pub(crate) fn forwarder(
    kind: ServerKind,
    transports: &[Transport],
    upstream: Transport,
) -> ServerSpec {
    let tls =
        UpstreamTls { authority: "/tmp/authority.pem".into(), name: "dnslab.test".to_owned() };
    let address = if upstream.is_encrypted() { "10.53.2.2:853" } else { "10.53.2.2:53" };
    let upstream = Upstream {
        address: address.parse().unwrap(),
        further: Vec::new(),
        transport: upstream,
        tls: upstream.is_encrypted().then_some(tls),
    };
    ServerSpec { zone: None, upstream: Some(upstream), ..spec(kind, transports) }
}

/// It is told the root servers.
pub(crate) fn resolver(kind: ServerKind, transports: &[Transport]) -> ServerSpec {
    let hints = ". 3600 NS a.root.\na.root. 3600 A 198.18.0.1\na.root. 3600 AAAA 2001:2::1\n";
    let root_hints = Some(RootHints::Zone(hints.to_owned()));
    ServerSpec { zone: None, root_hints, ..spec(kind, transports) }
}

/// It resolves on the Internet, and validates.
pub(crate) fn live(kind: ServerKind) -> ServerSpec {
    let trust_anchors = IANA_TRUST_ANCHORS.map(str::to_owned).to_vec();
    let root_hints = Some(RootHints::BuiltIn);
    ServerSpec { root_hints, trust_anchors, ..resolver(kind, &[Transport::Udp]) }
}

fn named(spec: &mut ServerSpec, origin: &str) {
    spec.zone = Some(ZoneFile { origin: origin.to_owned(), ..example() });
}

/// All files, the command and the notes, for snapshots.
pub(crate) fn shown(spec: &ServerSpec) -> String {
    let program = format!("/usr/sbin/{}", spec.kind.profile().program);
    let rendered = render(spec, program.as_ref()).unwrap();
    let mut text = format!("$ {}\n", rendered.command.join(" "));
    for file in &rendered.files {
        text.push_str(&format!("--- {}\n{}", file.name, file.content));
    }
    text.push_str("--- notes\n");
    rendered.notes.iter().for_each(|note| text.push_str(&format!("{note}\n")));
    text
}

#[test]
fn names_are_read_back() {
    for kind in ServerKind::ALL {
        assert_eq!(kind.name().parse(), Ok(kind));
    }
    assert!("bond".parse::<ServerKind>().is_err());
}

#[test]
fn what_cannot_be_written_is_refused() {
    type Change = fn(&mut ServerSpec);
    let cases: [(Change, &str); 8] = [
        (|spec| named(spec, "a\"; b"), "zone name `a\"; b`: "),
        (|spec| named(spec, ""), "zone name ``: "),
        (|spec| spec.transports.clear(), "transports ``: "),
        (|spec| spec.threads = 0, "threads `0`: "),
        (
            |spec| {
                spec.root_hints = Some(RootHints::BuiltIn);
                spec.upstream = forwarder(spec.kind, &[], Transport::Udp).upstream;
            },
            "root hints `root.hints`: a server that resolves by itself has no upstream",
        ),
        (|spec| spec.http_path = "dns".to_owned(), "http path `dns`: "),
        (|spec| spec.http_path = "/a\"; b".to_owned(), "http path `/a\"; b`: "),
        (
            |spec| spec.embedded.delay = Some("5ms".to_owned()),
            "delay `5ms`: only the embedded server",
        ),
    ];
    for (change, expected) in cases {
        let mut spec = spec(ServerKind::Bind, &[Transport::Udp]);
        change(&mut spec);
        let error = render(&spec, "/usr/sbin/named".as_ref()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn limits_on_clients_are_above_the_clients() {
    // Servers that shorten their time-outs from half of the limit on get twice as much.
    let kinds = [
        (ServerKind::Bind, "tcp-clients ", 1),
        (ServerKind::Knot, "tcp-max-clients: ", 1),
        (ServerKind::Nsd, "tcp-count: ", 2),
        (ServerKind::Unbound, "incoming-num-tcp: ", 2),
    ];
    for (kind, key, times) in kinds {
        for (clients, limit) in [(0, 1_000), (900, 1_000), (901, 1_001), (5_000, 5_100)] {
            let limit = times * limit;
            let mut spec = spec(kind, &[Transport::Tcp]);
            spec.connections = clients;
            let text = shown(&spec);
            assert!(text.contains(&format!("    {key}{limit}")), "{clients}: {text}");
            // The note tells the same limit.
            assert!(text.matches(&format!(" {limit}")).count() >= 2, "{clients}: {text}");
        }
    }
}

#[test]
fn more_clients_than_files_are_refused() {
    for (clients, limit, expected) in [
        (724, 1_024, None),
        (725, 1_024, Some("connections `725`: a server may open 1024 files, enough for 724 ")),
        (1, 100, Some("connections `1`: a server may open 100 files, enough for 0 ")),
        (u32::MAX, u64::MAX, None),
    ] {
        let found = check_files(clients, limit).err().map(|error| error.to_string());
        match (expected, &found) {
            (None, None) => {}
            (Some(start), Some(text)) => assert!(text.starts_with(start), "{text}"),
            _ => panic!("{clients} {limit}: {found:?}"),
        }
    }
}

#[test]
fn zones_have_file_names() {
    let cases = [
        ("example.test.", "example.test.zone"),
        (".", "root.zone"),
        ("0/25.2.0.192.in-addr.arpa", "0_25.2.0.192.in-addr.arpa.zone"),
    ];
    for (origin, expected) in cases {
        let mut spec = spec(ServerKind::Bind, &[Transport::Udp]);
        named(&mut spec, origin);
        assert_eq!(spec.zone_file_name(), expected);
    }
}

#[test]
fn forwarders_know_all_their_upstreams() {
    let kinds = ServerKind::ALL.into_iter().filter(|kind| kind.forwards());
    for (kind, transport) in kinds.flat_map(|kind| [(kind, Transport::Udp), (kind, Transport::Dot)])
    {
        let mut spec = forwarder(kind, &[Transport::Udp], transport);
        let further = if transport.is_encrypted() {
            ["10.53.2.3:853", "[fd00::3]:853"]
        } else {
            ["10.53.2.3:53", "[fd00::3]:53"]
        };
        spec.upstream.as_mut().unwrap().further = further.map(|at| at.parse().unwrap()).to_vec();
        let text = shown(&spec);
        for address in ["10.53.2.2", "10.53.2.3", "fd00::3"] {
            assert!(text.contains(address), "{kind} is not told of {address}:\n{text}");
        }
        assert!(!text.contains("the one upstream"), "{kind}:\n{text}");
    }
}
