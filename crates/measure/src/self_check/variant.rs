//! The self-checks of the runs of one variant, folded into one.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{Remark, SelfCheck, Verdict, fold};
use crate::{RunRecord, VariantCaveat};

/// The self-checks of the valid runs of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantFinding {
    /// With the worst figure of all runs where that is known, else with that of the first.
    pub finding: Remark,
    /// In how many of the runs there is one of its kind.
    pub runs: u32,
}

impl VariantSelfCheck {
    /// The worst verdict of any run; `None` without a run.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        let of = [
            (Verdict::GeneratorLimited, self.generator_limited),
            (Verdict::Doubtful, self.doubtful),
            (Verdict::Clean, self.clean),
        ];
        of.into_iter().find_map(|(verdict, runs)| (runs > 0).then_some(verdict))
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
        let mut workers = None;
        for record in runs {
            let Some(check) = SelfCheck::of(record) else { continue };
            match check.verdict {
                Verdict::Clean => own.clean += 1,
                Verdict::Doubtful => own.doubtful += 1,
                Verdict::GeneratorLimited => own.generator_limited += 1,
            }
            workers = workers.or(Some(record.load.workers));
            let mut seen: Vec<String> = Vec::new();
            for (verdict, finding) in fold(record) {
                // The words before the figure are those of the kind. A run counts once for each,
                // though it may say one twice.
                let is_new = !seen.contains(&finding.what);
                seen.push(finding.what.clone());
                match kinds.iter_mut().find(|(_, kind)| kind.finding.what == finding.what) {
                    Some((worst, kind)) => {
                        kind.runs += u32::from(is_new);
                        *worst = verdict.max(*worst);
                    }
                    None => kinds.push((verdict, VariantFinding { finding, runs: 1 })),
                }
            }
        }
        let worst = worst.iter().map(|caveat| caveat.worst.finding_with(workers));
        for finding in worst {
            let of_kind = |(_, kind): &&mut (_, VariantFinding)| kind.finding.what == finding.what;
            if let Some((_, kind)) = kinds.iter_mut().find(of_kind) {
                kind.finding = finding;
            }
        }
        kinds.sort_by_key(|(verdict, _)| Reverse(*verdict));
        own.findings = kinds.into_iter().map(|(_, finding)| finding).collect();
        own
    }
}
