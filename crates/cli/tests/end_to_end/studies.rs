//! The built-in studies at a small size on real servers, the plan, and servers that are left up.

use std::fs;
use std::path::Path;
use std::process::Command;

use dnslab_analysis::ServerFigures;
use dnslab_record::{ChainPart, CounterSeries, Measured, RunRecord, RunStatus, counter};
use rustix::process::Signal;

use crate::command::{Running, cache, coredns, program};
use crate::evidence::{measured, records, report_is_whole, valid_records};
use crate::processes::{processes_of, wait_for};
use crate::room::Room;

/// Runs a built-in study with these settings, and returns its records.
#[track_caller]
fn study(room: &Room, name: &str, settings: &[&str], runs: usize) -> Vec<RunRecord> {
    let mut arguments = vec!["run", name];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    room.dnslab(&arguments).exits_with(0);
    let results = room.results();
    let records = valid_records(&results, runs);
    let variants: Vec<&str> = records.iter().map(|record| record.variant.as_str()).collect();
    report_is_whole(&results, &variants);
    assert_eq!(processes_of(room.path()), [], "something is left of {name}");
    records
}

fn of<'a>(records: &'a [RunRecord], variant: &str) -> &'a RunRecord {
    records
        .iter()
        .find(|record| record.variant == variant)
        .unwrap_or_else(|| panic!("no {variant}"))
}

/// Queries counted by the server under test during the load, and queries of the load.
fn counted_and_sent(record: &RunRecord) -> (Option<u64>, u64) {
    let measured = measured(record);
    let sent = measured.warm_up.outcomes.due + measured.counters.outcomes.due;
    let counters = record.watched.counters.as_ref();
    (counters.and_then(|counters| counters.growth(counter::QUERIES)), sent)
}

#[test]
fn logs_cost_and_are_weighed() {
    let room = Room::with_load();
    let settings = [
        "server.zone.records=2_000",
        "load.duration=500ms",
        "load.warm_up=100ms",
        "repeat.runs=1",
        // Below what any machine answers, so that nothing is lost and all is counted.
        "load.clients=2",
        "load.outstanding=4",
    ];
    let records = study(&room, "query-logging", &settings, 4);
    for (variant, logs) in [("none", false), ("dnstap", true), ("query-log", true), ("both", true)]
    {
        let record = of(&records, variant);
        let (counted, sent) = counted_and_sent(record);
        assert_eq!(counted, Some(sent), "{variant}: BIND counts every query");
        let octets = record.watched.resources.samples.last().map_or(0, |sample| sample.log_octets);
        assert_eq!(octets > 0, logs, "{variant}: {octets} octets of log");
    }
    let last = |variant| {
        of(&records, variant).watched.resources.samples.last().expect("it was watched").log_octets
    };
    // A line has the time, the client, the name and more: at least 60 octets.
    let (_, sent) = counted_and_sent(of(&records, "query-log"));
    assert!(last("query-log") > 60 * sent, "{} octets for {sent} queries", last("query-log"));
}

/// Each published study in seconds: its table has a figure of this machine beside each that was published.
#[test]
fn published_figures_stand_beside_ours() {
    let small = ["load.duration=1s", "load.warm_up=200ms", "repeat.runs=2", "load.clients=4"];
    for (name, settings) in [
        ("idm", &["load.outstanding=5"][..]),
        ("hybrid-cluster", &["load.outstanding=5"]),
        ("query-log", &["load.outstanding=5", "server.zone.records=2_000"]),
    ] {
        let room = Room::with_load();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/published");
        let file = format!("{folder}/{name}.toml");
        let mut arguments = vec!["run", &file];
        arguments.extend(small.iter().chain(settings).flat_map(|setting| ["--set", setting]));
        room.dnslab(&arguments).exits_with(0);
        let results = room.results();
        let written = |name: &str| fs::read_to_string(results.path().join(name)).unwrap();
        let table = written("table.md");
        let published = table.split("**Published, and here**").nth(1).expect("a table of them");
        let rows: Vec<&str> =
            published.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
        let ours = rows.iter().filter(|row| row.split(" | ").nth(2) != Some("-")).count();
        assert!(rows.len() >= 5 && 2 * ours > rows.len(), "{name}: {published}");
        let page = written("report.html");
        assert!(page.contains("id=\"published\""), "{name}");
    }
}

