//! The queries of a population, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::time::Duration;

use dnslab_wire::Query;
use domain::base::iana::Rtype;
use rand::Rng as _;
use rand_distr::{Distribution as _, Exp1};
use rand_xoshiro::SplitMix64;

use super::client::{Draw, Shares, client_stream};
use super::distribution::{LogNormal, Weibull};
use super::{Bursts, MAX_LOOKUPS, NameChoice, Names, Population, Stub};
use crate::ClientQuery;

/// What a population is asked to send.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationLoad {
    /// How many clients, from 1.
    pub clients: u32,
    /// Queries per second of all of them together, above 0: the rate that is expected, not one that is kept.
    pub rate_qps: f64,
    /// For how long.
    pub length: Duration,
    /// One seed gives one sequence of queries.
    pub seed: u64,
    /// Which of the workers, from 0. It has the clients `worker`, `worker + of`, and so on.
    pub worker: u32,
    /// How many workers there are.
    pub of: u32,
}

impl PopulationLoad {
    /// All clients of a population as it describes them, as one worker.
    #[must_use]
    pub fn of(population: &Population, length: Duration, seed: u64) -> Self {
        let (clients, rate_qps) = (population.clients, population.rate_qps);
        Self { clients, rate_qps, length, seed, worker: 0, of: 1 }
    }
}

impl Population {
    /// The queries of the clients of one worker. Each client has random numbers of its own, so all workers
    /// together send the same queries however many they are.
    ///
    /// Clients have their number over all workers. Some never send anything.
    ///
    /// # Panics
    /// When the description or the load is not possible ([`Population::check`]).
    pub fn queries<N: Names>(&self, load: &PopulationLoad, names: N) -> PopulationQueries<N> {
        if let Err(unfit) = self.check() {
            panic!("{unfit}");
        }
        PopulationQueries::new(self.clone(), load, names)
    }
}

/// Queries of a population in order of time. See [`Population::queries`].
///
/// A client that is silent takes 24 octets. One query of its lookups is prepared at a time.
#[derive(Clone, Debug)]
pub struct PopulationQueries<N> {
    names: N,
    population: Population,
    seed: u64,
    pace: Pace,
    what: What,
    /// By the instant of their next burst.
    silent: BinaryHeap<Reverse<Source>>,
    /// By the instant of their next lookup.
    asking: BinaryHeap<Reverse<Burst>>,
    /// Queries of lookups that have begun.
    ready: BinaryHeap<Reverse<Ready>>,
    /// How long sources run before the load begins, nanoseconds. Instants inside count from its start.
    lead_ns: u64,
    /// When the load ends, on that clock.
    end_ns: u64,
}

/// A place where queries come from: a client, or a part of one that is too active to be ever silent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    due_ns: u64,
    random: SplitMix64,
    client: u32,
    /// The mean of what its silences are longer than the shortest, seconds.
    silence_s: Seconds,
}

/// A burst that goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Burst {
    /// Its next lookup is due when this is.
    source: Source,
    /// Lookups that are left, with that one.
    left: u16,
}

/// A query that has its instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ready {
    due_ns: u64,
    client: u32,
    name: NameChoice,
    rtype: u16,
}

/// Single precision keeps a source at 24 octets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds(f32);

impl Eq for Seconds {}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Source {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // What two sources do at one instant does not depend on their order.
        (self.due_ns, self.client).cmp(&(other.due_ns, other.client))
    }
}

impl PartialOrd for Burst {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Burst {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.source.cmp(&other.source)
    }
}

/// A client is split into sources until each is silent for so many times the length of its bursts with the
/// shortest silence.
const SHORTEST_CYCLE: f64 = 4.0;

/// When a source asks.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    lookups: LogNormal,
    gap: LogNormal,
    longest_gap_s: f64,
    silence: Weibull,
    shortest_silence_s: f64,
    /// From one burst to the next without what the silence is longer than the shortest, on average.
    least_cycle_s: f64,
}

