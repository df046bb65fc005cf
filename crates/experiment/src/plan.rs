//! The order of the runs.

use std::collections::BTreeSet;
use std::time::Duration;

use dnslab_measure::{CaseId, SkippedVariant};
use dnslab_settings::{Experiment, Mode, Variant};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Estimated time of one run without its load: the server starts, loads its zone, is asked until it answers,
/// and stops.
pub const START_AND_STOP: Duration = Duration::from_millis(400);

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
    pub estimated: Duration,
}

impl Plan {
    /// Plans the runs of all variants that are not skipped.
    ///
    /// The same experiment, seed and skipped variants give the same plan.
    #[must_use]
    pub fn new(experiment: &Experiment, skipped: &[SkippedVariant]) -> Self {
        let is_skipped = |name: &str| skipped.iter().any(|skip| skip.variant == name);
        let names: Vec<&str> = experiment
            .variants
            .iter()
            .map(|variant| variant.name.as_str())
            .filter(|name| !is_skipped(name))
            .collect();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(experiment.repeat.seed);
        let mut blocks = Vec::new();
        while blocks.len() < experiment.repeat.runs as usize && !names.is_empty() {
            blocks.extend(latin_square(names.len(), &mut random));
        }
        let cases = (1..=experiment.repeat.runs).zip(blocks).flat_map(|(repetition, block)| {
            let names = &names;
            block
                .into_iter()
                .map(move |place| CaseId { variant: names[place].to_owned(), repetition })
        });
        Self::of(experiment, cases.collect())
    }

    /// The runs of a plan that are not done, in the same order.
    #[must_use]
    pub fn remaining(
        experiment: &Experiment,
        planned: &[CaseId],
        is_done: impl Fn(&CaseId) -> bool,
    ) -> Self {
        Self::of(experiment, planned.iter().filter(|case| !is_done(case)).cloned().collect())
    }

    fn of(experiment: &Experiment, cases: Vec<CaseId>) -> Self {
        let lasts = |case: &CaseId| {
            experiment
                .variant(&case.variant)
                .map_or(Duration::ZERO, |variant| length(variant).saturating_add(START_AND_STOP))
        };
        let common = experiment.common_load();
        let common = common.map_or(Duration::ZERO, |of| of.warm_up + of.duration);
        let lasts = |case: &CaseId| lasts(case).saturating_add(common);
        let rounds: BTreeSet<u32> = cases.iter().map(|case| case.repetition).collect();
        let pauses = experiment.repeat.pause * (rounds.len() as u32).saturating_sub(1);
        let estimated = cases.iter().map(lasts).fold(pauses, Duration::saturating_add);
        // The servers are sampled in one more round.
        let variants: BTreeSet<&str> = cases.iter().map(|case| case.variant.as_str()).collect();
        let sampled = variants.iter().filter(|_| experiment.repeat.profile);
        let sampled = sampled.filter_map(|name| experiment.variant(name));
        let lasts = |of: &Variant| length(of).saturating_add(START_AND_STOP);
        let estimated = sampled.map(lasts).fold(estimated, Duration::saturating_add);
        Self { cases, estimated }
    }
}

/// Assumed service time of a closed loop with a known number of queries. The delay of links comes on top.
const ANSWER: Duration = Duration::from_millis(5);

/// Estimated length of a variant's load: its duration, or the time that its queries take if that is less.
fn length(variant: &Variant) -> Duration {
    let load = &variant.load;
    let whole = load.warm_up.saturating_add(load.duration);
    let Some(most) = load.queries_in_all else { return whole };
    let seconds = match load.mode() {
        Mode::Open { rate, .. } => most as f64 / rate.mean(whole),
        Mode::Clients => return whole,
        Mode::Closed { outstanding } => {
            let each = ANSWER + 2 * (variant.client_link.delay + variant.upstream_link.delay);
            let window = f64::from(load.clients) * f64::from(outstanding);
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
            prop_assert_eq!(plan.estimated, (Duration::from_millis(1_500) + START_AND_STOP) * plan.cases.len() as u32);
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
        fn what_remains_keeps_its_order(done in prop::collection::vec(any::<bool>(), 20)) {
            let experiment = experiment(4, 5, 7);
            let plan = Plan::new(&experiment, &[]);
            let is_done = |case: &CaseId| {
                done[plan.cases.iter().position(|other| other == case).unwrap()]
            };
            let rest = Plan::remaining(&experiment, &plan.cases, is_done);
            let expected: Vec<CaseId> =
                plan.cases.iter().filter(|case| !is_done(case)).cloned().collect();
            prop_assert_eq!(&rest.cases, &expected);
            prop_assert_eq!(rest.estimated, (Duration::from_millis(1_500) + START_AND_STOP) * expected.len() as u32);
        }
    }

    #[test]
    fn pauses_between_rounds_take_their_time() {
        let mut experiment = experiment(2, 3, 1);
        let without = Plan::new(&experiment, &[]).estimated;
        experiment.repeat.pause = Duration::from_secs(7);
        assert_eq!(Plan::new(&experiment, &[]).estimated, without + Duration::from_secs(14));
    }

    #[test]
    fn sampling_takes_a_round_of_its_own() {
        let mut experiment = experiment(2, 3, 1);
        let without = Plan::new(&experiment, &[]);
        experiment.repeat.profile = true;
        let with = Plan::new(&experiment, &[]);
        assert_eq!(with.cases, without.cases);
        assert_eq!(with.estimated, without.estimated / 3 * 4);
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
