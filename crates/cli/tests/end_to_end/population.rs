//! Populations of clients: played, made as a file, and found in captures that the tests write.

use std::collections::HashMap;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use dnslab_capture::{CaptureWriter, Captured};
use dnslab_record::{LoadMode, OpenPace};
use dnslab_traffic::SyntheticZone;
use dnslab_traffic::population::{Population, PopulationLoad, ZoneNames};
use dnslab_wire::{Additions, Transport};

use crate::evidence::{measured, report_is_whole, valid_records};
use crate::room::Room;
use crate::running_server::{queries, serve};

const SECOND_NS: u64 = 1_000_000_000;

/// Times within which a cache has an answer, seconds.
const TIMES_S: [u64; 3] = [1, 10, 60];

/// What is compared.
#[derive(Debug, Default)]
struct Figures {
    rate_qps: f64,
    clients: f64,
    /// Shares of queries whose name and type were asked for within so many seconds before.
    hits: [f64; 3],
}

/// Plays a population without a server. `send` gets the messages.
fn play(
    population: &Population,
    length: Duration,
    seed: u64,
    send: &mut dyn FnMut(u64, u32, &[u8]),
) -> Figures {
    let zone = SyntheticZone::named("example.test", 10_000_000, Duration::from_secs(1)).unwrap();
    let load = PopulationLoad::of(population, length, seed);
    let (mut last, mut clients) = (HashMap::new(), HashMap::new());
    let (mut hits, mut count, mut message) = ([0_u64; 3], 0_u64, Vec::new());
    for sent in population.queries(&load, ZoneNames::new(&zone).unwrap()) {
        count += 1;
        if let Some(before) = last.insert(sent.query.question().to_vec(), sent.due_ns) {
            for (hits, time_s) in hits.iter_mut().zip(TIMES_S) {
                *hits += u64::from(sent.due_ns - before <= time_s * SECOND_NS);
            }
        }
        *clients.entry(sent.client).or_insert(0_u64) += 1;
        message.clear();
        sent.query.append_to((count * 7) as u16, &Additions::default(), &mut message);
        send(sent.due_ns, sent.client, &message);
    }
    Figures {
        rate_qps: count as f64 / length.as_secs_f64(),
        clients: clients.len() as f64,
        hits: hits.map(|hits| hits as f64 / count as f64),
    }
}

/// Plays a population into a capture.
fn capture(room: &Room, population: &Population, length: Duration) -> (PathBuf, Figures) {
    let path = room.path().join("capture.pcap");
    let mut writer = CaptureWriter::pcap(File::create(&path).unwrap()).unwrap();
    let server = Ipv4Addr::new(192, 0, 2, 53);
    let figures = play(population, length, 1, &mut |due_ns, client, message| {
        let captured = Captured {
            at_ns: 1_700_000_000 * SECOND_NS + due_ns,
            client: SocketAddr::new(Ipv4Addr::from_bits(0x0a00_0000 + client).into(), 40_000),
            server: SocketAddr::new(server.into(), 53),
            transport: Transport::Udp,
            message,
        };
        writer.write(&captured).unwrap();
    });
    writer.finish().unwrap();
    (path, figures)
}

