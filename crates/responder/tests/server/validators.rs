//! Real validating forwarders in front of the responder: Unbound and Knot Resolver with the trust anchor, and
//! `delv`, which validates by itself.

use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use dnslab_responder::{NameList, Signing, Zone, Zones};
use dnslab_test_support::free_address;
use dnslab_wire::{Query, QueryOptions, TRUST_ANCHOR_DNSKEY};
use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, Name};

use crate::running::{PATIENCE, Running};

const NAMES: &str = "www.example.com\nexample.com\na.deep.example.com\nwww.example.org\n";

/// Forwarders have their own address: sockets of other tests may get any port of the usual one before a
/// forwarder has taken it.
const FORWARDERS: &str = "127.0.0.3";

fn resolver(signing: Signing) -> Running {
    let zones = Zones::below_root(&NameList::parse(NAMES).unwrap(), signing);
    Running::start(|config| config.content = zones.into())
}

/// A foreign server in its own folder, ended when it is dropped.
pub(crate) struct Forwarder {
    address: SocketAddr,
    child: Child,
    folder: tempfile::TempDir,
}

impl Forwarder {
    /// Runs a program with a configuration for its port, and waits until it answers something.
    fn start(program: &str, arguments: &[&str], configuration: impl Fn(u16) -> String) -> Self {
        let address = free_address(FORWARDERS.parse().unwrap());
        Self::start_at(address, program, arguments, configuration)
    }

    pub(crate) fn start_at(
        address: SocketAddr,
        program: &str,
        arguments: &[&str],
        configuration: impl Fn(u16) -> String,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
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
                panic!(
                    "cannot run {program}: {error}; install bind9, nsd, unbound and knot-resolver"
                )
            });
        let own = Self { address, child, folder };
        let until = Instant::now() + PATIENCE;
        while own.try_ask("example.com.", Rtype::SOA, Duration::from_millis(200)).is_none() {
            assert!(Instant::now() < until, "{program} does not answer: {}", own.log());
        }
        own
    }

    /// It forwards everything to the responder, and trusts the key of its root.
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

    /// It does the same, without its modules that ask on their own.
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

    /// `None` if no answer comes in time.
    pub(crate) fn try_ask(
        &self,
        qname: &str,
        qtype: Rtype,
        patience: Duration,
    ) -> Option<Message<Vec<u8>>> {
        let name: Name<Vec<u8>> = qname.parse().unwrap();
        let options = QueryOptions { recursion_desired: true, edns: None };
        let mut query = Query::new(&name, qtype, &options).unwrap().octets().to_vec();
        // AD: the client wants to know (RFC 6840, section 5.7).
        query[3] |= 0x20;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(patience)).unwrap();
        // A server that is not there yet is an error of one of these.
        socket.connect(self.address).ok()?;
        socket.send(&query).ok()?;
        let mut answer = vec![0; 65_535];
        let length = socket.recv(&mut answer).ok()?;
        answer.truncate(length);
        Some(Message::from_octets(answer).unwrap())
    }

    /// The code, whether the data are authentic, and the number of answers.
    #[track_caller]
    fn ask(&self, qname: &str, qtype: Rtype) -> (Rcode, bool, u16) {
        let answer = self.try_ask(qname, qtype, PATIENCE);
        let answer = answer.unwrap_or_else(|| panic!("no answer to {qname}: {}", self.log()));
        (answer.header().rcode(), answer.header().ad(), answer.header_counts().ancount())
    }

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