#[track_caller]
fn octets_per_query(records: &[RunRecord], variant: &str) -> u64 {
    let record = of(records, variant);
    let (counted, sent) = counted_and_sent(record);
    assert_eq!(counted, Some(sent), "{variant}: BIND counts every query");
    let last = record.watched.resources.samples.last().expect("it was watched");
    last.log_octets / sent
}

#[test]
fn each_cause_of_a_query_logs_cost_is_one_variant() {
    let room = Room::with_load();
    let settings = [
        "server.zone.records=2_000",
        "load.duration=5s",
        "load.warm_up=100ms",
        "load.queries_in_all=20_000",
        "repeat.runs=1",
        "load.clients=2",
        "load.outstanding=4",
        // These queries fill it several times.
        "variant.rotated.server.log.size_mib=1",
        "variant.rotated.server.log.versions=1",
    ];
    let needs = [("syslog", "/dev/log"), ("slow-disk", "/mnt/slow-disk"), ("memory", "/dev/shm")];
    let missing = needs.iter().filter(|(_, path)| !Path::new(path).exists()).count();
    let records = study(&room, "query-log-causes", &settings, 17 - missing);
    for variant in ["none", "null", "threads-2", "cpus-2"] {
        assert_eq!(octets_per_query(&records, variant), 0, "{variant}");
    }
    // A line has the client, the name and more: at least 60 octets.
    for variant in ["file-bare", "file", "file-full", "rotated", "stderr", "both", "cpus-2-file"] {
        let octets = octets_per_query(&records, variant);
        assert!(octets > 60, "{variant}: {octets} octets for each query");
    }
    assert!(
        octets_per_query(&records, "file-bare") + 20 < octets_per_query(&records, "file"),
        "the time"
    );
    assert!(
        octets_per_query(&records, "file") + 10 < octets_per_query(&records, "file-full"),
        "queries: info:"
    );
    let rotated = room.results().path().join("runs/rotated-1/server");
    assert!(!rotated.join("query.log.0").exists(), "old files are removed after the run");
}

/// Some servers shorten their time-outs when they are full. These are not full: each client makes one
/// connection, though it asks only every half second.
#[track_caller]
fn connections_are_kept(lines: &str) {
    let room = Room::with_load();
    room.experiment(&format!(
        "{lines}server.threads = 1\n[load]\ntransport = \"dot\"\nclients = 1_000\nrate = 2_000\n\
         timeout = \"20s\"\nwarm_up = \"1s\"\nduration = \"3s\"\n\
         [repeat]\nruns = 1\n[[variant]]\nname = \"kept\"\n"
    ));
    let done = room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let records = valid_records(&room.results(), 1);
    let measured = measured(&records[0]);
    let [before, during] =
        [&measured.warm_up, &measured.counters].map(|phase| phase.connections.full_handshakes);
    assert_eq!(before + during, 1_000, "{done}");
}

#[test]
fn unbound_keeps_the_connections_of_a_thousand_clients() {
    connections_are_kept("server.kind = \"unbound\"\nupstream.kind = \"embedded\"\n");
}

#[test]
fn nsd_keeps_the_connections_of_a_thousand_clients() {
    connections_are_kept("server.kind = \"nsd\"\n");
}