impl Pace {
    pub(super) fn new(bursts: &Bursts) -> Self {
        let shortest_silence_s = bursts.silence.as_secs_f64();
        Self {
            lookups: bursts.lookups(),
            gap: bursts.gap(),
            longest_gap_s: shortest_silence_s,
            silence: Weibull::new(bursts.silence_shape),
            shortest_silence_s,
            least_cycle_s: bursts.mean_length_s() + shortest_silence_s,
        }
    }

    /// Into how many sources a client with a burst every so many seconds is split, and the mean of what their
    /// silences are longer than the shortest.
    pub(super) fn sources(&self, cycle_s: f64) -> (u32, f64) {
        let sources = (SHORTEST_CYCLE * self.least_cycle_s / cycle_s).ceil().clamp(1.0, 1e9);
        (sources as u32, cycle_s * sources - self.least_cycle_s)
    }

    /// The mean time from the first lookup of a burst to its last, seconds.
    pub(super) fn mean_length_s(&self) -> f64 {
        self.least_cycle_s - self.shortest_silence_s
    }

    /// The time until the first burst begins, seconds, at an instant that is chosen without regard to it.
    pub(super) fn first_s(&self, silence_s: f64, random: &mut SplitMix64) -> f64 {
        let place = random.random::<f64>() * (self.least_cycle_s + silence_s);
        if place < self.least_cycle_s {
            place
        } else {
            self.least_cycle_s + silence_s * self.silence.draw_remainder(random)
        }
    }

    pub(super) fn lookups(&self, random: &mut SplitMix64) -> u16 {
        // The logarithm of a whole median may come back a little above it.
        (self.lookups.draw(random) - 1e-9).ceil().clamp(1.0, f64::from(MAX_LOOKUPS)) as u16
    }

    /// From one lookup of a burst to the next, seconds.
    pub(super) fn gap_s(&self, random: &mut SplitMix64) -> f64 {
        loop {
            // The median is at most half of the longest: at least every second draw is short enough.
            let gap = self.gap.draw(random);
            if gap <= self.longest_gap_s {
                return gap;
            }
        }
    }

    /// From the last lookup of a burst to the first of the next, seconds.
    pub(super) fn silence_s(&self, mean_s: f64, random: &mut SplitMix64) -> f64 {
        self.shortest_silence_s + mean_s * self.silence.draw(random)
    }
}

/// What a lookup asks for.
#[derive(Clone, Debug)]
struct What {
    /// Weights of the kinds of lookups, each with the sum of those before it, and their sum.
    kinds: Vec<f64>,
    popular: rand_distr::Zipf<f64>,
    missing: rand_distr::Zipf<f64>,
    gap_s: f64,
}

/// The longest time between two queries of one lookup, nanoseconds.
pub(super) const MAX_TOGETHER_NS: u64 = 200_000_000;

impl What {
    fn new(population: &Population) -> Self {
        let mut sum = 0.0;
        let kinds = population.lookups.kinds.iter().map(|kind| {
            sum += kind.weight;
            sum
        });
        let zipf = |names: &super::Zipf| {
            rand_distr::Zipf::new(f64::from(names.count), names.exponent)
                .expect("a set of names that was checked has one, and an exponent from 0")
        };
        Self {
            kinds: kinds.collect(),
            popular: zipf(&population.names.popular),
            missing: zipf(&population.names.missing),
            gap_s: population.lookups.gap.as_secs_f64(),
        }
    }

    fn name(&self, population: &Population, random: &mut SplitMix64) -> NameChoice {
        let names = &population.names;
        let place: f64 = random.random();
        let rank = |zipf: &rand_distr::Zipf<f64>, random: &mut SplitMix64| {
            (zipf.sample(random) as u32).saturating_sub(1)
        };
        if place < names.random_share {
            NameChoice::Random(random.random())
        } else if place < names.random_share + names.missing_share {
            NameChoice::Missing(rank(&self.missing, random))
        } else {
            NameChoice::Popular(rank(&self.popular, random))
        }
    }

    fn types<'a>(&self, population: &'a Population, random: &mut SplitMix64) -> &'a [Rtype] {
        let place = random.random::<f64>() * self.kinds[self.kinds.len() - 1];
        let kind = self.kinds.partition_point(|sum| *sum <= place).min(self.kinds.len() - 1);
        &population.lookups.kinds[kind].types
    }
}

