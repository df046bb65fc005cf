//! Right experiments, as checked.

use std::fs;
use std::time::Duration;

use dnslab_experiment::{
    BUILT_IN, Experiment, ExperimentError, LoadSettings, Mode, Plan, Queries, Server, Subnets,
    TlsChoice, Tsig, Verification, check_text, load,
};
use dnslab_lab::{CertificateKind, ServerKind};
use dnslab_load::{HttpSettings, Method, Quickack, ReceiveTime, Records, TlsGroup, TlsVersions};
use dnslab_traffic::{ClientBehaviour, Connect, Quota, Rate, Truncated, TypeMix};
use dnslab_wire::{Edns, EdnsOption, Transport};

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
    assert_eq!(dot.server.kind(), Some(ServerKind::Bind));
    assert_eq!(dot.server.verification, Some(Verification::RunAuthority));
    assert_eq!(dot.server.zone.records, 1_000);
    assert_eq!(dot.load.transport, Transport::Dot);
    assert_eq!(dot.load.mode, Mode::Closed { outstanding: 100 });
    assert_eq!(dot.load.queries, Queries::Zone(TypeMix::default()));
    assert_eq!(dot.load.horizon, Duration::from_micros(20));
    assert_eq!((dot.expect.rcode, dot.expect.wrong_limit), (0, 0.001));
    assert_eq!(experiment.variant("udp").unwrap().server.verification, None);
}

#[test]
fn built_ins_are_right_and_those_to_begin_with_are_short() {
    // Those for a server that runs already need what only its users have.
    let of_users = ["cost", "idm"];
    for (name, _) in BUILT_IN.into_iter().filter(|(name, _)| !of_users.contains(name)) {
        let (experiment, source) = load(name, &[]).unwrap();
        assert_eq!(experiment.name, name);
        assert_eq!(source.name, format!("<{name}>"));
        let plan = Plan::new(&experiment, &[]);
        let most = if ["encryption", "transports"].contains(&name) { 60 } else { 30 * 60 };
        assert!(plan.estimated < Duration::from_secs(most), "{name}: {:?}", plan.estimated);
    }
    let (experiment, _) = load("encryption", &[]).unwrap();
    let names: Vec<&str> = experiment.variants.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["udp", "tcp", "dot", "dot-coming-and-going", "dot-quickack"]);
    assert_eq!(Plan::new(&experiment, &[]).cases.len(), 35);
}

/// As its first lines tell people to give it, without an authority.
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
        assert_eq!((variant.load.clients, variant.server.kind()), (20_000, None));
        assert!(matches!(variant.load.mode, Mode::Open { .. }), "{:?}", variant.load.mode);
    }
}

/// What docs/IDM.md tells people to give, and the zone that it tells them to make.
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
    let names: Vec<&str> = experiment.variants.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["udp", "tcp", "dot"]);
    for (variant, port) in experiment.variants.iter().zip([53, 53, 853]) {
        let Server::External { target, .. } = &variant.server.server else {
            panic!("{:?}", variant.server)
        };
        assert_eq!(target.to_string(), format!("192.0.2.7:{port}"));
        let zone = &variant.server.zone;
        assert_eq!((&*zone.name, zone.records, zone.ttl_s), ("dnslab.test", 10_000, 1));
    }
    assert_eq!(
        experiment.variant("dot").unwrap().server.verification,
        Some(Verification::Authority(authority.into()))
    );
    let document = include_str!("../../../docs/IDM.md");
    assert!(document.contains("dnslab make zone dnslab.test --records 10000 --ttl 1s"));
    let missing = load("idm", &["server.authority=absent.pem".to_owned()]).unwrap_err();
    assert!(matches!(missing, ExperimentError::Invalid { .. }), "{missing}");
}

#[test]
fn the_nearer_layer_wins() {
    let text = "name = \"x\"\nload = { outstanding = 7, clients = 9 }\n\
                [[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nload.rate = 2_000\n";
    let modes =
        |sets: &[&str]| checked(text, sets).variants.into_iter().map(|it| it.load.mode).collect();
    let closed = |outstanding| Mode::Closed { outstanding };
    let open = |rate_qps, pace| Mode::Open { rate: Rate::Constant(rate_qps), pace };
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
    for (transport, port_key, expected) in [
        ("doh2", "server.doh_port=8443", "[::1]:8443"),
        ("doh3", "server.doh_port=8443", "[::1]:8443"),
        ("doq", "server.doq_port=8853", "[::1]:8853"),
    ] {
        let transport = format!("load.transport={transport}");
        let sets = [&transport, "server.insecure=true", "server.address=::1"];
        check(&[&sets[..], &[port_key]].concat(), expected);
        let default = if port_key.contains("doh") { "[::1]:443" } else { "[::1]:853" };
        // The port of another transport says nothing about this one.
        check(&[&sets[..], &["server.dot_port=1"]].concat(), default);
    }

    let knot = checked(text, &["server.kind=knot", "server.cpus=0,1", "server.binary=knotd-3.5"]);
    let Server::Installed { software, process, binary, .. } = &knot.variants[0].server.server
    else {
        panic!("{knot:?}");
    };
    assert_eq!((*software, process.cpus.as_slice()), (ServerKind::Knot, &[0, 1][..]));
    assert_eq!(binary.as_deref(), Some(std::path::Path::new("knotd-3.5")));
}

