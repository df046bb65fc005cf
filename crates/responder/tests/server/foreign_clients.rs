//! `dig`, `kdig`, `curl`, `dnsperf` and `openssl` as clients that know nothing of this project.

use std::process::{Command, Output, Stdio};

use domain::base::iana::Rtype;

use crate::running::{Running, query};

/// Runs a client. It must succeed, and its output must have all `expected` parts and no `absent` one.
fn check(command: &str, arguments: &[&str], expected: &[&str], absent: &[&str]) {
    let output = run(command, arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let shown = format!("{command} {arguments:?}:\n{text}{output:?}");
    assert!(output.status.success(), "{shown}");
    for part in expected {
        assert!(text.contains(part), "no {part:?} from {shown}");
    }
    for part in absent {
        assert!(!text.contains(part), "{part:?} from {shown}");
    }
}

fn run(command: &str, arguments: &[&str]) -> Output {
    let output = Command::new(command).args(arguments).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| {
        panic!(
            "cannot run {command}: {error}; install bind9-dnsutils, knot-dnsutils, curl, dnsperf and \
             openssl"
        )
    })
}

#[test]
fn dig() {
    let server = Running::start(|_| {});
    let port = server.address.port().to_string();
    let begin = ["@127.0.0.1", "-p", &port, "+norec", "+tries=1", "+time=20"];
    let dig = |arguments: &[&str], expected: &[&str], absent: &[&str]| {
        let absent = [absent, &["WARNING", "malformed", "mismatch", "extra bytes"]].concat();
        check("dig", &[&begin, arguments].concat(), expected, &absent);
    };
    let found = ["status: NOERROR", "flags: qr aa;", "192.0.2.1", "IN\tA"];
    dig(&["wWw.example", "A", "+noedns"], &found, &["OPT PSEUDOSECTION"]);
    dig(&["www.example", "A", "+tcp"], &found, &[]);
    dig(
        &["www.example", "A", "+dnssec", "+bufsize=4096"],
        &["flags: do; udp: 1232", "192.0.2.1"],
        &[],
    );
    dig(&["www.example", "A", "+edns=1", "+noednsneg"], &["status: BADVERS"], &[]);
    dig(&["nothing.example"], &["status: NXDOMAIN", "SOA\tns.example."], &[]);
    dig(&["www.example", "MX"], &["status: NOERROR", "ANSWER: 0", "SOA\tns.example."], &[]);
    dig(&["alias.example"], &["CNAME\twww.example.", "192.0.2.1", "ANSWER: 2"], &[]);
    dig(&["www.other"], &["status: REFUSED"], &[]);
    dig(&["www.example", "ANY", "+notcp"], &["RFC8482"], &[]);
    dig(&["www.example", "+opcode=NOTIFY", "+noedns"], &["status: NOTIMP", "QUERY: 1"], &[]);
    dig(&["big.example", "TXT", "+ignore"], &["flags: qr aa tc;", "ANSWER: 0"], &[]);
    // Without +ignore the truncated answer makes dig ask again over TCP.
    let whole = ["(TCP)", "ANSWER: 200", "Truncated, retrying in TCP mode"];
    dig(&["big.example", "TXT"], &whole, &["flags: qr aa tc;"]);
    let counters = server.stop();
    assert_eq!((counters.tcp.received, counters.udp.received), (2, 11));
}

