//! `dig` and `kdig` as clients that know nothing of this project.

use std::process::Command;

use crate::running::Running;

/// Runs a client; it must end well, and its output contain these parts and none of those.
fn check(command: &str, arguments: &[&str], expected: &[&str], absent: &[&str]) {
    let output = Command::new(command).args(arguments).output().unwrap_or_else(|error| {
        panic!("cannot run {command}: {error}; install bind9-dnsutils and knot-dnsutils")
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
    let counters = server.stop();
    assert_eq!((counters.udp.received, counters.tcp.received, counters.dot.received), (2, 2, 5));
}