/// With nothing to trust the same questions must fail.
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
    let key = TRUST_ANCHOR_DNSKEY.split(' ').next_back().unwrap();
    let delv = Delv::new(folder.path(), ".", key, &server);
    delv.check("www.example.com", "A", "; fully validated");
    delv.check("www.example.com", "TXT", "; negative response, fully validated");
    delv.check("nothing.example.com", "A", "; negative response, fully validated");
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}; install bind9-utils"));
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_signed_zone_file_is_served_with_its_proofs() {
    let folder = tempfile::tempdir().unwrap();
    let keygen = ["-a", "ECDSAP256SHA256", "-f", "KSK", "example"];
    let stem = run(folder.path(), "dnssec-keygen", &keygen).trim().to_owned();
    let text = "$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\nns A 192.0.2.53\n\
                www A 192.0.2.1\nalias CNAME x.wild\n*.wild A 192.0.2.9\nent.deep.here A 192.0.2.2\n\
                sub NS ns.sub\nns.sub A 192.0.2.77\nold DNAME wild\n";
    fs::write(folder.path().join("zone"), text).unwrap();
    run(folder.path(), "dnssec-signzone", &["-S", "-z", "-o", "example", "-f", "signed", "zone"]);
    let zone = Zone::parse(&std::fs::read(folder.path().join("signed")).unwrap(), None).unwrap();
    let server = Running::start(|config| config.content = zone.into());
    let public = fs::read_to_string(folder.path().join(format!("{stem}.key"))).unwrap();
    let record = public.lines().find(|line| line.contains(" DNSKEY ")).unwrap();
    let key = record.split_once(" 13 ").unwrap().1;
    let delv = Delv::new(folder.path(), "example", key, &server);
    let (found, absent) = ("; fully validated", "; negative response, fully validated");
    delv.check("www.example", "A", found);
    delv.check("x.y.wild.example", "A", found);
    delv.check("alias.example", "A", found);
    delv.check("x.y.old.example", "A", found);
    delv.check("www.example", "TXT", absent);
    delv.check("x.wild.example", "TXT", absent);
    delv.check("deep.here.example", "A", absent);
    delv.check("nothing.example", "A", absent);
    delv.check("sub.example", "DS", absent);
    // The referral proves that the child is not signed.
    let port = server.address.port().to_string();
    let referral = run(
        folder.path(),
        "dig",
        &["@127.0.0.1", "-p", &port, "+norec", "+dnssec", "www.sub.example"],
    );
    for part in ["NS\tns.sub.example.", "sub.example.\t\t60\tIN\tNSEC", "RRSIG\tNSEC", "192.0.2.77"]
    {
        assert!(referral.contains(part), "no {part:?} in {referral}");
    }
    // With NSEC3 it is refused, with the line of the record.
    let hashed = ["-3", "-", "-S", "-z", "-o", "example", "-f", "hashed", "zone"];
    run(folder.path(), "dnssec-signzone", &hashed);
    let text = fs::read_to_string(folder.path().join("hashed")).unwrap();
    let is_of_nsec3 = |line: &str| line.contains("NSEC3PARAM") && !line.contains("RRSIG");
    let first = text.lines().position(is_of_nsec3).unwrap() + 1;
    let error = Zone::parse(&std::fs::read(folder.path().join("hashed")).unwrap(), None)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with(&format!("zone file: line {first}: ")), "{first}: {error}");
    assert!(error.contains("NSEC3 is not served"), "{error}");
}

struct Delv {
    anchor: PathBuf,
    root: String,
    port: String,
}

impl Delv {
    fn new(folder: &Path, root: &str, key: &str, server: &Running) -> Self {
        let anchor = folder.join("anchor");
        let text = format!("trust-anchors {{ {root} static-key 257 3 13 \"{key}\"; }};");
        fs::write(&anchor, text).unwrap();
        Self { anchor, root: format!("+root={root}"), port: server.address.port().to_string() }
    }

    #[track_caller]
    fn check(&self, qname: &str, qtype: &str, expected: &str) {
        let output = Command::new("delv")
            .arg("-a")
            .arg(&self.anchor)
            .args([&self.root, "@127.0.0.1", "-p", &self.port, qname, qtype])
            .output()
            .unwrap_or_else(|error| panic!("cannot run delv: {error}; install bind9-dnsutils"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(expected), "{qname} {qtype}: {output:?}");
    }
}
