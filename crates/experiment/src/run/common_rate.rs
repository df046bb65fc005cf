//! The load at one rate for all variants.

use std::time::Duration;

use dnslab_settings::{Load, Mode};
use dnslab_traffic::{Pace, Rate};

/// The load that all cases of a round get at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CommonRate {
    /// Queries per second over all clients.
    pub(super) rate_qps: f64,
    /// The measured window of each case.
    pub(super) duration: Duration,
    /// Load before the window.
    pub(super) warm_up: Duration,
}

impl CommonRate {
    /// The common load of clients that have this one as their main load.
    pub(super) fn load(&self, main: Load) -> Load {
        Load {
            mode: Mode::Open { rate: Rate::Constant(self.rate_qps), pace: Pace::Poisson },
            duration: self.duration,
            warm_up: self.warm_up,
            windows: None,
            ..main
        }
    }
}