#[test]
fn forwarders_ask_over_tls_and_the_upstream_counts() {
    let room = Room::with_load();
    let settings = ["load.popular_names=40", "load.queries_in_all=40", "repeat.runs=1"];
    let mut settings = settings.to_vec();
    settings.push("variant.kresd-dot-200.upstream.queries_per_connection=10");
    let records = study(&room, "forwarders", &settings, 18);
    for record in &records {
        let variant = &record.variant;
        assert_eq!(measured(record).counters.outcomes.answered, 40, "{variant}");
        let laboratory = record.testbed.as_ref().unwrap_or_else(|| panic!("{variant}"));
        assert!(laboratory.namespaces, "{variant}: the tests run as root");
        assert_eq!(laboratory.links[1].delay_ns, 2_000_000, "{variant}");
        let upstream: &ChainPart =
            record.watched.chain.last().unwrap_or_else(|| panic!("{variant}"));
        let counters = upstream.counters.as_ref().unwrap_or_else(|| panic!("{variant}"));
        // Each name is asked for once, and nothing is in the cache.
        let asked = counters.growth(counter::QUERIES).unwrap_or(0);
        assert!(asked >= 40, "{variant}: {asked} queries came to the upstream");
        let tls = counters.growth(counter::QUERIES_DOT).unwrap_or(0);
        assert_eq!(tls > 0, variant.contains("dot"), "{variant}: {tls} over TLS");
        // No answer can be faster than the link there and back.
        let fastest = measured(record).latency.quantile_ns(0.0).unwrap_or(0);
        assert!(fastest >= 3_900_000, "{variant}: {fastest} ns");
    }
    let chain: Vec<&str> = of(&records, "stubby-dot")
        .watched
        .chain
        .iter()
        .map(|part| part.server.kind.as_str())
        .collect();
    assert_eq!(chain, ["stubby", "embedded"]);
    let connections = |variant| connections_to_upstream(&records, variant);
    assert!(connections("kresd-dot-200") >= 4, "40 queries, 10 on each connection");
    assert!(connections("kresd-dot") < connections("kresd-dot-200"));
    let asked = |variant| {
        let upstream = counted_by_upstream(&records, variant);
        upstream.and_then(|counters| counters.growth(counter::QUERIES)).unwrap_or(0)
    };
    assert!(
        asked("unbound-dot-dnssec") > asked("unbound-dot"),
        "keys and DS records are asked for"
    );
}

#[test]
fn an_upstream_that_closes_idle_connections_gets_more_of_them() {
    let room = Room::with_load();
    // On a busy machine Stubby may give up a handshake, and answers SERVFAIL.
    let settings = [
        "load.popular_names=20",
        "load.queries_in_all=20",
        "repeat.runs=1",
        "expect.wrong_limit=0.2",
    ];
    let records = study(&room, "forwarders-idle", &settings, 7);
    for record in &records {
        assert_eq!(measured(record).counters.outcomes.answered, 20, "{}", record.variant);
    }
    for forwarder in ["unbound", "kresd", "stubby"] {
        let kept = connections_to_upstream(&records, forwarder);
        let closed = connections_to_upstream(&records, &format!("{forwarder}-idle"));
        assert!(kept > 0 && closed > kept, "{forwarder}: {kept} connections, {closed} if idle");
    }
}

/// The connections that a variant's upstream was asked for.
fn connections_to_upstream(records: &[RunRecord], variant: &str) -> u64 {
    let upstream = counted_by_upstream(records, variant);
    upstream.and_then(|counters| counters.total(counter::CONNECTIONS)).unwrap_or(0)
}

/// What the last server of a variant's chain counted.
fn counted_by_upstream<'a>(records: &'a [RunRecord], variant: &str) -> Option<&'a CounterSeries> {
    of(records, variant).watched.chain.last()?.counters.as_ref()
}

