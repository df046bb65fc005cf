//! Which experiment a command line describes, as results keep it.

use std::time::Duration;

use dnslab_experiment::BUILT_IN;
use dnslab_settings::{Mode, Rounds, When};

use crate::arguments::{self, Asked, Command};
use crate::exit::Failure;
use crate::{capacity, load, replay, run};

/// Command lines without the program's name. Spaces separate words; `'` encloses a word with spaces. There
/// are no host names and no relative paths: their meaning depends on the machine.
const LINES: &[&str] = &[
    // Each transport.
    "load 192.0.2.7 --results /tmp/results --quiet --metrics-listen 127.0.0.1:9353 --metrics-linger 30s \
     --remote-write http://127.0.0.1:9090/ --remote-write-headers /etc/passwd --remote-write-token /etc/passwd",
    "load 192.0.2.7:5300 --transport tcp --json",
    "load 192.0.2.7 --transport DoT --authority /etc/passwd --tls-name ns1.example.test --plain",
    "load 192.0.2.7:8443 --transport doh2 --insecure --http-method get --http-path /resolve --live",
    "load 192.0.2.7 --transport doq --insecure --early-data",
    "load 192.0.2.7 --transport doh3 --insecure --http-method get --early-data --padding",
    // IPv6.
    "load 2001:db8::7 --clients 3",
    "load [2001:db8::7] --transport doq --insecure",
    "load [2001:db8::7]:8530 --transport dot --insecure --tls-name ns1.example.test",
    // Clients, rates and times.
    "load 192.0.2.7 --outstanding 50 --duration 90s --warm-up 500ms --timeout 750ms --plain",
    "load 192.0.2.7 --rate 20000 --pace poisson --workers 4 --seed 9007199254740993",
    "load 192.0.2.7 --rate steps:10000,20000/5s",
    "load 192.0.2.7 --rate ramp:1000..100000/30s --pace constant",
    "load 127.0.0.1 --connections 2 --outstanding 2 --idle 10s --connect on-demand --sources 127.0.1.0/24",
    "load 192.0.2.7 --truncated ask-over-tcp --receive-time kernel --edns-payload 4096",
    "load 192.0.2.7 --transport tcp --quickack --keepalive --queries-per-connection 20",
    "load 192.0.2.7 --transport tcp --queries-per-connection 20 --connection-quota exact",
    "load 192.0.2.7 --mix tcp:30%,dot:5% --insecure --set server.dot_port=8530",
    "load 192.0.2.7:8530 --transport dot --mix udp:30%,doh2:5%,doq:1% --insecure --udp-port 5300 --doh-port 8443 \
     --doq-port 8531",
    "load 192.0.2.7:8530 --mix dot:5% --insecure --dot-port 8530",
    "load 192.0.2.7 --udp-port 5300 --profile",
    "replay /etc/passwd 192.0.2.7 --factor 2.5 --speed 0.5 --duration 60s --transport doh2 --insecure",
    "replay /etc/passwd 127.0.0.1 --duration 60s --idle 2s --set load.cookies=true --profile",
    "load 192.0.2.7 --rate 100 --attempts 3 --backoff 2 --further 192.0.2.8,[2001:db8::8]:5300 --server-order rotate",
    "replay /etc/passwd 192.0.2.7 --duration 60s --compare-answers [2001:db8::7]:5300",
    "replay /etc/passwd 192.0.2.7:8530 --duration 60s --compare-answers 192.0.2.8 --transport dot --insecure",
    "replay /etc/passwd 192.0.2.7 --duration 60s --capture-server 192.0.2.53,2001:db8::/48,[::1]:5353 \
     --dnstap-messages resolver,forwarder --dnstap-source responses",
    "replay /etc/passwd 192.0.2.7 --duration 60s --capture-ports 53,5353",
    // TLS.
    "load 192.0.2.7 --transport dot --insecure --tls-groups x25519mlkem768,x25519 --tls-versions 1.3",
    "load 192.0.2.7 --transport dot --insecure --tls-records shared --tls-versions 1.2 --resumption off",
    "load 192.0.2.7 --transport dot --insecure --resumption on --padding=468",
    // Populations.
    "load 192.0.2.7 --population typical --clients 20000 --rate 30000 --mix dot:33% --insecure",
    "load 192.0.2.7 --population typical --clients 500 --idle 30s --records 5000",
    "replay /etc/passwd 192.0.2.7 --duration 60s --transport dot --insecure --set load.padding=false",
    "replay /etc/passwd 192.0.2.7 --duration 60s --mix doq:5% --insecure --padding=468",
    "capacity 192.0.2.7 --population typical --from 100",
    // What is asked.
    "load 192.0.2.7 --queries /etc/passwd --recursion-desired --expect NXDOMAIN",
    "load 192.0.2.7 --zone example.test --records 250000 --types A:70,AAAA:25,HTTPS:5 --dnssec-ok",
    "load 192.0.2.7 --zone-file /etc/passwd --set server.zone.name=example.test",
    "load 192.0.2.7 --edns-option 65001:c0ffee --edns-option 3: --cookies",
    "load 192.0.2.7 --client-subnets '10.0.0.0/8 by /24' --tsig hmac-sha512:key.test:c2VjcmV0",
    "load 192.0.2.7 --client-subnets 2001:db8::/48 --tsig-file /etc/passwd",
    "load 192.0.2.7 --set load.selection=uniform --set server.watch=false --set load.batch_delay=0s \
     --set expect.wrong_limit=5% --set repeat.runs=3 \
     --set server.unit=named.service",
    "load 192.0.2.7 --watch admin@ns1.example.net --set hosts.program=/opt/dnslab",
    "capacity 192.0.2.7 --watch ssh:ns1 --set server.pid=12",
    // A server that is started elsewhere.
    "run encryption --on root@ns1.example.net --set server.kind=bind",
    // A load that two hosts share.
    "load 192.0.2.7 --hosts gen1.example.net,ssh:gen2 --set hosts.program=/opt/dnslab",
    "capacity 192.0.2.7 --hosts gen1 --watch ns1",
    // The search for a capacity: the experiment of its first step, and what is sought.
    "capacity 192.0.2.7",
    "capacity 127.0.0.1 --set server.pid=1 --max 500 --pace poisson --step-duration 5s --workers 2",
    "capacity 192.0.2.7 --objective lost<1%,p99.9<50ms,answered>99% --from 5000 --max 2000000 \
     --tolerance 2.5% --repeats 9 --seed 7",
    "capacity [::1]:5300 --transport tcp --objective p99<2ms --from 50 --set load.connections=3 --quickack",
    "capacity 192.0.2.7 --window-sweep --clients 64 --workers 4 --max-window 1024 --repeats 3",
    // Built-in experiments.
    "run",
    "run cost --insecure --set server.address=192.0.2.7 --set load.clients=20000 --set load.rate=30000",
    "run encryption --set server.kind=bind --set variant.dot.load.clients=200 --set repeat.runs=5",
    "run forwarders --set lab.hosts=loopback --set relay.threads=2 --set relay.binary=/bin/sh \
     --set relay.extra=log-queries --set upstream.threads=1 --set upstream.cpus=[0] \
     --set upstream.loss=1% --set upstream.busy=2us --set link.upstream.delay=0s --set server.cpus=[0,1]",
    "run forwarders --set lab.hosts=namespaces --set link.server.delay=5ms --set link.server.jitter=1ms \
     --set link.server.loss=0.1% --set link.server.rate_mbit=100 --set link.upstream.delay=10ms \
     --set link.upstream.jitter=2ms --set link.upstream.loss=1% --set link.upstream.rate_mbit=20",
    "run forwarders-idle --set upstream.idle=2s",
    "run forwarding --set relay.kind=dnsmasq --set upstream.kind=knot --set upstream.binary=/bin/sh \
     --set 'upstream.extra=# nothing'",
    "run idm --set server.address=[2001:db8::7]:5300 --set server.tls_name=ipa7.example.test \
     --set server.authority=/etc/passwd",
    "run kubernetes-forwarding --on kubernetes --set host.server.nodes=pool=dns --set hosts.image=dnslab:1 \
     --set hosts.context=lab --set hosts.namespace=dnslab --set upstream.host=here",
    "run cluster-dns --set hosts.namespace=dnslab --set variant.8-flows.load.clients=16 --set load.rate=500",
    "run coredns-restart --set server.image=coredns:1 --set event.at=3s --set server.service=coredns-abrupt",
    "run coredns-sockets --set host.server.cpus=8 --set variant.2-sockets.server.extra=multisocket",
    "run ndots --set load.search=example.test --set load.ndots=3 --set load.names=a,b.example.test.",
    "run node-cache --set host.cache.nodes=a=b --set variant.node-cache.upstream.service=dns",
    "run node-cache-restart --set variant.surging.event.until=true --set server.manifest=node-cache",
    "run query-log-causes --set load.duration=5s --set server.root=/",
    "run query-logging --set server.zone.records=1000 --set variant.both.server.log.size_mib=10 \
     --set server.binary=/bin/sh --set server.threads=3",
    "run resolvers --set load.timeout=1s",
    "run scaling --set server.cpus=0 --without threads-48,threads-64",
    "run transports --set answered_by=p99 --set repeat.margin=5% --set common.rate=20000 \
     --set server.delay=uniform:1ms..9ms --set server.loss=1% --set server.busy=200ns \
     --set server.hold=2ms --set server.serial=100us",
    "run waiting --set load.pace=constant --set load.quickack=open-loop",
    // What is wrong.
    "load 192.0.2.7 --transport dot",
    "load 192.0.2.7:five",
    "load 192.0.2.7 --transport quic",
    "load 192.0.2.7 --watch 'ns1 ns2'",
    "run encryption --set server.host=ns1",
    "load 192.0.2.7 --clients 0 --duration 10 --tls-groups x25519 --set load.horizn=1us",
    "load 192.0.2.7 --rate 5 --outstanding 5",
    "load 192.0.2.7 --factor 2 --mix udp:30%",
    "replay /etc/passwd 192.0.2.7 --clients 5 --rate 7 --types A --duration 1s --factor 0",
    "replay /etc/passwd 192.0.2.7 --duration 1s --compare-answers 192.0.2.8:dns",
    "replay /etc/passwd 192.0.2.7 --duration 1s --compare-answers 192.0.2.8 --set compare.answers=no",
    "load 192.0.2.7 --set compare.answers=true --rate 100",
    "replay /etc/passwd 192.0.2.7 --duration 1s --capture-server 192.0.2.53:5353 --capture-ports 53",
    "replay /etc/passwd 192.0.2.7 --duration 1s --capture-server ns1 --capture-ports dns \
     --dnstap-messages clients --dnstap-source both",
    "replay /etc/passwd 192.0.2.7 --duration 1s --padding",
    "load 192.0.2.7:5300 --udp-port 5301",
    "load 192.0.2.7 --capture-server 192.0.2.53 --dnstap-messages auth",
    "load 192.0.2.7 --population typical --rate 10 --pace poisson",
    "load 192.0.2.7 --population /nowhere/population.toml",
    "load 192.0.2.7 --queries /nowhere/queries.txt --tsig-file /nowhere/key",
    "load 192.0.2.7 --seed 18446744073709551615",
    "load 192.0.2.7 --sources 127.0.1.0/24",
    "capacity 192.0.2.7 --from 100 --max 50",
    "capacity 192.0.2.7 --set repeat.profile=true",
    "capacity 192.0.2.7 --window-sweep --population typical",
    "capacity 192.0.2.7 --objective p99<10s",
    "run encrypton",
    "run encryption --set server.kind=bnid --set variant.quic.load.clients=4",
];

