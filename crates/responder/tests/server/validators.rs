//! Real validating forwarders in front of the responder: Unbound and Knot Resolver with the trust
//! anchor, and `delv`, which validates by itself.

use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dnslab_responder::{NameList, Signing, Zones};
use dnslab_wire::{Query, QueryOptions, TRUST_ANCHOR_DNSKEY};
use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, Name};

use crate::running::{PATIENCE, Running};

/// The names that the resolver knows.
const NAMES: &str = "www.example.com\nexample.com\na.deep.example.com\nwww.example.org\n";

/// Where the forwarders listen: an address of their own, since sockets of other tests may get any
/// port of the usual one before a forwarder has taken it.
const FORWARDERS: &str = "127.0.0.3";

/// Starts the responder as a resolver whose zones are signed, or not.
fn resolver(signing: Signing) -> Running {
    let zones = Zones::below_root(&NameList::parse(NAMES).unwrap(), signing);
    Running::start(|config| config.zones = Arc::new(zones))
}

/// A foreign server in a folder of its own, ended when it is dropped.
struct Forwarder {
    address: SocketAddr,
    child: Child,
    folder: tempfile::TempDir,
}

impl Forwarder {
    /// Runs a program with a configuration, made for the port it is to take, and waits until it
    /// answers something.
    fn start(program: &str, arguments: &[&str], configuration: impl Fn(u16) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = UdpSocket::bind((FORWARDERS, 0)).unwrap().local_addr().unwrap();
        fs::write(folder.path().join("configuration"), configuration(address.port())).unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot run {program}: {error}; install unbound and knot-resolver")
            });
        let own = Self { address, child, folder };
        let until = Instant::now() + PATIENCE;
        while own.try_ask("example.com.", Rtype::SOA, Duration::from_millis(200)).is_none() {
            assert!(Instant::now() < until, "{program} does not answer: {}", own.log());
        }
        own
    }

    /// Unbound that forwards everything to the responder, and trusts the key of its root.
    fn unbound(upstream: &Running) -> Self {
        let upstream = upstream.address;
        Self::start("/usr/sbin/unbound", &["-d", "-c", "configuration"], |port| {
            format!(
                "server:\n interface: {FORWARDERS}@{port}\n do-daemonize: no\n use-syslog: no\n \
                 username: \"\"\n chroot: \"\"\n directory: \".\"\n pidfile: \"\"\n \
                 do-not-query-localhost: no\n val-log-level: 2\n \
                 trust-anchor: \"{TRUST_ANCHOR_DNSKEY}\"\n\
                 remote-control:\n control-enable: no\n\
                 forward-zone:\n name: \".\"\n forward-addr: 127.0.0.1@{}\n",
                upstream.port()
            )
        })
    }

    /// Knot Resolver that does the same, without its modules that ask on their own.
    fn knot_resolver(upstream: &Running) -> Self {
        let upstream = upstream.address;
        let arguments = ["-n", "-q", "-c", "configuration", "."];
        Self::start("/usr/sbin/kresd", &arguments, |port| {
            format!(
                "net.listen('{FORWARDERS}', {port}, {{ kind = 'dns' }})\n\
                 for _, name in ipairs({{'ta_update', 'ta_signal_query', 'ta_sentinel', 'priming', \
                 'detect_time_skew'}}) do modules.unload(name) end\n\
                 trust_anchors.remove('.')\n\
                 trust_anchors.add('{TRUST_ANCHOR_DNSKEY}')\n\
                 policy.add(policy.all(policy.FORWARD({{'127.0.0.1@{}'}})))\n\
                 cache.size = 10*MB\n",
                upstream.port()
            )
        })
    }

    /// Asks once; nothing if no answer comes in time.
    fn try_ask(&self, qname: &str, qtype: Rtype, patience: Duration) -> Option<Message<Vec<u8>>> {
        let name: Name<Vec<u8>> = qname.parse().unwrap();
        let options = QueryOptions { recursion_desired: true, edns: None };
        let mut query = Query::new(&name, qtype, &options).unwrap().octets().to_vec();
        // AD: the client wants to know (RFC 6840, section 5.7).
        query[3] |= 0x20;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(patience)).unwrap();
        // A server that is not there yet shows as an error of the one or the other.
        socket.connect(self.address).ok()?;
        socket.send(&query).ok()?;
        let mut answer = vec![0; 65_535];
        let length = socket.recv(&mut answer).ok()?;
        answer.truncate(length);
        Some(Message::from_octets(answer).unwrap())
    }

    /// Asks; the code, whether the data were found authentic, and the number of answers.
    #[track_caller]
    fn ask(&self, qname: &str, qtype: Rtype) -> (Rcode, bool, u16) {
        let answer = self.try_ask(qname, qtype, PATIENCE);
        let answer = answer.unwrap_or_else(|| panic!("no answer to {qname}: {}", self.log()));
        (answer.header().rcode(), answer.header().ad(), answer.header_counts().ancount())
    }

    /// What it has written.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn forwarders_validate_everything() {
    let server = resolver(Signing::At(SystemTime::now()));
    for forwarder in [Forwarder::unbound(&server), Forwarder::knot_resolver(&server)] {
        let check = |qname: &str, qtype, rcode, answers| {
            let seen = forwarder.ask(qname, qtype);
            assert_eq!(seen, (rcode, true, answers), "{qname} {qtype}: {}", forwarder.log());
        };
        check("www.example.com.", Rtype::A, Rcode::NOERROR, 1);
        check("www.example.com.", Rtype::AAAA, Rcode::NOERROR, 1);
        check("a.deep.example.com.", Rtype::A, Rcode::NOERROR, 1);
        check("example.com.", Rtype::NS, Rcode::NOERROR, 2);
        check("example.org.", Rtype::DNSKEY, Rcode::NOERROR, 1);
        check("example.org.", Rtype::DS, Rcode::NOERROR, 1);
        // Not there: the type, the name, the name below one that is, the domain, the TLD.
        check("www.example.com.", Rtype::TXT, Rcode::NOERROR, 0);
        check("deep.example.com.", Rtype::A, Rcode::NOERROR, 0);
        check("com.", Rtype::MX, Rcode::NOERROR, 0);
        check("nothing.example.com.", Rtype::A, Rcode::NXDOMAIN, 0);
        check("x.www.example.org.", Rtype::A, Rcode::NXDOMAIN, 0);
        check("nothing.com.", Rtype::A, Rcode::NXDOMAIN, 0);
        check("nothing.", Rtype::A, Rcode::NXDOMAIN, 0);
    }
    assert!(server.stop().udp.answered > 20);
}

