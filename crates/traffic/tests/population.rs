//! A population is played, profiled, and played again: what a server and its cache see of both must agree.
//! `docs/POPULATIONS.md` states the bounds that are held here.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::time::Duration;

use dnslab_traffic::SyntheticZone;
use dnslab_traffic::population::{
    Activity, ActivityDistribution, Kept, LookupKind, Population, PopulationLoad, Profile,
    ProfileNote, Profiler, ProfilerLimits, Zipf, ZoneNames,
};
use dnslab_wire::{Additions, Query, QueryOptions, Transport};
use domain::base::iana::Rtype;

/// What is compared.
#[derive(Debug)]
struct Figures {
    rate_qps: f64,
    /// Mean number of clients with a query in a second.
    active: f64,
    /// Shares of queries whose name and type were asked for within so many seconds before: 1, 10, 60, 300.
    hits: [f64; 4],
    /// Queries for each client that sent any, at these quantiles: 0.25, 0.5, 0.75, 0.9, 0.99.
    queries: [f64; 5],
    /// Clients that sent any.
    clients: f64,
    /// The share of queries of the most frequent type.
    first_type: f64,
}

impl Figures {
    fn mean(all: &[Self]) -> Self {
        let sum =
            |figure: &dyn Fn(&Self) -> f64| all.iter().map(figure).sum::<f64>() / all.len() as f64;
        Self {
            rate_qps: sum(&|one| one.rate_qps),
            active: sum(&|one| one.active),
            hits: std::array::from_fn(|at| sum(&|one| one.hits[at])),
            queries: std::array::from_fn(|at| sum(&|one| one.queries[at])),
            clients: sum(&|one| one.clients),
            first_type: sum(&|one| one.first_type),
        }
    }
}

const TIMES_S: [u64; 4] = [1, 10, 60, 300];

const QUANTILES: [f64; 5] = [0.25, 0.5, 0.75, 0.9, 0.99];

/// Plays a population and takes the figures. Each query goes to the profiler too, if there is one, with its
/// response if `responses` is set.
fn play(
    population: &Population,
    seconds: u64,
    seed: u64,
    mut profiler: Option<&mut Profiler>,
    responses: bool,
) -> Figures {
    let zone = SyntheticZone::named("example.", 10_000_000, Duration::from_secs(1)).unwrap();
    let names = ZoneNames::new(&zone).unwrap();
    let load = PopulationLoad::of(population, Duration::from_secs(seconds), seed);
    let mut last: HashMap<Box<[u8]>, u64> = HashMap::new();
    let mut queries: HashMap<u32, u64> = HashMap::new();
    let mut active: HashSet<(u64, u32)> = HashSet::new();
    let mut types: HashMap<Rtype, u64> = HashMap::new();
    let mut hits = [0_u64; 4];
    let (mut count, mut message) = (0_u64, Vec::new());
    for sent in population.queries(&load, names) {
        count += 1;
        let question = sent.query.question();
        if let Some(before) = last.insert(question.into(), sent.due_ns) {
            for (hit, time_s) in hits.iter_mut().zip(TIMES_S) {
                *hit += u64::from(sent.due_ns - before <= time_s * 1_000_000_000);
            }
        }
        *queries.entry(sent.client).or_default() += 1;
        *types.entry(sent.query.rtype()).or_default() += 1;
        active.insert((sent.due_ns / 1_000_000_000, sent.client));
        if let Some(profiler) = &mut profiler {
            message.clear();
            sent.query.append_to((count * 7) as u16, &Additions::default(), &mut message);
            profiler.observe(sent.due_ns, sent.client, &message, Transport::Udp);
            if responses {
                let is_there = sent.query.to_string().starts_with("host-");
                message[2] |= 0x80;
                message[3] |= if is_there { 0 } else { 3 };
                profiler.observe_response(&message);
            }
        }
    }
    let mut sorted: Vec<u64> = queries.into_values().collect();
    sorted.sort_unstable();
    let quantile = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize] as f64;
    Figures {
        rate_qps: count as f64 / seconds as f64,
        active: active.len() as f64 / seconds as f64,
        hits: hits.map(|hits| hits as f64 / count as f64),
        queries: QUANTILES.map(quantile),
        clients: sorted.len() as f64,
        first_type: types.into_values().max().unwrap() as f64 / count as f64,
    }
}

