//! `dig`, `kdig` and `curl` as clients that know nothing of this project.

use std::process::Command;

use domain::base::iana::Rtype;

use crate::running::{Running, query};

/// Runs a client; it must end well, and its output contain these parts and none of those.
fn check(command: &str, arguments: &[&str], expected: &[&str], absent: &[&str]) {
    let output = Command::new(command).args(arguments).output().unwrap_or_else(|error| {
        panic!("cannot run {command}: {error}; install bind9-dnsutils, knot-dnsutils and curl")
    });
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

#[test]
fn dig() {
    let server = Running::start(|_| {});
    let port = server.address.port().to_string();
    let dig = |arguments: &[&str], expected: &[&str], absent: &[&str]| {
        let mut all = vec!["@127.0.0.1", "-p", &port, "+norec", "+tries=1", "+time=20"];
        all.extend_from_slice(arguments);
        let mut absent = absent.to_vec();
        absent.extend(["WARNING", "malformed", "mismatch", "extra bytes"]);
        check("dig", &all, expected, &absent);
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
    let curl = |path: &str, arguments: &[&str], expected: &str| {
        let url = format!("{origin}{path}");
        let shown = "%{http_version} %{http_code} %{size_download} %{content_type}";
        let mut all = vec!["--silent", "--show-error", "--max-time", "20", "--http2"];
        all.extend(["--cacert", &certificate, "--resolve", &resolve, "--output", "/dev/null"]);
        all.extend(["--write-out", shown, &url]);
        all.extend_from_slice(arguments);
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
    curl("/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlAAABAAE", &[], "2 200 45 application/dns");
    curl("/dns-query?a=b&dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlAAABAAE&c", &[], "2 200 45");
    curl("/dns-query?dns=AAAB=", &[], "2 400 0");
    curl("/dns-query?dnt=AAAB", &[], "2 400 0");
    curl("/dns-query", &[], "2 400 0");
    let counters = server.stop();
    assert_eq!((counters.doh2.received, counters.doh2.answered, counters.doh2.ignored), (5, 4, 1));
}
