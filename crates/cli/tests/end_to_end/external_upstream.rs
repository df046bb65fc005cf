//! Forwarders whose upstream runs already.

use std::fs;

use dnslab_record::ExternalUpstream;
use dnslab_results::ResultsDirectory;

use crate::evidence::{measured, report_is_whole, valid_records};
use crate::room::{Room, SHORT};
use crate::running_server::{RunningUnbound, queries};

/// Name, server and transport to the upstream.
const VARIANTS: [(&str, &str, &str); 5] = [
    ("dnsmasq-udp", "dnsmasq", "udp"),
    ("unbound-udp", "unbound", "udp"),
    ("kresd-udp", "knot-resolver", "udp"),
    ("unbound-dot", "unbound", "dot"),
    ("kresd-dot", "knot-resolver", "dot"),
];

/// The name in the certificate of the upstream.
const NAME: &str = dnslab_lab::certificate::NAME;

/// Writes an experiment in which all of them forward to this Unbound.
fn experiment(room: &Room, upstream: &RunningUnbound) {
    room.write("queries", &queries());
    let variants = VARIANTS.map(|(name, kind, transport)| {
        let address = if transport == "dot" { upstream.dot } else { upstream.plain };
        let tls = match transport {
            "dot" => format!("upstream.tls_name = {NAME:?}\nupstream.authority = {:?}\n", upstream.authority),
            _ => String::new(),
        };
        format!(
            "[[variant]]\nname = \"{name}\"\nserver.kind = \"{kind}\"\nupstream.address = \"{address}\"\n\
             upstream.transport = \"{transport}\"\n{tls}"
        )
    });
    room.experiment(&format!(
        "repeat.runs = 1\nlab.hosts = \"auto\"\nupstream.kind = \"external\"\n{SHORT}queries = \"queries\"\n{}",
        variants.concat()
    ));
}

#[test]
fn forwarders_ask_an_upstream_that_runs_already_and_the_report_names_it() {
    let room = Room::with_load();
    let upstream = RunningUnbound::start(&room.path().join("unbound"));
    experiment(&room, &upstream);
    let plan = room.dnslab(&["plan", "./experiment.toml"]).exits_with(0);
    let dot = format!("external at {} ({NAME}), asked over dot", upstream.dot);
    plan.prints(&dot).prints("all on the loopback interface");
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let results = room.results();
    for record in valid_records(&results, VARIANTS.len()) {
        let (_, kind, transport) =
            VARIANTS.into_iter().find(|(name, ..)| *name == record.variant).unwrap();
        let counters = &measured(&record).counters;
        assert_eq!((counters.outcomes.lost(), counters.answers.wrong), (0, 0), "{kind}{done}");
        assert!(counters.outcomes.answered > 0, "{kind}{done}");
        let is_dot = transport == "dot";
        let expected = ExternalUpstream {
            addresses: vec![if is_dot { upstream.dot } else { upstream.plain }],
            transport: transport.to_owned(),
            tls_name: is_dot.then(|| NAME.to_owned()),
            service: None,
        };
        assert_eq!(record.server.upstream, Some(expected), "{kind}{done}");
        // Nobody knows what it did.
        assert!(
            record.watched.chain.is_empty() && record.testbed.is_none_or(|all| !all.namespaces),
            "{kind}{done}"
        );
    }
    report_is_whole(&results, &VARIANTS.map(|(name, ..)| name));
    names_it(&results, &format!("external {}", upstream.plain));
    names_it(&results, &format!("external {} ({NAME})", upstream.dot));
    let row = written(&results, "table.md");
    let row =
        row.lines().find(|line| line.contains(&format!("upstream (external {}", upstream.dot)));
    let unknown =
        row.expect("a row").split(" | ").filter(|cell| cell.trim_end_matches(" |") == "-").count();
    assert!(unknown >= 7, "{row:?}");
}

fn written(results: &ResultsDirectory, name: &str) -> String {
    fs::read_to_string(results.path().join(name)).unwrap()
}

#[track_caller]
fn names_it(results: &ResultsDirectory, text: &str) {
    for name in ["table.md", "report.html"] {
        assert!(written(results, name).contains(text), "{name} does not have `{text}`");
    }
}

/// A wrong name in its certificate, and nobody at its address, are told before a forwarder is started.
#[test]
fn an_upstream_that_does_not_answer_rightly_is_named() {
    let room = Room::with_load();
    let upstream = RunningUnbound::start(&room.path().join("unbound"));
    experiment(&room, &upstream);
    for (set, transport, address) in [
        (
            "variant.unbound-dot.upstream.tls_name=other.test".to_owned(),
            "dot",
            upstream.dot.to_string(),
        ),
        (
            "variant.unbound-dot.upstream.address=127.0.0.1:1".to_owned(),
            "dot",
            "127.0.0.1:1".to_owned(),
        ),
    ] {
        let arguments = ["run", "./experiment.toml", "--only", "unbound-dot", "--set", &set];
        let done = room.dnslab(&arguments).exits_with(1);
        done.complains(&format!(
            "the external upstream at {address} gives no right answer over {transport}: "
        ));
    }
}
