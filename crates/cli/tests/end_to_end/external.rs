//! `dnslab load` on a server that somebody else runs.

use std::net::SocketAddr;

use dnslab_lab::ports;
use dnslab_measure::{Caveat, LoadMode, RunRecord, RunStatus};

use crate::command::Done;
use crate::evidence::{measured, records, report_is_whole, valid_records};
use crate::room::{Room, SHORT, UDP_AND_TCP};
use crate::running_server::{RunningBind, queries};

/// Calls `dnslab load TARGET` with a short load and these further arguments.
#[track_caller]
fn load(room: &Room, target: &str, further: &[&str]) -> Done {
    let short = ["load", target, "--duration", "300ms", "--warm-up", "100ms"];
    room.dnslab(&[&short, further].concat())
}

/// The one valid record of a load on the test's own BIND at `address`, asked the names of the
/// test's query file over `transport`.
#[track_caller]
fn check(address: &str, transport: &str, further: &[&str]) -> RunRecord {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), address);
    room.write("queries", &queries());
    let authority = bind.authority.to_string_lossy();
    let further = further.iter().map(|word| if *word == "AUTHORITY" { &*authority } else { *word });
    let mut arguments = vec!["--queries", "queries", "--transport", transport];
    arguments.extend(further);
    let target = bind.target(transport);
    let done = load(&room, &target, &arguments).exits_with(0);
    let results = room.results();
    let record = valid_records(&results, 1).remove(0);
    report_is_whole(&results, &["load"]);
    assert_eq!(record.server.kind, "external", "{done}");
    assert_eq!(record.load.target, target, "{done}");
    assert_eq!(record.load.transport, transport, "{done}");
    let unwatched = |caveat: &Caveat| matches!(caveat, Caveat::ServerNotWatched { .. });
    assert!(record.caveats.iter().any(unwatched), "{done}");
    let unverified = record.caveats.contains(&Caveat::CertificateNotVerified);
    let insecure = arguments.contains(&"--insecure");
    assert_eq!(unverified, insecure, "{:?}{done}", record.caveats);
    assert_eq!(done.stdout.contains("was not verified"), insecure, "{done}");
    let tls = measured(&record).tls.as_ref().map(|tls| tls.verified);
    assert_eq!(tls, (transport == "dot").then_some(!insecure), "{done}");
    record
}

#[test]
fn udp_and_tcp_on_both_ip_versions() {
    for (address, transport) in
        [("127.0.0.1", "udp"), ("127.0.0.1", "tcp"), ("::1", "udp"), ("::1", "tcp")]
    {
        let record = check(address, transport, &["--clients", "3", "--outstanding", "7"]);
        assert_eq!(record.load.mode, LoadMode::Closed { outstanding: 7 });
        assert_eq!(record.load.clients, 3);
    }
}

#[test]
fn an_experiment_measures_a_running_server() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    room.write("queries", &queries());
    let (port, dot_port) = (bind.plain.port(), bind.dot.port());
    room.experiment(&format!(
        "repeat.runs = 1\n[server]\nkind = \"external\"\naddress = \"127.0.0.1\"\nport = {port}\n\
         dot_port = {dot_port}\nauthority = \"bind/authority.pem\"\n{SHORT}\
         queries = \"queries\"\n{UDP_AND_TCP}\
         [[variant]]\nname = \"dot\"\nload.transport = \"dot\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    for record in valid_records(&room.results(), 3) {
        assert_eq!(record.load.target, bind.target(&record.variant), "{done}");
        let tls = measured(&record).tls.as_ref().map(|tls| tls.verified);
        assert_eq!(tls, (record.variant == "dot").then_some(true), "{done}");
    }
    report_is_whole(&room.results(), &["udp", "tcp", "dot"]);
}

#[test]
fn dot_without_verification_carries_a_caveat() {
    check("127.0.0.1", "dot", &["--insecure"]);
}

