//! Right experiments, as checked.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dnslab_settings::{
    CertificateKind, Document, Experiment, Load, Machine, Mode, PopulationSource, PublishedKind,
    Queries, Quickack, ReceiveTime, Records, RightCodes, Rounds, ServerKind, Subnets, TlsVersions,
    Variant, Verification, check_text, render,
};
use dnslab_traffic::population::Population;
use dnslab_traffic::{ClientBehaviour, Connect, Quota, Rate, Truncated, TypeMix};
use dnslab_wire::{Edns, EdnsOption, Method, TlsGroup, Transport};

fn checked(text: &str, sets: &[&str]) -> Experiment {
    check_text(text, sets).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

const DESIGN: &str = r#"
name = "encryption"
question = "What does encrypting DNS cost?"
baseline = "udp"

[server]
kind = "bind"                       # embedded | bind | knot | nsd | unbound | ... | external
zone = { name = "example.test", records = 1_000, ttl = "1s" }

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
    let repeat = &experiment.repeat;
    assert_eq!((repeat.runs, repeat.seed, repeat.margin), (Rounds::Count(5), 1, 0.02));
    let dot = experiment.variant("dot").unwrap();
    assert_eq!(dot.server.kind.started(), Some(ServerKind::Bind));
    assert_eq!(dot.verification(), Some(Verification::RunAuthority));
    assert_eq!(dot.zone.records, 1_000);
    assert_eq!(dot.load.transport, Transport::Dot);
    assert_eq!(dot.load.mode, Mode::Closed { outstanding: 100 });
    assert_eq!(dot.load.asked(), Queries::Zone(TypeMix::default()));
    assert_eq!(dot.load.batch_delay, Duration::from_micros(20));
    assert_eq!((dot.right_codes(), dot.expect.wrong_limit), (RightCodes::One(0), 0.001));
    assert_eq!(experiment.variant("udp").unwrap().verification(), None);
}

#[test]
fn the_nearer_layer_wins() {
    let text = "name = \"x\"\nload = { outstanding = 7, clients = 9 }\n\
                [[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nload.rate = 2_000\n";
    let modes = |sets: &[&str]| {
        checked(text, sets).variants.into_iter().map(|variant| variant.load.mode).collect()
    };
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
    let target = |sets: &[&str]| checked(text, sets).variants[0].target().unwrap().to_string();
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
    let server = &knot.variants[0].server;
    assert_eq!((server.kind.started(), &server.cpus[..]), (Some(ServerKind::Knot), &[0, 1][..]));
    assert_eq!(server.binary.as_deref(), Some(Path::new("knotd-3.5")));
}

#[test]
fn edns_is_sent_when_asked_for() {
    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\n";
    let check = |sets: &[&str], expected| {
        let options = checked(text, sets).variants[0].load.query_options();
        assert_eq!(options.edns, expected, "with {sets:?}");
    };
    check(&[], None);
    check(&["load.dnssec_ok=true"], Some(Edns { dnssec_ok: true, ..Edns::default() }));
    check(&["load.edns_payload=512"], Some(Edns { payload_size: 512, ..Edns::default() }));
}

fn loaded(sets: &[&str]) -> Load {
    checked("name = \"x\"\n[[variant]]\nname = \"a\"\n", sets).variants.remove(0).load
}

