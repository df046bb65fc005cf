//! The order of the runs.

use std::time::Duration;

use dnslab_measure::{CaseId, SkippedVariant};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::check::Experiment;

/// Time that one run takes besides its load, about: the server starts, loads its zone, is asked until it
/// answers, and stops.
pub const START_AND_STOP: Duration = Duration::from_millis(600);

/// The runs in the order of execution.
///
/// Runs come in blocks, one for each repetition, and each block holds every runnable variant once,
/// in a random order of its own: what changes on the machine over time hits all variants alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The runs.
    pub cases: Vec<CaseId>,
    /// How long they will take, about.
    pub estimated: Duration,
}

impl Plan {
    /// Plans all runs of the experiment but those of the variants that are skipped.
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
        let mut random = Xoshiro256PlusPlus::seed_from_u64(experiment.seed);
        let mut cases = Vec::new();
        for repetition in 1..=experiment.runs {
            let mut block = names.clone();
            block.shuffle(&mut random);
            let case = |name: &str| CaseId { variant: name.to_owned(), repetition };
            cases.extend(block.into_iter().map(case));
        }
        Self::of(experiment, cases)
    }

    /// What is left of a plan after an interruption, in the same order.
    #[must_use]
    pub fn remaining(
        experiment: &Experiment,
        planned: &[CaseId],
        is_done: impl Fn(&CaseId) -> bool,
    ) -> Self {
        Self::of(experiment, planned.iter().filter(|case| !is_done(case)).cloned().collect())
    }

    /// These runs, with their estimate.
    fn of(experiment: &Experiment, cases: Vec<CaseId>) -> Self {
        let lasts = |case: &CaseId| {
            experiment.variant(&case.variant).map_or(Duration::ZERO, |variant| {
                let load = &variant.load;
                load.warm_up.saturating_add(load.duration).saturating_add(START_AND_STOP)
            })
        };
        let estimated = cases.iter().map(lasts).fold(Duration::ZERO, Duration::saturating_add);
        Self { cases, estimated }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// An experiment of so many variants, runs of 1 s load and 0.5 s warm-up.
    fn experiment(variants: usize, runs: u32, seed: u64) -> Experiment {
        let mut text = format!(
            "name = \"x\"\nrepeat = {{ runs = {runs}, seed = {seed} }}\n\
             load = {{ duration = \"1s\", warm_up = \"500ms\" }}\n"
        );
        for variant in 0..variants {
            text.push_str(&format!("[[variant]]\nname = \"v{variant}\"\n"));
        }
        crate::check_text(&text, &[]).unwrap()
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

    /// The sequence is part of what a seed promises; a change of it is a measurement change.
    #[test]
    fn seeds_give_known_orders() {
        let order = |seed| {
            let cases = Plan::new(&experiment(4, 2, seed), &[]).cases;
            cases.iter().map(CaseId::folder).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(1), "v3-1 v2-1 v0-1 v1-1 v2-2 v0-2 v1-2 v3-2");
        assert_ne!(order(1), order(2));
    }

    #[test]
    fn skipped_variants_are_not_planned() {
        let skipped = SkippedVariant { variant: "v1".into(), reason: "no DoT".into() };
        let plan = Plan::new(&experiment(3, 2, 1), &[skipped]);
        assert_eq!(plan.cases.len(), 4);
        assert!(plan.cases.iter().all(|case| case.variant != "v1"));
    }
}
