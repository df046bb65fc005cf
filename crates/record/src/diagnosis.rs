//! What on a host would spoil a measurement.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// As it should be.
    Good,
    /// Worth knowing when figures are compared.
    Note,
    /// Figures taken like this are in doubt.
    Spoils,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Spoils => "spoils",
        })
    }
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// How much it matters.
    pub severity: Severity,
    /// What was looked at.
    pub subject: String,
    /// What was found.
    pub found: String,
    /// Why it matters; empty when it is good.
    pub why: String,
    /// What to do; empty when there is nothing to do.
    pub remedy: String,
}