#[test]
fn kdig() {
    let server = Running::start_on("[::1]:0", |_| {});
    let ports = [server.address.port().to_string(), server.dot_address.port().to_string()];
    let authority = format!("+tls-ca={}", server.chain.display());
    let kdig = |port: &str, arguments: &[&str], expected: &[&str]| {
        let mut all = vec!["@::1", "-p", port, "+norec", "+retry=0", "+time=20"];
        all.extend_from_slice(arguments);
        check("kdig", &all, expected, &["WARNING", "malformed"]);
    };
    let found = ["status: NOERROR", "Flags: qr aa;", "192.0.2.1"];
    kdig(&ports[0], &["www.example", "A"], &found);
    kdig(&ports[0], &["www.example", "A", "+tcp", "+edns"], &["Flags: qr aa;", "EDNS PSEUDO"]);
    kdig(&ports[0], &["big.example", "TXT"], &["ANSWER: 200", "(TCP)"]);
    let tls = ["+tls", &authority, "+tls-hostname=localhost"];
    kdig(
        &ports[1],
        &[&tls, ["www.example", "A", "+dnssec"].as_slice()].concat(),
        &["TLS session (TLS1.3)", "Flags: qr aa;", "ext-rcode: NOERROR", "192.0.2.1", "PADDING"],
    );
    kdig(&ports[1], &[&tls, ["big.example", "TXT"].as_slice()].concat(), &["ANSWER: 200"]);
    // Several questions on one connection.
    let several =
        [&tls, ["+keepopen", "www.example", "alias.example", "nothing.example"].as_slice()];
    kdig(&ports[1], &several.concat(), &["CNAME\twww.example.", "status: NXDOMAIN"]);
    let port = server.doh2_address.port().to_string();
    for method in ["+https", "+https-get"] {
        let http = ["+https=localhost/dns-query", method, &authority, "+tls-hostname=localhost"];
        let ask = |arguments: &[&str], expected: &[&str]| {
            kdig(&port, &[http.as_slice(), arguments].concat(), expected);
        };
        ask(&["www.example", "A"], &["HTTP session (HTTP/2-", "Flags: qr aa;", "192.0.2.1"]);
        ask(&["big.example", "TXT"], &["ANSWER: 200", "status: NOERROR"]);
    }
    let counters = server.stop();
    assert_eq!((counters.udp.received, counters.tcp.received, counters.dot.received), (2, 2, 5));
    assert_eq!(counters.doh2.received, 4);
}

#[test]
fn curl() {
    let server = Running::start(|_| {});
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, octets: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, octets).unwrap();
        format!("@{}", path.display())
    };
    let message = query(0, "www.example.", Rtype::A);
    let (right, empty) = (file("right", &message), file("empty", b""));
    let (long, longest) = (file("long", &[0; 65_536]), file("longest", &[0; 65_535]));
    let certificate = server.chain.display().to_string();
    let origin = format!("https://localhost:{}", server.doh2_address.port());
    let resolve = format!("localhost:{}:127.0.0.1", server.doh2_address.port());
    let begin =
        ["--silent", "--show-error", "--max-time", "20", "--http2", "--output", "/dev/null"];
    let begin = [&begin[..], &["--cacert", &certificate, "--resolve", &resolve]].concat();
    let shown = "%{http_version} %{http_code} %{size_download} %{content_type}";
    let curl = |path: &str, arguments: &[&str], expected: &str| {
        let url = format!("{origin}{path}");
        let all = [&begin, &["--write-out", shown, &url][..], arguments].concat();
        check("curl", &all, &[expected], &[]);
    };
    let dns = "content-type: application/dns-message";
    let post = |body| ["--header", dns, "--data-binary", body];
    curl("/dns-query", &post(&right), "2 200 45 application/dns-message");
    curl("/dns-query", &post(&longest), "2 200 12 application/dns-message");
    curl("/dns-query", &post(&long), "2 413 0");
    curl("/dns-query", &post(&empty), "2 400 0");
    curl("/dns-query", &["--data-binary", &right], "2 415 0");
    curl("/other", &post(&right), "2 404 0");
    curl("/dns-query", &["--request", "DELETE"], "2 405 0");
    // HEAD is there where GET is, and says what GET would.
    let asked = "/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlAAABAAE";
    curl(asked, &["--head"], "2 200 0 application/dns-message");
    curl("/dns-query?dns=AAAB=", &["--head"], "2 400 0");
    let heads = |path: &str, arguments: &[&str], expected: &[&str]| {
        let url = format!("{origin}{path}");
        let all = [&begin, &["--dump-header", "-", &url][..], arguments].concat();
        check("curl", &all, expected, &[]);
    };
    let kept = ["cache-control: max-age=300\r\n", "content-length: 45\r\n"];
    heads(asked, &[], &kept);
    heads(asked, &["--head"], &kept);
    heads("/dns-query", &post(&right), &kept);
    // NXDOMAIN: the SOA record's MINIMUM.
    let missing = file("missing", &query(0, "nothing.example.", Rtype::A));
    heads("/dns-query", &post(&missing), &["cache-control: max-age=60\r\n"]);
    let refused = file("refused", &query(0, "www.other.", Rtype::A));
    heads("/dns-query", &post(&refused), &["cache-control: max-age=0\r\n"]);
    heads("/dns-query", &["--request", "PUT"], &["allow: GET, HEAD, POST\r\n"]);
    curl("/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlAAABAAE", &[], "2 200 45 application/dns");
    curl("/dns-query?a=b&dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlAAABAAE&c", &[], "2 200 45");
    curl("/dns-query?dns=AAAB=", &[], "2 400 0");
    curl("/dns-query?dnt=AAAB", &[], "2 400 0");
    curl("/dns-query", &[], "2 400 0");
    let counters = server.stop();
    assert_eq!(
        (counters.doh2.received, counters.doh2.answered, counters.doh2.ignored),
        (11, 10, 1)
    );
}

