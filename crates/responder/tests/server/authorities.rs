//! BIND, NSD and this server say the same from one zone file.

use std::fs;
use std::path::Path;

use dnslab_responder::Zone;
use dnslab_test_support::free_address;
use dnslab_wire::{Query, QueryOptions, Transport};
use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, Name};
use domain::rdata::AllRecordData;

use crate::running::{PATIENCE, Running};
use crate::validators::Forwarder;

const ZONE: &str = "\
$ORIGIN example.
$TTL 300
@ SOA ns host 1 2 3 4 60
@ NS ns
ns A 192.0.2.53
www A 192.0.2.1
www 60 TXT a
alias CNAME www
chain1 CNAME chain2
chain2 10 CNAME chain3
chain3 CNAME chain4
chain4 CNAME www
loop1 CNAME loop2
loop2 CNAME loop3
loop3 CNAME loop1
lead CNAME loop2
self CNAME self
dangling CNAME nothing
outside CNAME www.other.
toent CNAME b.c
*.wild A 192.0.2.2
*.wild TXT w
host.wild A 192.0.2.3
*.wildcname CNAME www
*.wildloop CNAME x.wildloop
a.b.c A 192.0.2.4
sub NS ns.sub
ns.sub A 192.0.2.5
subalias CNAME www.sub
old 30 DNAME new
old A 192.0.2.6
www.new A 192.0.2.7
alias.new CNAME www.old
out DNAME other.
todeleg DNAME sub
towild DNAME wild
round1 DNAME round2
round2 DNAME round1
up DNAME example.
long DNAME aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb.\
aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb.\
aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbb
";

/// Names that lead into a loop. BIND gives its records with SERVFAIL, NSD with NOERROR.
const LOOPS: [&str; 6] = ["loop1", "loop2", "lead", "self", "a.wildloop", "x.round1"];

/// Names below `example.`; each is asked for with every type of [`TYPES`].
const NAMES: [&str; 42] = [
    "",
    "ns",
    "www",
    "wWw",
    "alias",
    "chain1",
    "loop1",
    "loop2",
    "lead",
    "self",
    "dangling",
    "outside",
    "toent",
    "nothing",
    "x.nothing",
    "wild",
    "a.wild",
    "a.b.wild",
    "*.wild",
    "host.wild",
    "x.host.wild",
    "a.wildcname",
    "a.wildloop",
    "c",
    "b.c",
    "a.b.c",
    "x.b.c",
    "sub",
    "www.sub",
    "subalias",
    "old",
    "www.old",
    "WWW.Old",
    "alias.old",
    "x.old",
    "x.out",
    "www.todeleg",
    "a.towild",
    "x.round1",
    "www.up",
    "www.up.up.up",
    "b.long",
];

const TYPES: [Rtype; 5] = [Rtype::A, Rtype::TXT, Rtype::CNAME, Rtype::DNAME, Rtype::NS];

/// A code, AA, and the records of the answer section in order.
type Said = (Rcode, bool, Vec<String>);

/// Names are in lower case.
fn said(message: &Message<Vec<u8>>) -> Said {
    let answer = message.answer().unwrap().limit_to::<AllRecordData<_, _>>();
    let mut records: Vec<String> = answer
        .map(|record| {
            let record = record.unwrap();
            let (owner, ttl) = (record.owner(), record.ttl().as_secs());
            format!("{owner} {ttl} {} {}", record.rtype(), record.data()).to_lowercase()
        })
        .collect();
    records.sort();
    (message.header().rcode(), message.header().aa(), records)
}

/// BIND and NSD get the same query.
fn ask(server: &Running, qname: &str, qtype: Rtype) -> Message<Vec<u8>> {
    let name: Name<Vec<u8>> = qname.parse().unwrap();
    let options = QueryOptions { recursion_desired: true, edns: None };
    let query = Query::new(&name, qtype, &options).unwrap();
    Message::from_octets(server.ask(Transport::Udp, query.octets())).unwrap()
}

fn bind(zone: &Path) -> Forwarder {
    Forwarder::start_at(
        free_address([127, 0, 0, 1].into()),
        "/usr/sbin/named",
        &["-g", "-c", "configuration"],
        |port| {
            format!(
                "options {{ directory \".\"; pid-file none; listen-on port {port} {{ 127.0.0.1; }}; \
             listen-on-v6 {{ none; }}; recursion no; minimal-responses yes; dnssec-validation no; \
             notify no; session-keyfile none; }};\ncontrols {{ }};\n\
             zone \"example\" {{ type primary; file \"{}\"; }};\n",
                zone.display()
            )
        },
    )
}

fn nsd(zone: &Path) -> Forwarder {
    Forwarder::start_at(
        free_address([127, 0, 0, 1].into()),
        "/usr/sbin/nsd",
        &["-d", "-c", "configuration"],
        |port| {
            format!(
                "server:\n ip-address: 127.0.0.1@{port}\n username: \"\"\n chroot: \"\"\n \
             zonesdir: \".\"\n pidfile: \"\"\n database: \"\"\n zonelistfile: \"zone.list\"\n \
             xfrdfile: \"xfrd.state\"\n xfrdir: \".\"\n rrl-ratelimit: 0\n\
             remote-control:\n control-enable: no\n\
             zone:\n name: example\n zonefile: {}\n",
                zone.display()
            )
        },
    )
}

#[test]
fn the_answers_are_those_of_bind_and_nsd() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zone");
    fs::write(&file, ZONE).unwrap();
    let zone = Zone::parse(&std::fs::read(&file).unwrap(), None).unwrap();
    let server = Running::start(|config| config.content = zone.into());
    let (bind, nsd) = (bind(&file), nsd(&file));
    // Three labels more than `long.example.` leaves room for.
    let too_long = format!("{0}.{0}.long", "a".repeat(50));
    let mut differences = Vec::new();
    for name in NAMES.into_iter().chain([too_long.as_str()]) {
        let qname =
            if name.is_empty() { "example.".to_owned() } else { format!("{name}.example.") };
        for qtype in TYPES {
            let theirs = |server: &Forwarder| {
                said(&server.try_ask(&qname, qtype, PATIENCE).expect("it has answered before"))
            };
            let ours = said(&ask(&server, &qname, qtype));
            let mut of_bind = theirs(&bind);
            if LOOPS.contains(&name) && of_bind.0 == Rcode::SERVFAIL {
                of_bind.0 = Rcode::NOERROR;
            }
            for (who, theirs) in [("BIND", of_bind), ("NSD", theirs(&nsd))] {
                if ours != theirs {
                    differences
                        .push(format!("{qname} {qtype}\n  ours {ours:?}\n  {who} {theirs:?}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
