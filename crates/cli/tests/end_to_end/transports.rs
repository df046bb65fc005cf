//! `dnslab load` on `dnslab serve` over every transport, and the experiment that compares them.

use dnslab_lab::certificate;
use dnslab_record::RunRecord;
use dnslab_results::ResultsDirectory;
use dnslab_wire::{Method, Transport};
use std::net::SocketAddr;

use crate::evidence::{measured, report_is_whole, valid_records};
use crate::room::{Room, folders, with_few_clients};
use crate::running_server::{queries, serve};

/// One valid, verified run with these further arguments.
#[track_caller]
fn load(room: &Room, target: &str, transport: Transport, further: &[&str]) -> RunRecord {
    room.write("queries", &queries());
    let number = (1..).find(|number| !room.path().join(format!("results-{number}")).exists());
    let results = format!("results-{}", number.unwrap_or_default());
    let mut words = vec!["load", target, "--transport", transport.name(), "--results", &results];
    words.extend(["--queries", "queries", "--duration", "300ms", "--warm-up", "300ms"]);
    if transport.is_encrypted() {
        words.extend(["--authority", certificate::AUTHORITY]);
    }
    words.extend(further);
    let done = room.dnslab(&with_few_clients(&words)).exits_with(0);
    let found = folders(&room.path().join(&results));
    let results = ResultsDirectory::open(&found[0]).unwrap();
    report_is_whole(&results, &["load"]);
    let record = valid_records(&results, 1).remove(0);
    assert_eq!(record.load.target, target, "{done}");
    assert_eq!(record.load.transport, Some(transport), "{done}");
    let verified = measured(&record).tls.as_ref().map(|tls| tls.verified);
    assert_eq!(verified, transport.is_encrypted().then_some(true), "{done}");
    record
}

#[test]
fn every_transport_on_both_ip_versions() {
    for address in ["127.0.0.1", "::1"] {
        let room = Room::with_load();
        let (_serving, at) = serve(&room, address, &[]);
        for transport in Transport::ALL {
            let closed =
                load(&room, &at(transport).to_string(), transport, &["--outstanding", "9"]);
            assert!(measured(&closed).counters.outcomes.answered > 30, "{transport} at {address}");
            let open = load(&room, &at(transport).to_string(), transport, &["--rate", "1000"]);
            assert_eq!(measured(&open).counters.outcomes.due, 300, "{transport} at {address}");
        }
    }
}

#[test]
fn https_has_a_method_and_a_path() {
    let room = Room::with_load();
    let (_serving, at) = serve(&room, "127.0.0.1", &["--http-path", "/ask"]);
    for transport in [Transport::Doh2, Transport::Doh3] {
        for method in ["get", "post"] {
            let further = ["--http-path", "/ask", "--http-method", method];
            let record = load(&room, &at(transport).to_string(), transport, &further);
            let asked = record.load.http_method.map(Method::name);
            assert_eq!(asked, Some(method), "{transport}: {:?}", record.load);
        }
        let target = at(transport).to_string();
        let elsewhere = ["load", &target, "--transport", transport.name(), "--insecure"];
        let done = room.dnslab(&[&elsewhere[..], &["--results", transport.name()]].concat());
        let done = done.exits_with(1).errors(1).complains("does not answer");
        done.complains("`--http-path PATH`");
    }
}

/// How many were full, were resumed, and had early data.
#[track_caller]
fn handshakes(
    room: &Room,
    target: SocketAddr,
    transport: Transport,
    further: &[&str],
) -> (u64, u64, u64) {
    let again = ["--queries-per-connection", "20"];
    let record = load(room, &target.to_string(), transport, &[&again, further].concat());
    let counts = measured(&record).counters.connections;
    assert!(counts.closed > 4, "{transport}: {counts:?}");
    (counts.full_handshakes, counts.resumed_handshakes, counts.early_data)
}

/// Clients that connect again resume with their own tickets. They send early data if they are told to and the
/// server takes it.
#[test]
fn tickets_and_early_data_are_used() {
    let room = Room::with_load();
    let (_serving, at) = serve(&room, "127.0.0.1", &["--early-data"]);
    for transport in Transport::ALL.into_iter().filter(|transport| transport.is_encrypted()) {
        let (full, resumed, early) = handshakes(&room, at(transport), transport, &[]);
        assert!(resumed > full && early == 0, "{transport}: {full} {resumed} {early}");
        // What can be replayed has to be a safe method (RFC 8470, section 4).
        let by_get = if transport.is_http() { &["--http-method", "get"][..] } else { &[] };
        let (_, resumed, early) =
            handshakes(&room, at(transport), transport, &[&["--early-data"], by_get].concat());
        assert!(early > 0 && early <= resumed, "{transport}: {resumed} {early}");
        let (full, resumed, early) =
            handshakes(&room, at(transport), transport, &["--resumption", "off"]);
        assert!(full > 4 && resumed == 0 && early == 0, "{transport}: {full} {resumed} {early}");
    }
}

#[test]
fn the_experiment_on_all_transports_is_built_in() {
    let room = Room::with_load();
    let mut words = vec!["run", "transports"];
    let short = ["load.duration=1s", "load.warm_up=300ms", "repeat.runs=1", "load.padding=true"];
    // Turns of 50 ms are too short for the answers of a machine that does other things, too.
    let short = [&short[..], &["repeat.alternate=runs"]].concat();
    short.iter().for_each(|set| words.extend(["--set", set]));
    let done = room.dnslab(&words).exits_with(0).prints("6 runs of 6 variants");
    let results = room.results();
    for record in valid_records(&results, 6) {
        let transport: Transport = record.variant.parse().unwrap();
        assert!(record.watched.resources.samples.len() >= 3, "{transport}{done}");
        let padded = record.load.queries.contains("padding to blocks of 128 octets");
        assert_eq!(padded, transport.is_encrypted(), "{transport}: {}{done}", record.load.queries);
    }
    report_is_whole(&results, &Transport::ALL.map(Transport::name));
}

/// Names lack some of the types. An answer without a record is right then.
#[test]
fn a_mix_of_types_is_asked() {
    let room = Room::with_load();
    let sets = ["load.types=A:3,AAAA:1", "load.transport=tcp", "load.duration=300ms"];
    room.experiment("repeat.runs = 1\nload.warm_up = \"100ms\"\n[[variant]]\nname = \"mixed\"\n");
    let mut words = vec!["run", "./experiment.toml"];
    sets.iter().for_each(|set| words.extend(["--set", set]));
    room.dnslab(&words).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert!(record.load.queries.contains("A:3,AAAA:1"), "{}", record.load.queries);
}