fn profile(
    population: &Population,
    seconds: u64,
    seed: u64,
    responses: bool,
) -> (Figures, Profile) {
    let mut profiler = Profiler::new(ProfilerLimits::default());
    let figures = play(population, seconds, seed, Some(&mut profiler), responses);
    (figures, profiler.finish().unwrap())
}

/// The figures that are not within the bounds of `docs/POPULATIONS.md`.
fn differences(one: &Figures, two: &Figures) -> String {
    let mut found = String::new();
    let mut ratio = |what: &str, one: f64, two: f64, bound: f64, slack: f64| {
        if (one / two - 1.0).abs() > bound && (one - two).abs() > slack {
            writeln!(found, "{what}: {one} {two}").unwrap();
        }
    };
    ratio("rate", one.rate_qps, two.rate_qps, 0.1, 0.0);
    ratio("active clients", one.active, two.active, 0.15, 0.0);
    ratio("clients", one.clients, two.clients, 0.1, 0.0);
    ratio("first type", one.first_type, two.first_type, 0.05, 0.0);
    for (at, share) in QUANTILES.iter().enumerate() {
        ratio(&format!("queries at {share}"), one.queries[at], two.queries[at], 0.3, 2.0);
    }
    for (at, time_s) in TIMES_S.iter().enumerate() {
        let (one, two) = (one.hits[at], two.hits[at]);
        if (one - two).abs() > 0.03 {
            writeln!(found, "hits at {time_s} s: {one:.3} {two:.3}").unwrap();
        }
    }
    found
}

fn homes() -> Population {
    Population { clients: 800, rate_qps: 150.0, ..Population::typical() }
}

/// Few clients that are all busy, and short bursts.
fn office() -> Population {
    let mut population = Population { clients: 80, rate_qps: 150.0, ..Population::typical() };
    population.activity.distribution = ActivityDistribution::LogNormal { spread: 0.6 };
    (population.bursts.lookups_median, population.bursts.lookups_spread) = (1.3, 0.9);
    (population.bursts.gap_median, population.bursts.gap_spread) =
        (Duration::from_millis(200), 1.0);
    population.bursts.silence_shape = 1.0;
    population.names.popular = Zipf { count: 20_000, exponent: 1.2 };
    population
}

/// Two forwarders with many clients behind them, beside others of very different activity; many names that are
/// never asked for again.
fn forwarders() -> Population {
    let mut population = Population { clients: 1_000, rate_qps: 200.0, ..Population::typical() };
    population.activity = Activity {
        distribution: ActivityDistribution::Pareto { shape: 1.3 },
        busiest: vec![0.3, 0.15],
    };
    population.names.popular = Zipf { count: 200_000, exponent: 0.75 };
    population.names.random_share = 0.2;
    population.lookups.kinds = vec![
        LookupKind { types: vec![Rtype::A], weight: 80.0 },
        LookupKind { types: vec![Rtype::AAAA], weight: 20.0 },
    ];
    population
}

/// Most clients send nothing at all in the time.
fn quiet() -> Population {
    let mut population = Population { clients: 6_000, rate_qps: 60.0, ..Population::typical() };
    population.activity.distribution = ActivityDistribution::LogNormal { spread: 1.0 };
    population
}

#[track_caller]
fn check(population: &Population, seconds: u64, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let (one, profile) = profile(population, seconds, seed, true);
        // The mean of several, so that less of a difference is chance.
        let again =
            |number| play(&profile.population, seconds, 1_000 + 10 * seed + number, None, false);
        let two = Figures::mean(&(0..3).map(again).collect::<Vec<_>>());
        let found = differences(&one, &two);
        let fitted = profile.population.to_toml();
        assert!(
            found.is_empty(),
            "seed {seed}:\n{found}{one:?}\n{two:?}\n{fitted}\n{:?}",
            profile.notes
        );
    }
}

