//! How processes end.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
    /// The guard itself was lost, so nobody knows.
    Unknown,
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(formatter, "exited with status {status}"),
            Self::Signaled(signal) => write!(formatter, "was ended by signal {signal}"),
            Self::Unknown => formatter.write_str("ended together with its guard"),
        }
    }
}

/// The end of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReport {
    /// How its first process ended.
    pub ending: Ending,
    /// True if it was asked to end; false if it ended by itself.
    pub requested: bool,
    /// True if it did not end within the grace time and was killed.
    pub killed: bool,
    /// Descendants that outlived the first process and were killed.
    pub left_over: usize,
}