#[test]
fn what_queries_carry() {
    let edns = |sets: &[&str]| loaded(sets).query_options().edns;
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

    let signed = |sets: &[&str]| loaded(&[&["server.kind=bind"], sets].concat());
    let key = signed(&["load.tsig=hmac-sha512:a.key:c2VjcmV0"]).tsig.unwrap();
    assert_eq!(key.to_string(), "hmac-sha512:a.key");
    let file = signed(&["load.tsig_file=key.txt"]).tsig_file;
    assert_eq!(file, Some(PathBuf::from("key.txt")));

    let subnets = |text: &str| loaded(&[&format!("load.client_subnets={text}")]).client_subnets;
    let written = |text: &str| Some(Subnets::Written(text.parse().unwrap()));
    assert_eq!(subnets("10.0.0.0/8 by /24"), written("10.0.0.0/8 by /24"));
    assert_eq!(subnets("2001:db8::/56"), written("2001:db8::/56"));
    assert_eq!(subnets("lists/24"), Some(Subnets::File("lists/24".into())));
    let mix: TypeMix = "A:70,AAAA:30".parse().unwrap();
    assert_eq!(loaded(&["load.types=A:70,AAAA:30"]).asked(), Queries::Zone(mix));
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
        "load.attempts=3",
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
        attempts: 3,
    };
    assert_eq!(load.behaviour(), expected);
    // Truncated answers are asked again over TCP.
    assert_eq!(load.quickack, Quickack::OpenLoop);
    let come_and_go = loaded(&["load.queries_per_connection=20"]).behaviour();
    assert_eq!(come_and_go.queries_per_connection, Some(Quota::Random(20)));
    assert_eq!(load.receive_time, ReceiveTime::Kernel);
    let Some(Rate::Ramp { from, to, over }) = load.mode.rate() else { panic!("{:?}", load.mode) };
    assert_eq!(load.sources.unwrap().len(), 254);
    assert_eq!((*from, *to, *over), (1_000.0, 2_000.0, Duration::from_secs(30)));
}

/// Reads one population, whatever the file.
struct OnePopulation(Population);

impl Machine for OnePopulation {
    fn read_population(&self, path: &Path) -> Result<Population, String> {
        let known = path == Path::new("homes.toml");
        known.then(|| self.0.clone()).ok_or_else(|| "line 7: it is none".to_owned())
    }
}

/// The variant of a population, which is the same when it is written and read again.
fn of_population(lines: &str, machine: &OnePopulation) -> Variant {
    let text = format!(
        "name = \"x\"\nload.population = \"homes.toml\"\n{lines}\n[[variant]]\nname = \"a\""
    );
    let experiment = Document::of_file(&text).unwrap().check(machine).unwrap();
    let written = experiment.to_toml();
    assert_eq!(Document::of_file(&written).unwrap().check(machine).as_ref(), Ok(&experiment));
    experiment.variants.into_iter().next().unwrap()
}