#[test]
fn dot_is_verified_against_the_authority_and_by_name() {
    check("127.0.0.1", "dot", &["--authority", "AUTHORITY"]);
    check("::1", "dot", &["--authority", "AUTHORITY", "--tls-name", "dnslab.test"]);
}

#[test]
fn dot_with_the_wrong_name_or_authority_is_no_measurement() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    let stranger = RunningBind::start(&room.path().join("stranger"), "127.0.0.1");
    let (own, other) = (bind.authority.to_string_lossy(), stranger.authority.to_string_lossy());
    let cases =
        [vec!["--authority", &own, "--tls-name", "other.test"], vec!["--authority", &other]];
    for (number, case) in cases.iter().enumerate() {
        let results = format!("results-{number}");
        let mut arguments = vec!["--transport", "dot", "--results", &results];
        arguments.extend(case);
        let done = load(&room, &bind.dot.to_string(), &arguments).exits_with(3);
        assert!(done.stdout.contains("certificate"), "{done}");
    }
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let rate = ["--rate", "500", "--pace", "poisson", "--clients", "10"];
    let record = check("127.0.0.1", "udp", &rate);
    assert_eq!(record.load.mode, LoadMode::Open { rate_qps: 500.0, pace: "poisson".to_owned() });
    // 150 queries are due in 300 ms; a Poisson process is off by more than 6 deviations (74) once
    // in 500 million seeds, and this seed is fixed.
    let due = measured(&record).counters.outcomes.due;
    assert!((76..=224).contains(&due), "{due} queries were due");
}

#[test]
fn all_queries_of_the_file_are_asked() {
    let record = check("127.0.0.1", "tcp", &["--rate", "1000"]);
    let counters = &measured(&record).counters;
    assert_eq!(counters.outcomes.due, 300, "300 ms at 1,000 per second");
    assert!(record.load.queries.contains("102"), "the file holds 102: {}", record.load.queries);
    assert_eq!(counters.answers.rcodes.get("NOERROR"), Some(&counters.outcomes.answered));
}

#[test]
fn wrong_answers_make_the_run_invalid_and_show_an_example() {
    let room = Room::with_load();
    let bind = RunningBind::start(&room.path().join("bind"), "127.0.0.1");
    room.write("absent", "absent1.melmac.univ A\nabsent2.melmac.univ AAAA\n");
    let target = bind.plain.to_string();
    let done = load(&room, &target, &["--queries", "absent"]).exits_with(3);
    let done = done.prints("INVALID").prints("were not NOERROR").prints("NXDOMAIN");
    assert!(done.stdout.contains(".melmac.univ"), "no example of a query: {done}");
    let found = records(&room.results());
    let [RunRecord { status: RunStatus::Invalid { reason }, .. }] = found.as_slice() else {
        panic!("{found:?}{done}");
    };
    assert!(reason.contains("absent") && reason.contains("NXDOMAIN"), "{reason}");
    let wrong = measured(&found[0]).counters.answers.wrong;
    assert_eq!(wrong, measured(&found[0]).counters.outcomes.answered, "{done}");
    report_is_whole(&room.results(), &["load"]);

    // What is expected is not wrong.
    let arguments = ["--queries", "absent", "--expect", "NXDOMAIN", "--results", "expected"];
    load(&room, &target, &arguments).exits_with(0);
}

#[test]
fn nobody_there_is_said_clearly() {
    let room = Room::with_load();
    let free = ports::free([127, 0, 0, 1].into()).unwrap();
    let target = SocketAddr::from(([127, 0, 0, 1], free.plain)).to_string();
    for (transport, further) in [("udp", None), ("tcp", None), ("dot", Some("--insecure"))] {
        let results = format!("results-{transport}");
        let mut arguments = vec!["--transport", transport, "--results", &results];
        arguments.extend(further);
        let done = load(&room, &target, &arguments).exits_with(3);
        done.prints(&format!("FAILED: {target} does not answer")).prints("Connection refused");
    }
}