#[test]
fn homes_are_played_again() {
    check(&homes(), 400, 0..3);
}

#[test]
fn an_office_is_played_again() {
    check(&office(), 400, 0..3);
}

#[test]
fn forwarders_are_played_again() {
    check(&forwarders(), 400, 0..3);
}

#[test]
fn quiet_clients_are_played_again() {
    check(&quiet(), 400, 0..3);
}

/// Messages of a population, with ids that differ.
fn messages(population: &Population, seconds: u64, seed: u64) -> Vec<(u64, u32, Vec<u8>)> {
    let zone = SyntheticZone::named("example.", 10_000_000, Duration::from_secs(1)).unwrap();
    let load = PopulationLoad::of(population, Duration::from_secs(seconds), seed);
    let queries = population.queries(&load, ZoneNames::new(&zone).unwrap());
    let message = |(id, sent): (u64, dnslab_traffic::ClientQuery)| {
        let mut message = Vec::new();
        sent.query.append_to((id * 7) as u16, &Additions::default(), &mut message);
        (sent.due_ns, sent.client, message)
    };
    (0..).zip(queries).map(message).collect()
}

fn profile_of(limits: ProfilerLimits, messages: &[(u64, u32, Vec<u8>)]) -> Profile {
    let mut profiler = Profiler::new(limits);
    for (at_ns, client, message) in messages {
        profiler.observe(*at_ns, client, message, Transport::Udp);
    }
    profiler.finish().unwrap()
}

#[test]
fn the_same_messages_give_the_same_profile() {
    let messages = messages(&homes(), 60, 1);
    let profile = profile_of(ProfilerLimits::default(), &messages);
    assert_eq!(profile, profile_of(ProfilerLimits::default(), &messages));
    // What was found can be written down.
    assert_eq!(profile.population.to_toml().parse(), Ok(profile.population));
}

#[test]
fn without_responses_nothing_is_said_of_missing_names() {
    let profile = profile_of(ProfilerLimits::default(), &messages(&homes(), 60, 1));
    assert!(profile.notes.contains(&ProfileNote::Kept(Kept::Missing)), "{:?}", profile.notes);
    let (found, typical) = (profile.population.names, Population::typical().names);
    assert_eq!((found.missing_share, found.missing), (typical.missing_share, typical.missing));
}

#[test]
fn shares_are_found() {
    let mut population = forwarders();
    population.names.missing_share = 0.1;
    population.names.missing = Zipf { count: 300, exponent: 1.0 };
    population.stubs.edns = 0.6;
    population.stubs.dnssec_ok = 0.5;
    population.stubs.recursion_desired = 0.8;
    let (_, profile) = profile(&population, 300, 1, true);
    let found = &profile.population;
    let close = |what: &str, one: f64, two: f64, bound: f64| {
        assert!((one - two).abs() < bound, "{what}: {one} {two}\n{}", found.to_toml());
    };
    close("missing", found.names.missing_share, 0.1, 0.01);
    close("random", found.names.random_share, 0.2, 0.01);
    close("missing names", f64::from(found.names.missing.count), 300.0, 60.0);
    close("busiest", found.activity.busiest[0], 0.3, 0.03);
    close("next", found.activity.busiest[1], 0.15, 0.02);
    assert_eq!(found.activity.busiest.len(), 2);
    // Of some 1,000 clients.
    close("edns", found.stubs.edns, 0.6, 0.08);
    close("dnssec ok", found.stubs.dnssec_ok, 0.5, 0.1);
    close("recursion desired", found.stubs.recursion_desired, 0.8, 0.06);
    let kinds: Vec<_> =
        found.lookups.kinds.iter().map(|kind| (&kind.types[..], kind.weight)).collect();
    assert_eq!((kinds[0].0, kinds[1].0), (&[Rtype::A][..], &[Rtype::AAAA][..]));
    close("A", kinds[0].1, 80.0, 2.0);
    assert_eq!(found.stubs.payload_sizes[0].0, 1232);
}