#[test]
fn edns_is_sent_when_asked_for() {
    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\n";
    let check = |sets: &[&str], expected| {
        assert_eq!(checked(text, sets).variants[0].load.options.edns, expected, "with {sets:?}");
    };
    check(&[], None);
    check(&["load.dnssec_ok=true"], Some(Edns { dnssec_ok: true, ..Edns::default() }));
    check(&["load.edns_payload=512"], Some(Edns { payload_size: 512, ..Edns::default() }));
}

/// The load of the only variant, with these overrides.
fn loaded(sets: &[&str]) -> LoadSettings {
    checked("name = \"x\"\n[[variant]]\nname = \"a\"\n", sets).variants.remove(0).load
}

#[test]
fn what_queries_carry() {
    let edns = |sets: &[&str]| loaded(sets).options.edns;
    let option = EdnsOption { code: 65_001, data: vec![0xc0, 0xff, 0xee] };
    let expected = Edns { options: vec![option], ..Edns::default() };
    assert_eq!(edns(&["load.edns_options=65001:c0ffee"]), Some(expected));
    // What clients add needs an OPT record to be in.
    assert_eq!(edns(&["load.cookies=true"]), Some(Edns::default()));
    assert_eq!(edns(&["load.client_subnets=192.0.2.0/24"]), Some(Edns::default()));
    let padded = |block| Some(Edns { padding: Some(block), ..Edns::default() });
    assert_eq!(edns(&["load.padding=true", "load.transport=dot"]), padded(128));
    assert_eq!(edns(&["load.padding=468", "load.transport=doq"]), padded(468));
    let kept = Some(Edns { keepalive: true, ..Edns::default() });
    assert_eq!(edns(&["load.keepalive=true", "load.transport=tcp"]), kept);

    let tsig = |sets: &[&str]| loaded(&[&["server.kind=bind"], sets].concat()).tsig;
    let Some(Tsig::Written(key)) = tsig(&["load.tsig=hmac-sha512:a.key:c2VjcmV0"]) else {
        panic!("no key");
    };
    assert_eq!(key.to_string(), "hmac-sha512:a.key");
    let file = Tsig::File("key.txt".into());
    assert_eq!(tsig(&["load.tsig_file=key.txt"]), Some(file));

    let subnets = |text: &str| loaded(&[&format!("load.client_subnets={text}")]).subnets;
    let written = |text: &str| Some(Subnets::Written(text.parse().unwrap()));
    assert_eq!(subnets("10.0.0.0/8 by /24"), written("10.0.0.0/8 by /24"));
    assert_eq!(subnets("2001:db8::/56"), written("2001:db8::/56"));
    assert_eq!(subnets("lists/24"), Some(Subnets::File("lists/24".into())));
    let mix: TypeMix = "A:70,AAAA:30".parse().unwrap();
    assert_eq!(loaded(&["load.types=A:70,AAAA:30"]).queries, Queries::Zone(mix));
}

#[test]
fn clients_behave_as_written() {
    let load = loaded(&[
        "load.connections=2",
        "load.queries_per_connection=200",
        "load.connection_quota=exact",
        "load.quickack=open-loop",
        "load.idle=10s",
        "load.connect=on-demand",
        "load.truncated=ask-over-tcp",
        "load.sources=127.0.1.0/24",
        "load.receive_time=kernel",
        "load.rate=ramp:1000..2000/30s",
    ]);
    let expected = ClientBehaviour {
        connections: 2,
        queries_per_connection: Some(Quota::Exact(200)),
        idle: Some(Duration::from_secs(10)),
        connect: Connect::OnDemand,
        truncated: Truncated::AskOverTcp,
    };
    assert_eq!(load.behaviour, expected);
    // Truncated answers are asked again over TCP.
    assert_eq!(load.quickack, Quickack::OpenLoop);
    let come_and_go = loaded(&["load.queries_per_connection=20"]).behaviour;
    assert_eq!(come_and_go.queries_per_connection, Some(Quota::Random(20)));
    assert_eq!(load.sources.unwrap().len(), 254);
    assert_eq!(load.receive_time, ReceiveTime::Kernel);
    let Mode::Open { rate: Rate::Ramp { from, to, over }, .. } = load.mode else {
        panic!("{:?}", load.mode);
    };
    assert_eq!((from, to, over), (1_000.0, 2_000.0, Duration::from_secs(30)));
}

