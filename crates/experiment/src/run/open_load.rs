//! The open loops that follow the main load of a round: at one rate for all variants, or at a share of each one's own.

use std::time::Duration;

use dnslab_settings::{Load, Mode};
use dnslab_traffic::{Pace, Rate};

/// Which rate a case is asked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OpenRate {
    /// All cases at this one, queries per second over all clients.
    Common(f64),
    /// Each case at this share of what it answered in its main load.
    Share(f64),
}

/// A load that all cases of a round get after their main load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OpenLoad {
    pub(super) rate: OpenRate,
    /// The measured window of each case.
    pub(super) duration: Duration,
    /// Load before the window.
    pub(super) warm_up: Duration,
}

impl OpenLoad {
    /// The load of a case that answered `own_qps` queries per second in its main load; one query in the window at least.
    pub(super) fn of_case(&self, own_qps: f64) -> CaseOpenLoad {
        let qps = match self.rate {
            OpenRate::Common(qps) => qps,
            OpenRate::Share(share) => (share * own_qps).max(1.0 / self.duration.as_secs_f64()),
        };
        CaseOpenLoad { qps, duration: self.duration, warm_up: self.warm_up }
    }
}

/// The open load of one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CaseOpenLoad {
    /// Queries per second over all clients.
    qps: f64,
    duration: Duration,
    warm_up: Duration,
}

impl CaseOpenLoad {
    /// The load of clients that have this one as their main load.
    pub(super) fn load(&self, main: Load) -> Load {
        Load {
            mode: Mode::Open { rate: Rate::Constant(self.qps), pace: Pace::Poisson },
            duration: self.duration,
            warm_up: self.warm_up,
            windows: None,
            ..main
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_of_the_own_rate() {
        let cases = [
            (OpenRate::Share(0.5), 1_000.0, 500.0),
            (OpenRate::Common(70.0), 1_000.0, 70.0),
            (OpenRate::Share(0.1), 9.0, 1.0),
        ];
        for (rate, own_qps, expected) in cases {
            let (duration, warm_up) = (Duration::from_secs(1), Duration::ZERO);
            let load = OpenLoad { rate, duration, warm_up }.of_case(own_qps);
            assert_eq!(
                load.load(Load::default()).mode,
                Mode::Open { rate: Rate::Constant(expected), pace: Pace::Poisson }
            );
        }
    }
}
