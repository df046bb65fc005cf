//! The order of the runs.

use std::collections::BTreeSet;
use std::time::Duration;

use dnslab_record::{CaseId, SkippedVariant};
use dnslab_settings::{
    ChainServer, Experiment, LEAST_ROUNDS, MAX_RUNS, Mode, Rounds, ServerKind, Variant,
};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::run::has_hosts;
use crate::run::session::rounds::{Alternation, alternation, rounds, tried};
use crate::run::timeline::{RoundTimeline, SAMPLES_AROUND};

/// Estimated time in which a server starts, loads its zone, is asked until it answers, and stops. BIND and Unbound took
/// 0.15 to 0.3 s with a small zone, the embedded server 0.1 s.
const START_AND_STOP: Duration = Duration::from_millis(200);
const START_AND_STOP_EMBEDDED: Duration = Duration::from_millis(100);

/// Estimated time for each record of its zone: written in 0.8 us, loaded by BIND in some 5 us.
const RECORD: Duration = Duration::from_micros(6);

/// Estimated time in which hosts and links are made and removed.
const HOSTS: Duration = Duration::from_millis(300);

/// Until the threads and sockets of a load are there.
const BEGIN: Duration = Duration::from_millis(50);

/// The runs in the order of execution.
///
/// Runs come in blocks, one for each repetition. Each block holds every runnable variant once, so that what
/// changes on the machine over time hits all variants alike.
///
/// The place inside a block matters too: the run before may leave the machine warm or the caches full. So as
/// many blocks as there are variants form a random Latin square, in which every variant stands at every place
/// once. The next blocks form another square. The last square is incomplete if the number of runs is no
/// multiple of the number of variants. Then no variant stands at a place more than once more often than
/// another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order of execution.
    pub cases: Vec<CaseId>,
    /// Estimated time of all runs.
    pub time: PlanTime,
}

/// What the time of a plan is made of, estimated. Lost queries may let each load last for one time-out longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanTime {
    /// Servers and hosts that start and stop, and what is watched before and behind each load.
    pub servers: Duration,
    /// The short loads that find the rate of the common load.
    pub trial: Duration,
    /// The loads of the variants, with warm-up and all that does not count.
    pub main: Duration,
    /// The loads at one rate for all variants, likewise.
    pub common: Duration,
    /// The loads of the round in which servers are sampled.
    pub profile: Duration,
    /// Between rounds.
    pub pauses: Duration,
}

/// What a session has done before the runs of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begun {
    /// The variants of a round take turns in slices.
    pub(crate) alternates_in_slices: bool,
    /// The rate of the common load was found.
    pub(crate) knows_rate: bool,
    /// The servers were sampled.
    pub(crate) is_profiled: bool,
}

impl PlanTime {
    /// All of it.
    #[must_use]
    pub fn whole(&self) -> Duration {
        let Self { servers, trial, main, common, profile, pauses } = *self;
        let parts = [servers, trial, main, common, profile, pauses];
        parts.into_iter().fold(Duration::ZERO, Duration::saturating_add)
    }

    fn of(experiment: &Experiment, cases: &[CaseId], begun: Begun) -> Self {
        let mut time = Self::default();
        if cases.is_empty() {
            return time;
        }
        let is_planned = |variant: &&Variant| cases.iter().any(|case| case.variant == variant.name);
        let variants: Vec<&Variant> = experiment.variants.iter().filter(is_planned).collect();
        let is_open = |variant: &Variant| !variant.load.mode.is_closed();
        let common = experiment.common_load();
        let common = common.filter(|_| !experiment.variants.iter().any(is_open));
        let round_of = |cases: &[CaseId]| -> Vec<&Variant> {
            cases.iter().filter_map(|case| experiment.variant(&case.variant)).collect()
        };
        for round in rounds(cases.to_vec(), begun.alternates_in_slices) {
            let round = round_of(&round);
            let open = common
                .map_or(0, |common| 1 + common.shares.iter().flat_map(|shares| &shares.0).count());
            time.add_servers(&round, 1 + open);
            time.main += main_length(experiment, &round);
            if let Some(common) = common {
                let own = RoundTimeline::in_one_turn(round.len(), common.warm_up, common.duration);
                time.common += own.length * open as u32;
            }
        }
        let once: Vec<CaseId> = variants
            .iter()
            .map(|variant| CaseId { variant: variant.name.clone(), repetition: 0 })
            .collect();
        let once = rounds(once, begun.alternates_in_slices);
        if common.is_some_and(|common| common.rate.is_none()) && !begun.knows_rate {
            for round in &once {
                let short: Vec<Variant> = round_of(round).into_iter().map(tried).collect();
                let short: Vec<&Variant> = short.iter().collect();
                time.add_servers(&short, 1);
                time.trial += main_length(experiment, &short);
            }
        }
        if experiment.repeat.profile && !begun.is_profiled {
            for round in &once {
                let round = round_of(round);
                time.add_servers(&round, 1);
                time.profile += main_length(experiment, &round);
            }
        }
        let repetitions: BTreeSet<u32> = cases.iter().map(|case| case.repetition).collect();
        time.pauses = experiment.repeat.pause * (repetitions.len() as u32).saturating_sub(1);
        time
    }

