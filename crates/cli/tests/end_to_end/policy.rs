//! A response policy zone, as of a block list, on each server that applies one.

use dnslab_lab::ServerKind;

use crate::evidence::{measured, valid_records};
use crate::room::Room;

/// As vendors have it: with a name of its own, and a name that is let through.
const VENDOR: &str = "$TTL 60\nrpz.vendor.example. SOA localhost. root.localhost. 1 60 60 60 60\n\
    rpz.vendor.example. NS localhost.\nblocked.example.net.rpz.vendor.example. CNAME .\n\
    *.blocked.example.net.rpz.vendor.example. CNAME .\n\
    bad_host.example.net.rpz.vendor.example. A 192.0.2.99\n\
    allowed.example.net.rpz.vendor.example. CNAME rpz-passthru.\n";

const POLICY: &str = "$TTL 60\n@ SOA localhost. root.localhost. 1 60 60 60 60\n@ NS localhost.\n\
    blocked.example.net CNAME .\n*.blocked.example.net CNAME .\n";

#[track_caller]
fn check(kind: ServerKind) {
    let room = Room::with_load();
    room.write("block.zone", POLICY);
    room.write("vendor.zone", VENDOR);
    room.write("allowed", "allowed.example.net A\n");
    room.write("queries", "blocked.example.net A\na.blocked.example.net A\n");
    room.experiment(&format!(
        "repeat.runs = 1\nload.clients = 4\nload.duration = \"200ms\"\nload.warm_up = \"50ms\"\n\
         load.queries = \"queries\"\nserver.kind = \"{kind}\"\nupstream.kind = \"embedded\"\n\
         [[variant]]\nname = \"all\"\nexpect.rcode = \"NOERROR\"\n\
         [[variant]]\nname = \"blocked\"\nexpect.rcode = \"NXDOMAIN\"\n\
         server.policy_zone = \"block.zone\"\n\
         [[variant]]\nname = \"blocked-by-vendor\"\nexpect.rcode = \"NXDOMAIN\"\n\
         server.policy_zone = \"vendor.zone\"\n\
         [[variant]]\nname = \"allowed\"\nexpect.rcode = \"NOERROR\"\n\
         load.queries = \"allowed\"\nserver.policy_zone = \"vendor.zone\"\n"
    ));
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    for record in valid_records(&room.results(), 4) {
        let counters = &measured(&record).counters;
        let is_blocked = record.variant.starts_with("blocked");
        let expected = if is_blocked { "NXDOMAIN" } else { "NOERROR" };
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
