//! The user's own zone file, as it is and signed, on each server that has zones.

use std::process::Command;

use dnslab_lab::ServerKind;
use dnslab_record::RunRecord;

use crate::evidence::{label, measured, valid_records};
use crate::room::Room;

/// Nine RRsets that are asked for: two at the apex, two of `ns`, three of `www` and what it is an alias of, the delegation
/// of `lab` without its glue, and a name of the wildcard.
const ZONE: &str = "$TTL 1h\n\
    corp.example. IN SOA ns hostmaster ( 1 1h 15m 4w 5m )\n\
    @ NS ns\n\
    ns A 192.0.2.1\nns AAAA 2001:db8::1\n\
    www CNAME web\nweb A 192.0.2.80\nweb TXT \"a\" \"b\"\n\
    lab NS ns.lab\nns.lab A 192.0.2.53\n\
    *.wild A 192.0.2.99\n";

const REVERSE: &str = "$TTL 60\n10.in-addr.arpa. SOA ns.corp.example. hostmaster.corp.example. 1 60 60 60 60\n\
    @ NS ns.corp.example.\n1.0.0 PTR web.corp.example.\n";

const SHORT: &str = "repeat.runs = 1\nload.clients = 4\nload.duration = \"200ms\"\n\
    load.warm_up = \"50ms\"\nload.dnssec_ok = true\n";

/// Octets of an answer on average.
fn answer_octets(record: &RunRecord) -> f64 {
    let counters = &measured(record).counters;
    counters.answers.octets as f64 / counters.outcomes.answered as f64
}

#[track_caller]
fn check(kind: ServerKind) {
    let room = Room::with_load();
    room.write("corp.zone", ZONE);
    room.experiment(&format!(
        "{SHORT}server.kind = \"{kind}\"\nserver.zone.file = \"corp.zone\"\n\
         [[variant]]\nname = \"plain\"\n\
         [[variant]]\nname = \"tcp\"\nload.transport = \"tcp\"\n\
         [[variant]]\nname = \"ecdsa\"\nserver.zone.signed = \"ecdsa-p256\"\n\
         [[variant]]\nname = \"rsa\"\nserver.zone.signed = \"rsa-2048\"\n"
    ));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let mut records = valid_records(&room.results(), 4);
    records.sort_by_key(label);
    for record in &records {
        let queries = &record.load.queries;
        assert!(queries.contains("corp.zone: 9 RRsets"), "{queries}");
    }
    let [ecdsa, plain, rsa, _tcp] = &records[..] else { panic!("four records") };
    let [plain, ecdsa, rsa] = [plain, ecdsa, rsa].map(answer_octets);
    // A signature of ECDSA with P-256 has 64 octets, one of RSA with 2048 bits 256.
    assert!(plain + 64.0 < ecdsa && ecdsa + 128.0 < rsa, "{kind}: {plain} {ecdsa} {rsa}");
}

#[test]
fn bind() {
    check(ServerKind::Bind);
}

#[test]
fn knot() {
    check(ServerKind::Knot);
}

#[test]
fn nsd() {
    check(ServerKind::Nsd);
}

#[test]
fn powerdns() {
    check(ServerKind::PowerDnsAuthoritative);
}

#[test]
fn embedded() {
    check(ServerKind::Embedded);
}

/// Behind each forwarder, with the types that the load names, and names of private addresses.
#[test]
fn at_the_end_of_a_chain() {
    for kind in ["bind", "unbound", "knot-resolver", "pdns-recursor"] {
        let room = Room::with_load();
        room.write("corp.zone", ZONE);
        room.write("10.zone", REVERSE);
        room.experiment(&format!(
            "{SHORT}server.kind = \"{kind}\"\nupstream.kind = \"nsd\"\n\
             [[variant]]\nname = \"corp\"\nserver.zone.file = \"corp.zone\"\n\
             load.types = \"A:1,TXT:1\"\n\
             [[variant]]\nname = \"reverse\"\nserver.zone.file = \"10.zone\"\n"
        ));
        room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
        for record in valid_records(&room.results(), 2) {
            let (queries, is_corp) = (&record.load.queries, record.variant == "corp");
            let expected =
                if is_corp { "corp.zone: 5 names, types A:1,TXT:1" } else { "10.zone: 3 RRsets" };
            assert!(queries.contains(expected), "{queries}");
            let codes: Vec<&String> = measured(&record).counters.answers.rcodes.keys().collect();
            assert_eq!(codes, ["NOERROR"], "{kind}");
        }
    }
}

