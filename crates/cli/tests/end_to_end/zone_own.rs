//! The user's own zone file, as it is and signed, on each server that has zones.

use dnslab_lab::ServerKind;
use dnslab_record::RunRecord;

use crate::evidence::{label, measured, valid_records};
use crate::room::Room;

/// Nine RRsets that are asked for: two at the apex, two of `ns`, three of `www` and what it is an alias of, the delegation
/// of `lab` without its glue, and the wildcard.
const ZONE: &str = "$TTL 1h\n\
    corp.example. IN SOA ns hostmaster ( 1 1h 15m 4w 5m )\n\
    @ NS ns\n\
    ns A 192.0.2.1\nns AAAA 2001:db8::1\n\
    www CNAME web\nweb A 192.0.2.80\nweb TXT \"a\" \"b\"\n\
    lab NS ns.lab\nns.lab A 192.0.2.53\n\
    *.wild A 192.0.2.99\n";

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

/// Behind a forwarder, and with the types that the load names.
#[test]
fn at_the_end_of_a_chain() {
    let room = Room::with_load();
    room.write("corp.zone", ZONE);
    room.experiment(&format!(
        "{SHORT}server.kind = \"unbound\"\nupstream.kind = \"nsd\"\n\
         server.zone.file = \"corp.zone\"\nload.types = \"A:1,TXT:1\"\n[[variant]]\nname = \"chain\"\n"
    ));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let queries = &record.load.queries;
    assert!(queries.contains("corp.zone: 6 names, types A:1,TXT:1"), "{queries}");
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