impl<N: Names> PopulationQueries<N> {
    fn new(population: Population, load: &PopulationLoad, names: N) -> Self {
        let PopulationLoad { clients, rate_qps, length, seed, worker, of: workers } = *load;
        assert!(worker < workers, "worker {worker} of {workers} does not exist");
        assert!(clients > 0, "a population without clients sends nothing");
        assert!(
            rate_qps.is_finite() && rate_qps > 0.0,
            "a rate of {rate_qps} queries per second is not possible"
        );
        let pace = Pace::new(&population.bursts);
        // Bursts that go on when the load begins have begun before.
        let lead_s = (4.0 * population.bursts.mean_length_s()).min(60.0);
        let lead_ns = nanoseconds(lead_s);
        let end_ns = lead_ns.saturating_add(nanoseconds(length.as_secs_f64()));
        let shares = Shares::new(&population.activity, clients, seed);
        let mean_burst = population.mean_burst();
        let mut silent = Vec::new();
        for client in (worker..clients).step_by(workers as usize) {
            let cycle_s = mean_burst / (rate_qps * shares.of(client));
            let (sources, silence_s) = pace.sources(cycle_s);
            for part in 0..sources {
                let mut random = client_stream(seed, Draw::Asking, client, part);
                let due_ns = nanoseconds(pace.first_s(silence_s, &mut random));
                if due_ns < end_ns {
                    let silence_s = Seconds(silence_s as f32);
                    silent.push(Reverse(Source { due_ns, random, client, silence_s }));
                }
            }
        }
        Self {
            what: What::new(&population),
            silent: BinaryHeap::from(silent),
            asking: BinaryHeap::new(),
            ready: BinaryHeap::new(),
            names,
            population,
            seed,
            pace,
            lead_ns,
            end_ns,
        }
    }

    /// The next query. Names and what stubs add come later: those of the lead need none.
    fn next_ready(&mut self) -> Option<Ready> {
        loop {
            let silent_ns = self.silent.peek().map_or(u64::MAX, |source| source.0.due_ns);
            let asking_ns = self.asking.peek().map_or(u64::MAX, |burst| burst.0.source.due_ns);
            let next_ns = silent_ns.min(asking_ns);
            if self
                .ready
                .peek()
                .is_some_and(|ready| ready.0.due_ns < next_ns || next_ns == u64::MAX)
            {
                return Some(self.ready.pop()?.0);
            }
            if next_ns == u64::MAX {
                return None;
            }
            if silent_ns <= asking_ns {
                let Reverse(mut source) = self.silent.pop()?;
                let left = self.pace.lookups(&mut source.random);
                self.asking.push(Reverse(Burst { source, left }));
            } else {
                self.look_up();
            }
        }
    }

    /// Makes the next lookup of a burst.
    fn look_up(&mut self) {
        let Some(mut burst) = self.asking.peek_mut() else { return };
        let Burst { source, left } = &mut burst.0;
        let random = &mut source.random;
        let name = self.what.name(&self.population, random);
        let mut due_ns = source.due_ns;
        for (at, rtype) in self.what.types(&self.population, random).iter().enumerate() {
            if at > 0 {
                let exponential: f64 = Exp1.sample(random);
                due_ns += nanoseconds(self.what.gap_s * exponential).min(MAX_TOGETHER_NS);
            }
            if (self.lead_ns..self.end_ns).contains(&due_ns) {
                let (client, rtype) = (source.client, rtype.to_int());
                self.ready.push(Reverse(Ready { due_ns, client, name, rtype }));
            }
        }
        *left -= 1;
        if *left > 0 {
            source.due_ns += nanoseconds(self.pace.gap_s(random));
            if source.due_ns >= self.end_ns {
                PeekMut::pop(burst);
            }
            return;
        }
        let silence_s = self.pace.silence_s(f64::from(source.silence_s.0), random);
        source.due_ns = source.due_ns.saturating_add(nanoseconds(silence_s));
        let Reverse(Burst { source, .. }) = PeekMut::pop(burst);
        if source.due_ns < self.end_ns {
            self.silent.push(Reverse(source));
        }
    }
}

