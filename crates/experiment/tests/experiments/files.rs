//! Built-in experiments and those in files.

use std::fs;
use std::time::Duration;

use dnslab_experiment::{BUILT_IN, ExperimentError, Plan, load};
use dnslab_settings::{ServerChoice, Verification};

#[test]
fn built_ins_are_right_and_those_to_begin_with_are_short() {
    // Those for an external server need what only its users have.
    let of_users = ["cost", "idm"];
    for (name, _) in BUILT_IN.into_iter().filter(|(name, _)| !of_users.contains(name)) {
        let (experiment, source) = load(name, &[]).unwrap();
        assert_eq!(experiment.name, name);
        assert_eq!(source.name, format!("<{name}>"));
        let plan = Plan::new(&experiment, &[]);
        let max_minutes = match name {
            "encryption" | "transports" => 1,
            // Caches are filled.
            "resolvers" => 180,
            _ => 30,
        };
        let max = Duration::from_secs(60 * max_minutes);
        assert!(plan.time.whole() < max, "{name}: {:?}", plan.time);
    }
    let (experiment, _) = load("encryption", &[]).unwrap();
    let names: Vec<&str> =
        experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["udp", "tcp", "dot", "dot-coming-and-going", "dot-quickack"]);
    assert_eq!(Plan::new(&experiment, &[]).cases.len(), 35);
}

/// Without an authority, as its first lines show it.
#[test]
fn the_cost_at_a_rate_needs_an_address_and_an_authority() {
    let sets = [
        "server.address=192.0.2.7".to_owned(),
        "load.clients=20000".to_owned(),
        "load.rate=30000".to_owned(),
    ];
    let missing = load("cost", &sets).unwrap_err();
    let ExperimentError::Invalid { problems, .. } = &missing else { panic!("{missing}") };
    assert!(problems.to_string().contains("how to verify the certificate"), "{missing}");
    let sets = [&sets[..], &["server.insecure=true".to_owned()]].concat();
    let (experiment, _) = load("cost", &sets).unwrap();
    for variant in &experiment.variants {
        let kind = variant.server.kind;
        assert_eq!((variant.load.clients, kind), (20_000, ServerChoice::External));
        assert!(variant.load.mode.rate().is_some());
    }
}

/// As docs/LABORATORY.md shows it, with the zone that it makes.
#[test]
fn the_experiment_for_freeipa_needs_an_address_a_name_and_an_authority() {
    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let sets = [
        "server.address=192.0.2.7".to_owned(),
        "server.tls_name=ipa7.example.test".to_owned(),
        format!("server.authority={authority}"),
    ];
    let (experiment, source) = load("idm", &sets).unwrap();
    assert_eq!((&*experiment.name, &*source.name), ("idm", "<idm>"));
    let names: Vec<&str> =
        experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["udp", "tcp", "dot"]);
    for (variant, port) in experiment.variants.iter().zip([53, 53, 853]) {
        assert_eq!(variant.target(), Some(([192, 0, 2, 7], port).into()));
        let zone = &variant.zone;
        let second = Duration::from_secs(1);
        assert_eq!((&*zone.name, zone.records, zone.ttl), ("dnslab.test", 10_000, second));
    }
    assert_eq!(
        experiment.variant("dot").unwrap().verification(),
        Some(Verification::Authority(authority.into()))
    );
    let document = include_str!("../../../../docs/LABORATORY.md");
    assert!(document.contains("dnslab make zone dnslab.test --records 10000 --ttl 1s"));
    let missing = load("idm", &["server.authority=absent.pem".to_owned()]).unwrap_err();
    assert!(matches!(missing, ExperimentError::Invalid { .. }), "{missing}");
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
    assert_eq!(experiment.variants[0].load.queries, Some(queries));
    assert_eq!(source.text, text);
}

#[test]
fn what_is_not_there_is_said() {
    let check = |name: &str, expected: &str| {
        let error = load(name, &[]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("encrypton", "did you mean `encryption`?");
    check(
        "xyzzy",
        "there are `cluster-dns`, `coredns-restart`, `coredns-sockets`, `cost`, `encryption`, `forwarders`, `forwarders-idle`, `forwarding`, `idm`, `kubernetes-forwarding`, `ndots`, `node-cache`, `node-cache-restart`, `query-log-causes`, `query-logging`, `resolvers`, `scaling`, `transports`, `waiting`",
    );
    check("no/such.toml", "cannot read the experiment file no/such.toml");
    check(
        "encryption.toml",
        "by their bare name, there are `cluster-dns`, `coredns-restart`, `coredns-sockets`, `cost`, `encryption`, `forwarders`, `forwarders-idle`, `forwarding`, `idm`, `kubernetes-forwarding`, `ndots`, `node-cache`, `node-cache-restart`, `query-log-causes`, `query-logging`, `resolvers`, `scaling`, `transports`, `waiting`",
    );
    let error = load("encryption", &["load.clients=0".to_owned()]).unwrap_err();
    assert!(matches!(error, ExperimentError::Invalid { .. }));
}