#[test]
fn command_lines_describe_experiments() {
    let answers =
        LINES.iter().map(|line| format!("$ dnslab {line}\n\n{}\n", answer(line).trim_end()));
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("command_lines", answers.collect::<Vec<_>>().join("\n"));
    });
}

/// The experiment of a command line as TOML, or the error.
fn answer(line: &str) -> String {
    let words = std::iter::once("dnslab".to_owned()).chain(words(line));
    match arguments::parse(words) {
        Ok(arguments) => experiment(arguments.command.unwrap_or_default())
            .unwrap_or_else(|failure| format!("{:?}: {}", failure.exit, failure.error)),
        Err(error) => error.to_string(),
    }
}

fn experiment(command: Command) -> Result<String, Failure> {
    match command {
        Command::Load(arguments) => Ok(load::experiment(&arguments)?.to_toml()),
        Command::Replay(arguments) => Ok(replay::experiment(&arguments)?.to_toml()),
        Command::Run(arguments) => Ok(run::experiment(&arguments)?.0.to_toml()),
        Command::Capacity(arguments) => {
            let plan = capacity::plan(&arguments)?;
            let first = plan.first_experiment().map_err(capacity::failure)?;
            let sought = serde_json::to_string_pretty(&plan.sought)?;
            Ok(format!("{}\n{sought}", first.to_toml()))
        }
        other => panic!("{other:?} describes no experiment"),
    }
}

fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn command_lines_have_every_option_and_every_built_in_experiment() {
    let given: Vec<String> = LINES.iter().flat_map(|line| words(line)).collect();
    for (name, _) in BUILT_IN {
        assert!(given.iter().any(|word| word == name), "no command line has `run {name}`");
    }
    let program = arguments::program();
    for command in ["load", "capacity"] {
        for option in program.find_subcommand(command).unwrap().get_arguments() {
            let Some(name) = option.get_long().map(|name| format!("--{name}")) else { continue };
            let is_given = given.iter().any(|word| word.split('=').next() == Some(&name));
            assert!(is_given, "no command line has `{command} {name}`");
        }
    }
}

/// A setting is the only thing in which a session beside the others differs.
#[test]
fn a_session_beside_is_as_long_as_those_that_are_published() {
    let asked = Asked { publish: true, ..Asked::default() };
    let (published, _) = asked.experiment().unwrap();
    let (beside, _) = asked.experiment_with(&["load.batch_delay=0s".to_owned()]).unwrap();
    assert_eq!((beside.repeat.sessions, beside.repeat.runs), (5, Rounds::Count(30)));
    assert_eq!(beside.common, published.common);
    for (own, other) in beside.variants.iter().zip(&published.variants) {
        assert_eq!(own.load.batch_delay, Duration::ZERO);
        let mut alike = own.load.clone();
        alike.batch_delay = other.load.batch_delay;
        assert_eq!((alike.duration, &alike), (Duration::from_secs(30), &other.load));
    }
}

