//! What bounded the answered rate of a run.

use serde::{Deserialize, Serialize};

/// Who was the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// The server used all the CPU it was given.
    ServerCpu,
    /// The load generator used all the CPU it was given, or dropped answers.
    Generator,
    /// The window of outstanding queries: neither side was busy (Little's law).
    Window,
    /// The asked rate: everything asked was answered.
    Rate,
    /// Datagrams were lost between the two.
    Network,
    /// The figures do not name one.
    Unclear,
}

/// The limit and the figures that name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Who.
    pub kind: LimitKind,
    /// The figures, as half a sentence: `server used 99 % of 1 CPU`.
    pub evidence: String,
}
