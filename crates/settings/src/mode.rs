//! Who asks when: what several keys say together.

use std::path::{Path, PathBuf};

use dnslab_traffic::{Pace, Rate};

use crate::types::PopulationSource;
use crate::words::Quickack;

/// Who asks when.
#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    /// A window of outstanding queries per client; the next is sent when one ends.
    Closed {
        /// Outstanding queries per client, at least 1.
        outstanding: u32,
    },
    /// A schedule that does not wait for the server.
    Open {
        /// Queries per second over all clients, and how that changes with time.
        rate: Rate,
        /// How the due instants are spread.
        pace: Pace,
    },
    /// The clients of the capture in this file, each with queries and a timing of its own. They do not wait for the
    /// server.
    Capture(PathBuf),
    /// The clients of a population, each with queries and a timing of its own. They do not wait for the server.
    Population {
        /// Who they are.
        source: PopulationSource,
        /// Queries per second that all of them ask on average.
        rate: Rate,
    },
}

impl Default for Mode {
    /// One query outstanding.
    fn default() -> Self {
        Self::Closed { outstanding: 1 }
    }
}

impl Mode {
    /// An open loop at a rate that does not change, with equal gaps.
    #[must_use]
    pub fn constant(rate_qps: f64) -> Self {
        Self::Open { rate: Rate::Constant(rate_qps), pace: Pace::Constant }
    }

    /// True if a client sends its next query when one has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// True if the clients have queries of their own.
    #[must_use]
    pub fn is_played(&self) -> bool {
        matches!(self, Self::Capture(_) | Self::Population { .. })
    }

    /// Outstanding queries per client of a closed loop.
    #[must_use]
    pub fn outstanding(&self) -> Option<u32> {
        match self {
            Self::Closed { outstanding } => Some(*outstanding),
            Self::Open { .. } | Self::Capture(_) | Self::Population { .. } => None,
        }
    }

    /// Queries per second over all clients, if that is known before the load.
    #[must_use]
    pub fn rate(&self) -> Option<&Rate> {
        match self {
            Self::Open { rate, .. } | Self::Population { rate, .. } => Some(rate),
            Self::Closed { .. } | Self::Capture(_) => None,
        }
    }

    /// How an open loop spreads its queries.
    #[must_use]
    pub fn pace(&self) -> Option<Pace> {
        match self {
            Self::Open { pace, .. } => Some(*pace),
            Self::Closed { .. } | Self::Capture(_) | Self::Population { .. } => None,
        }
    }

    /// The capture whose clients are played.
    #[must_use]
    pub fn capture(&self) -> Option<&Path> {
        match self {
            Self::Capture(path) => Some(path),
            Self::Closed { .. } | Self::Open { .. } | Self::Population { .. } => None,
        }
    }

    /// The population whose clients are played.
    #[must_use]
    pub fn population(&self) -> Option<&PopulationSource> {
        match self {
            Self::Population { source, .. } => Some(source),
            Self::Closed { .. } | Self::Open { .. } | Self::Capture(_) => None,
        }
    }
}

impl Quickack {
    /// Whether clients of such a loop acknowledge at once.
    #[must_use]
    pub fn applies(self, mode: &Mode) -> bool {
        match self {
            Self::Never => false,
            Self::OpenLoop => !mode.is_closed(),
            Self::Always => true,
        }
    }
}