    /// Adds the servers of a round that has so many loads.
    fn add_servers(&mut self, round: &[&Variant], loads: usize) {
        let own: Duration = round.iter().map(|variant| start_and_stop(variant)).sum();
        let around = if own.is_zero() { Duration::ZERO } else { SAMPLES_AROUND };
        let loads = u32::try_from(loads).unwrap_or(u32::MAX);
        self.servers += own + around + loads * (BEGIN + around);
    }
}

/// How long the servers and hosts of a variant take to start and to stop.
fn start_and_stop(variant: &Variant) -> Duration {
    let servers = variant.servers();
    let of_server = |server: &ChainServer<'_>| match server.kind {
        None => Duration::ZERO,
        Some(ServerKind::Embedded) => START_AND_STOP_EMBEDDED,
        Some(_) => START_AND_STOP,
    };
    let started: Duration = servers.iter().map(of_server).sum();
    if started.is_zero() {
        return started;
    }
    let hosts = if has_hosts(variant) { HOSTS } else { Duration::ZERO };
    // Of a zone file nobody has counted them.
    let records = if variant.zone.file.is_some() { 0 } else { variant.zone.records };
    started + hosts + RECORD * records
}

/// How long the loads of a round take together.
fn main_length(experiment: &Experiment, round: &[&Variant]) -> Duration {
    match round {
        [alone] => length(alone),
        round => {
            let loads = round.iter().map(|variant| &variant.load);
            RoundTimeline::of(round.len(), loads, experiment.slices()).length
        }
    }
}

impl Plan {
    /// Plans the runs of all variants that are not skipped.
    ///
    /// An experiment, a seed and skipped variants give one plan, however often it is made.
    #[must_use]
    pub fn new(experiment: &Experiment, skipped: &[SkippedVariant]) -> Self {
        let is_skipped = |name: &str| skipped.iter().any(|skip| skip.variant == name);
        let names: Vec<&str> = experiment
            .variants
            .iter()
            .map(|variant| variant.name.as_str())
            .filter(|name| !is_skipped(name))
            .collect();
        let alternates_in_slices =
            matches!(alternation(experiment, skipped), Ok(Alternation::Slices));
        let begun = Begun { alternates_in_slices, ..Begun::default() };
        let rounds = match experiment.repeat.runs {
            Rounds::Count(rounds) => rounds,
            Rounds::Within(time) => rounds_within(time, experiment, &names, begun),
        };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(experiment.repeat.seed);
        let mut blocks = Vec::new();
        while blocks.len() < rounds as usize && !names.is_empty() {
            blocks.extend(latin_square(names.len(), &mut random));
        }
        let cases = (1..=rounds).zip(blocks).flat_map(|(repetition, block)| {
            let names = &names;
            block
                .into_iter()
                .map(move |place| CaseId { variant: names[place].to_owned(), repetition })
        });
        Self::of(experiment, cases.collect(), begun)
    }

    /// The runs of a plan that are not done, in the same order.
    #[must_use]
    pub(crate) fn remaining(
        experiment: &Experiment,
        planned: &[CaseId],
        begun: Begun,
        is_done: impl Fn(&CaseId) -> bool,
    ) -> Self {
        let cases = planned.iter().filter(|case| !is_done(case)).cloned().collect();
        Self::of(experiment, cases, begun)
    }

    fn of(experiment: &Experiment, cases: Vec<CaseId>, begun: Begun) -> Self {
        let time = PlanTime::of(experiment, &cases, begun);
        Self { cases, time }
    }
}

/// As many rounds of these variants as `time` has room for, by the estimated time of a round: at least [`LEAST_ROUNDS`],
/// and no more than a report can hold.
fn rounds_within(time: Duration, experiment: &Experiment, names: &[&str], begun: Begun) -> u32 {
    let lasting = |rounds: u32| PlanTime::of(experiment, &in_rounds(rounds, names), begun).whole();
    let first = lasting(1);
    let each = lasting(2).saturating_sub(first).as_nanos().max(1);
    let fit = 1 + time.saturating_sub(first).as_nanos() / each;
    let most = u32::try_from(MAX_RUNS / names.len().max(1)).unwrap_or(u32::MAX);
    u32::try_from(fit).unwrap_or(u32::MAX).min(most).max(LEAST_ROUNDS)
}

