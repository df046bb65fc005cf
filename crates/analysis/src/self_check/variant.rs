//! The self-checks of the runs of one variant, folded into one.

use std::cmp::Reverse;

use dnslab_record::{Finding, RunRecord};
use serde::{Deserialize, Serialize};

use super::fold::{Verdict, fold};
use crate::variant_caveat::VariantCaveat;

/// The self-checks of the valid runs of a variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VariantSelfCheck {
    /// Runs whose verdict is `clean`.
    pub clean: u32,
    /// Runs whose verdict is `doubtful`.
    pub doubtful: u32,
    /// Runs whose verdict is `generator-limited`.
    pub generator_limited: u32,
    /// What was found in any of them, once for each kind, the worst kind first.
    pub findings: Vec<VariantFinding>,
}

/// One kind of finding in the runs of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VariantFinding {
    /// With the worst figure of all runs where that is known, else with that of the first.
    pub finding: Finding,
    /// In how many of the runs there is one of its kind.
    pub runs: u32,
}

impl VariantSelfCheck {
    /// The worst verdict of any run; `None` without a run.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        [Verdict::GeneratorLimited, Verdict::Doubtful, Verdict::Clean]
            .into_iter()
            .find(|verdict| self.runs_with(*verdict) > 0)
    }

    /// How many runs have a verdict.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.clean + self.doubtful + self.generator_limited
    }

    /// How many runs have this verdict.
    #[must_use]
    pub fn runs_with(&self, verdict: Verdict) -> u32 {
        match verdict {
            Verdict::Clean => self.clean,
            Verdict::Doubtful => self.doubtful,
            Verdict::GeneratorLimited => self.generator_limited,
        }
    }

    /// Folds the self-checks of `runs`, whose caveats are `worst` by kind.
    pub(crate) fn of<'a>(
        runs: impl Iterator<Item = &'a RunRecord>,
        worst: &[VariantCaveat],
    ) -> Self {
        let mut own = Self::default();
        let mut kinds: Vec<(Verdict, VariantFinding)> = Vec::new();
        for record in runs {
            if record.measured.is_none() || record.imported.is_some() {
                continue;
            }
            let found = fold(record);
            match found.first().map_or(Verdict::Clean, |(verdict, _)| *verdict) {
                Verdict::Clean => own.clean += 1,
                Verdict::Doubtful => own.doubtful += 1,
                Verdict::GeneratorLimited => own.generator_limited += 1,
            }
            // A run counts once for each kind, though it may have one twice.
            let mut counted = vec![false; kinds.len()];
            for (verdict, finding) in found {
                let known =
                    kinds.iter().position(|(_, known)| known.finding.is_same_kind(&finding));
                let Some(place) = known else {
                    kinds.push((verdict, VariantFinding { finding, runs: 1 }));
                    counted.push(true);
                    continue;
                };
                let (worst, known) = &mut kinds[place];
                *worst = verdict.max(*worst);
                known.runs += u32::from(!std::mem::replace(&mut counted[place], true));
            }
        }
        for (_, known) in &mut kinds {
            if let Finding::Caveat { caveat, .. } = &mut known.finding {
                let of_kind = worst.iter().find(|known| known.worst.is_same_kind(caveat));
                *caveat = of_kind.map_or_else(|| caveat.clone(), |known| known.worst.clone());
            }
        }
        kinds.sort_by_key(|(verdict, _)| Reverse(*verdict));
        own.findings = kinds.into_iter().map(|(_, finding)| finding).collect();
        own
    }
}