/// The same questions with nothing to trust: so the test above can fail.
#[test]
fn forwarders_refuse_what_they_cannot_validate() {
    let long_ago = SystemTime::now() - Duration::from_secs(60 * 24 * 60 * 60);
    for signing in [Signing::Unsigned, Signing::At(long_ago)] {
        let server = resolver(signing);
        let forwarder = Forwarder::unbound(&server);
        for (qname, qtype) in [
            ("www.example.com.", Rtype::A),
            ("www.example.com.", Rtype::TXT),
            ("nothing.", Rtype::A),
        ] {
            let seen = forwarder.ask(qname, qtype);
            assert_eq!(seen, (Rcode::SERVFAIL, false, 0), "{signing:?}: {}", forwarder.log());
        }
    }
}

#[test]
fn delv_validates_by_itself() {
    let server = resolver(Signing::At(SystemTime::now()));
    let folder = tempfile::tempdir().unwrap();
    let key: Vec<_> = TRUST_ANCHOR_DNSKEY.split(' ').collect();
    let anchor = format!("trust-anchors {{ . static-key 257 3 13 \"{}\"; }};", key[7]);
    let file = folder.path().join("anchor");
    fs::write(&file, anchor).unwrap();
    let port = server.address.port().to_string();
    let delv = |qname: &str, qtype: &str, expected: &str| {
        let output = run_delv(&file, &port, qname, qtype);
        assert!(output.contains(expected), "{qname} {qtype}: {output}");
    };
    delv("www.example.com", "A", "; fully validated");
    delv("www.example.com", "TXT", "; negative response, fully validated");
    delv("nothing.example.com", "A", "; negative response, fully validated");
}

/// What `delv` says.
fn run_delv(anchor: &Path, port: &str, qname: &str, qtype: &str) -> String {
    let output = Command::new("delv")
        .arg("-a")
        .arg(anchor)
        .args(["+root", "@127.0.0.1", "-p", port, qname, qtype])
        .output()
        .unwrap_or_else(|error| panic!("cannot run delv: {error}; install bind9-dnsutils"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
