//! What is known of an experiment before its first run.

use dnslab_settings::{Metric, Published};
use serde::{Deserialize, Serialize};

use crate::cost_limit::CostLimit;

/// Version of the session file's form; see [`crate::RECORD_FORMAT`] for the rule.
pub const SESSION_FORMAT: u32 = 1;

/// What is known before the first run: the experiment, its plan, the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// [`SESSION_FORMAT`] at the time of writing.
    pub format: u32,
    /// Version of dnslab that began the experiment.
    pub dnslab: String,
    /// Name of the experiment.
    pub name: String,
    /// The question it answers.
    pub question: String,
    /// Name of the variant that the others are compared with.
    pub baseline: String,
    /// Names of the variants, in the order of the file.
    pub variants: Vec<String>,
    /// Variants that cannot run here, and why.
    pub skipped: Vec<SkippedVariant>,
    /// The metric that answers the question; `None` if the load decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<Metric>,
    /// Relative difference (0.02 = 2 %) below which a difference does not matter.
    pub margin: f64,
    /// Seed of the order and of everything drawn at random.
    pub seed: u64,
    /// When the experiment began, RFC 3339 in UTC.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// Facts of the host, in the order in which they are shown.
    pub host: Vec<Fact>,
    /// Files that the load is made from, and a digest of each; none in sessions that do not have it.
    #[serde(default)]
    pub inputs: Vec<Fact>,
    /// Which variants are compared with which; each with the baseline, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compared: Vec<Compared>,
    /// Those of them that do the same in the main load: their settings differ only in what does not act there.
    /// None in sessions that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Compared>,
    /// Variants that differ only in the size of their load, server by server; none in sessions that do not
    /// have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<LoadSweep>,
    /// Variants that differ only in the number of the server's threads, server by server; none in sessions that do not
    /// have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<ThreadSweep>,
    /// The servers of a round are up together and the load goes to them in turns, in slices of this
    /// length in nanoseconds; `None` where whole runs alternate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// Why whole runs alternate though slices were possible to ask for; empty where they do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub whole_runs_because: String,
    /// Rate of the common load of all variants, queries per second, once it is known; `None` without
    /// a common load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_rate_qps: Option<f64>,
    /// What the variants may cost, as given with `--limit`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<CostLimit>,
    /// The program that each variant is compared with itself on, as it was given with `--against`; empty
    /// without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub against: String,
    /// How often somebody looks at the figures before the last round.
    #[serde(default, skip_serializing_if = "Looks::is_once")]
    pub looks: Looks,
    /// What others published of such an experiment, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The runs in the order of execution.
    pub plan: Vec<CaseId>,
}

/// How often somebody looks at the figures of a session and decides whether another round is made. It decides which
/// intervals hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Looks {
    /// When all rounds are made: their number was set before the first.
    #[default]
    Once,
    /// After any round.
    EachRound,
}

impl Looks {
    fn is_once(&self) -> bool {
        *self == Self::Once
    }
}

/// Variants that differ only in the size of their open load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadSweep {
    /// What they have in common, for people.
    pub name: String,
    /// Their names, in the order of the file.
    pub variants: Vec<String>,
}

/// Variants that differ only in the number of the server's threads, and in its CPUs and the clients that go with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSweep {
    /// The server, for people.
    pub name: String,
    /// Names of the variants, in the order of the file.
    pub variants: Vec<String>,
}

/// Two variants that are compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The one whose difference is told.
    pub variant: String,
    /// The one that it is compared with.
    pub against: String,
}

impl Session {
    /// Which variants are compared with which, those that cannot run here left out.
    #[must_use]
    pub fn compared(&self) -> Vec<Compared> {
        let mut pairs = match self.compared.is_empty() {
            true => self.with_baseline(),
            false => self.compared.clone(),
        };
        pairs.retain(|pair| {
            !self.skipped.iter().any(|skip| [&pair.variant, &pair.against].contains(&&skip.variant))
        });
        pairs
    }

    fn with_baseline(&self) -> Vec<Compared> {
        let against = &self.baseline;
        let others = self.variants.iter().filter(|name| *name != against);
        others.map(|name| Compared { variant: name.clone(), against: against.clone() }).collect()
    }
}

/// A variant that cannot run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedVariant {
    /// Its name.
    pub variant: String,
    /// Why, as a sentence.
    pub reason: String,
}

/// One fact of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is, e.g. `kernel`.
    pub name: String,
    /// Its value as text.
    pub value: String,
}

/// One planned run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CaseId {
    /// Name of the variant.
    pub variant: String,
    /// Repetition, from 1.
    pub repetition: u32,
}

impl CaseId {
    /// Name of the run's folder: `VARIANT-REPETITION`.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("{}-{}", self.variant, self.repetition)
    }
}