#[test]
fn retransmissions_are_no_popularity() {
    let messages = messages(&homes(), 100, 2);
    let mut repeated: Vec<_> = messages
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 10 == 0)
        .map(|(_, (at_ns, client, message))| (at_ns + 5_000_000_000, *client, message.clone()))
        .chain(messages.iter().cloned())
        .collect();
    repeated.sort();
    let (with, without) = (
        profile_of(ProfilerLimits::default(), &repeated),
        profile_of(ProfilerLimits::default(), &messages),
    );
    assert!((with.retransmitted_share - 1.0 / 11.0).abs() < 0.001, "{}", with.retransmitted_share);
    // Chance gives two queries of a client one id and one question now and then.
    assert!(without.retransmitted_share < 0.001, "{}", without.retransmitted_share);
    assert_eq!(
        (with.queries, &with.population.names),
        (without.queries, &without.population.names)
    );
    // Over TLS, a client that repeats a query means it.
    let mut profiler = Profiler::new(ProfilerLimits::default());
    for (at_ns, client, message) in &repeated {
        profiler.observe(*at_ns, client, message, Transport::Dot);
    }
    let profile = profiler.finish().unwrap();
    assert_eq!(profile.retransmitted_share, 0.0);
    assert_eq!(
        profile.population.stubs.transports,
        [(Transport::Dot, profile.clients_seen as f64)]
    );
}

#[test]
fn a_sample_of_clients_and_names_tells_the_same() {
    let messages = messages(&homes(), 300, 3);
    let all = profile_of(ProfilerLimits::default(), &messages);
    let limits = ProfilerLimits { clients: 256, names: 4_096, ..ProfilerLimits::default() };
    let sampled = profile_of(limits, &messages);
    let is_sampled = |note: &ProfileNote| {
        matches!(note, ProfileNote::ClientsSampled { .. } | ProfileNote::NamesSampled { .. })
    };
    assert_eq!(
        sampled.notes.iter().filter(|note| is_sampled(note)).count(),
        2,
        "{:?}",
        sampled.notes
    );
    assert!(!all.notes.iter().any(is_sampled));
    let (sampled, all) = (&sampled.population, &all.population);
    assert_eq!(sampled.rate_qps, all.rate_qps);
    assert_eq!(sampled.lookups, all.lookups);
    let ratio = f64::from(sampled.clients) / f64::from(all.clients);
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
    let exponent = sampled.names.popular.exponent - all.names.popular.exponent;
    assert!(exponent.abs() < 0.15, "{:?} {:?}", sampled.names, all.names);
}

#[test]
fn too_few_queries_are_an_error() {
    let mut profiler = Profiler::new(ProfilerLimits::default());
    let name: domain::base::Name<Vec<u8>> = "www.example.".parse().unwrap();
    let query = Query::new(&name, Rtype::A, &QueryOptions::default()).unwrap();
    for at_ns in 0..99 {
        profiler.observe(at_ns * 1_000_000_000, 1, query.octets(), Transport::Tcp);
    }
    profiler.observe(99_000_000_000, 1, b"no query", Transport::Tcp);
    let error = profiler.clone().finish().unwrap_err().to_string();
    assert_eq!(
        error,
        "99 queries in 98 s: at least 100 queries over at least 1 s are needed; 1 message is no standard query"
    );
    profiler.observe(99_000_000_000, 1, query.octets(), Transport::Tcp);
    let profile = profiler.finish().unwrap();
    assert_eq!(profile.clients_seen, 1);
    assert!(profile.notes.contains(&ProfileNote::Unread { messages: 1 }));
    assert!(profile.notes.contains(&ProfileNote::Kept(Kept::Popular)));
    assert_eq!(profile.population.check(), Ok(()));
    for note in &profile.notes {
        assert!(note.to_string().len() > 20, "{note}");
    }
}

#[test]
fn a_sample_may_be_empty() {
    let messages = messages(&homes(), 30, 4);
    let is_possible = |clients| {
        let limits = ProfilerLimits { clients, names: 1, recent: 1, ..ProfilerLimits::default() };
        let population = profile_of(limits, &messages).population;
        assert_eq!(population.check(), Ok(()), "{}", population.to_toml());
    };
    (1..6).for_each(is_possible);
}