#[test]
fn a_third_of_the_clients_asks_over_tls() {
    let room = Room::with_load();
    room.experiment(
        "repeat.runs = 1\nserver.zone.records = 1_000\n\
         [load]\npopulation = \"typical\"\nclients = 1_500\nrate = 3_000\nmix = \"dot:33%\"\n\
         warm_up = \"500ms\"\nduration = \"1500ms\"\n\
         [[variant]]\nname = \"embedded\"\n[[variant]]\nname = \"bind\"\nserver.kind = \"bind\"\n",
    );
    room.dnslab(&["plan", "./experiment.toml"]).exits_with(0).prints(
        "1500 clients of a typical population, each at its own time, 3000 queries per second",
    );
    room.dnslab(&["run", "./experiment.toml"]).exits_with(0);
    let mut all = Vec::new();
    for record in valid_records(&room.results(), 2) {
        let variant = &record.variant;
        assert_eq!(
            (record.load.transport, &record.load.mix),
            (Some(Transport::Udp), &"dot:33%".parse().ok())
        );
        let LoadMode::Open { rate_qps, pace } = &record.load.mode else {
            panic!("{:?}", record.load.mode)
        };
        assert_eq!((*rate_qps, pace), (3_000.0, &OpenPace::Clients), "{variant}");
        let expected = "1,500 clients of a typical population, 3,000 queries per second on average, for \
                        1,000 names of the zone example.test";
        assert_eq!(record.load.queries, expected);
        let measured = measured(&record);
        let (warm_up, counters) = (&measured.warm_up, &measured.counters);
        // In bursts of 12 queries, the deviation is about 12 %.
        let due = warm_up.outcomes.due + counters.outcomes.due;
        assert!((3_000..9_600).contains(&due), "{variant}: {due}");
        let clients = record.load.clients;
        assert!((150..=1_500).contains(&clients), "{variant}: {clients}");
        // Five deviations of a binomial distribution are at most a fifth of all.
        let opened = warm_up.connections.opened + counters.connections.opened;
        let share = opened as f64 / f64::from(clients);
        assert!((0.13..0.53).contains(&share), "{variant}: {opened} of {clients} over TLS");
        let rcodes = &counters.answers.rcodes;
        let count = |rcode: &str| rcodes.get(rcode).copied().unwrap_or(0);
        assert!(
            count("NOERROR") > 5 * count("NXDOMAIN") && count("NXDOMAIN") > 0,
            "{variant}: {rcodes:?}"
        );
        all.push((due, clients));
    }
    assert_eq!(all[0], all[1], "the variants of a repetition have the same clients");
    report_is_whole(&room.results(), &["embedded", "bind"]);
}

#[test]
fn names_of_a_query_file_are_the_popular_ones() {
    let room = Room::with_load();
    room.write("queries.txt", &queries());
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    let clients = "--population typical --clients 400 --rate 800 --queries queries.txt --warm-up 0s \
                   --duration 1s";
    let words: Vec<&str> = ["load", &target].into_iter().chain(clients.split(' ')).collect();
    room.dnslab(&words).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    assert!(record.load.queries.contains(" for 101 names of "), "{}", record.load.queries);
    let rcodes = &measured(&record).counters.answers.rcodes;
    let count = |rcode: &str| rcodes.get(rcode).copied().unwrap_or(0);
    assert!(count("NOERROR") > 5 * count("NXDOMAIN"), "{rcodes:?}");
}

#[test]
fn a_population_is_made_edited_and_read() {
    let room = Room::quiet();
    let made = room.dnslab(&["make", "population"]).exits_with(0);
    assert_eq!(made.stdout.parse(), Ok(Population::typical()));
    let made = room.dnslab(&["make", "population", "--clients", "50", "--rate", "20"]);
    let population = Population { clients: 50, rate_qps: 20.0, ..Population::typical() };
    assert_eq!(made.exits_with(0).stdout.parse(), Ok(population));
    room.dnslab(&["make", "population", "-o", "homes.toml"]).exits_with(0);
    let again = room.dnslab(&["make", "population", "-o", "homes.toml"]).exits_with(2);
    again.complains("replace it with --force");
    let text = fs::read_to_string(room.path().join("homes.toml")).unwrap();
    room.write("homes.toml", &text.replace("clients = 10000", "clients = 1234"));
    room.experiment("load.population = \"homes.toml\"\n[[variant]]\nname = \"a\"\n");
    let plan = room.dnslab(&["plan", "./experiment.toml"]).exits_with(0);
    plan.prints("1234 clients of the population").prints("1000 queries per second on average");
}