/// What a pilot has found goes before the length that is published without it.
#[test]
fn the_length_that_a_pilot_found_is_that_of_the_sessions() {
    let asked = Asked { publish: true, ..Asked::default() };
    let found = ["load.warm_up=2s", "load.duration=90s"].map(str::to_owned);
    let (experiment, _) = asked.experiment_with(&found).unwrap();
    for variant in &experiment.variants {
        let lengths = (variant.load.warm_up, variant.load.duration);
        assert_eq!(lengths, (Duration::from_secs(2), Duration::from_secs(90)));
    }
}

#[test]
fn an_experiment_whose_variants_have_their_own_loads_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    let variant = |name: &str, clients: u32| {
        let load = format!("clients = {clients}, duration = \"1s\", batch_delay = \"0s\"");
        format!("[[variant]]\nname = \"{name}\"\nload = {{ {load} }}\n")
    };
    let text = format!("name = \"own\"\n{}{}", variant("few", 4), variant("many", 40));
    std::fs::write(&path, text).unwrap();
    let asked =
        Asked { experiment: path.to_str().unwrap().to_owned(), publish: true, ..Asked::default() };
    let (experiment, _) = asked.experiment().unwrap();
    assert_eq!(experiment.repeat.sessions, 5);
    assert_eq!(experiment.variants[1].load.duration, Duration::from_secs(1));
    assert_eq!(asked.sessions_beside(&experiment), [""; 0]);
}

/// `-h` fits a screen, and leaves out nothing that `--help` does not have.
#[test]
fn the_usual_options_fit_a_screen() {
    let mut program = arguments::program().term_width(100);
    program.build();
    for command in ["load", "run", "replay"] {
        let command = program.find_subcommand_mut(command).unwrap();
        let (short, long) =
            (command.render_help().to_string(), command.render_long_help().to_string());
        let lines = short.lines().count();
        assert!(
            (24..=40).contains(&lines),
            "{} -h has {lines} lines:\n{short}",
            command.get_name()
        );
        assert!(short.contains("--help"), "{short}");
        let shown = command.get_arguments().filter(|option| !option.is_hide_set());
        for option in shown.filter_map(clap::Arg::get_long) {
            assert!(long.contains(&format!("--{option}")), "--{option} is not in the help");
        }
    }
}

/// What a capture says itself is no option of `replay`, and all others are.
#[test]
fn the_help_of_replay_has_what_it_takes() {
    let parsed = arguments::parse(["dnslab", "load", "192.0.2.7"]).unwrap();
    let Command::Load(load) = parsed.command.unwrap() else { panic!("no load") };
    let mut variant = load::experiment(&load).unwrap().variants.remove(0);
    variant.load.mode = Mode::Capture("a.pcap".into());
    let program = arguments::program();
    let replay = program.find_subcommand("replay").unwrap();
    for key in dnslab_settings::keys() {
        let Some(flag) = key.flag else { continue };
        let options = replay.get_arguments();
        let option =
            options.into_iter().find(|option| option.get_long() == Some(flag.name)).unwrap();
        let is_refused = key.when.iter().any(|when| match when {
            When::Variant(condition) => condition.check(&variant).is_err_and(|unused| {
                ["capture says", "of a capture"].iter().any(|why| unused.why.contains(why))
            }),
            When::Transport { .. } | When::Server(_) => false,
        });
        assert_eq!(option.is_hide_set(), is_refused, "--{}", flag.name);
    }
}

#[track_caller]
fn check_joined(line: &str, expected: &str) {
    let words = line.split(' ').map(Into::into).collect();
    let joined = crate::arguments::with_json_forms(words);
    let joined: Vec<_> = joined.iter().map(|word| word.to_string_lossy()).collect();
    assert_eq!(joined.join(" "), expected);
}

#[test]
fn a_form_of_json_is_a_word_behind_its_option_or_a_part_of_it() {
    check_joined("load ::1 --json dns-metrics", "load ::1 --json=dns-metrics");
    check_joined("report --json summary results/x", "report --json=summary results/x");
    check_joined("report --json results/x", "report --json results/x");
    check_joined("load dns-metrics --json", "load dns-metrics --json");
}
