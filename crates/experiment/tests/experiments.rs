//! Right experiments, as checked.

use std::fs;
use std::time::Duration;

use dnslab_experiment::{
    BUILT_IN, Experiment, ExperimentError, Mode, Plan, Queries, Server, ServerKind, Software,
    Verification, check_text, load,
};
use dnslab_wire::{Edns, Transport};

/// A right experiment with overrides.
fn checked(text: &str, sets: &[&str]) -> Experiment {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    check_text(text, &sets).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The example of the design.
const DESIGN: &str = r#"
name = "encryption"
question = "What does encrypting DNS cost?"
baseline = "udp"

[server]
kind = "bind"                       # embedded | bind | knot | nsd | unbound | ... | external
zone = { name = "melmac.univ", records = 1_000, ttl = "1s" }

[load]
clients = 4
outstanding = 100                   # closed loop, per client; or: rate = 50_000
duration = "10s"
warm_up = "2s"
timeout = "2s"

[repeat]
runs = 5
seed = 1

[[variant]]
name = "udp"
load.transport = "udp"

[[variant]]
name = "dot"
load.transport = "dot"
"#;

#[test]
fn the_example_of_the_design_is_right() {
    let experiment = checked(DESIGN, &[]);
    assert_eq!((experiment.runs, experiment.seed, experiment.margin), (5, 1, 0.02));
    let dot = experiment.variant("dot").unwrap();
    assert_eq!(dot.server.kind(), ServerKind::Bind);
    assert_eq!(dot.server.verification, Some(Verification::RunAuthority));
    assert_eq!(dot.server.zone.records, 1_000);
    assert_eq!(dot.load.transport, Transport::Dot);
    assert_eq!(dot.load.mode, Mode::Closed { outstanding: 100 });
    assert_eq!(dot.load.queries, Queries::Zone);
    assert_eq!(dot.load.horizon, Duration::from_micros(50));
    assert_eq!((dot.expect.rcode, dot.expect.wrong_limit), (0, 0.001));
    assert_eq!(experiment.variant("udp").unwrap().server.verification, None);
}

#[test]
fn built_ins_are_right_and_short() {
    for (name, _) in BUILT_IN {
        let (experiment, source) = load(name, &[]).unwrap();
        assert_eq!(experiment.name, name);
        assert_eq!(source.name, format!("<{name}>"));
        let plan = Plan::new(&experiment, &[]);
        assert!(plan.estimated < Duration::from_secs(60), "{:?}", plan.estimated);
    }
    let (experiment, _) = load("encryption", &[]).unwrap();
    let names: Vec<&str> = experiment.variants.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["udp", "tcp", "dot"]);
    assert_eq!(Plan::new(&experiment, &[]).cases.len(), 15);
}

#[test]
fn the_nearer_layer_wins() {
    let text = "name = \"x\"\nload = { outstanding = 7, clients = 9 }\n\
                [[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nload.rate = 2_000\n";
    let modes =
        |sets: &[&str]| checked(text, sets).variants.iter().map(|it| it.load.mode).collect();
    let closed = |outstanding| Mode::Closed { outstanding };
    let open = |rate_qps, pace| Mode::Open { rate_qps, pace };
    let check = |sets: &[&str], expected: [Mode; 2]| {
        let modes: Vec<Mode> = modes(sets);
        assert_eq!(modes, expected, "with {sets:?}");
    };
    use dnslab_traffic::Pace::{Constant, Poisson};
    check(&[], [closed(7), open(2_000.0, Constant)]);
    check(&["load.outstanding=8"], [closed(8), open(2_000.0, Constant)]);
    check(&["load.rate=500"], [open(500.0, Constant), open(2_000.0, Constant)]);
    check(&["load.rate=500", "load.rate=600"], [open(600.0, Constant), open(2_000.0, Constant)]);
    check(&["variant.b.load.outstanding=5"], [closed(7), closed(5)]);
    check(
        &["variant.b.load.rate=5", "variant.b.load.pace=poisson"],
        [closed(7), open(5.0, Poisson)],
    );
}

#[test]
fn servers_are_complete() {
    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\n";
    let target = |sets: &[&str]| match &checked(text, sets).variants[0].server.server {
        Server::External { target, .. } => target.to_string(),
        other => panic!("{other:?}"),
    };
    let check = |sets: &[&str], expected: &str| {
        let sets: Vec<&str> = [&["server.kind=external"], sets].concat();
        assert_eq!(target(&sets), expected, "with {sets:?}");
    };
    check(&["server.address=192.0.2.1"], "192.0.2.1:53");
    check(&["server.address=192.0.2.1:5300"], "192.0.2.1:5300");
    check(&["server.address=2001:db8::1", "server.port=5300"], "[2001:db8::1]:5300");
    check(&["server.address=[::1]:5300", "variant.a.server.port=54"], "[::1]:54");
    let dot = ["load.transport=dot", "server.insecure=true", "server.address=::1"];
    check(&dot, "[::1]:853");
    check(&[&dot[..], &["server.dot_port=8853"]].concat(), "[::1]:8853");

    let knot = checked(text, &["server.kind=knot", "server.cpus=0,1", "server.binary=knotd-3.5"]);
    let Server::Installed { software, process, binary, .. } = &knot.variants[0].server.server
    else {
        panic!("{knot:?}");
    };
    assert_eq!((*software, process.cpus.as_slice()), (Software::Knot, &[0, 1][..]));
    assert_eq!(binary.as_deref(), Some(std::path::Path::new("knotd-3.5")));
}

#[test]
fn edns_is_sent_when_asked_for() {
    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\n";
    let check = |sets: &[&str], expected| {
        assert_eq!(checked(text, sets).variants[0].load.options.edns, expected, "with {sets:?}");
    };
    check(&[], None);
    check(&["load.dnssec_ok=true"], Some(Edns { payload_size: 1232, dnssec_ok: true }));
    check(&["load.edns_payload=512"], Some(Edns { payload_size: 512, dnssec_ok: false }));
}

#[test]
fn files_are_looked_for_beside_the_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let text = "name = \"x\"\nload.queries = \"names.txt\"\n[[variant]]\nname = \"a\"\n";
    fs::write(&path, text).unwrap();
    let name = path.to_str().unwrap();

    let error = load(name, &[]).unwrap_err().to_string();
    assert!(error.contains("there is no query file `names.txt`"), "{error}");
    assert!(error.contains("x.toml:2:"), "{error}");

    let queries = folder.path().join("names.txt");
    fs::write(&queries, "www.example A\n").unwrap();
    let (experiment, source) = load(name, &[]).unwrap();
    assert_eq!(experiment.variants[0].load.queries, Queries::File(queries));
    assert_eq!(source.text, text);
}

#[test]
fn what_is_not_there_is_said() {
    let check = |name: &str, expected: &str| {
        let error = load(name, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("encrypton", "did you mean `encryption`?");
    check("xyzzy", "there is `encryption`");
    check("no/such.toml", "cannot read the experiment file no/such.toml");
    check("encryption.toml", "by their bare name, there is `encryption`");
    let error = load("encryption", &["load.clients=0".to_owned()]).unwrap_err();
    assert!(matches!(error, ExperimentError::Invalid { .. }));
}