#[test]
fn a_capture_is_profiled_and_played_again() {
    let room = Room::with_load();
    let population = Population { clients: 800, rate_qps: 150.0, ..Population::typical() };
    let length = Duration::from_secs(400);
    let (_, one) = capture(&room, &population, length);
    let done = room.dnslab(&["profile", "capture.pcap"]).exits_with(0);
    let done =
        done.complains("clients, ").complains("only responses tell which names do not exist");
    assert!(done.stdout.starts_with("# found from "), "{done}");
    let found: Population = done.stdout.parse().unwrap();
    let mut two = Figures::default();
    for seed in 0..3 {
        let figures = play(&found, length, 100 + seed, &mut |_, _, _| {});
        two.rate_qps += figures.rate_qps / 3.0;
        two.clients += figures.clients / 3.0;
        for (sum, hits) in two.hits.iter_mut().zip(figures.hits) {
            *sum += hits / 3.0;
        }
    }
    // The bounds that docs/POPULATIONS.md states.
    let is_near = |one: f64, two: f64| (one / two - 1.0).abs() <= 0.1;
    assert!(is_near(one.rate_qps, two.rate_qps), "{one:?} {two:?}");
    assert!(is_near(one.clients, two.clients), "{one:?} {two:?}");
    for (one_hits, two_hits) in one.hits.iter().zip(two.hits) {
        assert!((one_hits - two_hits).abs() <= 0.03, "{one:?} {two:?}");
    }
    // The file is a load.
    room.write("found.toml", &done.stdout);
    let (_running, at) = serve(&room, "127.0.0.1", &[]);
    let target = at(Transport::Udp).to_string();
    let clients = "--population found.toml --warm-up 0s --duration 2s";
    let words: Vec<&str> = ["load", &target].into_iter().chain(clients.split(' ')).collect();
    room.dnslab(&words).exits_with(0);
    let record = valid_records(&room.results(), 1).remove(0);
    let due = measured(&record).counters.outcomes.due;
    // 300 are expected, in bursts of 12.
    assert!((50..1_500).contains(&due), "{due}");
    assert!(u64::from(record.load.clients) <= due);
}

#[test]
fn what_is_wrong_says_so() {
    let room = Room::quiet();
    let load = |words: &str| {
        let words: Vec<&str> =
            ["load", "127.0.0.1:1"].into_iter().chain(words.split(' ')).collect();
        room.dnslab(&words).exits_with(2)
    };
    let text = Population::typical().to_toml().replace("spread = 1.5\n", "spred = 1.5\n");
    room.write("wrong.toml", &text);
    load("--population wrong.toml").complains("wrong.toml, line 8: unknown field `spred`");
    load("--population nowhere.toml").complains("there is no population file `nowhere.toml`");
    let own = "the population says how its clients ask, and when";
    load("--population typical --rate 10 --pace poisson").complains(own);
    load("--population typical --types A").complains(own);
    let profile = |name: &str| room.dnslab(&["profile", name]).exits_with(2);
    profile("wrong.toml").complains("this is no capture that dnslab reads");
    profile("nowhere.pcap").complains("nowhere.pcap");
    let few = Population { clients: 5, rate_qps: 1.0, ..Population::typical() };
    capture(&room, &few, Duration::from_secs(10));
    profile("capture.pcap").complains("capture.pcap");
}

#[test]
fn a_port_belongs_to_a_transport_that_somebody_uses() {
    let room = Room::quiet();
    room.dnslab(&["make", "population", "-o", "population"]).exits_with(0);
    let text = fs::read_to_string(room.path().join("population")).unwrap();
    let encrypted =
        "transports = [{ name = \"dot\", weight = 3.0 }, { name = \"doh2\", weight = 1.0 }]\n";
    // It is the last list.
    let (before, _) = text.split_once("transports = [").unwrap();
    room.write("population", &format!("{before}{encrypted}"));
    let words = ["load", "127.0.0.1:5300", "--population", "population", "--insecure"];
    let complaint =
        "the port in `127.0.0.1:5300` is for UDP and TCP, which no client of the population uses";
    room.dnslab(&words).exits_with(2).complains(complaint).complains("--transport dot");
}
