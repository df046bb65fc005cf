//! Quantiles of the latency of runs, some of which so many lost queries reach that they are the time-out.

use std::borrow::Cow;

use dnslab_figures::{Histogram, WindowCounts};
use serde::{Deserialize, Serialize};

/// A figure of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunFigure {
    /// It was measured; in the unit of the figure.
    Measured(f64),
    /// So many queries were lost that this quantile is the time-out or more. This is the least that it can be,
    /// nanoseconds.
    TimeOut(f64),
}

impl RunFigure {
    /// A quantile in nanoseconds, where a lost query counts with `max_wait_ns` at least; 0 if that is not known.
    #[must_use]
    pub fn of_quantile(ns: u64, max_wait_ns: u64) -> Self {
        match max_wait_ns > 0 && ns >= max_wait_ns {
            // A histogram has it with three digits.
            true => Self::TimeOut(max_wait_ns as f64),
            false => Self::Measured(ns as f64),
        }
    }

    /// The value; `None` if it is the time-out.
    #[must_use]
    pub fn measured(self) -> Option<f64> {
        match self {
            Self::Measured(value) => Some(value),
            Self::TimeOut(_) => None,
        }
    }

    /// The least that it can be: the value itself, or the time-out.
    #[must_use]
    pub fn at_least(self) -> f64 {
        match self {
            Self::Measured(value) | Self::TimeOut(value) => value,
        }
    }

    /// True if so many queries were lost.
    #[must_use]
    pub fn is_time_out(self) -> bool {
        matches!(self, Self::TimeOut(_))
    }
}

/// In how many runs a quantile is the time-out: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TimeOuts {
    /// In so many.
    pub runs: u32,
    /// Of so many in which it was measured or is the time-out.
    pub of: u32,
}

impl TimeOuts {
    /// True if it is the time-out in all runs.
    #[must_use]
    pub fn are_all(self) -> bool {
        self.runs == self.of
    }
}

/// The latencies of a run, or of a time window of it.
#[derive(Clone, Debug)]
pub struct LatencyQuantiles<'a> {
    latency: Cow<'a, Histogram>,
    /// What the latency of a lost query reaches, nanoseconds; 0 if it is not known.
    max_wait_ns: u64,
    /// The share of the queries that are in the histogram, in [0, 1]: all, unless another tool counted the
    /// answered ones alone. Its lost ones are slower than all of them.
    counted_share: f64,
}

impl<'a> LatencyQuantiles<'a> {
    /// Of a histogram that has the lost queries too, with this as the least of their latency.
    #[must_use]
    pub fn of_all(latency: &'a Histogram, max_wait_ns: u64) -> Self {
        Self::of_answered(latency, max_wait_ns, 0.0)
    }

    /// Of a histogram without the lost queries, which are this share.
    pub(crate) fn of_answered(latency: &'a Histogram, max_wait_ns: u64, lost_share: f64) -> Self {
        Self { latency: latency.unpacked(), max_wait_ns, counted_share: 1.0 - lost_share }
    }

    /// Of a time window, in a load with this as the least latency of a lost query.
    #[must_use]
    pub fn of_window(window: &'a WindowCounts, max_wait_ns: u64) -> Self {
        Self::of_all(&window.latency, max_wait_ns)
    }

    /// The latency that the share `quantile` (in [0, 1]) of all queries does not exceed, nanoseconds; `None` if
    /// none was counted.
    #[must_use]
    pub fn at(&self, quantile: f64) -> Option<RunFigure> {
        let longest = self.latency.max_ns()?;
        // NaN, where all were lost, is no place in the histogram either.
        let place = quantile / self.counted_share;
        let is_beyond = self.counted_share < 1.0 && (place.is_nan() || place >= 1.0);
        Some(match is_beyond {
            true => RunFigure::TimeOut(self.max_wait_ns.max(longest) as f64),
            false => {
                RunFigure::of_quantile(self.latency.quantile_ns(place.min(1.0))?, self.max_wait_ns)
            }
        })
    }

    /// How many queries were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.latency.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lost_queries_reach_is_the_time_out() {
        let mut latency = Histogram::new();
        latency.record_many_ns(1_000, 98);
        latency.record_many_ns(500_000, 2);
        let at = |max_wait_ns| {
            let quantiles = LatencyQuantiles::of_all(&latency, max_wait_ns);
            [0.5, 0.98, 0.99].map(|quantile| quantiles.at(quantile).unwrap().is_time_out())
        };
        assert_eq!(at(500_000), [false, false, true]);
        assert_eq!(at(0), [false; 3], "a time-out that is not known is none");
        let quantiles = LatencyQuantiles::of_all(&latency, 500_000);
        assert_eq!(quantiles.at(0.99), Some(RunFigure::TimeOut(500_000.0)));
        let none = Histogram::new();
        assert!(LatencyQuantiles::of_all(&none, 500_000).at(0.5).is_none());
    }

    #[test]
    fn lost_queries_that_a_histogram_lacks_are_slower_than_all_in_it() {
        let mut latency = Histogram::new();
        (1..=100).for_each(|us| latency.record_ns(us * 1_000));
        let at = |lost_share, quantile| {
            LatencyQuantiles::of_answered(&latency, 0, lost_share).at(quantile).unwrap()
        };
        assert_eq!(at(0.0, 1.0), RunFigure::Measured(latency.max_ns().unwrap() as f64));
        // The 90th of 100 with 10 lost is the slowest but the lost.
        assert!(
            !at(0.1, 0.89).is_time_out()
                && at(0.1, 0.9).is_time_out()
                && at(1.0, 0.5).is_time_out()
        );
        assert!(at(0.1, 0.5).at_least() > at(0.0, 0.5).at_least());
    }

    proptest! {
        /// Whatever was measured and lost, a higher quantile is no smaller, and it is the time-out if a lower one is.
        #[test]
        fn quantiles_rise(
            latencies in prop::collection::vec(1u64..3_000_000_000, 1..60),
            max_wait_ns in prop_oneof![Just(0u64), 1_000u64..2_000_000_000],
            lost_share in prop_oneof![Just(0.0), 0.0..=1.0],
        ) {
            let mut latency = Histogram::new();
            latencies.iter().for_each(|ns| latency.record_ns(*ns));
            let quantiles = LatencyQuantiles::of_answered(&latency, max_wait_ns, lost_share);
            let found: Vec<RunFigure> = [0.5, 0.9, 0.95, 0.99, 0.999, 1.0]
                .iter()
                .map(|quantile| quantiles.at(*quantile).unwrap())
                .collect();
            for pair in found.windows(2) {
                prop_assert!(pair[1].is_time_out() || !pair[0].is_time_out(), "{found:?}");
                prop_assert!(pair[1].at_least() >= pair[0].at_least(), "{found:?}");
            }
        }
    }
}
