//! A response policy zone, as of a block list, on each server that applies one.

use dnslab_lab::ServerKind;

use crate::evidence::{measured, valid_records};
use crate::room::Room;

const POLICY: &str = "$TTL 60\n@ SOA localhost. root.localhost. 1 60 60 60 60\n@ NS localhost.\n\
    blocked.example.net CNAME .\n*.blocked.example.net CNAME .\n";

#[track_caller]
fn check(kind: ServerKind) {
    let room = Room::with_load();
    room.write("block.zone", POLICY);
    room.write("queries", "blocked.example.net A\na.blocked.example.net A\n");
    room.experiment(&format!(
        "repeat.runs = 1\nload.clients = 4\nload.duration = \"200ms\"\nload.warm_up = \"50ms\"\n\
         load.queries = \"queries\"\nserver.kind = \"{kind}\"\nupstream.kind = \"embedded\"\n\
         [[variant]]\nname = \"all\"\nexpect.rcode = \"NOERROR\"\n\
         [[variant]]\nname = \"blocked\"\nexpect.rcode = \"NXDOMAIN\"\n\
         server.policy_zone = \"block.zone\"\n"
    ));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    for record in valid_records(&room.results(), 2) {
        let counters = &measured(&record).counters;
        let expected = if record.variant == "all" { "NOERROR" } else { "NXDOMAIN" };
        let codes: Vec<&String> = counters.answers.rcodes.keys().collect();
        assert_eq!(codes, [expected], "{kind}");
    }
}

#[test]
fn bind() {
    check(ServerKind::Bind);
}

#[test]
fn unbound() {
    check(ServerKind::Unbound);
}

#[test]
fn knot_resolver() {
    check(ServerKind::KnotResolver);
}

#[test]
fn powerdns() {
    check(ServerKind::PowerDnsRecursor);
}

#[test]
fn a_server_without_policies_is_named() {
    let room = Room::quiet();
    room.write("block.zone", POLICY);
    let words = ["run", "forwarders", "--set", "server.policy_zone=block.zone"];
    let dnsmasq = [&words[..], &["--set", "server.kind=dnsmasq"]].concat();
    room.dnslab(&dnsmasq).exits_with(2).complains("`server.policy_zone`");
    let words = ["run", "transports", "--set", "server.policy_zone=block.zone"];
    let bind = [&words[..], &["--set", "server.kind=bind"]].concat();
    room.dnslab(&bind).exits_with(2).complains("the server answers from a zone");
}