#[test]
fn both_legs_of_a_forwarder_are_measured() {
    let room = Room::with_load();
    let program = format!("server.binary={}", coredns().display());
    let settings = [&program, "load.duration=2s", "load.warm_up=200ms", "repeat.runs=1"];
    let records = study(&room, "forwarding", &settings, 4);
    // BIND counts queries over TLS as queries over TCP.
    for (variant, transport) in [("udp", counter::QUERIES_UDP), ("dot", "QryTCP")] {
        let record = of(&records, variant);
        let (counted, sent) = counted_and_sent(record);
        assert_eq!(counted, Some(sent), "{variant}: CoreDNS counts every query");
        let [bind] = record.watched.chain.as_slice() else {
            panic!("{variant}: {:?}", record.watched.chain)
        };
        assert_eq!((bind.server.kind.as_str(), bind.transport.as_str()), ("bind", variant));
        let counters = bind.counters.as_ref().expect("BIND tells what it counted");
        let passed = counters.growth(counter::QUERIES).unwrap_or(0);
        // CoreDNS also probes the health of its upstream.
        assert!(passed >= sent && passed < sent + 50, "{variant}: {passed} of {sent} queries");
        assert!(counters.growth(transport).unwrap_or(0) > 0, "{variant}: {counters:?}");
        let figures = ServerFigures::of_run(record);
        let [clients_ns, leg_ns] =
            [0, 1].map(|at| figures[at].mean_latency_ns.expect("it is counted"));
        // CoreDNS is asked for its counts every 100 ms, so the ends of its time are not those of the window.
        let is_plausible = leg_ns > 0.0 && leg_ns < 3.0 * clients_ns;
        assert!(is_plausible, "{variant}: {leg_ns} of {clients_ns} ns");
        let cached = &of(&records, &format!("{variant}-cached")).watched.chain[0].counters;
        let asked = cached.as_ref().and_then(|counters| counters.growth(counter::QUERIES));
        assert!(asked.is_some_and(|asked| asked < passed / 2), "{variant}: {asked:?} with a cache");
        let window = measured(record).window();
        assert!(bind.resources.cpu_ns(window).is_some_and(|ns| ns > 0), "{variant}");
    }
}

#[test]
fn versions_of_a_resolver_are_compared_under_rising_loads() {
    let versions = ["bind-9-16", "bind-9-18", "bind-9-20"];
    resolve_for_rising_loads("resolver-versions", &versions, &["bind-9.16", "bind-9.20"]);
}

#[test]
fn resolvers_are_compared_under_rising_loads() {
    let resolvers = ["bind", "unbound", "knot-resolver", "pdns-recursor"];
    resolve_for_rising_loads("resolvers", &resolvers, &[]);
}

/// A study of these resolvers under four loads, which are small here, with an empty cache at first.
fn resolve_for_rising_loads(study: &str, resolvers: &[&str], releases: &[&str]) {
    let room = Room::with_load();
    let file = format!("../../experiments/{study}.toml");
    let mut command = Command::new(program());
    command.arg("run").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    if !releases.is_empty() {
        command.env("DNSLAB_CACHE", cache(releases));
    }
    let mut set = |setting: &str| {
        command.args(["--set", setting]);
    };
    [
        "load.duration=1s",
        "load.windows=cold:0s..500ms,warm:500ms..1s",
        "load.popular_names=1_000",
        "load.rate=100",
        "load.clients=200",
        "repeat.runs=1",
        // The machine is shared.
        "expect.lag_limit=30s",
    ]
    .into_iter()
    .for_each(&mut set);
    for (name, factor) in
        resolvers.iter().flat_map(|resolver| [5, 10, 15].map(|factor| (resolver, factor)))
    {
        set(&format!("variant.{name}-x{factor}.load.rate={}", 100 * factor));
        set(&format!("variant.{name}-x{factor}.load.clients={}", 200 * factor));
    }
    Running::start(command, room.path()).finish().exits_with(0);
    let results = room.results();
    let records = records(&results);
    assert_eq!(records.len(), 4 * resolvers.len());
    for record in &records {
        let name = &record.variant;
        assert_eq!(record.status, RunStatus::Valid, "{name}");
        let Measured { windows, counters, latency, .. } = measured(record);
        let [cold, warm] = windows.as_slice() else { panic!("{name}: {windows:?}") };
        let mut both = cold.outcomes;
        both.merge(&warm.outcomes);
        assert_eq!(both, counters.outcomes, "{name}");
        assert_eq!(cold.latency.len() + warm.latency.len(), latency.len(), "{name}");
        assert!(cold.outcomes.answered > 0 && warm.outcomes.answered > 0, "{name}: {windows:?}");
    }
    let sweeps = results.session().unwrap().sweeps;
    let lines: Vec<(&str, usize)> =
        sweeps.iter().map(|line| (line.name.as_str(), line.variants.len())).collect();
    assert_eq!(lines, resolvers.iter().map(|name| (*name, 4)).collect::<Vec<_>>());
    let variants: Vec<&str> = records.iter().map(|record| record.variant.as_str()).collect();
    report_is_whole(&results, &variants);
    let page = fs::read_to_string(results.path().join("report.html")).unwrap();
    for id in ["chart-window-0", "chart-window-1", "chart-sweep-answered", "chart-rcodes"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "no {id}");
    }
    assert!(results.path().join("windows.csv").exists());
    assert_eq!(processes_of(room.path()), []);
}