/// These variants in so many rounds, in their order.
fn in_rounds(rounds: u32, names: &[&str]) -> Vec<CaseId> {
    let round = |repetition| {
        names.iter().map(move |name| CaseId { variant: (*name).to_owned(), repetition })
    };
    (1..=rounds).flat_map(round).collect()
}

/// Assumed service time of a closed loop with a known number of queries. The delay of links comes on top.
const ANSWER: Duration = Duration::from_millis(5);

/// Estimated length of a variant's load: its duration, or the time that its queries take if that is less.
fn length(variant: &Variant) -> Duration {
    let load = &variant.load;
    let whole = load.warm_up.saturating_add(load.duration);
    let Some(most) = load.queries_in_all else { return whole };
    let seconds = match &load.mode {
        Mode::Open { rate, .. } => most as f64 / rate.mean(whole),
        Mode::Capture(_) | Mode::Population { .. } => return whole,
        Mode::Closed { outstanding } => {
            let each = ANSWER + 2 * (variant.client_link.delay + variant.upstream_link.delay);
            let window = f64::from(load.clients) * f64::from(*outstanding);
            most as f64 / window * each.as_secs_f64()
        }
    };
    Duration::try_from_secs_f64(seconds).map_or(whole, |needed| needed.min(whole))
}

/// A random Latin square of the numbers below `size`, as rows: each number is once in each row and once in
/// each column.
///
/// One random row is repeated with a number added to all its entries (modulo the size), in random order. Then
/// the numbers are renamed at random. Not every Latin square can come out, but every number is as likely as
/// any other at each place. The successor of a number differs from row to row as the gaps of the first row
/// do.
fn latin_square(size: usize, random: &mut Xoshiro256PlusPlus) -> Vec<Vec<usize>> {
    let mut shuffled = || {
        let mut numbers: Vec<usize> = (0..size).collect();
        numbers.shuffle(random);
        numbers
    };
    let (first, shifts, names) = (shuffled(), shuffled(), shuffled());
    let row = |shift: usize| first.iter().map(|entry| names[(entry + shift) % size]).collect();
    shifts.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// The load of each variant is 1 s with 0.5 s of warm-up.
    fn experiment(variants: usize, runs: u32, seed: u64) -> Experiment {
        let mut text = format!(
            "name = \"x\"\nrepeat = {{ runs = {runs}, seed = {seed} }}\n\
             load = {{ duration = \"1s\", warm_up = \"500ms\" }}\n"
        );
        for variant in 0..variants {
            text.push_str(&format!("[[variant]]\nname = \"v{variant}\"\n"));
        }
        dnslab_settings::check_text(&text, &[]).unwrap()
    }

    proptest! {
        #[test]
        fn each_block_is_a_permutation(
            variants in 1usize..8,
            runs in 1u32..8,
            seed in 0u64..1_000_000,
        ) {
            let experiment = experiment(variants, runs, seed);
            let plan = Plan::new(&experiment, &[]);
            prop_assert_eq!(&plan, &Plan::new(&experiment, &[]));
            prop_assert_eq!(plan.cases.len(), variants * runs as usize);
            for (block, repetition) in plan.cases.chunks(variants).zip(1..) {
                let names: BTreeSet<&str> =
                    block.iter().map(|case| case.variant.as_str()).collect();
                prop_assert_eq!(names.len(), variants);
                prop_assert!(block.iter().all(|case| case.repetition == repetition));
            }
        }

        #[test]
        fn every_variant_stands_at_every_place_equally_often(
            variants in 1usize..8,
            runs in 1u32..20,
            seed in any::<u32>(),
        ) {
            let plan = Plan::new(&experiment(variants, runs, seed.into()), &[]);
            let mut times = BTreeMap::new();
            for block in plan.cases.chunks(variants) {
                for (place, case) in block.iter().enumerate() {
                    *times.entry((case.variant.clone(), place)).or_insert(0) += 1;
                }
            }
            let whole = runs as usize / variants;
            let most = (runs as usize).div_ceil(variants);
            prop_assert!(times.values().all(|times| (whole..=most).contains(times)), "{:?}", times);
            // A place that a variant never has is not among the times.
            prop_assert!(whole == 0 || times.len() == variants * variants);
        }

        #[test]
        fn rounds_fill_a_time(variants in 1usize..12, seconds in 1u64..5_000) {
            let mut experiment = experiment(variants, 1, 7);
            let whole = |experiment: &Experiment| Plan::new(experiment, &[]).time.whole();
            experiment.repeat.runs = Rounds::Within(Duration::from_secs(seconds));
            let plan = Plan::new(&experiment, &[]);
            let rounds = (plan.cases.len() / variants) as u32;
            prop_assert!(rounds >= LEAST_ROUNDS && plan.cases.len() <= MAX_RUNS);
            let within = Duration::from_secs(seconds);
            prop_assert!(rounds == LEAST_ROUNDS || plan.time.whole() <= within);
            experiment.repeat.runs = Rounds::Count(rounds);
            prop_assert_eq!(&plan, &Plan::new(&experiment, &[]), "as if so many had been asked for");
            experiment.repeat.runs = Rounds::Count(rounds + 1);
            prop_assert!(plan.cases.len() + variants > MAX_RUNS || whole(&experiment) > within);
        }

        #[test]
        fn what_remains_keeps_its_order(done in prop::collection::vec(any::<bool>(), 20)) {
            let experiment = experiment(4, 5, 7);
            let plan = Plan::new(&experiment, &[]);
            let is_done = |case: &CaseId| {
                done[plan.cases.iter().position(|other| other == case).unwrap()]
            };
            let begun = Begun { alternates_in_slices: true, ..Begun::default() };
            let rest = Plan::remaining(&experiment, &plan.cases, begun, is_done);
            let expected: Vec<CaseId> =
                plan.cases.iter().filter(|case| !is_done(case)).cloned().collect();
            prop_assert_eq!(&rest.cases, &expected);
        }
    }

    #[test]
    fn pauses_between_rounds_take_their_time() {
        let mut experiment = experiment(2, 3, 1);
        let without = Plan::new(&experiment, &[]).time.whole();
        experiment.repeat.pause = Duration::from_secs(7);
        assert_eq!(Plan::new(&experiment, &[]).time.whole(), without + Duration::from_secs(14));
    }

    #[test]
    fn sampling_takes_a_round_of_its_own() {
        let mut experiment = experiment(2, 3, 1);
        let without = Plan::new(&experiment, &[]);
        experiment.repeat.profile = true;
        let with = Plan::new(&experiment, &[]);
        assert_eq!(with.cases, without.cases);
        let (with, without) = (with.time, without.time);
        assert_eq!(with.profile, without.main / 3);
        // The servers of the trial, and three rounds of two loads.
        assert!(with.servers > without.servers && with.trial == without.trial);
    }

    /// Slices are whole blocks: two variants with 0.5 and 1 s of their own take 1 and 2 s, three runs of each.
    #[test]
    fn a_plan_has_the_time_of_each_load_once() {
        let mut experiment = experiment(2, 3, 1);
        experiment.common.duration = Duration::from_millis(300);
        let common = experiment.common_load().expect("it has one of 300 ms").clone();
        let tail = Duration::from_millis(45);
        let time = Plan::new(&experiment, &[]).time;
        assert_eq!(time.main, 3 * Duration::from_secs(3));
        assert_eq!(time.common, 6 * (common.warm_up + common.duration + tail));
        assert_eq!(time.trial, 2 * Duration::from_millis(700));
        let begun = Begun { alternates_in_slices: true, knows_rate: true, is_profiled: true };
        let plan = Plan::new(&experiment, &[]);
        let rest = Plan::remaining(&experiment, &plan.cases, begun, |case| case.repetition < 3);
        assert_eq!((rest.time.trial, 3 * rest.time.main), (Duration::ZERO, time.main));
        let none = Plan::remaining(&experiment, &plan.cases, begun, |_| true).time;
        assert_eq!(none, PlanTime::default());
    }

    /// A seed promises its sequence: changing it is a measurement change.
    #[test]
    fn seeds_give_known_orders() {
        let order = |seed| {
            let cases = Plan::new(&experiment(4, 2, seed), &[]).cases;
            cases.iter().map(CaseId::folder).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(1), "v1-1 v2-1 v0-1 v3-1 v3-2 v0-2 v2-2 v1-2");
        let orders: BTreeSet<String> = (0..100).map(order).collect();
        assert!(orders.len() > 80, "of 100 seeds only {} differ", orders.len());
    }

    /// There are two squares of two variants and twelve of three. All must come out even in one plan;
    /// otherwise the order would follow from the first block.
    #[test]
    fn all_small_squares_come_out() {
        for (size, expected) in [(1, 1), (2, 2), (3, 12)] {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
            let squares: BTreeSet<_> = (0..200).map(|_| latin_square(size, &mut random)).collect();
            assert_eq!(squares.len(), expected);
        }
    }

    #[test]
    fn an_experiment_of_which_nothing_runs_has_no_plan() {
        let skipped = SkippedVariant { variant: "v0".into(), reason: "no DoT".into() };
        assert!(Plan::new(&experiment(1, 2, 1), &[skipped]).cases.is_empty());
    }

    #[test]
    fn skipped_variants_are_not_planned() {
        let skipped = SkippedVariant { variant: "v1".into(), reason: "no DoT".into() };
        let plan = Plan::new(&experiment(3, 2, 1), &[skipped]);
        assert_eq!(plan.cases.len(), 4);
        assert!(plan.cases.iter().all(|case| case.variant != "v1"));
    }
}