/// dnsperf 2.10 reads one TLS record and looks at one answer of it: it has all answers only if each has its
/// own record.
#[test]
fn dnsperf_loses_nothing() {
    const QUERIES: u64 = 20_000;
    let server = Running::start(|_| {});
    let packing = Running::start(|config| config.pack_answers = true);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queries");
    let text: String = (0..1000).map(|number| format!("host{number}.example A\n")).collect();
    std::fs::write(&path, text).unwrap();
    let (path, most) = (path.display().to_string(), (QUERIES / 1000).to_string());
    for (mode, port) in [
        ("tcp", server.address.port()),
        ("dot", server.dot_address.port()),
        ("doh", server.doh2_address.port()),
        // Over TLS alone it looks at all answers of a record.
        ("dot", packing.dot_address.port()),
    ] {
        let port = port.to_string();
        let all =
            ["-m", mode, "-s", "127.0.0.1", "-p", &port, "-d", &path, "-n", &most, "-q", "100"];
        // Time enough for a busy machine: a lost answer is lost for good.
        let output = run("dnsperf", &[&all, ["-c", "2", "-t", "15"].as_slice()].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        let figure = |name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
            let line = line.unwrap_or_else(|| panic!("no {name:?} from dnsperf: {output:?}"));
            line.split_ascii_whitespace().next().unwrap().parse().unwrap()
        };
        assert_eq!(figure("Queries sent:"), QUERIES, "{mode}");
        assert_eq!((figure("Queries completed:"), figure("Queries lost:")), (QUERIES, 0), "{mode}");
    }
    server.stop();
}

fn connect(port: u16, alpn: Option<&str>, version: &str) -> (bool, String) {
    let address = format!("127.0.0.1:{port}");
    let mut all = vec!["s_client", "-connect", &address, version];
    all.extend(alpn.map(|alpn| ["-alpn", alpn]).into_iter().flatten());
    let output = run("openssl", &all);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}

/// What the protocols want of ALPN: a client of DNS over TLS need not ask for a protocol (RFC 7858), one of
/// HTTP/2 must (RFC 9113, section 3.3), and one that asks only for others is refused (RFC 7301, section 3.2).
#[test]
fn openssl() {
    let server = Running::start(|_| {});
    let ports = [server.dot_address.port(), server.doh2_address.port()];
    for version in ["-tls1_2", "-tls1_3"] {
        let [dot, doh2] = ports;
        for (port, alpn) in [(dot, None), (dot, Some("dot")), (doh2, Some("http/1.1,h2"))] {
            let (is_connected, said) = connect(port, alpn, version);
            assert!(is_connected, "{port} {alpn:?} {version}: {said}");
            let expected = match alpn {
                None => "No ALPN negotiated",
                Some("dot") => "ALPN protocol: dot",
                Some(_) => "ALPN protocol: h2",
            };
            assert!(said.contains(expected), "{port} {alpn:?} {version}: {said}");
        }
        for (port, alpn) in [(doh2, None), (doh2, Some("http/1.1")), (dot, Some("h2"))] {
            let (is_connected, said) = connect(port, alpn, version);
            assert!(!is_connected, "{port} {alpn:?} {version}: {said}");
            assert!(said.contains("no application protocol"), "{port} {alpn:?} {version}: {said}");
        }
    }
    let connections = server.stop().connections;
    assert_eq!((connections.full_handshakes, connections.failed_handshakes), (6, 6));
}
