//! Was the measuring side sound? One verdict for each run on the load generator, its machine and the path
//! from it to the server.
//!
//! A self-check finds nothing by itself. It folds what is in the record already: those caveats that
//! are about the measuring side, and the bottleneck. So a doubt has one threshold, in `Caveat::find` or
//! `Bottleneck::decide`. What the server and its answers were like (lost queries, truncated answers) is a
//! result, and in no self-check.

mod fold;
mod variant;

use dnslab_record::{Finding, RunRecord};
use serde::{Deserialize, Serialize};

pub use fold::Verdict;
use fold::fold;
pub use variant::{VariantFinding, VariantSelfCheck};

/// What the measuring side says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SelfCheck {
    /// The worst that the findings amount to.
    pub verdict: Verdict,
    /// The worst first. A clean run may have some too: notes that doubt nothing.
    pub findings: Vec<Finding>,
}

impl SelfCheck {
    /// Folds the caveats and the bottleneck of a run; `None` if nothing was measured, or not by dnslab.
    #[must_use]
    pub fn of(record: &RunRecord) -> Option<Self> {
        if record.imported.is_some() {
            return None;
        }
        record.measured.as_ref()?;
        let findings = fold(record);
        let verdict = findings.first().map_or(Verdict::Clean, |(verdict, _)| *verdict);
        Some(Self { verdict, findings: findings.into_iter().map(|(_, finding)| finding).collect() })
    }
}