/// The first records of a zone.
fn head(name: &str) -> String {
    format!(
        "$TTL 60\n{name} SOA ns.example. hostmaster.example. 1 60 60 60 60\n{name} NS ns.example.\n"
    )
}

/// The root, and a part of a network (RFC 2317), on each server; the session goes on by what it wrote.
#[test]
fn the_root_and_part_of_a_network() {
    let room = Room::with_load();
    room.write("root.zone", &format!("{}ns.example. A 192.0.2.1\na. TXT x\n", head(".")));
    let part = "0/25.2.0.192.in-addr.arpa.";
    room.write("part.zone", &format!("{}1.{part} PTR www.example.\n", head(part)));
    let variants = ["embedded", "bind", "knot", "nsd", "pdns-auth"].into_iter().flat_map(|kind| {
        ["root", "part"].map(|zone| {
            format!(
                "[[variant]]\nname = \"{kind}-{zone}\"\nserver.kind = \"{kind}\"\n\
                     server.zone.file = \"{zone}.zone\"\n"
            )
        })
    });
    room.experiment(&format!("{SHORT}{}", variants.collect::<String>()));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let results = room.results();
    for record in valid_records(&results, 10) {
        let codes: Vec<&String> = measured(&record).counters.answers.rcodes.keys().collect();
        assert_eq!(codes, ["NOERROR"], "{}", record.variant);
    }
    let folder = results.path().to_string_lossy();
    room.dnslab(&["run", "--resume", &folder, "--more", "1"]).exits_with(0);
}

/// With NSEC3, as an operator has signed it: each server sends its proofs.
#[test]
fn signed_by_its_owner() {
    let room = Room::with_load();
    room.write("corp.zone", ZONE);
    let sign = "cp corp.zone plain && dnssec-keygen -q -a ECDSAP256SHA256 corp.example && \
                dnssec-signzone -S -P -3 - -o corp.example -f corp.zone plain";
    let signed = Command::new("sh").args(["-c", sign]).current_dir(room.path()).output().unwrap();
    assert!(signed.status.success(), "{signed:?}");
    room.write("queries", "none.corp.example A\n");
    let variants = ["bind", "knot", "nsd", "pdns-auth"]
        .map(|kind| format!("[[variant]]\nname = \"{kind}\"\nserver.kind = \"{kind}\"\n"));
    room.experiment(&format!(
        "{SHORT}server.zone.file = \"corp.zone\"\nload.queries = \"queries\"\n\
         expect.rcode = \"NXDOMAIN\"\n{}",
        variants.concat()
    ));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    for record in valid_records(&room.results(), 4) {
        // SOA and up to three NSEC3 records, each with its signature of 64 octets.
        let octets = answer_octets(&record);
        assert!(octets > 500.0, "{}: {octets}", record.variant);
    }
    let words = ["--set", "server.zone.signed=rsa-2048"];
    let again = [&["run", "./experiment.toml"], &words[..]].concat();
    room.dnslab(&again).exits_with(2).complains("it has signatures already");
}

/// Nothing is made of an experiment with these words.
#[track_caller]
fn refuses(room: &Room, words: &[&str], complaint: &str) {
    let words = [&["run", "transports"], words].concat();
    room.dnslab(&words).exits_with(2).complains(complaint);
    assert!(!room.path().join("results").exists(), "nothing is made");
}

#[test]
fn what_is_no_zone_of_ones_own_is_named() {
    let room = Room::quiet();
    room.write("corp.zone", ZONE);
    room.write("empty.zone", "; nothing\n");
    room.write("relative.zone", "@ 60 SOA ns host 1 60 60 60 60\n");
    room.write("include.zone", &format!("{ZONE}$INCLUDE /etc/passwd\n"));
    let set = |value: &'static str| ["--set", value];
    refuses(&room, &set("server.zone.file=none.zone"), "there is no zone file `none.zone`");
    refuses(&room, &set("server.zone.file=empty.zone"), "empty.zone: zone file: no SOA record");
    refuses(
        &room,
        &set("server.zone.file=relative.zone"),
        "a name without a final dot needs an origin",
    );
    refuses(&room, &set("server.zone.file=include.zone"), "$INCLUDE /etc/passwd is not supported");
    let both = [set("server.zone.file=corp.zone"), set("server.zone.records=7")].concat();
    refuses(&room, &both, "`server.zone.records` is for a zone that dnslab makes");
    let external = [set("server.kind=external"), set("server.address=127.0.0.1")].concat();
    let external = [&external[..], &set("server.zone.signed=rsa-2048")].concat();
    refuses(&room, &external, "`server.zone.signed` has no effect: the server runs already");
}