impl<N: Names> Iterator for PopulationQueries<N> {
    type Item = ClientQuery;

    fn next(&mut self) -> Option<ClientQuery> {
        let Ready { due_ns, client, name, rtype } = self.next_ready()?;
        let stub = Stub::of(&self.population.stubs, self.seed, client);
        let rtype = Rtype::from_int(rtype);
        let name = self.names.name_for(name, rtype);
        let query = Query::new(&name, rtype, &stub.options)
            .expect("a question and an OPT record without options fit in a message");
        Some(ClientQuery { due_ns: due_ns - self.lead_ns, client, query })
    }
}

/// At most some 292 years, so that sums do not overflow.
fn nanoseconds(seconds: f64) -> u64 {
    ((seconds * 1e9) as u64).min(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};
    use std::mem::size_of;

    use super::*;
    use crate::SyntheticZone;
    use crate::population::{Activity, ActivityDistribution, ZoneNames};

    fn names() -> ZoneNames {
        let zone = SyntheticZone::named("example.", 1_000_000, Duration::from_secs(1)).unwrap();
        ZoneNames::new(&zone).unwrap()
    }

    fn small() -> Population {
        Population { clients: 300, rate_qps: 200.0, ..Population::typical() }
    }

    fn sent(population: &Population, seconds: u64, seed: u64) -> Vec<ClientQuery> {
        let load = PopulationLoad::of(population, Duration::from_secs(seconds), seed);
        population.queries(&load, names()).collect()
    }

    #[test]
    fn a_silent_client_takes_24_octets() {
        assert_eq!(size_of::<Source>(), 24);
        assert_eq!(size_of::<Ready>(), 32);
    }

    #[test]
    fn the_number_of_workers_changes_nothing() {
        let mut population = small();
        population.activity.busiest = vec![0.4];
        let load = PopulationLoad::of(&population, Duration::from_secs(30), 9);
        let key = |query: &ClientQuery| (query.due_ns, query.client, query.query.octets().to_vec());
        let mut one: Vec<_> = population.queries(&load, names()).map(|query| key(&query)).collect();
        assert!(one.is_sorted_by_key(|(due_ns, client, _)| (*due_ns, *client)));
        assert!(one.len() > 3_000, "{}", one.len());
        one.sort();
        for workers in [2, 3, 7, 300, 301] {
            let mut all = Vec::new();
            for worker in 0..workers {
                let load = PopulationLoad { worker, of: workers, ..load.clone() };
                let sent: Vec<ClientQuery> = population.queries(&load, names()).collect();
                assert!(sent.iter().all(|query| query.client % workers == worker));
                assert!(sent.is_sorted_by_key(|query| query.due_ns));
                all.extend(sent.iter().map(key));
            }
            all.sort();
            assert!(all == one, "{workers} workers");
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(sent(&small(), 10, 1), sent(&small(), 10, 1));
        assert_ne!(sent(&small(), 10, 1), sent(&small(), 10, 2));
        // A longer load begins in the same way.
        let (short, long) = (sent(&small(), 10, 1), sent(&small(), 20, 1));
        assert_eq!(short, long[..short.len()]);
    }

    #[test]
    fn the_expected_rate_is_met_from_the_first_second() {
        let quiet = ActivityDistribution::LogNormal { spread: 0.5 };
        let pareto = ActivityDistribution::Pareto { shape: 1.2 };
        for (distribution, busiest, clients, rate_qps) in [
            (quiet, vec![], 2_000, 500.0),
            (pareto, vec![], 2_000, 500.0),
            (quiet, vec![0.5, 0.2], 100, 2_000.0),
            (quiet, vec![], 1, 2_000.0),
        ] {
            let activity = Activity { distribution, busiest };
            let population = Population { clients, rate_qps, activity, ..Population::typical() };
            let (mut early, mut all) = (0, 0);
            for seed in 0..8 {
                let sent = sent(&population, 30, seed);
                early += sent.iter().filter(|query| query.due_ns < 3_000_000_000).count();
                all += sent.len();
            }
            // In bursts of 12 queries on average, with a deviation of about 24: of 120,000 queries at least,
            // the deviation is about 2 %; that of a tenth of them 7 %.
            for (count, seconds, bound) in [(all, 30.0, 0.06), (early, 3.0, 0.2)] {
                let ratio = count as f64 / (8.0 * seconds * rate_qps);
                let is_met = (ratio - 1.0).abs() < bound;
                assert!(is_met, "{clients} clients, {distribution:?}: {ratio}");
            }
        }
    }

    #[test]
    fn names_and_types_have_their_shares() {
        let mut population = small();
        population.names.random_share = 0.1;
        let sent = sent(&population, 200, 4);
        let count = |holds: &dyn Fn(&Query) -> bool| {
            sent.iter().filter(|sent| holds(&sent.query)).count() as f64 / sent.len() as f64
        };
        let begins = |word: &'static str| count(&|query| query.to_string().starts_with(word));
        // Of some 20,000 lookups.
        assert!((begins("missing-") - 0.06).abs() < 0.01, "{}", begins("missing-"));
        assert!((count(&|query| query.to_string().contains(".random.")) - 0.1).abs() < 0.015);
        assert!((begins("host-") - 0.84).abs() < 0.02);
        for (rtype, share) in population.lookups.type_shares() {
            assert!((count(&|query| query.rtype() == rtype) - share).abs() < 0.02, "{rtype}");
        }
        // The most popular name, of a Zipf distribution with this exponent over a million names.
        let zipf: f64 = (1..=1_000_000).map(|rank| f64::from(rank).powf(-0.91)).sum();
        let first = begins("host-0000001.");
        assert!((first * zipf / 0.84 - 1.0).abs() < 0.3, "{first}");
        // Nobody asks for a random name in two lookups.
        let mut asked = HashMap::new();
        for sent in sent.iter().filter(|sent| sent.query.to_string().contains(".random.")) {
            let key = sent.query.name().to_string();
            let before = *asked.entry(key).or_insert(sent.due_ns);
            assert!(sent.due_ns - before < 1_000_000_000);
        }
    }

    #[test]
    fn lookups_are_together_and_bursts_apart() {
        let mut population = Population { clients: 1, rate_qps: 0.2, ..Population::typical() };
        population.names.popular.exponent = 0.0;
        population.names.missing_share = 0.0;
        population.bursts.lookups_median = 5.0;
        population.bursts.lookups_spread = 0.0;
        population.bursts.silence = Duration::from_secs(3);
        let sent = sent(&population, 100_000, 6);
        assert!(sent.len() > 15_000);
        let (mut bursts, mut names) = (Vec::new(), HashSet::new());
        let mut last_ns = 0;
        for sent in &sent {
            // From the last query of a lookup, which is some milliseconds after its first.
            if sent.due_ns - last_ns > 2_900_000_000 && !names.is_empty() {
                bursts.push(names.len());
                names.clear();
            }
            names.insert(sent.query.name().to_string());
            last_ns = sent.due_ns;
        }
        let five = bursts.iter().filter(|count| **count == 5).count();
        // The first and the last may be cut.
        assert!(five + 2 >= bursts.len(), "{five} of {}", bursts.len());
        // Some 1,850 bursts, in groups: their number has a deviation of 5 %.
        assert!((bursts.len() as f64 / (20_000.0 / population.mean_burst()) - 1.0).abs() < 0.2);
    }

    #[test]
    #[should_panic(expected = "worker 2 of 2 does not exist")]
    fn there_is_no_third_of_two_workers() {
        let load = PopulationLoad::of(&small(), Duration::from_secs(1), 1);
        let _ = small().queries(&PopulationLoad { worker: 2, of: 2, ..load }, names());
    }

    #[test]
    #[should_panic(expected = "`names.popular.count` is 0")]
    fn an_impossible_population_sends_nothing() {
        let mut population = small();
        population.names.popular.count = 0;
        sent(&population, 1, 1);
    }
}