#[test]
fn a_population_completes_what_is_not_written() {
    let mut population = Population { clients: 2_000, rate_qps: 100.0, ..Population::typical() };
    population.names.popular.count = 5_000;
    population.stubs.transports = vec![(Transport::Tcp, 1.0), (Transport::Udp, 3.0)];
    let machine = OnePopulation(population);
    let check = |lines: &str| of_population(lines, &machine);
    let homes = |rate_qps| Mode::Population {
        source: PopulationSource::File("homes.toml".into()),
        rate: Rate::Constant(rate_qps),
    };
    let variant = check("");
    let load = &variant.load;
    assert_eq!((load.clients, &load.mode), (2_000, &homes(100.0)));
    assert_eq!(load.transport, Transport::Udp);
    assert_eq!(load.mix.as_ref().map(ToString::to_string).as_deref(), Some("tcp:25%"));
    assert_eq!((load.connect, load.truncated), (Connect::OnDemand, Truncated::AskOverTcp));
    assert_eq!(load.idle, Some(Duration::from_secs(10)));
    assert_eq!(variant.zone.records, 5_000);
    // What is written holds. More clients are as active as these.
    let variant = check(
        "load.clients = 4_000\nload.transport = \"tcp\"\nload.idle = \"1s\"\nserver.zone.records = 7",
    );
    let load = &variant.load;
    assert_eq!((load.clients, &load.mode), (4_000, &homes(200.0)));
    assert_eq!((load.transport, &load.mix), (Transport::Tcp, &None));
    assert_eq!((load.idle, variant.zone.records), (Some(Duration::from_secs(1)), 7));
    let variant = check("load.rate = 30\nload.mix = \"dot:1%\"\nload.queries = \"names.txt\"");
    let load = &variant.load;
    assert_eq!((load.clients, &load.mode), (2_000, &homes(30.0)));
    assert_eq!(load.mix.as_ref().map(ToString::to_string).as_deref(), Some("dot:1%"));
    assert_eq!(variant.zone.records, 1_000);
    assert_eq!(load.asked(), Queries::File("names.txt".into()));

    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\nload.population = \"other.toml\"";
    let problems = Document::of_file(text).unwrap().check(&machine).unwrap_err();
    assert_eq!(problems.to_string(), "the population file cannot be read: line 7: it is none");
}

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
    let text = Transport::ALL
        .into_iter()
        .fold(text.to_owned(), |text, transport| text + &variant(transport));
    let experiment = checked(&text, &[]);
    for variant in &experiment.variants {
        let (load, name) = (&variant.load, variant.name.as_str());
        let transport = load.transport;
        let is = |transports: &[Transport]| transports.contains(&transport);
        let default = Load::default();
        let is_encrypted = transport.is_encrypted();
        assert_eq!(load.tls_versions == TlsVersions::V13, is_encrypted, "{name}");
        assert_eq!(load.early_data, is_encrypted, "{name}");
        assert_eq!(load.tls_records == Records::Shared, is(&[Transport::Dot]), "{name}");
        let groups = vec![TlsGroup::X25519MlKem768, TlsGroup::X25519];
        let groups = if is_encrypted { groups } else { default.tls_groups.clone() };
        assert_eq!(load.tls_groups, groups, "{name}");
        let has_chain = variant.server.certificate == CertificateKind::Chain;
        assert_eq!(has_chain, is_encrypted, "{name}");
        let http = (Method::Get, "/q".to_owned());
        let http =
            if transport.is_http() { http } else { (default.http_method, default.http_path) };
        assert_eq!((load.http_method, load.http_path.clone()), http, "{name}");
        let again = load.truncated == Truncated::AskOverTcp;
        assert_eq!(again, is(&[Transport::Udp]), "{name}");
        assert_eq!(load.receive_time == ReceiveTime::Kernel, again, "{name}");
        let acknowledges = load.quickack == Quickack::Always;
        assert_eq!(acknowledges, transport.runs_over_tcp() || again, "{name}");
        let edns = load.query_options().edns.unwrap_or_default();
        assert_eq!(edns.padding.is_some(), is_encrypted, "{name}");
        assert_eq!(edns.keepalive, is(&[Transport::Tcp, Transport::Dot]), "{name}");
    }
    assert_eq!(check_text(&experiment.to_toml(), &[]).as_ref(), Ok(&experiment));
}

#[test]
fn secrets_stay_where_they_are() {
    let sets = ["server.kind=bind", "load.tsig=a.key:c2VjcmV0", "load.clients=0"];
    let text = "name = \"x\"\n[[variant]]\nname = \"a\"\n";
    let shown = |sets: &[&str]| match check_text(text, sets) {
        Ok(experiment) => format!("{experiment:?}{}", experiment.to_toml()),
        Err(problems) => render(problems.as_slice(), text, "x.toml"),
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
fn what_was_published_is_kept_in_its_unit() {
    let text = "name = \"x\"\n[[variant]]\nname = \"udp\"\n[[variant]]\nname = \"tcp\"\n\
                [[published]]\nvariant = \"tcp\"\nagainst = \"udp\"\nfigure = \"cpu_per_query\"\n\
                value = \"+2.8us..3.5us\"\nsource = \"a talk\"\ndiffers = \"two hosts\"\n";
    let experiment = checked(text, &[]);
    let [published] = experiment.published.as_slice() else { panic!("{:?}", experiment.published) };
    assert_eq!((published.low, published.high), (2_800.0, 3_500.0));
    assert_eq!(published.kind, PublishedKind::Difference);
    assert_eq!(published.against.as_deref(), Some("udp"));
    assert_eq!(checked(&experiment.to_toml(), &[]), experiment);
}

/// The published studies as files: right, and each with figures to be held against.
#[test]
fn published_studies_have_their_figures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/published");
    let mut studies = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let experiment = checked(&text, &[]);
        assert!(!experiment.published.is_empty(), "{}", experiment.name);
        assert_eq!(checked(&experiment.to_toml(), &[]), experiment);
        studies += 1;
    }
    assert_eq!(studies, 6);
}
