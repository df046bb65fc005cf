//! What the operator did during a load.

use serde::{Deserialize, Serialize};

/// A command that was run at an instant of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventFacts {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// When it was started, in nanoseconds since the load began.
    pub at_ns: i64,
    /// When it was over, likewise: the command, or the one that waits for what it began.
    pub ended_ns: i64,
}