/// Variants share what stands above them, and each takes what its transport has.
#[test]
fn transports_take_what_they_have() {
    let text = "name = \"x\"\n[load]\ntls_versions = \"1.3\"\nearly_data = true\npadding = true\n\
                http_method = \"get\"\nhttp_path = \"/q\"\ntruncated = \"ask-over-tcp\"\n\
                receive_time = \"kernel\"\nkeepalive = true\nquickack = \"always\"\n\
                tls_groups = [\"x25519mlkem768\", \"x25519\"]\ntls_records = \"shared\"\n\
                [server]\ncertificate = \"chain\"\n";
    let variant = |transport: Transport| {
        format!("[[variant]]\nname = \"{transport}\"\nload.transport = \"{transport}\"\n")
    };
    let text = Transport::ALL.into_iter().fold(text.to_owned(), |text, it| text + &variant(it));
    let experiment = checked(&text, &[]);
    for variant in &experiment.variants {
        let (load, name) = (&variant.load, variant.name.as_str());
        let transport = load.transport;
        let is_dot = transport == Transport::Dot;
        let tls = TlsChoice {
            versions: TlsVersions::V13,
            resumption: true,
            early_data: true,
            records: if is_dot { Records::Shared } else { Records::PerQuery },
            groups: vec![TlsGroup::X25519MlKem768, TlsGroup::X25519],
        };
        let http = HttpSettings { method: Method::Get, path: "/q".to_owned() };
        let is_encrypted = transport.is_encrypted();
        assert_eq!(load.tls, if is_encrypted { tls } else { TlsChoice::default() }, "{name}");
        let has_chain = variant.server.certificate == CertificateKind::Chain;
        assert_eq!(has_chain, is_encrypted, "{name}");
        assert_eq!(load.http == http, transport.is_http(), "{name}");
        let again = load.behaviour.truncated == Truncated::AskOverTcp;
        assert_eq!(again, transport == Transport::Udp, "{name}");
        assert_eq!(load.receive_time == ReceiveTime::Kernel, again, "{name}");
        let acknowledges = load.quickack == Quickack::Always;
        assert_eq!(acknowledges, transport.runs_over_tcp() || again, "{name}");
        let edns = load.options.edns.clone().unwrap_or_default();
        assert_eq!(edns.padding.is_some(), transport.is_encrypted(), "{name}");
        let asks = matches!(transport, Transport::Tcp | Transport::Dot);
        assert_eq!(edns.keepalive, asks, "{name}");
    }
    assert_eq!(check_text(&experiment.to_toml(), &[]).as_ref(), Ok(&experiment));
}

/// Nothing that is written or shown holds the secret of a key.
#[test]
fn secrets_stay_where_they_are() {
    let sets = ["server.kind=bind", "load.tsig=a.key:c2VjcmV0", "load.clients=0"];
    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\n";
    let shown = |sets: &[&str]| match check_text(
        text,
        &sets.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(),
    ) {
        Ok(experiment) => format!("{experiment:?}{}", experiment.to_toml()),
        Err(problems) => dnslab_experiment::render(problems.as_slice(), text, "x.toml"),
    };
    for count in [2, 3] {
        assert!(!shown(&sets[..count]).contains("c2VjcmV0"), "{}", shown(&sets[..count]));
    }
    let slip = shown(&["server.kind=bind", "load.tsig=md5:a.key:c2VjcmV0"]);
    assert!(slip.contains("md5:a.key:********"), "{slip}");

    let written = checked(text, &sets[..2]).to_toml();
    let again = check_text(&written, &[]).unwrap_err().to_string();
    assert_eq!(again, "the secret of the TSIG key is not here: results do not hold it");
    let file = checked(text, &["server.kind=bind", "load.tsig_file=/keys/a"]);
    assert_eq!(check_text(&file.to_toml(), &[]), Ok(file));
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
    check(
        "xyzzy",
        "there are `cost`, `encryption`, `forwarders`, `forwarders-idle`, `forwarding`, `idm`, `query-log-causes`, `query-logging`, `transports`, `waiting`",
    );
    check("no/such.toml", "cannot read the experiment file no/such.toml");
    check(
        "encryption.toml",
        "by their bare name, there are `cost`, `encryption`, `forwarders`, `forwarders-idle`, `forwarding`, `idm`, `query-log-causes`, `query-logging`, `transports`, `waiting`",
    );
    let error = load("encryption", &["load.clients=0".to_owned()]).unwrap_err();
    assert!(matches!(error, ExperimentError::Invalid { .. }));
}