#[test]
fn a_plan_starts_nothing() {
    let room = Room::quiet();
    let plan = room.dnslab(&["plan", "forwarders", "--set", "link.upstream.loss=1%"]).exits_with(0);
    let plan =
        plan.prints("client ---- server -- 2ms, 1 % lost -- upstream, each a network namespace");
    let plan = plan.prints("variant unbound-udp, the baseline").prints("  relay     Stubby (0.");
    let plan = plan.prints("answers after lognormal:median=1ms,sigma=1, closes after 200 queries");
    assert!(plan.stdout.contains("90 runs, about "), "{plan}");
    assert!(!room.path().join("results").exists());
    let same = room.dnslab(&["run", "forwarders", "--dry-run", "--set", "link.upstream.loss=1%"]);
    assert_eq!(same.exits_with(0).stdout, plan.stdout);
    room.dnslab(&["plan", "no-such"]).exits_with(2).complains("no built-in experiment");
}

#[test]
fn servers_are_left_up_until_the_person_is_done() {
    let room = Room::with_load();
    room.experiment(
        "lab.hosts = \"namespaces\"\nserver.kind = \"unbound\"\nupstream.kind = \"embedded\"\n\
         load = { clients = 1, outstanding = 1, duration = \"300ms\", warm_up = \"0s\", popular_names = 9 }\n\
         repeat.runs = 1\n[[variant]]\nname = \"udp\"\n",
    );
    let mut command = room.start(&["run", "experiment.toml", "--keep"]);
    wait_for(
        "the servers are up",
        || command.so_far(),
        || command.so_far().contains("are up; Ctrl-C ends them").then_some(()),
    );
    let names: Vec<String> = wait_for(
        "the hosts are named",
        || command.so_far(),
        || {
            let text = command.so_far();
            let names: Vec<String> = text
                .lines()
                .filter_map(|line| line.split("ip netns exec ").nth(1)?.split(' ').next())
                .map(str::to_owned)
                .collect();
            (names.len() == 3 && text.contains("upstream: embedded answers")).then_some(names)
        },
    );
    let dig = Command::new("ip")
        .args([
            "netns",
            "exec",
            &names[0],
            "dig",
            "@10.53.1.2",
            "ready.dnslab-laboratory.net",
            "+short",
        ])
        .output()
        .expect("iproute2 and bind9-dnsutils are installed");
    let answer = String::from_utf8_lossy(&dig.stdout).trim().to_owned();
    assert!(answer.parse::<std::net::Ipv4Addr>().is_ok(), "`{answer}`: {}", command.so_far());
    command.signal(Signal::INT);
    command.finish().exits_with(0);
    assert_eq!(processes_of(room.path()), []);
    for name in names {
        assert!(!Path::new("/run/netns").join(&name).exists(), "{name} is left");
    }
}
