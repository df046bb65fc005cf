//! What a load tells while it runs.

use std::ops::Range;

use dnslab_figures::{ByPhase, Counters, Histogram, Interval};

use crate::resources::{CpuShare, share_of_waiting};

/// An interval that has just ended, and all that the load has counted until then.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LiveInterval {
    /// As it will be in the record.
    pub interval: Interval,
    /// Latencies of the queries that ended since the interval that was told before, as in
    /// [`crate::measured::Measured::latency`]. An observer that hangs misses intervals, but no latency.
    pub latency: Histogram,
    /// Sums since the load began. What happens after the measured window is in the record alone.
    pub counters: ByPhase<Counters>,
    /// CPU time of the busiest worker in the load's own turns since the load began, nanoseconds.
    pub busiest_worker_ns: u64,
    /// The measured window, nanoseconds since the load began, if nothing ends it early.
    pub window_ns: Range<u64>,
    /// When the load began, nanoseconds since 1970 in UTC.
    pub began_unix_ns: u64,
}

impl LiveInterval {
    /// The interval began in the warm-up.
    #[must_use]
    pub fn is_warm_up(&self) -> bool {
        self.interval.at_ns < self.window_ns.start
    }

    /// End of the interval, nanoseconds since 1970 in UTC.
    #[must_use]
    pub fn ended_unix_ns(&self) -> u64 {
        self.began_unix_ns + self.interval.at_ns + self.interval.length_ns
    }

    /// The counts of both phases.
    #[must_use]
    pub fn total(&self) -> Counters {
        let mut total = self.counters.warm_up.clone();
        total.merge(&self.counters.measured);
        total
    }

    /// Queries that became due and have no outcome yet.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        let ByPhase { warm_up, measured } = &self.counters;
        [warm_up, measured]
            .map(|phase| phase.outcomes.due.saturating_sub(phase.outcomes.settled()))
            .iter()
            .sum()
    }

    /// Connections that are usable. Their end is counted in the phase in which they end.
    #[must_use]
    pub fn open_connections(&self) -> u64 {
        let total = self.total().connections;
        total.opened.saturating_sub(total.lost + total.closed)
    }
}

/// One of the loads of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadPart {
    /// The load that the variant asks for.
    Main,
    /// The load at one rate for all variants that follows it ([`crate::run::CommonLoad`]).
    Common,
}

/// What the server uses now, as far as it is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LiveServer {
    /// CPU time since the watch began, nanoseconds. Each load of a run has a watch of its own.
    pub cpu_ns: u64,
    /// CPU time since the sample before, as a share of one CPU: above 1 where it uses several. `None` with the
    /// first sample.
    pub cpu_share: Option<f64>,
    /// How many CPUs the server may use.
    pub cpus: usize,
    /// Memory of its processes, octets.
    pub memory_octets: u64,
    /// Datagrams dropped at its UDP sockets since the watch began, because their buffer was full.
    pub udp_drops: u64,
    /// Time for which its threads could run and had no CPU since the watch began, nanoseconds; `None` where the
    /// kernel does not say.
    pub waited_ns: Option<u64>,
    /// The CPU quota of its control groups; `None` without one.
    pub limit: Option<LiveLimit>,
}

impl LiveServer {
    /// Of the time since an earlier sample for which its threads could run, the share for which they had no CPU, in
    /// [0, 1]; `None` where the kernel does not say.
    #[must_use]
    pub fn waited_share_since(&self, before: &Self) -> Option<f64> {
        let waited = self.waited_ns?.saturating_sub(before.waited_ns?);
        let ran = self.cpu_ns.saturating_sub(before.cpu_ns);
        Some(share_of_waiting(waited as f64, ran as f64))
    }
}

/// A CPU quota, and how often it was used up since the watch began.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LiveLimit {
    /// How many CPUs' time the server may use.
    pub cpus: f64,
    /// Periods of the quota in which the server ran.
    pub periods: u64,
    /// Those of them in which the quota was used up.
    pub throttled: u64,
}

/// What a run tells while it is under load.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveLoad<'a> {
    /// Which of the run's loads it is.
    pub part: LoadPart,
    /// The interval that has just ended.
    pub latest: &'a LiveInterval,
    /// The server; `None` where nobody watches it, and before the first sample.
    pub server: Option<LiveServer>,
    /// What the CPUs of the load did since the sample before; empty where that is not known.
    pub load_cpus: Vec<CpuShare>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use dnslab_figures::{Connections, Outcomes};

    #[test]
    fn both_phases_make_what_is_open() {
        let counters = |due, answered, opened, lost| Counters {
            outcomes: Outcomes { due, answered, ..Outcomes::default() },
            connections: Connections { opened, lost, ..Connections::default() },
            ..Counters::default()
        };
        let live = LiveInterval {
            interval: Interval { at_ns: 100, length_ns: 50, ..Interval::default() },
            // A connection of the warm-up is lost in the measured window.
            counters: ByPhase { warm_up: counters(10, 9, 4, 0), measured: counters(20, 15, 0, 1) },
            window_ns: 100..200,
            began_unix_ns: 1_000,
            ..LiveInterval::default()
        };
        assert_eq!((live.in_flight(), live.open_connections()), (6, 3));
        assert_eq!((live.is_warm_up(), live.ended_unix_ns()), (false, 1_150));
    }
}
