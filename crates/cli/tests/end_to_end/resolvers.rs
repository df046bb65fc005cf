//! Servers under test that resolve by themselves, in a private Internet.

use std::fs;

use dnslab_record::{RunRecord, counter};
use dnslab_traffic::population::{PopularNames, Population};

use crate::evidence::{measured, report_is_whole, valid_records};
use crate::laboratory::{Traces, marked};
use crate::room::Room;

/// Nothing is wrong with its zones, nothing takes time, and all names exist; a third of the domains are signed.
const SOUND: &str = "seed = 3\n[path]\nmedian = \"0s\"\nanycast_median = \"0s\"\nslow_median = \"0s\"\nloss = 0\n\
                     [faults]\nlame = 0\ndead = 0\nslow = 0\nedns_formerr = 0\nedns_ignored = 0\n\
                     [names]\nabsent = 0\n[dnssec]\ndomains = 0.3\nexpired = 0\n";

/// Each of 40 names is asked for some times.
const RUN: &str = "repeat.runs = 1\nload.clients = 2\nload.outstanding = 2\nload.popular_names = 40\n\
                   load.queries_in_all = 200\nload.duration = \"30s\"\nload.warm_up = \"0s\"\n\
                   load.timeout = \"10s\"\nserver.dnssec = true\nupstream.kind = \"internet\"\n\
                   lab.hosts = \"namespaces\"\n";

/// Writes an experiment with these resolvers, in an Internet that is described in a folder of its own.
fn experiment(room: &Room, description: &str, kinds: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("internet.toml");
    fs::write(&path, description).unwrap();
    let variant = |kind| format!("[[variant]]\nname = \"{kind}\"\nserver.kind = \"{kind}\"\n");
    let variants: String = kinds.iter().map(variant).collect();
    room.experiment(&format!("{RUN}upstream.hierarchy = {path:?}\n{variants}"));
    folder
}

/// By how much a count of the server under test grew.
fn growth(record: &RunRecord, name: &str) -> Option<u64> {
    record.watched.counters.as_ref()?.growth(name)
}

#[test]
fn every_resolver_resolves_in_a_private_internet() {
    let room = Room::with_load();
    let kinds = ["bind", "unbound", "knot-resolver", "pdns-recursor"];
    let _internet = experiment(&room, SOUND, &kinds);
    let done = marked(&room, &["run", "./experiment.toml"]).finish().exits_with(0);
    Traces::of(&room).are_gone(&room);
    let results = room.results();
    for record in &valid_records(&results, kinds.len()) {
        let name = &record.variant;
        let counters = &measured(record).counters;
        let (answered, wrong) = (counters.outcomes.answered, counters.answers.wrong);
        assert_eq!((answered, wrong), (200, 0), "{name}{done}");
        // 40 names are 10 domains, each of which has to be found.
        let sent = growth(record, counter::UPSTREAM_QUERIES);
        assert!(sent.is_none_or(|sent| sent >= 20), "{name}: {sent:?}{done}");
        assert!(growth(record, counter::CACHE_HITS) > Some(0), "{name}{done}");
        let upstream = record.watched.chain.last().unwrap();
        assert_eq!((&*upstream.role, &*upstream.server.kind), ("upstream", "embedded"), "{done}");
        let asked = upstream.counters.as_ref().unwrap().growth(counter::QUERIES);
        assert!(asked > Some(20), "{name}: {asked:?}{done}");
        let addresses = &record.testbed.as_ref().unwrap().hosts[2].addresses;
        assert!(addresses.iter().any(|address| address == "198.18.0.0/15"), "{addresses:?}{done}");
        let folder = results.path().join(format!("runs/{name}-1"));
        for file in ["server/root.hints", "upstream/hierarchy.toml"] {
            assert!(folder.join(file).exists(), "{file}{done}");
        }
    }
    report_is_whole(&results, &kinds);
}

/// The clients of a population ask for names of the Internet that the resolver resolves in. So many of its answers say
/// that a name does not exist as the population has names that do not.
#[test]
fn a_population_has_its_share_of_names_that_do_not_exist() {
    let room = Room::with_load();
    let (missing, random) = (0.2, 0.1);
    let typical = Population::typical();
    let names = PopularNames { missing_share: missing, random_share: random, ..typical.names };
    let population = Population { clients: 300, rate_qps: 300.0, names, ..typical };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("internet.toml");
    fs::write(&file, SOUND).unwrap();
    let clients = folder.path().join("clients.toml");
    fs::write(&clients, population.to_toml()).unwrap();
    room.experiment(&format!(
        "repeat.runs = 1\nload.population = {clients:?}\nload.duration = \"8s\"\nload.warm_up = \"0s\"\n\
         load.timeout = \"10s\"\nserver.dnssec = true\nupstream.kind = \"internet\"\n\
         upstream.hierarchy = {file:?}\nlab.hosts = \"namespaces\"\n\
         expect.wrong_limit = \"100%\"\n\
         [[variant]]\nname = \"bind\"\nserver.kind = \"bind\"\n\
         [[variant]]\nname = \"knot-resolver\"\nserver.kind = \"knot-resolver\"\n\
         [[variant]]\nname = \"few-names\"\nserver.kind = \"pdns-recursor\"\nload.popular_names = 30\n"
    ));
    let done = marked(&room, &["run", "./experiment.toml"]).finish().exits_with(0);
    for record in &valid_records(&room.results(), 3) {
        let name = &record.variant;
        let described = &record.load.queries;
        let known = if name == "few-names" { "30 names" } else { "1,000,000 names" };
        assert!(described.contains(&format!("for {known} of the private Internet")), "{described}");
        let counters = &measured(record).counters;
        let rcodes = &counters.answers.rcodes;
        let count = |rcode: &str| rcodes.get(rcode).copied().unwrap_or(0) as f64;
        let answered = counters.outcomes.answered as f64;
        // A resolver gives up on a name or two where the machine is busy.
        let found = count("NXDOMAIN") + count("NOERROR");
        assert!(found > 800.0 && found > 0.95 * answered, "{name}: {rcodes:?}{done}");
        // A lookup has two queries or three. Five standard deviations of 500 lookups are 0.1.
        let share = count("NXDOMAIN") / found;
        assert!((share - missing - random).abs() < 0.1, "{name}: {share}, {rcodes:?}{done}");
    }
}

#[test]
fn what_no_resolver_can_be_told_ends_before_it_starts() {
    let room = Room::quiet();
    let plan = |text: &str, words: &str| {
        let _internet = experiment(&room, text, &["bind"]);
        room.dnslab(&["plan", "./experiment.toml"]).exits_with(2).complains(words);
    };
    plan("[dnssec]\nroot = false\n", "there is no trust anchor for `server.dnssec`");
    plan("sed = 3\n", "unknown field `sed`");
}
